"""Stumpff functions: ``c_k(s) = Σ (-s)ʲ / (2j + k)!``, smooth at zero.

With ``s = θ²`` they are the coefficients of every exponential map on rotations and rigid motions:
``c_0 = cos θ``, ``c_1 = sin θ/θ``, ``c_2 = (1 - cos θ)/θ²``, ``c_3 = (θ - sin θ)/θ³``.
The closed forms lose all digits near zero, so a series takes over there.
"""

import sys
from math import factorial

from kinetree.spatial.ops import (
    cos,
    digits,
    is_symbolic,
    less,
    rational,
    select,
    sin,
    sqrt,
)

__all__ = ["stumpff", "stumpff_rate"]

_SWITCH = 4  # |θ| = 2: the closed forms have lost less than four bits


def stumpff(s):
    """``(c_0, ..., c_5)`` at ``s = θ² ≥ 0``, to working precision everywhere."""
    if is_symbolic(s):  # the series is exact where a formula needs it, at zero
        near = sys.modules["sympy"].Eq(s, 0)
        small, large = _small(s), _large(s)
    else:
        near = less(s, _SWITCH)
        small, large = _small(select(near, s, 0 * s)), _large(select(near, _SWITCH + 0 * s, s))
    return tuple(select(near, a, b) for a, b in zip(small, large, strict=True))


def stumpff_rate(c):
    """``(dc_1/ds, dc_2/ds, dc_3/ds)`` from the values ``c = stumpff(s)``; no division."""
    return tuple((k * c[k + 2] - c[k + 1]) / 2 for k in (1, 2, 3))


def _small(s):
    """By series, then down by ``c_k = 1/k! - s c_(k+2)``."""
    c4, c5 = _series(s, 4), _series(s, 5)
    c2, c3 = rational(1, 2, s) - s * c4, rational(1, 6, s) - s * c5
    return 1 - s * c2, 1 - s * c3, c2, c3, c4, c5


def _large(s):
    """Closed forms, then up by ``c_(k+2) = (1/k! - c_k) / s``."""
    theta = sqrt(s)
    c0, c1 = cos(theta), sin(theta) / theta
    half = sin(theta / 2) / theta
    c2 = 2 * half * half  # 1 - cos θ = 2 sin²(θ/2)
    c3 = (1 - c1) / s
    return c0, c1, c2, c3, (rational(1, 2, s) - c2) / s, (rational(1, 6, s) - c3) / s


def _series(s, k):
    """Horner's rule; enough terms for |s| < 4 in the precision of ``s``."""
    terms = 4 + digits(s) // 2
    total = rational(1, factorial(2 * terms + k), s)
    for j in range(terms - 1, -1, -1):
        total = rational(1, factorial(2 * j + k), s) - s * total
    return total
