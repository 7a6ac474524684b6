"""Fixed joint: no freedom — RBDA §3.5."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import ModelError
from kinetree.joints.base import AbstractJoint, unit_forces, unit_motions
from kinetree.spatial import Motion, Plucker, displacement_velocity

if TYPE_CHECKING:
    from kinetree.spatial import Force, Inertia


class Motionless(AbstractJoint):
    """A joint without variables."""

    nq = nv = 0

    @property
    def moves_by_itself(self) -> bool:
        return False

    def jcalc(self, q: Array, qd: Array) -> tuple[Plucker, Motion, Motion, Motion]:
        return Plucker.identity(), unit_motions(), Motion.zero(), Motion.zero()

    def constraint_subspace(self, q: Array) -> "Force":
        return unit_forces(1, 2, 3, 4, 5, 6)

    def active_subspace(self, q: Array) -> "Force":
        return unit_forces()

    def coordinates(self, X: Plucker) -> Array:
        return np.zeros(0)

    def loop_error(self, X: Plucker) -> Array:
        return displacement_velocity(X).to_array()  # RBDA Table 8.1

    def loop_alignment(self, X: Plucker) -> Any:
        return X.E[0, 0] + X.E[1, 1] + X.E[2, 2] - 1

    def movable_inertia(self, inertia: "Inertia") -> "Inertia | None":
        return inertia


@dataclass(frozen=True)
class Fixed(Motionless):
    """Welds two bodies together."""


@dataclass(frozen=True)
class Following(Motionless):
    """The place of a joint that has no independent variables, as another leads it.

    It stands in ``model.joint`` of a model with couplings and has no motion to compute: that is up
    to the joint itself, in ``model.uncoupled``.
    """

    joint: AbstractJoint

    def jcalc(self, q, qd):
        """Raise an error: the position of a coupled joint is that of its leaders."""
        raise ModelError(
            "this joint follows others and its position is not among the variables of the model; "
            "algorithms for single joints take model.uncoupled and model.expand(q)"
        )
