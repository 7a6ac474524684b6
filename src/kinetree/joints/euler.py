"""Joints of successive turns: three Euler angles — RBDA §4.5, (4.7)-(4.9) — or two, the universal
joint (Hooke, Cardan) — tutorial Fig. 1, (52).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import JointError
from kinetree.joints.axis import forces
from kinetree.joints.base import AbstractJoint, point_mass
from kinetree.joints.spherical import BallJoint
from kinetree.spatial import Force, Inertia, Motion, rot
from kinetree.spatial.ops import absolute, atan2, cos, sin
from kinetree.spatial.rotation import check_euler_sequence, euler_angles
from kinetree.spatial.transform import rx, ry, rz
from kinetree.spatial.vector3 import ZERO3, cross, identity3

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


def successive_turns(axes, q, qd):
    """Rotation ``E``, axes and velocity product of a gimbal, in coordinates of the last frame.

    Args:
        axes: one letter for each turn.
        q: angles [rad].
        qd: their rates [rad/s].

    Returns:
        ``E``; a 3×n array whose column k maps the k-th rate to angular velocity — RBDA (4.8); and
        the angular acceleration at constant rates — RBDA (4.9).
    """
    E, s, w, bias = identity3(), [], ZERO3, ZERO3
    for axis, angle, rate in reversed(list(zip(axes, q, qd, strict=True))):
        k = "xyz".index(axis)
        s.insert(0, E[:, k])
        # Relative to the last frame, an axis turns against the turns that follow it.
        bias = bias - cross(w, s[0]) * rate
        w = w + s[0] * rate
        E = E @ (rx, ry, rz)[k](angle)
    return E, np.column_stack(s), bias


@dataclass(frozen=True)
class Euler(BallJoint):
    """Turns freely about a point; ``q`` holds three angles [rad], ``qd`` their rates.

    ``sequence`` names the axes of the turns, each carried along by those before: any of the
    twelve, ``"zyx"`` (yaw, pitch, roll) by default. With three different letters the joint is
    singular at second angles of ±90°; if the first letter comes back, as in ``"zxz"``, at 0° and
    180°, which includes the neutral position. There ``S`` loses rank and forward dynamics has no
    answer; nearby it is ill-conditioned. ``Spherical`` has no such place.
    """

    sequence: str = "zyx"
    nq = nv = 3
    angles = (0, 1, 2)
    constant_subspace = False

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("zyx"), cls("zxz")

    def __post_init__(self):
        check_euler_sequence(self.sequence)

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        """Transform, motion subspace, velocity and velocity product."""
        E, s, bias = successive_turns(self.sequence, q, qd)
        S = Motion(s, np.zeros((3, 3), dtype=int))
        return rot(E), S, S @ qd, Motion(bias, ZERO3)

    def active_subspace(self, q: Array) -> Force:
        a, b, c = self.motion_subspace(q).angular.T
        inverse = np.column_stack([cross(b, c), cross(c, a), cross(a, b)]) / (a @ cross(b, c))
        return Force(inverse, np.zeros((3, 3), dtype=int))

    def coordinates(self, X: "Plucker") -> Array:
        return euler_angles(self.sequence, X.E)

    def singularity(self, q: Array) -> Any:
        """``|det S|``: the cosine, or for sequences such as ``"zxz"`` sine, of the second angle."""
        return absolute(sin(q[1]) if self.sequence[0] == self.sequence[2] else cos(q[1]))

    def random(self, rng: "np.random.Generator") -> Array:
        """Random angles away from the singular ones."""
        middle = rng.uniform(-1.2, 1.2)
        if self.sequence[0] == self.sequence[2]:
            middle += np.pi / 2
        return np.array([rng.uniform(-np.pi, np.pi), middle, rng.uniform(-np.pi, np.pi)])


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
        """Transform, motion subspace, velocity and velocity product."""
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
        """Angles of a universal joint for a transform, or for the nearest possible one."""
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

    def random(self, rng: "np.random.Generator") -> Array:
        return rng.uniform(-np.pi, np.pi, 2)

    def _indices(self):
        """Indices of both axes and of the third one, and whether they are in cyclic order."""
        i, j = ("xyz".index(axis) for axis in self.axes)
        return i, j, 3 - i - j, 1 if (j - i) % 3 == 1 else -1


def _across(first, second):
    """Constraint forces of a universal joint: one moment and all linear forces."""
    x, y, z = identity3()
    return forces((cross(second, first), ZERO3), (ZERO3, x), (ZERO3, y), (ZERO3, z))
