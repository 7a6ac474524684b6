"""Events and reports as plain data for files, and back.

A file names classes by the keys of a fixed table, so that no file chooses what is imported.
"""

import importlib
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Any, get_args, get_origin

import numpy as np

__all__ = ["plain", "revived"]

_ARRAY = "array"
_DEEPEST = 16
_KINDS = {  # what files call them, and where they are
    "results.report.Report": "kinetree.simulation.results.report.Report",
    "events.event.EventRecord": "kinetree.integration.events.EventRecord",
    "constrained.passes.SingularPass": "kinetree.simulation.constrained.health.SingularPass",
    "contact.history.ContactHistory": "kinetree.contact.stepping.history.ContactHistory",
    "contact.phases.history.PhaseHistory": "kinetree.contact.event_driven.history.PhaseHistory",
    "kinetree.contact.stepping.residuals.Residuals": (
        "kinetree.contact.stepping.residuals.Residuals"
    ),
    "kinetree.simulation.contact.phases.history.PhaseResiduals": (
        "kinetree.contact.event_driven.history.PhaseResiduals"
    ),
}
_NAMES = {place: name for name, place in _KINDS.items()}


def plain(x):
    """Numbers, text, lists and dictionaries; of classes in the table, their names and fields."""
    if isinstance(x, np.ndarray):
        return {"": _ARRAY, "values": x.tolist()}
    if isinstance(x, np.generic):
        return x.item()
    kind = _NAMES.get(f"{type(x).__module__}.{type(x).__qualname__}")
    if kind is not None:
        return {"": kind} | {name: plain(getattr(x, name)) for name in _fields(type(x))}
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return [plain(item) for item in x]
    if isinstance(x, dict):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, (str, int, float, bool, type(None))):
        return x
    if type(x).__module__.startswith("kinetree."):
        raise TypeError(f"{type(x).__qualname__} is not among the classes that files can name")
    return str(x)


def revived(data, depth=0):
    """What ``plain`` described; ValueError for what it cannot have written."""
    if depth > _DEEPEST:
        raise ValueError(f"data nested more than {_DEEPEST} deep")
    if isinstance(data, list):
        return tuple(revived(item, depth + 1) for item in data)
    if not isinstance(data, dict):
        return data
    if data.get("") == _ARRAY:
        array = np.array(data["values"])
        if array.dtype.kind not in "biufU":
            raise ValueError("an array of something other than numbers and text")
        return array
    values = {key: revived(value, depth + 1) for key, value in data.items() if key}
    if "" not in data:
        return values
    if data[""] not in _KINDS:
        raise ValueError(f"{str(data[''])[:60]!r} is nothing that a trajectory holds")
    kind = _class(data[""])
    for name, expected in _fields(kind).items():
        if name in values and not _fits(values[name], expected):
            raise ValueError(f"{name} of {kind.__name__} cannot be {str(values[name])[:60]!r}")
    return kind(**values)


@lru_cache
def _class(name) -> Any:
    module, _, inside = _KINDS[name].rpartition(".")
    return getattr(importlib.import_module(module), inside)


def _fields(kind):
    """Names and types of what a class is made of; for named tuples, numbers."""
    if is_dataclass(kind):
        return {f.name: f.type for f in fields(kind) if f.init}
    return dict.fromkeys(kind._fields, float)


def _fits(value, expected):
    """Whether a value is what an annotation says; whole numbers do for numbers.

    Any is for residuals, which are named tuples; a tuple without more has the numbers of a sample.
    """
    if expected is Any:
        return value is None or hasattr(value, "_fields")
    if expected is tuple:
        return isinstance(value, tuple) and all(_fits(x, int) for x in value)
    if isinstance(expected, UnionType):
        return any(_fits(value, one) for one in get_args(expected))
    if get_origin(expected) is tuple:
        return isinstance(value, tuple) and all(_fits(x, get_args(expected)[0]) for x in value)
    if expected in (float, int):
        kinds = (int, float) if expected is float else (int,)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return value is None if expected in (None, type(None)) else isinstance(value, expected)
