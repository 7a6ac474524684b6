"""Universal joint (Hooke, Cardan) — tutorial Fig. 1, (52)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import JointError
from kinetree.joints.axis import forces
from kinetree.joints.base import AbstractJoint, point_mass
from kinetree.joints.euler import successive_turns
from kinetree.spatial import Force, Inertia, Motion, rot
from kinetree.spatial.ops import atan2
from kinetree.spatial.vector3 import ZERO3, cross, identity3

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


@dataclass(frozen=True)
class Universal(AbstractJoint):
    """Turns about an axis of the parent, then about a perpendicular axis of the child.

    ``q`` holds the two angles [rad]; ``axes`` names the two axes, such as ``"xy"``.
    """

    axes: str = "xy"
    nq = nv = 2
    symbol = "U"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("xy"), cls("zy")

    angles = (0, 1)
    constant_subspace = False

    def __post_init__(self):
        axes = self.axes
        valid = isinstance(axes, str) and len(axes) == 2 and set(axes) <= set("xyz")
        if not valid or axes[0] == axes[1]:
            raise JointError(
                f"axes of a universal joint must be two different letters of x, y, z, such as "
                f"'xy', got {axes!r}"
            )

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        E, s, bias = successive_turns(self.axes, q, qd)
        S = Motion(s, np.zeros((3, 2), dtype=int))
        return rot(E), S, S @ qd, Motion(bias, ZERO3)

    def constraint_subspace(self, q: Array) -> Force:
        return _across(*self.motion_subspace(q).angular.T)

    def loop_subspace(self, X: "Plucker") -> Force:
        i, j, _, _ = self._indices()
        return _across(X.E[:, i], identity3()[j])

    def active_subspace(self, q: Array) -> Force:
        S = self.motion_subspace(q)  # two perpendicular unit vectors
        return Force(S.angular, S.linear)

    def coordinates(self, X: "Plucker") -> Array:
        i, j, k, sign = self._indices()
        # Each axis, relative to the other frame, keeps to a plane: also far from the manifold.
        first = atan2(sign * X.E[j, k], X.E[j, j])
        second = atan2(sign * X.E[k, i], X.E[i, i])
        return np.array([first, second])

    def loop_error(self, X: "Plucker") -> Array:
        i, j, _, _ = self._indices()
        return np.array([X.E[j, i], *(X.E @ X.r)])

    loop_gap = loop_error

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return point_mass(inertia)

    def random(self, rng: np.random.Generator) -> Array:
        return rng.uniform(-np.pi, np.pi, 2)

    def _indices(self):
        """Numbers of the two axes and of the third, and whether they are in cyclic order."""
        i, j = ("xyz".index(axis) for axis in self.axes)
        return i, j, 3 - i - j, 1 if (j - i) % 3 == 1 else -1


def _across(first, second):
    """The moment about the axis that the cross lacks, and all forces."""
    x, y, z = identity3()
    return forces((cross(second, first), ZERO3), (ZERO3, x), (ZERO3, y), (ZERO3, z))
