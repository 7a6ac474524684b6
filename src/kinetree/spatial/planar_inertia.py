"""Planar inertias: 4 parameters for a rigid body, 6 for an articulated one — RBDA §2.16, §7.1."""

import numpy as np

from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.spatial.articulated_inertia import ArticulatedInertia
from kinetree.spatial.inertia import Inertia
from kinetree.spatial.planar import (
    PlanarForce,
    PlanarMotion,
    PlanarOperator,
    PlanarTransform,
    moment,
    planar_cross,
)
from kinetree.spatial.transform import Plucker
from kinetree.spatial.vector import Force, Motion


class PlanarInertia(PlanarOperator):
    """Inertia of a planar rigid body: mass, first moment ``h = m c`` (2,), inertia about O.

    Build one with ``PlanarInertia.from_mass_center(m, c, I_C)``; ``I @ v`` is the momentum.
    """

    __slots__ = ("first_moment", "mass", "rotational")

    def __init__(self, mass, first_moment, rotational):
        self.mass, self.rotational = mass, rotational
        self.first_moment = np.asarray(first_moment)

    @classmethod
    def zero(cls):
        """Planar inertia of a massless body."""
        return cls(0, np.zeros(2, dtype=int), 0)

    @classmethod
    def from_mass_center(cls, m, c, I_C):
        """Planar inertia from mass, mass centre (2,) and inertia about it — RBDA (2.78)."""
        c = np.asarray(c)
        if c.shape != (2,):
            raise ShapeError(f"the mass centre in the plane must have 2 components, got {c!r}")
        return cls(m, m * c, I_C + m * (c @ c))

    def to_matrix(self):
        """Symmetric 3×3 matrix of the planar inertia — RBDA (2.78)."""
        return PlanarArticulatedInertia.from_rigid(self).to_matrix()

    def parameters(self):
        """Four parameters ``(m, h_x, h_y, I)`` of the planar inertia."""
        return np.array([self.mass, *self.first_moment, self.rotational])

    def __add__(self, other):
        if isinstance(other, PlanarArticulatedInertia):
            return other + self
        _require_inertia(other)
        return PlanarInertia(
            self.mass + other.mass,
            self.first_moment + other.first_moment,
            self.rotational + other.rotational,
        )

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        if isinstance(other, PlanarArticulatedInertia):
            return PlanarArticulatedInertia.from_rigid(self) - other
        _require_inertia(other)
        return self + (-other)

    def __mul__(self, k):
        return PlanarInertia(self.mass * k, self.first_moment * k, self.rotational * k)

    __rmul__ = __mul__

    def __matmul__(self, v):
        _require_motion(v)
        h, w, u = self.first_moment, v.angular, v.linear
        return PlanarForce(
            self.rotational * w + moment(h, u), self.mass * u + planar_cross(w[0], h)
        )

    def transformed(self, X):
        """Planar inertia in new coordinates, ``X* I X⁻¹``."""
        m, h, r = self.mass, self.first_moment, X.r
        y = h - m * r
        return PlanarInertia(m, X.E @ y, self.rotational - r @ (h + y))

    def inverse_transformed(self, X):
        """Planar inertia in the old coordinates, ``Xᵀ I X``."""
        m, r = self.mass, X.r
        h = X.E.T @ self.first_moment
        y = h + m * r
        return PlanarInertia(m, y, self.rotational + r @ (h + y))

    def __repr__(self):
        h = self.first_moment.tolist()
        return f"PlanarInertia(mass={self.mass}, first_moment={h}, rotational={self.rotational})"


