"""Articulated-body inertias in compact form, and inverse inertias — RBDA §7.1, Tables A.3, A.4.

The inverse inertia gives acceleration from force, ``a = Φ f + b`` — RBDA §2.15. It exists for every
body that can move, also for one that is constrained: then it is singular and its range is the
motion the constraint allows, while the inertia does not exist.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.spatial.arithmetic import rotate_general, rotate_symmetric
from kinetree.spatial.inertia import Inertia, as_matrix6, require_factor, require_motion
from kinetree.spatial.ops import check_pivot, magnitude
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import (
    as_vector3,
    cross,
    identity3,
    skew,
    symmetric,
    symmetric_product,
)

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
        """Articulated-body inertia of a single rigid body."""
        return cls(I.rotational, skew(I.first_moment), I.mass * identity3())

    @classmethod
    def from_matrix(cls, I: ArrayLike) -> "ArticulatedInertia":
        """Articulated-body inertia from a dense symmetric 6×6 matrix."""
        I = as_matrix6(I)
        return cls(I[:3, :3], I[:3, 3:], I[3:, 3:])

    def to_matrix(self) -> Array:
        """Dense symmetric 6×6 matrix of the inertia."""
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
        """Inertia in new coordinates, ``X* Iᴬ X⁻¹``: 137m + 137a."""
        E, r = X.E, X.r
        Y = self.H - cross(r, self.M)
        Z = self.I + _shift(r, self.H, Y)
        return ArticulatedInertia(
            rotate_symmetric(E, Z), rotate_general(E, Y), rotate_symmetric(E, self.M)
        )

    def inverse_transformed(self, X: "Plucker") -> "ArticulatedInertia":
        """Inertia in the old coordinates, ``Xᵀ Iᴬ X``: 137m + 137a."""
        Et, r = X.E.T, X.r
        M, H = rotate_symmetric(Et, self.M), rotate_general(Et, self.H)
        Y = H + cross(r, M)
        return ArticulatedInertia(rotate_symmetric(Et, self.I) - _shift(r, H, Y), Y, M)

    def arrays(self) -> list[Array]:
        """Arrays that the inertia consists of, for tables of recorded loops."""
        lower = np.tril_indices(3)
        return [self.I[lower], self.H, self.M[lower]]

    def like(self, arrays: list[Array]) -> "ArticulatedInertia":
        """Articulated-body inertia made of other arrays."""
        I, H, M = arrays
        return ArticulatedInertia(symmetric(*I), H, symmetric(*M))

    def __repr__(self):
        return f"ArticulatedInertia({self.to_matrix().tolist()})"


def dyadic(F: Force, A: Any) -> "ArticulatedInertia":
    """Product ``F A Fᵀ`` of force columns and a symmetric matrix, as inertia — RBDA (2.64).

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
    """Symmetric matrix ``-r× Hᵀ + Y r×`` with ``Y = H - r× M``: 24m + 18a."""

    def entry(i, j):
        i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
        return (r[i2] * H[j, i1] - r[i1] * H[j, i2]) + (Y[i, j1] * r[j2] - Y[i, j2] * r[j1])

    return symmetric(*(entry(i, j) for i in range(3) for j in range(i + 1)))


def _require_articulated(x):
    """Raise an error for a value that cannot be added to an articulated-body inertia."""
    if not isinstance(x, ArticulatedInertia):
        raise SpatialTypeError(f"cannot add {type(x).__name__} to an inertia")


