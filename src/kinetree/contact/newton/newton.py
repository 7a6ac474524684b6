"""Newton's method in the velocities for contacts with friction, island by island.

The velocities minimise the augmented Lagrangian

    (v - free)' M (v - free) / 2 + sum of |P(lam - rho (J v + target + s))|^2 / (2 rho)

over groups, with the projection ``P`` onto cones and bounds; its Hessian ``M + J' A J`` has the
sparsity of trees and contacts. Rounds take the projected impulses as the new ``lam``, and De
Saxcé's correction ``s = mu |w_t|`` of sliding contacts from the new velocities, which makes the
solution of the convex problem one of Coulomb's. Where contacts slide, the correction is part of
Newton's method, whose matrix is then not symmetric, as long as that succeeds.

Errors are in units of the square root of energy, so that light and heavy bodies count alike: of
momentum ``|M (v - free) - J' lam| / sqrt(M_ii)``, of the laws ``|lam - P(lam - (w + s) / d)| sqrt(d)``
with ``d`` a diagonal of ``J M^-1 J'``. They are relative to the largest ``|lam| sqrt(d)`` of the
island, or to ``sqrt(M_ii)`` times the change of velocity by the forces of the step.
"""

from kinetree.codegen.procedures import isfinite, local, procedure, sqrt, view
from kinetree.contact.newton.cholesky import factor, solve_factored, take
from kinetree.contact.newton.cones import OPEN, SLIDING, curvature, project, tangential
from kinetree.contact.newton.islands import split
from kinetree.contact.newton.pattern import analyse, place_pairs
from kinetree.contact.newton.problem import CONE, Problem, Work

__all__ = ["solve"]

AIM = 1e-3
"""Part of the tolerance that is aimed at while errors fall fast: what rests then does not creep."""

PENALTY = 1e3
"""``rho`` in units of 1 / d at first."""

STIFFEST = 1e7


@procedure
def prepare(problem: Problem, work: Work, island: int) -> float:
    """Scales, penalties and start of an island; the size of the change by the forces of the step."""
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
            size = max(size, sqrt(m) * abs(problem.free[i] - problem.velocity[i]))
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
        if not most > 0.0:
            most = 1.0
        work.delassus[g] = most
        work.rho[g] = PENALTY / most
        work.live[g] = 0
        work.shift[g] = 0.0
        first = problem.row_first[g]
        for r in range(first, first + dim):
            work.base[r] = problem.impulse[r]
    return size


@procedure
def row_velocity(problem: Problem, g: int, v: "float[:]", w: "float[:]") -> None:
    """``w = J v`` of a group."""
    dim = problem.dim[g]
    if dim == 3:
        w0 = 0.0
        w1 = 0.0
        w2 = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            node = problem.entry_node[e]
            count = problem.node_count[node]
            J = view(problem.J, problem.entry_at[e])
            x = view(v, problem.node_first[node])
            for c in range(count):
                w0 += J[c] * x[c]
                w1 += J[count + c] * x[c]
                w2 += J[2 * count + c] * x[c]
        w[0] = w0
        w[1] = w1
        w[2] = w2
    else:
        for r in range(dim):
            w[r] = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            node = problem.entry_node[e]
            count = problem.node_count[node]
            x = view(v, problem.node_first[node])
            for r in range(dim):
                J = view(problem.J, problem.entry_at[e] + r * count)
                s = 0.0
                for c in range(count):
                    s += J[c] * x[c]
                w[r] += s


@procedure
def give(problem: Problem, g: int, p: "float[:]", out: "float[:]") -> None:
    """``out -= J' p`` of a group."""
    dim = problem.dim[g]
    for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
        node = problem.entry_node[e]
        count = problem.node_count[node]
        J = view(problem.J, problem.entry_at[e])
        x = view(out, problem.node_first[node])
        if dim == 3:
            for c in range(count):
                x[c] -= J[c] * p[0] + J[count + c] * p[1] + J[2 * count + c] * p[2]
        else:
            for r in range(dim):
                for c in range(count):
                    x[c] -= J[r * count + c] * p[r]


@procedure
def momentum(problem: Problem, work: Work, island: int, v: "float[:]") -> None:
    """``g = M (v - free)``."""
    g = work.g
    e = work.temp
    first = work.island_nodes_first[island]
    last = work.island_nodes_first[island + 1]
    for n in range(first, last):
        node = work.order[work.island_node[n]]
        for i in range(
            problem.node_first[node], problem.node_first[node] + problem.node_count[node]
        ):
            e[i] = v[i] - problem.free[i]
            g[i] = 0.0
    for n in range(first, last):
        a = work.order[work.island_node[n]]
        ca = problem.node_count[a]
        fa = problem.node_first[a]
        own = view(g, fa)
        x = view(e, fa)
        for k in range(problem.node_blocks_first[a], problem.node_blocks_first[a + 1]):
            b = problem.block_ancestor[k]
            cb = problem.node_count[b]
            fb = problem.node_first[b]
            block = view(problem.M, problem.block_at[k])
            y = view(e, fb)
            other = view(g, fb)
            for i in range(ca):
                s = 0.0
                for j in range(cb):
                    s += block[i * cb + j] * y[j]
                own[i] += s
            if b != a:
                for i in range(ca):
                    for j in range(cb):
                        other[j] += block[i * cb + j] * x[i]


