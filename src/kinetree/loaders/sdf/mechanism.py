"""From a resolved description to a mechanism: joints of kinetree, couplings, what flies."""

import math
from typing import NamedTuple

import numpy as np

from kinetree.errors import JointError
from kinetree.joints import (
    AbstractJoint,
    Fixed,
    Helical,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from kinetree.joints.axis import as_axis
from kinetree.loaders.sdf.description import Description
from kinetree.loaders.sdf.frames import WORLD
from kinetree.loaders.sdf.joints import Axis, Joint
from kinetree.loaders.xml import Node
from kinetree.model import JointDynamics, Limits
from kinetree.spatial import Plucker
from kinetree.spatial.vector3 import ZERO3

__all__ = ["Arc", "arcs_of"]


class Arc(NamedTuple):
    """A joint between two links, either of which may be the world."""

    name: str
    joint: AbstractJoint
    predecessor: str
    successor: str
    X_P: Plucker
    X_S: Plucker
    limits: Limits | None
    dynamics: JointDynamics | None
    node: Node


def arcs_of(description: Description) -> list[Arc]:
    """The joints of a file; gearboxes are not among them, as they connect no bodies."""
    return [
        arc
        for joint in description.joints
        if joint.type != "gearbox"
        for arc in _arcs(description, joint)
    ]


def _arcs(description, joint: Joint):
    frames, node = description.frames, joint.node
    p, s = (_link(description, joint, name) for name in (joint.parent, joint.child))
    if p == s:
        raise node.error(f"connects {p!r} to itself")
    X_P, X_S = (frames.between(end, joint.frame) for end in (p, s))
    axes = [axis_in_joint(description, joint, axis) for axis in joint.axes]
    if joint.type in ("universal", "revolute2"):
        return _two_axes(joint, p, s, X_P, X_S, axes)
    try:
        kind = _one_joint(joint, axes)
    except JointError as error:
        raise node.error(str(error)) from None
    limits, dynamics = _limits(joint.axes), _dynamics(joint.axes)
    return [Arc(joint.key, kind, p, s, X_P, X_S, limits, dynamics, node)]


def _link(description, joint, name):
    """The link that a joint means by a name, which may be that of any frame."""
    frames = description.frames
    if name == WORLD:
        return WORLD
    key = frames.find(joint.scope, name, joint.node, "link or frame")
    return frames.link_of(key, joint.node)


def _one_joint(joint, axes):
    match joint.type:
        case "revolute" | "continuous":
            return Revolute(axes[0])
        case "prismatic":
            return Prismatic(axes[0])
        case "screw":
            return Helical(axes[0], pitch=joint.pitch)
        case "ball":
            return Spherical()
        case _:
            if joint.node.one("axis") is not None:
                joint.node.report.use_all(joint.node.need_one("axis").element)  # says nothing
            return Fixed()


def axis_in_joint(description, joint: Joint, axis: Axis):
    """The direction of an axis in the frame of its joint, as a unit vector."""
    direction = np.array(axis.direction)
    if axis.expressed_in is not None:
        frames = description.frames
        key = frames.find(joint.scope, axis.expressed_in, axis.node or joint.node)
        direction = frames.between(key, joint.frame).E @ direction
        direction[np.abs(direction) < 1e-15 * np.max(np.abs(direction))] = 0.0
    return as_axis(direction)


def _two_axes(joint, p, s, X_P, X_S, axes):
    """One universal joint where the axes are perpendicular; otherwise two with a link between."""
    a, b = (np.array(axis, dtype=float) for axis in axes)
    along = float(a @ b)
    if abs(along) < 1e-9:
        b = b - along * a
        b /= np.linalg.norm(b)
        turn = Plucker(np.array([a, b, np.cross(a, b)]), ZERO3)
        limits, dynamics = _limits(joint.axes), _dynamics(joint.axes)
        X_P, X_S = turn @ X_P, turn @ X_S
        return [Arc(joint.key, Universal("xy"), p, s, X_P, X_S, limits, dynamics, joint.node)]
    if abs(along) > 1 - 1e-9:
        raise joint.node.error("axis and axis2 are parallel")
    middle, one = f"{joint.key}_between", Plucker.identity()

    def arc(name, k, p, s, X_P, X_S):
        given = joint.axes[k : k + 1]
        limits, dynamics = _limits(given), _dynamics(given)
        return Arc(name, Revolute(axes[k]), p, s, X_P, X_S, limits, dynamics, joint.node)

    return [
        arc(joint.key, 0, p, middle, X_P, one),
        arc(f"{joint.key}_axis2", 1, middle, s, one, X_S),
    ]


def _limits(axes):
    bounds = {
        name: tuple(getattr(axis, name) for axis in axes)
        for name in ("lower", "upper", "velocity", "effort")
    }
    bounds = {name: x for name, x in bounds.items() if not all(map(math.isinf, x))}
    return Limits(**bounds) if bounds else None


def _dynamics(axes):
    values = {
        name: tuple(getattr(axis, name) for axis in axes)
        for name in ("damping", "friction", "stiffness")
    }
    values = {name: x for name, x in values.items() if any(x)}
    if not values:
        return None
    rest = tuple(axis.rest for axis in axes)
    return JointDynamics(**values, rest=rest if "stiffness" in values and any(rest) else ())
