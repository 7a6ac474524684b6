"""Names and units of the variables of a model, for tables, legends and axes."""

from functools import lru_cache
from typing import NamedTuple


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


def actuators(model) -> dict[str, tuple]:
    """Actuators by the entries of ``controls`` and of ``activation``."""
    return {
        "controls": model.actuators,
        "activation": tuple(a for a in model.actuators if a.activation),
    }


def _each(model, which):
    for i, body in enumerate(model.bodies, start=1):
        joint = body.joint
        if joint.nv != model.joint[i].nv:
            continue  # it follows others
        units = joint.velocity_units() if which else joint.position_units()
        parts = (joint.velocity_parts if which else joint.position_parts) or range(len(units))
        for part, unit in zip(parts, units, strict=True):
            name = body.joint_name if len(units) == 1 else f"{body.joint_name}.{part}"
            yield Variable(name, body.joint_name, unit)
