"""One step of Newton's method: states of groups, the step, and how far along it errors fall."""

from kinetree.codegen.procedures import isfinite, local, procedure, sqrt, view
from kinetree.contact.newton.cholesky import factor
from kinetree.contact.newton.condensed import condense, solve_matrix
from kinetree.contact.newton.cones import OPEN, SLIDING, disc_end, law, linear, off_law, touches
from kinetree.contact.newton.freedoms import copy_numbers, negate, sum_of_squares
from kinetree.contact.newton.matrix import FIRM, assemble, is_loop
from kinetree.contact.newton.problem import (
    CONE,
    Problem,
    Work,
    noted_give,
    noted_velocity,
    take_product,
)

__all__ = ["first_change", "keeps_states", "laws_along", "momentum_along", "newton_step", "states"]


@procedure
def states(problem: Problem, work: Work, island: int) -> "(float, int)":
    """Set the states of an island's groups; the sum of squared residuals, and sliding groups."""
    total = momentum_along(problem, work, island)
    sliding = 0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        d = work.delassus[g]
        y = view(work.y, first)
        p = view(work.p, first)
        if dim == 3:
            lam = view(work.lam, first, 3)
            three = view(y, 0, 3)
            three[:3] = lam - work.stress * view(work.w, first, 3) / d
            state = law(problem, g, y, p)
            work.state[g] = state
            if state == SLIDING:
                sliding += 1
            total += d * (lam[0] - p[0]) * (lam[0] - p[0])
            total += d * (lam[1] - p[1]) * (lam[1] - p[1])
            total += d * (lam[2] - p[2]) * (lam[2] - p[2])
            continue
        y[:dim] = work.lam[first : first + dim] - work.stress * work.w[first : first + dim] / d
        state = law(problem, g, y, p)
        work.state[g] = state
        if state == SLIDING:
            sliding += 1
        for r in range(dim):
            x = work.lam[first + r] - p[r]
            total += d * x * x
    return total, sliding


@procedure
def laws_along(problem: Problem, work: Work, island: int, t: float) -> float:
    """Sum of squared law residuals of an island after a part ``t`` of the step."""
    total = 0.0
    y = local("float", 6)
    p = local("float", 6)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        d = work.delassus[g]
        if touches(problem, g):
            lam = view(work.lam, first, 3) + t * view(work.dlam, first, 3)
            w = view(work.w, first, 3) + t * view(work.dw, first, 3)
            total += d * off_law(problem.mu[g], lam, lam - work.stress / d * w)
            continue
        for r in range(dim):
            i = first + r
            y[r] = work.lam[i] + t * work.dlam[i] - work.stress * (work.w[i] + t * work.dw[i]) / d
        law(problem, g, y, p)
        for r in range(dim):
            i = first + r
            error = work.lam[i] + t * work.dlam[i] - p[r]
            total += d * error * error
    return total


@procedure
def first_change(problem: Problem, work: Work, island: int) -> "(float, float)":
    """Part of the step, at most 1, at which a group changes state; largest impulse at its end.

    And the largest scaled impulse after the whole step.
    """
    least = 1.0
    most = 0.0
    dy = local("float", 6)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        y = view(work.y, first)
        d = work.delassus[g]
        length = 0.0
        for r in range(dim):
            dy[r] = work.dlam[first + r] - work.stress * work.dw[first + r] / d
            x = work.lam[first + r] + work.dlam[first + r]
            length += x * x
        most = max(most, d * length)
        if problem.kind[g] != CONE:
            least = sooner(least, problem.low[g] - y[0], dy[0])
            least = sooner(least, problem.high[g] - y[0], dy[0])
            continue
        least = sooner(least, -y[0], dy[0])
        if dim == 1 or work.state[g] == OPEN:
            continue
        r = 1
        while r < dim:
            end = disc_end(dim, r)
            least = first_crossing(least, problem.mu[g], y, dy, r, end)
            r = end
    return least, sqrt(most)


@procedure
def first_crossing(
    least: float, mu: float, y: "float[:]", dy: "float[:]", first: int, last: int
) -> float:
    """Part of a step, at most ``least``, at which a friction disc's boundary is crossed."""
    a = -mu * mu * dy[0] * dy[0]
    b = -mu * mu * y[0] * dy[0]
    c = -mu * mu * y[0] * y[0]
    for r in range(first, last):
        a += dy[r] * dy[r]
        b += y[r] * dy[r]
        c += y[r] * y[r]
    root = b * b - a * c  # of a t^2 + 2 b t + c
    if root >= 0.0:
        q = -b - sqrt(root) if b >= 0.0 else sqrt(root) - b
        least = sooner(least, q, a)
        least = sooner(least, c, q)
    return least


@procedure
def sooner(t: float, a: float, b: float) -> float:
    """Quotient ``a/b`` if it is positive and less than ``t``, else ``t``; never divides by zero."""
    if b > 0.0:
        return a / b if 1e-9 * b < a < t * b else t
    return a / b if t * b < a < 1e-9 * b else t


@procedure(inline=True)
def law_of_step(
    problem: Problem, work: Work, g: int, dim: int, A: "float[:]", c: "float[:]"
) -> None:
    """Linearised law ``dlam = c - A dw`` of a group for the Newton step; writes A and ``c``."""
    first = problem.row_first[g]
    soft = FIRM if is_loop(problem, g) else work.soft
    linear(
        dim,
        problem.mu[g],
        work.state[g],
        work.stress / work.delassus[g],
        work.stress * soft,
        view(work.lam, first),
        view(work.w, first),
        view(work.y, first),
        view(work.p, first),
        A,
        c,
    )


@procedure
def newton_step(problem: Problem, work: Work, island: int, both: int, again: int) -> int:
    """Newton step ``dv``, ``dlam``, ``dw`` of an island; 0, or 1 if the matrix fails.

    Its matrix is made and factored, or taken as it was if ``again``.
    """
    B = local("float", 36)
    first_group = work.island_groups_first[island]
    last_group = work.island_groups_first[island + 1]
    copy_numbers(problem, work, island, work.g, work.dv)
    for k in range(first_group, last_group):
        g = work.island_group[k]
        first = problem.row_first[g]
        c = view(work.dlam, first)
        if again == 0:
            work.was[g] = work.state[g]
            work.responds[g] = 0
        A = view(work.A, 6 * first) if again == 0 else view(B, 0)
        if problem.dim[g] == 3:  # as most have: without loops
            law_of_step(problem, work, g, 3, A, c)
        else:
            law_of_step(problem, work, g, problem.dim[g], A, c)
        noted_give(problem, work, problem.J, g, c, work.dv)
    if again == 0 and not condense(problem, work, island):
        assemble(problem, work, island, both)
        problem.factored += 1
        if factor(problem, work, island, both) != 0:
            return 1
    solve_matrix(problem, work, island, work.dv)
    if not isfinite(negate(problem, work, island, work.dv)):
        return 1
    for k in range(first_group, last_group):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        dw = view(work.dw, first)
        A = view(work.A, 6 * first)
        noted_velocity(problem, work, g, work.dv, dw)
        if work.state[g] == OPEN:
            continue
        take_product(dim, A, dw, view(work.dlam, first))
    return 0


@procedure
def keeps_states(work: Work, island: int) -> bool:
    """Whether all groups of an island have the states of the last factored matrix."""
    same = True
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        same = same and work.state[g] == work.was[g]
    return same


@procedure
def momentum_along(problem: Problem, work: Work, island: int) -> float:
    """Sum of an island's squared momentum residuals, scaled by inverse masses."""
    return sum_of_squares(problem, work, island, work.g, work.inverse)
