"""Packages that bring robot files, and where in them the files are.

Nothing of these packages runs, except for the list of mujoco_menagerie, which is an interface made
for that: other lists are read from their source, since importing a module of robot_descriptions
downloads its robot.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from kinetree.loaders.robots.descriptions import robots_of_descriptions


@dataclass(frozen=True)
class Robot:
    """A robot of an installed package.

    Attributes:
        name: short, in lower case.
        package: the one that brings it, as ``pip`` calls it.
        file: URDF, MJCF or SDF.
        folders: where else meshes and packages may be.
        aliases: other names.
        missing: what to do before it can be loaded; empty where its file is on this machine.
    """

    name: str
    package: str
    file: Path
    folders: tuple[Path, ...] = ()
    aliases: tuple[str, ...] = ()
    missing: str = ""

    @property
    def full_name(self) -> str:
        """Robot name with its package."""
        return f"{self.package}/{self.name}"


@dataclass(frozen=True)
class Catalog:
    """A package with robots.

    Attributes:
        package: as ``pip`` calls it.
        robots: returns what it brings, or None where it is not installed.
    """

    package: str
    robots: Callable[[], tuple[Robot, ...] | None]


def _package_folder(module: str) -> Path | None:
    """Folder of an installed package, found without importing it."""
    spec = find_spec(module)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


# --- Folders of robot files ----------------------------------------------------------------------

_SUFFIXES = (".urdf", ".sdf", ".xml")
_FOLDER_ENDINGS = ("_description", "_data", "_simple_description")


def _example_robot_data() -> tuple[Robot, ...] | None:
    """Robots of the package example-robot-data; None if not installed."""
    inside = "share/example-robot-data/robots"
    places = [Path(sys.prefix) / inside]
    try:
        found = distribution("example-robot-data").locate_file(f"cmeel.prefix/{inside}")
    except PackageNotFoundError:
        pass
    else:
        places.insert(0, Path(str(found)))
    root = next((place for place in places if place.is_dir()), None)
    if root is None:
        return None
    files = {folder: _robot_files(folder, "*/*") for folder in sorted(root.iterdir())}
    names = [name for inner in files.values() for name in {_stem(file) for file in inner}]
    robots = []
    for folder, inner in files.items():
        own = folder.name.lower()
        short = min((own.removesuffix(ending) for ending in _FOLDER_ENDINGS), key=len)
        stems = [_stem(file) for file in inner]
        for file, stem in zip(inner, stems, strict=True):
            name = stem if names.count(stem) == 1 else short
            twins = [f for f, other in zip(inner, stems, strict=True) if other == stem]
            if file != max(twins, key=lambda f: f.stat().st_size):
                continue  # what is left of an xacro file beside the robot, without a link
            aliases = (short,) if len(inner) == 1 and short != name else ()
            robots.append(Robot(name, "example-robot-data", file, (root.parent,), aliases))
    return tuple(robots)


def _folder_of(package: str, inside: str) -> Callable[[], tuple[Robot, ...] | None]:
    """Catalog of robots in a folder of a package, named by their files."""

    def robots():
        folder = _package_folder(package)
        if folder is None:
            return None
        return tuple(Robot(_stem(f), package, f) for f in _robot_files(folder / inside, "*"))

    return robots


def _robot_files(folder, pattern) -> list[Path]:
    """Model files in a folder that match a pattern."""
    return sorted(f for f in folder.glob(pattern) if f.suffix in _SUFFIXES and f.is_file())


def _stem(file) -> str:
    """Robot name from its file name."""
    return file.stem.lower().removesuffix("_robot")


# --- Packages that keep what they have downloaded ------------------------------------------------


def _mujoco_menagerie() -> tuple[Robot, ...] | None:
    """Robots of MuJoCo Menagerie; None if not installed."""
    if _package_folder("mujoco_menagerie") is None:
        return None
    import mujoco_menagerie as menagerie  # pyright: ignore[reportMissingImports]

    cache, robots = menagerie.Cache(), []
    for each in menagerie.robots():
        folder = cache.root / each.name if cache.root else cache.model_path(each)
        is_here = folder.is_dir() if cache.root else cache.is_cached(each)
        file = folder / each.entry(each.default_model).file
        advice = "" if is_here else f"python -m mujoco_menagerie prefetch {each.name} fetches it"
        robots.append(Robot(each.name.lower(), "mujoco_menagerie", file, missing=advice))
    return tuple(robots)


def _robot_descriptions() -> tuple[Robot, ...] | None:
    """Robots of the package robot_descriptions; None if not installed."""
    folder = _package_folder("robot_descriptions")
    if folder is None:
        return None
    default = "~/.cache/robot_descriptions"
    cache = Path(os.path.expanduser(os.environ.get("ROBOT_DESCRIPTIONS_CACHE", default)))
    commit = os.environ.get("ROBOT_DESCRIPTION_COMMIT")
    robots = []
    for each in robots_of_descriptions(folder, cache, commit):
        advice = ""
        if not each.file.is_file():
            advice = f"python -m robot_descriptions pull {each.module} fetches it"
        name = each.module.lower().removesuffix("_description")
        aliases = (each.module.lower(),)
        robots.append(Robot(name, "robot_descriptions", each.file, each.folders, aliases, advice))
    return tuple(robots)


CATALOGS = (
    Catalog("example-robot-data", _example_robot_data),
    Catalog("robot_descriptions", _robot_descriptions),
    Catalog("mujoco_menagerie", _mujoco_menagerie),
    Catalog("gymnasium", _folder_of("gymnasium", "envs/mujoco/assets")),
    Catalog("dm_control", _folder_of("dm_control", "suite")),
)
"""The packages that are looked into."""