@procedure
def evaluate(problem: Problem, work: Work, island: int, v: "float[:]") -> float:
    """Impulses ``p`` of velocities, the gradient, and its largest scaled number."""
    momentum(problem, work, island, v)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        dim = problem.dim[g]
        rho = work.rho[g]
        w = view(work.w, first)
        y = view(work.y, first)
        p = view(work.p, first)
        row_velocity(problem, g, v, w)
        for r in range(dim):
            w[r] += problem.target[first + r]
            y[r] = work.base[first + r] - rho * w[r]
        shift = work.shift[g]
        if work.live[g] != 0:
            shift = problem.mu[g] * tangential(w, dim)
        y[0] -= rho * shift
        state = project(problem, g, y, p)
        work.state[g] = state
        if state != OPEN or problem.kind[g] != CONE:
            give(problem, g, p, work.g)
    return gradient_size(problem, work, island)


@procedure
def gradient_size(problem: Problem, work: Work, island: int) -> float:
    """Largest scaled number of the gradient."""
    most = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        for i in range(
            problem.node_first[node], problem.node_first[node] + problem.node_count[node]
        ):
            most = max(most, abs(work.g[i]) * work.metric[i])
    return most


@procedure
def laws_error(problem: Problem, work: Work, island: int) -> "(float, float)":
    """Largest scaled error of the laws at ``p`` and ``w``, and the largest scaled impulse."""
    most = 0.0
    size = 0.0
    y = local("float", 6)
    q = local("float", 6)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        d = work.delassus[g]
        w = view(work.w, first)
        p = view(work.p, first)
        friction = problem.kind[g] == CONE and dim > 1 and problem.mu[g] > 0.0
        length = 0.0
        for r in range(dim):
            y[r] = p[r] - w[r] / d
            length += p[r] * p[r]
        if friction:
            y[0] -= problem.mu[g] * tangential(w, dim) / d
        project(problem, g, y, q)
        error = 0.0
        for r in range(dim):
            error += (p[r] - q[r]) * (p[r] - q[r])
        most = max(most, d * error)
        size = max(size, d * length)
    return sqrt(most), sqrt(size)


@procedure
def assemble(problem: Problem, work: Work, island: int, both: int) -> None:
    """``M + J' A J`` of an island in the panels of ``H``, and its transpose in ``L`` if ``both``."""
    H = work.H
    L = work.L
    A = local("float", 36)
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        size = work.panel_width[k] * problem.node_count[work.order[k]]
        for i in range(work.panel_at[k], work.panel_at[k] + size):
            H[i] = 0.0
        if both != 0:
            for i in range(work.panel_at[k], work.panel_at[k] + size):
                L[i] = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        ca = problem.node_count[a]
        for k in range(problem.node_blocks_first[a], problem.node_blocks_first[a + 1]):
            b = problem.block_ancestor[k]
            cb = problem.node_count[b]
            at = work.block_place[k]
            block = view(problem.M, problem.block_at[k])
            if work.position[a] <= work.position[b]:
                width = work.panel_width[work.position[a]]
                for i in range(ca):
                    for j in range(cb):
                        H[at + i * width + j] = block[i * cb + j]
                        if both != 0:
                            L[at + i * width + j] = block[i * cb + j]
            else:
                width = work.panel_width[work.position[b]]
                for i in range(ca):
                    for j in range(cb):
                        H[at + j * width + i] = block[i * cb + j]
                        if both != 0:
                            L[at + j * width + i] = block[i * cb + j]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        if work.state[g] == OPEN:
            continue
        dim = problem.dim[g]
        first = problem.row_first[g]
        rho = work.rho[g]
        curvature(dim, problem.mu[g], work.state[g], view(work.y, first), view(work.w, first),
                  work.live[g], A)  # fmt: skip
        begin = problem.entry_first[g]
        end = problem.entry_first[g + 1]
        for e in range(begin, end):
            count = problem.node_count[problem.entry_node[e]]
            J = view(problem.J, problem.entry_at[e])
            AJ = view(work.AJ, problem.entry_at[e])
            if dim == 3:
                for c in range(count):
                    x = -rho * J[c]
                    y = -rho * J[count + c]
                    z = -rho * J[2 * count + c]
                    AJ[c] = A[0] * x + A[1] * y + A[2] * z
                    AJ[count + c] = A[3] * x + A[4] * y + A[5] * z
                    AJ[2 * count + c] = A[6] * x + A[7] * y + A[8] * z
            else:
                for r in range(dim):
                    for c in range(count):
                        s = 0.0
                        for m in range(dim):
                            s -= A[r * dim + m] * J[m * count + c]
                        AJ[r * count + c] = rho * s
        pair = work.pair_first[g]
        for e in range(begin, end):
            for f in range(e, end):
                i = e
                j = f
                if work.position[problem.entry_node[f]] < work.position[problem.entry_node[e]]:
                    i = f
                    j = e
                rows = problem.node_count[problem.entry_node[i]]
                wide = problem.node_count[problem.entry_node[j]]
                width = work.panel_width[work.position[problem.entry_node[i]]]
                at = work.pair_at[pair]
                pair += 1
                take(view(H, at), width, view(problem.J, problem.entry_at[i]), rows,
                     view(work.AJ, problem.entry_at[j]), wide, dim, rows, wide)  # fmt: skip
                if both != 0:
                    take(view(L, at), width, view(work.AJ, problem.entry_at[i]), rows,
                         view(problem.J, problem.entry_at[j]), wide, dim, rows, wide)  # fmt: skip


