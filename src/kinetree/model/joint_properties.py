"""What a joint has beside its geometry: limits, and forces of its own accord."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.errors import ModelError
from kinetree.joints import AbstractJoint

__all__ = ["JointDynamics", "Limits", "as_floats", "spread"]


@dataclass(frozen=True)
class Limits:
    """Bounds of a joint, one entry per variable; infinite where there is none.

    Attributes:
        lower: smallest position variables [m or rad], (nq,).
        upper: largest position variables, (nq,).
        velocity: largest speed of each velocity variable [m/s or rad/s], (nv,), or one for all.
        effort: largest joint force [N or N·m], (nv,), or one for all.
    """

    lower: Any = ()
    upper: Any = ()
    velocity: Any = ()
    effort: Any = ()

    def __post_init__(self):
        for name in ("lower", "upper", "velocity", "effort"):
            object.__setattr__(self, name, as_floats(getattr(self, name), f"{name} limit"))


def as_floats(given, what) -> tuple[float, ...]:
    """A number or a sequence of numbers as a tuple of floats."""
    try:
        value = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        raise ModelError(f"{what} must hold numbers, got {given!r}") from None
    return tuple(float(x) for x in value)


def _as_numbers(given, what):
    """As ``as_floats``, but fractions, formulas and other exact numbers stay what they are."""
    value = np.atleast_1d(np.asarray(given)).ravel()
    if value.dtype == object and all(hasattr(x, "__truediv__") for x in value):
        return tuple(float(x) if isinstance(x, (int, float)) else x for x in value)
    return as_floats(given, what)


@dataclass(frozen=True)
class JointDynamics:
    """What happens in a joint of its own accord, one entry per velocity variable, zero by default.

    One number alone is that of every velocity variable of the joint.

    The armature is part of the inertia matrix. The other three make up ``passive_force``; they are
    not part of the joint force ``tau``, which is the sum of all forces along the joint.

    Attributes:
        armature: inertia of what the joint drives apart from the bodies, such as a rotor seen
            through its gear [kg or kg·m²].
        damping: force against the velocity [N·s/m or N·m·s].
        friction: largest force of dry friction [N or N·m].
        stiffness: of a spring [N/m or N·m].
        rest: position variables at which the spring is slack, (nq,); neutral by default.
    """

    armature: Any = ()
    damping: Any = ()
    friction: Any = ()
    stiffness: Any = ()
    rest: Any = ()

    def __post_init__(self):
        for name in ("armature", "damping", "friction", "stiffness", "rest"):
            object.__setattr__(self, name, _as_numbers(getattr(self, name), name))


_PER_VELOCITY = {
    Limits: ("velocity", "effort"),
    JointDynamics: ("armature", "damping", "friction", "stiffness"),
}


def spread(values, joint):
    """Limits or dynamics with an entry for each velocity variable where one stands for all."""
    if not isinstance(joint, AbstractJoint) or joint.nv < 2:
        return values
    names = [n for n in _PER_VELOCITY.get(type(values), ()) if len(getattr(values, n)) == 1]
    return replace(values, **{n: getattr(values, n) * joint.nv for n in names}) if names else values
