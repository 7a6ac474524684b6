"""Spherical joint with a rotation vector — tutorial §5.2, (53)–(56)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.base import AbstractJoint, point_mass, unit_forces
from kinetree.joints.spherical import random_quaternion
from kinetree.spatial import Force, Inertia, Motion, rot
from kinetree.spatial.lie import left_jacobian, left_jacobian_inverse
from kinetree.spatial.ops import atan2, less, select, sqrt, stumpff, stumpff_rate
from kinetree.spatial.rotation import quaternion_log, rotation_exp, rotation_log
from kinetree.spatial.vector3 import ZERO3, cross

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


@dataclass(frozen=True)
class Exponential(AbstractJoint):
    """Turns freely about a point; ``q`` is axis times angle [rad], ``qd`` its time derivative.

    Singular at a full turn. ``reparameterize`` takes the shorter way round to the same orientation
    and keeps the velocity; simulations do so beyond half a turn, unless springs or limits of the
    joint are about its variables.
    """

    nq = nv = 3
    position_parts = velocity_parts = ("rx", "ry", "rz")
    constant_subspace = False
    turns_over = True

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        S = Motion(left_jacobian(q).T, np.zeros((3, 3), dtype=int))  # child side: transposed
        return rot(rotation_exp(q)), S, S @ qd, Motion(_bias(q, qd), ZERO3)

    def constraint_subspace(self, q: Array) -> Force:
        return unit_forces(4, 5, 6)

    def active_subspace(self, q: Array) -> Force:
        return Force(left_jacobian_inverse(q), np.zeros((3, 3), dtype=int))

    def coordinates(self, X: "Plucker") -> Array:
        return rotation_log(X.E)

    def loop_error(self, X: "Plucker") -> Array:
        return X.E @ X.r

    def singularity(self, q: Array) -> Any:
        """``det S = 2 (1 - cos θ) / θ²``: 1 at zero, 0.4 at half a turn, 0 at a full turn."""
        return 2 * stumpff(q @ q)[2]

    def reparameterize(self, q: Array, qd: Array, near: Array | None = None) -> tuple[Array, Array]:
        """The same orientation and velocity with an angle of at most half a turn.

        Beyond 180° ``q`` becomes ``(1 - 2πk/θ) q``, with ``k`` full turns left out, and ``qd`` the
        rate of that; otherwise both are returned as they are. With ``near``, of this and its turn
        the other way round, the one that is closer to a given position.
        """
        s = q @ q
        beyond = less(np.pi * np.pi, s)
        c, theta = stumpff(s), sqrt(select(beyond, s, 1 + 0 * s))
        short = q * select(beyond, atan2(theta * c[1], c[0]) / theta, 1)
        if near is not None:
            r = short @ short
            some = less(0, r)
            turn = short * (1 - 2 * np.pi / sqrt(select(some, r, 1 + 0 * r)))
            here, there = short - near, turn - near
            other = less(there @ there, here @ here)
            short = np.array([select(other, a, b) for a, b in zip(turn, short, strict=True)])
            beyond = less(0, (short - q) @ (short - q))
        rate = left_jacobian_inverse(short).T @ (left_jacobian(q).T @ qd)
        return short, np.array([select(beyond, a, b) for a, b in zip(rate, qd, strict=True)])

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return point_mass(inertia)

    def random(self, rng: np.random.Generator) -> Array:
        return quaternion_log(random_quaternion(rng))


def _bias(q, qd):
    """``S° qd`` with ``S = 1 - c₂ q× + c₃ q×²``."""
    c = stumpff(q @ q)
    _, dc2, dc3 = stumpff_rate(c)
    rate = 2 * (q @ qd)
    turn = cross(q, qd)
    return (dc3 * rate) * cross(q, turn) - (dc2 * rate) * turn + c[3] * cross(qd, turn)
