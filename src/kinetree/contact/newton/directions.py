"""Directions of the interior-point method: its matrix, steps towards products, and their bounds.

``work.changes`` has ``q`` and ``theta`` of cones in its first two places, see ``jordan``;
``work.inner`` is explained in ``interior``. Contacts with several discs of friction have a cone for
each: ``discs``.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, vector, view
from kinetree.contact.newton.cholesky import factor
from kinetree.contact.newton.condensed import condense, solve_matrix
from kinetree.contact.newton.cones import SLIDING, STICKING, tangential
from kinetree.contact.newton.discs import (
    ask_discs,
    change_discs,
    has_discs,
    longest_of_discs,
    matrix_of_discs,
)
from kinetree.contact.newton.freedoms import copy_numbers, negate
from kinetree.contact.newton.jordan import scaling, until, until_cone
from kinetree.contact.newton.matrix import FIRM, assemble
from kinetree.contact.newton.problem import (
    CONE,
    Problem,
    Work,
    clear_matrix,
    noted_give,
    noted_velocity,
    take_product,
)

__all__ = ["bounds", "direction", "longest", "matrices", "rubs"]


@procedure
def rubs(problem: Problem, g: int) -> bool:
    """Whether a group is a contact with friction: tangential rows and a positive coefficient."""
    return problem.kind[g] == CONE and problem.dim[g] > 1 and problem.mu[g] > 0.0


@procedure
def bounds(problem: Problem, g: int) -> "(float, float)":
    """Lower and upper bound of the first impulse of a group; 0 and infinity for a contact."""
    if problem.kind[g] == CONE:
        return 0.0, 1e300
    return problem.low[g], problem.high[g]


@procedure
def matrices(problem: Problem, work: Work, island: int) -> int:
    """Scale the cones and factor the interior-point matrix of an island; 0, or 1 if it fails."""
    q = local("float", 6)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        z = work.inner[g]
        A = view(work.A, 6 * first)
        clear_matrix(A, dim)
        A[0] = 1.0 / stiffness(problem, work, g)
        work.state[g] = STICKING
        work.responds[g] = 0
        if has_discs(problem, g):
            work.state[g] = SLIDING
            matrix_of_discs(problem, work, g)
        elif rubs(problem, g):
            work.state[g] = SLIDING
            mu = problem.mu[g]
            theta = scaling(mu * lam[0], lam, z[1], view(work.w, first), dim, q)
            work.changes[work.rows_room + first] = theta
            work.changes[first : first + dim] = q[:dim]
            length = tangential(q, dim)
            less = 2.0 / (1.0 + 2.0 * length * length)
            for r in range(1, dim):
                A[r * dim] = -less * q[0] * q[r] * mu * A[0]
                for m in range(1, dim):
                    A[r * dim + m] = -less * q[r] * q[m] / theta
                A[r * dim + r] += 1.0 / theta
    if condense(problem, work, island):
        return 0
    assemble(problem, work, island, 1)
    problem.factored += 1
    return factor(problem, work, island, 1)


@procedure
def stiffness(problem: Problem, work: Work, g: int) -> float:
    """Barrier stiffness of a group's first impulse: velocity change per impulse change."""
    low, high = bounds(problem, g)
    x = work.lam[problem.row_first[g]]
    z = work.inner[g]
    s = 0.0
    if low > -1e299:
        s += z[0] / (x - low)
    if high < 1e299:
        s += z[1] / (high - x)
    if low <= -1e299 and high >= 1e299:
        s = FIRM * work.delassus[g]
    return s


