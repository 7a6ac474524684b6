"""Laws of groups: nearest impulses, impulses that a velocity asks for, and their derivatives.

Coulomb's law for a group with impulse ``lam`` and velocity ``w`` is ``lam = P(lam - r w)`` for any
``r > 0``, where ``P`` cuts the normal part at zero, then the tangential part to the length that the
normal part allows (Alart and Curnier 1991). With the cone in place of that disc, and De Saxcé's
``mu |w_t|`` added to the normal velocity, the same solutions are fixed points of a projection.

Contacts that resist spinning have a second disc, that of the moment about the normal, and those
that resist rolling a third, that of the moments about the tangents: limits that do not depend on
one another, all of the length ``mu`` times the normal impulse, as rows are scaled. De Saxcé's term
is then the sum over discs.
"""

from kinetree.codegen.procedures import dot, procedure, sqrt, vector
from kinetree.contact.newton.problem import BOUNDS, CONE, Problem

__all__ = ["OPEN", "SLIDING", "STICKING", "disc_end", "held_slip", "law", "length", "linear",
           "most_used", "off_law", "project", "slip", "tangential", "touches"]  # fmt: skip

OPEN = 0
STICKING = 1
SLIDING = 2


@procedure
def tangential(x: "float[:]", dim: int) -> float:
    """Euclidean norm of a contact's vector without its first (normal) row."""
    if dim == 3:
        return sqrt(x[1] * x[1] + x[2] * x[2])
    s = 0.0
    for r in range(1, dim):
        s += x[r] * x[r]
    return sqrt(s)


@procedure(inline=True)
def disc_end(dim: int, r: int) -> int:
    """End of the rows of the friction disc that begins at row ``r``: slide, spin or roll."""
    if dim <= 3:
        return dim
    return r + 1 if r == 3 else r + 2


@procedure(inline=True)
def length(x: "float[:]", r: int, end: int) -> float:
    """Euclidean norm of the rows ``r`` to ``end``, one or two, of a friction disc."""
    if end == r + 1:
        return abs(x[r])
    return sqrt(x[r] * x[r] + x[r + 1] * x[r + 1])


@procedure
def most_used(x: "float[:]", dim: int) -> float:
    """Largest norm among a contact's friction discs: sliding, spinning and rolling."""
    if dim <= 3:
        return tangential(x, dim)
    most = 0.0
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        most = max(most, length(x, r, end))
        r = end
    return most


@procedure
def slip(x: "float[:]", dim: int) -> float:
    """Sum of the norms of a contact's friction discs: sliding, spinning and rolling velocity."""
    if dim <= 3:
        return tangential(x, dim)
    total = 0.0
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        total += length(x, r, end)
        r = end
    return total


@procedure
def held_slip(dim: int, mu: float, p: "float[:]", w: "float[:]", least: float) -> float:
    """Largest velocity of a friction disc whose impulse is inside its limit, so that it must stick.

    Those that carry nothing to speak of, ``least``, may slide.
    """
    most = 0.0
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        if mu * p[0] - length(p, r, end) > max(1e-6 * mu * p[0], least):
            most = max(most, length(w, r, end))
        r = end
    return most


@procedure(inline=True)
def touches(problem: Problem, g: int) -> bool:
    """Whether a group is a contact with three rows: normal and two tangents."""
    return problem.kind[g] == CONE and problem.dim[g] == 3


@procedure
def law(problem: Problem, g: int, y: "float[:]", p: "float[:]") -> int:
    """Project ``y`` on a group's bounds or friction disc; its state: OPEN, STICKING or SLIDING."""
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
    state = STICKING
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        t = length(y, r, end)
        part = 1.0
        if t > most:
            part = most / t
            state = SLIDING
        p[r:end] = part * y[r:end]
        r = end
    return state


@procedure(inline=True)
def off_law(mu: float, lam: "float[3]", y: "float[3]") -> float:
    """Squared residual ``|lam - P(y)|²`` of the Coulomb law of a contact with three rows."""
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
    """Write the orthogonal projection of ``y`` on a group's friction cone or bounds to ``p``."""
    n = y[0]
    if problem.kind[g] == BOUNDS:
        p[0] = min(max(n, problem.low[g]), problem.high[g])
        return
    dim = problem.dim[g]
    mu = problem.mu[g]
    beyond = 0
    more = True
    while more:  # the normal part grows, so that fewer discs are too small
        most = max(mu * n, 0.0)
        total = y[0]
        count = 0
        r = 1
        while r < dim:
            end = disc_end(dim, r)
            t = length(y, r, end)
            if t > most:
                total += mu * t
                count += 1
            r = end
        n = total / (1.0 + mu * mu * count)
        more = count != beyond and count > 0
        beyond = count
    n = max(n, 0.0)
    p[0] = n
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        t = length(y, r, end)
        part = mu * n / t if t > mu * n else 1.0
        p[r:end] = part * y[r:end]
        r = end


@procedure(inline=True)
def linear(
    dim: int,
    mu: float,
    state: int,
    r: float,
    soft: float,
    lam: "float[:]",
    w: "float[:]",
    y: "float[:]",
    p: "float[:]",
    A: "float[:]",
    c: "float[:]",
) -> None:
    """Linearise a group's law as ``dlam = c - A dw`` by its state; writes ``c`` and ``A``.

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
    if dim > 3:
        linear_discs(dim, mu, r, soft, rho, w, y, p, A, c)
        return
    part = 1.0 / tangential(y, dim)
    e = mu * p[0] * part
    stay = 1.0 / (1.0 - (1.0 - soft) * e)
    across = r * e * stay
    along = 0.0
    for k in range(1, dim):
        along += c[k] * (y[k] * part)
    ahead = along * (1.0 - stay) + (1.0 - soft) * mu * c[0]
    for k in range(1, dim):
        t = y[k] * part
        c[k] = stay * c[k] + ahead * t
        A[k * dim] = mu * rho * t
        for m in range(1, dim):
            A[k * dim + m] = -across * t * (y[m] * part)
        A[k * dim + k] += across


@procedure
def linear_discs(
    dim: int,
    mu: float,
    r: float,
    soft: float,
    rho: float,
    w: "float[:]",
    y: "float[:]",
    p: "float[:]",
    A: "float[:]",
    c: "float[:]",
) -> None:
    """Linearise the law of a contact's several friction discs, some sliding; adds to A and c."""
    most = mu * p[0]
    begin = 1
    while begin < dim:
        end = disc_end(dim, begin)
        size = length(y, begin, end)
        if size <= most:
            for k in range(begin, end):
                A[k * dim + k] = rho
                c[k] = -rho * w[k]
        else:
            e = most / size
            stay = 1.0 / (1.0 - (1.0 - soft) * e)
            along = 0.0
            for k in range(begin, end):
                along += c[k] * y[k] / size
            ahead = along * (1.0 - stay) + (1.0 - soft) * mu * c[0]
            for k in range(begin, end):
                t = y[k] / size
                c[k] = stay * c[k] + ahead * t
                A[k * dim] = mu * rho * t
                for m in range(begin, end):
                    A[k * dim + m] = -r * e * stay * t * y[m] / size
                A[k * dim + k] += r * e * stay
        begin = end
