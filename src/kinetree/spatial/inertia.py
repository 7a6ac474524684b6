"""Rigid-body inertias in compact form — RBDA §2.13, Tables A.3, A.4."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ModelError, ShapeError, SpatialTypeError
from kinetree.spatial.arithmetic import rotate_symmetric
from kinetree.spatial.vector import Force, Motion, SpatialVector
from kinetree.spatial.vector3 import ZERO3, as_vector3, cross, identity3, skew, symmetric

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


class Inertia:
    """Inertia of a rigid body: mass, first moment ``h = m c``, rotational inertia about O.

    Build one with ``Inertia.from_mass_center(m, c, I_C)``; ``I @ v`` is the momentum.
    """

    __slots__ = ("first_moment", "mass", "rotational")
    __array_ufunc__ = None

    def __init__(self, mass: Any, first_moment: ArrayLike, rotational: ArrayLike):
        self.mass = mass
        self.first_moment = np.asarray(first_moment)
        self.rotational = np.asarray(rotational)

    @classmethod
    def zero(cls) -> "Inertia":
        """Inertia of a massless body."""
        return cls(0, ZERO3, np.zeros((3, 3), dtype=int))

    @classmethod
    def from_mass_center(cls, m: Any, c: ArrayLike, I_C: ArrayLike) -> "Inertia":
        """Inertia from mass, mass centre and rotational inertia about it — RBDA (2.63)."""
        c, I_C = as_vector3(c, "the mass centre"), np.asarray(I_C)
        if I_C.shape != (3, 3):
            raise ShapeError(f"the rotational inertia must be a 3x3 matrix, got {I_C.shape}")
        return cls(m, m * c, I_C - m * _skew_product(c, c))

    @classmethod
    def from_particles(cls, masses: ArrayLike, positions: ArrayLike) -> "Inertia":
        """Inertia of point masses at ``positions`` (n, 3) — Lynch & Park §9.2.1."""
        m, p = np.asarray(masses), np.asarray(positions)
        if m.ndim != 1 or p.shape != (len(m), 3):
            raise ShapeError(
                f"particles need masses (n,) and positions (n, 3), got {m.shape} and {p.shape}"
            )
        second = p.T @ (m[:, None] * p)  # Σ m p pᵀ
        return cls(m.sum(), m @ p, np.trace(second) * identity3() - second)

    @classmethod
    def from_density(cls, density: Callable, bounds: ArrayLike, n: int = 16) -> "Inertia":
        """Inertia of a body of density ``density(x, y, z)`` [kg/m³], integrated over a box.

        Integrates by Gauss–Legendre quadrature with ``n`` points along each axis, which is exact
        for polynomials of degree up to ``2n - 3``; a density that jumps converges slowly.

        Args:
            density: function of three arrays of coordinates [m], or a constant.
            bounds: lower and upper ends of the box along x, y and z, shape (3, 2).
            n: number of points along each axis.
        """
        bounds = np.asarray(bounds, dtype=float)
        if bounds.shape != (3, 2):
            raise ShapeError(f"bounds must have shape (3, 2), got {bounds.shape}")
        nodes, weights = np.polynomial.legendre.leggauss(n)
        half, middle = (bounds[:, 1] - bounds[:, 0]) / 2, bounds.mean(axis=1)
        points = np.meshgrid(*(middle[:, None] + half[:, None] * nodes), indexing="ij")
        rho = density(*points) if callable(density) else density
        masses = rho * np.einsum("i,j,k->ijk", *(half[:, None] * weights))
        return cls.from_particles(masses.ravel(), np.stack(points, axis=-1).reshape(-1, 3))

    @classmethod
    def from_matrix(cls, I: ArrayLike) -> "Inertia":
        """Rigid-body inertia from a dense 6×6 matrix."""
        I = as_matrix6(I)
        inertia = cls(I[5, 5], np.array([I[2, 4], I[0, 5], I[1, 3]]), I[:3, :3])
        if I.dtype != object:
            scale = np.sqrt(np.maximum(np.abs(np.diagonal(I)), np.finfo(float).tiny))
            defect = np.max(np.abs(I - inertia.to_matrix()) / np.outer(scale, scale))
            if defect > 1e-9:
                raise ModelError(
                    f"this 6x6 matrix is not the inertia of a rigid body (relative defect "
                    f"{defect:.2g}); use ArticulatedInertia.from_matrix for a general one"
                )
        return inertia

    @property
    def center_of_mass(self) -> Array:
        """Position of the mass centre [m], (3,); an error for a massless body."""
        if self.mass == 0:
            raise ModelError("a massless inertia has no mass centre")
        return self.first_moment / self.mass

    @property
    def rotational_at_center(self) -> Array:
        """Rotational inertia about the mass centre [kg·m²], (3, 3)."""
        c = self.center_of_mass
        return self.rotational + self.mass * _skew_product(c, c)

    def to_matrix(self) -> Array:
        """Dense 6×6 matrix of the inertia."""
        H = skew(self.first_moment)
        return np.block([[self.rotational, H], [-H, self.mass * identity3()]])

    def parameters(self) -> Array:
        """Ten parameters ``(m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz)``."""
        I = self.rotational
        lower = [I[0, 0], I[1, 0], I[1, 1], I[2, 0], I[2, 1], I[2, 2]]
        return np.array([self.mass, *self.first_moment, *lower])

    @classmethod
    def from_parameters(cls, p: ArrayLike) -> "Inertia":
        """Inertia from ten ``parameters``."""
        return cls(p[0], np.asarray(p[1:4]), symmetric(*p[4:10]))

    def __add__(self, other):
        if _is_articulated(other):
            return NotImplemented  # it knows how
        _require_inertia(other)
        return Inertia(
            self.mass + other.mass,
            self.first_moment + other.first_moment,
            self.rotational + other.rotational,
        )

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        if _is_articulated(other):
            return NotImplemented
        _require_inertia(other)
        return self + (-other)

    def __mul__(self, k):
        require_factor(k)
        return Inertia(self.mass * k, self.first_moment * k, self.rotational * k)

    __rmul__ = __mul__

    def __matmul__(self, v):
        require_motion(v)
        h, w, u = self.first_moment, v.angular, v.linear
        return Force(self.rotational @ w + cross(h, u), self.mass * u - cross(h, w))

    def transformed(self, X: "Plucker") -> "Inertia":
        """Inertia in new coordinates, ``X* I X⁻¹``: 52m + 56a."""
        m, h, r = self.mass, self.first_moment, X.r
        y = h - m * r
        Z = self.rotational + _skew_product(r, h) + _skew_product(y, r)
        return Inertia(m, X.E @ y, rotate_symmetric(X.E, Z))

    def inverse_transformed(self, X: "Plucker") -> "Inertia":
        """Inertia in the old coordinates, ``Xᵀ I X``: 52m + 56a."""
        m, r = self.mass, X.r
        h = X.E.T @ self.first_moment
        y = h + m * r
        I = rotate_symmetric(X.E.T, self.rotational)
        return Inertia(m, y, I - _skew_product(r, h) - _skew_product(y, r))

    def arrays(self) -> list[Array]:
        """Arrays that the inertia consists of, for tables of recorded loops."""
        return [self.parameters()]

    def like(self, arrays: list[Array]) -> "Inertia":
        """Rigid-body inertia made of other arrays."""
        return Inertia.from_parameters(arrays[0])

    def __repr__(self):
        h, I = self.first_moment.tolist(), self.rotational.tolist()
        return f"Inertia(mass={self.mass}, first_moment={h}, rotational={I})"


def _skew_product(a, b):
    """Product ``a× b×`` from its lower triangle, mirrored: for symmetric sums; 6m + 3a."""
    xx, yy, zz = a[0] * b[0], a[1] * b[1], a[2] * b[2]
    return symmetric(-(yy + zz), b[1] * a[0], -(xx + zz), b[2] * a[0], b[2] * a[1], -(xx + yy))


def as_matrix6(I):
    """Inertia as a 6×6 array, or an error for other types."""
    I = np.asarray(I)
    if I.shape != (6, 6):
        raise ShapeError(f"a spatial inertia is a 6x6 matrix, got shape {I.shape}")
    return I


def require_motion(v):
    """Raise an error unless the operand of an inertia is a motion."""
    if not isinstance(v, Motion):
        raise SpatialTypeError(
            f"an inertia acts on a Motion, got {type(v).__name__}; accelerations come from forces "
            f"by an InverseInertia"
        )


def require_factor(k):
    """Raise an error unless a factor of an inertia is a number."""
    if isinstance(k, (SpatialVector, Inertia)):
        raise SpatialTypeError(
            f"an inertia times a {type(k).__name__} is not defined by *; write I @ v"
        )


def _is_articulated(x):
    """Whether a value is an articulated-body inertia of any class."""
    return hasattr(type(x), "from_rigid")


def _require_inertia(x):
    """Raise an error for a value that cannot be added to a rigid-body inertia."""
    if not isinstance(x, Inertia):
        raise SpatialTypeError(f"cannot add {type(x).__name__} to an inertia")
