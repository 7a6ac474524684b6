"""Rigid-body and articulated-body inertias in compact form — RBDA §2.13, §7.1, Tables A.3, A.4."""

import numpy as np

from kinetree.errors import ModelError, ShapeError, SpatialTypeError
from kinetree.spatial.arithmetic import rotate_general, rotate_symmetric
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import ZERO3, as_vector3, cross, identity3, skew, symmetric

__all__ = ["ArticulatedInertia", "Inertia", "dyadic"]


class Inertia:
    """Inertia of a rigid body: mass, first moment ``h = m c``, rotational inertia about O.

    Build one with ``Inertia.from_mass_center(m, c, I_C)``; ``I @ v`` is the momentum.
    """

    __slots__ = ("first_moment", "mass", "rotational")
    __array_ufunc__ = None

    def __init__(self, mass, first_moment, rotational):
        self.mass = mass
        self.first_moment = np.asarray(first_moment)
        self.rotational = np.asarray(rotational)

    @classmethod
    def zero(cls):
        """A massless body."""
        return cls(0, ZERO3, np.zeros((3, 3), dtype=int))

    @classmethod
    def from_mass_center(cls, m, c, I_C):
        """From mass, mass centre and rotational inertia about it (``mcI``) — RBDA (2.63)."""
        c, I_C = as_vector3(c, "the mass centre"), np.asarray(I_C)
        if I_C.shape != (3, 3):
            raise ShapeError(f"the rotational inertia must be a 3x3 matrix, got {I_C.shape}")
        return cls(m, m * c, I_C - m * _skew_product(c, c))

    @classmethod
    def from_matrix(cls, I):
        """From a dense 6×6 rigid-body inertia."""
        I = np.asarray(I)
        if I.shape != (6, 6):
            raise ShapeError(f"a spatial inertia is a 6x6 matrix, got shape {I.shape}")
        h = np.array([I[2, 4], I[0, 5], I[1, 3]])
        return cls(I[5, 5], h, I[:3, :3])

    @property
    def center_of_mass(self):
        """Position of the mass centre; a massless body has none."""
        if self.mass == 0:
            raise ModelError("a massless inertia has no mass centre")
        return self.first_moment / self.mass

    @property
    def rotational_at_center(self):
        """Rotational inertia about the mass centre."""
        c = self.center_of_mass
        return self.rotational + self.mass * _skew_product(c, c)

    def to_matrix(self):
        """The dense 6×6 matrix."""
        H = skew(self.first_moment)
        return np.block([[self.rotational, H], [-H, self.mass * identity3()]])

    def parameters(self):
        """The ten parameters ``(m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)``."""
        I = self.rotational
        lower = [I[0, 0], I[1, 0], I[1, 1], I[2, 0], I[2, 1], I[2, 2]]
        return np.array([self.mass, *self.first_moment, *lower])

    @classmethod
    def from_parameters(cls, p):
        """Inverse of ``parameters``."""
        return cls(p[0], np.asarray(p[1:4]), symmetric(*p[4:10]))

    def __add__(self, other):
        if isinstance(other, ArticulatedInertia):
            return other + self
        _require_inertia(other)
        return Inertia(
            self.mass + other.mass,
            self.first_moment + other.first_moment,
            self.rotational + other.rotational,
        )

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        if isinstance(other, ArticulatedInertia):
            return ArticulatedInertia.from_rigid(self) - other
        return self + (-other)

    def __mul__(self, k):
        return Inertia(self.mass * k, self.first_moment * k, self.rotational * k)

    __rmul__ = __mul__

    def __matmul__(self, v):
        _require_motion(v)
        h, w, u = self.first_moment, v.angular, v.linear
        return Force(self.rotational @ w + cross(h, u), self.mass * u - cross(h, w))

    def transformed(self, X):
        """``X* I X⁻¹``: the same inertia in the new coordinates — 52m + 56a."""
        m, h, r = self.mass, self.first_moment, X.r
        y = h - m * r
        Z = self.rotational + _skew_product(r, h) + _skew_product(y, r)
        return Inertia(m, X.E @ y, rotate_symmetric(X.E, Z))

    def inverse_transformed(self, X):
        """``Xᵀ I X``: back to the old coordinates — 52m + 56a."""
        m, r = self.mass, X.r
        h = X.E.T @ self.first_moment
        y = h + m * r
        I = rotate_symmetric(X.E.T, self.rotational)
        return Inertia(m, y, I - _skew_product(r, h) - _skew_product(y, r))

    def __repr__(self):
        h, I = self.first_moment.tolist(), self.rotational.tolist()
        return f"Inertia(mass={self.mass}, first_moment={h}, rotational={I})"


