"""A joint with predecessor and successor exchanged — RBDA §4.4, Table 4.2."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import JointError
from kinetree.joints.base import AbstractJoint, with_fields
from kinetree.joints.free import Free
from kinetree.joints.planar import Planar
from kinetree.joints.rack_and_pinion import RackAndPinion
from kinetree.joints.spherical import Spherical
from kinetree.spatial import Motion

if TYPE_CHECKING:
    from kinetree.spatial import Force, Inertia, Plucker


@dataclass(frozen=True)
class Reversed(AbstractJoint):
    """The same joint from its other side, with the same variables.

    Needed where an asymmetrical joint, such as a rack and pinion, sits in a tree the wrong way
    round. The table prints a motion transform for ``T``; forces need ``X*``.
    """

    joint: AbstractJoint

    @classmethod
    def examples(cls) -> tuple[AbstractJoint, ...]:
        return tuple(map(cls, (RackAndPinion(0.2), Planar("y"), Spherical(), Free())))

    def __post_init__(self):
        if not isinstance(self.joint, AbstractJoint):
            raise JointError(f"Reversed needs a joint such as Revolute('z'), got {self.joint!r}")
        constant = self.joint.constant_subspace and _freedoms_commute(self.joint)
        for name, value in (
            ("nq", self.joint.nq),
            ("nv", self.joint.nv),
            ("constant_subspace", constant),
            ("rates_are_velocities", self.joint.rates_are_velocities),
            ("position_parts", self.joint.position_parts),
            ("velocity_parts", self.joint.velocity_parts),
            ("unit_parts", self.joint.unit_parts),
            ("angles", self.joint.angles),
            ("turns_over", self.joint.turns_over),
        ):
            object.__setattr__(self, name, value)

    def parameters(self) -> tuple:
        return self.joint.parameters()

    def with_parameters(self, values: Any) -> AbstractJoint:
        return with_fields(self, joint=self.joint.with_parameters(values))

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        X_J, S, v_J, c_J = self.joint.jcalc(q, qd)
        back = X_J.inverse()
        return back, -(back @ S), -(back @ v_J), -(back @ c_J)

    def constraint_subspace(self, q: Array) -> "Force":
        return -(self.joint.transform(q).T @ self.joint.constraint_subspace(q))

    def loop_subspace(self, X: "Plucker") -> "Force":
        back = X.inverse()
        return -(back.T @ self.joint.loop_subspace(back))

    def active_subspace(self, q: Array) -> "Force":
        return -(self.joint.transform(q).T @ self.joint.active_subspace(q))

    def coordinates(self, X: "Plucker") -> Array:
        return self.joint.coordinates(X.inverse())

    def loop_error(self, X: "Plucker") -> Array:
        return self.joint.loop_error(X.inverse())

    def loop_alignment(self, X: "Plucker") -> Any:
        return self.joint.loop_alignment(X.inverse())

    def configuration_rate(self, q: Array, qd: Array) -> Array:
        return self.joint.configuration_rate(q, qd)

    @property
    def bracket(self) -> Any:
        return self.joint.bracket

    def position_units(self) -> list[str]:
        return self.joint.position_units()

    def velocity_units(self) -> list[str]:
        return self.joint.velocity_units()

    def integrate(self, q: Array, dv: Array) -> Array:
        return self.joint.integrate(q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        return self.joint.difference(q0, q1)

    def neutral(self) -> Array:
        return self.joint.neutral()

    def random(self, rng: np.random.Generator) -> Array:
        return self.joint.random(rng)

    def movable_inertia(self, inertia: "Inertia") -> "Inertia | None":
        return self.joint.movable_inertia(inertia)  # looks the same from both sides

    def reparameterize(self, q: Array, qd: Array, near: Array | None = None) -> tuple[Array, Array]:
        return self.joint.reparameterize(q, qd, near)

    @property
    def may_be_singular(self) -> bool:
        return self.joint.may_be_singular

    def singularity(self, q: Array) -> Any:
        return self.joint.singularity(q)

    def at(self, t: Any) -> AbstractJoint:
        return Reversed(self.joint.at(t))


def _freedoms_commute(joint):
    """Whether motions of the joint leave a constant ``S`` unchanged: ``S_i × S_j = 0``."""
    if joint.nv < 2:
        return True
    S = joint.motion_subspace(joint.neutral())
    columns = [Motion(S.angular[:, k], S.linear[:, k]) for k in range(joint.nv)]
    return all(not np.any(a.cross(b).to_array()) for a, b in combinations(columns, 2))
