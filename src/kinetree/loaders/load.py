"""Robot files of any format, as models: ``load``, ``loads`` and ``read``."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kinetree.errors import KinetreeError, LoadError, ModelWarning
from kinetree.joints import Free
from kinetree.loaders.content import content
from kinetree.loaders.paths import Folders
from kinetree.loaders.report import Notice, Report, short
from kinetree.loaders.xml import root_tag
from kinetree.model import Model, lump_fixed
from kinetree.spelling import did_you_mean

__all__ = ["FORMATS", "Loaded", "Options", "load", "loads", "read"]

# Each reader is called as read(source: bytes, report, folders, options) and returns a Model.
FORMATS = {
    "urdf": ("kinetree.loaders.urdf", "read_urdf"),
    "mjcf": ("kinetree.loaders.mjcf", "read_mjcf"),
    "sdf": ("kinetree.loaders.sdf", "read_sdf"),
    "toml": ("kinetree.loaders.native", "read_toml"),
    "dh": ("kinetree.loaders.dh", "read_dh"),
    "json": ("kinetree.loaders.plain", "read_json"),
}
_ROOT_TAGS = {"robot": "urdf", "mujoco": "mjcf", "mujocoinclude": "mjcf", "sdf": "sdf"}
_SUFFIXES = {
    ".urdf": "urdf", ".xacro": "urdf", ".mjcf": "mjcf", ".sdf": "sdf", ".world": "sdf",
    ".toml": "toml", ".csv": "dh", ".json": "json",
}  # fmt: skip
_FILES = (*_SUFFIXES, ".xml")
_LUMPED = ("urdf", "mjcf", "sdf")
"""Formats that have no other way to say "frame" than a body on a fixed joint."""
_NOTHING_FLOATS = {
    "mjcf": "it frees bodies without a joint that the world carries, and there are none",
    "sdf": "the file joins everything to the world",
}
_SHOWN = 10


@dataclass(frozen=True)
class Options:
    """How to read a file; see ``load``."""

    floating_base: bool = False
    lump: bool | None = None
    strict: bool = False
    parameters: Mapping[str, float] = field(default_factory=dict)


class Loaded(NamedTuple):
    """A model with what its file says beyond it."""

    model: Model
    notices: tuple[Notice, ...]
    path: str


def load(
    path, *, floating_base=False, strict=False, folders=(), format=None, lump=None, parameters=None
) -> Model:
    """The mechanism in a file.

    What the file says and the model does not carry comes as one ``ModelWarning`` that lists it.

    Args:
        path: URDF, MJCF, SDF, kinetree's TOML, a table of Denavit–Hartenberg parameters (CSV or
            TOML), or JSON of ``Model.to_dict``.
        floating_base: put the root link of a URDF file on a free joint, and so bodies without a
            joint that the world of an MJCF file carries. In other formats the file decides what
            floats; if nothing does, a warning says that this argument had no effect.
        strict: raise ``LoadError`` where something is not carried, or physically impossible.
        folders: folders beside that of the file which it may refer to: meshes, packages.
        format: ``"urdf"``, ``"mjcf"``, ``"sdf"``, ``"toml"``, ``"dh"`` or ``"json"``; by default
            known from the name and the content.
        lump: merge bodies on fixed joints into those that carry them; their names stay as frames.
            By default in URDF, MJCF and SDF, while TOML and JSON are read as they are written.
        parameters: new values by name for the ``[parameters]`` of a TOML file.
    """
    loaded = read(
        path,
        floating_base=floating_base,
        strict=strict,
        folders=folders,
        format=format,
        lump=lump,
        parameters=parameters,
    )
    return _announced(loaded)


def loads(
    text, format=None, *, floating_base=False, strict=False, folders=(), lump=None,
    parameters=None, name="<text>",
) -> Model:  # fmt: skip
    """The mechanism in a text, as ``load`` finds it in a file.

    Args:
        text: a string, or bytes.
        format: as in ``load``.
        floating_base: as in ``load``.
        strict: as in ``load``.
        folders: as in ``load``.
        lump: as in ``load``.
        parameters: as in ``load``.
        name: what to call the text in messages.
    """
    if not isinstance(text, (str, bytes)):
        raise LoadError(f"loads needs a string or bytes, got {type(text).__name__}")
    if isinstance(text, str) and "\n" not in text and Path(text).suffix.lower() in _FILES:
        raise LoadError(f"{short(text)} is the name of a file, not its text; load reads files")
    source = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    options = Options(floating_base, lump, strict, parameters or {})
    return _announced(_read(source, str(name), Folders(None, folders), format, options))


def read(
    path, *, floating_base=False, strict=False, folders=(), format=None, lump=None, parameters=None
) -> Loaded:
    """As ``load``, but with the notices as data instead of a warning."""
    try:
        path = os.fspath(path)
    except TypeError:
        raise LoadError(
            f"load needs the path of a file, got {type(path).__name__}; loads takes text"
        ) from None
    options = Options(floating_base, lump, strict, parameters or {})
    return _read(content(path), str(path), Folders(path, folders), format, options)


def _read(source, path, folders, format, options) -> Loaded:
    report = Report(path)
    format = format or _format(source, path)
    reader = _reader(format, path)
    if options.parameters and format not in ("toml", "dh"):
        raise LoadError(f"{path}: parameters= is for TOML files; a file of {format} has none")
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always", ModelWarning)
        try:
            model = _model(reader, source, report, folders, options, format)
        except LoadError:
            raise
        except KinetreeError as error:
            raise LoadError(f"{path}: {error}") from error
        except (ArithmeticError, RecursionError, np.linalg.LinAlgError) as error:
            raise LoadError(f"{path}: the numbers in it make no mechanism: {error}") from error
    for warning in caught:
        if issubclass(warning.category, ModelWarning):
            report.ignored(None, "model", str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if options.strict and report.notices:
        what = f"{path}: strict=True, and something is ignored or odd"
        raise LoadError(_listed(report.notices, what))
    return Loaded(model, tuple(report.notices), path)


def _model(reader, source, report, folders, options, format):
    """The model, and a note on arguments that made no difference to it."""
    lumped = format in _LUMPED
    lump = lumped if options.lump is None else options.lump
    model = reader(source, report, folders, replace(options, lump=lump))
    if lump and not lumped:
        model = lump_fixed(model)
    if options.floating_base and not any(isinstance(j, Free) for j in model.joint[1:]):
        why = f"a file of {format} says which joints are free; kinetree.edit.floating adds one"
        report.ignored(None, "floating_base=True", _NOTHING_FLOATS.get(format, why))
    return model


def _format(source, path):
    """By the suffix, and where that leaves a choice by the root element."""
    known = _SUFFIXES.get(Path(path).suffix.lower())
    if known in ("toml", "dh", "json"):
        return known
    tag = root_tag(source)
    if tag in _ROOT_TAGS:
        return _ROOT_TAGS[tag]
    if known:
        return known
    if source.lstrip()[:1] == b"{":
        return "json"
    if tag is None and source.lstrip()[:1] not in (b"", b"<") and Path(path).suffix == "":
        return "toml"
    found = f"its root element is <{tag}>" if tag else "it is no XML"
    raise LoadError(
        f"{path}: unknown format: {found}, and the suffix is not one of "
        f"{', '.join(_SUFFIXES)}; pass format= one of {', '.join(FORMATS)}"
    )


def _reader(format, path):
    if format not in FORMATS:
        hint = did_you_mean(format, FORMATS, f"known: {', '.join(FORMATS)}")
        raise LoadError(f"{path}: unknown format {format!r}; {hint}")
    module, name = FORMATS[format]
    return getattr(import_module(module), name)


def _announced(loaded):
    if loaded.notices:
        count = len(loaded.notices)
        things = "one thing" if count == 1 else f"{count} things"
        what = f"{loaded.path}: {things} to know, ignored or odd"
        warnings.warn(_listed(loaded.notices, what), ModelWarning, stacklevel=3)
    return loaded.model


def _listed(notices, head):
    """One line for each kind of thing, with the first place of it, and how many more kinds."""
    kinds: dict = {}
    for notice in notices:
        kinds.setdefault((notice.what.split()[0].strip("<>"), notice.why), []).append(notice)
    lines = [f"{head}:"]
    for alike in list(kinds.values())[:_SHOWN]:
        more = f" (and {len(alike) - 1} more of this kind)" if len(alike) > 1 else ""
        lines.append(f"{alike[0]}{more}")
    if len(kinds) > _SHOWN:
        lines.append(f"and {len(kinds) - _SHOWN} other kinds (kinetree.loaders.read lists them)")
    return "\n  ".join(lines)
