"""Newton's method in the velocities for contacts with friction, island by island.

Velocities ``v`` and impulses ``lam`` are sought together, such that

    M (v - free) = J' lam    and    lam = P(lam - r (J v + target))

with Coulomb's laws ``P`` of ``cones``; ``r`` is about 1 / d, ``d`` a diagonal of ``J M^-1 J'``. The
second equation, made linear and solved for the change of ``lam``, leaves a matrix for the change of
the velocities, ``M + J' A J``, which has the sparsity of trees and contacts; it is symmetric unless
contacts slide. Contacts that stick get a stiff penalty, so redundant ones do no harm, and what it
leaves of their velocities falls by orders of magnitude in every step.

The first step takes contacts to act and slide as they did before; far from a solution, free bodies
get some sweeps of Gauss–Seidel. A step that does not lower the error is cut just past the place
where the first contact changes its state, since the next one is then another. Nearly redundant
contacts can flip between states without end: small velocities then belong to large changes of
impulses. After ``PATIENCE`` steps the interior-point method of ``interior`` takes over, and hands
back near the solution, where ``r`` is larger. Where it fails, and in large islands at once, it
follows the arc of its path, from several starts. Then ``r`` is varied, with iterations of the
alternating direction method in velocities, with De Saxcé's correction: their matrix stays the same.

Errors are those of ``equations``, relative to the largest ``|lam| sqrt(d)`` of the island, or to
``sqrt(M_ii)`` times the change of velocity by the forces of the step, or ``SLIGHT`` of the velocity
where nothing presses.
"""

from kinetree.codegen.procedures import isfinite, local, procedure, sqrt, view
from kinetree.contact.newton.cholesky import factor, solve_factored
from kinetree.contact.newton.cones import (
    OPEN,
    SLIDING,
    STICKING,
    law,
    linear,
    off_law,
    project,
    tangential,
    touches,
)
from kinetree.contact.newton.equations import CHECKED, assemble, evaluate, laws, momentum, moved
from kinetree.contact.newton.interior import begin, follow
from kinetree.contact.newton.pattern import analyse, place_pairs, split
from kinetree.contact.newton.problem import CONE, Problem, Work, give, row_velocity
from kinetree.contact.newton.sweeps import responses, swept

__all__ = ["solve"]

AIM = 1e-4
"""Part of the tolerance that is aimed at while errors fall fast: what rests then does not creep."""

MOVING = 0.03
"""The same for islands that move."""

ROUNDING = 1e-6
"""Part of the impulses at the start below which impulses are not looked at."""

SLIGHT = 1e-6
"""Part of a velocity that its change is taken to be at least: without weight there is no other."""

SOFT = 1e-5
"""Inverse penalty of contacts that stick, in units of d."""

SOFTEST = 1e-4
"""The same after a step that was not quick: redundant contacts flip less, the end is slower."""

STRESS = 40.0
"""``r`` in units of 1 / d; five times more or less where steps fail, which asks other questions."""

SHORT = 0.3
"""Part of a step below which it counts as short; too many of those in a row are a failure."""

SHORTEST = 0.03
"""Part of a step below which it is given up."""

CHANGES = 10
"""How often a step that fails is cut where the first contact changes its state."""

PAST = 1.01
"""How far it goes past that."""

GUESS = 0.1
"""Relative error up to which the first step takes contacts to act and slide as before."""

NEAR = 3e-3
"""Relative error from which on sweeps come before Newton's method, and at which they end."""

FAR = 0.05
"""The same for islands at rest."""

SWEEPS = 11
"""How many rounds of them at most."""

SINGLE = 5
"""The same where groups have one row each, as in shifts of positions: Newton's method is quick."""

ROUGH = 0.1
"""Relative error with which islands of bodies that are alone are left to another call, which may
find more contacts: what sweeps find, and no more."""

FEW = 30
"""Velocities of an island up to which it is not."""

PATIENCE = 12
"""Steps before the interior-point method takes over, unless errors fall fast."""

