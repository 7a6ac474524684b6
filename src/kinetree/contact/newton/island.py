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
from kinetree.contact.newton.equations import CHECKED, evaluate, laws, moved
from kinetree.contact.newton.interior import begin, follow
from kinetree.contact.newton.polish import SPEED_OF_PILES, speed_error
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.retries import BEST, INNER, alternate, restore, store
from kinetree.contact.newton.start import at_rest, errors, kinds, prepare, started
from kinetree.contact.newton.steps import (
    first_change,
    laws_along,
    momentum_along,
    newton_step,
    states,
    unchanged,
)
from kinetree.contact.newton.sweeps import responses, swept

__all__ = ["AIM", "solve_coulomb"]

AIM, MOVING = 1e-4, 0.03
"""Part of the tolerance that is aimed at while errors fall fast: what rests then does not creep;
and the same for islands that move."""

NEARLY = 1e-3
"""Part of the tolerance from which on one step that is not quick ends it: rounding is near."""

ROUNDING = 1e-6
"""Part of the impulses at the start below which impulses are not looked at."""

SOFT, SOFTEST = 1e-5, 1e-4
"""Inverse penalty of contacts that stick, in units of d; and the same after a step that was not
quick: redundant contacts flip less, the end is slower."""

STRESS = 40.0
"""``r`` in units of 1 / d; five times more or less where steps fail, which asks other questions."""

SHORT, SHORTEST = 0.3, 0.03
"""Part of a step below which it counts as short, too many of which in a row are a failure; and
below which it is given up."""

CHANGES, PAST = 10, 1.01
"""How often a step that fails is cut where the first contact changes its state, and how far it goes
past that."""

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

MORE_SWEEPS, FAR_OFF = 20, 1e-5
"""Rounds of sweeps before the interior-point method, once, and the relative error from which on."""

PATIENCE, PATIENCE_OF_JOINTS, ENDING = 8, 16, 4
"""Steps before the interior-point method takes over, unless errors fall fast; the same where joints
connect bodies, whose matrices are condensed or the same for several steps; and when it hands
back."""

GROWTH = 1e3
"""Growth of impulses from which on it is not used: there may be no solution."""

ALTERNATING, AT_FIRST = 100.0, 16
"""Penalty of the alternating direction method, in units of 1 / d, then less, then more; and its
iterations at first: half as many more every time, up to 500."""

LARGE, WIDE = 250, 800
"""Velocities of an island above which the interior-point method follows the arc of its path; and
above which it does so with care at once: what it loses there takes long to find."""

LONG = 30
"""Steps before the interior-point method takes over again, after it has failed."""

INSIDE, AFAR, CLOSE_BY = 0.03, 1.0, 3e-3
"""Relative error from which on it starts, at least. In large islands: where the path is straight,
and there is one alone; or where nearly the same was solved, with slightly different forces."""

FARTHEST = 30.0
"""The same in small islands that were not solved: impulses may be ten times those at hand."""

ELSEWHERE = 0.3
"""Part of it from which it starts the next times, from the best so far; in the end from afar."""

HANDS, HANDS_LARGE = 1e-6, 1e-5
"""Relative error at which it hands back, and in large islands; a tenth of it the next time."""

MOST, MOST_LARGE = 25, 100
"""Steps of it in a row, and along the arc."""

TRIES = 5
"""How often it starts anew."""

PENALISED = 50.0
"""``r`` in units of 1 / d from then on: velocities distinguish nearly redundant contacts."""


