"""Dual bases of motion and force space, and linear maps between them — RBDA §2.1-2.6, §2.13.

A dyad ``a b·`` maps ``c`` to ``a (b·c)``; a dyadic is a sum of dyads. There are four kinds, by
what they take and what they return, and each has its own coordinate transform (Table 2.5):

    motion to motion  ``v×``   X A X⁻¹         force to force   ``v×*``  X* A X*⁻¹
    motion to force   ``I``    X* A X⁻¹        force to motion  ``Φ``    X A Xᵀ

The first two are similarity transforms (they keep eigenvalues), the others congruences (they keep
symmetry and definiteness).

Six independent motions ``d_i`` have exactly one set of forces ``e_i`` with ``d_i·e_j = δ_ij``, and
the coordinates of a vector are its scalar products with the opposite set. The bases of a Cartesian
frame give Plücker coordinates. Inverting a basis uses a dense solver, so numbers only.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ModelError, ShapeError, SingularError, SpatialTypeError
from kinetree.spatial.inertia import Inertia
from kinetree.spatial.transform import xlt
from kinetree.spatial.vector import Force, Motion

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


_DUAL = {Motion: Force, Force: Motion}


@dataclass(frozen=True, eq=False)
class Dyadic:
    """A 6×6 matrix with the kinds of vectors that it maps from and to.

    Attributes:
        matrix: in dual coordinates (6, 6).
        domain: ``Motion`` or ``Force``, what it acts on.
        codomain: ``Motion`` or ``Force``, what it returns.
    """

    matrix: np.ndarray
    domain: type
    codomain: type

    __array_ufunc__ = None

    def __post_init__(self):
        if np.shape(self.matrix) != (6, 6):
            raise ShapeError(f"a dyadic is a 6x6 matrix, got shape {np.shape(self.matrix)}")
        if self.domain not in _DUAL or self.codomain not in _DUAL:
            raise SpatialTypeError("a dyadic maps Motion or Force to Motion or Force")

    @classmethod
    def from_dyads(cls, a: Any, b: Any) -> "Dyadic":
        """Dyadic ``Σ a_i b_i·`` of paired columns, which acts on the dual of ``b``'s space."""
        a_, b_ = (x.to_array().reshape(6, -1) for x in (a, b))
        if a_.shape != b_.shape:
            raise ShapeError(f"dyads pair columns one to one, got {a_.shape[1]} and {b_.shape[1]}")
        return cls(a_ @ b_.T, _DUAL[type(b)], type(a))

    def to_matrix(self) -> Array:
        """Dense 6×6 matrix of the dyadic."""
        return self.matrix

    def __matmul__(self, x):
        if isinstance(x, Dyadic):
            self._require(x.codomain)
            return Dyadic(self.matrix @ x.matrix, x.domain, self.codomain)
        self._require(type(x))
        return self.codomain.from_array(self.matrix @ x.to_array())

    def __add__(self, other):
        if not isinstance(other, Dyadic) or _kind(other) != _kind(self):
            what = _kind(other) if isinstance(other, Dyadic) else type(other).__name__
            raise SpatialTypeError(f"cannot add {what} to a dyadic of kind {_kind(self)}")
        return Dyadic(self.matrix + other.matrix, self.domain, self.codomain)

    def __mul__(self, k):
        return Dyadic(self.matrix * k, self.domain, self.codomain)

    __rmul__ = __mul__

    def transformed(self, X: "Plucker") -> "Dyadic":
        """Dyadic in new coordinates — RBDA Table 2.5."""
        left = _matrix(X, self.codomain)
        right = _matrix(X, _DUAL[self.domain]).T  # inverse of the domain's own transform
        return Dyadic(left @ self.matrix @ right, self.domain, self.codomain)

    def inverse_transformed(self, X: "Plucker") -> "Dyadic":
        """Dyadic in the old coordinates."""
        return self.transformed(X.inverse())

    def _require(self, kind):
        """Raise an error unless vectors belong to the dyadic's domain."""
        if kind is not self.domain:
            raise SpatialTypeError(f"a dyadic of kind {_kind(self)} acts on no {kind.__name__}")


def _kind(d):
    """Spaces that a dyadic maps between, in words."""
    return f"{d.domain.__name__} to {d.codomain.__name__}"


def _matrix(X, kind):
    """6×6 matrix of a transform, for motions or for forces."""
    return X.to_matrix() if kind is Motion else X.to_force_matrix()


def inertia_dyads(I: Inertia) -> "Dyadic":
    """Six force vectors ``g_i``, as columns, with ``I = Σ g_i g_i·`` — RBDA (2.64).

    The first three belong to the principal axes of inertia at the mass centre, the others to its
    linear motion along the coordinate axes. Uses an eigenvalue solver, so numbers only.
    """
    if not isinstance(I, Inertia):
        raise SpatialTypeError(f"inertia_dyads needs an Inertia, got {type(I).__name__}")
    moments, axes = np.linalg.eigh(I.rotational_at_center)
    rounding = 64 * np.finfo(float).eps * np.max(np.abs(I.rotational))
    if I.mass < 0 or moments[0] < -rounding:
        raise ModelError(
            f"an inertia that is not positive is not a sum of dyads: mass {I.mass:.6g} kg, "
            f"principal moments {moments.tolist()} kg m²"
        )
    O = np.zeros((3, 3))
    at_center = Force(
        np.hstack([axes * np.sqrt(np.maximum(moments, 0)), O]),
        np.hstack([O, np.sqrt(I.mass) * np.eye(3)]),
    )
    return xlt(I.center_of_mass).T @ at_center


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
        """Dual bases whose motion basis is six given independent motions."""
        return cls(D, reciprocal(D))

    @classmethod
    def from_forces(cls, E: Force) -> "DualBasis":
        """Dual bases whose force basis is six given independent forces."""
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
        """Motion with the given coordinates in this basis."""
        return self.motions @ np.asarray(coordinates)

    def force(self, coordinates: ArrayLike) -> Force:
        """Force with the given coordinates in this basis."""
        return self.forces @ np.asarray(coordinates)

    def transform_to(self, other: Any) -> Array:
        """Matrix from motion coordinates in this basis to ``other``; ``X⁻ᵀ`` for forces."""
        return other.forces.T @ self.motions


def reciprocal(basis):
    """Reciprocal basis of the dual space, ``d_i·e_j = δ_ij``, from motions or forces."""
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
