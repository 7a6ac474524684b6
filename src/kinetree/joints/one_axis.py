"""Joints about and along one axis — RBDA Table 4.1.

Revolute (hinge), prismatic (slider), helical (nut and bolt; 6-D guide 2, Fig. 4) and cylindrical
joints have their axis in the joint frame; that of a screw joint, one freedom along any twist, may
be anywhere — Lynch & Park (9.35)-(9.38). Translation is three sliders in one.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import JointError
from kinetree.joints.axis import (
    AnyAxis,
    as_axis,
    axis_angle,
    axis_offset,
    axis_parameters,
    axis_rotation,
    axis_shift,
    axis_tilt,
    axis_with,
    completed_basis,
    forces,
    mass_on,
    motions,
    rod_along,
)
from kinetree.joints.base import AbstractJoint, as_number, unit_forces, unit_motions, with_fields
from kinetree.spatial import Inertia, Motion, Plucker, displacement_velocity, rot, xlt
from kinetree.spatial.vector3 import ZERO3, cross, identity3

if TYPE_CHECKING:
    from kinetree.spatial import Force


@dataclass(frozen=True)
class AxialJoint(AbstractJoint):
    """A joint with an axis through its frame: a vector, or ``"x"``, ``"-y"`` and so on."""

    axis: tuple | str = (0, 0, 1)
    axis_role = "joint axis"  # what messages call it

    def __post_init__(self):
        object.__setattr__(self, "axis", as_axis(self.axis, self.axis_role))

    def parameters(self) -> tuple:
        return axis_parameters(self.axis)

    def with_parameters(self, values: Any) -> AbstractJoint:
        return with_fields(self, axis=axis_with(self.axis, values))


@dataclass(frozen=True)
class Revolute(AxialJoint):
    """Turns about an axis through the joint frame; ``q`` is the angle [rad]."""

    nq = nv = 1
    angles = (0,)
    symbol = "R"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return tuple(cls(axis) for axis in ("x", "y", "z", "-y", (1.0, 2.0, -3.0)))

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        S = motions((np.array(self.axis), ZERO3))
        return rot(axis_rotation(self.axis, q[0])), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        a, (u, v) = np.array(self.axis), completed_basis(self.axis)
        return forces((u, ZERO3), (v, ZERO3), (ZERO3, u), (ZERO3, v), (ZERO3, a))

    def active_subspace(self, q: Array) -> "Force":
        return forces((np.array(self.axis), ZERO3))

    def coordinates(self, X: "Plucker") -> Array:
        return np.array([axis_angle(self.axis, X.E)])

    def loop_error(self, X: "Plucker") -> Array:
        frame = (*completed_basis(self.axis), np.array(self.axis))
        errors = [*axis_tilt(X, frame), *axis_offset(X, frame), axis_shift(X, frame)]
        return np.array(errors)  # RBDA Table 8.1

    def loop_alignment(self, X: "Plucker") -> Any:
        return np.array(self.axis) @ X.E @ np.array(self.axis)

    def random(self, rng: "np.random.Generator") -> Array:
        return rng.uniform(-np.pi, np.pi, 1)

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return mass_on(self.axis, inertia)


@dataclass(frozen=True)
class Prismatic(AxialJoint):
    """Slides along an axis of the joint frame; ``q`` is the distance [m]."""

    nq = nv = 1
    symbol = "P"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return tuple(cls(axis) for axis in ("x", "-y", "z", (2.0, -1.0, 2.0)))

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        """Transform, motion subspace, velocity and velocity product."""
        a = np.array(self.axis)
        S = motions((ZERO3, a))
        return xlt(a * q[0]), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        u, v = completed_basis(self.axis)
        x, y, z = identity3()
        return forces((x, ZERO3), (y, ZERO3), (z, ZERO3), (ZERO3, u), (ZERO3, v))

    def active_subspace(self, q: Array) -> "Force":
        return forces((ZERO3, np.array(self.axis)))

    def coordinates(self, X: "Plucker") -> Array:
        return np.array([np.array(self.axis) @ X.r])

    def loop_error(self, X: "Plucker") -> Array:
        frame = (*completed_basis(self.axis), np.array(self.axis))
        turn = displacement_velocity(X).angular
        return np.concatenate([turn, axis_offset(X, frame)])  # RBDA Table 8.1

    def loop_alignment(self, X: "Plucker") -> Any:
        return X.E[0, 0] + X.E[1, 1] + X.E[2, 2] - 1

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return Inertia(0, 0 * inertia.first_moment, inertia.rotational)  # resistance to turning


# --- Translation joint: three perpendicular sliders in one ---------------------------------------


@dataclass(frozen=True)
class Translation(AbstractJoint):
    """Moves without turning; ``q = (x, y, z)`` [m]."""

    nq = nv = 3
    position_parts = velocity_parts = ("x", "y", "z")

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        S = unit_motions(4, 5, 6)
        return xlt(q), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        return unit_forces(1, 2, 3)

    def active_subspace(self, q: Array) -> "Force":
        return unit_forces(4, 5, 6)

    def coordinates(self, X: "Plucker") -> Array:
        return X.r

    def loop_error(self, X: "Plucker") -> Array:
        return displacement_velocity(X).angular

    def loop_alignment(self, X: "Plucker") -> Any:
        return X.E[0, 0] + X.E[1, 1] + X.E[2, 2] - 1

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return Inertia(0, 0 * inertia.first_moment, inertia.rotational)  # resistance to turning


@dataclass(frozen=True)
class Helical(AxialJoint):
    """Turns about an axis and moves along it by ``pitch`` [m/rad]; ``q`` is the angle [rad].

    A negative pitch is a left-handed thread; with pitch 0 it is a revolute joint.
    ``coordinates`` of a transform that is off by more than half a thread are those of the next.
    """

    pitch: float = field(kw_only=True)
    nq = nv = 1
    symbol = "H"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("z", pitch=0.1), cls((1.0, -1.0, 0.5), pitch=-0.2)

    def __post_init__(self):
        super().__post_init__()
        as_number(self.pitch, "pitch", " (a joint of infinite pitch is Prismatic)")
        if self.pitch == 0:
            object.__setattr__(self, "angles", (0,))

    def parameters(self) -> tuple:
        pitch = (self.pitch,) if self.pitch else ()  # without, it is another kind: see coordinates
        return (*axis_parameters(self.axis), *pitch)

    def with_parameters(self, values: Any) -> AbstractJoint:
        n = len(axis_parameters(self.axis))
        pitch = values[n] if len(values) > n else self.pitch
        return with_fields(self, axis=axis_with(self.axis, values[:n]), pitch=pitch)

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """Transform, motion subspace, velocity and velocity product."""
        a, h = np.array(self.axis), self.pitch
        S = motions((a, h * a))
        X_J = Plucker(axis_rotation(self.axis, q[0]), a * (h * q[0]))
        return X_J, S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        a, (u, v) = np.array(self.axis), completed_basis(self.axis)
        return forces((u, ZERO3), (v, ZERO3), (ZERO3, u), (ZERO3, v), (-self.pitch * a, a))

    def active_subspace(self, q: Array) -> "Force":
        return forces((np.array(self.axis), ZERO3))

    def coordinates(self, X: Plucker) -> Array:
        """Angle for a transform; whole turns are counted by the shift along the axis."""
        if self.pitch == 0:
            return np.array([axis_angle(self.axis, X.E)])
        # The shift counts whole turns, the rotation refines: a projection of the rest onto S.
        turns = np.array(self.axis) @ X.r / self.pitch
        rest = axis_angle(self.axis, X.E @ axis_rotation(self.axis, turns).T)
        return np.array([turns + rest / (1 + self.pitch * self.pitch)])

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return rod_along(self.axis, inertia) if self.pitch else mass_on(self.axis, inertia)

    def random(self, rng: "np.random.Generator") -> Array:
        return rng.uniform(-np.pi, np.pi, 1)


@dataclass(frozen=True)
class Cylindrical(AxialJoint):
    """Turns about an axis and slides along it; ``q = (angle [rad], distance [m])``."""

    nq = nv = 2
    position_parts = velocity_parts = ("angle", "distance")
    angles = (0,)
    symbol = "C"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("z"), cls((-1.0, 0.4, 2.0))

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        """Transform, motion subspace, velocity and velocity product."""
        a = np.array(self.axis)
        S = motions((a, ZERO3), (ZERO3, a))
        return Plucker(axis_rotation(self.axis, q[0]), a * q[1]), S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        u, v = completed_basis(self.axis)
        return forces((u, ZERO3), (v, ZERO3), (ZERO3, u), (ZERO3, v))

    def active_subspace(self, q: Array) -> "Force":
        a = np.array(self.axis)
        return forces((a, ZERO3), (ZERO3, a))

    def coordinates(self, X: Plucker) -> Array:
        return np.array([axis_angle(self.axis, X.E), np.array(self.axis) @ X.r])

    def loop_error(self, X: Plucker) -> Array:
        frame = (*completed_basis(self.axis), np.array(self.axis))
        return np.concatenate([axis_tilt(X, frame), axis_offset(X, frame)])  # RBDA Table 8.1

    def loop_alignment(self, X: Plucker) -> Any:
        return np.array(self.axis) @ X.E @ np.array(self.axis)

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return rod_along(self.axis, inertia)

    def random(self, rng: "np.random.Generator") -> Array:
        return np.array([rng.uniform(-np.pi, np.pi), rng.uniform(-1, 1)])


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
        object.__setattr__(self, "angles", self._resolve()[0].angles)

    @classmethod
    def about(cls, axis: ArrayLike, point: ArrayLike = (0, 0, 0), pitch: float = 0.0) -> "Screw":
        """Screw joint about an axis through a point [m] with a pitch [m/rad]; inf: prismatic."""
        a, p = np.array(as_axis(axis, "screw axis")), np.array(point)
        if np.isinf(pitch):
            return cls((0, 0, 0, *a))
        return cls((*a, *(pitch * a - cross(a, p))))

    def parameters(self) -> tuple:
        """Parameters of the joint: those of the axis, a point of it, and the pitch."""
        inner, to_point = self._resolve()
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
        """Transform, motion subspace, velocity and velocity product."""
        inner, to_point = self._resolve()
        X_J = to_point.inverse() @ inner.transform(q) @ to_point
        S = Motion.from_array(np.array(self.twist)[:, None])
        return X_J, S, S @ qd, Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        inner, to_point = self._resolve()
        return to_point.T @ inner.constraint_subspace(q)

    def active_subspace(self, q: Array) -> "Force":
        inner, to_point = self._resolve()
        return to_point.T @ inner.active_subspace(q)

    def coordinates(self, X: "Plucker") -> Array:
        inner, to_point = self._resolve()
        return inner.coordinates(to_point @ X @ to_point.inverse())

    def movable_inertia(self, inertia: Inertia) -> Inertia | None:
        inner, to_point = self._resolve()
        return to_point.inv_apply(inner.movable_inertia(to_point.apply(inertia)))

    def random(self, rng: "np.random.Generator") -> Array:
        return self._resolve()[0].random(rng)

    def _resolve(self):
        """Equal joint whose axis passes through its frame, and the transform to that frame."""
        if "resolved" in self.__dict__:  # by numbers that may be traced
            return self.__dict__["resolved"]
        w, v = np.array(self.twist[:3]), np.array(self.twist[3:])
        if not np.any(w):
            return Prismatic(self.twist[3:]), xlt(0, 0, 0)
        pitch = float(w @ v)
        if abs(pitch) <= 8 * np.finfo(float).eps * np.max(np.abs(v)):
            pitch = 0  # the rounding error of a revolute joint, not a very fine thread
        return Helical(self.twist[:3], pitch=pitch), xlt(cross(w, v))
