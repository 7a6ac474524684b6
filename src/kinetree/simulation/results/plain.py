"""Events and reports as plain data for files, and back."""

import importlib
from dataclasses import fields, is_dataclass

import numpy as np

__all__ = ["plain", "revived"]

_ROOT, _OURS, _ARRAY = "kinetree.", "kinetree.simulation.", "array"


def plain(x):
    """Numbers, text, lists and dictionaries; of our own classes, their names and fields."""
    if isinstance(x, np.ndarray):
        return {"": _ARRAY, "values": x.tolist()}
    if isinstance(x, np.generic):
        return x.item()
    names = getattr(x, "_fields", None)  # of a named tuple
    if names is not None and type(x).__module__.startswith(_ROOT):
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        return {"": kind} | {name: plain(getattr(x, name)) for name in names}
    if isinstance(x, (list, tuple)):
        return [plain(item) for item in x]
    if isinstance(x, dict):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, (str, int, float, bool, type(None))):
        return x
    if is_dataclass(x) and type(x).__module__.startswith(_OURS):
        kind = f"{type(x).__module__.removeprefix(_OURS)}.{type(x).__qualname__}"
        return {"": kind} | {f.name: plain(getattr(x, f.name)) for f in fields(x) if f.init}
    return str(x)


def revived(data):
    """What ``plain`` described."""
    if isinstance(data, list):
        return tuple(revived(item) for item in data)
    if not isinstance(data, dict):
        return data
    values = {key: revived(value) for key, value in data.items() if key}
    if "" not in data:
        return values
    if data[""] == _ARRAY:
        return np.array(data["values"])
    module, _, name = data[""].rpartition(".")
    whole = module if module.startswith(_ROOT) else _OURS + module
    kind = getattr(importlib.import_module(whole), name)
    if not (isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))):
        raise ValueError(f"{data['']} is nothing that a trajectory holds")
    return kind(**values)
