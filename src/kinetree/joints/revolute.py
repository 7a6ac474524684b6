"""Revolute joint (hinge) — RBDA Table 4.1."""

from dataclasses import dataclass

import numpy as np

from kinetree.joints.axis import (
    as_axis,
    axis_angle,
    axis_rotation,
    completed_basis,
    forces,
    motions,
)
from kinetree.joints.base import AbstractJoint
from kinetree.joints.closure import axis_offset, axis_shift, axis_tilt
from kinetree.spatial import Motion, rot
from kinetree.spatial.vector3 import ZERO3

__all__ = ["Revolute"]


@dataclass(frozen=True)
class Revolute(AbstractJoint):
    """Turns about an axis through the joint frame; ``q`` is the angle [rad]."""

    axis: tuple | str = (0, 0, 1)
    nq = nv = 1
    angles = (0,)

    def __post_init__(self):
        object.__setattr__(self, "axis", as_axis(self.axis))

    def jcalc(self, q, qd):
        S = motions((np.array(self.axis), ZERO3))
        return rot(axis_rotation(self.axis, q[0])), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q):
        a, (u, v) = np.array(self.axis), completed_basis(self.axis)
        return forces((u, ZERO3), (v, ZERO3), (ZERO3, u), (ZERO3, v), (ZERO3, a))

    def active_subspace(self, q):
        return forces((np.array(self.axis), ZERO3))

    def coordinates(self, X):
        return np.array([axis_angle(self.axis, X.E)])

    def loop_error(self, X):
        frame = (*completed_basis(self.axis), np.array(self.axis))
        errors = [*axis_tilt(X, frame), *axis_offset(X, frame), axis_shift(X, frame)]
        return np.array(errors)  # RBDA Table 8.1

    def loop_alignment(self, X):
        return np.array(self.axis) @ X.E @ np.array(self.axis)

    def random(self, rng):
        return rng.uniform(-np.pi, np.pi, 1)
