"""Joints of a URDF file: those of the tree, and those that close loops."""

import math
import re
from dataclasses import fields

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError
from kinetree.joints import Fixed, Free, Planar, Prismatic, Reversed, Revolute
from kinetree.writers.urdf.elements import add, add_origin, own

__all__ = ["add_dynamics", "add_fixed", "add_joint", "add_limits", "add_loop"]

_TYPES = {Revolute: "revolute", Prismatic: "prismatic", Planar: "planar", Free: "floating",
          Fixed: "fixed"}  # fmt: skip
_IN_TOML = "save it as kinetree's TOML (.toml), which has every joint"


def add_joint(robot, body, parent: str):
    """The joint that carries a body."""
    joint = _forward(body.joint)
    kind = _TYPES.get(type(joint))
    if kind is None or getattr(joint, "translation", "parent") != "parent":
        raise InteropError(
            f"joint {body.joint_name!r} is {body.joint!r}, which URDF cannot express; it has "
            f"revolute, continuous, prismatic, planar, floating and fixed joints; {_IN_TOML}"
        )
    if kind == "revolute" and not _is_bounded(body.limits):
        kind = "continuous"
    element = _joint(robot, body.joint_name, kind, parent, body.name, body.placement)
    if hasattr(joint, "axis"):
        add(element, "axis", xyz=joint.axis)  # type: ignore[union-attr]
    return element


def add_fixed(robot, name, parent, child, placement):
    """A fixed joint, which makes a frame of its child."""
    element = _joint(robot, name, "fixed", parent, child, placement)
    if name != child:
        etree.SubElement(element, own("frame"))  # or the name would come back as another frame


def _joint(robot, name, kind, parent, child, placement):
    element = add(robot, "joint", name=name, type=kind)
    add_origin(element, placement)
    add(element, "parent", link=parent)
    add(element, "child", link=child)
    return element


def _forward(joint):
    """A reversed turn or slide as one about the opposite axis, which is the same motion."""
    if isinstance(joint, Reversed) and isinstance(joint.joint, (Revolute, Prismatic)):
        return type(joint.joint)(tuple(-np.array(joint.joint.axis)))
    return joint


def _is_bounded(limits):
    return limits is not None and any(map(math.isfinite, (*limits.lower, *limits.upper)))


def add_limits(element, body):
    """The limits of a joint; URDF demands all four numbers of a joint that can have them."""
    limits, joint = body.limits, body.joint
    if joint.nv != 1:
        _add_own(element, "limits", limits)
        return
    kind = element.get("type")
    if limits is None and kind == "continuous":
        return
    values = {} if limits is None else {f.name: getattr(limits, f.name) for f in fields(limits)}
    default = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
    if kind == "continuous":
        default = {key: default[key] for key in ("velocity", "effort")}
    add(element, "limit", **{key: values.get(key) or x for key, x in default.items()})


def _add_own(element, name, part):
    """Limits or dynamics as an element of our own."""
    if part is not None:
        given = {f.name: getattr(part, f.name) for f in fields(part)}
        add(element, own(name), **{key: _written(x) for key, x in given.items() if x})


def _written(values):
    """Numbers as text, infinite ones by their name, which our own elements understand."""
    return " ".join(repr(float(x)) for x in values)


def add_dynamics(element, body):
    """Damping and friction, and what only we have: armature and spring."""
    dynamics = body.dynamics
    if dynamics is None:
        return
    values = {f.name: getattr(dynamics, f.name) for f in fields(dynamics)}
    values = {name: given for name, given in values.items() if given}
    if body.joint.nv == 1:
        plain = {k: values.pop(k) for k in ("damping", "friction") if k in values}
        if plain:
            add(element, "dynamics", **plain)
    if values:
        add(element, own("dynamics"), **values)


def add_loop(robot, loop, names):
    """A ``<kinetree:loop>``."""
    turned = isinstance(loop.joint, Reversed)
    joint = loop.joint.joint if turned else loop.joint
    element = add(robot, own("loop"), name=loop.name, type=_snake(type(joint).__name__))
    if turned:
        element.set("reversed", "true")
    if loop.misalignment is not None:
        element.set("misalignment", _written([loop.misalignment]))
    for end in ("predecessor", "successor"):
        part = etree.SubElement(element, end)
        part.set("link", names[getattr(loop, end)])
        add_origin(part, getattr(loop, f"{end}_placement"))
    _add_own(element, "limits", loop.limits)
    _add_own(element, "dynamics", loop.dynamics)
    for field in fields(joint):
        value = getattr(joint, field.name)
        if field.name == "axis":
            add(element, "axis", xyz=value)
        elif isinstance(value, (str, float, int, tuple)):
            element.set(field.name, value if isinstance(value, str) else _written(np.ravel(value)))
        else:
            raise InteropError(
                f"loop joint {loop.name!r} is a {type(joint).__name__}, which is made of code and "
                f"cannot be written to a file"
            )


def _snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
