"""Last steps of an island: until velocities at contacts are right in metres per second.

Errors of an island are relative to its largest impulse. A light body beside a heavy one, or far
below it in a stack, sees little of that accuracy. Near a solution Newton's method doubles the
digits with each step, so that one or two more make all velocities right.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, view
from kinetree.contact.newton.cones import law, off_law, touches
from kinetree.contact.newton.equations import evaluate, take_part_of_step
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.retries import BEST, restore, store
from kinetree.contact.newton.start import at_rest, kinds
from kinetree.contact.newton.steps import newton_step, states

__all__ = ["SPEED_OF_PILES", "law_error", "polish", "speed_error"]

SPEED, SPEED_OF_PILES = 1e-6, 1e-5
"""Error of a velocity that is aimed at [m/s or rad/s]; and the same in piles that move."""

STEPS, SOFTER = 9, 0.1
"""Of Newton's method, at most; and the change of the penalty after three without success."""


@procedure
def law_error(problem: Problem, work: Work, g: int) -> float:
    """Residual of a group's law in velocity and impulse, as a velocity [m/s or rad/s].

    Where a contact that slides lacks friction, that is what the rest would change of its speed.
    """
    y, p = local("float", 2, 6)
    dim = problem.dim[g]
    first = problem.row_first[g]
    d = work.delassus[g]
    if touches(problem, g):
        lam = view(work.lam, first, 3)
        return d * sqrt(off_law(problem.mu[g], lam, lam - view(work.w, first, 3) / d))
    y[:dim] = work.lam[first : first + dim] - work.w[first : first + dim] / d
    law(problem, g, y, p)
    square = 0.0
    for r in range(dim):
        x = work.lam[first + r] - p[r]
        square += x * x
    return d * sqrt(square)


@procedure
def speed_error(problem: Problem, work: Work, island: int) -> float:
    """Largest velocity residual of an island: of a row's law, or of a joint's momentum."""
    most = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        most = max(most, law_error(problem, work, work.island_group[k]))
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        most = max(most, abs(work.g[i]) * work.inverse[i])
    return most


@procedure
def polish(problem: Problem, work: Work, island: int, forces: float) -> float:
    """Newton steps from a solution while its velocities are inaccurate; their error afterwards.

    Returns the error of its velocities.
    """
    _, alone = kinds(problem, work, island)
    moves = alone and not at_rest(work, island, forces)
    first = speed_error(problem, work, island)
    if first <= (SPEED_OF_PILES if moves else SPEED):
        return first
    evaluate(problem, work, island)
    best = speed_error(problem, work, island)
    store(problem, work, island, BEST, work.v, work.lam)
    error = best
    stress = work.stress
    for k in range(STEPS):
        if error <= SPEED:
            break
        _, sliding = states(problem, work, island)
        if newton_step(problem, work, island, min(sliding, 1), 0) != 0:
            break
        take_part_of_step(problem, work, island, 1.0)
        evaluate(problem, work, island)
        problem.newton += 1
        error = speed_error(problem, work, island)
        if error < best:
            best = error
            store(problem, work, island, BEST, work.v, work.lam)
        elif k % 3 == 2:  # other penalties, from the best
            work.stress *= SOFTER
            restore(problem, work, island, BEST)
            evaluate(problem, work, island)
    work.stress = stress
    if error > best:
        restore(problem, work, island, BEST)
        evaluate(problem, work, island)
    return speed_error(problem, work, island)
