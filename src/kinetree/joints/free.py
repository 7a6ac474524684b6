"""Six-degree-of-freedom joint — RBDA Table 4.1, Example 4.5."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.base import AbstractJoint, as_choice, unit_forces, unit_motions
from kinetree.joints.spherical import Spherical, random_quaternion
from kinetree.spatial import Motion, Plucker, cross, exp, log
from kinetree.spatial.rotation import (
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_product,
    quaternion_rate,
    rotation_from_quaternion,
)

if TYPE_CHECKING:
    from kinetree.spatial import Force


@dataclass(frozen=True)
class Free(AbstractJoint):
    """Imposes no constraint; carries a floating base.

    ``q = (x, y, z, w, qx, qy, qz)``: position in the parent frame [m], then a unit quaternion.
    ``qd = (angular, linear)`` velocity in child coordinates [rad/s, m/s]. With
    ``translation="child"`` the position is in child coordinates, as in Table 4.1 (which lists it
    after the quaternion); it then changes fast when a body far from the origin spins.
    """

    translation: str = "parent"
    nq = 7
    nv = 6
    position_parts = ("x", "y", "z", *Spherical.position_parts)
    velocity_parts = (*Spherical.velocity_parts, "vx", "vy", "vz")
    rates_are_velocities = False
    unit_parts = (slice(3, 7),)

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls(), cls(translation="child")

    def __post_init__(self):
        as_choice(self.translation, "translation of a free joint", ("parent", "child"))

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """Transform, motion subspace, velocity and velocity product."""
        E = rotation_from_quaternion(q[3:])
        X_J = Plucker(E, q[:3] if self.translation == "parent" else E.T @ q[:3])
        return X_J, unit_motions(1, 2, 3, 4, 5, 6), Motion(qd[:3], qd[3:]), Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        return unit_forces()

    def active_subspace(self, q: Array) -> "Force":
        return unit_forces(1, 2, 3, 4, 5, 6)

    def coordinates(self, X: Plucker) -> Array:
        return self._from_parent(X.r, quaternion_from_rotation(X.E))

    def loop_error(self, X: Plucker) -> Array:
        return np.zeros(0)

    def configuration_rate(self, q: Array, qd: Array) -> Array:
        w, v = qd[:3], qd[3:]
        if self.translation == "child":
            rate = v - cross(w, q[:3])  # missing in the text
        else:
            rate = rotation_from_quaternion(q[3:]).T @ v
        return np.concatenate([rate, quaternion_rate(q[3:], w)])

    def integrate(self, q: Array, dv: Array) -> Array:
        """Position after a displacement by the exponential map."""
        step, X_J = exp(Motion(dv[:3], dv[3:])), self.transform(q)
        turned = quaternion_product(q[3:], quaternion_exp(dv[:3]))
        return self._from_parent(X_J.r + X_J.E.T @ step.r, turned)

    def difference(self, q0: Array, q1: Array) -> Array:
        return log(self.transform(q1) @ self.transform(q0).inverse()).to_array()

    def bracket(self, u: Array, v: Array) -> Array:
        """Lie bracket of two velocities, ``u × v`` as motions."""
        return Motion.from_array(u).cross(Motion.from_array(v)).to_array()

    def neutral(self) -> Array:
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def random(self, rng: "np.random.Generator") -> Array:
        return np.concatenate([rng.uniform(-1, 1, 3), random_quaternion(rng)])

    def _from_parent(self, r, p):
        """Position variables from a position ``r`` in the parent and a quaternion ``p``."""
        child = self.translation == "child"
        return np.concatenate([rotation_from_quaternion(p) @ r if child else r, p])
