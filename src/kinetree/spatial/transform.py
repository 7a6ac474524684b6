"""Coordinate transforms, and those of Plücker in compact form — RBDA §2.8, Tables 2.2, A.3, A.4.

``X = Plucker(E, r)`` takes coordinates from frame A to frame B, where ``r`` is the position of B
in A and ``E`` rotates A-coordinates into B-coordinates. It reads like the matrix it stands for:

    X @ v            motion to B                 X.star @ f       force to B
    X.T @ f          force back to A             X.inverse()      B to A
    X2 @ X1          first X1, then X2           X.T @ I @ X      inertia back to A

All of it follows from ``apply`` and ``inv_apply``, for axial screws, products of transforms and
planar transforms as well: ``CoordinateTransform`` is the protocol.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.spatial.ops import cos, sin
from kinetree.spatial.vector import Force, Motion, SpatialVector
from kinetree.spatial.vector3 import ZERO3, as_vector3, cross, identity3, skew


class CoordinateTransform(ABC):
    """Base of all transforms from frame A to frame B."""

    __slots__ = ()
    __array_ufunc__ = None
    motion_kind: type = Motion
    force_kind: type = Force

    @abstractmethod
    def apply(self, x) -> Any:
        """Spatial quantity transformed from A to B, by the rule of its kind — RBDA §A.3."""

    @abstractmethod
    def inv_apply(self, x) -> Any:
        """Spatial quantity transformed from B back to A."""

    @abstractmethod
    def compose(self, other) -> Any:
        """Product of two transforms: first ``other``, then this one."""

    def refusal(self, x):
        """Error for an operand that a transform does not apply to."""
        return SpatialTypeError(f"{type(self).__name__} does not apply to {type(x).__name__}")

    @property
    def T(self):
        """Transpose ``Xᵀ``, which takes forces from B back to A."""
        return _Transposed(self)

    @property
    def star(self):
        """Force transform ``X*``, from A to B."""
        return _ForceTransform(self)

    def __matmul__(self, other) -> Any:
        if isinstance(other, self.motion_kind):
            return self.apply(other)
        if isinstance(other, self.force_kind):
            raise SpatialTypeError(
                "X @ Force: forces transform by X.star @ f (A to B) or X.T @ f (B to A)"
            )
        return self.compose(other)


class _Transposed:
    """``Xᵀ``: waits for a force, or for an inertia and then ``X`` itself."""

    __slots__ = ("X",)

    def __init__(self, X):
        self.X = X

    def __matmul__(self, other) -> Any:
        if isinstance(other, self.X.force_kind):
            return self.X.inv_apply(other)
        if isinstance(other, SpatialVector):
            raise SpatialTypeError(
                f"X.T takes a {self.X.force_kind.__name__} back, got {type(other).__name__}; "
                f"motions go back by X.inverse() @ m or X.inv_apply(m)"
            )
        if isinstance(other, np.ndarray):
            raise self.X.refusal(other)
        return _HalfCongruence(self.X, other)


class _HalfCongruence:
    """``Xᵀ I`` on its way to ``Xᵀ I X``."""

    __slots__ = ("I", "X")

    def __init__(self, X, I):
        self.X, self.I = X, I

    def __matmul__(self, X):
        if X is not self.X:
            raise SpatialTypeError("X.T @ I @ Y needs the same transform on both sides")
        return X.inv_apply(self.I)


class _ForceTransform:
    """``X*``: the force transform from A to B."""

    __slots__ = ("X",)

    def __init__(self, X):
        self.X = X

    def __matmul__(self, other):
        if not isinstance(other, self.X.force_kind):
            raise SpatialTypeError(
                f"X.star transforms a {self.X.force_kind.__name__}, got {type(other).__name__}; "
                f"a motion goes by X @ m, an inertia by X.apply(I)"
            )
        return self.X.apply(other)


class Plucker(CoordinateTransform):
    """A coordinate transform for spatial vectors: rotation ``E`` after shift of origin ``r``."""

    __slots__ = ("E", "r")

    def __init__(self, E: ArrayLike, r: ArrayLike):
        self.E = np.asarray(E)
        self.r = np.asarray(r)

    @classmethod
    def identity(cls) -> "Plucker":
        """Identity transform of spatial vectors."""
        return cls(identity3(), ZERO3)

    @classmethod
    def from_matrix(cls, X: ArrayLike) -> "Plucker":
        """Plücker transform from a dense 6×6 motion transform — RBDA (2.24)."""
        X = np.asarray(X)
        if X.shape != (6, 6):
            raise ShapeError(f"a Plücker motion transform is 6x6, got shape {X.shape}")
        if X.dtype != object and np.max(np.abs(X[:3, 3:])) > 1e-9 * np.max(np.abs(X)):
            raise SpatialTypeError(
                "not a motion transform with the angular part first: its upper right block is not "
                "zero. Invert and transpose a force transform first; swap the halves of a "
                "linear-first one with swap_matrix_order"
            )
        E = X[:3, :3]
        rx = -E.T @ X[3:, :3]
        return cls(E, np.array([rx[2, 1], rx[0, 2], rx[1, 0]]))

    @classmethod
    def from_pose(cls, T: ArrayLike) -> "Plucker":
        """Plücker transform from the pose (4, 4) of frame B in A, which maps points from B to A."""
        T = np.asarray(T)
        if T.shape != (4, 4):
            raise ShapeError(f"a pose is a 4x4 homogeneous matrix, got shape {T.shape}")
        return cls(T[:3, :3].T, T[:3, 3])

    def to_pose(self) -> Array:
        """Pose (4, 4) of frame B in A, which maps points from B to A."""
        last = np.array([[0, 0, 0, 1]])
        return np.concatenate([np.column_stack([self.E.T, self.r]), last])

    def to_homogeneous(self) -> Array:
        """Homogeneous coordinate transform (4, 4) of points from A to B — RBDA (2.28)."""
        last = np.array([[0, 0, 0, 1]])
        return np.concatenate([np.column_stack([self.E, -self.E @ self.r]), last])

    def to_matrix(self) -> Array:
        """Dense 6×6 motion transform — RBDA (2.24)."""
        return np.block([[self.E, np.zeros((3, 3), int)], [-self.E @ skew(self.r), self.E]])

    def to_force_matrix(self) -> Array:
        """Dense 6×6 force transform ``X*`` — RBDA (2.25)."""
        return np.block([[self.E, -self.E @ skew(self.r)], [np.zeros((3, 3), int), self.E]])

    def inverse(self) -> "Plucker":
        """Inverse transform, from B back to A."""
        return Plucker(self.E.T, -self.E @ self.r)

    def point(self, p: ArrayLike) -> Array:
        """Coordinates in B of a point whose coordinates in A are ``p``."""
        return self.E @ (np.asarray(p) - self.r)

    def apply(self, x: Any) -> Any:
        """Spatial quantity transformed from A to B, by the rule of its kind — RBDA §A.3."""
        E, r = self.E, self.r
        if isinstance(x, Motion):
            return Motion(E @ x.angular, E @ (x.linear - cross(r, x.angular)))
        if isinstance(x, Force):
            return Force(E @ (x.angular - cross(r, x.linear)), E @ x.linear)
        if not hasattr(x, "transformed"):
            raise self.refusal(x)
        return x.transformed(self)

    def inv_apply(self, x: Any) -> Any:
        """Spatial quantity transformed from B back to A, without the inverse — RBDA §A.3."""
        Et, r = self.E.T, self.r
        if isinstance(x, Motion):
            w = Et @ x.angular
            return Motion(w, Et @ x.linear + cross(r, w))
        if isinstance(x, Force):
            f = Et @ x.linear
            return Force(Et @ x.angular + cross(r, f), f)
        if not hasattr(x, "inverse_transformed"):
            raise self.refusal(x)
        return x.inverse_transformed(self)

    def compose(self, other: Any) -> "Plucker":
        """Product of two transforms: first ``other``, then this one."""
        if not isinstance(other, Plucker):
            raise SpatialTypeError(
                f"X @ {type(other).__name__} is not defined: X acts on motions and transforms; "
                f"X.apply(x) takes anything spatial from A to B, X.inv_apply(x) from B to A"
            )
        return Plucker(self.E @ other.E, other.r + other.E.T @ self.r)

    def refusal(self, x: Any) -> Any:
        """Error for an operand that is no spatial quantity."""
        return SpatialTypeError(
            f"a Plücker transform does not know how to transform a {type(x).__name__}; it takes "
            f"motions (X @ m), forces (X.star @ f), inertias and dyadics (X.apply(I))"
        )

    def arrays(self) -> list[Array]:
        """Arrays that the transform consists of, for tables of recorded loops."""
        return [self.E, self.r]

    def like(self, arrays: list[Array]) -> "Plucker":
        """Plücker transform made of other arrays."""
        return Plucker(*arrays)

    def __repr__(self):
        return f"Plucker(E={self.E.tolist()}, r={self.r.tolist()})"


def rx(angle: Any) -> Array:
    """Coordinate rotation (3, 3) for a frame turned by ``angle`` [rad] about x — RBDA Table 2.2.

    The transpose of the active rotation matrix; so are ``ry`` and ``rz``.
    """
    c, s = cos(angle), sin(angle)
    return np.array([[1, 0, 0], [0, c, s], [0, -s, c]])


def ry(angle: Any) -> Array:
    """Coordinate rotation (3, 3) for a frame turned by ``angle`` [rad] about y — RBDA Table 2.2."""
    c, s = cos(angle), sin(angle)
    return np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])


def rz(angle: Any) -> Array:
    """Coordinate rotation (3, 3) for a frame turned by ``angle`` [rad] about z — RBDA Table 2.2."""
    c, s = cos(angle), sin(angle)
    return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])


def rot(E: ArrayLike) -> "Plucker":
    """Transform to a frame with the same origin, rotated by ``E``."""
    return Plucker(E, ZERO3)


def xlt(x: Any, y: Any = None, z: Any = None) -> "Plucker":
    """Transform to a parallel frame at ``r``: ``xlt(r)`` or ``xlt(x, y, z)``."""
    if (y is None) != (z is None):
        raise ShapeError(f"xlt takes a position (3,) or all of x, y, z, got {x=}, {y=}, {z=}")
    r = as_vector3(x if y is None else (x, y, z), "the translation")
    return Plucker(identity3(), r)


def rotx(angle: Any) -> "Plucker":
    """Transform to a frame turned by ``angle`` [rad] about x."""
    return rot(rx(angle))


def roty(angle: Any) -> "Plucker":
    """Transform to a frame turned by ``angle`` [rad] about y."""
    return rot(ry(angle))


def rotz(angle: Any) -> "Plucker":
    """Transform to a frame turned by ``angle`` [rad] about z."""
    return rot(rz(angle))
