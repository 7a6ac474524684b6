"""Joints of a URDF file: kind, axis, limits, dynamics, mimic; the tree that they make of links."""

import math
import sys
from dataclasses import replace
from typing import NamedTuple

from kinetree.joints import AbstractJoint, Fixed, Free, Planar, Prismatic, Revolute
from kinetree.loaders.urdf.elements import axis_in, joint_dynamics, joint_limits, origin_in
from kinetree.loaders.urdf.links import Link
from kinetree.loaders.xml import Node
from kinetree.model import JointDynamics, Limits
from kinetree.model.tree import regular_order
from kinetree.spatial import Plucker
from kinetree.spelling import did_you_mean

JOINT_TYPES = {
    "revolute": Revolute, "continuous": Revolute, "prismatic": Prismatic, "planar": Planar,
    "floating": Free, "fixed": Fixed,
}  # fmt: skip
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
    """Joints of a URDF robot by name, in the order of the file."""
    joints: dict[str, Joint] = {}
    for node in robot.all("joint"):
        name = node.need("name")
        if name in joints:
            first = joints[name].node.line
            raise node.error(f"the name is taken by another joint, on line {first}; rename one")
        joints[name] = _joint(node, name)
    return joints


def _joint(node, name):
    """Joint data by the type and axis of a URDF element."""
    kind = node.need("type")
    if kind not in JOINT_TYPES:
        types = f"URDF has {', '.join(JOINT_TYPES)} (kinetree's own TOML has all of its joints)"
        raise node.error(f"unknown joint type {kind!r}; {did_you_mean(kind, JOINT_TYPES, types)}")
    make = JOINT_TYPES[kind]
    joint = make() if kind in ("floating", "fixed") else make(axis_in(node))
    if kind == "fixed" and node.one("axis") is not None:
        node.report.use(node.need_one("axis").element, "xyz")  # common, and says nothing
    _note_controllers(node)
    limits = _limits(node, kind, joint)
    return Joint(
        name,
        joint,
        node.need_one("parent").need("link"),
        node.need_one("child").need("link"),
        origin_in(node),
        joint_limits(node, joint) or limits,
        _dynamics(node, joint),
        _mimic(node),
        node,
    )


def _limits(node, kind, joint):
    """Limits of a URDF joint, or None if it has none."""
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
    """Lower and upper position bound, or empty."""
    given = [limit.get(key) is not None for key in ("lower", "upper")]
    lower, upper = (_without_bounds(limit.number(k, 0.0, finite=False)) for k in ("lower", "upper"))
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
    """Largest velocity or effort as a tuple, empty for none."""
    if limit.get(key) is None:
        return ()
    value = _without_bounds(limit.number(key, finite=False))
    if value < 0:
        limit.note(f"{key} limit", f"{value:g} is negative: left out")
        return ()
    return (value,)


def _without_bounds(x):
    """Bound, infinite for numbers so large that they mean none."""
    return math.copysign(math.inf, x) if abs(x) >= _UNLIMITED else x


def _dynamics(node, joint):
    """Damping, friction and spring of a joint, or None."""
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
    """Mimic law of a joint with factor and offset, or None."""
    mimic = node.one("mimic")
    if mimic is None:
        return None
    source = mimic.need("joint")
    return Mimic(source, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0), mimic)


def _note_controllers(node):
    """Add notices about controller and calibration elements, which are left out."""
    safety = node.one("safety_controller")
    if safety is not None:
        safety.ignore(f"soft limits of a controller, {_NO_PLACE}")
    calibration = node.one("calibration")
    if calibration is not None:
        calibration.ignore(f"where a sensor finds its zero, {_NO_PLACE}")


# --- The tree of links and joints: one root, no circles, every end known --------------------------


