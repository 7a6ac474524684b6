"""Helical joint (screw, nut and bolt) — RBDA Table 4.1; 6-D guide 2, Fig. 4."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.joints.axis import (
    as_axis,
    axis_angle,
    axis_parameters,
    axis_rotation,
    axis_with,
    completed_basis,
    forces,
    mass_on,
    motions,
    rod_along,
)
from kinetree.joints.base import AbstractJoint, as_number, with_fields
from kinetree.spatial import Inertia, Motion, Plucker
from kinetree.spatial.vector3 import ZERO3

if TYPE_CHECKING:
    from kinetree.spatial import Force


@dataclass(frozen=True)
class Helical(AbstractJoint):
    """Turns about an axis and moves along it by ``pitch`` [m/rad]; ``q`` is the angle [rad].

    A negative pitch is a left-handed thread; with pitch 0 it is a revolute joint.
    ``coordinates`` of a transform that is off by more than half a thread are those of the next.
    """

    axis: tuple | str = (0, 0, 1)
    pitch: float = field(kw_only=True)
    nq = nv = 1
    symbol = "H"

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return cls("z", pitch=0.1), cls((1.0, -1.0, 0.5), pitch=-0.2)

    def __post_init__(self):
        object.__setattr__(self, "axis", as_axis(self.axis))
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
        if self.pitch == 0:
            return np.array([axis_angle(self.axis, X.E)])
        # The shift counts whole turns, the rotation refines: a projection of the rest onto S.
        turns = np.array(self.axis) @ X.r / self.pitch
        rest = axis_angle(self.axis, X.E @ axis_rotation(self.axis, turns).T)
        return np.array([turns + rest / (1 + self.pitch * self.pitch)])

    def movable_inertia(self, inertia: Inertia) -> Inertia:
        return rod_along(self.axis, inertia) if self.pitch else mass_on(self.axis, inertia)

    def random(self, rng: np.random.Generator) -> Array:
        return rng.uniform(-np.pi, np.pi, 1)
