"""Planar joint — RBDA Table 4.1, Example 4.5."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.axis import (
    axis_angle,
    axis_rotation,
    axis_tilt,
    completed_basis,
    forces,
    motions,
    rod_along,
)
from kinetree.joints.base import AbstractJoint, as_choice
from kinetree.joints.one_axis import AxialJoint
from kinetree.spatial import Inertia, Motion, Plucker
from kinetree.spatial.ops import cos, sin, stumpff
from kinetree.spatial.vector3 import ZERO3

if TYPE_CHECKING:
    from kinetree.spatial import Force


@dataclass(frozen=True)
class Planar(AxialJoint):
    """Slides and turns in the plane through the joint frame normal to an axis (x-y for ``"z"``).

    ``q = (angle, x, y)`` with the translation in the parent frame, or with
    ``translation="child"`` in the child frame as in Table 4.1. In both cases
    ``qd = (omega, vx, vy)`` is the velocity in child coordinates, which keeps ``S`` constant;
    contrary to the text it is then not the derivative of either choice of ``q``. ``difference``
    is for angles less than a full turn apart.
    """

    translation: str = "parent"
    nq = nv = 3
    position_parts = velocity_parts = ("angle", "x", "y")
    symbol = "E"
    angles = (0,)
    rates_are_velocities = False
    axis_role = "normal of a planar joint"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("z"), cls((0.5, 1.0, -1.0)), cls("z", translation="child")

    def __post_init__(self):
        super().__post_init__()
        as_choice(self.translation, "translation of a planar joint", ("parent", "child"))

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """Transform, motion subspace, velocity and velocity product."""
        u, v = completed_basis(self.axis)
        S = motions((np.array(self.axis), ZERO3), (ZERO3, u), (ZERO3, v))
        x, y = self._to_parent(q)
        return Plucker(axis_rotation(self.axis, q[0]), u * x + v * y), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        u, v = completed_basis(self.axis)
        return forces((u, ZERO3), (v, ZERO3), (ZERO3, np.array(self.axis)))

    def active_subspace(self, q: Array) -> "Force":
        u, v = completed_basis(self.axis)
        return forces((np.array(self.axis), ZERO3), (ZERO3, u), (ZERO3, v))

    def coordinates(self, X: Plucker) -> Array:
        u, v = completed_basis(self.axis)
        return self._from_parent(axis_angle(self.axis, X.E), np.array([u @ X.r, v @ X.r]))

    def loop_error(self, X: Plucker) -> Array:
        frame = (*completed_basis(self.axis), np.array(self.axis))
        return np.array([*axis_tilt(X, frame), frame[2] @ X.r])

    def loop_alignment(self, X: Plucker) -> Any:
        return np.array(self.axis) @ X.E @ np.array(self.axis)

    def configuration_rate(self, q: Array, qd: Array) -> Array:
        w, vx, vy = qd
        if self.translation == "child":
            return np.array([w, vx + q[2] * w, vy - q[1] * w])
        return np.array([w, *_turn(q[0], qd[1:])])

    def integrate(self, q: Array, dv: Array) -> Array:
        """Position after a displacement, by the exponential map."""
        c = stumpff(dv[0] * dv[0])  # exponential map of planar motions
        x, y = c[1] * dv[1:] + dv[0] * c[2] * np.array([-dv[2], dv[1]])
        return self._from_parent(q[0] + dv[0], self._to_parent(q) + _turn(q[0], (x, y)))

    def difference(self, q0: Array, q1: Array) -> Array:
        """Displacement from one position to another by the logarithm."""
        w = q1[0] - q0[0]
        x, y = _turn(-q0[0], self._to_parent(q1) - self._to_parent(q0))
        c = stumpff(w * w)
        k = c[1] / (2 * c[2])
        return np.array([w, k * x + w / 2 * y, k * y - w / 2 * x])

    def bracket(self, u: Array, v: Array) -> Array:
        """Lie bracket of two planar velocities, angular part first."""
        return np.array([0, u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return rod_along(self.axis, inertia)

    def random(self, rng: "np.random.Generator") -> Array:
        return np.array([rng.uniform(-np.pi, np.pi), *rng.uniform(-1, 1, 2)])

    def _to_parent(self, q):
        """Translation in the parent frame at ``q``, (2,)."""
        return q[1:] if self.translation == "parent" else _turn(q[0], q[1:])

    def _from_parent(self, angle, position):
        """Position variables from an angle and a position in the parent."""
        child = self.translation == "child"
        return np.array([angle, *(_turn(-angle, position) if child else position)])


def _turn(angle, vector):
    """Planar vector rotated by ``angle``."""
    c, s = cos(angle), sin(angle)
    x, y = vector
    return np.array([c * x - s * y, s * x + c * y])