@procedure(inline=True)
def ask_of_three(problem: Problem, work: Work, g: int, sigma: float, correct: float) -> None:
    """Set a three-row contact's right side of the interior-point step, in ``dlam`` and ``y``.

    ``p`` becomes the velocity that the normal impulse asks for.
    """
    first = problem.row_first[g]
    mu = problem.mu[g]
    lam = view(work.lam, first)
    w = view(work.w, first)
    dlam = view(work.dlam, first)
    dw = view(work.dw, first)
    y = view(work.y, first)
    z = work.inner[g]
    kept = view(work.changes, first)
    q0, q1, q2 = kept[0], kept[1], kept[2]
    theta = work.changes[work.rows_room + first]
    x0, x1, x2 = mu * lam[0], lam[1], lam[2]
    own = sigma
    y0 = y1 = y2 = 0.0
    if correct > 0.0:
        own -= correct * dlam[0] * z[2]
        less = 1.0 / (q0 + 1.0)
        part = x0 + (q1 * x1 + q2 * x2) * less  # the point itself, scaled
        e0 = (q0 + 1.0) * part - x0
        e1 = q1 * part + x1
        e2 = q2 * part + x2
        d0 = mu * dlam[0]
        part = d0 + (q1 * dlam[1] + q2 * dlam[2]) * less  # the change of impulses
        b0 = (q0 + 1.0) * part - d0
        b1 = q1 * part + dlam[1]
        b2 = q2 * part + dlam[2]
        part = z[3] - (q1 * dw[1] + q2 * dw[2]) * less  # the change of velocities
        s0 = (q0 + 1.0) * part - z[3]
        s1 = dw[1] - q1 * part
        s2 = dw[2] - q2 * part
        p0 = -(b0 * s0 + b1 * s1 + b2 * s2)
        p1 = -(b0 * s1 + s0 * b1)
        p2 = -(b0 * s2 + s0 * b2)
        length = sqrt(e1 * e1 + e2 * e2)
        p0 = (e0 * p0 - e1 * p1 - e2 * p2) / max((e0 - length) * (e0 + length), 1e-300)
        part = 1.0 / e0
        p1 = (p1 - e1 * p0) * part
        p2 = (p2 - e2 * p0) * part
        part = p0 + (q1 * p1 + q2 * p2) * less
        y0 = correct * ((q0 + 1.0) * part - p0)
        y1 = correct * (q1 * part + p1)
        y2 = correct * (q2 * part + p2)
    own /= lam[0]
    force = sqrt(x1 * x1 + x2 * x2)
    part = sigma / max((x0 - force) * (x0 + force), 1e-300)
    y0 += part * x0 - z[1]
    y1 -= part * x1 + w[1]
    y2 -= part * x2 + w[2]
    y[:3] = vector(y0, y1, y2)
    less = 2.0 / (1.0 + 2.0 * (q1 * q1 + q2 * q2))
    c0 = (own - w[0]) * work.A[6 * first]
    across = 1.0 / theta
    part = less * ((q1 * y1 + q2 * y2) * across + q0 * mu * c0)
    dlam[:3] = vector(c0, y1 * across - q1 * part, y2 * across - q2 * part)
    work.p[first] = own


@procedure
def ask_of_any(problem: Problem, work: Work, g: int, sigma: float, correct: float) -> None:
    """Set the right side of the interior-point step for any group but a three-row contact.

    ``p`` and ``y`` become the velocities that its impulse asks for at the lower and upper bound.
    """
    c = local("float", 6)
    dim = problem.dim[g]
    first = problem.row_first[g]
    lam = view(work.lam, first)
    dlam = view(work.dlam, first)
    y = view(work.y, first)
    z = work.inner[g]
    low, high = bounds(problem, g)
    work.p[first] = 0.0
    y[0] = 0.0
    asked = -work.w[first]
    if low > -1e299:
        work.p[first] = (sigma - correct * dlam[0] * z[2]) / (lam[0] - low)
        asked += work.p[first]
    if high < 1e299:
        y[0] = (sigma + correct * dlam[0] * z[3]) / (high - lam[0])
        asked -= y[0]
    c[0] = asked * work.A[6 * first]
    c[1:dim] = -lam[1:dim]
    if has_discs(problem, g):
        ask_discs(problem, work, g, sigma, correct, c)
    dlam[:dim] = c[:dim]


