"""Spherical joints (ball and socket).

``Spherical`` has a unit quaternion — RBDA Table 4.1, §4.5 — and ``Exponential`` a rotation vector —
tutorial §5.2, (53)-(56). ``SphereInCylinder`` may slide along an axis, too: the cure that RBDA
§8.10 recommends for over-constrained loops.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.axis import completed_basis, forces
from kinetree.joints.base import AbstractJoint, point_mass, unit_forces, unit_motions
from kinetree.joints.one_axis import AxialJoint
from kinetree.spatial import Force, Inertia, Motion, Plucker, rot
from kinetree.spatial.lie import left_jacobian, left_jacobian_inverse
from kinetree.spatial.ops import atan2, less, select, sqrt, stumpff, stumpff_rate
from kinetree.spatial.rotation import (
    quaternion_exp,
    quaternion_from_rotation,
    quaternion_log,
    quaternion_product,
    quaternion_rate,
    rotation_exp,
    rotation_from_quaternion,
    rotation_log,
)
from kinetree.spatial.vector3 import ZERO3, cross, identity3


class BallJoint(AbstractJoint):
    """A joint that turns freely about a point, whatever its variables."""

    def constraint_subspace(self, q: Array) -> "Force":
        return unit_forces(4, 5, 6)  # constant, even where S is not

    def loop_error(self, X: "Plucker") -> Array:
        return X.E @ X.r  # exact — RBDA Table 8.1

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return point_mass(inertia)


@dataclass(frozen=True)
class Spherical(BallJoint):
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

    def active_subspace(self, q: Array) -> "Force":
        return unit_forces(1, 2, 3)

    def coordinates(self, X: "Plucker") -> Array:
        return quaternion_from_rotation(X.E)

    loop_gap = BallJoint.loop_error

    def configuration_rate(self, q: Array, qd: Array) -> Array:
        return quaternion_rate(q, qd)

    def integrate(self, q: Array, dv: Array) -> Array:
        return quaternion_product(q, quaternion_exp(dv))

    def difference(self, q0: Array, q1: Array) -> Array:
        return quaternion_log(quaternion_product(_conjugate(q0), q1))

    def bracket(self, u: Array, v: Array) -> Array:
        """Lie bracket of two angular velocities, ``u × v``."""
        return cross(u, v)

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def random(self, rng: "np.random.Generator") -> Array:
        return random_quaternion(rng)


def random_quaternion(rng):
    """Random unit quaternion, uniform over rotations."""
    p = rng.standard_normal(4)
    return p / np.linalg.norm(p)


def _conjugate(p):
    """Conjugate of a quaternion."""
    return np.array([p[0], -p[1], -p[2], -p[3]])


@dataclass(frozen=True)
class Exponential(BallJoint):
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

    def active_subspace(self, q: Array) -> Force:
        return Force(left_jacobian_inverse(q), np.zeros((3, 3), dtype=int))

    def coordinates(self, X: "Plucker") -> Array:
        return rotation_log(X.E)

    def singularity(self, q: Array) -> Any:
        """Determinant of ``S``: 1 at zero, 0.4 at half a turn, 0 at a full turn."""
        return 2 * stumpff(q @ q)[2]

    def reparameterize(self, q: Array, qd: Array, near: Array | None = None) -> tuple[Array, Array]:
        """Orientation and velocity with an angle of at most half a turn.

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

    def random(self, rng: "np.random.Generator") -> Array:
        return quaternion_log(random_quaternion(rng))


def _bias(q, qd):
    """Velocity product ``S° qd`` for exponential coordinates, ``S = 1 - c₂ q× + c₃ q×²``."""
    c = stumpff(q @ q)
    _, dc2, dc3 = stumpff_rate(c)
    rate = 2 * (q @ qd)
    turn = cross(q, qd)
    return (dc3 * rate) * cross(q, turn) - (dc2 * rate) * turn + c[3] * cross(qd, turn)


_ROTATION = Spherical()


@dataclass(frozen=True)
class SphereInCylinder(AxialJoint):
    """A ball that turns freely and slides along a cylinder fixed in the parent.

    ``q = (w, x, y, z, distance)``: a unit quaternion and the distance [m] along the cylinder;
    ``qd`` is the angular velocity [rad/s] in child coordinates and the rate of the distance. The
    two constraint forces are perpendicular to the cylinder, so they turn in the child frame.
    """

    nq = 5
    nv = 4
    position_parts = (*Spherical.position_parts, "distance")
    velocity_parts = (*Spherical.velocity_parts, "distance")
    constant_subspace = False
    rates_are_velocities = False
    unit_parts = (slice(0, 4),)
    axis_role = "cylinder axis"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("z"), cls((1.0, 2.0, 2.0))

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """Transform, motion subspace, velocity and velocity product."""
        E = rotation_from_quaternion(q[:4])
        a = np.array(self.axis)
        Ea = E @ a
        S = Motion(_with_column(identity3(), ZERO3), _with_column(np.zeros((3, 3), int), Ea))
        c_J = Motion(ZERO3, cross(Ea, qd[:3]) * qd[3])  # the axis turns by -w in the child
        return Plucker(E, a * q[4]), S, S @ qd, c_J

    def constraint_subspace(self, q: Array) -> Force:
        return self._across(rotation_from_quaternion(q[:4]))

    def loop_subspace(self, X: Plucker) -> Force:
        return self._across(X.E)

    def active_subspace(self, q: Array) -> Force:
        S = self.motion_subspace(q)  # orthonormal columns
        return Force(S.angular, S.linear)

    def coordinates(self, X: Plucker) -> Array:
        return np.array([*quaternion_from_rotation(X.E), np.array(self.axis) @ X.r])

    def loop_error(self, X: Plucker) -> Array:
        u, v = completed_basis(self.axis)
        return np.array([u @ X.r, v @ X.r])  # exact

    loop_gap = loop_error

    def configuration_rate(self, q: Array, qd: Array) -> Array:
        return np.array([*_ROTATION.configuration_rate(q[:4], qd[:3]), qd[3]])

    def integrate(self, q: Array, dv: Array) -> Array:
        return np.array([*_ROTATION.integrate(q[:4], dv[:3]), q[4] + dv[3]])

    def difference(self, q0: Array, q1: Array) -> Array:
        return np.array([*_ROTATION.difference(q0[:4], q1[:4]), q1[4] - q0[4]])

    def bracket(self, u: Array, v: Array) -> Array:
        """Lie bracket of two velocities, of which only rotations do not commute."""
        return np.array([*cross(u[:3], v[:3]), 0])

    def neutral(self) -> Array:
        return np.array([*_ROTATION.neutral(), 0.0])

    def random(self, rng: "np.random.Generator") -> Array:
        return np.array([*random_quaternion(rng), rng.uniform(-1, 1)])

    def _across(self, E):
        """Constraint forces perpendicular to the cylinder, in child coordinates."""
        u, v = completed_basis(self.axis)
        return forces((ZERO3, E @ u), (ZERO3, E @ v))


def _with_column(A, column):
    """Matrix with a column appended."""
    return np.column_stack([A, column])
