"""Motion and force vectors, the two kinds of spatial vector — RBDA §2.2–2.6, Table A.3.

A ``Motion`` or ``Force`` holds an angular and a linear part, angular first. Each part may be a
3-vector or a 3×n array; the latter is a set of n vectors, such as the motion subspace ``S`` of a
joint, and combines with coefficients: ``S @ qd``. ``S.T @ f`` is the scalar product.

The two kinds do not mix. Adding a force to a motion, or multiplying two motions, raises
``SpatialTypeError``; in compiled code the check has long happened and costs nothing.
"""

from typing import Any

import numpy as np

from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.spatial import dense
from kinetree.spatial.vector3 import ZERO3, cross


class SpatialVector:
    """Base of motions and forces: a vector space of pairs of 3-vectors."""

    __slots__ = ("angular", "linear")
    _sizes = (3, 3)
    __array_ufunc__ = None  # let ``2.0 * v`` and ``array @ v`` come to us, not to NumPy

    def __init__(self, angular, linear):
        self.angular = np.asarray(angular)
        self.linear = np.asarray(linear)
        a, b = self._sizes
        if self.angular.shape[:1] != (a,) or self.linear.shape != (b, *self.angular.shape[1:]):
            raise ShapeError(
                f"{type(self).__name__} needs an angular part of {a} and a linear part of {b} "
                f"components, or as many columns of them, got shapes {self.angular.shape} and "
                f"{self.linear.shape}"
            )

    @classmethod
    def from_array(cls, x):
        """Spatial vector from six Plücker coordinates, (6,), or n vectors as columns (6, n)."""
        if isinstance(x, SpatialVector):
            raise SpatialTypeError(
                f"a {type(x).__name__} cannot be taken for a {cls.__name__}; convert on purpose "
                f"with {cls.__name__}.from_array(x.to_array())"
            )
        x, (a, b) = np.asarray(x), cls._sizes
        if x.ndim not in (1, 2) or x.shape[0] != a + b:
            raise ShapeError(
                f"{cls.__name__} needs {'six' if a + b == 6 else 'three'} coordinates, angular "
                f"first: shape ({a + b},) or ({a + b}, n), got {x.shape}"
            )
        return cls(x[:a], x[a:])

    @classmethod
    def zero(cls):
        """Zero vector of this space."""
        a, b = cls._sizes
        return cls(ZERO3[:a], ZERO3[:b])

    def to_array(self):
        """Plücker coordinates, angular first: (6,) or (6, n)."""
        return np.concatenate([self.angular, self.linear])

    @property
    def T(self):
        """Transposed vector, for scalar products: ``S.T @ f``."""
        return Transposed(self)

    def _same_kind(self, other, verb):
        """Raise an error unless both vectors are motions, or both forces."""
        if type(other) is not type(self):
            raise SpatialTypeError(
                f"cannot {verb} a {type(other).__name__} and a {type(self).__name__}: "
                f"they live in different vector spaces"
            )

    def __add__(self, other):
        self._same_kind(other, "add")
        return type(self)(self.angular + other.angular, self.linear + other.linear)

    def __sub__(self, other):
        self._same_kind(other, "subtract")
        return type(self)(self.angular - other.angular, self.linear - other.linear)

    def __neg__(self):
        return type(self)(-self.angular, -self.linear)

    def __mul__(self, k):
        if isinstance(k, SpatialVector):
            raise SpatialTypeError(
                f"{type(self).__name__} * {type(k).__name__} is not defined: the scalar product "
                f"is m.dot(f), the cross products are crm(v, m) and crf(v, f)"
            )
        return type(self)(self.angular * k, self.linear * k)

    __rmul__ = __mul__

    def __truediv__(self, k):
        return type(self)(self.angular / k, self.linear / k)

    def __rmatmul__(self, matrix):
        raise SpatialTypeError(
            f"{type(matrix).__name__} @ {type(self).__name__} is not defined: a plain matrix does "
            f"not say which kind of vector it acts on; write matrix @ x.to_array()"
        )

    def __matmul__(self, coefficients):
        """Linear combination of columns: ``S @ qd``; also ``S @ A`` for a change of basis."""
        if isinstance(coefficients, (SpatialVector, Transposed)):
            raise SpatialTypeError(
                f"{type(self).__name__} @ {type(coefficients).__name__} is not defined: "
                f"write S.T @ f for scalar products, dyadic(F, A) for F A Fᵀ"
            )
        return type(self)(self.angular @ coefficients, self.linear @ coefficients)

    def dot(self, other):
        """Scalar product of a motion and a force: power, energy — RBDA (2.12)."""
        return self.T @ other

    def __getitem__(self, columns):
        """Selected columns of a set of vectors."""
        if self.angular.ndim != 2:
            raise ShapeError(
                f"a single {type(self).__name__} has no columns; x.to_array()[k] is a coordinate"
            )
        return type(self)(self.angular[:, columns], self.linear[:, columns])

    def arrays(self) -> list[np.ndarray]:
        """Arrays that the vector consists of, for tables of recorded loops."""
        return [self.angular, self.linear]

    def like(self, arrays: list[np.ndarray]) -> Any:
        """Vector of this space made of other arrays."""
        return type(self)(*arrays)

    def __repr__(self):
        return f"{type(self).__name__}({self.angular.tolist()}, {self.linear.tolist()})"


