"""Articulated-body inertias in compact form — RBDA §7.1, Tables A.3, A.4."""

from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import SpatialTypeError
from kinetree.spatial.arithmetic import rotate_general, rotate_symmetric
from kinetree.spatial.inertia import Inertia, as_matrix6, require_factor, require_motion
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import cross, identity3, skew, symmetric, symmetric_product

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


class ArticulatedInertia:
    """Apparent inertia of a handle, ``[[I, H], [Hᵀ, M]]``: 21 numbers, no mass centre.

    ``IA @ a`` is a force; ``IA @ v`` for a velocity has no meaning (RBDA §7.1).
    """

    __slots__ = ("H", "I", "M")
    __array_ufunc__ = None

    def __init__(self, I: ArrayLike, H: ArrayLike, M: ArrayLike):
        self.I, self.H, self.M = np.asarray(I), np.asarray(H), np.asarray(M)

    @classmethod
    def from_rigid(cls, I: Inertia) -> "ArticulatedInertia":
        """The articulated-body inertia of a body on its own."""
        return cls(I.rotational, skew(I.first_moment), I.mass * identity3())

    @classmethod
    def from_matrix(cls, I: ArrayLike) -> "ArticulatedInertia":
        """From a dense symmetric 6×6 matrix."""
        I = as_matrix6(I)
        return cls(I[:3, :3], I[:3, 3:], I[3:, 3:])

    def to_matrix(self) -> Array:
        """The dense symmetric 6×6 matrix."""
        return np.block([[self.I, self.H], [self.H.T, self.M]])

    def __add__(self, other):
        if isinstance(other, Inertia):
            m = other.mass
            M = self.M + np.array([[m, 0, 0], [0, m, 0], [0, 0, m]])
            return ArticulatedInertia(
                self.I + other.rotational, self.H + skew(other.first_moment), M
            )
        _require_articulated(other)
        return ArticulatedInertia(self.I + other.I, self.H + other.H, self.M + other.M)

    __radd__ = __add__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        if isinstance(other, Inertia):
            return self + (-other)
        _require_articulated(other)
        return ArticulatedInertia(self.I - other.I, self.H - other.H, self.M - other.M)

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, k):
        require_factor(k)
        return ArticulatedInertia(self.I * k, self.H * k, self.M * k)

    __rmul__ = __mul__

    def __matmul__(self, a):
        require_motion(a)
        w, v = a.angular, a.linear
        return Force(self.I @ w + self.H @ v, self.M @ v + self.H.T @ w)

    def transformed(self, X: "Plucker") -> "ArticulatedInertia":
        """``X* Iᴬ X⁻¹``: the same inertia in the new coordinates — 137m + 137a."""
        E, r = X.E, X.r
        Y = self.H - cross(r, self.M)
        Z = self.I + _shift(r, self.H, Y)
        return ArticulatedInertia(
            rotate_symmetric(E, Z), rotate_general(E, Y), rotate_symmetric(E, self.M)
        )

    def inverse_transformed(self, X: "Plucker") -> "ArticulatedInertia":
        """``Xᵀ Iᴬ X``: back to the old coordinates — 137m + 137a."""
        Et, r = X.E.T, X.r
        M, H = rotate_symmetric(Et, self.M), rotate_general(Et, self.H)
        Y = H + cross(r, M)
        return ArticulatedInertia(rotate_symmetric(Et, self.I) - _shift(r, H, Y), Y, M)

    def arrays(self) -> list[Array]:
        """What it consists of, for tables of recorded loops; ``like`` is the inverse."""
        lower = np.tril_indices(3)
        return [self.I[lower], self.H, self.M[lower]]

    def like(self, arrays: list[Array]) -> "ArticulatedInertia":
        """The same kind of value from other ``arrays``."""
        I, H, M = arrays
        return ArticulatedInertia(symmetric(*I), H, symmetric(*M))

    def __repr__(self):
        return f"ArticulatedInertia({self.to_matrix().tolist()})"


def dyadic(F: Force, A: Any) -> "ArticulatedInertia":
    """``F A Fᵀ`` for force columns ``F`` and a symmetric matrix ``A`` — RBDA (2.64).

    The result maps motions to forces, like an inertia. Dense arrays are taken as well.
    """
    if isinstance(F, np.ndarray):
        return F @ A @ F.T
    if isinstance(F, Motion):
        raise SpatialTypeError(
            "dyadic(F, A) needs force columns, got Motion; for motion columns S, "
            "InverseInertia.from_motions(S, A) is S A Sᵀ"
        )
    if not isinstance(F, Force):
        return F.dyadic(A)
    n, f = F.angular, F.linear
    nA, fA = n @ A, f @ A
    return ArticulatedInertia(symmetric_product(nA, n), nA @ f.T, symmetric_product(fA, f))


def _shift(r, H, Y):
    """``-r× Hᵀ + Y r×``, which is symmetric when ``Y = H - r× M``: 24m + 18a."""

    def entry(i, j):
        i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
        return (r[i2] * H[j, i1] - r[i1] * H[j, i2]) + (Y[i, j1] * r[j2] - Y[i, j2] * r[j1])

    return symmetric(*(entry(i, j) for i in range(3) for j in range(i + 1)))


def _require_articulated(x):
    if not isinstance(x, ArticulatedInertia):
        raise SpatialTypeError(f"cannot add {type(x).__name__} to an inertia")
