"""``load``, ``loads`` and ``read``: robot files of any format as models."""

import json
import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import KinetreeError, LoadError, ModelWarning, warn
from kinetree.joints import Free
from kinetree.loaders import robots
from kinetree.loaders.paths import Folders, content
from kinetree.loaders.report import MOVING, Notice, Report, in_lines, short
from kinetree.loaders.xml import LIMIT_BYTES, root_tag
from kinetree.loaders.xml_repairs import repair_xml
from kinetree.model import Model, lump_fixed
from kinetree.spelling import did_you_mean, explains

_LOG = logging.getLogger("kinetree")


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        read: ``read(source: bytes, report, folders, options)`` returns a ``Model``.
        suffixes: of file names.
        root_tags: of XML files, whatever their suffix.
        lumps: whether bodies on fixed joints are merged unless ``lump=False``: for formats in which
            such a body is the only way to write a frame.
        parameters: whether its files may have parameters.
        floating_base: why ``floating_base=True`` has no effect on a file without a free joint.
        most: largest size of a file [bytes].
    """

    read: Callable[[bytes, Report, Folders, Any], Model]
    suffixes: tuple[str, ...] = ()
    root_tags: tuple[str, ...] = ()
    lumps: bool = False
    parameters: bool = False
    floating_base: str | None = None
    most: int = LIMIT_BYTES


@dataclass(frozen=True)
class Options:
    """Options of reading a file; see ``load``."""

    floating_base: bool | None = None
    lump: bool | None = None
    strict: bool = False
    parameters: Mapping[str, float] = field(default_factory=dict)
    srdf: Any = None


class _Loaded(NamedTuple):
    model: Model
    notices: tuple[Notice, ...]
    path: str


class Loaded(_Loaded):
    """A model read from a file, with notices, path and settings.

    Attributes:
        settings: of a simulation, such as ``timestep``.
    """

    settings: Mapping[str, Any] = {}


def _read_by(format, *arguments) -> Model:
    """Reader function of a file format, whose module is imported at its first use."""
    read: Callable[..., Model]
    if format == "urdf":
        from kinetree.loaders.urdf import read_urdf as read
    elif format == "mjcf":
        from kinetree.loaders.mjcf import read_mjcf as read
    elif format == "sdf":
        from kinetree.loaders.sdf import read_sdf as read
    elif format == "usd":
        from kinetree.loaders.usd import read_usd as read
    elif format == "toml":
        from kinetree.loaders.native import read_toml as read
    else:
        from kinetree.loaders.dh import read_dh as read
    return read(*arguments)


def read_json(source, report, folders, options) -> Model:
    """Model from the JSON text of ``Model.to_dict``."""
    try:
        data = json.loads(source, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise report.error(error.lineno, f"this is not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise report.error(None, f"this is not JSON: {error}") from None
    bodies = data.get("bodies") if isinstance(data, dict) else ()
    report.check_bodies(len(bodies) if isinstance(bodies, list) else 0)
    try:
        return Model.from_dict(data, strict=options.strict)
    except (TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise report.error(None, f"this JSON is not a model: {error}") from error


def _whole(digits):
    """Integer of a JSON file; a float if it has very many digits."""
    return int(digits) if len(digits) < 20 else float(digits)


FORMATS = {
    "urdf": Format(partial(_read_by, "urdf"), (".urdf", ".xacro"), ("robot",), lumps=True),
    "mjcf": Format(
        partial(_read_by, "mjcf"), (".mjcf",), ("mujoco", "mujocoinclude"), lumps=True,
        floating_base="it frees bodies on the world without a joint, and there are none",
    ),
    "sdf": Format(
        partial(_read_by, "sdf"), (".sdf", ".world"), ("sdf",), lumps=True,
        floating_base="the file joins everything to the world",
    ),
    "usd": Format(
        partial(_read_by, "usd"), (".usda", ".usd", ".usdc", ".usdz"), lumps=True,
        floating_base="the file joins everything to the world",
        most=8 * LIMIT_BYTES,  # with all vertices of its meshes
    ),
    "toml": Format(partial(_read_by, "toml"), (".toml",), parameters=True),
    "dh": Format(partial(_read_by, "dh"), (".csv",), parameters=True),
    "json": Format(read_json, (".json",)),
}  # fmt: skip
"""The formats that ``load`` reads, by name."""


@explains
def load(
    path: str | os.PathLike,
    *,
    floating_base: bool | None = None,
    srdf: str | os.PathLike | None = None,
    strict: bool = False,
    folders: str | os.PathLike | Sequence[str | os.PathLike] = (),
    format: str | None = None,
    lump: bool | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Model:
    """Model of a mechanism from a file, with a warning of parts that are not represented.

    What the model cannot represent is in its ``report``. One ``ModelWarning`` lists what of it
    changes how the robot moves or touches; of the rest the log (``logging``) has the number.

    Args:
        path: URDF, MJCF, SDF, USD, kinetree's TOML, a table of Denavit–Hartenberg parameters (CSV
            or TOML), or JSON of ``Model.to_dict``; or ``"robots:ur5"``, a robot that an installed
            package brings (``kinetree.robots.names()`` lists them).
        floating_base: put the root link of a URDF file on a free joint, and so bodies without a
            joint on the world of an MJCF file. In other formats the file decides; if
            nothing floats, a warning says that this argument had no effect. None, the default, is
            False, unless an SRDF file defines the root joint.
        srdf: SRDF file with the semantics of a URDF file: disabled collisions, groups of joints,
            named states, end effectors, the joint of the root.
        strict: raise ``LoadError`` for elements that are ignored, and for impossible inertias.
        folders: further folders that the file may refer to: meshes, packages.
        format: ``"urdf"``, ``"mjcf"``, ``"sdf"``, ``"usd"``, ``"toml"``, ``"dh"`` or ``"json"``;
            by default known from the name and the content.
        lump: merge bodies on fixed joints into those that carry them; their names stay as frames.
            By default in URDF, MJCF, SDF and USD, while TOML and JSON are read as they are written.
        parameters: new values by name for the ``[parameters]`` of a TOML file.
    """
    loaded = read(
        path,
        floating_base=floating_base,
        srdf=srdf,
        strict=strict,
        folders=folders,
        format=format,
        lump=lump,
        parameters=parameters,
    )
    return announce(loaded)


@explains
def loads(
    text: str | bytes,
    format: str | None = None,
    *,
    floating_base: bool | None = None,
    srdf: str | os.PathLike | None = None,
    strict: bool = False,
    folders: str | os.PathLike | Sequence[str | os.PathLike] = (),
    lump: bool | None = None,
    parameters: Mapping[str, float] | None = None,
    name: str = "<text>",
) -> Model:
    """Model of a mechanism from a string, as ``load`` makes from a file.

    Args:
        text: a string, or bytes.
        format: as in ``load``.
        floating_base: as in ``load``.
        srdf: as in ``load``; the text of the file is taken, too.
        strict: as in ``load``.
        folders: as in ``load``.
        lump: as in ``load``.
        parameters: as in ``load``.
        name: name of the text in messages.
    """
    if not isinstance(text, (str, bytes)):
        raise LoadError(f"loads needs a string or bytes, got {type(text).__name__}")
    if isinstance(text, str) and _is_file_name(text):
        raise LoadError(f"{short(text)} is the name of a file, not its text; load reads files")
    source = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    options = Options(floating_base, lump, strict, parameters or {}, srdf)
    return announce(_read(source, str(name), Folders(None, folders), format, options))


def read(
    path: str | os.PathLike,
    *,
    floating_base: bool | None = None,
    srdf: str | os.PathLike | None = None,
    strict: bool = False,
    folders: str | os.PathLike | Sequence[str | os.PathLike] = (),
    format: str | None = None,
    lump: bool | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Loaded:
    """Model from a file with its notices as a report instead of a warning."""
    try:
        path = os.fspath(path)
    except TypeError:
        raise LoadError(
            f"load needs the path of a file, got {type(path).__name__}; loads takes text"
        ) from None
    options = Options(floating_base, lump, strict, parameters or {}, srdf)
    if isinstance(path, str):
        path, folders = robots.locate(path, folders)
    suffix = Path(os.fsdecode(path)).suffix.lower()
    most = max((f.most for f in FORMATS.values() if suffix in f.suffixes), default=LIMIT_BYTES)
    return _read(content(path, most), str(path), Folders(path, folders), format, options)


def _read(source, path, folders, format, options) -> Loaded:
    """Model and report from the content of a file."""
    report = Report(path)
    source, repairs = repair_xml(source)
    for what, why in repairs:
        report.ignore(None, what, why, effect="setting")
    format = format or _format(source, path)
    if format not in FORMATS:
        hint = did_you_mean(format, FORMATS, f"known: {', '.join(FORMATS)}")
        raise LoadError(f"{path}: unknown format {format!r}; {hint}")
    if Path(path).suffix.lower() == ".srdf" and format == "urdf":
        raise LoadError(
            f"{path}: SRDF describes the robot of a URDF file; "
            f"load('robot.urdf', srdf={Path(path).name!r}) reads both"
        )
    if options.parameters and not FORMATS[format].parameters:
        raise LoadError(f"{path}: parameters= is for TOML files; a file of {format} has none")
    if options.srdf is not None and format != "urdf":
        raise LoadError(f"{path}: srdf= belongs to URDF files; this is a file of {format}")
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always", ModelWarning)
        try:
            model = _model(format, source, report, folders, options)
        except LoadError:
            raise
        except KinetreeError as error:
            raise LoadError(f"{path}: {error}") from error
        except (ArithmeticError, RecursionError, np.linalg.LinAlgError) as error:
            raise LoadError(f"{path}: its numbers do not describe a mechanism: {error}") from error
    said = set()
    for warning in caught:
        if issubclass(warning.category, ModelWarning):
            if str(warning.message) not in said:
                report.ignore(None, "model", str(warning.message))
            said.add(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if format == "urdf" and options.srdf is None and not options.strict:
        _note_srdf_beside(path, report)
    notices = report.in_order()
    if options.strict and notices:
        raise LoadError(_list(notices, f"{path}: strict=True, and {_count(notices)}"))
    loaded = Loaded(model.with_report(notices), notices, path)
    loaded.settings = report.settings
    return loaded


def _note_srdf_beside(path, report):
    """Add a notice about an SRDF file beside the model that was not requested."""
    beside = Path(path).with_suffix(".srdf")
    if beside != Path(path) and beside.is_file():
        why = f"this SRDF file lies beside and is not read; load(..., srdf={str(beside)!r}) does"
        report.ignore(None, beside.name, why, effect="setting")


def _model(name, source, report, folders, options):
    """Model from content, with notices about arguments that had no effect."""
    format = FORMATS[name]
    lump = format.lumps if options.lump is None else options.lump
    model = format.read(source, report, folders, replace(options, lump=lump))
    if lump and not format.lumps:
        model = lump_fixed(model)
    if options.floating_base and not any(isinstance(j, Free) for j in model.joint[1:]):
        why = f"a file of {name} says which joints are free; kinetree.edit.floating adds one"
        report.ignore(None, "floating_base=True", format.floating_base or why)
    return model


def _format(source, path):
    """Format of a file by its suffix, or by its root element where that is ambiguous."""
    suffix = Path(path).suffix.lower()
    known = next((name for name, format in FORMATS.items() if suffix in format.suffixes), None)
    if known and not FORMATS[known].root_tags:
        return known
    tag = root_tag(source)
    by_tag = next((name for name, format in FORMATS.items() if tag in format.root_tags), None)
    if by_tag or known:
        return by_tag or known
    if source.startswith((b"#usda", b"PXR-USDC")):
        return "usd"
    if source.lstrip()[:1] == b"{":
        return "json"
    if tag is None and source.lstrip()[:1] not in (b"", b"<") and suffix == "":
        return "toml"
    found = f"its root element is <{tag}>" if tag else "it is not XML"
    raise LoadError(
        f"{path}: unknown format: {found}, and the suffix is not one of "
        f"{', '.join(_suffixes())}; pass format= one of {', '.join(FORMATS)}"
    )


def _is_file_name(text):
    """Whether a text looks like the name of a file, not like its content."""
    return "\n" not in text and Path(text).suffix.lower() in (*_suffixes(), ".xml")


def _suffixes():
    """File suffixes of all formats."""
    return [suffix for format in FORMATS.values() for suffix in format.suffixes]


def announce(loaded: Loaded) -> Model:
    """The model, after one warning about notices that affect its motion.

    The number goes to the log, which Python prints to the standard error where a program does not
    say otherwise: nothing is wrong, so that it is not a warning.
    """
    moving = [n for n in loaded.notices if n.effect in MOVING]
    others = len(loaded.notices) - len(moving)
    if moving:
        text = _list(moving, f"{loaded.path}: {_count(moving)}")
        rest = f"{_notices(others)} that {'does' if others == 1 else 'do'} not change how it moves"
        warn(text + (f"\n  and {rest}: model.report" if others else ""), ModelWarning)
    elif others:
        where = f"{loaded.path}: {_notices(others)}"
        _LOG.warning("%s about what does not change its motion: print(model.report)", where)
    return loaded.model


def _notices(count):
    """Number of notices in words."""
    return "1 notice" if count == 1 else f"{count} notices"


def _count(notices):
    """Sentence with the number of notices."""
    return f"{_notices(len(notices))}: elements that are ignored or look wrong"


def _list(notices, head):
    """Notices as lines of text below a heading."""
    return "\n  ".join([f"{head}:", *in_lines(notices)])
