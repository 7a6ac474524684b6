"""Joints of an SDF file: type, ends, axes with limits and dynamics."""

import math
from typing import NamedTuple

from kinetree.loaders.sdf.frames import Scope, flag_in, number_in
from kinetree.loaders.xml import Node

# How many axes each type has.
TYPES = {
    "revolute": 1, "continuous": 1, "prismatic": 1, "screw": 1, "gearbox": 2, "universal": 2,
    "revolute2": 2, "fixed": 0, "ball": 0,
}  # fmt: skip
_UNLIMITED = 1e16  # how the standard says infinity


class Mimic(NamedTuple):
    """``q = multiplier (q_source - reference) + offset``."""

    source: str
    multiplier: float
    offset: float
    node: Node


class Axis(NamedTuple):
    """An axis of a joint; ``expressed_in`` names a frame, None for that of the joint."""

    direction: tuple
    expressed_in: str | None
    lower: float
    upper: float
    velocity: float
    effort: float
    damping: float
    friction: float
    stiffness: float
    rest: float
    mimic: Mimic | None
    node: Node | None


class Joint(NamedTuple):
    """A joint of the file. ``pitch`` is in metres per radian."""

    key: str
    frame: str
    type: str
    parent: str
    child: str
    axes: list[Axis]
    pitch: float
    ratio: float
    reference: str | None
    scope: Scope
    node: Node


def read_joint(node: Node, key: str, frame: str, scope: Scope) -> Joint:
    """Joint data of a ``<joint>`` element."""
    given = node.need("type")
    kind = given.lower()
    if kind not in TYPES:
        raise node.error(f"unknown joint type {given!r}; SDF has {', '.join(TYPES)}")
    if kind != given:
        node.note(f"joint type {given!r}", f"read as {kind!r}, as sdformat does", "setting")
    parent, child = (_end(node.need_one(tag)) for tag in ("parent", "child"))
    axes = [_axis(node.one(tag), kind) for tag in ("axis", "axis2")[: TYPES[kind]]]
    for unused in [n for tag in ("axis", "axis2")[TYPES[kind] :] for n in node.all(tag)]:
        unused.ignore(f"a {kind} joint has no such axis", effect="setting")
    reference = node.one("gearbox_reference_body")
    if kind == "gearbox" and reference is None:
        raise node.error("a gearbox needs <gearbox_reference_body>")
    return Joint(
        key,
        frame,
        kind,
        parent,
        child,
        axes,
        _pitch(node) if kind == "screw" else 0.0,
        number_in(node, "gearbox_ratio", 1.0) if kind == "gearbox" else 1.0,
        None if reference is None else reference.text(),
        scope,
        node,
    )


def _end(node):
    """Name of the link or frame at an end of a joint."""
    name = node.text()
    if not name:
        raise node.error("must name a link or a frame")
    return name


def _pitch(node):
    """Pitch of a screw joint [m/rad], from m/turn or the old unit."""
    per_turn, old = node.one("screw_thread_pitch"), node.one("thread_pitch")
    if per_turn is None and old is not None:
        value = old.text_numbers(1)[0]
        if value == 0:
            raise old.error("thread_pitch must not be zero")
        return -1.0 / value
    return (1.0 if per_turn is None else per_turn.text_numbers(1)[0]) / (2 * math.pi)


def _direction(xyz):
    """First three numbers of an axis text, as sdformat reads it."""
    values = xyz.text_numbers(None if len(xyz.text().split()) > 3 else 3)
    if len(values) > 3:
        xyz.note("<xyz>", f"it has {len(values)} numbers: the first three count")
    return values[:3]


def _axis(node, kind):
    """Axis of a joint with its limits and dynamics."""
    if node is None:
        free = (-math.inf, math.inf, math.inf, math.inf)
        return Axis((0.0, 0.0, 1.0), None, *free, 0.0, 0.0, 0.0, 0.0, None, None)
    xyz, limit, dynamics = node.one("xyz"), node.one("limit"), node.one("dynamics")
    direction = (0.0, 0.0, 1.0) if xyz is None else _direction(xyz)
    if not any(direction):
        raise (xyz or node).error("the axis must not be zero")
    expressed_in = None if xyz is None else xyz.get("expressed_in")
    if flag_in(node, "use_parent_model_frame"):  # up to version 1.6
        expressed_in = "__model__"
    lower, upper = (
        _limit(number_in(limit, tag, default, finite=False))
        for tag, default in (("lower", -math.inf), ("upper", math.inf))
    )
    if kind == "continuous":
        lower, upper = -math.inf, math.inf
    elif lower > upper:
        node.note(
            "lower and upper limit", f"{lower:g} is above {upper:g}: the joint is left unlimited"
        )
        lower, upper = -math.inf, math.inf
    velocity, effort = (
        _largest(number_in(limit, tag, -1.0, finite=False)) for tag in ("velocity", "effort")
    )
    damping, friction, stiffness, rest = (
        number_in(dynamics, tag, 0.0)
        for tag in ("damping", "friction", "spring_stiffness", "spring_reference")
    )
    return Axis(
        direction,
        expressed_in or None,
        lower,
        upper,
        velocity,
        effort,
        damping,
        friction,
        stiffness,
        rest,
        _mimic(node),
        node,
    )


def _limit(x):
    """Joint limit, infinite for magnitudes that SDF treats as unlimited."""
    return math.copysign(math.inf, x) if abs(x) >= _UNLIMITED else x


def _largest(x):
    """Velocity or effort limit as a tuple; empty for a negative number, which means none."""
    return math.inf if x < 0 or x >= _UNLIMITED else x


def _mimic(axis):
    """Mimic law of a joint's axis, or None."""
    mimic = axis.one("mimic")
    if mimic is None:
        return None
    factor, offset, reference = (
        number_in(mimic, tag, default)
        for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
    )
    which = mimic.get("axis", "axis")
    if which != "axis":
        raise mimic.error(f"only the first axis of a joint can be followed, got {which!r}")
    return Mimic(mimic.need("joint"), factor, offset - factor * reference, mimic)
