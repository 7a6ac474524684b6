"""Rack-and-pinion joint — RBDA Example 4.6."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.axis import axis_angle, forces, mass_on, motions, rod_along
from kinetree.joints.base import AbstractJoint, as_number, with_fields
from kinetree.spatial import Inertia, Motion, Plucker, rz
from kinetree.spatial.ops import cos, sin
from kinetree.spatial.vector3 import ZERO3, identity3

if TYPE_CHECKING:
    from kinetree.spatial import Force


_Z = (0, 0, 1)


@dataclass(frozen=True)
class RackAndPinion(AbstractJoint):
    """A pinion of the given ``radius`` [m] rolls along a rack; ``q`` is its angle [rad].

    The rack is the predecessor and runs along x; the pinion turns about z and touches it on the
    +y side. For the pinion as predecessor, see ``Reversed``.
    """

    radius: float
    nq = nv = 1

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return (cls(0.3),)

    constant_subspace = False

    def __post_init__(self):
        as_number(self.radius, "pinion radius")

    def parameters(self) -> tuple:
        return (self.radius,)

    def with_parameters(self, values: Any) -> AbstractJoint:
        return with_fields(self, radius=values[0])

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """Transform, motion subspace, velocity and velocity product."""
        R, c, s = self.radius, cos(q[0]), sin(q[0])
        S = motions((np.array(_Z), np.array([R * c, -R * s, 0])))
        c_J = Motion(ZERO3, np.array([-R * s, -R * c, 0]) * (qd[0] * qd[0]))
        return Plucker(rz(q[0]), np.array([R * q[0], 0, 0])), S, S @ qd, c_J

    def constraint_subspace(self, q: Array) -> "Force":
        return self._bearing(rz(q[0]))

    def loop_subspace(self, X: Plucker) -> "Force":
        return self._bearing(X.E)

    def _bearing(self, E):
        """Constraint forces in pinion coordinates, with the rack rotated by ``E``."""
        x, y, z = identity3()
        along, across = E[:, 0], E[:, 1]
        return forces(
            (x, ZERO3), (y, ZERO3), (ZERO3, z), (-self.radius * z, along), (ZERO3, across)
        )

    def active_subspace(self, q: Array) -> "Force":
        return forces((np.array(_Z), ZERO3))

    def coordinates(self, X: Plucker) -> Array:
        """Angle for a transform; whole turns are counted by the shift of the rack."""
        R = self.radius
        if R == 0:
            return np.array([axis_angle(_Z, X.E)])
        # The shift counts whole turns, the rotation refines: a projection of the rest onto S.
        turns = X.r[0] / R
        rest = axis_angle(_Z, X.E @ rz(turns).T)
        return np.array([turns + rest / (1 + R * R)])

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return rod_along(_Z, inertia) if self.radius else mass_on(_Z, inertia)

    def random(self, rng: "np.random.Generator") -> Array:
        return rng.uniform(-np.pi, np.pi, 1)
