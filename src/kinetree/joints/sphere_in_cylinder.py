"""Sphere-in-cylinder joint — the cure that RBDA §8.10 recommends for over-constrained loops."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.axis import as_axis, axis_parameters, axis_with, completed_basis, forces
from kinetree.joints.base import AbstractJoint, with_fields
from kinetree.joints.spherical import Spherical, random_quaternion
from kinetree.spatial import Force, Motion, Plucker
from kinetree.spatial.rotation import quaternion_from_rotation, rotation_from_quaternion
from kinetree.spatial.vector3 import ZERO3, cross, identity3

_ROTATION = Spherical()


@dataclass(frozen=True)
class SphereInCylinder(AbstractJoint):
    """A ball that turns freely and slides along a cylinder fixed in the parent.

    ``q = (w, x, y, z, distance)``: a unit quaternion and the distance [m] along the cylinder;
    ``qd`` is the angular velocity [rad/s] in child coordinates and the rate of the distance. The
    two constraint forces are perpendicular to the cylinder, so they turn in the child frame.
    """

    axis: tuple | str = (0, 0, 1)
    nq = 5
    nv = 4
    position_parts = (*Spherical.position_parts, "distance")
    velocity_parts = (*Spherical.velocity_parts, "distance")
    constant_subspace = False
    rates_are_velocities = False
    unit_parts = (slice(0, 4),)

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("z"), cls((1.0, 2.0, 2.0))

    def __post_init__(self):
        object.__setattr__(self, "axis", as_axis(self.axis, "cylinder axis"))

    def parameters(self) -> tuple:
        return axis_parameters(self.axis)

    def with_parameters(self, values: Any) -> AbstractJoint:
        return with_fields(self, axis=axis_with(self.axis, values))

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
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
        return np.array([*cross(u[:3], v[:3]), 0])

    def neutral(self) -> Array:
        return np.array([*_ROTATION.neutral(), 0.0])

    def random(self, rng: np.random.Generator) -> Array:
        return np.array([*random_quaternion(rng), rng.uniform(-1, 1)])

    def _across(self, E):
        """Forces perpendicular to the cylinder, in child coordinates."""
        u, v = completed_basis(self.axis)
        return forces((ZERO3, E @ u), (ZERO3, E @ v))


def _with_column(A, column):
    return np.column_stack([A, column])
