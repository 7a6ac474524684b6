"""Six-degree-of-freedom joint — RBDA Table 4.1, Example 4.5."""

from dataclasses import dataclass

import numpy as np

from kinetree.joints.base import AbstractJoint, unit_forces, unit_motions
from kinetree.joints.spherical import random_quaternion, unit_quaternion_defect
from kinetree.spatial import Motion, Plucker, exp, log
from kinetree.spatial.rotation import (
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_product,
    quaternion_rate,
    rotation_from_quaternion,
)

__all__ = ["Free"]


@dataclass(frozen=True)
class Free(AbstractJoint):
    """Imposes no constraint; carries a floating base.

    ``q = (x, y, z, w, qx, qy, qz)``: position in the parent frame [m], then a unit quaternion.
    ``qd = (angular, linear)`` velocity in child coordinates [rad/s, m/s].
    """

    nq = 7
    nv = 6
    rates_are_velocities = False

    def jcalc(self, q, qd):
        X = Plucker(rotation_from_quaternion(q[3:]), q[:3])
        return X, unit_motions(1, 2, 3, 4, 5, 6), Motion(qd[:3], qd[3:]), Motion.zero()

    def constraint_subspace(self, q):
        return unit_forces()

    def coordinates(self, X):
        return np.concatenate([X.r, quaternion_from_rotation(X.E)])

    def loop_error(self, X):
        return np.zeros(0)

    def configuration_rate(self, q, qd):
        E = rotation_from_quaternion(q[3:])
        return np.concatenate([E.T @ qd[3:], quaternion_rate(q[3:], qd[:3])])

    def integrate(self, q, dv):
        step = exp(Motion(dv[:3], dv[3:]))
        r = q[:3] + rotation_from_quaternion(q[3:]).T @ step.r
        return np.concatenate([r, quaternion_product(q[3:], quaternion_exp(dv[:3]))])

    def difference(self, q0, q1):
        return log(self.transform(q1) @ self.transform(q0).inverse()).to_array()

    def neutral(self):
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def random(self, rng):
        return np.concatenate([rng.uniform(-1, 1, 3), random_quaternion(rng)])

    def normalize(self, q):
        return np.concatenate([q[:3], q[3:] / np.linalg.norm(q[3:])])

    def defect(self, q):
        return unit_quaternion_defect(q[3:])