class InverseInertia:
    """``Φ = [[angular, coupling], [couplingᵀ, linear]]``: maps a ``Force`` to a ``Motion``."""

    __slots__ = ("angular", "coupling", "linear")
    __array_ufunc__ = None

    def __init__(self, angular: ArrayLike, coupling: ArrayLike, linear: ArrayLike):
        self.angular = np.asarray(angular)
        self.coupling = np.asarray(coupling)
        self.linear = np.asarray(linear)

    @classmethod
    def from_mass_center(cls, m: Any, c: ArrayLike, I_C: ArrayLike) -> "InverseInertia":
        """Inverse inertia of a free body from mass, centre, inertia — RBDA (2.73), (2.74).

        Args:
            m: mass.
            c: mass centre, (3,).
            I_C: rotational inertia about it, (3, 3).
        """
        J, C = _inverse(np.asarray(I_C)), skew(as_vector3(c, "the mass centre"))
        m = check_pivot(m, 0, lambda: f"a body of mass {m} has no inverse inertia")
        JC = J @ C.T
        return cls(J, JC, identity3() / m + C @ JC)

    @classmethod
    def from_inertia(cls, I: "Inertia") -> "InverseInertia":
        """Inverse inertia of a free body with inertia ``I``, without inverting a 6×6 matrix."""
        return cls.from_mass_center(I.mass, I.center_of_mass, I.rotational_at_center)

    @classmethod
    def from_motions(cls, S: Motion, A: Any) -> "InverseInertia":
        """Inverse inertia ``S A Sᵀ`` of motion columns and a symmetric matrix — RBDA (3.54).

        With ``A = (Sᵀ I S)⁻¹`` it belongs to a body that may only move along ``S``.
        """
        if not isinstance(S, Motion):
            raise SpatialTypeError(f"from_motions needs Motion columns, got {type(S).__name__}")
        wA, vA = S.angular @ A, S.linear @ A
        return cls(
            symmetric_product(wA, S.angular), wA @ S.linear.T, symmetric_product(vA, S.linear)
        )

    @classmethod
    def from_matrix(cls, Phi: ArrayLike) -> "InverseInertia":
        """Inverse inertia from a dense symmetric 6×6 matrix."""
        Phi = np.asarray(Phi)
        if Phi.shape != (6, 6):
            raise ShapeError(f"an inverse inertia is a 6x6 matrix, got shape {Phi.shape}")
        return cls(Phi[:3, :3], Phi[:3, 3:], Phi[3:, 3:])

    def to_matrix(self) -> Array:
        """Dense symmetric 6×6 matrix of the inverse inertia."""
        return np.block([[self.angular, self.coupling], [self.coupling.T, self.linear]])

    def __matmul__(self, f):
        if not isinstance(f, Force):
            raise SpatialTypeError(
                f"an inverse inertia acts on a Force, got {type(f).__name__}; forces come from "
                f"accelerations by an Inertia"
            )
        return Motion(
            self.angular @ f.angular + self.coupling @ f.linear,
            self.coupling.T @ f.angular + self.linear @ f.linear,
        )

    def __add__(self, other):
        if not isinstance(other, InverseInertia):
            raise SpatialTypeError(f"cannot add {type(other).__name__} to an inverse inertia")
        return InverseInertia(
            self.angular + other.angular, self.coupling + other.coupling, self.linear + other.linear
        )

    def __sub__(self, other):
        return self + other * -1

    def __mul__(self, k):
        return InverseInertia(self.angular * k, self.coupling * k, self.linear * k)

    __rmul__ = __mul__

    def transformed(self, X: "Plucker") -> "InverseInertia":
        """Inverse inertia in new coordinates, ``X Φ Xᵀ`` — RBDA Table 2.5."""
        return _unswap(self._swap().transformed(X))

    def inverse_transformed(self, X: "Plucker") -> "InverseInertia":
        """Inverse inertia in the old coordinates, ``X⁻¹ Φ X*``."""
        return _unswap(self._swap().inverse_transformed(X))

    def _swap(self):
        """Articulated inertia with angular and linear parts exchanged."""
        # Swapping the halves of all vectors turns X into X*, and Φ into something that transforms
        # like an inertia.
        return ArticulatedInertia(self.linear, self.coupling.T, self.angular)

    def __repr__(self):
        return f"InverseInertia({self.to_matrix().tolist()})"


def _unswap(I):
    """Inverse inertia from an inertia with exchanged parts."""
    return InverseInertia(I.M, I.H.T, I.I)


def _inverse(A):
    """Inverse of a symmetric positive-definite 3×3 matrix by LDLᵀ."""
    if A.shape != (3, 3):
        raise ShapeError(f"the rotational inertia must be a 3x3 matrix, got {A.shape}")

    def pivot(d, k):
        return check_pivot(d, magnitude(A[k, k]), lambda: _SINGULAR.format(A.tolist()))

    d0 = pivot(A[0, 0], 0)
    a, b = A[1, 0] / d0, A[2, 0] / d0
    d1 = pivot(A[1, 1] - a * A[1, 0], 1)
    c = (A[2, 1] - b * A[1, 0]) / d1
    d2 = pivot(A[2, 2] - b * A[2, 0] - c * c * d1, 2)
    W = np.array([[1, 0, 0], [-a, 1, 0], [a * c - b, -c, 1]])  # L⁻¹
    return symmetric_product(W.T / np.array([d0, d1, d2]), W.T)


_SINGULAR = (
    "the rotational inertia {} is singular, so some moment would cause infinite acceleration. "
    "A point or a thin rod has no inverse inertia; give it some extent"
)
