"""Interior-point method for an island: follows the central path where Newton's method flips states.

Complementary pairs have the product ``sigma`` instead of zero: ``lam_n w_n = sigma``, and for
friction ``b o h = sigma e`` in the second-order cone, with ``b = (mu lam_n, lam_t)``,
``h = (h_0, w_t)`` and the Jordan product; ``h_0`` becomes the sliding speed. For ``sigma = 0`` that
is Coulomb's law: no dilation, so the matrix is not symmetric. Bounds have a pair for each side.
Steps are those of Mehrotra (1992): a predictor chooses ``sigma``, a corrector has its products of
changes.
Friction by interior points: Acary, Armand, Nguyen, Shpakovych (2023); Howell et al. (2022), Dojo.
The law is not monotone, and in large piles the path turns back: it is then followed by its arc.

``work.inner`` has, of every group, the velocities ``w+`` at the lower and ``w-`` at the upper bound
(``w = w+ - w-``), or ``w+`` and ``h_0`` of a cone, and their changes, then two steps that are kept.
"""

from kinetree.codegen.procedures import isfinite, procedure, sqrt, view
from kinetree.contact.newton.arc import SHORT_OF, mix_step, orientation, turn
from kinetree.contact.newton.cones import tangential
from kinetree.contact.newton.directions import bounds, direction, longest, matrices, rubs
from kinetree.contact.newton.discs import (
    begin_discs,
    has_discs,
    move_discs,
    open_discs,
    product_of_discs,
)
from kinetree.contact.newton.equations import CHECKED, evaluate, laws, take_part_of_step
from kinetree.contact.newton.freedoms import largest_scaled
from kinetree.contact.newton.problem import CONE, Problem, Work

__all__ = ["PATIENT", "begin", "follow"]

LEAST = 1e-3
"""``sigma`` of a step at least, as a part of the mean product."""

TURNING = 0.5
"""Part of a predictor's step below which the path is followed by its arc."""

TURNING_FIRST = 0.2
"""The same at the first try: fewer steps, and lost more often."""

STALLED, STALLED_OF_JOINTS, WINDING = 5, 12, 40
"""Steps without progress after which it is given up: without arcs, the same with patience, and
along the arc."""

PATIENT = -1
"""``arcs`` of ``follow`` where joints connect bodies: none, but more steps without progress. In a
net that lies on the ground most runs end within them, and another takes three times as many."""

TO_AND_FRO = 6
"""Changes of direction along the arc, one a step, after which it is given up: it was lost."""


@procedure
def begin(problem: Problem, work: Work, island: int, size: float) -> None:
    """Move an island's impulses and slacks into the interior, with products about ``size`` squared.

    The step becomes zero: the last one may have ended a run because it was not finite, and
    ``direction`` multiplies it by ``correct``, zero or not.
    """
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        w = view(work.w, first)
        z = work.inner[g]
        least = size / sqrt(work.delassus[g])
        low, high = bounds(problem, g)
        if low > -1e299 and high < 1e299:
            least = min(least, 0.3 * (high - low))
        lam[0] = min(max(lam[0], low + least), max(high - least, low + least))
        z[:4] = 0.0
        work.dlam[first] = 0.0
        if low > -1e299:
            z[0] = max(w[0], max(size * size / (lam[0] - low), 0.1 * size * size / least))
        if high < 1e299:
            z[1] = max(-w[0], max(size * size / (high - lam[0]), 0.1 * size * size / least))
        if has_discs(problem, g):
            begin_discs(problem, work, g, size, least)
        elif problem.kind[g] == CONE and dim > 1:
            most = problem.mu[g] * lam[0]
            length = tangential(lam, dim)
            part = 0.9 * most / length if length > 0.9 * most else 1.0
            lam[1:dim] *= part
            if most > 0.0:
                speed = tangential(w, dim)
                own = size * size / least
                z[1] = max(1.1 * sqrt(speed * speed + own * own), size * size / most)


@procedure
def product(problem: Problem, work: Work, island: int, t: float) -> float:
    """Mean complementarity product of an island's pairs after a part ``t`` of the step."""
    total = 0.0
    count = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        x = work.lam[first] + t * work.dlam[first]
        z = work.inner[g]
        low, high = bounds(problem, g)
        if low > -1e299:
            total += (x - low) * (z[0] + t * z[2])
            count += 1.0
        if high < 1e299:
            total += (high - x) * (z[1] + t * z[3])
            count += 1.0
        if has_discs(problem, g):
            products, discs = product_of_discs(problem, work, g, t)
            total += products
            count += discs
        elif rubs(problem, g):
            total += problem.mu[g] * x * (z[1] + t * z[3])
            count += 1.0
            for r in range(first + 1, first + problem.dim[g]):
                total += (work.lam[r] + t * work.dlam[r]) * (work.w[r] + t * work.dw[r])
    return total / max(count, 1.0)


