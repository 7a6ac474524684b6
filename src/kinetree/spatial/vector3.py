"""Three-dimensional vectors and the cross operator — RBDA §2.8, Table 2.1."""

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError
from kinetree.spatial.ops import sqrt

# Structural zeros and ones are integers, so that exact numbers (Fraction) stay exact.
ZERO3 = np.zeros(3, dtype=int)
ZERO3.flags.writeable = False


def identity3():
    """Identity matrix (3, 3) with integer entries."""
    return np.eye(3, dtype=int)


def as_vector3(x, what="vector"):
    """Array of three numbers; an error names ``what`` otherwise."""
    a = np.asarray(x)
    if a.shape != (3,):
        raise ShapeError(f"{what} must have 3 components, got shape {a.shape}: {x!r}")
    return a


def cross(a: ArrayLike, b: ArrayLike) -> Array:
    """Cross product ``a × b`` of 3-vectors, or of 3×n arrays column by column."""
    # Python's own numbers, with the same bits, are three times as fast as elements of arrays.
    x, y, z = a.tolist() if _is_plain(a) else a
    u, v, w = b.tolist() if _is_plain(b) else b
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def _is_plain(a):
    """Whether an array is one vector of ordinary numbers."""
    return type(a) is np.ndarray and a.ndim == 1 and a.dtype.char in "dlDO"


def skew(a: ArrayLike) -> Array:
    """Cross-product matrix ``a×``, ``skew(a) @ b == cross(a, b)`` — RBDA (2.23)."""
    x, y, z = as_vector3(a)
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def unskew(A: ArrayLike) -> Array:
    """Vector whose cross-product matrix is the skew part of ``A``; inverse of ``skew``."""
    return np.array([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]]) / 2


def norm(a):
    """Euclidean length of a 3-D vector."""
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


def symmetric(xx, yx, yy, zx, zy, zz):
    """Symmetric 3×3 matrix from its lower triangle, row by row."""
    return np.array([[xx, yx, zx], [yx, yy, zy], [zx, zy, zz]])


def symmetric_product(P, Q):
    """Product ``P Qᵀ`` of 3×n factors that is known to be symmetric."""
    return symmetric(*(P[i] @ Q[j] for i in range(3) for j in range(i + 1)))