class ArticulatedInertia:
    """Apparent inertia of a handle, ``[[I, H], [Hᵀ, M]]``: 21 numbers, no mass centre.

    ``IA @ a`` is a force; ``IA @ v`` for a velocity has no meaning (RBDA §7.1).
    """

    __slots__ = ("H", "I", "M")
    __array_ufunc__ = None

    def __init__(self, I, H, M):
        self.I, self.H, self.M = np.asarray(I), np.asarray(H), np.asarray(M)

    @classmethod
    def from_rigid(cls, I):
        """The articulated-body inertia of a body on its own."""
        return cls(I.rotational, skew(I.first_moment), I.mass * identity3())

    @classmethod
    def from_matrix(cls, I):
        """From a dense symmetric 6×6 matrix."""
        I = np.asarray(I)
        return cls(I[:3, :3], I[:3, 3:], I[3:, 3:])

    def to_matrix(self):
        """The dense symmetric 6×6 matrix."""
        return np.block([[self.I, self.H], [self.H.T, self.M]])

    def __add__(self, other):
        if isinstance(other, Inertia):
            m = other.mass
            M = self.M + np.array([[m, 0, 0], [0, m, 0], [0, 0, m]])
            return ArticulatedInertia(
                self.I + other.rotational, self.H + skew(other.first_moment), M
            )
        _require_inertia(other)
        return ArticulatedInertia(self.I + other.I, self.H + other.H, self.M + other.M)

    __radd__ = __add__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        if isinstance(other, Inertia):
            return self + (-other)
        _require_inertia(other)
        return ArticulatedInertia(self.I - other.I, self.H - other.H, self.M - other.M)

    def __mul__(self, k):
        return ArticulatedInertia(self.I * k, self.H * k, self.M * k)

    __rmul__ = __mul__

    def __matmul__(self, a):
        _require_motion(a)
        w, v = a.angular, a.linear
        return Force(self.I @ w + self.H @ v, self.M @ v + self.H.T @ w)

    def transformed(self, X):
        """``X* Iᴬ X⁻¹``: the same inertia in the new coordinates — 137m + 137a."""
        E, r = X.E, X.r
        Y = self.H - cross(r, self.M)
        Z = self.I + _shift(r, self.H, Y)
        return ArticulatedInertia(
            rotate_symmetric(E, Z), rotate_general(E, Y), rotate_symmetric(E, self.M)
        )

    def inverse_transformed(self, X):
        """``Xᵀ Iᴬ X``: back to the old coordinates — 137m + 137a."""
        Et, r = X.E.T, X.r
        M, H = rotate_symmetric(Et, self.M), rotate_general(Et, self.H)
        Y = H + cross(r, M)
        return ArticulatedInertia(rotate_symmetric(Et, self.I) - _shift(r, H, Y), Y, M)

    def __repr__(self):
        return f"ArticulatedInertia({self.to_matrix().tolist()})"


def dyadic(F, A):
    """``F A Fᵀ`` for force columns ``F`` and a symmetric matrix ``A`` — RBDA (2.64).

    The result maps motions to forces, like an inertia. Dense arrays are taken as well.
    """
    if isinstance(F, np.ndarray):
        return F @ A @ F.T
    if not isinstance(F, Force):
        return F.dyadic(A)
    n, f = F.angular, F.linear
    nA, fA = n @ A, f @ A
    return ArticulatedInertia(_symmetric_product(nA, n), nA @ f.T, _symmetric_product(fA, f))


def _symmetric_product(P, Q):
    """``P Qᵀ`` for 3×n factors whose product is known to be symmetric."""
    return symmetric(*(P[i] @ Q[j] for i in range(3) for j in range(i + 1)))


def _skew_product(a, b):
    """``a× b×`` of two vectors for which it is symmetric, lower triangle: 6m + 3a."""
    xx, yy, zz = a[0] * b[0], a[1] * b[1], a[2] * b[2]
    return symmetric(-(yy + zz), b[1] * a[0], -(xx + zz), b[2] * a[0], b[2] * a[1], -(xx + yy))


def _shift(r, H, Y):
    """``-r× Hᵀ + Y r×``, which is symmetric when ``Y = H - r× M``: 24m + 18a."""

    def entry(i, j):
        i1, i2, j1, j2 = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
        return (r[i2] * H[j, i1] - r[i1] * H[j, i2]) + (Y[i, j1] * r[j2] - Y[i, j2] * r[j1])

    return symmetric(*(entry(i, j) for i in range(3) for j in range(i + 1)))


def _require_motion(v):
    if not isinstance(v, Motion):
        raise SpatialTypeError(f"an inertia acts on a Motion, got {type(v).__name__}")


def _require_inertia(x):
    if not isinstance(x, (Inertia, ArticulatedInertia)):
        raise SpatialTypeError(f"cannot add {type(x).__name__} to an inertia")
