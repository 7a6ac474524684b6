"""Rotations as matrices: exponential, logarithm, and the Jacobians between them.

J. Solà, J. Deray, D. Atchuthan, "A micro Lie theory for state estimation in robotics" (2018).
"""

from math import atan2, sin

from kinetree.codegen.procedures import procedure, sqrt

_SMALL = 0.03
"""Angles [rad] below which series take over, whose next terms are rounding errors."""


@procedure
def cross_matrix(v: "float[3]", out: "float[3, 3]") -> None:
    """Write the cross-product matrix of ``v``: ``out @ x = v × x``."""
    out[:] = 0.0
    out[0, 1] = -v[2]
    out[0, 2] = v[1]
    out[1, 0] = v[2]
    out[1, 2] = -v[0]
    out[2, 0] = -v[1]
    out[2, 1] = v[0]


@procedure
def _series(v: "float[3]", one: float, two: float, out: "float[3, 3]") -> None:
    """Write the matrix ``1 + one v× + two v× v×``."""
    cross_matrix(v, out)
    square = v @ v
    for i in range(3):
        for j in range(3):
            out[i, j] = one * out[i, j] + two * v[i] * v[j]
        out[i, i] += 1.0 - two * square


@procedure
def _factors(v: "float[3]") -> "(float, float, float)":
    """``sin a / a``, ``(1 - cos a) / a²`` and ``(a - sin a) / a³`` for the angle ``a = |v|``."""
    square = v @ v
    if square < _SMALL * _SMALL:
        one = 1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0))
        two = 0.5 - square / 24.0 * (1.0 - square / 30.0 * (1.0 - square / 56.0))
        three = (1.0 - square / 20.0 * (1.0 - square / 42.0 * (1.0 - square / 72.0))) / 6.0
        return one, two, three
    a = sqrt(square)
    half = sin(0.5 * a)
    return sin(a) / a, 2.0 * half * half / square, (a - sin(a)) / (square * a)


@procedure
def rotation(v: "float[3]", out: "float[3, 3]") -> None:
    """Write the rotation matrix of a rotation vector."""
    one, two, _ = _factors(v)
    _series(v, one, two, out)


@procedure
def left_jacobian(v: "float[3]", out: "float[3, 3]") -> None:
    """Write the left Jacobian ``J`` with ``exp(v + d) = exp(J d) exp(v)``."""
    _, two, three = _factors(v)
    _series(v, two, three, out)


@procedure
def rotation_vector(R: "float[3, 3]", out: "float[3]") -> None:
    """Write the rotation vector of a rotation by less than 180°."""
    out[0] = 0.5 * (R[2, 1] - R[1, 2])
    out[1] = 0.5 * (R[0, 2] - R[2, 0])
    out[2] = 0.5 * (R[1, 0] - R[0, 1])
    square = out @ out
    if square < _SMALL * _SMALL:
        c = 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
        if c > 0.0:
            out *= 1.0 + square / 6.0 * (1.0 + 0.45 * square * (1.0 + square * 25.0 / 42.0))
            return
    s = sqrt(square)
    out *= atan2(s, 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)) / max(s, 1e-300)
