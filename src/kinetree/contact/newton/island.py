"""One island: Newton's method, the interior-point method where it fails, and what comes then.

The first step takes contacts to act and slide as they did before; far from a solution, free bodies
get some sweeps of Gauss–Seidel. A step that does not lower the error is cut just past the place
where the first contact changes its state, since the next one is then another. Nearly redundant
contacts can flip between states without end: small velocities then belong to large changes of
impulses. After ``PATIENCE`` steps bodies that are alone are swept once more, then the
interior-point method of ``interior`` takes over, and hands back near the solution, where ``r`` is
larger. Where it fails, and in large islands at once, it follows the arc of its path, from several
starts. Then ``r`` is varied, with iterations of the alternating direction method in velocities,
with De Saxcé's correction: their matrix stays the same.
"""

from kinetree.codegen.procedures import procedure
from kinetree.contact.newton.polish import SPEED_OF_PILES, speed_error
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.retries import BEST, restore
from kinetree.contact.newton.rounds import (
    AFAR,
    AT_FIRST,
    CLOSE_BY,
    INSIDE,
    note_best,
    try_another_way,
)
from kinetree.contact.newton.start import at_rest, errors, kinds, start_island
from kinetree.contact.newton.taking import (
    OLD_MATRIX,
    SOFT,
    TAKEN,
    note_errors_after,
    take_newton_step,
)

__all__ = ["AIM", "solve_coulomb"]

GO_ON, FAILS, ENDS = 0, 1, 2
"""What comes after a step: the next one, another way, or nothing."""

AIM, MOVING = 1e-4, 0.03
"""Part of the tolerance that is aimed at while errors fall fast: what rests then does not creep;
and the same for islands that move."""

NEARLY = 1e-3
"""Part of the tolerance from which on one step that is not quick ends it: rounding is near."""

ROUNDING = 1e-6
"""Part of the impulses at the start below which impulses are not looked at."""

STRESS = 40.0
"""``r`` in units of 1 / d; five times more or less where steps fail, which asks other questions."""

SWEEPS, SINGLE = 11, 5
"""How many rounds of them at most; and where groups have one row each, as in shifts of positions:
Newton's method is quick there."""

ROUGH, FEW = 0.1, 30
"""Relative error with which islands of bodies that are alone are left to another call, which may
find more contacts: what sweeps find, and no more. Islands of at most ``FEW`` velocities are not;
nor are large ones, which lose their way then."""

LOOSE, MANY = 10.0, 120
"""Error of piles that move which is left as it is after ``PATIENCE`` steps, in tolerances, and
their velocities: the interior-point method takes as long as all steps before, for velocities of
1e-5 m/s. 50 balls in a box take 1.37 times ``mj_step`` in the mean of 40 seeds; 1.64 without this
and without more sweeps."""

PATIENCE, PATIENCE_OF_JOINTS = 8, 16
"""Steps before the interior-point method takes over, unless errors fall fast; the same where joints
connect bodies, whose matrices are condensed or the same for several steps."""

CRAWLS = 3
"""Steps in a row that crawl, see ``taking``, after which the interior-point method takes over where
joints connect bodies and matrices are not condensed: in a net that lies on the ground states change
one at a time, and there are hundreds."""

GROWTH = 1e3
"""Growth of impulses from which on it is not used: there may be no solution."""

LARGE = 250
"""Velocities of an island of bodies that are alone above which the interior-point method follows
the arc of its path; ``r`` is smaller in all such islands."""

HANDS, HANDS_LARGE = 1e-6, 1e-5
"""Relative error at which it hands back, and in large islands or where joints connect bodies; a
tenth of it the next time."""


@procedure
def set_limits(problem: Problem, work: Work, island: int) -> None:
    """Set an island's type, and the tolerances and step limits of its solution."""
    c = work.course
    c.dofs = work.island_dofs_first[island + 1] - work.island_dofs_first[island]
    c.single, c.alone = kinds(problem, work, island)
    c.large = c.alone and c.dofs > LARGE
    c.coarse = problem.coarse
    if c.coarse > 0.0 and c.alone and FEW < c.dofs <= LARGE:
        c.coarse = max(c.coarse, ROUGH)
    c.loose = (LOOSE if c.alone and c.dofs > MANY else 1.0) * problem.tolerance
    c.stress = 0.5 * STRESS if c.dofs > LARGE else STRESS
    c.patience = PATIENCE if c.alone else PATIENCE_OF_JOINTS
    c.hands = HANDS_LARGE if c.large else max(HANDS if c.alone else HANDS_LARGE, problem.tolerance)
    if c.large:  # no farther than another call wants to begin
        c.hands = max(c.hands, c.coarse)
    c.level = c.hands
    c.inside = (AFAR if problem.again == 0 else CLOSE_BY) if c.large else INSIDE
    c.length = AT_FIRST
    c.sweeps_left = c.alone and not c.single
    work.stress = c.stress
    work.soft = SOFT