ENDING = 4
"""The same when it hands back."""

GROWTH = 1e3
"""Growth of impulses from which on it is not used: there may be no solution."""

ALTERNATING = 100.0
"""Penalty of the alternating direction method, in units of 1 / d, then less, then more."""

AT_FIRST = 16
"""Iterations of it, at first; half as many more every time, up to 500."""

LARGE = 250
"""Velocities of an island above which the interior-point method follows the arc of its path."""

WIDE = 800
"""The same above which it does so with care at once: what it loses there takes long to find."""

LONG = 30
"""The same after it has failed."""

INSIDE = 0.03
"""Relative error from which on it starts, at least."""

AFAR = 1.0
"""The same in large islands: where the path is straight, and there is one alone."""

CLOSE_BY = 3e-3
"""The same in large islands that were solved with slightly different forces."""

ELSEWHERE = 0.3
"""Part of it from which it starts the next times, from the best so far; in the end from afar."""

HANDS = 1e-6
"""Relative error at which it hands back."""

HANDS_LARGE = 1e-5
"""The same in large islands; a tenth of it the next time."""

MOST = 25
"""Steps of it in a row."""

MOST_LARGE = 100
"""The same in large islands."""

TRIES = 5
"""How often it starts anew."""

INNER = 0
"""Place where ``store`` keeps what the interior-point method found."""

BEST = 1
"""Place of the least error so far."""

PENALISED = 50.0
"""``r`` in units of 1 / d from then on: velocities distinguish nearly redundant contacts."""


@procedure
def prepare(problem: Problem, work: Work, island: int) -> float:
    """Scales and start of an island; the size of what the forces of the step change."""
    size = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        count = problem.node_count[node]
        block = view(problem.M, problem.block_at[problem.node_blocks_first[node]])
        for k in range(count):
            i = problem.node_first[node] + k
            m = block[k * count + k]
            work.inverse[i] = 1.0 / m
            work.metric[i] = 1.0 / sqrt(m)
            work.v[i] = problem.start[i] if problem.again > 0 else problem.velocity[i]
            work.dv[i] = 0.0
            v = abs(problem.velocity[i])
            size = max(size, sqrt(m) * max(abs(problem.free[i] - problem.velocity[i]), SLIGHT * v))
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        most = 0.0
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
        first = problem.row_first[g]
        for r in range(first, first + dim):
            work.lam[r] = problem.impulse[r]
    return size


