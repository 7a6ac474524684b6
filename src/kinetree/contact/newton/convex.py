"""Convex problem of an island: friction that keeps De Saxcé's shift, by augmented Lagrangians.

Coulomb's law is a projection onto friction cones ``K`` once ``s = mu |w_t|`` is added to the normal
velocity (De Saxcé and Feng 1998). With the shift held, velocities are those of a convex problem,

    minimise  |v - free|^2 / 2  in the norm of M,   such that  w + s e_n  is in the dual cone of K,

and unique. For ``s = 0`` its solution is one of Coulomb's law whenever all contacts that act stick
there. Impulses, which redundant contacts leave open, are those that the method
of multipliers reaches from the impulses of the last step, or from zero: every contact with the same
penalty in its own units, so that symmetric contacts share a load evenly.

Each problem in the velocities alone, ``|v - free|^2 / 2 + sum |P(lam - r (w + s e_n))|^2 / (2 r)``,
is smooth and convex. Newton's method with a search along its steps solves it from anywhere, with
a symmetric matrix. The multipliers then become ``P(lam - r (w + s e_n))`` (Rockafellar 1976).
"""

from kinetree.codegen.procedures import isfinite, local, procedure, sqrt, vector, view
from kinetree.contact.newton.cholesky import factor
from kinetree.contact.newton.condensed import condense, solve_matrix
from kinetree.contact.newton.cones import (
    OPEN,
    SLIDING,
    STICKING,
    disc_end,
    length,
    project,
    slip,
    touches,
)
from kinetree.contact.newton.equations import gradient_size, momentum
from kinetree.contact.newton.freedoms import add_multiple, copy_numbers, negate
from kinetree.contact.newton.matrix import FIRM, assemble, is_loop
from kinetree.contact.newton.problem import BOUNDS, CONE, Problem, Work, noted_give, noted_velocity

__all__ = ["minimise"]

PENALTY, GROWTH, STIFFEST = 30.0, 3.0, 1e5
"""``r`` in units of 1 / d: at first, its growth when multipliers change, and the largest."""

FLAT = 0.1
"""Part of the derivative along a step that may be left where the search ends."""

SEARCHED = 12
"""Places along a step that are looked at, at most."""

INNER = 0.1
"""Error of momentum with which multipliers change, as a part of that of velocities."""

ROUGH = 1e-3
"""Relative error of the first velocities."""

ROUGHEST, FINER = 1e-2, 0.1
"""The same where only the verdict matters, and its change whenever multipliers change: errors of
velocities would be found in impulses that redundant contacts leave open."""

MOST = 50
"""Newton's steps, and changes of multipliers, at most."""

CERTAIN, KEPT, AT_ONCE = 4.0, 0.7, 10.0
"""How many times the error of velocities the speed of a contact that slides is at least, and what
part of it is left when multipliers change; and how many times where that is certain at once. Where
everything sticks in the end it was at most 2.4 when multipliers changed first, and 0.5 before, in
the 14 such problems each among 15,000 of heaps, piles, grasps and random scenes."""


@procedure
def penalty(problem: Problem, work: Work, g: int) -> float:
    """Penalty parameter ``r`` of a group in the convex augmented-Lagrangian method."""
    return (1.0 / FIRM if is_loop(problem, g) else work.stress) / work.delassus[g]


@procedure(inline=True)
def nearest_of_three(mu: float, y: "float[3]", p: "float[3]") -> int:
    """Project ``y`` on the friction cone of a three-row contact; its state."""
    t = sqrt(y[1] * y[1] + y[2] * y[2])
    n = y[0]
    count = 1.0
    if t > max(mu * n, 0.0):
        total = y[0] + mu * t
        n = total / (1.0 + mu * mu * count)
    n = max(n, 0.0)
    part = mu * n / t if t > mu * n else 1.0
    p[:3] = vector(n, part * y[1], part * y[2])
    if n <= 0.0:
        return OPEN
    return STICKING if n == y[0] else SLIDING


@procedure
def nearest(problem: Problem, g: int, y: "float[:]", p: "float[:]") -> int:
    """Project ``y`` on a group's friction cone or bounds; its state OPEN, STICKING or SLIDING."""
    project(problem, g, y, p)
    if problem.kind[g] == BOUNDS:
        return STICKING if p[0] == y[0] else OPEN
    if p[0] <= 0.0:
        return OPEN
    return STICKING if p[0] == y[0] else SLIDING


@procedure(inline=True)
def derivative(
    problem: Problem, g: int, state: int, rho: float, y: "float[:]", p: "float[:]", A: "float[:]"
) -> None:
    """Write ``rho`` times the symmetric derivative of a group's projection to ``A``."""
    if problem.dim[g] == 3:  # as most are: without loops
        derivative_of(3, problem.mu[g], state, rho, y, p, A)
    else:
        derivative_of(problem.dim[g], problem.mu[g], state, rho, y, p, A)


