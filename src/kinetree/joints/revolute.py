"""Revolute joint (hinge) — RBDA Table 4.1."""

from dataclasses import dataclass

import numpy as np

from kinetree.joints.axis import as_axis, axis_rotation, completed_basis, forces
from kinetree.joints.base import AbstractJoint
from kinetree.spatial import Motion, rot
from kinetree.spatial.ops import atan2
from kinetree.spatial.vector3 import ZERO3, identity3

__all__ = ["Revolute"]


@dataclass(frozen=True)
class Revolute(AbstractJoint):
    """Turns about an axis through the joint frame; ``q`` is the angle [rad]."""

    axis: tuple = (0, 0, 1)
    nq = nv = 1

    def __post_init__(self):
        object.__setattr__(self, "axis", as_axis(self.axis))

    def jcalc(self, q, qd):
        S = Motion(np.array(self.axis)[:, None], ZERO3[:, None])
        return rot(axis_rotation(self.axis, q[0])), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q):
        u, v = completed_basis(self.axis)
        x, y, z = identity3()
        return forces((u, ZERO3), (v, ZERO3), (ZERO3, x), (ZERO3, y), (ZERO3, z))

    def coordinates(self, X):
        u, v = completed_basis(self.axis)
        return np.array([atan2(u @ X.E @ v - v @ X.E @ u, u @ X.E @ u + v @ X.E @ v)])

    def random(self, rng):
        return rng.uniform(-np.pi, np.pi, 1)
