"""Laws of groups: nearest impulses, impulses that a velocity asks for, and their derivatives.

Coulomb's law for a group with impulse ``lam`` and velocity ``w`` is ``lam = P(lam - r w)`` for any
``r > 0``, where ``P`` cuts the normal part at zero, then the tangential part to the length that the
normal part allows (Alart and Curnier 1991). With the cone in place of that disc, and De Saxcé's
``mu |w_t|`` added to the normal velocity, the same solutions are fixed points of a projection.
"""

from kinetree.codegen.procedures import dot, procedure, sqrt, vector
from kinetree.contact.newton.problem import BOUNDS, CONE, Problem

__all__ = ["OPEN", "SLIDING", "STICKING", "law", "linear", "off_law", "project",
           "tangential", "touches"]  # fmt: skip

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


@procedure(inline=True)
def touches(problem: Problem, g: int) -> bool:
    """Whether a group is a contact with three rows, as most are."""
    return problem.kind[g] == CONE and problem.dim[g] == 3


@procedure
def law(problem: Problem, g: int, y: "float[:]", p: "float[:]") -> int:
    """Write ``P(y)`` of a group to ``p``: OPEN (or at a bound), STICKING (within) or SLIDING."""
    n = y[0]
    if problem.kind[g] == BOUNDS:
        if n <= problem.low[g]:
            p[0] = problem.low[g]
            return OPEN
        if n >= problem.high[g]:
            p[0] = problem.high[g]
            return OPEN
        p[0] = n
        return STICKING
    dim = problem.dim[g]
    if n <= 0.0:
        p[:dim] = 0.0
        return OPEN
    p[0] = n
    most = problem.mu[g] * n
    if dim == 3:
        square = y[1] * y[1] + y[2] * y[2]
        inside = square <= most * most
        part = 1.0 if inside else most / sqrt(square)
        p[1] = part * y[1]
        p[2] = part * y[2]
        return STICKING if inside else SLIDING
    t = tangential(y, dim)
    if t <= most:
        p[1:dim] = y[1:dim]
        return STICKING
    p[1:dim] = most / t * y[1:dim]
    return SLIDING


@procedure(inline=True)
def off_law(mu: float, lam: "float[3]", y: "float[3]") -> float:
    """``|lam - P(y)|`` of a contact with three rows, squared."""
    n = max(y[0], 0.0)
    most = mu * n
    square = y[1] * y[1] + y[2] * y[2]
    part = 1.0
    if square > most * most:
        part = most / sqrt(square)
    rest = vector(lam[0] - n, lam[1] - part * y[1], lam[2] - part * y[2])
    return dot(rest, rest)


@procedure
def project(problem: Problem, g: int, y: "float[:]", p: "float[:]") -> None:
    """Write the admissible impulse of a group that is nearest to ``y`` to ``p``."""
    n = y[0]
    if problem.kind[g] == BOUNDS:
        p[0] = min(max(n, problem.low[g]), problem.high[g])
        return
    dim = problem.dim[g]
    mu = problem.mu[g]
    t = tangential(y, dim)
    if t <= mu * n:
        p[:dim] = y[:dim]
    elif mu * t <= -n:
        p[:dim] = 0.0
    else:
        s = (n + mu * t) / (1.0 + mu * mu)
        p[0] = s
        p[1:dim] = mu * s / t * y[1:dim]


@procedure
def linear(
    dim: int, mu: float, state: int, r: float, soft: float, lam: "float[:]", w: "float[:]",
    y: "float[:]", p: "float[:]", A: "float[:]", c: "float[:]",
) -> None:  # fmt: skip
    """Write Newton's ``dlam = c - A dw`` of a group to ``c`` and ``A``; open ones have no ``A``.

    It is the solution of ``dlam - (1 - soft) P' dlam = P(y) - lam - P' r dw``.
    Rows that stick get the penalty ``r / soft``: none is singular where contacts are redundant.
    A sliding group with direction ``t`` and ``e = mu p_n / |y_t|`` resists across it by the
    curvature ``r e / (1 - e)``, which is that of Coulomb's friction, ``mu p_n / |w_t|``.
    """
    c[:dim] = p[:dim] - lam[:dim]
    if state == OPEN:
        return
    A[: dim * dim] = 0.0
    rho = r / soft
    A[0] = rho
    c[0] = -rho * w[0]
    if state == STICKING:
        for k in range(1, dim):
            A[k * dim + k] = rho
            c[k] = -rho * w[k]
        return
    if mu == 0.0:
        return
    length = tangential(y, dim)
    e = mu * p[0] / length
    stay = 1.0 / (1.0 - (1.0 - soft) * e)
    along = 0.0
    for k in range(1, dim):
        along += c[k] * y[k] / length
    ahead = along * (1.0 - stay) + (1.0 - soft) * mu * c[0]
    for k in range(1, dim):
        t = y[k] / length
        c[k] = stay * c[k] + ahead * t
        A[k * dim] = mu * rho * t
        for m in range(1, dim):
            A[k * dim + m] = -r * e * stay * t * y[m] / length
        A[k * dim + k] += r * e * stay
