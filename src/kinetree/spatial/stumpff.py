"""Stumpff functions: ``c_k(s) = Σ (-s)ʲ / (2j + k)!``, smooth at zero.

With ``s = θ²`` they are the coefficients of every exponential map on rotations and rigid motions:
``c_0 = cos θ``, ``c_1 = sin θ/θ``, ``c_2 = (1 - cos θ)/θ²``, ``c_3 = (θ - sin θ)/θ³``.
The closed forms lose all digits near zero, so a series takes over there.
"""

from math import factorial

from kinetree.spatial.ops import cos, less, select, sin, sqrt

__all__ = ["stumpff", "stumpff_rate"]

_SWITCH = 4  # |θ| = 2: the closed forms have lost less than four bits


def stumpff(s):
    """``(c_0, ..., c_5)`` at ``s = θ² ≥ 0``, to working precision everywhere."""
    near = less(s, _SWITCH)
    c4, c5 = _series(select(near, s, 0), 4), _series(select(near, s, 0), 5)
    c2, c3 = 1 / 2 - s * c4, _over(1, 6, s) - s * c5
    small = (1 - s * c2, 1 - s * c3, c2, c3, c4, c5)

    theta = sqrt(select(near, _SWITCH + 0 * s, s))
    safe = theta * theta
    c0, c1 = cos(theta), sin(theta) / theta
    half = sin(theta / 2) / theta
    c2 = 2 * half * half
    c3 = (1 - c1) / safe
    large = (c0, c1, c2, c3, (_over(1, 2, s) - c2) / safe, (_over(1, 6, s) - c3) / safe)
    return tuple(select(near, a, b) for a, b in zip(small, large, strict=True))


def stumpff_rate(c):
    """``(dc_1/ds, dc_2/ds, dc_3/ds)`` from the values ``c = stumpff(s)``; no division."""
    return tuple((k * c[k + 2] - c[k + 1]) / 2 for k in (1, 2, 3))


def _series(s, k):
    """Horner's rule; enough terms for |s| < 4 in the precision of ``s``."""
    terms = 30 if type(s).__module__.startswith("mpmath") else 12
    total = _over(1, factorial(2 * terms + k), s)
    for j in range(terms - 1, -1, -1):
        total = _over(1, factorial(2 * j + k), s) - s * total
    return total


def _over(numerator, denominator, s):
    """A rational constant in the precision of ``s``."""
    return (numerator + 0 * s) / denominator if _is_exact(s) else numerator / denominator


def _is_exact(s):
    return type(s).__module__.partition(".")[0] in ("mpmath", "sympy", "fractions")
