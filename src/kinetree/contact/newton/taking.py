"""A step of Newton's method for an island: the matrix, and how much of the step is taken."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.newton.equations import CHECKED, laws, take_part_of_step
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.start import errors
from kinetree.contact.newton.steps import (
    first_change,
    keeps_states,
    laws_along,
    momentum_along,
    newton_step,
    states,
)

__all__ = ["OLD_MATRIX", "SOFT", "TAKEN", "note_errors_after", "take_newton_step"]

TAKEN, STUCK, OLD_MATRIX = 0, 1, 2
"""How a step ended: taken; not found, or no part of it lowers the error; the same with the matrix
of an earlier step, so that another one is made."""

SOFT, SOFTEST = 1e-5, 1e-4
"""Inverse penalty of contacts that stick, in units of d; and the same after a step that was not
quick: redundant contacts flip less, the end is slower."""

SHORT, SHORTEST = 0.3, 0.03
"""Part of a step below which it counts as short, too many of which in a row are a failure; and
below which it is given up."""

CHANGES, PAST, LEAST = 10, 1.01, 0.02
"""How often a step that fails is cut where the first contact changes its state, how far it goes
past that, and its least part: just after sweeps several contacts change within it, one after the
other."""

CRAWL, AWAY = 0.9, 1e-3
"""Part of the error that a step leaves at least where it crawls, after others were cut where a
contact changes its state; and the relative error: nearer a solution few states are wrong."""


@procedure
def choose_matrix(problem: Problem, work: Work, island: int, both: int, moves: bool) -> int:
    """Whether the last factored matrix can be reused (1, else 0); sets the sticking penalty."""
    c = work.course
    if c.factored == both and (both == 0 or c.fast) and keeps_states(work, island):
        return 1
    work.soft = SOFTEST if moves and c.slow > 0 else SOFT
    return 0


@procedure
def search_along(
    problem: Problem, work: Work, island: int, merit: float, again: int, moves: bool
) -> float:
    """Line search of an island's Newton step: the accepted part of the step, 0 for none.

    It ends where errors, ``merit`` before, have fallen; or past the place where the first contact
    changes its state.
    """
    c = work.course
    t = 1.0
    rest = momentum_along(problem, work, island)
    while True:
        new = laws_along(problem, work, island, t) + (1.0 - t) * (1.0 - t) * rest
        if new <= (1.0 - 0.1 * t) * merit:
            return t
        if again != 0 or (moves and c.error <= problem.tolerance * c.size and not c.within):
            return 0.0
        t *= 0.5
        if t < SHORT and c.changes < CHANGES:
            change, largest = first_change(problem, work, island)
            if change < 1.0 or largest < c.bound:
                c.changes += 1 if change > 1e-4 else 5  # back and forth at one place
                return min(max(PAST * change, LEAST), 1.0)
        if t < SHORTEST:
            return 0.0


@procedure
def take_newton_step(problem: Problem, work: Work, island: int, moves: bool) -> "(int, float)":
    """Take one Newton step of an island; how it ended, and the momentum error left."""
    c = work.course
    merit, sliding = states(problem, work, island)
    c.steps += 1
    c.since += 1
    both = min(sliding, 1)
    again = choose_matrix(problem, work, island, both, moves)
    failed = OLD_MATRIX if again != 0 else STUCK
    stuck = newton_step(problem, work, island, both, again)
    c.factored = both
    if stuck != 0:
        return failed, 0.0
    t = search_along(problem, work, island, merit, again, moves)
    if t == 0.0:
        return failed, 0.0
    left = take_part_of_step(problem, work, island, t)
    c.within = c.within and t < 1.0
    c.short = c.short + 1 if t < SHORT and c.changes >= CHANGES else 0
    return TAKEN, left


@procedure
def note_errors_after(problem: Problem, work: Work, island: int, ended: int, left: float) -> None:
    """Update an island's error and convergence counters after a step."""
    c = work.course
    before = c.error
    if ended == TAKEN:
        worst, size = laws(problem, work, island)
        c.error = max(left, worst)
        c.size = max(size, c.forces)
    if ended != TAKEN or c.error <= CHECKED * problem.tolerance * c.size:
        c.error, c.size = errors(problem, work, island, c.forces)
    c.fast = c.error < 0.1 * before
    c.slow = 0 if c.fast else c.slow + 1
    crawling = c.changes > 0 and c.error > max(CRAWL * before, AWAY * c.size)
    c.crawls = c.crawls + 1 if crawling else 0
