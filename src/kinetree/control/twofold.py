"""Matrices in doubled precision: each number is the sum of two, as are products and sums.

T. J. Dekker, "A floating-point technique for extending the available precision" (1971); sums by
D. E. Knuth. It needs neither wider numbers, which not every processor has, nor fused products.
"""

from typing import NamedTuple

import numpy as np

_SPLIT = 2.0**27 + 1


class Twofold(NamedTuple):
    """Matrices ``high + low``, (..., n, m) each, to about 32 digits."""

    high: np.ndarray
    low: np.ndarray

    @classmethod
    def of(cls, matrix) -> "Twofold":
        """Double-double matrices from matrices of floats."""
        return cls(matrix, np.zeros_like(matrix))

    @property
    def T(self) -> "Twofold":
        """Transposed matrices."""
        return Twofold(np.swapaxes(self.high, -1, -2), np.swapaxes(self.low, -1, -2))

    def plus(self, other: "Twofold") -> "Twofold":
        """Sum of two double-double matrices."""
        high, low = _sum(self.high, other.high)
        return Twofold(*_sum(high, low + self.low + other.low))

    def minus(self, other: "Twofold") -> "Twofold":
        """Difference of two double-double matrices."""
        return self.plus(Twofold(-other.high, -other.low))

    def times(self, other: "Twofold") -> "Twofold":
        """Product of two double-double matrices."""
        a, b = self.high, other.high
        total = np.zeros(np.broadcast_shapes((*a.shape[:-1], 1), (*b.shape[:-2], 1, b.shape[-1])))
        error = self.high @ other.low + self.low @ other.high
        for k in range(a.shape[-1]):
            product, lost = _product(a[..., :, k, None], b[..., None, k, :])
            total, more = _sum(total, product)
            error = error + (lost + more)
        return Twofold(*_sum(total, error))

    @property
    def symmetric(self) -> "Twofold":
        """Symmetric part of the matrices."""
        found = self.plus(self.T)
        return Twofold(found.high / 2, found.low / 2)


def _sum(a, b):
    """Rounded sum of two floats and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _halves(a):
    """Two floats of 26 bits whose sum is ``a``."""
    wide = _SPLIT * a
    high = wide - (wide - a)
    return high, a - high


def _product(a, b):
    """Rounded product of two floats and its rounding error."""
    product = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
