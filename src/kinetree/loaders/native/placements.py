"""Where things sit: ``at = [x, y, z]`` and one way to say how they are turned."""

import math

import numpy as np

from kinetree.joints.axis import as_axis
from kinetree.loaders.toml.table import Table
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import euler_rotation, rotation_about, rotation_from_quaternion
from kinetree.spatial.vector3 import identity3

__all__ = ["orientation", "placement", "placement_of"]


def placement(table: Table) -> Plucker | None:
    """The placement that a table describes by its own keys; None if it has none of them."""
    position, E = table.numbers("at", 3, None), orientation(table)
    if position is None and E is None:
        return None
    return Plucker(
        identity3() if E is None else E, np.array((0, 0, 0) if position is None else position)
    )


def placement_of(table: Table, key) -> Plucker | None:
    """The placement under a key: a position, or a table with ``at`` and an orientation."""
    value = table.get(key)
    if not isinstance(value, dict):
        position = table.numbers(key, 3, None)
        return None if position is None else Plucker(identity3(), np.array(position))
    inner = table.inner(value, key)
    X = placement(inner)
    inner.finish()
    return X


def orientation(table: Table):
    """``E`` from roll, pitch and yaw, a quaternion, axis and angle, or the matrix; or None."""
    key = table.choice("rpy", "quaternion", "axis_angle", "rotation")
    if key is None:
        return None
    if key == "rotation":  # exactly as given; the model checks that it is a rotation
        return np.array(table.matrix(key)).T
    if key == "rpy":
        # Turns about fixed x, y, z are turns about moving z, y, x.
        E = euler_rotation("zyx", table.numbers(key, 3)[::-1])
    elif key == "quaternion":
        p = np.array(table.numbers(key, 4), dtype=float)
        size = float(np.max(np.abs(p)))
        if size == 0:
            raise table.error("quaternion must not be zero", key)
        p = p / size
        E = rotation_from_quaternion(p / np.linalg.norm(p))
    else:
        axis, angle = _axis_and_angle(table, key)
        E = rotation_about(axis, math.cos(angle), math.sin(angle))
    return _without_dust(E)


def _axis_and_angle(table, key):
    value = table.get(key)
    if not isinstance(value, list) or len(value) != 2:
        raise table.error(f"{key} must be [axis, angle], such as ['z', '30 deg'], got {value}", key)
    axis = value[0] if isinstance(value[0], str) else table.as_numbers(value[0], key, 3)
    return table.attempt(as_axis, axis, "axis", key=key), table.as_number(value[1], key)


def _without_dust(E):
    """Zeros and ones of turns by a quarter, which floats miss by 1e-16, and which save work."""
    E = np.asarray(E, dtype=float)
    E = np.where(np.abs(E) < 4e-16, 0.0, E)
    return np.where(np.abs(np.abs(E) - 1) < 4e-16, np.sign(E), E)
