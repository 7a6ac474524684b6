"""What the variables of a model are called, and their units: for tables, legends and axes."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.joints import Cylindrical, Free, Planar, Reversed, SphereInCylinder, Spherical

from kinetree.joints import Exponential, Translation  # isort: skip

__all__ = ["Variable", "positions", "velocities"]

_QUATERNION, _TURN, _SHIFT = ("qw", "qx", "qy", "qz"), ("wx", "wy", "wz"), ("x", "y", "z")
_PARTS = {  # of positions and of velocities
    Cylindrical: (("angle", "distance"), ("angle", "distance")),
    Exponential: (("rx", "ry", "rz"), ("rx", "ry", "rz")),
    Free: ((*_SHIFT, *_QUATERNION), (*_TURN, "vx", "vy", "vz")),
    Planar: (("angle", "x", "y"), ("angle", "x", "y")),
    SphereInCylinder: ((*_QUATERNION, "distance"), (*_TURN, "distance")),
    Spherical: (_QUATERNION, _TURN),
    Translation: (_SHIFT, _SHIFT),
}


class Variable(NamedTuple):
    """An entry of ``q`` or ``qd``.

    Attributes:
        name: the joint's, with its part where it has several, such as ``base.x``.
        joint: name of the joint.
        unit: of the position or velocity; ``1`` for entries of quaternions.
    """

    name: str
    joint: str
    unit: str

    @property
    def is_turn(self) -> bool:
        """Whether it is an angle or its rate."""
        return self.unit.startswith("rad")

    @property
    def force_unit(self) -> str:
        """Unit of the joint force along it."""
        return "N·m" if self.is_turn else "N"


@lru_cache(maxsize=64)
def positions(model) -> tuple[Variable, ...]:
    """The entries of ``q``."""
    return tuple(_each(model, 0))


@lru_cache(maxsize=64)
def velocities(model) -> tuple[Variable, ...]:
    """The entries of ``qd`` and of joint forces."""
    return tuple(_each(model, 1))


def _each(model, which):
    for i, body in enumerate(model.bodies, start=1):
        if body.joint.nv != model.joint[i].nv:
            continue  # it follows others
        joint = body.joint.joint if isinstance(body.joint, Reversed) else body.joint
        units = _velocity_units(joint) if which else _position_units(joint)
        parts = _PARTS.get(type(joint), ((), ()))[which] or range(len(units))
        for part, unit in zip(parts, units, strict=True):
            name = body.joint_name if len(units) == 1 else f"{body.joint_name}.{part}"
            yield Variable(name, body.joint_name, unit)


def _velocity_units(joint):
    """Whatever turns the body is an angular velocity."""
    S = joint.motion_subspace(joint.neutral())
    turns = np.abs(np.asarray(S.angular, dtype=float)).reshape(3, -1).max(axis=0) > 0
    return ["rad/s" if turn else "m/s" for turn in turns]


def _position_units(joint):
    units = ["m"] * joint.nq
    if joint.nq == joint.nv:
        units = [unit.removesuffix("/s") for unit in _velocity_units(joint)]
    for part in joint.unit_parts:
        units[part] = ["1"] * (part.stop - part.start)
    return units
