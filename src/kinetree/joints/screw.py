"""Screw joint: one freedom along any twist — Lynch & Park (9.35)–(9.38)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import JointError
from kinetree.joints.axis import AnyAxis, as_axis, completed_basis
from kinetree.joints.base import AbstractJoint, with_fields
from kinetree.joints.helical import Helical
from kinetree.joints.prismatic import Prismatic
from kinetree.spatial import Inertia, Motion, xlt
from kinetree.spatial.vector3 import cross

if TYPE_CHECKING:
    from kinetree.spatial import Force, Plucker


@dataclass(frozen=True)
class Screw(AbstractJoint):
    """Moves along a constant twist: ``X_J = exp(S q)``, the factor of a product of exponentials.

    ``twist = (wx, wy, wz, vx, vy, vz)`` in the joint frame, angular part first, or a ``Motion``.
    It is scaled to ``|w| = 1``, and ``q`` is an angle [rad]; or to ``|v| = 1`` if ``w`` is zero,
    and ``q`` is a distance [m]. The axis need not pass through the joint frame; see ``about``.
    """

    twist: Any
    nq = nv = 1

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return (cls((0.6, 0.0, 0.8, 0.3, -0.2, 0.1)),)

    @classmethod
    def from_table(cls, table: Any) -> AbstractJoint:
        if table.choice("twist", "axis") == "twist":
            return super().from_table(table)
        point = table.numbers("point", 3, (0, 0, 0))
        return cls.about(table.axis(), point, table.number("pitch", 0.0, infinite=True))

    def __post_init__(self):
        twist = self.twist.to_array() if isinstance(self.twist, Motion) else self.twist
        try:
            s = np.asarray(twist, dtype=float)
        except (TypeError, ValueError):
            s = np.zeros(0)
        if s.shape != (6,) or not np.all(np.isfinite(s)) or not np.any(s):
            raise JointError(
                f"screw twist must be six finite numbers, not all zero, got {self.twist!r}"
            )
        size = np.linalg.norm(s[:3]) or np.linalg.norm(s[3:])
        object.__setattr__(self, "twist", tuple(float(x) for x in s / size))
        object.__setattr__(self, "angles", self._resolved()[0].angles)

    @classmethod
    def about(cls, axis: ArrayLike, point: ArrayLike = (0, 0, 0), pitch: float = 0.0) -> "Screw":
        """About an axis through a point [m] with a pitch [m/rad]; infinite pitch: along it."""
        a, p = np.array(as_axis(axis, "screw axis")), np.array(point)
        if np.isinf(pitch):
            return cls((0, 0, 0, *a))
        return cls((*a, *(pitch * a - cross(a, p))))

    def parameters(self) -> tuple:
        inner, to_point = self._resolved()
        first = () if isinstance(inner, Prismatic) else (*self.twist[:3], *to_point.r, inner.pitch)
        axis = inner.axis
        return (*first, *self.twist[3:], *completed_basis(axis)[0])

    def with_parameters(self, values: Any) -> AbstractJoint:
        *values, ux, uy, uz = values
        w = tuple(values[:3]) if len(values) > 3 else (0, 0, 0)
        v = tuple(values[-3:])
        made = with_fields(self, twist=(*w, *v))
        if len(values) == 3:
            inner = with_fields(Prismatic(), axis=AnyAxis((*v, ux, uy, uz)))
            return with_fields(made, resolved=(inner, xlt(0, 0, 0)))
        helix = Helical(pitch=1.0)
        inner = with_fields(helix, axis=AnyAxis((*w, ux, uy, uz)), pitch=values[6])
        return with_fields(made, resolved=(inner, xlt(np.array(values[3:6]))))

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        inner, to_point = self._resolved()
        X_J = to_point.inverse() @ inner.transform(q) @ to_point
        S = Motion.from_array(np.array(self.twist)[:, None])
        return X_J, S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        inner, to_point = self._resolved()
        return to_point.T @ inner.constraint_subspace(q)

    def active_subspace(self, q: Array) -> "Force":
        inner, to_point = self._resolved()
        return to_point.T @ inner.active_subspace(q)

    def coordinates(self, X: "Plucker") -> Array:
        inner, to_point = self._resolved()
        return inner.coordinates(to_point @ X @ to_point.inverse())

    def movable_inertia(self, inertia: Inertia) -> Inertia | None:
        inner, to_point = self._resolved()
        return to_point.inv_apply(inner.movable_inertia(to_point.apply(inertia)))

    def random(self, rng: np.random.Generator) -> Array:
        return self._resolved()[0].random(rng)

    def _resolved(self):
        """A joint whose axis passes through its frame, and the transform to that frame."""
        if "resolved" in self.__dict__:  # by numbers that may be traced
            return self.__dict__["resolved"]
        w, v = np.array(self.twist[:3]), np.array(self.twist[3:])
        if not np.any(w):
            return Prismatic(self.twist[3:]), xlt(0, 0, 0)
        pitch = float(w @ v)
        if abs(pitch) <= 8 * np.finfo(float).eps * np.max(np.abs(v)):
            pitch = 0  # the rounding error of a revolute joint, not a very fine thread
        return Helical(self.twist[:3], pitch=pitch), xlt(cross(w, v))
