"""Where the solution of an island starts: from the last step's impulses, and by sweeps."""

from kinetree.codegen.procedures import procedure, sqrt, view
from kinetree.contact.newton.cones import OPEN, SLIDING, STICKING, disc_end, length
from kinetree.contact.newton.equations import evaluate, laws, take_part_of_step
from kinetree.contact.newton.matrix import is_of_free_bodies
from kinetree.contact.newton.mixtures import sweep_rounds
from kinetree.contact.newton.problem import CONE, Problem, Work
from kinetree.contact.newton.steps import newton_step, states
from kinetree.contact.newton.sweeps import responses

__all__ = ["at_rest", "errors", "kinds", "prepare", "start_island"]

SLIGHT = 1e-6
"""Part of a velocity that its change is taken to be at least: without weight there is no other."""

GUESS = 0.1
"""Relative error up to which the first step takes contacts to act and slide as before."""

SMALL = 30
"""Velocities of an island up to which no sweeps follow such a step: they depend on the order of
contacts, and what was symmetric would be so no more."""

NEAR = 3e-3
"""Relative error from which on sweeps come before Newton's method, and at which they end."""

FAR = 0.05
"""The same for islands at rest."""


@procedure(inline=True)
def mobility_of_three(problem: Problem, work: Work, g: int) -> float:
    """Largest diagonal entry of ``J M^-1 J'`` of a free-body contact, by the diagonal of ``M``."""
    x = y = z = 0.0
    for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
        J = view(problem.J, problem.entry_at[e], 18)
        inverse = view(work.inverse, problem.node_first[problem.entry_node[e]], 6)
        for c in range(6):
            x += J[c] * J[c] * inverse[c]
            y += J[6 + c] * J[6 + c] * inverse[c]
            z += J[12 + c] * J[12 + c] * inverse[c]
    return max(x, max(y, z))


@procedure(inline=True)
def mobility_of_row(problem: Problem, work: Work, g: int) -> float:
    """Velocity per unit impulse of a one-row group of free bodies, by the diagonal of ``M``."""
    x = 0.0
    for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
        J = view(problem.J, problem.entry_at[e], 6)
        inverse = view(work.inverse, problem.node_first[problem.entry_node[e]], 6)
        for c in range(6):
            x += J[c] * J[c] * inverse[c]
    return x


@procedure(inline=True)
def have_scales(problem: Problem, work: Work, node: int) -> None:
    """Update the square roots and inverses of a node's masses where the masses have changed."""
    count = problem.node_count[node]
    block = view(problem.M, problem.block_at[problem.node_blocks_first[node]])
    for k in range(count):
        i = problem.node_first[node] + k
        m = block[k * count + k]
        if m != work.mass[i]:
            work.mass[i] = m
            work.root[i] = sqrt(m)
            work.inverse[i] = 1.0 / m
            work.metric[i] = 1.0 / sqrt(m)


@procedure(inline=True)
def start_body(problem: Problem, work: Work, first: int, start: "float[:]") -> float:
    """Set a free body's initial velocities; returns the scaled velocity change by forces."""
    v = view(work.v, first, 6)
    v[:6] = view(start, first, 6)
    dv = view(work.dv, first, 6)
    dv[:6] = 0.0
    before = view(problem.velocity, first, 6)
    change = abs(view(problem.free, first, 6) - before)
    speed = SLIGHT * abs(before)
    most = 0.0
    for k in range(6):
        most = max(most, work.root[first + k] * max(change[k], speed[k]))
    return most


@procedure
def prepare(problem: Problem, work: Work, island: int) -> float:
    """Set an island's scales and initial solution; the scale of impulses from the step's forces."""
    size = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        count = problem.node_count[node]
        have_scales(problem, work, node)
        if count == 6 and problem.again > 0:
            size = max(size, start_body(problem, work, problem.node_first[node], problem.start))
            continue
        if count == 6:
            size = max(size, start_body(problem, work, problem.node_first[node], problem.velocity))
            continue
        for k in range(count):
            i = problem.node_first[node] + k
            work.v[i] = problem.start[i] if problem.again > 0 else problem.velocity[i]
            work.dv[i] = 0.0
            v = abs(problem.velocity[i])
            size = max(
                size, work.root[i] * max(abs(problem.free[i] - problem.velocity[i]), SLIGHT * v)
            )
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        most = 0.0
        if work.spot[g, 0] >= 0:
            if g >= problem.lasting:
                most = mobility_of_three(problem, work, g)
                work.delassus[g] = most if most > 0.0 else 1.0
            three = view(work.lam, first, 3)
            three[:3] = view(problem.impulse, first, 3)
            continue
        if dim == 1 and is_of_free_bodies(problem, g):
            most = mobility_of_row(problem, work, g)
            work.delassus[g] = most if most > 0.0 else 1.0
            work.lam[first] = problem.impulse[first]
            continue
        for r in range(dim):
            d = 0.0
            for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
                node = problem.entry_node[e]
                count = problem.node_count[node]
                J = view(problem.J, problem.entry_at[e] + r * count)
                inverse = view(work.inverse, problem.node_first[node])
                for c in range(count):
                    d += J[c] * J[c] * inverse[c]
            most = max(most, d)
        work.delassus[g] = most if most > 0.0 else 1.0
        work.lam[first : first + dim] = problem.impulse[first : first + dim]
    return size


