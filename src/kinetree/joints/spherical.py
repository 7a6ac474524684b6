"""Spherical joint (ball and socket) with a unit quaternion — RBDA Table 4.1, §4.5."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.base import AbstractJoint, point_mass, unit_forces, unit_motions
from kinetree.spatial import Inertia, Motion, rot
from kinetree.spatial.rotation import (
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_log,
    quaternion_product,
    quaternion_rate,
    rotation_from_quaternion,
)
from kinetree.spatial.vector3 import ZERO3, cross

if TYPE_CHECKING:
    from kinetree.spatial import Force, Plucker


@dataclass(frozen=True)
class Spherical(AbstractJoint):
    """Turns freely about a point.

    ``q = (w, x, y, z)``, a unit quaternion; ``qd`` is the angular velocity [rad/s] in child
    coordinates.
    """

    nq = 4
    nv = 3
    position_parts = ("qw", "qx", "qy", "qz")
    velocity_parts = ("wx", "wy", "wz")
    symbol = "S"
    rates_are_velocities = False
    unit_parts = (slice(0, 4),)

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        S = unit_motions(1, 2, 3)
        return rot(rotation_from_quaternion(q)), S, Motion(qd, ZERO3), Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        return unit_forces(4, 5, 6)

    def active_subspace(self, q: Array) -> "Force":
        return unit_forces(1, 2, 3)

    def coordinates(self, X: "Plucker") -> Array:
        return quaternion_from_rotation(X.E)

    def loop_error(self, X: "Plucker") -> Array:
        return X.E @ X.r  # exact — RBDA Table 8.1

    loop_gap = loop_error

    def configuration_rate(self, q: Array, qd: Array) -> Array:
        return quaternion_rate(q, qd)

    def integrate(self, q: Array, dv: Array) -> Array:
        return quaternion_product(q, quaternion_exp(dv))

    def difference(self, q0: Array, q1: Array) -> Array:
        return quaternion_log(quaternion_product(_conjugate(q0), q1))

    def bracket(self, u: Array, v: Array) -> Array:
        return cross(u, v)

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return point_mass(inertia)

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def random(self, rng: np.random.Generator) -> Array:
        return random_quaternion(rng)


def random_quaternion(rng):
    """A rotation drawn uniformly."""
    p = rng.standard_normal(4)
    return p / np.linalg.norm(p)


def _conjugate(p):
    return np.array([p[0], -p[1], -p[2], -p[3]])