@procedure
def set_out(problem: Problem, work: Work, island: int, forces: float, sweeping: bool) -> None:
    """Initialise an island's solution, with sweeps first if it is far off and ``sweeping``."""
    c = work.course
    set_limits(problem, work, island)
    c.steps = c.inner = c.since = c.slow = c.short = c.changes = c.rounds = c.stalled = 0
    c.crawls = 0
    c.factored = -1
    c.fast = c.within = c.enough_moving = False
    c.anew = True
    c.best = 1e300
    c.error, c.size = errors(problem, work, island, 0.0)
    c.forces = max(forces, ROUNDING * c.size)  # large impulses leave errors of rounding
    c.size = max(c.size, c.forces)
    c.most = GROWTH * max(c.size, c.error)
    far = c.error > AIM * problem.tolerance * c.size and problem.most_newton > 0
    if sweeping and (c.alone or not c.single) and far:
        count = SINGLE if c.single else (3 if c.large else 1) * SWEEPS
        c.steps, c.error, c.size = start_island(
            problem, work, island, c.forces, c.error, c.size, count
        )
    c.bound = 10.0 * c.size


@procedure
def is_enough(problem: Problem, work: Work, moves: bool) -> bool:
    """Whether a moving island is solved to the accuracy required in this call."""
    c = work.course
    enough = problem.tolerance * c.size
    if c.rounds == 0 and (problem.again < 2 or c.steps > 0):
        enough *= MOVING
    if c.error > max(enough, c.coarse * c.size) or not moves:
        return False
    if c.within and c.error <= enough:
        return False
    if c.error > enough:
        problem.left += 1
    return True


@procedure
def judge_step(problem: Problem, work: Work, island: int, moves: bool, ended: int) -> int:
    """Next action after a Newton step: GO_ON, FAILS (another method) or ENDS."""
    c = work.course
    done = c.error <= problem.tolerance * c.size and not c.within
    nearly = c.error <= NEARLY * problem.tolerance * c.size
    if done and (c.slow >= 2 or ended != TAKEN or (c.slow == 1 and nearly)):
        return ENDS
    if moves and c.error <= c.loose * c.size:
        note_best(problem, work, island)
    late = c.since >= c.patience and not c.fast
    late = late or (c.crawls >= CRAWLS and not c.alone and work.condensed < 0)
    if late and moves and not c.within and c.best <= c.loose:
        restore(problem, work, island, BEST)
        c.error, c.size = errors(problem, work, island, c.forces)
        c.enough_moving = speed_error(problem, work, island) <= SPEED_OF_PILES
        c.loose = 0.0  # once
        if c.enough_moving:
            return ENDS
    if (ended == TAKEN and c.short <= 3 and not late) or done:
        return GO_ON
    note_best(problem, work, island)
    return ENDS if c.rounds >= problem.most_rounds else FAILS


@procedure
def result(problem: Problem, work: Work, island: int) -> "(bool, float, float)":
    """Whether the best solution of an island reached the tolerance, its error, and their scale."""
    c = work.course
    if c.best < 1e300 and not c.error <= max(problem.tolerance, c.best) * min(c.size, c.most):
        restore(problem, work, island, BEST)
        c.error, c.size = errors(problem, work, island, c.forces)
    problem.rounds = max(problem.rounds, c.rounds)
    problem.newton += c.steps + c.inner
    size = min(c.size, c.most)
    relative = c.error / size if size > 0.0 else c.error
    allowed = max(problem.tolerance, c.coarse)
    if c.enough_moving:
        allowed = max(allowed, relative)
    return relative <= allowed, relative, size


@procedure
def solve_coulomb(
    problem: Problem, work: Work, island: int, forces: float, sweeping: bool
) -> "(bool, float, float)":
    """Solve an island's Coulomb problem from the current velocities and impulses.

    Returns whether the tolerance is reached, the relative error, and what it is relative to.
    """
    c = work.course
    set_out(problem, work, island, forces, sweeping)
    while c.within or c.error > AIM * problem.tolerance * c.size:
        moves = not at_rest(work, island, c.forces)
        if c.steps >= problem.most_newton or is_enough(problem, work, moves):
            break
        ended, left = take_newton_step(problem, work, island, moves)
        if ended == OLD_MATRIX:  # once more, with a new matrix
            c.factored = -1
            c.fast = False
            continue
        note_errors_after(problem, work, island, ended, left)
        follows = judge_step(problem, work, island, moves, ended)
        if follows == ENDS:
            break
        if follows == FAILS:
            try_another_way(problem, work, island)
    return result(problem, work, island)