@procedure
def direction(problem: Problem, work: Work, island: int, both: int) -> float:
    """Newton's step ``dv``, and the slope along it; 1 when the matrix could not be factored."""
    assemble(problem, work, island, both)
    problem.factored += 1
    if factor(problem, work, island, both) != 0:
        return 1.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        for i in range(
            problem.node_first[node], problem.node_first[node] + problem.node_count[node]
        ):
            work.dv[i] = -work.g[i]
    solve_factored(problem, work, island, both, work.dv)
    return slope(problem, work, island)


@procedure
def slope(problem: Problem, work: Work, island: int) -> float:
    """Gradient along the step."""
    s = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        for i in range(
            problem.node_first[node], problem.node_first[node] + problem.node_count[node]
        ):
            s += work.g[i] * work.dv[i]
    return s


@procedure
def move(problem: Problem, work: Work, island: int, t: float) -> None:
    """Velocities after a part of the step, in ``trial``."""
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        for i in range(
            problem.node_first[node], problem.node_first[node] + problem.node_count[node]
        ):
            work.trial[i] = work.v[i] + t * work.dv[i]


@procedure
def accept(problem: Problem, work: Work, island: int) -> None:
    """Take the trial velocities."""
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        for i in range(
            problem.node_first[node], problem.node_first[node] + problem.node_count[node]
        ):
            work.v[i] = work.trial[i]


@procedure
def cone_slope(problem: Problem, work: Work, island: int, t: float) -> float:
    """Part of the slope that the groups have; ``w`` is that of the whole step, ``dw`` its change."""
    total = 0.0
    y = local("float", 6)
    p = local("float", 6)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        rho = work.rho[g]
        for r in range(problem.dim[g]):
            w = work.w[first + r] - (1.0 - t) * work.dw[first + r]
            y[r] = work.base[first + r] - rho * w
        y[0] -= rho * work.shift[g]
        project(problem, g, y, p)
        for r in range(problem.dim[g]):
            total -= p[r] * work.dw[first + r]
    return total


@procedure
def best_step(problem: Problem, work: Work, island: int, start: float, end: float) -> float:
    """Part of the step where the slope along it is about zero; it is ``start`` < 0 and ``end`` > 0."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        row_velocity(problem, g, work.dv, view(work.dw, problem.row_first[g]))
    smooth = start - cone_slope(problem, work, island, 0.0)
    more = end - cone_slope(problem, work, island, 1.0) - smooth
    low = 0.0
    high = 1.0
    at_low = start
    at_high = end
    t = 1.0
    for k in range(20):
        t = (low * at_high - high * at_low) / (at_high - at_low)
        if k % 3 == 2:
            t = 0.5 * (low + high)
        s = smooth + t * more + cone_slope(problem, work, island, t)
        if abs(s) < 0.1 * abs(start):
            break
        if s < 0.0:
            low = t
            at_low = s
        else:
            high = t
            at_high = s
    return t


@procedure
def freeze(problem: Problem, work: Work, island: int, live: int) -> int:
    """De Saxcé's corrections of the velocities ``w``; how many sliding groups have a live one."""
    count = 0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        work.live[g] = 0
        work.shift[g] = 0.0
        if problem.kind[g] == CONE and problem.dim[g] > 1 and problem.mu[g] > 0.0:
            speed = tangential(view(work.w, problem.row_first[g]), problem.dim[g])
            work.shift[g] = problem.mu[g] * speed
            if live != 0 and work.state[g] == SLIDING and speed > 0.0:
                work.live[g] = 1
                count += 1
    return count


