"""Joints whose motion is a given function of time — RBDA §3.5, (3.32), (3.41), §5.3."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import JointError
from kinetree.joints.base import AbstractJoint, unit_forces, unit_motions, with_fields

if TYPE_CHECKING:
    from kinetree.spatial import Motion, Plucker


class _WithoutFreedom(AbstractJoint):
    """Base of both: no variables, six constraint forces."""

    nq = nv = 0

    @classmethod
    def examples(cls):
        return ()

    @property
    def moves_by_itself(self) -> bool:
        return True

    def constraint_subspace(self, q):
        return unit_forces(1, 2, 3, 4, 5, 6)

    def active_subspace(self, q):
        return unit_forces()

    def coordinates(self, X):
        return np.zeros(0)


@dataclass(frozen=True)
class Prescribed(_WithoutFreedom):
    """A joint whose motion is prescribed, by the function ``motion``.

    ``motion(t)`` returns position, velocity and acceleration variables ``(q, qd, qdd)`` of
    ``joint`` at time ``t`` [s]. All computation is done on ``at(t)``, an ordinary joint without
    variables whose ``v_J`` and ``c_J`` carry the motion.
    """

    joint: AbstractJoint
    motion: Callable

    @classmethod
    def from_table(cls, table: Any) -> AbstractJoint:
        joint = table.joint()
        return cls(joint, table.motion_formulas(joint))

    def __post_init__(self):
        if not isinstance(self.joint, AbstractJoint):
            raise JointError(f"Prescribed needs a joint such as Revolute('z'), got {self.joint!r}")
        if not callable(self.motion):
            raise JointError(
                f"Prescribed needs a function motion(t) -> (q, qd, qdd), got {self.motion!r}"
            )

    def at(self, t: Any) -> AbstractJoint:
        """Joint at time ``t`` [s], with prescribed position, velocity and acceleration."""
        values = self.motion(t)
        sizes = (self.joint.nq, self.joint.nv, self.joint.nv)
        what = f"motion of the prescribed {type(self.joint).__name__} joint"
        if not isinstance(values, (tuple, list, np.ndarray)):
            raise JointError(f"{what} must return (q, qd, qdd), got {values!r} at t = {t}")
        shapes = tuple(np.shape(value) for value in values)
        if shapes != tuple((n,) for n in sizes):
            raise JointError(
                f"{what} must return (q, qd, qdd) of lengths {sizes}, got shapes {shapes}"
            )
        for value in map(np.asarray, values):
            if value.dtype != object and not np.all(np.isfinite(value)):
                raise JointError(f"{what} must be finite, got {value.tolist()} at t = {t}")
        return PrescribedInstant(self.joint, *(tuple(value) for value in values))

    def jcalc(self, q: Array, qd: Array) -> "tuple[Plucker, Motion, Motion, Motion]":
        """Raise an error: the joint depends on time, so take ``model.at(t)``."""
        raise JointError(
            "a prescribed joint depends on time: use joint.at(t), in a model "
            "model.replace(joint={name: joint.at(t)})"
        )


@dataclass(frozen=True)
class PrescribedInstant(_WithoutFreedom):
    """A prescribed joint at one instant: ``v_J = σ`` and ``c_J = σ°`` as given."""

    joint: AbstractJoint
    q: tuple
    qd: tuple
    qdd: tuple

    @classmethod
    def from_table(cls, table):
        joint = table.joint()
        sizes = {"q": joint.nq, "qd": joint.nv, "qdd": joint.nv}
        return cls(joint, *(table.numbers(name, size) for name, size in sizes.items()))

    def parameters(self) -> tuple:
        return (*self.q, *self.qd, *self.qdd, *self.joint.parameters())

    def with_parameters(self, values: Any) -> AbstractJoint:
        nq, nv = len(self.q), len(self.qd)
        q, qd, qdd = (tuple(part) for part in np.split(values[: nq + 2 * nv], [nq, nq + nv]))
        joint = self.joint.with_parameters(values[nq + 2 * nv :])
        return with_fields(self, joint=joint, q=q, qd=qd, qdd=qdd)

    def jcalc(self, q, qd):
        X_J, S, v_J, c_J = self.joint.jcalc(np.array(self.q), np.array(self.qd))
        return X_J, unit_motions(), v_J, c_J + S @ np.array(self.qdd)