@procedure
def states(problem: Problem, work: Work, island: int) -> "(float, int)":
    """Sum of all squared errors, and how many groups slide; ``y`` and ``p = P(y)`` for the step."""
    total = momentum_along(work, island)
    sliding = 0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        d = work.delassus[g]
        y = view(work.y, first)
        p = view(work.p, first)
        for r in range(dim):
            y[r] = work.lam[first + r] - work.stress * work.w[first + r] / d
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
    """Sum of the squared errors of the laws after a part of the step."""
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
    """The part of the step after which the first group changes its state; 1 when none does.

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
        mu = problem.mu[g]
        a = -mu * mu * dy[0] * dy[0]
        b = -mu * mu * y[0] * dy[0]
        c = -mu * mu * y[0] * y[0]
        for r in range(1, dim):
            a += dy[r] * dy[r]
            b += y[r] * dy[r]
            c += y[r] * y[r]
        root = b * b - a * c  # of a t^2 + 2 b t + c, where the cone is crossed
        if root >= 0.0:
            q = -b - sqrt(root) if b >= 0.0 else sqrt(root) - b
            least = sooner(least, q, a)
            least = sooner(least, c, q)
    return least, sqrt(most)


@procedure
def sooner(t: float, a: float, b: float) -> float:
    """``a / b`` if it is positive and less than ``t``, else ``t``."""
    if b > 0.0:
        return a / b if 1e-9 * b < a < t * b else t
    return a / b if t * b < a < 1e-9 * b else t


@procedure
def newton_step(problem: Problem, work: Work, island: int, both: int, again: int) -> int:
    """Newton's step ``dv``, ``dlam``, ``dw``: 0, or 1 when there is none.

    Its matrix is made and factored, or taken as it was if ``again``.
    """
    B = local("float", 36)
    first_group = work.island_groups_first[island]
    last_group = work.island_groups_first[island + 1]
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        work.dv[work.island_dof[n]] = work.g[work.island_dof[n]]
    for k in range(first_group, last_group):
        g = work.island_group[k]
        first = problem.row_first[g]
        c = view(work.dlam, first)
        if again == 0:
            work.was[g] = work.state[g]
        linear(problem.dim[g], problem.mu[g], work.state[g], work.stress / work.delassus[g],
               work.stress * work.soft, view(work.lam, first), view(work.w, first),
               view(work.y, first), view(work.p, first),
               view(work.A, 6 * first) if again == 0 else view(B, 0), c)  # fmt: skip
        give(problem, problem.J, g, c, work.dv)
    if again == 0:
        assemble(problem, work, island, both)
        problem.factored += 1
        if factor(problem, work, island, both) != 0:
            return 1
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        work.dv[work.island_dof[n]] = -work.dv[work.island_dof[n]]
    solve_factored(problem, work, island, both, work.dv)
    total = 0.0
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        total += work.dv[work.island_dof[n]]
    if not isfinite(total):
        return 1
    for k in range(first_group, last_group):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        dw = view(work.dw, first)
        A = view(work.A, 6 * first)
        row_velocity(problem, g, work.dv, dw)
        if work.state[g] == OPEN:
            continue
        if dim == 3:
            view(work.dlam, first, 3)[:3] -= view(A, 0, 3, 3) @ view(dw, 0, 3)
            continue
        for r in range(dim):
            s = 0.0
            for m in range(dim):
                s += A[r * dim + m] * dw[m]
            work.dlam[first + r] -= s
    return 0


@procedure
def guess(problem: Problem, work: Work, island: int) -> "(int, int)":
    """States of groups by their impulses alone: how many act, and how many of them slide."""
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
        for r in range(dim):
            p[r] = lam[r]
        if problem.kind[g] != CONE:
            if problem.low[g] < lam[0] < problem.high[g]:
                state = STICKING
        elif lam[0] > 0.0:
            state = STICKING
            most = problem.mu[g] * lam[0]
            if dim > 1 and tangential(lam, dim) >= (1.0 - 1e-6) * most:
                y[0] = lam[0]
                for r in range(1, dim):
                    y[r] = lam[r] - work.w[first + r] / work.delassus[g]
                length = tangential(y, dim)
                if length > most:
                    state = SLIDING
                    sliding += 1
                    for r in range(1, dim):
                        p[r] = most / length * y[r]
        if state != OPEN:
            acting += 1
        work.state[g] = state
    return acting, sliding


@procedure
def unchanged(work: Work, island: int) -> bool:
    """Whether the states of groups are those of the last matrix."""
    same = True
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        same = same and work.state[g] == work.was[g]
    return same


@procedure
def momentum_along(work: Work, island: int) -> float:
    """Sum of the squared errors of momentum, scaled."""
    total = 0.0
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        total += work.g[i] * work.g[i] * work.inverse[i]
    return total


@procedure
def alternate(problem: Problem, work: Work, island: int, iterations: int, penalty: float) -> None:
    """Iterations of the alternating direction method."""
    y = local("float", 6)
    p = local("float", 6)
    first_group = work.island_groups_first[island]
    last_group = work.island_groups_first[island + 1]
    for k in range(first_group, last_group):
        g = work.island_group[k]
        dim = problem.dim[g]
        A = view(work.A, 6 * problem.row_first[g])
        for i in range(dim * dim):
            A[i] = 0.0
        for r in range(dim):
            A[r * dim + r] = penalty / work.delassus[g]
        work.state[g] = STICKING
    assemble(problem, work, island, 0)
    problem.factored += 1
    if factor(problem, work, island, 0) != 0:
        return
    for _ in range(iterations):
        momentum(problem, work, island, work.v)
        for k in range(first_group, last_group):
            g = work.island_group[k]
            dim = problem.dim[g]
            first = problem.row_first[g]
            rho = penalty / work.delassus[g]
            w = view(work.w, first)
            lam = view(work.lam, first)
            row_velocity(problem, g, work.v, w)
            for r in range(dim):
                w[r] += problem.target[first + r]
                y[r] = lam[r] - rho * w[r]
            if problem.kind[g] == CONE:
                y[0] -= rho * problem.mu[g] * tangential(w, dim)
            project(problem, g, y, p)
            for r in range(dim):
                change = p[r] - lam[r]
                lam[r] = p[r]
                p[r] += change
            give(problem, problem.J, g, p, work.g)
        for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
            i = work.island_dof[n]
            work.dv[i] = -work.g[i]
        solve_factored(problem, work, island, 0, work.dv)
        for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
            i = work.island_dof[n]
            work.v[i] += work.dv[i]


@procedure
def store(problem: Problem, work: Work, island: int, place: int) -> None:
    """Keep velocities and impulses in one of four places."""
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        work.velocities[i, place] = work.v[i]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        for r in range(problem.row_first[g], problem.row_first[g] + problem.dim[g]):
            work.impulses[r, place] = work.lam[r]


@procedure
def restore(problem: Problem, work: Work, island: int, place: int) -> None:
    """Return to what ``store`` kept in a place."""
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        work.v[i] = work.velocities[i, place]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        for r in range(problem.row_first[g], problem.row_first[g] + problem.dim[g]):
            work.lam[r] = work.impulses[r, place]


@procedure
def at_rest(work: Work, island: int, forces: float) -> bool:
    """Whether the velocities of an island are far below what the forces of a step change."""
    most = 0.0
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        most = max(most, work.v[i] * work.v[i] / work.inverse[i])
    return most < 1e-6 * forces * forces


@procedure
def errors(problem: Problem, work: Work, island: int, forces: float) -> "(float, float)":
    """Largest error, and what it is relative to."""
    gradient = evaluate(problem, work, island)
    worst, size = laws(problem, work, island)
    return max(gradient, worst), max(size, forces)


@procedure
def solve_island(problem: Problem, work: Work, island: int) -> int:
    """Solve one island: 0, or 1 when the tolerance is not reached."""
    forces = prepare(problem, work, island)
    steps = rounds = 0
    dofs = work.island_dofs_first[island + 1] - work.island_dofs_first[island]
    large = dofs > LARGE
    single, alone = kinds(problem, work, island)
    coarse = problem.coarse
    if coarse > 0.0 and alone and dofs > FEW:
        coarse = max(coarse, ROUGH)
    stress = 0.5 * STRESS if large else STRESS
    work.stress = stress
    work.soft = SOFT
    error, size = errors(problem, work, island, 0.0)
    forces = max(forces, ROUNDING * size)  # a start from large impulses leaves errors of rounding
    size = max(size, forces)
    most = GROWTH * max(size, error)
    if error > AIM * problem.tolerance * size and problem.most_newton > 0:  # states as they were
        merit, sliding = states(problem, work, island)
        acting, sliding = guess(problem, work, island)
        if acting > 0 and problem.again == 0 and error <= GUESS * size:
            steps += 1
            if newton_step(problem, work, island, min(sliding, 1), 0) == 0:
                moved(problem, work, island, 1.0)
            before = error
            error, size = errors(problem, work, island, forces)
            if not error <= before:
                prepare(problem, work, island)
                error, size = errors(problem, work, island, forces)
        near = FAR if at_rest(work, island, forces) else NEAR
        if error > near * size and responses(problem, work, island):
            count = SINGLE if single else (3 if large else 1) * SWEEPS
            swept(problem, work, island, count, 0.3 * near * size)
            error, size = errors(problem, work, island, forces)
    factored = -1  # kind of the last matrix
    fast = False  # whether the last step was one of quick convergence
    slow = 0  # steps in a row that were not
    short = 0  # steps in a row that had to be cut
    changes = 0  # steps that were cut where a state changes
    since = 0  # steps since the interior-point method
    patience = PATIENCE
    hands = HANDS_LARGE if large else max(HANDS, problem.tolerance)
    level = hands
    stalled = 0
    inside = INSIDE
    if large:
        inside = AFAR if problem.again == 0 else CLOSE_BY
    inner = 0  # its steps that are not counted
    length = AT_FIRST
    anew = True  # whether it starts anew
    best = 1e300  # least relative error at the beginning and end of rounds
    bound = 10.0 * size  # of impulses, lest they grow where there is no solution
    while error > AIM * problem.tolerance * size and steps < problem.most_newton:
        enough = problem.tolerance * size
        if rounds == 0 and (problem.again < 2 or steps > 0):
            enough *= MOVING
        moves = not at_rest(work, island, forces)
        if error <= max(enough, coarse * size) and moves:
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
                if again != 0 or (moves and error <= problem.tolerance * size):
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
        if error <= problem.tolerance * size and (slow >= 2 or stuck != 0):
            break
        late = since >= patience and not fast
        if (stuck == 0 and short <= 3 and not late) or error <= problem.tolerance * size:
            continue
        if error < best * min(size, most):
            best = error / min(size, most)
            store(problem, work, island, BEST)
        if rounds >= problem.most_rounds:
            break
        work.stress = stress
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
                inside = inside * ELSEWHERE if inside > CLOSE_BY else AFAR
                begin(problem, work, island, inside * size)
            elif anew:
                prepare(problem, work, island)
                begin(problem, work, island, size)
            else:
                restore(problem, work, island, INNER)
            arcs = 2 if stalled > 0 or dofs > WIDE else (1 if large else 0)
            long = MOST_LARGE if arcs > 0 else MOST
            more, reached = follow(problem, work, island, forces, level, long, arcs)
            store(problem, work, island, INNER)
            if arcs > 0:
                inner += more
            else:
                steps += more
            anew = reached > level
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
                penalty = ALTERNATING
                if stalled % 9 == 6:
                    penalty *= 0.1
                elif stalled % 9 == 0:
                    penalty *= 10.0
                alternate(problem, work, island, length, penalty)
                rounds += 1
                length = min(length + length // 2, 500)
        factored = -1
        fast = False
        short = slow = since = 0
        error, size = errors(problem, work, island, forces)
        if stalled < TRIES and size > most:
            prepare(problem, work, island)
            store(problem, work, island, INNER)
            stalled = TRIES
            error, size = errors(problem, work, island, forces)
        if error < best * min(size, most):
            best = error / min(size, most)
            store(problem, work, island, BEST)
    if best < 1e300 and not error <= max(problem.tolerance, best) * min(size, most):
        restore(problem, work, island, BEST)
        error, size = errors(problem, work, island, forces)
    problem.rounds = max(problem.rounds, rounds)
    problem.newton += steps + inner
    size = min(size, most)
    finish(problem, work, island, size)
    relative = error / size if size > 0.0 else error
    problem.error = max(problem.error, relative)
    return 0 if relative <= max(problem.tolerance, coarse) else 1


@procedure
def kinds(problem: Problem, work: Work, island: int) -> "(bool, bool)":
    """Whether groups have one row each, and whether all bodies are alone."""
    single = True
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        single = single and problem.dim[work.island_group[k]] == 1
    alone = True
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        alone = alone and problem.alone[work.island_dof[n]] == 1.0
    return single, alone


@procedure
def finish(problem: Problem, work: Work, island: int, size: float) -> None:
    """Write velocities, impulses and residuals of an island."""
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        problem.velocity[i] = work.v[i]
        problem.momentum_error = max(problem.momentum_error, abs(work.g[i]))
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        w = view(work.w, first)
        p = view(work.lam, first)
        for r in range(dim):
            problem.impulse[first + r] = p[r]
        if problem.kind[g] == CONE:
            mu = problem.mu[g]
            bad = -w[0]
            speed = 0.0
            if dim > 1 and mu > 0.0:
                speed = tangential(w, dim)
                force = tangential(p, dim)
                problem.cone_error = max(problem.cone_error, force - mu * p[0])
                # within the cone it sticks, unless it carries nothing to speak of
                spare = mu * p[0] - force
                if spare > 1e-6 * mu * p[0] and spare > problem.tolerance * size:
                    bad = max(bad, speed)
            product = p[0] * (w[0] + mu * speed)
            for r in range(1, dim):
                product += p[r] * w[r]
            problem.complementarity = max(problem.complementarity, abs(product))
            problem.velocity_error = max(problem.velocity_error, bad)
        else:
            bad = abs(w[0])
            if p[0] <= problem.low[g]:
                bad = max(0.0, -w[0])
            if p[0] >= problem.high[g]:
                bad = max(0.0, w[0])
            problem.velocity_error = max(problem.velocity_error, bad)


@procedure
def list_nodes(problem: Problem, work: Work, islands: int) -> None:
    """List the nodes and degrees of freedom of islands in the order of elimination."""
    first = work.island_nodes_first
    for i in range(islands + 1):
        first[i] = 0
    for k in range(work.ordered):
        i = work.tree_island[problem.node_tree[work.order[k]]]
        if i >= 0:
            first[i] += 1
    total = 0
    for i in range(islands):
        total += first[i]
        first[i] = total
    first[islands] = total
    for m in range(work.ordered):
        k = work.ordered - 1 - m
        i = work.tree_island[problem.node_tree[work.order[k]]]
        if i >= 0:
            first[i] -= 1
            work.island_node[first[i]] = k
    dofs = 0
    for i in range(islands):
        work.island_dofs_first[i] = dofs
        for n in range(first[i], first[i + 1]):
            node = work.order[work.island_node[n]]
            for k in range(problem.node_count[node]):
                work.island_dof[dofs] = problem.node_first[node] + k
                dofs += 1
    work.island_dofs_first[islands] = dofs


@procedure
def fits(problem: Problem, work: Work) -> bool:
    """Whether the lists of a problem have room in the workspace."""
    if problem.groups > work.groups_room:
        return False
    if problem.row_first[problem.groups] > work.rows_room:
        return False
    most = 0
    for g in range(problem.groups):
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            size = problem.dim[g] * problem.node_count[problem.entry_node[e]]
            most = max(most, problem.entry_at[e] + size)
    return most <= work.numbers_room


@procedure
def solve(problem: Problem, work: Work) -> int:
    """Solve a problem, see ``Problem``: its status; -1: nothing done, ``enlarge`` the workspace."""
    problem.status = -1
    if not fits(problem, work):
        return -1
    islands = split(problem, work)
    placed = 1
    if work.ordered > 0:
        placed = place_pairs(problem, work)
    if placed == 1:
        placed = analyse(problem, work)
        if placed == 0:
            placed = place_pairs(problem, work)
    if placed != 0:
        return -1
    list_nodes(problem, work, islands)
    problem.islands = islands
    problem.left = 0
    problem.rounds = 0
    problem.newton = 0
    problem.factored = 0
    problem.error = 0.0
    problem.momentum_error = 0.0
    problem.velocity_error = 0.0
    problem.cone_error = 0.0
    problem.complementarity = 0.0
    for n in range(problem.nodes):
        if work.tree_island[problem.node_tree[n]] < 0:
            for i in range(problem.node_first[n], problem.node_first[n] + problem.node_count[n]):
                problem.velocity[i] = problem.free[i]
    failed = 0
    for i in range(islands):
        failed += solve_island(problem, work, i)
    problem.status = failed
    return failed
