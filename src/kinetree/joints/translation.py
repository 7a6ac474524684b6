"""Translation joint: three perpendicular sliders in one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kinetree.arrays.kinds import Array
from kinetree.joints.base import AbstractJoint, unit_forces, unit_motions
from kinetree.spatial import Inertia, Motion, displacement_velocity, xlt

if TYPE_CHECKING:
    from kinetree.spatial import Force, Plucker


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
