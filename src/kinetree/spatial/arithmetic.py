"""Rotating 3×3 matrices with few operations — RBDA §A.5.

``m`` and ``a`` below count multiplications and additions, subtractions included.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.spatial.ops import cos, sin
from kinetree.spatial.vector3 import symmetric


def rotate_general(E, A, *, by_trace=False):
    """Congruence ``E A Eᵀ`` of a general matrix: 42m + 37a, against 54m + 36a for two products.

    With ``by_trace``, one entry comes from the invariance of the trace: 40m + 39a.
    """
    if _is_turn_by_right_angles(E):
        return E @ A @ E.T
    L, a33, v = _split(A)
    Y = E @ L
    first, rest = Y[0] @ E[1:, :2].T, Y[1:] @ E[:, :2].T
    z11 = L[0, 0] + L[1, 1] - rest[0, 1] - rest[1, 2] if by_trace else Y[0] @ E[0, :2]
    x, y, z = E[:, :2] @ v
    (z12, z13), ((z21, z22, z23), (z31, z32, z33)) = first, rest
    return np.array(
        [
            [z11 + a33, z12 - z, z13 + y],
            [z21 + z, z22 + a33, z23 - x],
            [z31 - y, z32 + x, z33 + a33],
        ]
    )


def rotate_symmetric(E, A):
    """Congruence ``E A Eᵀ`` of a symmetric matrix, by its lower triangle: 28m + 29a."""
    if _is_turn_by_right_angles(E):
        return E @ A @ E.T
    L, a33, v = _split(A)
    Y = E[1:] @ L
    (z21, z22), (z31, z32, z33) = Y[0] @ E[:2, :2].T, Y[1] @ E[:, :2].T
    z11 = L[0, 0] + L[1, 1] - z22 - z33  # the trace is invariant
    x, y, z = E[:, :2] @ v
    return symmetric(z11 + a33, z21 + z, z22 + a33, z31 - y, z32 + x, z33 + a33)


def _is_turn_by_right_angles(E):
    """Whether ``E`` only permutes and reverses axes, so that it costs nothing to apply."""
    return E.dtype != object and np.count_nonzero(E) == 3


def _split(A):
    """Split ``A = L + a33·1 + v×`` with a zero last column in ``L`` (dropped) and ``v_z = 0``."""
    a33 = A[2, 2]
    L = np.array(
        [[A[0, 0] - a33, A[0, 1]], [A[1, 0], A[1, 1] - a33], [A[2, 0] + A[0, 2], A[2, 1] + A[1, 2]]]
    )
    return L, a33, np.array([-A[1, 2], A[0, 2]])


@dataclass(frozen=True, slots=True, eq=False)
class AxialRotation:
    """``E`` of a turn about a coordinate axis, with what it takes to apply it cheaply.

    Of a 2×2 block ``[[a, b], [d, e]]`` a turn keeps ``a + e`` and ``b - d``. With ``t = b + d`` and
    ``y = c t + s (e - a)`` the block becomes ``[[a + s y, b + z], [d + z, e - s y]]`` for
    ``z = c y - t``, since ``2 c² - 1 = c² - s²``. Making one costs an addition.

    Attributes:
        axis: 0, 1 or 2 for x, y or z.
        c, s: cosine and sine of the angle.
        c2: ``2 c``.
    """

    axis: int
    c: Any
    s: Any
    c2: Any

    @classmethod
    def from_angle(cls, axis, angle):
        """Rotation by ``angle`` [rad] about axis 0, 1 or 2."""
        return cls.from_cosine_sine(axis, cos(angle), sin(angle))

    @classmethod
    def from_cosine_sine(cls, axis, c, s):
        """Rotation about axis 0, 1 or 2 by the angle with cosine ``c`` and sine ``s``."""
        return cls(axis, c, s, c + c)

    def inverse(self):
        """Inverse rotation, by sign changes only."""
        return replace(self, s=-self.s)

    @property
    def indices(self):
        """Cyclic permutation ``(i, j, k)`` of the coordinates with ``k`` the axis."""
        k = self.axis
        return (k + 1) % 3, (k + 2) % 3, k

    def rows(self, block):
        """Rows given in the order ``(i, j, k)``, rearranged to x, y, z."""
        i = self.indices[0]
        return np.array(block)[[-i % 3, (1 - i) % 3, (2 - i) % 3]]

    def matrix(self, block):
        """3×3 array given in the order ``(i, j, k)``, rearranged to x, y, z."""
        return self.rows(self.rows(block).T).T

    def to_matrix(self):
        """Coordinate rotation matrix ``E``, (3, 3)."""
        return self.matrix([[self.c, self.s, 0], [-self.s, self.c, 0], [0, 0, 1]])

    def vectors(self, a):
        """Product ``E a`` with a vector (3,) or columns (3, n): 4m + 2a each."""
        (i, j, k), c, s = self.indices, self.c, self.s
        return self.rows([c * a[i] + s * a[j], c * a[j] - s * a[i], a[k]])

    def general(self, A):
        """Congruence ``E A Eᵀ`` of a general matrix: 12m + 12a."""
        (i, j, k), c, s = self.indices, self.c, self.s
        total = A[i, j] + A[j, i]
        y = c * total + s * (A[j, j] - A[i, i])
        z = c * y - total
        return self.matrix(
            [
                [A[i, i] + s * y, A[i, j] + z, c * A[i, k] + s * A[j, k]],
                [A[j, i] + z, A[j, j] - s * y, c * A[j, k] - s * A[i, k]],
                [c * A[k, i] + s * A[k, j], c * A[k, j] - s * A[k, i], A[k, k]],
            ]
        )

    def symmetric(self, A):
        """Congruence ``E A Eᵀ`` of a symmetric matrix, lower triangle only: 8m + 7a."""
        (i, j, k), c, s = self.indices, self.c, self.s
        y = self.c2 * A[j, i] + s * (A[j, j] - A[i, i])
        ki, kj = c * A[k, i] + s * A[k, j], c * A[k, j] - s * A[k, i]
        ji = c * y - A[j, i]
        return self.matrix(symmetric(A[i, i] + s * y, ji, A[j, j] - s * y, ki, kj, A[k, k]))
