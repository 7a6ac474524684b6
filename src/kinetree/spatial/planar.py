"""Planar vector algebra: spatial algebra for mechanisms that move in the x-y plane — RBDA §2.16.

Three coordinates, angular first: ``v = (ω, v_x, v_y)``, ``f = (n, f_x, f_y)``. They are the
coordinates 3, 4 and 5 of the spatial vectors, and every operator is the corresponding part of the
spatial one, so the text of an algorithm runs on either.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.spatial.ops import atan2, cos, sin, stumpff
from kinetree.spatial.transform import CoordinateTransform
from kinetree.spatial.vector import SpatialVector, Transposed

__all__ = [
    "PlanarForce", "PlanarMotion", "PlanarTransform", "Xpln", "displacement_velocity", "exp", "log",
    "moment", "planar_cross", "simple_displacement_velocity",
]  # fmt: skip


def moment(r: ArrayLike, f: ArrayLike) -> Any:
    """Planar cross product ``r × f``: one number, or one for every column of ``f``."""
    return r[0] * f[1] - r[1] * f[0]


def planar_cross(w: Any, r: ArrayLike) -> Array:
    """Planar cross product ``ω × r`` of an angular velocity and a position, (2,)."""
    return np.array([-r[1] * w, r[0] * w])


class PlanarVector(SpatialVector):
    """Base of planar motions and forces; parts of shape (1,), (2,) or (1, n), (2, n)."""

    __slots__ = ()
    _sizes = (1, 2)

    def __init__(self, angular, linear):
        super().__init__(np.atleast_1d(angular), linear)

    @property
    def T(self):
        """Transposed vector, for scalar products: ``S.T @ f``."""
        return _PlanarTransposed(self)


class PlanarMotion(PlanarVector):
    """Velocity or acceleration of a planar body: an element of M³."""

    __slots__ = ()

    def cross(self, other: Any) -> Any:
        """Cross product with a motion, ``v × m``, or force, ``v ×* f`` — RBDA (2.75), (2.76)."""
        w, v = self.angular[0], self.linear
        if isinstance(other, PlanarMotion):
            m = other.angular
            linear = planar_cross(w, other.linear) - planar_cross(m[0], v)
            return PlanarMotion(np.zeros(m.shape, dtype=int), linear)
        if isinstance(other, PlanarForce):
            f = other.linear
            return PlanarForce(np.array([moment(v, f)]), planar_cross(w, f))
        raise SpatialTypeError(
            f"PlanarMotion.cross needs a planar motion or force, got {type(other).__name__}"
        )


class PlanarForce(PlanarVector):
    """Force, momentum or impulse on a planar body: an element of F³."""

    __slots__ = ()

    def cross(self, other: Any) -> Any:
        """Raise an error: a force has no cross product."""
        raise SpatialTypeError(
            f"PlanarForce × {type(other).__name__} is not defined: only a motion can stand on the "
            f"left of a cross product"
        )

    def dyadic(self, A: Any) -> Any:
        """Product ``F A Fᵀ`` of these force columns and a symmetric matrix ``A``."""
        from kinetree.spatial.planar_inertia import PlanarArticulatedInertia  # builds on us

        n, f = self.angular, self.linear
        nA, fA = n @ A, f @ A
        off = fA[1] @ f[0]
        M = np.array([[fA[0] @ f[0], off], [off, fA[1] @ f[1]]])
        return PlanarArticulatedInertia((nA @ n.T)[0, 0], (nA @ f.T)[0], M)


class _PlanarTransposed(Transposed):
    """Row form of planar vectors; only meets the dual kind."""

    __slots__ = ()

    def __matmul__(self, other):
        a, b = self.columns, other
        dual = PlanarForce if isinstance(a, PlanarMotion) else PlanarMotion
        if not isinstance(b, dual):
            raise SpatialTypeError(
                f"the scalar product of a {type(a).__name__} needs a {dual.__name__}, "
                f"got {type(b).__name__}"
            )
        return a.angular.T @ b.angular + a.linear.T @ b.linear


class PlanarOperator(ABC):
    """Map from planar motions to planar forces that knows how it is transformed."""

    __slots__ = ()
    __array_ufunc__ = None

    @abstractmethod
    def transformed(self, X) -> Any:
        """Operator in new coordinates, ``X* I X⁻¹``."""

    @abstractmethod
    def inverse_transformed(self, X) -> Any:
        """Operator in the old coordinates, ``Xᵀ I X``."""


class PlanarTransform(CoordinateTransform):
    """From frame A to frame B, which sits at ``r`` (2,) and is turned by the angle of (c, s)."""

    __slots__ = ("c", "r", "s")
    motion_kind, force_kind = PlanarMotion, PlanarForce

    def __init__(self, c: Any, s: Any, r: ArrayLike):
        self.c, self.s, self.r = c, s, np.asarray(r)

    @classmethod
    def identity(cls) -> "PlanarTransform":
        """Planar identity transform."""
        return cls(1, 0, np.zeros(2, dtype=int))

    @classmethod
    def from_matrix(cls, X: ArrayLike) -> "PlanarTransform":
        """Planar transform from a 3×3 motion transform — RBDA (2.77)."""
        X = np.asarray(X)
        if X.shape != (3, 3):
            raise ShapeError(f"a planar motion transform is 3x3, got shape {X.shape}")
        y, x = X[1:, 1:].T @ X[1:, 0]
        return cls(X[1, 1], X[1, 2], np.array([x, -y]))

    @property
    def E(self) -> Array:
        """Coordinate rotation ``E``, (2, 2)."""
        return np.array([[self.c, self.s], [-self.s, self.c]])

    def to_matrix(self) -> Array:
        """Planar motion transform as a matrix, (3, 3) — RBDA (2.77)."""
        c, s, (x, y) = self.c, self.s, self.r
        return np.array([[1, 0, 0], [s * x - c * y, c, s], [c * x + s * y, -s, c]])

    def to_force_matrix(self) -> Array:
        """Planar force transform ``X* = X⁻ᵀ`` as a matrix, (3, 3)."""
        c, s, (x, y) = self.c, self.s, self.r
        return np.array([[1, y, -x], [0, c, s], [0, -s, c]])

    def inverse(self) -> "PlanarTransform":
        """Inverse transform, from B back to A."""
        return PlanarTransform(self.c, -self.s, -self.E @ self.r)

    def point(self, p: ArrayLike) -> Array:
        """Coordinates in B of a point whose coordinates in A are ``p``."""
        return self.E @ (np.asarray(p) - self.r)

    def compose(self, other: Any) -> "PlanarTransform":
        """Product of two transforms: first ``other``, then this one."""
        if not isinstance(other, PlanarTransform):
            raise self.refusal(other)
        c, s = self.c, self.s
        return PlanarTransform(
            c * other.c - s * other.s, s * other.c + c * other.s, other.r + other.E.T @ self.r
        )

    def apply(self, x: Any) -> Any:
        """Planar motion, force or inertia transformed from A to B."""
        if isinstance(x, PlanarMotion):
            return PlanarMotion(x.angular, self.E @ (x.linear + planar_cross(x.angular[0], self.r)))
        if isinstance(x, PlanarForce):
            return PlanarForce(x.angular - moment(self.r, x.linear), self.E @ x.linear)
        if not isinstance(x, PlanarOperator):
            raise self.refusal(x)
        return x.transformed(self)

    def inv_apply(self, x: Any) -> Any:
        """Planar motion, force or inertia transformed from B back to A."""
        if isinstance(x, PlanarMotion):
            return PlanarMotion(x.angular, self.E.T @ x.linear - planar_cross(x.angular[0], self.r))
        if isinstance(x, PlanarForce):
            f = self.E.T @ x.linear
            return PlanarForce(x.angular + moment(self.r, f), f)
        if not isinstance(x, PlanarOperator):
            raise self.refusal(x)
        return x.inverse_transformed(self)

    def __repr__(self):
        return f"PlanarTransform(c={self.c}, s={self.s}, r={self.r.tolist()})"


def Xpln(theta: Any, r: ArrayLike) -> "PlanarTransform":
    """Planar transform to a frame at ``r`` (2,) [m] rotated by ``theta`` [rad] — RBDA Table A.1."""
    if np.shape(r) != (2,):
        raise ShapeError(f"the position in the plane must have 2 components, got {r!r}")
    return PlanarTransform(cos(theta), sin(theta), r)


# --- Displacements in the plane as velocities: exponential, logarithm, ``XtoV`` — RBDA §A.1 ------
# The planar counterpart of ``kinetree.spatial.lie``.


def exp(v: "PlanarMotion") -> "PlanarTransform":
    """Planar transform to the frame reached at constant velocity ``v`` after unit time."""
    w, u = v.angular[0], v.linear
    c = stumpff(w * w)
    return PlanarTransform(c[0], w * c[1], c[1] * u + c[2] * planar_cross(w, u))


def log(X: "PlanarTransform") -> "PlanarMotion":
    """Planar velocity that carries frame A to B in unit time; rotation of at most 180°."""
    theta = atan2(X.s, X.c)
    c = stumpff(theta * theta)
    # θ/2 cot(θ/2) = c₁ / 2c₂ is smooth at zero and vanishes at 180°.
    return PlanarMotion(theta, c[1] / (2 * c[2]) * X.r - planar_cross(theta, X.r) / 2)


def displacement_velocity(X: "PlanarTransform") -> "PlanarMotion":
    """Planar velocity for a small displacement: RBDA's ``XtoV``, version 2.

    RBDA Table A.1. Exact for translations, an invariant, ``X v = v``, and parallel to the exact
    velocity: ``log(X) = v θ / sin θ``. Vanishes at 180°, where only ``log`` has an answer.
    """
    u, v = simple_displacement_velocity(X).linear
    c, s = X.c, X.s
    return PlanarMotion(s, np.array([u + c * u - s * v, v + c * v + s * u]) / 2)


def simple_displacement_velocity(X: "PlanarTransform") -> "PlanarMotion":
    """Planar velocity for a small displacement: RBDA's ``XtoV``, version 1, less accurate."""
    X_21, X_31 = X.to_matrix()[1:, 0]
    return PlanarMotion(X.s, np.array([X_31, -X_21]))


guard_module(__name__)
