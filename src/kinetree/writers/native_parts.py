"""Placements, inertias and joints of the native format, as the values of keys."""

import math
from dataclasses import fields

import numpy as np

from kinetree import joints
from kinetree.errors import ModelError
from kinetree.joints.axis import index_of
from kinetree.spatial import Inertia
from kinetree.spatial.rotation import euler_angles, euler_rotation
from kinetree.spatial.vector3 import symmetric

_IDENTITY = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def placement_keys(X) -> dict:
    """``at`` and an orientation, as far as they are not zero."""
    keys = {}
    if np.any(X.r != 0):
        keys["at"] = X.r
    if X.E.tolist() != _IDENTITY:
        rpy = _rpy(X.E)
        keys |= {"rotation": X.E.T} if rpy is None else {"rpy": rpy}
    return keys


def _rpy(E):
    """Roll, pitch and yaw that say exactly the same as ``E``, or None."""
    if E.dtype.kind not in "if":
        return None
    angles = euler_angles("zyx", E)[::-1]
    quarters = np.round(angles / (math.pi / 2))
    size = np.abs(E)
    if np.all((size == 0) | (size == 1)):  # the reader takes quarter turns for what they are
        return [f"{round(90 * k)} deg" if k else 0 for k in quarters]
    if np.any((size != 0) & (size < 1e-15)) or np.any((size != 1) & (abs(size - 1) < 1e-15)):
        return None
    for digits in (6, 9, 12, 17):
        rounded = [float(f"{angle:.{digits}g}") for angle in angles]
        if np.array_equal(euler_rotation("zyx", rounded[::-1]), E):
            return [angle if angle else 0 for angle in rounded]
    return None


def inertia_table(inertia) -> dict | None:
    """Mass, mass centre and moments about it, if they say exactly the same; None for no mass."""
    m, h, I = inertia.mass, inertia.first_moment, inertia.rotational
    if m == 0 and not np.any(h != 0) and not np.any(I != 0):
        return None
    return _about_center(inertia) or {"mass": m, "first_moment": h, "rotational": I}


def _about_center(inertia):
    m, h, I = inertia.mass, inertia.first_moment, inertia.rotational
    if not isinstance(m, (int, float)) or not m > 0 or np.any(I != I.T):
        return None
    center = np.array([_such_that(lambda c: m * c, x, x / m) for x in h])
    shift = -(Inertia.from_mass_center(m, center, np.zeros((3, 3))).rotational)
    at_center = np.array(
        [[_such_that(lambda x, s=s: x - s, y, y + s) for y, s in zip(*rows, strict=True)]
         for rows in zip(I, shift, strict=True)]
    )  # fmt: skip
    again = Inertia.from_mass_center(m, center, symmetric(*at_center[np.tril_indices(3)]))
    if not (np.array_equal(again.first_moment, h) and np.array_equal(again.rotational, I)):
        return None
    table: dict = {"mass": m}
    if np.any(center):
        table["center"] = center
    if np.any(at_center):
        table["moments"] = np.diagonal(at_center)
        if np.any(at_center != np.diag(np.diagonal(at_center))):
            table["products"] = at_center[[0, 0, 1], [1, 2, 2]]
    return table


def _such_that(f, target, guess):
    """The number next to ``guess`` that ``f`` takes exactly to ``target``, if there is one."""
    near = [guess]
    for _ in range(3):
        near += [
            np.nextafter(near[-1], math.inf),
            np.nextafter(near[-2 if len(near) > 1 else 0], -math.inf),
        ]
    return next((float(x) for x in near if f(x) == target), float(guess))


def joint_table(joint, name, joint_name=None) -> dict:
    """A joint with its parameters, and its name if that is not the usual one."""
    if type(joint) not in joints.known_joints():
        raise ModelError(
            f"joint {name!r} is a {type(joint).__name__}, which the native format does not have; "
            f"kinetree.joints.register makes a dataclass known to it, and a CustomJoint whose "
            f"placement came from a file can be written"
        )
    table: dict = {"type": joint.spelling}
    if joint_name is not None:
        table["name"] = joint_name
    for field in fields(joint):
        given = getattr(joint, field.name)
        if callable(given):
            table |= _formula(given, name)
        elif isinstance(given, joints.AbstractJoint):
            table[field.name] = joint_table(given, name)
        elif field.name == "axis":
            table["axis"] = _axis(given)
        elif field.name != "freedoms":  # which a custom joint knows from its formulas
            table[field.name] = given
    return table


def _axis(axis):
    aligned = index_of(axis)
    if aligned is None or abs(aligned[1]) != 1:
        return axis
    return ("" if aligned[1] > 0 else "-") + "xyz"[aligned[0]]


def _formula(function, name):
    if not hasattr(function, "to_table"):
        raise ModelError(
            f"joint {name!r} moves by a Python function, {function!r}, which no file can hold; "
            f"write it as a formula in a TOML file and load that"
        )
    return function.to_table()