@procedure
def solve_coulomb(
    problem: Problem, work: Work, island: int, forces: float, sweeping: bool
) -> "(bool, float, float)":
    """Solve one island from the velocities and impulses at hand, ``sweeping`` where they are far.

    Returns whether the tolerance is reached, the relative error, and what it is relative to.
    """
    steps = rounds = 0
    dofs = work.island_dofs_first[island + 1] - work.island_dofs_first[island]
    large = dofs > LARGE
    single, alone = kinds(problem, work, island)
    coarse = problem.coarse
    if coarse > 0.0 and alone and FEW < dofs <= LARGE:
        coarse = max(coarse, ROUGH)
    loose = (LOOSE if alone and dofs > MANY else 1.0) * problem.tolerance
    stress = 0.5 * STRESS if large else STRESS
    work.stress = stress
    work.soft = SOFT
    error, size = errors(problem, work, island, 0.0)
    forces = max(forces, ROUNDING * size)  # a start from large impulses leaves errors of rounding
    size = max(size, forces)
    most = GROWTH * max(size, error)
    sweeping = sweeping and (alone or not single)
    if sweeping and error > AIM * problem.tolerance * size and problem.most_newton > 0:
        count = SINGLE if single else (3 if large else 1) * SWEEPS
        steps, error, size = started(problem, work, island, forces, error, size, count)
    factored = -1  # kind of the last matrix
    fast = False  # whether the last step was one of quick convergence
    slow = 0  # steps in a row that were not
    short = 0  # steps in a row that had to be cut
    changes = 0  # steps that were cut where a state changes
    since = 0  # steps since the interior-point method
    patience = PATIENCE if alone else PATIENCE_OF_JOINTS
    hands = HANDS_LARGE if large else max(HANDS, problem.tolerance)
    level = hands
    stalled = 0
    inside = (AFAR if problem.again == 0 else CLOSE_BY) if large else INSIDE
    inner = 0  # its steps that are not counted
    within = False  # whether it was the last where joints have stops: no impulse is at a bound
    length = AT_FIRST
    enough_moving = False  # whether it moves, and is as good as it gets soon
    sweeps_left = alone and not single  # whether sweeps may help once more
    anew = True  # whether it starts anew
    best = 1e300  # least relative error at the beginning and end of rounds
    bound = 10.0 * size  # of impulses, lest they grow where there is no solution
    while (within or error > AIM * problem.tolerance * size) and steps < problem.most_newton:
        enough = problem.tolerance * size
        if rounds == 0 and (problem.again < 2 or steps > 0):
            enough *= MOVING
        moves = not at_rest(work, island, forces)
        if error <= max(enough, coarse * size) and moves and not (within and error <= enough):
            if error > enough:
                problem.left += 1
            break
        merit, sliding = states(problem, work, island)
        steps += 1
        since += 1
        both = min(sliding, 1)
        again = 0
        if factored == both and (both == 0 or fast) and unchanged(work, island):
            again = 1
        else:
            work.soft = SOFTEST if moves and slow > 0 else SOFT
        stuck = newton_step(problem, work, island, both, again)
        factored = both
        before = error
        momentum_left = 0.0
        if stuck == 0:
            t = 1.0
            rest = momentum_along(work, island)
            while True:
                new = laws_along(problem, work, island, t) + (1.0 - t) * (1.0 - t) * rest
                if new <= (1.0 - 0.1 * t) * merit:
                    break
                if again != 0 or (moves and error <= problem.tolerance * size and not within):
                    stuck = 1
                    break
                t *= 0.5
                if t < SHORT and changes < CHANGES:
                    change, largest = first_change(problem, work, island)
                    if change < 1.0 or largest < bound:
                        t = min(PAST * change, 1.0)
                        changes += 1 if t > 1e-4 else 5  # back and forth at one place
                        break
                if t < SHORTEST:
                    stuck = 1
                    break
            if stuck == 0:
                momentum_left = moved(problem, work, island, t)
                within = within and t < 1.0
                short = short + 1 if t < SHORT and changes >= CHANGES else 0
        if stuck != 0 and again != 0:  # once more, with a new matrix
            factored = -1
            fast = False
            continue
        if stuck == 0:
            worst, size = laws(problem, work, island)
            error = max(momentum_left, worst)
            size = max(size, forces)
        if stuck != 0 or error <= CHECKED * problem.tolerance * size:
            error, size = errors(problem, work, island, forces)
        fast = error < 0.1 * before
        slow = 0 if fast else slow + 1
        done = error <= problem.tolerance * size and not within
        nearly = error <= NEARLY * problem.tolerance * size
        if done and (slow >= 2 or stuck != 0 or (slow == 1 and nearly)):
            break
        if moves and error <= loose * size and error < best * min(size, most):
            best = error / min(size, most)
            store(problem, work, island, BEST, work.v, work.lam)
        late = since >= patience and not fast
        if late and moves and not within and best <= loose:
            restore(problem, work, island, BEST)
            error, size = errors(problem, work, island, forces)
            enough_moving = speed_error(problem, work, island) <= SPEED_OF_PILES
            loose = 0.0  # once
            if enough_moving:
                break
        if (stuck == 0 and short <= 3 and not late) or done:
            continue
        if error < best * min(size, most):
            best = error / min(size, most)
            store(problem, work, island, BEST, work.v, work.lam)
        if rounds >= problem.most_rounds:
            break
        work.stress = stress
        if sweeps_left and error > FAR_OFF * size and size <= most:
            sweeps_left = False
            if responses(problem, work, island):
                swept(problem, work, island, MORE_SWEEPS, FAR_OFF * size)
                error, size = errors(problem, work, island, forces)
                factored = -1
                fast = False
                short = slow = since = changes = 0
                continue
        if stalled < TRIES:
            changes = 0
        if size > most:
            stalled = max(stalled, TRIES)
        if stalled < TRIES:
            rounds += 1
            if anew and stalled == 0:
                begin(problem, work, island, max(inside * size, error))
            elif anew and (large or stalled > 1):
                restore(problem, work, island, BEST)
                evaluate(problem, work, island)
                afar = AFAR if large else FARTHEST
                inside = inside * ELSEWHERE if inside > CLOSE_BY else afar
                begin(problem, work, island, inside * size)
            elif anew:
                prepare(problem, work, island)
                begin(problem, work, island, FARTHEST * size)
            else:
                restore(problem, work, island, INNER)
            arcs = 2 if stalled > 0 or dofs > WIDE else (1 if large else 0)
            long = MOST_LARGE if arcs > 0 else MOST
            more, reached = follow(problem, work, island, forces, level, long, arcs)
            store(problem, work, island, INNER, work.v, work.lam)
            if arcs > 0:
                inner += more
            else:
                steps += more
            anew = reached > level
            within = not alone and level > 0.3 * problem.tolerance  # the least ends it as it is
            level = max(0.1 * level, 0.3 * problem.tolerance)
            patience = ENDING
            work.stress = PENALISED
            if anew:
                level = hands
                stalled += 1
                patience = LONG
        else:
            stalled += 1
            if stalled % 3 == 1:
                work.stress = 5.0 * stress
            elif stalled % 3 == 2:
                work.stress = 0.2 * stress
            else:
                times = 0.1 if stalled % 9 == 6 else (10.0 if stalled % 9 == 0 else 1.0)
                alternate(problem, work, island, length, times * ALTERNATING)
                within = False
                rounds += 1
                length = min(length + length // 2, 500)
        factored = -1
        fast = False
        short = slow = since = 0
        error, size = errors(problem, work, island, forces)
        if stalled < TRIES and size > most:
            prepare(problem, work, island)
            store(problem, work, island, INNER, work.v, work.lam)
            stalled = TRIES
            error, size = errors(problem, work, island, forces)
        if error < best * min(size, most):
            best = error / min(size, most)
            store(problem, work, island, BEST, work.v, work.lam)
    if best < 1e300 and not error <= max(problem.tolerance, best) * min(size, most):
        restore(problem, work, island, BEST)
        error, size = errors(problem, work, island, forces)
    problem.rounds = max(problem.rounds, rounds)
    problem.newton += steps + inner
    size = min(size, most)
    relative = error / size if size > 0.0 else error
    allowed = max(problem.tolerance, coarse)
    if enough_moving:
        allowed = max(allowed, relative)
    return relative <= allowed, relative, size
