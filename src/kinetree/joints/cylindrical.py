"""Cylindrical joint — RBDA Table 4.1."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.axis import (
    as_axis,
    axis_angle,
    axis_offset,
    axis_parameters,
    axis_rotation,
    axis_tilt,
    axis_with,
    completed_basis,
    forces,
    motions,
    rod_along,
)
from kinetree.joints.base import AbstractJoint, with_fields
from kinetree.spatial import Inertia, Motion, Plucker
from kinetree.spatial.vector3 import ZERO3

if TYPE_CHECKING:
    from kinetree.spatial import Force


@dataclass(frozen=True)
class Cylindrical(AbstractJoint):
    """Turns about an axis and slides along it; ``q = (angle [rad], distance [m])``."""

    axis: tuple | str = (0, 0, 1)
    nq = nv = 2
    position_parts = velocity_parts = ("angle", "distance")
    symbol = "C"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("z"), cls((-1.0, 0.4, 2.0))

    angles = (0,)

    def __post_init__(self):
        object.__setattr__(self, "axis", as_axis(self.axis))

    def parameters(self) -> tuple:
        return axis_parameters(self.axis)

    def with_parameters(self, values: Any) -> AbstractJoint:
        return with_fields(self, axis=axis_with(self.axis, values))

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        a = np.array(self.axis)
        S = motions((a, ZERO3), (ZERO3, a))
        return Plucker(axis_rotation(self.axis, q[0]), a * q[1]), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        u, v = completed_basis(self.axis)
        return forces((u, ZERO3), (v, ZERO3), (ZERO3, u), (ZERO3, v))

    def active_subspace(self, q: Array) -> "Force":
        a = np.array(self.axis)
        return forces((a, ZERO3), (ZERO3, a))

    def coordinates(self, X: Plucker) -> Array:
        return np.array([axis_angle(self.axis, X.E), np.array(self.axis) @ X.r])

    def loop_error(self, X: Plucker) -> Array:
        frame = (*completed_basis(self.axis), np.array(self.axis))
        return np.concatenate([axis_tilt(X, frame), axis_offset(X, frame)])  # RBDA Table 8.1

    def loop_alignment(self, X: Plucker) -> Any:
        return np.array(self.axis) @ X.E @ np.array(self.axis)

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return rod_along(self.axis, inertia)

    def random(self, rng: np.random.Generator) -> Array:
        return np.array([rng.uniform(-np.pi, np.pi), rng.uniform(-1, 1)])
