"""Axial screw transforms: turn about and shift along one coordinate axis — RBDA §A.4, Table A.5.

Two of them make the step between Denavit–Hartenberg frames and three make any transform, at less
than the cost of a general ``Plucker``. They speak the same language (``X @ v``, ``X.T @ I @ X``).
"""

from dataclasses import dataclass
from typing import Any

from kinetree.arguments import guard_module
from kinetree.spatial.arithmetic import AxialRotation
from kinetree.spatial.articulated_inertia import ArticulatedInertia
from kinetree.spatial.inertia import Inertia
from kinetree.spatial.transform import CoordinateTransform, Plucker
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import symmetric

__all__ = ["AxialScrew", "ScrewProduct", "dh_step", "scrx", "scry", "scrz"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AxialScrew(CoordinateTransform):
    """Turn about and shift by ``d`` along one axis; the two commute.

    Costs: vector 10m + 6a, rigid inertia 16m + 15a, articulated inertia 38m + 40a; if row and
    column 3 of the last are zeros that the numbers recognise, 28m + 34a about z, which keeps the
    zeros, and 33m + 28a about x or y.
    """

    rotation: AxialRotation
    d: Any

    def inverse(self):
        """Inverse screw transform, by sign changes only."""
        return AxialScrew(self.rotation.inverse(), -self.d)

    def to_plucker(self):
        """The transform as ``Plucker(E, r)``."""
        return Plucker(self.rotation.to_matrix(), self.rotation.rows([0, 0, self.d]))

    def to_matrix(self):
        """Dense 6×6 motion transform of the screw."""
        return self.to_plucker().to_matrix()

    def compose(self, other):
        """Product of two transforms: first ``other``, then this one; kept as factors."""
        return ScrewProduct(self).compose(other)

    def apply(self, x):
        """Motion, force or inertia transformed from A to B."""
        if isinstance(x, Motion):
            w, v = self.rotation.vectors(x.angular), self.rotation.vectors(x.linear)
            return Motion(w, self._minus_r_cross(v, w))
        if isinstance(x, Force):
            n, f = self.rotation.vectors(x.angular), self.rotation.vectors(x.linear)
            return Force(self._minus_r_cross(n, f), f)
        if isinstance(x, Inertia):
            return self._rigid(x)
        if isinstance(x, ArticulatedInertia):
            return self._to_articulated(x)
        raise self.refusal(x)

    def inv_apply(self, x):
        """Motion, force or inertia transformed from B back to A.

        Other kinds bring their own method ``inverse_transformed``.
        """
        if isinstance(x, (Motion, Force, Inertia, ArticulatedInertia)):
            return self.inverse().apply(x)
        if not hasattr(x, "inverse_transformed"):
            raise self.refusal(x)
        return x.inverse_transformed(self)

    def _minus_r_cross(self, a, b):
        """Difference ``a - r × b``; ``b`` may be a vector, columns or a matrix."""
        (i, j, k), d = self.rotation.indices, self.d
        return self.rotation.rows([a[i] + b[j] * d, a[j] - b[i] * d, a[k]])

    # Rotating before shifting, unlike the general case, keeps the saving from zero rows in every
    # version of Table A.5; for a full inertia the order does not matter.

    def _rigid(self, x):
        """Rigid-body inertia in the new coordinates."""
        (i, j, k), d, m = self.rotation.indices, self.d, x.mass
        h, I = self.rotation.vectors(x.first_moment), self.rotation.symmetric(x.rotational)
        y_k = h[k] - m * d
        p = (h[k] + y_k) * d
        Z = symmetric(
            I[i, i] - p, I[j, i], I[j, j] - p, I[k, i] + h[i] * d, I[k, j] + h[j] * d, I[k, k]
        )
        return Inertia(m, self.rotation.rows([h[i], h[j], y_k]), self.rotation.matrix(Z))

    def _to_articulated(self, x):
        """Articulated-body inertia in the new coordinates."""
        (i, j, k), d = self.rotation.indices, self.d
        M, I = self.rotation.symmetric(x.M), self.rotation.symmetric(x.I)
        H = self.rotation.general(x.H)
        Y = self._minus_r_cross(H, M)
        Z = symmetric(  # I - r× Hᵀ + Y r×
            I[i, i] + (H[i, j] + Y[i, j]) * d,
            I[j, i] + (Y[j, j] - H[i, i]) * d,
            I[j, j] - (H[j, i] + Y[j, i]) * d,
            I[k, i] + H[k, j] * d,
            I[k, j] - H[k, i] * d,
            I[k, k],
        )
        return ArticulatedInertia(self.rotation.matrix(Z), Y, M)

    def __repr__(self):
        r = self.rotation
        return f"AxialScrew({'xyz'[r.axis]}, c={r.c}, s={r.s}, d={self.d})"


class ScrewProduct(CoordinateTransform):
    """Transforms applied one after the other, never multiplied out; the last factor comes first."""

    __slots__ = ("factors",)

    def __init__(self, *factors):
        self.factors = factors

    def apply(self, x):
        """Spatial quantity transformed from A to B, factor by factor."""
        for X in reversed(self.factors):
            x = X.apply(x)
        return x

    def inv_apply(self, x):
        """Spatial quantity transformed from B back to A, factor by factor."""
        for X in self.factors:
            x = X.inv_apply(x)
        return x

    def compose(self, other):
        """Product of two transforms: first ``other``, then this one."""
        if isinstance(other, ScrewProduct):
            return ScrewProduct(*self.factors, *other.factors)
        if isinstance(other, (AxialScrew, Plucker)):
            return ScrewProduct(*self.factors, other)
        raise self.refusal(other)

    def inverse(self):
        """Inverse transform, from B back to A."""
        return ScrewProduct(*(X.inverse() for X in reversed(self.factors)))

    def to_plucker(self):
        """Plücker transform of the multiplied factors."""
        total: Any = Plucker.identity()
        for X in reversed(self.factors):
            total = (X if isinstance(X, Plucker) else X.to_plucker()) @ total
        return total

    def to_matrix(self):
        """Dense 6×6 motion transform of the product."""
        return self.to_plucker().to_matrix()

    def __repr__(self):
        return " @ ".join(map(repr, self.factors))


def scrx(angle, d):
    """Screw transform: rotation by ``angle`` [rad] about x and shift by ``d`` [m] along it."""
    return AxialScrew(AxialRotation.from_angle(0, angle), d)


def scry(angle, d):
    """Screw transform: rotation by ``angle`` [rad] about y and shift by ``d`` [m] along it."""
    return AxialScrew(AxialRotation.from_angle(1, angle), d)


def scrz(angle, d):
    """Screw transform: rotation by ``angle`` [rad] about z and shift by ``d`` [m] along it."""
    return AxialScrew(AxialRotation.from_angle(2, angle), d)


def dh_step(a, alpha, d, theta):
    """Denavit–Hartenberg transform to the next frame, as two screws — RBDA §4.3, Figure 4.8."""
    return scrz(theta, d) @ scrx(alpha, a)


guard_module(__name__)
