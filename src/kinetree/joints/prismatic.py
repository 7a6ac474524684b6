"""Prismatic joint (slider) — RBDA Table 4.1 — and translation in all three directions."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.axis import (
    as_axis,
    axis_offset,
    axis_parameters,
    axis_with,
    completed_basis,
    forces,
    motions,
)
from kinetree.joints.base import AbstractJoint, unit_forces, unit_motions, with_fields
from kinetree.spatial import Inertia, Motion, displacement_velocity, xlt
from kinetree.spatial.vector3 import ZERO3, identity3

if TYPE_CHECKING:
    from kinetree.spatial import Force, Plucker


@dataclass(frozen=True)
class Prismatic(AbstractJoint):
    """Slides along an axis of the joint frame; ``q`` is the distance [m]."""

    axis: tuple | str = (0, 0, 1)
    nq = nv = 1
    symbol = "P"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return tuple(cls(axis) for axis in ("x", "-y", "z", (2.0, -1.0, 2.0)))

    def __post_init__(self):
        object.__setattr__(self, "axis", as_axis(self.axis))

    def parameters(self) -> tuple:
        return axis_parameters(self.axis)

    def with_parameters(self, values: Any) -> AbstractJoint:
        return with_fields(self, axis=axis_with(self.axis, values))

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        a = np.array(self.axis)
        S = motions((ZERO3, a))
        return xlt(a * q[0]), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        u, v = completed_basis(self.axis)
        x, y, z = identity3()
        return forces((x, ZERO3), (y, ZERO3), (z, ZERO3), (ZERO3, u), (ZERO3, v))

    def active_subspace(self, q: Array) -> "Force":
        return forces((ZERO3, np.array(self.axis)))

    def coordinates(self, X: "Plucker") -> Array:
        return np.array([np.array(self.axis) @ X.r])

    def loop_error(self, X: "Plucker") -> Array:
        frame = (*completed_basis(self.axis), np.array(self.axis))
        turn = displacement_velocity(X).angular
        return np.concatenate([turn, axis_offset(X, frame)])  # RBDA Table 8.1

    def loop_alignment(self, X: "Plucker") -> Any:
        return X.E[0, 0] + X.E[1, 1] + X.E[2, 2] - 1

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return Inertia(0, 0 * inertia.first_moment, inertia.rotational)  # resistance to turning


# --- Translation joint: three perpendicular sliders in one ---------------------------------------


@dataclass(frozen=True)
class Translation(AbstractJoint):
    """Moves without turning; ``q = (x, y, z)`` [m]."""

    nq = nv = 3
    position_parts = velocity_parts = ("x", "y", "z")

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        S = unit_motions(4, 5, 6)
        return xlt(q), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        return unit_forces(1, 2, 3)

    def active_subspace(self, q: Array) -> "Force":
        return unit_forces(4, 5, 6)

    def coordinates(self, X: "Plucker") -> Array:
        return X.r

    def loop_error(self, X: "Plucker") -> Array:
        return displacement_velocity(X).angular

    def loop_alignment(self, X: "Plucker") -> Any:
        return X.E[0, 0] + X.E[1, 1] + X.E[2, 2] - 1

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return Inertia(0, 0 * inertia.first_moment, inertia.rotational)  # resistance to turning
