"""Revolute joint (hinge) — RBDA Table 4.1."""

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
    axis_shift,
    axis_tilt,
    axis_with,
    completed_basis,
    forces,
    mass_on,
    motions,
)
from kinetree.joints.base import AbstractJoint, with_fields
from kinetree.spatial import Inertia, Motion, rot
from kinetree.spatial.vector3 import ZERO3

if TYPE_CHECKING:
    from kinetree.spatial import Force, Plucker


@dataclass(frozen=True)
class Revolute(AbstractJoint):
    """Turns about an axis through the joint frame; ``q`` is the angle [rad]."""

    axis: tuple | str = (0, 0, 1)
    nq = nv = 1
    angles = (0,)
    symbol = "R"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return tuple(cls(axis) for axis in ("x", "y", "z", "-y", (1.0, 2.0, -3.0)))

    def __post_init__(self):
        object.__setattr__(self, "axis", as_axis(self.axis))

    def parameters(self) -> tuple:
        return axis_parameters(self.axis)

    def with_parameters(self, values: Any) -> AbstractJoint:
        return with_fields(self, axis=axis_with(self.axis, values))

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        S = motions((np.array(self.axis), ZERO3))
        return rot(axis_rotation(self.axis, q[0])), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        a, (u, v) = np.array(self.axis), completed_basis(self.axis)
        return forces((u, ZERO3), (v, ZERO3), (ZERO3, u), (ZERO3, v), (ZERO3, a))

    def active_subspace(self, q: Array) -> "Force":
        return forces((np.array(self.axis), ZERO3))

    def coordinates(self, X: "Plucker") -> Array:
        return np.array([axis_angle(self.axis, X.E)])

    def loop_error(self, X: "Plucker") -> Array:
        frame = (*completed_basis(self.axis), np.array(self.axis))
        errors = [*axis_tilt(X, frame), *axis_offset(X, frame), axis_shift(X, frame)]
        return np.array(errors)  # RBDA Table 8.1

    def loop_alignment(self, X: "Plucker") -> Any:
        return np.array(self.axis) @ X.E @ np.array(self.axis)

    def random(self, rng: np.random.Generator) -> Array:
        return rng.uniform(-np.pi, np.pi, 1)

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return mass_on(self.axis, inertia)
