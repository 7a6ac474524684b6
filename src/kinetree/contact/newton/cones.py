"""Projection of impulses onto the cones and bounds of groups, and its derivative.

For a round cone ``|p_t| <= mu p_n`` the nearest point of ``y`` is ``y`` itself within the cone, zero within
the polar cone ``mu |y_t| <= -y_n``, and ``s (1, mu t)`` between, with ``t = y_t / |y_t|`` and
``s = (y_n + mu |y_t|) / (1 + mu^2)``.
"""

from kinetree.codegen.procedures import procedure, sqrt
from kinetree.contact.newton.problem import BOUNDS, Problem

__all__ = ["OPEN", "SLIDING", "STICKING", "curvature", "project", "tangential"]

OPEN = 0
STICKING = 1
SLIDING = 2


@procedure
def tangential(x: "float[:]", dim: int) -> float:
    """Length of the rows of a group after the first."""
    if dim == 3:
        return sqrt(x[1] * x[1] + x[2] * x[2])
    s = 0.0
    for r in range(1, dim):
        s += x[r] * x[r]
    return sqrt(s)


@procedure
def project(problem: Problem, g: int, y: "float[:]", p: "float[:]") -> int:
    """Write the impulse of a group nearest to ``y`` to ``p``: OPEN, STICKING (inside) or SLIDING."""
    if problem.kind[g] == BOUNDS:
        low = problem.low[g]
        high = problem.high[g]
        if y[0] <= low:
            p[0] = low
            return OPEN
        if y[0] >= high:
            p[0] = high
            return OPEN
        p[0] = y[0]
        return STICKING
    dim = problem.dim[g]
    mu = problem.mu[g]
    n = y[0]
    if dim == 1 or mu == 0.0:
        for r in range(1, dim):
            p[r] = 0.0
        if n <= 0.0:
            p[0] = 0.0
            return OPEN
        p[0] = n
        return STICKING
    t = tangential(y, dim)
    if t <= mu * n:
        for r in range(dim):
            p[r] = y[r]
        return STICKING
    if mu * t <= -n:
        for r in range(dim):
            p[r] = 0.0
        return OPEN
    s = (n + mu * t) / (1.0 + mu * mu)
    p[0] = s
    f = mu * s / t
    for r in range(1, dim):
        p[r] = f * y[r]
    return SLIDING


@procedure
def curvature(
    dim: int, mu: float, state: int, y: "float[:]", w: "float[:]", live: int, A: "float[:]"
) -> None:
    """Write ``-dp/dw / rho``, (dim, dim), of a group that is not open to ``A``.

    With ``g = (1, mu t)`` it is ``g g' / (1 + mu^2) + mu s / |y_t| (1 - t t')`` on the border of
    the cone. A live group has De Saxcé's correction ``mu |w_t|`` in its normal velocity: the second
    factor ``g`` becomes ``(1, mu (t + w_t / |w_t|))``, nearly ``(1, 0)``.
    """
    for k in range(dim * dim):
        A[k] = 0.0
    if state == STICKING:
        A[0] = 1.0
        if mu > 0.0:
            for r in range(1, dim):
                A[r * dim + r] = 1.0
        return
    length = tangential(y, dim)
    h = 1.0 / (1.0 + mu * mu)
    e = mu * (y[0] + mu * length) * h / length
    speed = 0.0
    if live != 0:
        speed = tangential(w, dim)
    f = 0.0
    if speed > 0.0:
        f = mu / speed
    u = mu / length
    A[0] = h
    for c in range(1, dim):
        right = u * y[c] + f * w[c]
        A[c] = h * right
        A[c * dim] = h * u * y[c]
        for r in range(1, dim):
            A[r * dim + c] = h * u * y[r] * right - e * y[r] * y[c] / (length * length)
        A[c * dim + c] += e