@procedure
def guess_disc(work: Work, g: int, first: int, begin: int, end: int, most: float) -> int:
    """State of a friction disc by its impulse and limit ``most``: STICKING or SLIDING."""
    lam = view(work.lam, first)
    y = view(work.y, first)
    y[begin:end] = lam[begin:end]
    if length(lam, begin, end) < (1.0 - 1e-6) * most:
        return STICKING
    for r in range(begin, end):
        y[r] = lam[r] - work.w[first + r] / work.delassus[g]
    size = length(y, begin, end)
    if size <= most:
        return STICKING
    for r in range(begin, end):
        work.p[first + r] = most / size * y[r]
    return SLIDING


@procedure
def guess(problem: Problem, work: Work, island: int) -> "(int, int)":
    """Guess the states of an island's groups from impulses; numbers of active and sliding ones."""
    acting = 0
    sliding = 0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        y = view(work.y, first)
        p = view(work.p, first)
        state = OPEN
        p[:dim] = lam[:dim]
        if problem.kind[g] != CONE:
            if problem.low[g] < lam[0] < problem.high[g]:
                state = STICKING
        elif lam[0] > 0.0:
            state = STICKING
            most = problem.mu[g] * lam[0]
            y[0] = lam[0]
            r = 1
            while r < dim:
                end = disc_end(dim, r)
                state = max(state, guess_disc(work, g, first, r, end, most))
                r = end
            sliding += 1 if state == SLIDING else 0
        if state != OPEN:
            acting += 1
        work.state[g] = state
    return acting, sliding


@procedure
def kinds(problem: Problem, work: Work, island: int) -> "(bool, bool)":
    """Whether all groups of an island have one row, and whether each body is a tree by itself."""
    single = True
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        single = single and problem.dim[work.island_group[k]] == 1
    alone = True
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        alone = alone and problem.alone[work.island_dof[n]] == 1.0
    return single, alone


@procedure
def is_slow(work: Work, island: int, forces: float) -> bool:
    """Whether an island's velocities are below those that the step's forces alone would give."""
    most = forces * forces
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        if work.v[i] * work.v[i] >= most * work.inverse[i]:
            return False
    return most > 0.0


@procedure
def at_rest(work: Work, island: int, forces: float) -> bool:
    """Whether an island's velocities are below a thousandth of what the step's forces give."""
    return is_slow(work, island, 1e-3 * forces)


@procedure
def errors(problem: Problem, work: Work, island: int, forces: float) -> "(float, float)":
    """Largest residual of an island, of momentum and laws, and the scale it is relative to."""
    gradient = evaluate(problem, work, island)
    worst, size = laws(problem, work, island)
    return max(gradient, worst), max(size, forces)


@procedure
def start_island(
    problem: Problem, work: Work, island: int, forces: float, error: float, size: float, count: int
) -> "(int, float, float)":
    """Warm start of an island by one Newton step, or up to ``count`` rounds of sweeps.

    Returns the number of steps, the error, and what it is relative to.
    """
    steps = 0
    goes_on = False
    work.swept = 0
    acting = sliding = 0
    if problem.again == 0 and error <= GUESS * size:
        states(problem, work, island)
        acting, sliding = guess(problem, work, island)
    if acting > 0:
        steps = 1
        if newton_step(problem, work, island, min(sliding, 1), 0) == 0:
            take_part_of_step(problem, work, island, 1.0)
        before = error
        error, size = errors(problem, work, island, forces)
        dofs = work.island_dofs_first[island + 1] - work.island_dofs_first[island]
        goes_on = error <= before and dofs <= SMALL
        if not error <= before:
            prepare(problem, work, island)
            error, size = errors(problem, work, island, forces)
    near = FAR if at_rest(work, island, forces) else NEAR
    if not goes_on and error > near * size and responses(problem, work, island):
        sweep_rounds(problem, work, island, count, 0.3 * near * size)
        work.swept = 1
        error, size = errors(problem, work, island, forces)
    return steps, error, size
