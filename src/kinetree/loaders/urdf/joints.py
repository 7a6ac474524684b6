"""Joints of a URDF file: kind, axis, limits, dynamics, mimic."""

import math
import sys
from dataclasses import replace
from typing import NamedTuple

from kinetree.joints import AbstractJoint, Fixed, Free, Planar, Prismatic, Revolute
from kinetree.loaders.urdf.elements import axis_in, joint_dynamics, joint_limits, origin_in
from kinetree.loaders.xml import Node
from kinetree.model import JointDynamics, Limits
from kinetree.spatial import Plucker
from kinetree.spelling import did_you_mean

JOINT_TYPES = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "planar": Planar,
    "floating": Free,
    "fixed": Fixed,
}
_UNLIMITED = sys.float_info.max  # how files that cannot write infinity say it
_NO_PLACE = "not part of a model"


class Mimic(NamedTuple):
    """``q = offset + multiplier q_source``."""

    source: str
    multiplier: float
    offset: float
    node: Node


class Joint(NamedTuple):
    """A joint of the file."""

    name: str
    joint: AbstractJoint
    parent: str
    child: str
    placement: Plucker
    limits: Limits | None
    dynamics: JointDynamics | None
    mimic: Mimic | None
    node: Node


def read_joints(robot: Node) -> dict[str, Joint]:
    """All joints by name, in the order of the file."""
    joints: dict[str, Joint] = {}
    for node in robot.all("joint"):
        name = node.need("name")
        if name in joints:
            first = joints[name].node.line
            raise node.error(f"the name is taken by another joint, on line {first}; rename one")
        joints[name] = _joint(node, name)
    return joints


def _joint(node, name):
    kind = node.need("type")
    if kind not in JOINT_TYPES:
        types = f"URDF has {', '.join(JOINT_TYPES)} (kinetree's own TOML has all of its joints)"
        raise node.error(f"unknown joint type {kind!r}; {did_you_mean(kind, JOINT_TYPES, types)}")
    make = JOINT_TYPES[kind]
    joint = make() if kind in ("floating", "fixed") else make(axis_in(node))
    if kind == "fixed" and node.one("axis") is not None:
        node.report.use(node.need_one("axis").element, "xyz")  # common, and says nothing
    _note_controllers(node)
    return Joint(
        name,
        joint,
        node.need_one("parent").need("link"),
        node.need_one("child").need("link"),
        origin_in(node),
        joint_limits(node, joint) or _limits(node, kind, joint),
        _dynamics(node, joint),
        _mimic(node),
        node,
    )


def _limits(node, kind, joint):
    limit = node.one("limit")
    if limit is None:
        if kind in ("revolute", "prismatic"):
            node.note(
                f"joint {node.get('name')!r}", f"a {kind} joint needs <limit>; it is unlimited"
            )
        return None
    if joint.nv != 1:
        keys = ("lower", "upper", "velocity", "effort")
        given = [limit.number(key, 0.0, finite=False) for key in keys]
        if any(given):
            effect = "motion" if joint.nv else "setting"
            what = f"limits of joint {node.get('name')!r}"
            limit.note(what, f"a {kind} joint has none in URDF", effect)
        return None
    bounds = _bounds(limit, kind)
    return Limits(*bounds, _largest(limit, "velocity"), _largest(limit, "effort"))


def _bounds(limit, kind):
    """Lower and upper bound, or nothing."""
    given = [limit.get(key) is not None for key in ("lower", "upper")]
    lower, upper = (_unbounded(limit.number(k, 0.0, finite=False)) for k in ("lower", "upper"))
    if kind == "continuous":
        if any(given) and (lower, upper) != (0.0, 0.0):
            limit.note("lower and upper limit", "a continuous joint has none")
        return (), ()
    if not any(given):
        limit.note("lower and upper limit", f"a {kind} joint needs them; it is unlimited")
        return (), ()
    if lower > upper:
        limit.note(
            "lower and upper limit", f"{lower:g} is above {upper:g}: the joint is left unlimited"
        )
        return (), ()
    return (lower,), (upper,)


def _largest(limit, key):
    if limit.get(key) is None:
        return ()
    value = _unbounded(limit.number(key, finite=False))
    if value < 0:
        limit.note(f"{key} limit", f"{value:g} is negative: left out")
        return ()
    return (value,)


def _unbounded(x):
    return math.copysign(math.inf, x) if abs(x) >= _UNLIMITED else x


def _dynamics(node, joint):
    dynamics, own = node.one("dynamics"), joint_dynamics(node, joint)
    if dynamics is None:
        return own
    values = {key: dynamics.number(key, 0.0) for key in ("damping", "friction")}
    if joint.nv != 1:
        if any(values.values()):
            why = "it has a meaning for joints with one variable alone"
            dynamics.note("<dynamics>", why, "motion" if joint.nv else "setting")
        return own
    for key, value in values.items():
        if value < 0:
            what = f"{key} of joint {node.get('name')!r}"
            dynamics.note(what, f"negative, kept as it is: {value:g}")
    if own is None:
        return JointDynamics(**values) if any(values.values()) else None
    return replace(own, **values)


def _mimic(node):
    mimic = node.one("mimic")
    if mimic is None:
        return None
    source = mimic.need("joint")
    return Mimic(source, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic)


def _note_controllers(node):
    safety = node.one("safety_controller")
    if safety is not None:
        for key in ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"):
            safety.number(key, 0.0)
        safety.ignored(f"soft limits of a controller, {_NO_PLACE}")
    calibration = node.one("calibration")
    if calibration is not None:
        for key in ("rising", "falling", "reference_position"):
            calibration.number(key, 0.0)
        calibration.ignored(f"where a sensor finds its zero, {_NO_PLACE}")
