"""Elements of MJCF with numbers that read back as they were."""

import math

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError
from kinetree.spatial.rotation import quaternion_from_rotation

__all__ = ["element", "numbers", "pose_attributes", "range_attributes"]


def element(parent, tag, /, **attributes):
    """Append an element; attributes that are None are left out."""
    child = etree.SubElement(parent, tag)
    for name, value in attributes.items():
        if value is not None:
            text = value if isinstance(value, str) else numbers(value)
            try:
                child.set(name, text)
            except ValueError:
                raise InteropError(
                    f"{name} {text!r} has characters that XML cannot hold; choose another name"
                ) from None
    return child


def numbers(values) -> str:
    """Numbers with as many digits as they have."""
    try:
        flat = np.asarray(values, dtype=float).ravel().tolist()
    except (TypeError, ValueError):
        raise InteropError(
            f"MJCF holds numbers, and this model has {values!r}; give its parameters values"
        ) from None
    return " ".join(_number(x) for x in flat)


def _number(x):
    if math.isfinite(x) and x == int(x) and abs(x) < 1e15:
        return str(int(x))
    return repr(x)  # infinity as "inf", which MuJoCo reads


def pose_attributes(X):
    """Position and orientation of the frame that ``X`` transforms to, where they are not zero."""
    E, r = np.asarray(X.E), np.asarray(X.r)
    found = {}
    if np.any(r):
        found["pos"] = numbers(r)
    if not np.array_equal(E, np.eye(3)):
        found["quat"] = numbers(quaternion_from_rotation(np.asarray(E, dtype=float)))
    return found


def range_attributes(name, limits, limited):
    """A range with its switch, or nothing if it is infinite on both sides."""
    if all(math.isinf(x) for x in limits):
        return {}
    return {name: numbers(limits), limited: "true"}
