"""Rotating 3×3 matrices with few operations — RBDA §A.5.

``m`` and ``a`` below count multiplications and additions, subtractions included.
"""

import numpy as np

from kinetree.spatial.vector3 import cross, skew, symmetric

__all__ = ["rotate_general", "rotate_symmetric", "rotation_product"]


def rotation_product(F, G):
    """``F @ G`` of two proper rotations, last column by cross product: 24m + 15a."""
    first_two = F @ G[:, :2]
    return np.column_stack([first_two, cross(first_two[:, 0], first_two[:, 1])])


def rotate_general(E, A):
    """``E A Eᵀ`` of a general matrix: 40m + 39a, against 54m + 36a for two products."""
    L, a33, v = _split(A)
    Y = E @ L
    first, rest = Y[0] @ E[1:, :2].T, Y[1:] @ E[:, :2].T
    z11 = L[0, 0] + L[1, 1] - rest[0, 1] - rest[1, 2]  # the trace is invariant
    Z = np.array([[z11, *first], *rest])
    return Z + a33 * np.eye(3, dtype=int) + skew(E[:, :2] @ v)


def rotate_symmetric(E, A):
    """``E A Eᵀ`` of a symmetric matrix, lower triangle only: 28m + 29a."""
    L, a33, v = _split(A)
    Y = E[1:] @ L
    (z21, z22), (z31, z32, z33) = Y[0] @ E[:2, :2].T, Y[1] @ E[:, :2].T
    z11 = L[0, 0] + L[1, 1] - z22 - z33
    x, y, z = E[:, :2] @ v
    return symmetric(z11 + a33, z21 + z, z22 + a33, z31 - y, z32 + x, z33 + a33)


def _split(A):
    """``A = L + a33·1 + v×`` with a zero last column in ``L`` (dropped) and ``v_z = 0``."""
    a33 = A[2, 2]
    L = np.array(
        [
            [A[0, 0] - a33, A[0, 1]],
            [A[1, 0], A[1, 1] - a33],
            [A[2, 0] + A[0, 2], A[2, 1] + A[1, 2]],
        ]
    )
    return L, a33, np.array([-A[1, 2], A[0, 2]])
