"""The parts of a model: bodies with their joints, frames, loop joints, limits — RBDA §4.6."""

from dataclasses import dataclass, field

import numpy as np

from kinetree.joints import AbstractJoint, Fixed
from kinetree.spatial import Inertia, Plucker

__all__ = ["Body", "Frame", "Limits", "Loop"]


@dataclass(frozen=True)
class Limits:
    """Bounds of a joint, one entry per variable; infinite where there is none.

    Attributes:
        lower: smallest position variables [m or rad], (nq,).
        upper: largest position variables, (nq,).
        velocity: largest speed of each velocity variable [m/s or rad/s], (nv,).
        effort: largest joint force [N or N·m], (nv,).
    """

    lower: tuple = ()
    upper: tuple = ()
    velocity: tuple = ()
    effort: tuple = ()

    def __post_init__(self):
        for name in ("lower", "upper", "velocity", "effort"):
            value = np.atleast_1d(np.asarray(getattr(self, name), dtype=float))
            object.__setattr__(self, name, tuple(float(x) for x in value))


@dataclass(frozen=True, eq=False)
class Body:
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
class Frame:
    """A named frame fixed to a body; ``placement`` takes body to frame coordinates."""

    name: str
    body: int
    placement: Plucker = field(default_factory=Plucker.identity)


@dataclass(frozen=True, eq=False)
class Loop:
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
