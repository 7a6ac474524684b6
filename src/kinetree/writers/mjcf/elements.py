"""Elements of MJCF with numbers that read back as they were."""

import math
from typing import NamedTuple

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree import joints
from kinetree.errors import InteropError
from kinetree.joints.axis import completed_basis
from kinetree.spatial.rotation import quaternion_from_rotation


def element(parent, tag, /, **attributes):
    """Append an XML element; attributes that are None are left out."""
    child = etree.SubElement(parent, tag)
    for name, value in attributes.items():
        if value is not None:
            text = value if isinstance(value, str) else numbers(value)
            try:
                child.set(name, text)
            except ValueError:
                raise InteropError(
                    f"{name} {text!r} has characters that XML cannot hold; choose another name"
                ) from None
    return child


def numbers(values) -> str:
    """Numbers as text, with as many digits as they need."""
    try:
        flat = np.asarray(values, dtype=float).ravel().tolist()
    except (TypeError, ValueError):
        raise InteropError(
            f"MJCF holds numbers, and this model has {values!r}; give its parameters values"
        ) from None
    return " ".join(_number(x) for x in flat)


def _number(x):
    """Number as text that MuJoCo reads."""
    if math.isfinite(x) and x == int(x) and abs(x) < 1e15:
        return str(int(x))
    return repr(x)  # infinity as "inf", which MuJoCo reads


def pose_attributes(X):
    """MJCF attributes of a frame's position and orientation, where not zero."""
    E, r = np.asarray(X.E), np.asarray(X.r)
    found = {}
    if np.any(r):
        found["pos"] = numbers(r)
    if not np.array_equal(E, np.eye(3)):
        found["quat"] = numbers(quaternion_from_rotation(np.asarray(E, dtype=float)))
    return found


_NARROW = 1e-9  # range of what must not move, relative to where it is


def range_attributes(name, limits, limited):
    """MJCF attributes of a range with its switch; empty if it is infinite."""
    if all(math.isinf(x) for x in limits):
        return {}
    low, high = limits
    if low == high:  # of something that must not move; MuJoCo wants a range that is not empty
        high = low + _NARROW * max(1.0, abs(low))
    return {name: numbers((low, high)), limited: "true"}


# --- Joints as hinge, slide, ball and free joints, several in one body where need be -------------


class JointElement(NamedTuple):
    """A joint of MJCF: all or part of a joint of the model.

    Attributes:
        name: name in MJCF; part ``k`` of joint ``j`` is called ``j_k``.
        kind: ``"hinge"``, ``"slide"``, ``"ball"`` or ``"free"``.
        axis: of a hinge or slide.
        q, v: which of our joint's variables are its own; the linear velocities of joints that turn
            too are along other axes.
    """

    name: str
    kind: str
    axis: tuple | None
    q: slice
    v: slice


def parts_of(joint, name) -> tuple[JointElement, ...]:
    """MuJoCo joints that in sequence move like ``joint``.

    A free joint comes as three sliders and a ball joint, which can sit on any body; MuJoCo's own
    free joint is for a body at the origin of the world.
    """
    if isinstance(joint, joints.Fixed):
        return ()
    if isinstance(joint, joints.Spherical):
        return (JointElement(name, "ball", None, slice(0, 4), slice(0, 3)),)
    if isinstance(joint, joints.Free) and joint.translation == "parent":
        ball = JointElement(f"{name}_4", "ball", None, slice(3, 7), slice(0, 3))
        return (*_sliders(name, np.eye(3, dtype=int), 3, 0), ball)
    if isinstance(joint, joints.Planar) and joint.translation == "parent":
        hinge = JointElement(f"{name}_3", "hinge", tuple(joint.axis), slice(0, 1), slice(0, 1))
        return (*_sliders(name, completed_basis(joint.axis), 1, 1), hinge)
    axes = _axes(joint)
    if axes is None:
        raise InteropError(
            f"joint {name!r} is {joint!r}, which MJCF does not have; these it has: Fixed, "
            f"Revolute, Prismatic, Spherical, Free, Cylindrical, Planar, Universal, Euler and "
            f"Translation. A chain of such joints with massless bodies may do the same"
        )
    names = [name] if len(axes) == 1 else [f"{name}_{k}" for k in range(1, len(axes) + 1)]
    return tuple(
        JointElement(part, kind, tuple(axis), slice(k, k + 1), slice(k, k + 1))
        for k, (part, (kind, axis)) in enumerate(zip(names, axes, strict=True))
    )


def _sliders(name, axes, v, q):
    """MuJoCo sliders along ``axes``, with the indices of kinetree's linear variables."""
    return tuple(
        JointElement(
            f"{name}_{k + 1}",
            "slide",
            tuple(axis),
            slice(q + k, q + k + 1),
            slice(v + k, v + k + 1),
        )
        for k, axis in enumerate(axes)
    )


def _axes(joint):
    """MuJoCo's types and axes for a joint of one-variable joints, or None."""
    if isinstance(joint, joints.Reversed):
        if not isinstance(joint.joint, (joints.Revolute, joints.Prismatic)):
            return None
        return [(kind, tuple(-k for k in axis)) for kind, axis in _axes(joint.joint) or ()]
    if isinstance(joint, joints.Revolute):
        return [("hinge", joint.axis)]
    if isinstance(joint, joints.Prismatic):
        return [("slide", joint.axis)]
    if isinstance(joint, joints.Cylindrical):
        return [("hinge", joint.axis), ("slide", joint.axis)]
    if isinstance(joint, joints.Translation):
        return [("slide", axis) for axis in np.eye(3, dtype=int)]
    if isinstance(joint, (joints.Universal, joints.Euler)):
        letters = joint.axes if isinstance(joint, joints.Universal) else joint.sequence
        return [("hinge", np.eye(3, dtype=int)["xyz".index(letter)]) for letter in letters]
    return None