@procedure(inline=True)
def change_three(problem: Problem, work: Work, g: int) -> None:
    """Complete the interior-point step of a three-row contact from its velocity change ``dw``."""
    first = problem.row_first[g]
    dlam = view(work.dlam, first)
    dw = view(work.dw, first)
    A = view(work.A, 6 * first)
    z = work.inner[g]
    dlam[:3] -= vector(
        A[0] * dw[0],
        A[3] * dw[0] + A[4] * dw[1] + A[5] * dw[2],
        A[6] * dw[0] + A[7] * dw[1] + A[8] * dw[2],
    )
    z[2] = work.p[first] - z[0] - z[0] / work.lam[first] * dlam[0]
    z[3] = change_of_speed(problem, work, first, 3, problem.mu[g])


@procedure
def change_any(problem: Problem, work: Work, g: int) -> None:
    """Complete the interior-point step of a general group from its velocity change ``dw``."""
    first = problem.row_first[g]
    lam = view(work.lam, first)
    dlam = view(work.dlam, first)
    z = work.inner[g]
    take_product(problem.dim[g], view(work.A, 6 * first), view(work.dw, first), dlam)
    low, high = bounds(problem, g)
    z[2] = 0.0
    z[3] = 0.0
    if low > -1e299:
        z[2] = work.p[first] - z[0] - z[0] / (lam[0] - low) * dlam[0]
    if high < 1e299:
        z[3] = work.y[first] - z[1] + z[1] / (high - lam[0]) * dlam[0]
    if has_discs(problem, g):
        change_discs(problem, work, g)


@procedure
def direction(problem: Problem, work: Work, island: int, sigma: float, correct: float) -> None:
    """Interior-point step of an island towards complementarity products ``sigma``."""
    first_group = work.island_groups_first[island]
    last_group = work.island_groups_first[island + 1]
    copy_numbers(problem, work, island, work.g, work.dv)
    for k in range(first_group, last_group):
        g = work.island_group[k]
        if problem.dim[g] == 3 and rubs(problem, g):
            ask_of_three(problem, work, g, sigma, correct)
        else:
            ask_of_any(problem, work, g, sigma, correct)
        dlam = view(work.dlam, problem.row_first[g])
        noted_give(problem, work, problem.J, g, dlam, work.dv)
    solve_matrix(problem, work, island, work.dv)
    negate(problem, work, island, work.dv)
    for k in range(first_group, last_group):
        g = work.island_group[k]
        noted_velocity(problem, work, g, work.dv, view(work.dw, problem.row_first[g]))
        if problem.dim[g] == 3 and rubs(problem, g):
            change_three(problem, work, g)
        else:
            change_any(problem, work, g)


@procedure
def change_of_speed(problem: Problem, work: Work, first: int, dim: int, mu: float) -> float:
    """Change of the slack speed ``h_0`` of a contact's cone along the interior-point step."""
    q0 = work.changes[first]
    both = 2.0 * q0 * q0 - 1.0
    s = 0.0
    for r in range(1, dim):  # with dw, lest h leave its cone by rounding
        s += work.changes[first + r] * (work.y[first + r] - work.dw[first + r])
    s = (2.0 * q0 * s + work.changes[work.rows_room + first] * mu * work.dlam[first]) / both
    return work.y[first] - s


@procedure
def longest(problem: Problem, work: Work, island: int, speeds: bool) -> float:
    """Step length, at most 2, to the boundary of an island's cones and bounds."""
    t = 2.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        dlam = view(work.dlam, first)
        z = work.inner[g]
        low, high = bounds(problem, g)
        if low > -1e299:
            t = until(until(t, lam[0] - low, dlam[0]), z[0], z[2])
        if high < 1e299:
            t = until(until(t, high - lam[0], -dlam[0]), z[1], z[3])
        if has_discs(problem, g):
            t = longest_of_discs(problem, work, g, t, speeds)
        elif rubs(problem, g):
            mu = problem.mu[g]
            t = until_cone(t, mu * lam[0], lam, mu * dlam[0], dlam, problem.dim[g])
            if speeds:
                w = view(work.w, first)
                t = until_cone(t, z[1], w, z[3], view(work.dw, first), problem.dim[g])
    return t
