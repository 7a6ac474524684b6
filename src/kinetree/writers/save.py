"""``save``: a model as a file, in the format of the suffix."""

import json
import os
from pathlib import Path

from kinetree.errors import ModelError, calling
from kinetree.model import Model
from kinetree.model.arrays import as_model


def _to_urdf(model) -> str:
    from kinetree.writers.urdf import to_urdf

    return to_urdf(model)


def _to_srdf(model) -> str:
    from kinetree.writers.srdf import to_srdf

    return to_srdf(model)


def _to_sdf(model) -> str:
    from kinetree.writers.sdf import to_sdf

    return to_sdf(model)


def _to_mjcf(model) -> str:
    from kinetree.writers.mjcf import to_mjcf

    return to_mjcf(model)


def _to_toml(model) -> str:
    from kinetree.writers.native import to_toml

    return to_toml(model)


def to_json(model) -> str:
    """The plain data of ``Model.to_dict`` as JSON."""
    return json.dumps(model.to_dict(), indent=1, allow_nan=False) + "\n"


WRITERS = {
    "urdf": _to_urdf, "sdf": _to_sdf, "mjcf": _to_mjcf, "toml": _to_toml, "json": to_json,
    "srdf": _to_srdf,
}  # fmt: skip
"""The formats that ``save`` writes: functions of a model to the text of a file, by name."""
_SUFFIXES = {
    ".urdf": "urdf", ".sdf": "sdf", ".world": "sdf", ".xml": "mjcf", ".mjcf": "mjcf",
    ".toml": "toml", ".json": "json", ".srdf": "srdf",
}  # fmt: skip


def save(model: Model, path: str | os.PathLike, *, format: str | None = None) -> Path:
    """Write a model to a file, whole or not at all; the path is returned.

    Args:
        model: the model.
        path: where to; the suffix is the format: ``.urdf``, ``.sdf`` or ``.world``, ``.xml``
            or ``.mjcf``, ``.toml``, ``.json``; or ``.srdf``, the groups, postures and pairs of
            links that go beside a URDF file.
        format: ``"urdf"``, ``"sdf"``, ``"mjcf"``, ``"toml"``, ``"json"`` or ``"srdf"``, if the
            suffix does not say.
    """
    as_model(model)
    path = Path(os.fspath(path))
    format = format or _SUFFIXES.get(path.suffix.lower())
    if format not in WRITERS:
        raise ModelError(
            f"cannot write {str(path)!r}: the format must be one of {', '.join(WRITERS)}, by "
            f"format= or by the suffix {', '.join(_SUFFIXES)}; got {format or path.suffix!r}"
        )
    with calling("save"):
        text = WRITERS[format](model)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8", newline="\n")
    return part.replace(path)