class Tree:
    """The tree of a file.

    Attributes:
        root: name of the root link.
        joints: the joints, each after the one its parent link hangs on.
    """

    def __init__(self, robot: Node, links: dict[str, Link], joints: dict[str, Joint]):
        above: dict[str, Joint] = {}
        for joint in joints.values():
            for end in ("parent", "child"):
                find(getattr(joint, end), links, joint.node.need_one(end), "link")
            if joint.parent == joint.child:
                raise joint.node.error(f"connects link {joint.parent!r} to itself")
            if joint.child in above:
                other = above[joint.child]
                raise joint.node.error(
                    f"link {joint.child!r} is already the child of joint {other.name!r}, on line "
                    f"{other.node.line}; a joint that closes a loop is written as <kinetree:loop>"
                )
            above[joint.child] = joint
        self.root = _root(robot, links, above)
        order = _order(self.root, list(joints.values()))
        if len(order) < len(joints):
            raise _circle(order, joints, above)
        self.joints = order


def _root(robot, links, above):
    """Root link of a robot; LoadError if there are none or several."""
    roots = [link for link in links.values() if link.name not in above]
    if not roots:
        raise robot.error(
            "every link is the child of a joint: there is no root link, the joints form a circle"
        )
    if len(roots) > 1:
        names = ", ".join(f"{r.name!r} (line {r.node.line})" for r in roots[:5])
        more = f" and {len(roots) - 5} more" if len(roots) > 5 else ""
        raise roots[1].node.error(
            f"the robot must have one root link, but these are the child of no joint: {names}"
            f"{more}; connect them, if need be by a joint of type 'floating'"
        )
    return roots[0].name


def _order(root, joints):
    """Joints sorted so that parents come first, otherwise in file order."""
    number = {root: 0} | {joint.child: i for i, joint in enumerate(joints, start=1)}
    order = regular_order([-1, *(number[joint.parent] for joint in joints)])
    return [joints[i - 1] for i in order[1:]]


def _circle(order, joints, above):
    """LoadError for joints in a circle that is not connected to the root."""
    reached = {joint.name for joint in order}
    start = next(joint for joint in joints.values() if joint.name not in reached)
    seen, joint = {}, start
    while joint.name not in seen:
        seen[joint.name] = len(seen)
        joint = above[joint.parent]
    path = [*list(seen)[seen[joint.name] :], joint.name]
    names = " -> ".join(repr(name) for name in reversed(path[-10:]))
    return joint.node.error(f"joints hang on each other in a circle, not on the root: {names}")


def find(name: str, names, node: Node, what: str):
    """Object with a name; LoadError at ``node`` suggests another."""
    if name in names:
        return names[name]
    hint = did_you_mean(name, names, f"the file has {len(names)} of them")
    raise node.error(f"there is no {what} {name!r}; {hint}")


def leaders(joints: dict[str, Joint]) -> dict[str, Mimic]:
    """Independent leader of each mimic joint, with chains multiplied out."""
    mimics: dict[str, Mimic] = {}
    for joint in joints.values():
        if joint.mimic is not None and _can_follow(joint, joint.mimic, joints):
            mimics[joint.name] = joint.mimic
    result: dict[str, Mimic] = {}
    for name in mimics:
        path: dict[str, Mimic] = {}
        while name in mimics and name not in result:
            if name in path:
                raise mimics[name].node.error(f"joint {name!r} mimics itself, in a circle")
            path[name] = mimics[name]
            name = mimics[name].source
        for follower, mimic in reversed(path.items()):
            result[follower] = _after(mimic, result.get(mimic.source))
    return {name: result[name] for name in mimics}


def _after(mimic, leader):
    """Mimic law through a source that itself follows ``leader``, or None."""
    if leader is None:
        return mimic
    k = mimic.multiplier
    return Mimic(leader.source, k * leader.multiplier, mimic.offset + k * leader.offset, mimic.node)


def _can_follow(joint, mimic, joints):
    """Whether a mimic law is valid; a notice or LoadError if not."""
    if joint.joint.nv == 0:
        mimic.node.ignore("a fixed joint follows nothing", effect="setting")
        return False
    if mimic.source not in joints:
        mimic.node.ignore(f"there is no joint {mimic.source!r} to follow")
        return False
    for j in (joint, joints[mimic.source]):
        if j.joint.nv > 1:
            raise mimic.node.error(
                f"joint {j.name!r} has {j.joint.nv} degrees of freedom; only joints with one can "
                f"mimic or be mimicked"
            )
    return True