class PlanarArticulatedInertia(PlanarOperator):
    """Apparent inertia of a handle, ``[[I, Hᵀ], [H, M]]`` with ``H`` (2,) and ``M`` (2, 2)."""

    __slots__ = ("H", "I", "M")

    def __init__(self, I, H, M):
        self.I, self.H, self.M = I, np.asarray(H), np.asarray(M)

    @classmethod
    def from_rigid(cls, I):
        """Planar articulated-body inertia of a single rigid body."""
        m = I.mass
        return cls(I.rotational, planar_cross(1, I.first_moment), np.array([[m, 0], [0, m]]))

    @classmethod
    def from_matrix(cls, I):
        """Planar articulated-body inertia from a symmetric 3×3 matrix."""
        I = np.asarray(I)
        if I.shape != (3, 3):
            raise ShapeError(f"a planar inertia is a 3x3 matrix, got shape {I.shape}")
        return cls(I[0, 0], I[0, 1:], I[1:, 1:])

    def to_matrix(self):
        """Symmetric 3×3 matrix of the planar articulated-body inertia."""
        return np.block([[np.array([[self.I]]), self.H[None, :]], [self.H[:, None], self.M]])

    def __add__(self, other):
        if isinstance(other, PlanarInertia):
            other = PlanarArticulatedInertia.from_rigid(other)
        _require_inertia(other)
        return PlanarArticulatedInertia(self.I + other.I, self.H + other.H, self.M + other.M)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        _require_inertia(other)
        return self + (-other)

    def __mul__(self, k):
        return PlanarArticulatedInertia(self.I * k, self.H * k, self.M * k)

    __rmul__ = __mul__

    def __matmul__(self, a):
        _require_motion(a)
        w, v = a.angular, a.linear
        f = np.array([self.H[0] * w[0], self.H[1] * w[0]]) + self.M @ v
        return PlanarForce(self.I * w + self.H @ v, f)

    def transformed(self, X):
        """Planar articulated-body inertia in new coordinates, ``X* Iᴬ X⁻¹``."""
        t = planar_cross(1, X.r)
        Y = self.H - self.M @ t
        return PlanarArticulatedInertia(
            self.I - t @ (self.H + Y), X.E @ Y, _rotate(X.c, X.s, self.M)
        )

    def inverse_transformed(self, X):
        """Planar articulated-body inertia in the old coordinates, ``Xᵀ Iᴬ X``."""
        t = planar_cross(1, X.r)
        H, M = X.E.T @ self.H, _rotate(X.c, -X.s, self.M)
        Y = H + M @ t
        return PlanarArticulatedInertia(self.I + t @ (H + Y), Y, M)

    def clear(self, keep):
        """Inertia with exact zeros in rows and columns where ``keep`` (3,) is zero."""
        w, v = keep[0], keep[1:]
        return PlanarArticulatedInertia(self.I * w, self.H * w * v, self.M * np.outer(v, v))

    def __repr__(self):
        return f"PlanarArticulatedInertia({self.to_matrix().tolist()})"


def _rotate(c, s, M):
    """Congruence ``E M Eᵀ`` of a symmetric 2×2 matrix with a rotation (cosine c, sine s)."""
    (xx, xy), (_, yy) = M
    a, b = c * xx + s * xy, c * xy + s * yy  # first row of E M
    x, y = a * c + b * s, b * c - a * s
    return np.array([[x, y], [y, xx + yy - x]])


def _require_motion(v):
    """Raise an error for an operand that a planar inertia does not act on."""
    if not isinstance(v, PlanarMotion):
        raise SpatialTypeError(f"a planar inertia acts on a PlanarMotion, got {type(v).__name__}")


def _require_inertia(x):
    """Raise an error for a value that cannot be added to a planar inertia."""
    if not isinstance(x, (PlanarInertia, PlanarArticulatedInertia)):
        raise SpatialTypeError(f"cannot add {type(x).__name__} to a planar inertia")


# --- Between planar and spatial quantities: the plane is z = 0, coordinates 3, 4, 5 — RBDA §2.16 -


def lift(x):
    """Planar motion, force or transform as a spatial one in the x-y plane.

    Inertias cannot be lifted: a planar one does not say how heavy a tilt would be.
    """
    if isinstance(x, (PlanarMotion, PlanarForce)):
        kind = Motion if isinstance(x, PlanarMotion) else Force
        zero = np.zeros_like(x.angular[0], dtype=int)
        return kind(np.array([zero, zero, x.angular[0]]), np.array([*x.linear, zero]))
    if isinstance(x, PlanarTransform):
        return Plucker(np.array([[x.c, x.s, 0], [-x.s, x.c, 0], [0, 0, 1]]), [*x.r, 0])
    raise SpatialTypeError(
        f"lift takes a PlanarMotion, PlanarForce or PlanarTransform, got {type(x).__name__}"
    )


def restrict(x):
    """Planar part of a spatial quantity; the other components are dropped.

    A transform must turn about z for this to be meaningful.
    """
    if isinstance(x, Motion):
        return PlanarMotion(x.angular[2:], x.linear[:2])
    if isinstance(x, Force):
        return PlanarForce(x.angular[2:], x.linear[:2])
    if isinstance(x, Plucker):
        return PlanarTransform(x.E[0, 0], x.E[0, 1], x.r[:2])
    if isinstance(x, Inertia):
        return PlanarInertia(x.mass, x.first_moment[:2], x.rotational[2, 2])
    if isinstance(x, ArticulatedInertia):
        return PlanarArticulatedInertia(x.I[2, 2], x.H[2, :2], x.M[:2, :2])
    raise SpatialTypeError(f"restrict takes a spatial quantity, got {type(x).__name__}")
