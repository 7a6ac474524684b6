"""The small elements that many others contain: origins and axes."""

import math

import numpy as np

from kinetree.joints.axis import as_axis
from kinetree.loaders.xml import Node
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rotation_from_quaternion

__all__ = ["axis_in", "origin_in", "rotation_of_rpy"]

_EXACT = 1e-15  # how far the sine and cosine of a right angle, rounded, are from 0


def origin_in(node: Node) -> Plucker:
    """Where the ``<origin>`` inside an element puts it; the same place without one."""
    origin = node.one("origin")
    if origin is None:
        return Plucker.identity()
    r = np.array(origin.numbers("xyz", 3, (0.0, 0.0, 0.0)))
    if origin.get("quat_xyzw") is None:
        return Plucker(rotation_of_rpy(origin.numbers("rpy", 3, (0.0, 0.0, 0.0))), r)
    if origin.get("rpy") is not None:
        raise origin.error("has both 'rpy' and 'quat_xyzw'; leave one out")
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    length = math.hypot(x, y, z, w)
    if abs(length - 1) > 1e-3:
        raise origin.error(f"attribute 'quat_xyzw' must have unit length, got length {length:.6g}")
    return Plucker(rotation_from_quaternion(np.array([w, x, y, z]) / length), r)


def rotation_of_rpy(rpy):
    """Coordinate rotation for roll, pitch and yaw about the fixed axes x, y and z, in this order.

    Right angles give exact zeros, which make lighter code.
    """
    (cr, sr), (cp, sp), (cy, sy) = map(_turn, rpy)
    R = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return R.T


def _turn(angle):
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) < _EXACT:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < _EXACT:
        return math.copysign(1.0, c), 0.0
    return c, s


def axis_in(node: Node):
    """The ``<axis>`` inside an element as a unit vector; x without one, as the standard says."""
    axis = node.one("axis")
    if axis is None:
        return as_axis("x")
    xyz = axis.numbers("xyz", 3)
    if not any(xyz):
        raise axis.error("the axis must not be zero; give a direction such as xyz='0 0 1'")
    return as_axis(xyz)
