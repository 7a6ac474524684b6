"""``kinetree:`` elements, for what a model has and URDF does not.

Other programs skip them. See docs/loading.md for their meaning.
"""

import re
from dataclasses import fields
from typing import NamedTuple

import kinetree.joints
from kinetree.errors import JointError
from kinetree.joints import AbstractJoint
from kinetree.loaders.urdf.elements import axis_in, origin_in
from kinetree.loaders.xml import Node
from kinetree.model import JointDynamics, Limits
from kinetree.spatial import Plucker

__all__ = ["LOOP_JOINTS", "LoopEnd", "joint_dynamics", "joint_limits", "loop_ends", "loop_joint"]

_BY_CODE = ("CustomJoint", "Prescribed", "PrescribedInstant", "Reversed")
_WORDS = ("axes", "sequence", "translation")
_COUNTS = {"pitch": 1, "radius": 1, "twist": 6}


def _snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


LOOP_JOINTS: dict[str, type[AbstractJoint]] = {
    _snake(name): getattr(kinetree.joints, name)
    for name in kinetree.joints.__all__
    if name not in (*_BY_CODE, "AbstractJoint") and isinstance(getattr(kinetree.joints, name), type)
}
LOOP_JOINTS |= {"continuous": LOOP_JOINTS["revolute"], "floating": LOOP_JOINTS["free"]}


class LoopEnd(NamedTuple):
    """A place on a link."""

    link: str
    placement: Plucker
    node: Node


def loop_ends(node: Node) -> tuple[LoopEnd, LoopEnd]:
    """Predecessor and successor of a ``<kinetree:loop>``."""
    ends = (node.need_one(tag) for tag in ("predecessor", "successor"))
    first, second = (LoopEnd(end.need("link"), origin_in(end), end) for end in ends)
    return first, second


def loop_joint(node: Node) -> AbstractJoint:
    """The joint of a ``<kinetree:loop>``: any kind but those that are made of code."""
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
    """The ``<kinetree:dynamics>`` of a joint."""
    own = node.one("kinetree:dynamics")
    if own is None:
        return None
    counts = dict.fromkeys(("armature", "damping", "friction", "stiffness"), joint.nv)
    values = {key: own.numbers(key, n, ()) for key, n in {**counts, "rest": joint.nq}.items()}
    for key in counts:
        if min(values[key], default=0.0) < 0:
            what = f"{key} of joint {node.get('name')!r}"
            own.note(what, f"negative, kept as it is: {min(values[key]):g}")
    return JointDynamics(**values)


def joint_limits(node: Node, joint: AbstractJoint) -> Limits | None:
    """The ``<kinetree:limits>`` of a joint with several variables."""
    own = node.one("kinetree:limits")
    if own is None:
        return None
    counts = {"lower": joint.nq, "upper": joint.nq, "velocity": joint.nv, "effort": joint.nv}
    return Limits(**{key: own.numbers(key, n, (), finite=False) for key, n in counts.items()})
