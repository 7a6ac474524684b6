"""Files that a robot file may refer to: in its folder, packages around it, allowed folders.

Robot files name meshes and other files by relative paths, ``package://``, ``model://`` and
``file://``. An untrusted file must not reach anything else, so every name is resolved,
symbolic links included, and must end up inside an allowed folder.
"""

import os
import re
import stat
from pathlib import Path
from urllib.parse import unquote

from kinetree.errors import LoadError
from kinetree.loaders.report import short
from kinetree.loaders.xml import LIMIT_BYTES
from kinetree.model.decomposition import is_kept_mesh
from kinetree.spelling import did_you_mean

_SCHEMES = {
    "package": ("package.xml", ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")),
    "model": ("model.config", ("GZ_SIM_RESOURCE_PATH", "SDF_PATH", "GAZEBO_MODEL_PATH")),
}
_MARKERS = ("package.xml", "model.config", "__init__.py")
_MARKER_BYTES = 65536
_PACKAGE_NAME = re.compile(rb"<name>\s*([\w.-]+)\s*</name>", re.ASCII)
_SUBFOLDERS = {"urdf", "robots", "robot", "sdf", "mjcf", "xml", "models", "xacro"}
_HOW = "pass folders=[...] to kinetree.load to allow another folder"


class Folders:
    """The folders that a robot file may refer to.

    These are the folder of the file; the one above if the file lies in a folder called ``urdf``
    or the like; the package that the file is part of, known by its ``package.xml`` or
    ``model.config``, or a Python package; and what the user adds. ``package://name`` is looked up
    as ROS does: in folders that the user or the environment names, in the package around the file
    by the name that its ``package.xml`` has, and in packages beside it. Without a ``package.xml``
    only the first two folders and Python packages count, by their own names.

    Args:
        file: path of the robot file; None for text without a file.
        extra: more folders to search and allow.
    """

    def __init__(self, file=None, extra=()):
        extra = (extra,) if isinstance(extra, (str, os.PathLike)) else extra
        self.extra = [Path(os.path.realpath(os.path.expanduser(f))) for f in extra]
        self.own = None if file is None else Path(os.path.realpath(file)).parent
        self.allowed = [*self._around(), *self.extra]
        self._found: dict[tuple, list[Path]] = {}  # packages, which many meshes name

    def _around(self):
        """Folders around the model file in which other files are searched."""
        if self.own is None:
            return []
        found = [self.own]
        if self.own.name.lower() in _SUBFOLDERS and not _is_top(self.own.parent):
            found.append(self.own.parent)
        for folder in self.own.parents:
            if not _is_top(folder) and any(os.path.isfile(folder / m) for m in _MARKERS):
                found.append(folder)
        return found

    def resolve(self, name: str) -> str:
        """Absolute path of an existing file; LoadError with the reason otherwise."""
        path = self.locate(name)
        if not os.path.isfile(path):
            raise LoadError(f"{short(name)} does not exist: no file {short(path)}")
        return path

    def locate(self, name: str) -> str:
        """Absolute path for a file name or URI, inside an allowed folder; it need not exist."""
        if "\0" in name or not name.strip():
            raise LoadError(f"{short(name)} is not a file name")
        slashed = name.replace("\\", "/")  # written on Windows, unless there is such a file
        path = self._locate(slashed if "://" in name else name)
        return path if slashed == name or os.path.exists(path) else self._locate(slashed)

    def _locate(self, name):
        """Path of a file by its name or URI, or None."""
        scheme, found, rest = name.partition("://")
        if found and scheme in _SCHEMES:
            return self._in_package(scheme, unquote(rest), name)
        if found and scheme == "file":
            return self._check(Path("/") / unquote(rest).lstrip("/"), self.allowed, name)
        if found:
            raise LoadError(
                f"{short(name)} is not a file on this machine; kinetree fetches nothing"
            )
        if os.path.isabs(name) and is_kept_mesh(name):  # which kinetree wrote itself
            return os.path.realpath(name)
        bases = self.extra if self.own is None else [self.own, *self.extra]
        if not bases:
            raise LoadError(f"{short(name)} is relative, and text has no folder: {_HOW}")
        first = self._check(bases[0] / name, self.allowed, name)
        for base in bases[1:]:
            if not os.path.exists(first) and os.path.exists(base / name):
                return self._check(base / name, self.allowed, name)
        return first

    def _in_package(self, scheme, rest, name):
        """Path of a file in a ROS package or Gazebo model, or None."""
        package, _, inside = rest.lstrip("/").partition("/")
        if package in ("", ".", ".."):
            raise LoadError(f"{short(name)} names no package")
        marker, variables = _SCHEMES[scheme]
        first = None
        if (package, scheme) not in self._found:
            self._found[package, scheme] = list(self._packages(package, marker, variables))
        for root in self._found[package, scheme]:
            path = self._check(root / inside, [root], name)
            if os.path.exists(path):
                return path
            first = first or path
        if first is None:
            raise LoadError(
                f"{short(name)}: no package {short(package)} above or beside the file; {_HOW}, or "
                f"set {variables[0]}"
            )
        return first

    def _packages(self, package, marker, variables):
        """Candidate folders of a package, the most likely first."""
        listed = [Path(f) for v in variables for f in os.environ.get(v, "").split(os.pathsep) if f]
        for folder in [*self.extra, *listed]:
            for candidate in (folder, folder / package, folder / "share" / package):
                if candidate.name == package and os.path.isdir(candidate):
                    yield Path(os.path.realpath(candidate))
        if self.own is None:
            return
        for folder in (self.own, *self.own.parents):
            if _is_top(folder):
                return
            named = folder in self.allowed and folder.name == package
            if named or package_name(folder / marker) == package:
                yield folder
            beside = folder / package
            if os.path.isfile(beside / marker):
                yield Path(os.path.realpath(beside))

    def _check(self, path, folders, name):
        """Real path of a file if it lies in one of the folders, else None."""
        try:
            real = Path(os.path.realpath(path))
        except (OSError, ValueError):
            raise LoadError(f"{short(name)} is not a file name") from None
        if not any(real == f or f in real.parents for f in folders):
            raise LoadError(
                f"{short(name)} lies outside the folders that this file may refer to; {_HOW}"
            )
        return str(real)


def _is_top(folder):
    """Whether a folder is too general to be a robot's: root, top-level or home folder."""
    home = os.path.expanduser("~")  # as it is for users without a home, such as some containers'
    return len(folder.parts) <= 2 or str(folder) == os.path.realpath(home)


def package_name(marker: Path) -> str:
    """Package name in a ``package.xml``; the folder's name for other markers.

    ROS goes by what is written there: a clone may lie in a folder of another name.
    """
    if not os.path.isfile(marker):
        return ""
    if marker.name != "package.xml":
        return marker.parent.name
    try:
        with open(marker, "rb") as file:
            found = _PACKAGE_NAME.search(file.read(_MARKER_BYTES))
    except OSError:
        return ""
    return found[1].decode() if found else marker.parent.name


# --- Content of a robot file ---------------------------------------------------------------------


def content(path, most: int = LIMIT_BYTES) -> bytes:
    """Content of a regular file of at most ``most`` bytes."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise LoadError(f"{path}: this is {kind}; load needs a robot file")
        if status.st_size > most:
            raise LoadError(
                f"{path}: the file has {status.st_size} bytes; kinetree reads at most {most}"
            )
        with open(path, "rb") as file:
            return file.read(most + 1)
    except LoadError:
        raise
    except FileNotFoundError:
        raise LoadError(
            f"{short(str(path))}: there is no such file{_suggestion(str(path))}"
        ) from None
    except (OSError, ValueError) as error:
        raise LoadError(f"{short(str(path))}: the file cannot be read: {error}") from None


def _suggestion(path) -> str:
    """Suggestion of an existing file with a similar name, as text."""
    if "\n" in path or "<" in path:
        return "; loads(text) takes the text itself"
    if Path(path).suffix == "" and path.isidentifier():
        return f"; for a robot of the package: kinetree.samples.load({path!r})"
    try:
        beside = [p.name for p in Path(path).parent.iterdir() if p.suffix]
    except OSError:
        return f"; nor is there a folder {str(Path(path).parent)!r}"
    hint = did_you_mean(Path(path).name, beside, "", cutoff=0.75)
    return f"; {hint}" if hint else ""