@procedure
def next_round(problem: Problem, work: Work, island: int, stiffer: float) -> None:
    """Take the projected impulses, and change the penalties."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        work.rho[g] = min(work.rho[g] * stiffer, STIFFEST / work.delassus[g])
        first = problem.row_first[g]
        for r in range(first, first + problem.dim[g]):
            work.base[r] = work.p[r]


@procedure
def solve_island(problem: Problem, work: Work, island: int) -> int:
    """Solve one island: 0, or 1 when the tolerance is not reached."""
    forces = prepare(problem, work, island)
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        for i in range(
            problem.node_first[node], problem.node_first[node] + problem.node_count[node]
        ):
            work.v[i] = problem.velocity[i]
            work.dv[i] = 0.0
    steps = 0
    rounds = 0
    live = 0
    patience = 0
    gradient = evaluate(problem, work, island, work.v)
    laws, size = laws_error(problem, work, island)
    size = max(size, forces)
    freeze(problem, work, island, 0)
    error = max(gradient, laws)
    before = 1e300
    while error > AIM * problem.tolerance * size and rounds < problem.most_rounds:
        if rounds > 0:
            if error <= problem.tolerance * size and error > 0.1 * before:
                break
            stiffer = 1.0
            if error > 0.05 * before:
                stiffer = 10.0
            before = error
            next_round(problem, work, island, stiffer)
            live = 0
            if patience <= 0:
                live = freeze(problem, work, island, 1)
            else:
                freeze(problem, work, island, 0)
                patience -= 1
            gradient = evaluate(problem, work, island, work.v)
        rounds += 1
        inner = max(0.3 * AIM * problem.tolerance * size, 0.05 * laws)
        while gradient > inner and steps < problem.most_newton:
            steps += 1
            both = 0
            if live > 0:
                both = 1
            start = direction(problem, work, island, both)
            if live > 0:
                was = gradient
                t = 1.0
                fine = False
                if start != 1.0:
                    for k in range(3):
                        move(problem, work, island, t)
                        gradient = evaluate(problem, work, island, work.trial)
                        if gradient < (1.0 - 0.3 * t) * was:
                            fine = True
                            break
                        t *= 0.5
                if fine:
                    accept(problem, work, island)
                else:  # corrections as they were at the start of the round
                    for k in range(
                        work.island_groups_first[island], work.island_groups_first[island + 1]
                    ):
                        work.live[work.island_group[k]] = 0
                    live = 0
                    patience = 2
                    gradient = evaluate(problem, work, island, work.v)
            else:
                if start == 1.0 or not isfinite(start):
                    break
                move(problem, work, island, 1.0)
                gradient = evaluate(problem, work, island, work.trial)
                end = slope(problem, work, island)
                if end > 0.5 * abs(start):
                    t = best_step(problem, work, island, start, end)
                    move(problem, work, island, t)
                    gradient = evaluate(problem, work, island, work.trial)
                accept(problem, work, island)
        laws, size = laws_error(problem, work, island)
        size = max(size, forces)
        error = max(gradient, laws)
        if steps >= problem.most_newton:
            break
    return finish(problem, work, island, error, size, steps, rounds)


@procedure
def finish(
    problem: Problem, work: Work, island: int, error: float, size: float, steps: int, rounds: int
) -> int:
    """Write velocities, impulses and residuals of an island: 0, or 1 when it is not solved."""
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        node = work.order[work.island_node[n]]
        for i in range(
            problem.node_first[node], problem.node_first[node] + problem.node_count[node]
        ):
            problem.velocity[i] = work.v[i]
            problem.momentum_error = max(problem.momentum_error, abs(work.g[i]))
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        w = view(work.w, first)
        p = view(work.p, first)
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
                if force < (1.0 - 1e-6) * mu * p[0]:
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
    problem.rounds = max(problem.rounds, rounds)
    problem.newton += steps
    relative = error
    if size > 0.0:
        relative = error / size
    work.island_error[island] = relative
    problem.error = max(problem.error, relative)
    status = 0
    if not relative <= problem.tolerance:
        status = 1
    work.island_status[island] = status
    return status


@procedure
def list_nodes(problem: Problem, work: Work, islands: int) -> None:
    """List the nodes of islands in the order of elimination."""
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


@procedure
def solve(problem: Problem, work: Work) -> int:
    """Solve a problem, see ``Problem``: its status; -1: nothing done, ``enlarge`` the workspace."""
    islands = split(problem, work)
    placed = 1
    if work.ordered > 0:
        placed = place_pairs(problem, work)
    if placed == 1:
        placed = analyse(problem, work)
        if placed == 0:
            placed = place_pairs(problem, work)
    problem.status = -1
    if placed != 0:
        return -1
    list_nodes(problem, work, islands)
    problem.islands = islands
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