@procedure(inline=True)
def derivative_of(
    dim: int, mu: float, state: int, rho: float, y: "float[:]", p: "float[:]", A: "float[:]"
) -> None:
    """Write ``rho`` times the derivative of the projection of a ``dim``-row group to ``A``."""
    A[: dim * dim] = 0.0
    if state == OPEN:
        return
    if state == STICKING:
        for r in range(dim):
            A[r * dim + r] = rho
        return
    e = local("float", 6)  # along the ray of the cone
    most = mu * p[0]
    e[0] = square = 1.0
    r = 1
    while r < dim:
        end = disc_end(dim, r)
        t = length(y, r, end)
        bounded = t > most
        for i in range(r, end):
            e[i] = mu * y[i] / t if bounded else 0.0
            A[i * dim + i] = rho * (most / t if bounded else 1.0)
            for j in range(r, end):
                if bounded:
                    A[i * dim + j] -= rho * most / t * (y[i] / t) * (y[j] / t)
        square += mu * mu if bounded else 0.0
        r = end
    for i in range(dim):
        for j in range(dim):
            A[i * dim + j] += rho * e[i] * e[j] / square


@procedure
def press(problem: Problem, work: Work, island: int) -> float:
    """Set an island's augmented-Lagrangian impulses and gradient from velocities; largest impulse.

    Returns the largest scaled impulse.
    """
    momentum(problem, work, island, work.v)
    size = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        w = view(work.w, first)
        y = view(work.y, first)
        p = view(work.p, first)
        rho = penalty(problem, work, g)
        noted_velocity(problem, work, g, work.v, w)
        if touches(problem, g):
            three = view(w, 0, 3)
            three += view(problem.target, first, 3)
            asked = view(y, 0, 3)
            asked[:3] = view(work.lam, first, 3) - rho * three
            asked[0] -= rho * work.shift[g]
            work.state[g] = nearest_of_three(problem.mu[g], asked, view(p, 0, 3))
            noted_give(problem, work, problem.J, g, p, work.g)
            size = max(size, work.delassus[g] * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2]))
            continue
        w[:dim] += problem.target[first : first + dim]
        y[:dim] = work.lam[first : first + dim] - rho * w[:dim]
        y[0] -= rho * work.shift[g]
        work.state[g] = nearest(problem, g, y, p)
        noted_give(problem, work, problem.J, g, p, work.g)
        square = 0.0
        for r in range(dim):
            square += p[r] * p[r]
        size = max(size, work.delassus[g] * square)
    return sqrt(size)


@procedure
def change_multipliers(problem: Problem, work: Work, island: int) -> float:
    """Set multipliers to the impulses ``p``; returns the largest scaled velocity error."""
    most = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        square = 0.0
        for r in range(first, first + problem.dim[g]):
            x = work.p[r] - work.lam[r]
            square += x * x
            work.lam[r] = work.p[r]
        rho = penalty(problem, work, g)
        most = max(most, square / (work.delassus[g] * rho * rho))
    return sqrt(most)


@procedure
def step_of(problem: Problem, work: Work, island: int) -> int:
    """Newton step ``dv``, ``dw`` of an island's convex problem; 0, or 1 if the matrix fails."""
    first_group = work.island_groups_first[island]
    last_group = work.island_groups_first[island + 1]
    for k in range(first_group, last_group):
        g = work.island_group[k]
        first = problem.row_first[g]
        rho = penalty(problem, work, g)
        derivative(
            problem,
            g,
            work.state[g],
            rho,
            view(work.y, first),
            view(work.p, first),
            view(work.A, 6 * first),
        )
        work.responds[g] = 0
    if not condense(problem, work, island):
        assemble(problem, work, island, 0)
        problem.factored += 1
        if factor(problem, work, island, 0) != 0:
            return 1
    copy_numbers(problem, work, island, work.g, work.dv)
    solve_matrix(problem, work, island, work.dv)
    total = negate(problem, work, island, work.dv)
    for k in range(first_group, last_group):
        g = work.island_group[k]
        noted_velocity(problem, work, g, work.dv, view(work.dw, problem.row_first[g]))
    return 0 if isfinite(total) else 1


@procedure
def along(work: Work, island: int, x: "float[:]") -> float:
    """Scalar product of an island's velocity step ``dv`` with a vector ``x``."""
    s = 0.0
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        s += work.dv[i] * x[i]
    return s


