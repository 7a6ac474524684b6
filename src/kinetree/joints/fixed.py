"""Fixed joint: no freedom — RBDA §3.5."""

from dataclasses import dataclass

import numpy as np

from kinetree.joints.base import AbstractJoint, unit_forces, unit_motions
from kinetree.spatial import Motion, Plucker, displacement_velocity

__all__ = ["Fixed"]


@dataclass(frozen=True)
class Fixed(AbstractJoint):
    """Welds two bodies together."""

    nq = nv = 0

    def jcalc(self, q, qd):
        return Plucker.identity(), unit_motions(), Motion.zero(), Motion.zero()

    def constraint_subspace(self, q):
        return unit_forces(1, 2, 3, 4, 5, 6)

    def active_subspace(self, q):
        return unit_forces()

    def coordinates(self, X):
        return np.zeros(0)

    def loop_error(self, X):
        return displacement_velocity(X).to_array()  # RBDA Table 8.1

    def loop_alignment(self, X):
        return X.E[0, 0] + X.E[1, 1] + X.E[2, 2] - 1
