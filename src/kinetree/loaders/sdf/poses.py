"""``<pose>``: a position and an orientation, relative to a frame by name."""

import math
from typing import NamedTuple

import numpy as np

from kinetree.loaders.urdf.elements import rotation_of_rpy
from kinetree.loaders.xml import Node
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rotation_from_quaternion

__all__ = ["Pose", "flag_in", "number_in", "pose_in"]


class Pose(NamedTuple):
    """Where something is, relative to a named frame; None for the frame that is usual there."""

    placement: Plucker
    relative_to: str | None


def pose_in(node: Node) -> Pose:
    """The ``<pose>`` inside an element; the usual place without one."""
    pose = node.one("pose")
    if pose is None:
        return Pose(Plucker.identity(), None)
    # Up to version 1.6 the attribute was called 'frame', and often written empty.
    relative_to = pose.get("relative_to") or pose.get("frame") or None
    return Pose(_placement(pose), relative_to)


def _placement(pose):
    format, degrees = pose.get("rotation_format", "euler_rpy"), pose.get("degrees", "false")
    if not pose.text():
        return Plucker.identity()
    if format == "quat_xyzw":
        *position, x, y, z, w = pose.text_numbers(7)
        size = math.hypot(x, y, z, w)
        if abs(size - 1) > 1e-3:
            raise pose.error(f"the quaternion must have unit length, got length {size:.6g}")
        E = rotation_from_quaternion(np.array([w, x, y, z]) / size)
        return Plucker(E, np.array(position))
    if format != "euler_rpy":
        raise pose.error(f"rotation_format must be 'euler_rpy' or 'quat_xyzw', got {format!r}")
    values = pose.text_numbers(6)
    if not any(values):
        return Plucker.identity()
    scale = math.pi / 180 if degrees in ("true", "1") else 1.0
    angles = [scale * x for x in values[3:]]
    if not any(angles):
        return Plucker(Plucker.identity().E, np.array(values[:3]))
    return Plucker(rotation_of_rpy(angles), np.array(values[:3]))


def number_in(node: Node | None, tag: str, default: float, *, finite: bool = True) -> float:
    """The number inside a child element, or the default."""
    child = None if node is None else node.one(tag)
    return default if child is None else child.text_numbers(1, finite=finite)[0]


def flag_in(node: Node, tag: str, default: bool = False) -> bool:
    """True or false inside a child element, or the default."""
    child = node.one(tag)
    if child is None:
        return default
    value = {"true": True, "1": True, "false": False, "0": False}.get(child.text().lower())
    if value is None:
        raise child.error(f"must be true or false, got {child.text()!r}")
    return value