@procedure
def pressed_along(problem: Problem, work: Work, island: int, t: float) -> float:
    """Scalar product of all penalty impulses and row velocity changes at step part ``t``."""
    y = local("float", 6)
    p = local("float", 6)
    s = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        rho = penalty(problem, work, g)
        if touches(problem, g):
            w = view(work.w, first, 3) + t * view(work.dw, first, 3)
            three = view(y, 0, 3)
            three[:3] = view(work.lam, first, 3) - rho * w
            three[0] -= rho * work.shift[g]
            nearest_of_three(problem.mu[g], three, view(p, 0, 3))
            s += work.dw[first] * p[0]
            s += work.dw[first + 1] * p[1]
            s += work.dw[first + 2] * p[2]
            continue
        for r in range(dim):
            i = first + r
            y[r] = work.lam[i] - rho * (work.w[i] + t * work.dw[i])
        y[0] -= rho * work.shift[g]
        nearest(problem, g, y, p)
        for r in range(dim):
            s += work.dw[first + r] * p[r]
    return s


@procedure
def search(problem: Problem, work: Work, island: int, rate: float) -> float:
    """Line search: part of the step at which the directional derivative nearly vanishes."""
    before = rate + pressed_along(problem, work, island, 0.0)  # of kinetic energy alone
    add_multiple(problem, work, island, 1.0, work.dv, work.v)
    momentum(problem, work, island, work.v)
    growth = along(work, island, work.g) - before
    low = 0.0
    high = 1.0
    at_low = rate
    at_high = before + growth - pressed_along(problem, work, island, 1.0)
    t = 1.0
    if at_high > -FLAT * rate:
        for _ in range(SEARCHED):
            t = low + (high - low) * at_low / (at_low - at_high)
            t = min(max(t, low + 0.1 * (high - low)), high - 0.1 * (high - low))
            here = before + t * growth - pressed_along(problem, work, island, t)
            if abs(here) <= -FLAT * rate:
                break
            if here < 0.0:
                low = t
                at_low = here
            else:
                high = t
                at_high = here
    add_multiple(problem, work, island, t - 1.0, work.dv, work.v)
    return t


@procedure
def fastest(problem: Problem, work: Work, island: int) -> float:
    """Largest scaled sliding speed among an island's contacts with positive normal impulse."""
    most = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        if problem.kind[g] == CONE and problem.dim[g] > 1 and work.lam[first] > 0.0:
            speed = slip(view(work.w, first), problem.dim[g])
            most = max(most, speed * speed / work.delassus[g])
    return sqrt(most)


@procedure
def slides_surely(problem: Problem, work: Work, island: int, error: float) -> bool:
    """Whether some loaded contact slides faster than the remaining velocity error explains."""
    left = speed = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        d = work.delassus[g]
        square = 0.0
        for r in range(first, first + problem.dim[g]):
            x = work.p[r] - work.lam[r]
            square += x * x
        rho = penalty(problem, work, g)
        left = max(left, square / (d * rho * rho))
        if problem.kind[g] == CONE and problem.dim[g] > 1 and work.p[first] > 0.0:
            own = slip(view(work.w, first), problem.dim[g])
            speed = max(speed, own * own / d)
    return sqrt(speed) > AT_ONCE * max(sqrt(left), error)


@procedure
def minimise(
    problem: Problem, work: Work, island: int, forces: float, enough: float, decides: bool
) -> int:
    """Solve an island's convex problem for fixed shifts: STICKING, SLIDING, or OPEN if not solved.

    STICKING: solved up to ``enough``, relative to the largest impulse, and nothing slides;
    SLIDING: some contact that acts keeps sliding while errors fall, which ends it; OPEN: not
    solved in ``MOST`` steps or changes of multipliers, which grow for ever where bodies that cannot
    move apart overlap. ``decides``: that is all that matters, impulses are not used.
    """
    steps = changes = 0
    stress = work.stress
    work.stress = PENALTY
    state = OPEN
    last = 0.0
    level = max(enough, ROUGHEST if decides else ROUGH)
    while state == OPEN:
        size = max(press(problem, work, island), forces)
        if gradient_size(problem, work, island) <= INNER * level * size:
            left = change_multipliers(problem, work, island)
            changes += 1
            speed = fastest(problem, work, island)
            certain = CERTAIN * max(left, (level if decides else enough) * size)
            at_once = decides and speed > AT_ONCE * max(left, INNER * level * size)
            if at_once or (speed > certain and 0.0 < KEPT * last < speed):
                state = SLIDING
            elif left <= enough * size and (level == enough or not decides):
                state = SLIDING if speed > certain else STICKING
            elif steps >= MOST or changes >= MOST:
                break
            last = speed
            level = max(enough, FINER * level) if decides else enough
            work.stress = min(GROWTH * work.stress, STIFFEST)
            continue
        if decides and slides_surely(problem, work, island, gradient_size(problem, work, island)):
            state = SLIDING
            continue
        if steps >= MOST or step_of(problem, work, island) != 0:
            break
        steps += 1
        rate = along(work, island, work.g)
        if not rate < 0.0:
            break
        search(problem, work, island, rate)
    work.stress = stress
    problem.newton += steps
    return state
