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
    from kinetree.spatial import Force, Plucker


_VARIABLES = (
    "nq", "nv", "rates_are_velocities", "position_parts", "velocity_parts", "unit_parts", "angles",
    "turns_over",
)  # fmt: skip


def _of_joint(name) -> Any:
    """Property that returns the reversed joint's attribute of this name unchanged."""
    return property(lambda self: getattr(self.joint, name))


@dataclass(frozen=True)
class Reversed(AbstractJoint):
    """A joint seen from its other side, with the same variables.

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
        for name in _VARIABLES:
            object.__setattr__(self, name, getattr(self.joint, name))
        constant = self.joint.constant_subspace and _freedoms_commute(self.joint)
        object.__setattr__(self, "constant_subspace", constant)

    parameters = _of_joint("parameters")
    configuration_rate = _of_joint("configuration_rate")
    bracket = _of_joint("bracket")
    position_units = _of_joint("position_units")
    velocity_units = _of_joint("velocity_units")
    integrate = _of_joint("integrate")
    difference = _of_joint("difference")
    neutral = _of_joint("neutral")
    random = _of_joint("random")
    movable_inertia = _of_joint("movable_inertia")  # looks the same from both sides
    reparameterize = _of_joint("reparameterize")
    may_be_singular = _of_joint("may_be_singular")
    singularity = _of_joint("singularity")

    def with_parameters(self, values: Any) -> AbstractJoint:
        return with_fields(self, joint=self.joint.with_parameters(values))

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        """Transform, axes, velocity and velocity product with the joint's bodies exchanged."""
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

    def at(self, t: Any) -> AbstractJoint:
        return Reversed(self.joint.at(t))


def _freedoms_commute(joint):
    """Whether a joint's motions commute, ``S_i × S_j = 0``, so that ``S`` stays constant."""
    if joint.nv < 2:
        return True
    S = joint.motion_subspace(joint.neutral())
    columns = [Motion(S.angular[:, k], S.linear[:, k]) for k in range(joint.nv)]
    return all(not np.any(a.cross(b).to_array()) for a, b in combinations(columns, 2))