class Motion(SpatialVector):
    """Velocity, acceleration, infinitesimal displacement: an element of M⁶."""

    __slots__ = ()

    def cross(self, other: Any) -> Any:
        """Cross product with a motion, ``v × m``, or force, ``v ×* f`` — RBDA (2.31), (2.32)."""
        w, v = self.angular, self.linear
        if isinstance(other, Motion):
            m, m_O = other.angular, other.linear
            return Motion(cross(w, m), cross(w, m_O) + cross(v, m))
        if isinstance(other, Force):
            f_O, f = other.angular, other.linear
            return Force(cross(w, f_O) + cross(v, f), cross(w, f))
        raise SpatialTypeError(
            f"Motion.cross needs a Motion or a Force, got {type(other).__name__}"
        )


class Force(SpatialVector):
    """Force, momentum, impulse: an element of F⁶. The angular part is the moment about O."""

    __slots__ = ()

    def cross(self, other: Any) -> Any:
        """Raise an error: a force has no cross product."""
        raise SpatialTypeError(
            f"Force × {type(other).__name__} is not defined: only a motion can stand on the left "
            f"of a cross product"
        )


class Transposed:
    """Row form of a spatial vector or set of columns; only meets the dual kind."""

    __slots__ = ("columns",)
    __array_ufunc__ = None

    def __init__(self, columns):
        self.columns = columns

    @property
    def T(self):
        """Vector as columns again, without the transposition."""
        return self.columns

    def __matmul__(self, other):
        dual = Force if isinstance(self.columns, Motion) else Motion
        if not isinstance(other, dual):
            raise SpatialTypeError(
                f"the scalar product of a {type(self.columns).__name__} needs a {dual.__name__}, "
                f"got {type(other).__name__}"
            )
        a, b = self.columns, other
        return a.angular.T @ b.angular + a.linear.T @ b.linear


# --- The spatial cross products ``v×`` and ``v×*`` — RBDA §2.9, (2.31)–(2.34) --------------------
# Both take the dense form (arrays of six, or three planar, coordinates) as well as typed vectors,
# so that one algorithm text runs on either.


def crm(v: Any, m: Any) -> Any:
    """Cross product ``v × m``: rate of a motion vector ``m`` carried along at velocity ``v``."""
    if isinstance(v, np.ndarray):
        return dense.crm(v) @ m
    _refuse(m, "Force", "crm", "crf")
    return v.cross(m)


def crf(v: Any, f: Any) -> Any:
    """Cross product ``v ×* f``: rate of a force vector ``f`` carried along at velocity ``v``."""
    if isinstance(v, np.ndarray):
        return dense.crf(v) @ f
    _refuse(f, "Motion", "crf", "crm")
    return v.cross(f)


def _refuse(vector, kind, this, other):
    """Raise an error about two spatial vectors of incompatible kinds."""
    if isinstance(vector, SpatialVector) and type(vector).__name__.endswith(kind):
        raise SpatialTypeError(f"{this} got a {type(vector).__name__}; use {other} for it")


cross_motion, cross_force = crm, crf
