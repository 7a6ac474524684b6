"""Numbers, transforms, limits and joints as plain data, and back."""

import math
from dataclasses import fields, is_dataclass

import numpy as np

import kinetree.joints
from kinetree.errors import ModelError
from kinetree.joints import AbstractJoint
from kinetree.model.parts import Limits
from kinetree.spatial import Plucker

__all__ = [
    "bounds", "joint", "known_joints", "limits", "placement", "plain", "read_bounds", "read_joint",
    "read_limits", "read_placement",
]  # fmt: skip


def plain(x, what):
    """Numbers and their containers as Python's own."""
    if isinstance(x, (np.ndarray, np.number)):
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        return [plain(item, what) for item in x]
    if isinstance(x, AbstractJoint):
        return joint(x, what)
    if isinstance(x, Plucker):
        return placement(x, what)
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    raise ModelError(
        f"{what} holds a {type(x).__name__}, which plain data cannot express; only models of "
        f"floats can be written"
    )


def placement(X, what):
    """A transform."""
    what = f"placement of {what!r}"
    return {"E": plain(X.E, what), "r": plain(X.r, what)}


def read_placement(data):
    """Inverse of ``placement``."""
    return Plucker(np.array(data["E"]), np.array(data["r"]))


def bounds(values):
    """Bounds; infinite ones become null, which strict JSON has a word for."""
    return [x if math.isfinite(x) else None for x in values]


def read_bounds(data):
    """Inverse of ``bounds`` for a pair."""
    lower, upper = data
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def limits(given):
    """Limits of a joint."""
    return {f.name: bounds(getattr(given, f.name)) for f in fields(given)}


def read_limits(data):
    """Inverse of ``limits``."""
    free = {"lower": -math.inf}
    return Limits(
        **{
            name: tuple(free.get(name, math.inf) if x is None else x for x in values)
            for name, values in data.items()
        }
    )


def known_joints(more=()):
    """Joint classes by name: kinetree's, those that are registered, and ``more``."""
    return {c.__name__: c for c in (*kinetree.joints.known_joints(), *more)}


def joint(given, name):
    """A joint: its class and parameters."""
    if not is_dataclass(given):
        raise ModelError(
            f"joint {name!r} is a {type(given).__name__}, which is not a dataclass: its "
            f"parameters cannot be listed"
        )
    what = f"joint {name!r}"
    return {"type": type(given).__name__} | {
        f.name: plain(getattr(given, f.name), what) for f in fields(given)
    }


def read_joint(data, known):
    """Inverse of ``joint``."""
    kind = data["type"]
    if kind not in known:
        raise ModelError(
            f"unknown joint type {kind!r}; known: {sorted(known)}. Pass classes of your own as "
            f"Model.from_dict(data, joints=[...])"
        )
    values = {name: _read_value(x, known) for name, x in data.items() if name != "type"}
    result = known[kind](**values)
    for name, value in values.items():
        # The constructor may have normalised an axis once more, which moves its last digit.
        object.__setattr__(result, name, value)
    return result


def _read_value(x, known):
    if isinstance(x, list):
        return tuple(_read_value(item, known) for item in x)
    if isinstance(x, dict):
        return read_joint(x, known) if "type" in x else read_placement(x)
    return x
