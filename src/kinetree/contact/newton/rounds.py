"""Other ways for islands where Newton's method fails: sweeps, interior points, penalties."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.newton.equations import evaluate
from kinetree.contact.newton.interior import PATIENT, begin, follow
from kinetree.contact.newton.mixtures import sweep_rounds
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.retries import BEST, INNER, alternate, restore, store
from kinetree.contact.newton.start import errors, prepare
from kinetree.contact.newton.sweeps import responses

__all__ = ["AFAR", "AT_FIRST", "CLOSE_BY", "INSIDE", "note_best", "try_another_way"]

MORE_SWEEPS, FAR_OFF = 20, 1e-5
"""Rounds of sweeps before the interior-point method, once, and the relative error from which on."""

ENDING, LONG = 4, 30
"""Steps of Newton's method after the interior-point method before that takes over again; and the
same after it has failed."""

ALTERNATING, AT_FIRST = 100.0, 16
"""Penalty of the alternating direction method, in units of 1 / d, then less, then more; and its
iterations at first: half as many more every time, up to 500."""

INSIDE, AFAR, CLOSE_BY = 0.03, 1.0, 3e-3
"""Relative error from which on it starts, at least. In large islands: where the path is straight,
and there is one alone; or where nearly the same was solved, with slightly different forces."""

FARTHEST = 30.0
"""The same in small islands that were not solved: impulses may be ten times those at hand."""

ELSEWHERE = 0.3
"""Part of it from which it starts the next times, from the best so far; in the end from afar."""

MOST, MOST_OF_JOINTS, MOST_LARGE = 25, 60, 100
"""Steps of it in a row, the same where joints connect bodies, and along the arc."""

TRIES = 5
"""How often it starts anew."""

PENALISED = 50.0
"""``r`` in units of 1 / d from then on: velocities distinguish nearly redundant contacts."""

WIDE = 800
"""Velocities of an island above which the interior-point method follows the arc of its path with
care at once: what it loses there takes long to find."""


@procedure
def note_best(problem: Problem, work: Work, island: int) -> None:
    """Store an island's velocities and impulses if their error is the smallest so far."""
    c = work.course
    if c.error < c.best * min(c.size, c.most):
        c.best = c.error / min(c.size, c.most)
        store(problem, work, island, BEST, work.v, work.lam)


@procedure
def begin_anew(work: Work) -> None:
    """Reset the Newton counters and the matrix cache after another method was used."""
    c = work.course
    c.factored = -1
    c.fast = False
    c.short = c.slow = c.since = c.crawls = 0


@procedure
def sweep_once_more(problem: Problem, work: Work, island: int) -> bool:
    """Sweep an island of free bodies once more if far from a solution; whether it did."""
    c = work.course
    if not (c.sweeps_left and c.error > FAR_OFF * c.size and c.size <= c.most):
        return False
    c.sweeps_left = False
    if not responses(problem, work, island):
        return False
    sweep_rounds(problem, work, island, MORE_SWEEPS, FAR_OFF * c.size)
    c.error, c.size = errors(problem, work, island, c.forces)
    begin_anew(work)
    c.changes = 0
    return True


@procedure
def start_inside(problem: Problem, work: Work, island: int) -> None:
    """Initialise an island's interior point, farther away after each failure, or continue."""
    c = work.course
    if c.anew and c.stalled == 0:
        begin(problem, work, island, max(c.inside * c.size, c.error))
    elif c.anew and (c.large or c.stalled > 1):
        restore(problem, work, island, BEST)
        evaluate(problem, work, island)
        afar = AFAR if c.large else FARTHEST
        c.inside = c.inside * ELSEWHERE if c.inside > CLOSE_BY else afar
        begin(problem, work, island, c.inside * c.size)
    elif c.anew:
        prepare(problem, work, island)
        begin(problem, work, island, FARTHEST * c.size)
    else:
        restore(problem, work, island, INNER)


@procedure
def effort(alone: bool, large: bool, careful: bool) -> "(int, int)":
    """Arc mode and most steps of the interior-point method, by type of island."""
    if careful:
        return 2, MOST_LARGE
    if not alone:
        return PATIENT, MOST_OF_JOINTS
    return (1 if large else 0), (MOST_LARGE if large else MOST)


@procedure
def follow_inside(problem: Problem, work: Work, island: int) -> None:
    """Run the interior-point method on an island once, and continue from its result."""
    c = work.course
    c.rounds += 1
    start_inside(problem, work, island)
    arcs, long = effort(c.alone, c.large, c.stalled > 0 or c.dofs > WIDE)
    more, reached = follow(problem, work, island, c.forces, c.level, long, arcs)
    store(problem, work, island, INNER, work.v, work.lam)
    if arcs > 0:
        c.inner += more
    else:
        c.steps += more
    c.anew = reached > c.level
    c.within = not c.alone and c.level > 0.3 * problem.tolerance  # the least ends it as it is
    c.level = max(0.1 * c.level, 0.3 * problem.tolerance)
    c.patience = ENDING
    work.stress = PENALISED
    if c.anew:
        c.level = c.hands
        c.stalled += 1
        c.patience = LONG


@procedure
def vary_penalty(problem: Problem, work: Work, island: int) -> None:
    """Retry an island with another penalty ``r``, or with ADMM iterations."""
    c = work.course
    c.stalled += 1
    if c.stalled % 3 == 1:
        work.stress = 5.0 * c.stress
    elif c.stalled % 3 == 2:
        work.stress = 0.2 * c.stress
    else:
        times = 0.1 if c.stalled % 9 == 6 else (10.0 if c.stalled % 9 == 0 else 1.0)
        alternate(problem, work, island, c.length, times * ALTERNATING)
        c.within = False
        c.rounds += 1
        c.length = min(c.length + c.length // 2, 500)


@procedure
def try_another_way(problem: Problem, work: Work, island: int) -> None:
    """Choose and run the next fallback method after Newton's method failed on an island."""
    c = work.course
    work.stress = c.stress
    if sweep_once_more(problem, work, island):
        return
    if c.stalled < TRIES:
        c.changes = 0
    if c.size > c.most:
        c.stalled = max(c.stalled, TRIES)
    if c.stalled < TRIES:
        follow_inside(problem, work, island)
    else:
        vary_penalty(problem, work, island)
    begin_anew(work)
    c.error, c.size = errors(problem, work, island, c.forces)
    if c.stalled < TRIES and c.size > c.most:
        prepare(problem, work, island)
        store(problem, work, island, INNER, work.v, work.lam)
        c.stalled = TRIES
        c.error, c.size = errors(problem, work, island, c.forces)
    note_best(problem, work, island)
