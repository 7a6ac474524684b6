"""Elements that others contain: origins, axes, and ``kinetree:`` extensions."""

import math
from dataclasses import fields
from typing import NamedTuple

import numpy as np

import kinetree.joints
from kinetree.errors import JointError
from kinetree.joints import AbstractJoint
from kinetree.joints.axis import as_axis
from kinetree.loaders.xml import Node
from kinetree.model import JointDynamics, Limits
from kinetree.spatial import Plucker
from kinetree.spatial.rotation import rotation_from_quaternion

_EXACT = 1e-15  # how far the sine and cosine of a right angle, rounded, are from 0


def origin_in(node: Node) -> Plucker:
    """Placement by the ``<origin>`` of a URDF element; the identity by default."""
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
    """Coordinate rotation for roll, pitch and yaw about the fixed axes x, y, z.

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
    """Cosine and sine of an angle, exact at multiples of 90°."""
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) < _EXACT:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < _EXACT:
        return math.copysign(1.0, c), 0.0
    return c, s


def axis_in(node: Node):
    """Unit vector of an element's ``<axis>``; x by default."""
    axis = node.one("axis")
    if axis is None:
        return as_axis("x")
    xyz = axis.numbers("xyz", 3)
    if not any(xyz):
        raise axis.error("the axis must not be zero; give a direction such as xyz='0 0 1'")
    return as_axis(xyz)


# --- ``kinetree:`` elements ----------------------------------------------------------------------
# Other programs skip them. See docs/loading.md for their meaning.

_BY_CODE = ("CustomJoint", "Prescribed", "PrescribedInstant", "Reversed")
_WORDS = ("axes", "sequence", "translation")
_COUNTS = {"pitch": 1, "radius": 1, "twist": 6}

LOOP_JOINTS: dict[str, type[AbstractJoint]] = {
    kind.spelling: kind for kind in kinetree.joints.KINDS if kind.__name__ not in _BY_CODE
}
LOOP_JOINTS |= {"continuous": LOOP_JOINTS["revolute"], "floating": LOOP_JOINTS["free"]}


class LoopEnd(NamedTuple):
    """A place on a link."""

    link: str
    placement: Plucker
    node: Node


def loop_ends(node: Node) -> tuple[LoopEnd, LoopEnd]:
    """Predecessor and successor links of a ``<kinetree:loop>``."""
    ends = (node.need_one(tag) for tag in ("predecessor", "successor"))
    first, second = (LoopEnd(end.need("link"), origin_in(end), end) for end in ends)
    return first, second


def loop_joint(node: Node) -> AbstractJoint:
    """Joint of a ``<kinetree:loop>``, of any kind that text can describe."""
    kind = node.get("type", "fixed") or "fixed"
    if kind not in LOOP_JOINTS:
        raise node.error(f"unknown joint type {kind!r}; known: {', '.join(sorted(LOOP_JOINTS))}")
    values = {}
    for field in fields(LOOP_JOINTS[kind]):  # type: ignore[arg-type]
        if field.name == "axis":
            values["axis"] = axis_in(node)
        elif field.name in _WORDS:
            if node.get(field.name) is not None:
                values[field.name] = node.get(field.name)
        else:
            numbers = node.numbers(field.name, _COUNTS[field.name])
            values[field.name] = numbers[0] if len(numbers) == 1 else numbers
    try:
        joint = LOOP_JOINTS[kind](**values)
    except JointError as error:
        raise node.error(str(error)) from None
    turned = node.get("reversed", "false")
    if turned not in ("true", "false"):
        raise node.error(f"attribute 'reversed' must be 'true' or 'false', got {turned!r}")
    return kinetree.joints.Reversed(joint) if turned == "true" else joint


def joint_dynamics(node: Node, joint: AbstractJoint) -> JointDynamics | None:
    """Joint dynamics of a URDF joint's ``<kinetree:dynamics>``."""
    own = node.one("kinetree:dynamics")
    if own is None:
        return None
    counts = dict.fromkeys(("armature", "damping", "friction", "stiffness"), joint.nv)
    size = 6 * joint.nv
    sizes = {"active_predecessor": size, "active_successor": size, "rest": joint.nq}
    values = {key: own.numbers(key, n, ()) for key, n in (counts | sizes).items()}
    for key in counts:
        if min(values[key], default=0.0) < 0:
            what = f"{key} of joint {node.get('name')!r}"
            own.note(what, f"negative, kept as it is: {min(values[key]):g}")
    return JointDynamics(**values)


def joint_limits(node: Node, joint: AbstractJoint) -> Limits | None:
    """Joint limits of a URDF joint's ``<kinetree:limits>``."""
    own = node.one("kinetree:limits")
    if own is None:
        return None
    counts = {f.name: joint.nv for f in fields(Limits)} | {"lower": joint.nq, "upper": joint.nq}
    return Limits(**{key: own.numbers(key, n, (), finite=False) for key, n in counts.items()})
