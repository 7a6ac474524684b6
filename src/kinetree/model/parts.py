"""The parts of a model: bodies with their joints, frames, loop joints, limits — RBDA §4.6.

Parts keep read-only copies of the arrays they are given, so that a model cannot change behind
the back of what was computed from it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.errors import ModelError
from kinetree.joints import AbstractJoint, Fixed
from kinetree.spatial import Inertia, Plucker, xlt

__all__ = ["Body", "Frame", "Limits", "Loop", "as_placement"]


@dataclass(frozen=True)
class Limits:
    """Bounds of a joint, one entry per variable; infinite where there is none.

    Attributes:
        lower: smallest position variables [m or rad], (nq,).
        upper: largest position variables, (nq,).
        velocity: largest speed of each velocity variable [m/s or rad/s], (nv,).
        effort: largest joint force [N or N·m], (nv,).
    """

    lower: Any = ()
    upper: Any = ()
    velocity: Any = ()
    effort: Any = ()

    def __post_init__(self):
        for name in ("lower", "upper", "velocity", "effort"):
            given = getattr(self, name)
            try:
                value = np.atleast_1d(np.asarray(given, dtype=float))
            except (TypeError, ValueError):
                raise ModelError(f"{name} limit must hold numbers, got {given!r}") from None
            object.__setattr__(self, name, tuple(float(x) for x in value))


class _Part:
    """Replaces the arrays of transforms and inertias by read-only copies."""

    def __post_init__(self):
        for name in self.__dataclass_fields__:  # type: ignore[attr-defined]
            object.__setattr__(self, name, _frozen(getattr(self, name)))


def _frozen(x):
    if isinstance(x, Plucker):
        return Plucker(_read_only(x.E), _read_only(x.r))
    if isinstance(x, Inertia):
        return Inertia(x.mass, _read_only(x.first_moment), _read_only(x.rotational))
    return x


def _read_only(array):
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, eq=False)
class Body(_Part):
    """A moving body with the joint that connects it to its parent.

    Attributes:
        name: unique name.
        parent: number of the parent body; 0 is the base.
        joint: joint from parent to body; the body frame is its successor frame.
        placement: ``X_T``, from parent coordinates to the joint's predecessor frame.
        inertia: in body coordinates.
        joint_name: unique name of the joint.
        limits: bounds of the joint, if any.
    """

    name: str
    parent: int
    joint: AbstractJoint
    placement: Plucker
    inertia: Inertia
    joint_name: str
    limits: Limits | None = None


@dataclass(frozen=True, eq=False)
class Frame(_Part):
    """A named frame fixed to a body; ``placement`` takes body to frame coordinates."""

    name: str
    body: int
    placement: Plucker = field(default_factory=Plucker.identity)


@dataclass(frozen=True, eq=False)
class Loop(_Part):
    """A joint that closes a kinematic loop — RBDA §4.2.

    Attributes:
        name: unique name, among the joints.
        predecessor, successor: numbers of the bodies it connects; either may be the base, 0.
        joint: any joint; its variables are not part of ``q``.
        predecessor_placement: ``X_P``, from predecessor body to predecessor frame coordinates.
        successor_placement: ``X_S``, from successor body to successor frame coordinates.
    """

    name: str
    predecessor: int
    successor: int
    joint: AbstractJoint = field(default_factory=Fixed)
    predecessor_placement: Plucker = field(default_factory=Plucker.identity)
    successor_placement: Plucker = field(default_factory=Plucker.identity)


def as_placement(at) -> Plucker:
    """A position (3,), a ``Plucker`` or None (the same place), as a transform."""
    if at is None:
        return Plucker.identity()
    if isinstance(at, Plucker):
        return at
    if np.shape(at) != (3,):
        raise ModelError(f"'at' must be a position of 3 numbers or a Plücker transform, got {at!r}")
    return xlt(np.asarray(at))
