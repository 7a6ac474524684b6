"""Dual bases of motion and force space — RBDA §2.1–2.4, §2.6.

Six independent motions ``d_i`` have exactly one set of forces ``e_i`` with ``d_i·e_j = δ_ij``, and
the coordinates of a vector are its scalar products with the opposite set. The bases of a Cartesian
frame give Plücker coordinates. Inverting a basis uses a dense solver, so numbers only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, SingularError, SpatialTypeError
from kinetree.spatial.vector import Force, Motion

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


@dataclass(frozen=True, eq=False)
class DualBasis:
    """Six motions and six forces with ``motions.T @ forces = 1``.

    Attributes:
        motions: the basis ``d_1 ... d_6`` of motion space, as columns.
        forces: the basis ``e_1 ... e_6`` of force space, as columns.
    """

    motions: Motion
    forces: Force

    @classmethod
    def from_motions(cls, D: Motion) -> "DualBasis":
        """From any six independent motions."""
        return cls(D, reciprocal(D))

    @classmethod
    def from_forces(cls, E: Force) -> "DualBasis":
        """From any six independent forces."""
        return cls(reciprocal(E), E)

    @classmethod
    def of_frame(cls, X: "Plucker") -> "DualBasis":
        """Plücker bases of frame B in A coordinates, for ``X`` from A to B — RBDA (2.2), (2.7).

        Unit rotations about and translations along the axes of B; unit couples about and unit
        forces along them.
        """
        one = np.eye(6, dtype=int)
        return cls(X.inv_apply(Motion.from_array(one)), X.T @ Force.from_array(one))

    def coordinates(self, x: Any) -> Array:
        """Coordinates of a motion or force in these bases, (6,) — RBDA §2.6."""
        if isinstance(x, Motion):
            return self.forces.T @ x
        if isinstance(x, Force):
            return self.motions.T @ x
        raise SpatialTypeError(f"coordinates of a Motion or a Force, got {type(x).__name__}")

    def motion(self, coordinates: ArrayLike) -> Motion:
        """The motion with these coordinates."""
        return self.motions @ np.asarray(coordinates)

    def force(self, coordinates: ArrayLike) -> Force:
        """The force with these coordinates."""
        return self.forces @ np.asarray(coordinates)

    def transform_to(self, other: Any) -> Array:
        """Matrix ``X`` that takes motion coordinates to the basis ``other``; ``X⁻ᵀ`` for forces."""
        return other.forces.T @ self.motions


def reciprocal(basis):
    """The only basis of the dual space with ``d_i·e_j = δ_ij``; of motions forces, and back."""
    dual = {Motion: Force, Force: Motion}.get(type(basis))
    if dual is None:
        raise SpatialTypeError(f"a basis is a Motion or a Force, got {type(basis).__name__}")
    B = basis.to_array()
    if B.shape != (6, 6):
        raise ShapeError(f"a basis has six vectors as columns, got shape {B.shape}")
    if np.linalg.matrix_rank(B) < 6:
        raise SingularError(
            f"these six vectors are dependent (rank {np.linalg.matrix_rank(B)}) and form no basis"
        )
    return dual.from_array(np.linalg.inv(B).T)