@procedure
def open_speed(problem: Problem, work: Work, g: int, sigma: float) -> None:
    """Raise a contact's slack speed ``h_0`` above its sliding speed after a step."""
    first = problem.row_first[g]
    dim = problem.dim[g]
    most = problem.mu[g] * work.lam[first]
    force = tangential(view(work.lam, first), dim)
    own = 0.3 * sigma
    own *= own / max((most - force) * (most + force), 1e-300)
    for r in range(first + 1, first + dim):
        own += work.w[r] * work.w[r]
    work.inner[g, 1] = max(work.inner[g, 1], sqrt(own))


@procedure
def has_finite_step(problem: Problem, work: Work, island: int, t: float) -> bool:
    """Whether an island's velocity step and the step length ``t`` are finite."""
    _, total = largest_scaled(problem, work, island, work.dv, work.metric)
    return isfinite(total + t)


@procedure
def move_inner(
    problem: Problem, work: Work, island: int, t: float, sigma: float, blocked: bool
) -> None:
    """Advance an island's interior-point slacks by a part ``t`` of the step."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        z = work.inner[g]
        z[0] += t * z[2]
        z[1] += t * z[3]
        if has_discs(problem, g):
            move_discs(problem, work, g, t)
            if blocked:
                open_discs(problem, work, g, sigma)
        elif blocked and rubs(problem, g):
            open_speed(problem, work, g, sigma)


@procedure
def follow(
    problem: Problem, work: Work, island: int, forces: float, enough: float, most: int, arcs: int
) -> "(int, float)":
    """Run at most ``most`` interior-point steps on an island; their number and the relative error.

    With ``arcs`` the path is followed also where it turns back; 2: wherever steps are short.
    """
    turning = TURNING if arcs > 1 else TURNING_FIRST
    steps = 0
    best = 1e300
    since = 0  # steps without progress
    stuck = 0  # steps of no length, in a row
    turns = 0  # changes of direction, in a row
    last = 1.0
    error = evaluate(problem, work, island)
    while True:
        worst, size = laws(problem, work, island)
        error = max(error, worst) / max(size, forces)
        if steps > 0 and error <= CHECKED * enough:
            error = max(evaluate(problem, work, island), worst) / max(size, forces)
        since += 1
        if error < 0.5 * best:
            best = error
            since = 0
        if error <= enough or steps >= most or not isfinite(error):
            return steps, error
        if since > (WINDING if arcs > 0 else (STALLED if arcs == 0 else STALLED_OF_JOINTS)):
            return steps, error
        if matrices(problem, work, island) != 0:
            return steps, error
        steps += 1
        direction(problem, work, island, 0.0, 0.0)
        mean = product(problem, work, island, 0.0)
        first = min(longest(problem, work, island, True), 1.0)
        sign = orientation(problem, work, island) if arcs > 0 else 1.0
        turns = turns + 1 if sign != last else 0
        last = sign
        if turns > TO_AND_FRO:
            return steps, error
        blocked = False
        t = 0.0
        if arcs > 0 and (sign < 0.0 or first < turning):
            t, sigma = turn(problem, work, island, mean, sign)
            if t == 0.0:
                mix_step(problem, work, island, 1.0, -1.0, 0.0)  # the predictor again
        if t == 0.0:
            part = product(problem, work, island, first) / mean
            sigma = min(max(part * part * part, LEAST), 1.0) * mean
            direction(problem, work, island, sigma, first if arcs > 0 else 1.0)
            t = min(SHORT_OF * longest(problem, work, island, True), 1.0)
            blocked = t < 0.4
            if blocked:
                t = min(SHORT_OF * longest(problem, work, island, False), 1.0)
        stuck = stuck + 1 if t < 0.01 else 0
        if arcs > 0 and stuck > 4:
            return steps, error
        if not has_finite_step(problem, work, island, t):  # at the limit of rounding
            return steps, error
        error = take_part_of_step(problem, work, island, t)
        move_inner(problem, work, island, t, sigma, blocked)
