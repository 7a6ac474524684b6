"""Steps along the arc of the central path, which in large piles turns back (Keller 1977)."""

from kinetree.codegen.procedures import procedure, view
from kinetree.contact.newton.directions import bounds, direction, longest, rubs
from kinetree.contact.newton.discs import has_discs, keep_discs, mix_discs, product_along_discs
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.retries import store

__all__ = ["SHORT_OF", "mix_step", "orientation", "turn"]

SHORT_OF = 0.99
"""Part of the way to the boundary that a step goes."""

AHEAD = 0.9
"""Part of the way to the boundary that a step along the path's arc goes at first."""

OFF = 0.3
"""Distance from the path, in units of ``sigma``, above which the arc is not looked for."""


@procedure
def orientation(problem: Problem, work: Work, island: int) -> float:
    """Sign of the determinant of an island's factored Newton matrix, 1 or -1."""
    if work.condensed >= 0:
        return work.sign
    sign = 1.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        for a in range(problem.node_count[work.order[k]]):
            if work.L[work.panel_at[k] + a * (work.panel_width[k] + 1)] < 0.0:
                sign = -sign
    return sign


@procedure
def keep_step(problem: Problem, work: Work, island: int, place: int) -> None:
    """Store an island's interior-point step (velocities, impulses, changes) in memory 2 or 3."""
    store(problem, work, island, place, work.dv, work.dlam)
    for n in range(work.run_first[island], work.run_first[island + 1]):
        for r in range(work.run[n, 0], work.run[n, 1]):
            work.changes[place * work.rows_room + r] = work.dw[r]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        work.inner[g, 2 * place] = work.inner[g, 2]
        work.inner[g, 2 * place + 1] = work.inner[g, 3]
        if has_discs(problem, g):
            keep_discs(work, g, place)


@procedure
def mix_step(problem: Problem, work: Work, island: int, own: float, a: float, b: float) -> None:
    """Set an island's step to ``own`` times the step plus ``a``, ``b`` times stored steps 2, 3."""
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        kept = view(work.velocities, 2 * problem.nv + i)
        work.dv[i] = own * work.dv[i] + a * kept[0] + b * kept[problem.nv]
    for n in range(work.run_first[island], work.run_first[island + 1]):
        for r in range(work.run[n, 0], work.run[n, 1]):
            kept = view(work.impulses, 2 * work.rows_room + r)
            work.dlam[r] = own * work.dlam[r] + a * kept[0] + b * kept[work.rows_room]
            kept = view(work.changes, 2 * work.rows_room + r)
            work.dw[r] = own * work.dw[r] + a * kept[0] + b * kept[work.rows_room]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        z = work.inner[g]
        z[2] = own * z[2] + a * z[4] + b * z[6]
        z[3] = own * z[3] + a * z[5] + b * z[7]
        if has_discs(problem, g):
            mix_discs(work, g, own, a, b)


@procedure
def along(problem: Problem, work: Work, island: int) -> "(float, float)":
    """Products of the path's tangent (place 2) with itself and with the step, scaled."""
    own = 1.0
    other = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        z = work.inner[g]
        x = work.lam[first]
        dx = work.impulses[2 * work.rows_room + first]
        low, high = bounds(problem, g)
        if low > -1e299:
            s = 1.0 / ((x - low) * (x - low))
            own += s * dx * dx + z[4] * z[4] / (z[0] * z[0])
            other += s * dx * work.dlam[first] + z[4] * z[2] / (z[0] * z[0])
        if high < 1e299:
            s = 1.0 / ((high - x) * (high - x))
            own += s * dx * dx + z[5] * z[5] / (z[1] * z[1])
            other += s * dx * work.dlam[first] + z[5] * z[3] / (z[1] * z[1])
        if has_discs(problem, g):
            mine, with_step = product_along_discs(problem, work, g)
            own += mine
            other += with_step
        elif rubs(problem, g):
            most = problem.mu[g] * x
            s = 1.0 / (z[1] * z[1])
            own += s * z[5] * z[5]
            other += s * z[5] * z[3]
            for r in range(first + 1, first + problem.dim[g]):
                to = work.impulses[2 * work.rows_room + r]
                by = work.changes[2 * work.rows_room + r]
                dx = to / (most * most)
                dw = by * s
                own += dx * to + dw * by
                other += dx * work.dlam[r] + dw * work.dw[r]
    return own, other


@procedure
def turn(problem: Problem, work: Work, island: int, mean: float, sign: float) -> "(float, float)":
    """Step along the central path by arc length, past turning points: its length and ``sigma``.

    The path is followed by its arc (Keller 1977): along the tangent, by which ``sigma`` grows where
    the determinant is negative, and back to the path at right angles to it. The step is that of
    the predictor when this is called.
    """
    keep_step(problem, work, island, 2)
    direction(problem, work, island, mean, 0.0)
    keep_step(problem, work, island, 3)
    mix_step(problem, work, island, 1.0, -1.0, 0.0)  # the tangent: change by mean of sigma
    keep_step(problem, work, island, 2)
    mix_step(problem, work, island, -sign, 0.0, 0.0)
    ahead = AHEAD * min(longest(problem, work, island, True), 1.0)
    mix_step(problem, work, island, 0.0, 0.0, 1.0)
    own, other = along(problem, work, island)
    back = other / own
    if abs(back) > OFF:  # far from the path
        return 0.0, mean
    sigma = max(1.0 - sign * ahead - back, 0.01)
    part = -back - sign * ahead
    mix_step(problem, work, island, 1.0, part, 0.0)
    t = min(SHORT_OF * longest(problem, work, island, True), 1.0)
    direction(problem, work, island, sigma * mean, 1.0)  # with products of changes
    mix_step(problem, work, island, 1.0, 1.0 - sigma, -1.0)
    own, other = along(problem, work, island)
    mix_step(problem, work, island, 1.0, part - other / own, 1.0)
    length = min(SHORT_OF * longest(problem, work, island, True), 1.0)
    if length < t:
        mix_step(problem, work, island, 0.0, part, 1.0)
        length = t
    return length, sigma * mean
