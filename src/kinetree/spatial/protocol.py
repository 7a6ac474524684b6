"""Protocol of coordinate transforms: ``apply`` and ``inv_apply``; the rest follows from them.

    X @ m            motion to B                 X.star @ f       force to B
    X.T @ f          force back to A             X.T @ I @ X      inertia back to A
    Y @ X            first X, then Y

Plücker transforms, axial screws, their products and planar transforms learn the language here.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from kinetree.errors import SpatialTypeError
from kinetree.spatial.vector import Force, Motion, SpatialVector


class CoordinateTransform(ABC):
    """Base of all transforms from frame A to frame B."""

    __slots__ = ()
    __array_ufunc__ = None
    motion_kind: type = Motion
    force_kind: type = Force

    @abstractmethod
    def apply(self, x) -> Any:
        """Any quantity from A to B, by the rule of its kind — RBDA §A.3."""

    @abstractmethod
    def inv_apply(self, x) -> Any:
        """Any quantity from B back to A."""

    @abstractmethod
    def compose(self, other) -> Any:
        """First ``other``, then this one; what ``@`` means between transforms."""

    def refusal(self, x):
        """The error for something this transform does not apply to."""
        return SpatialTypeError(f"{type(self).__name__} does not apply to {type(x).__name__}")

    @property
    def T(self):
        """``Xᵀ``, which takes forces (and, with ``X``, inertias) from B back to A."""
        return _Transposed(self)

    @property
    def star(self):
        """``X*``, which takes forces from A to B."""
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
