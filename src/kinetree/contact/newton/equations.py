"""Equations of an island: momentum, velocities of rows, errors of the laws, and the matrix.

Errors are in units of the square root of energy, so that light and heavy bodies count alike: of
momentum ``|M (v - free) - J' lam| / sqrt(M_ii)``, of the laws ``|lam - P(lam - w / d)| sqrt(d)``
with ``d`` a diagonal of ``J M^-1 J'``. Most groups are contacts of free bodies: blocks of 3 by 6.
"""

from kinetree.codegen.procedures import dot, isfinite, local, procedure, sqrt, view
from kinetree.contact.newton.cholesky import take
from kinetree.contact.newton.cones import SLIDING, STICKING, law, off_law, touches
from kinetree.contact.newton.pattern import same_nodes
from kinetree.contact.newton.problem import Problem, Work, give, row_velocity, times_six

__all__ = ["CHECKED", "assemble", "evaluate", "gradient_size", "laws", "momentum", "moved"]


CHECKED = 10.0
"""Errors up to this multiple of the tolerance are evaluated anew, without accumulated rounding."""

WRONG = 1e300
"""Error of numbers that are not finite, which no comparison would find."""


@procedure
def momentum(problem: Problem, work: Work, island: int, v: "float[:]") -> None:
    """``g = M (v - free)``."""
    g = work.g
    e = work.temp
    first = work.island_nodes_first[island]
    last = work.island_nodes_first[island + 1]
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
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
                if cb == 6:
                    own[i] += times_six(view(block, 6 * i, 6), view(y, 0, 6))
                    continue
                if cb == 3:
                    s = block[3 * i] * y[0]
                    s += block[3 * i + 1] * y[1]
                    s += block[3 * i + 2] * y[2]
                    own[i] += s
                    continue
                s = 0.0
                for j in range(cb):
                    s += block[i * cb + j] * y[j]
                own[i] += s
            if b != a:
                for i in range(ca):
                    for j in range(cb):
                        other[j] += block[i * cb + j] * x[i]


@procedure
def gradient_size(problem: Problem, work: Work, island: int) -> float:
    """Largest scaled number of the gradient; ``WRONG`` if one is not finite."""
    most = total = 0.0
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        most = max(most, abs(work.g[i]) * work.metric[i])
        total += work.g[i]
    return most if isfinite(total) else WRONG


@procedure
def evaluate(problem: Problem, work: Work, island: int) -> float:
    """Velocities of rows, and the error of momentum: its largest scaled number."""
    momentum(problem, work, island, work.v)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        w = view(work.w, first)
        row_velocity(problem, g, work.v, w)
        w[: problem.dim[g]] += problem.target[first : first + problem.dim[g]]
        give(problem, problem.J, g, view(work.lam, first), work.g)
    return gradient_size(problem, work, island)


@procedure
def moved(problem: Problem, work: Work, island: int, t: float) -> float:
    """Take a part of a step, and have what ``evaluate`` finds: all of it is linear.

    Rounding apart, which adds up: see ``CHECKED``.
    """
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        work.v[i] += t * work.dv[i]
        work.g[i] *= 1.0 - t
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        for r in range(first, first + problem.dim[g]):
            work.lam[r] += t * work.dlam[r]
            work.w[r] += t * work.dw[r]
    return gradient_size(problem, work, island)


@procedure
def laws(problem: Problem, work: Work, island: int) -> "(float, float)":
    """Largest scaled error of the laws at ``lam`` and ``w``, and the largest scaled impulse."""
    most = size = total = 0.0
    y = local("float", 6)
    p = local("float", 6)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        d = work.delassus[g]
        if touches(problem, g):
            lam = view(work.lam, first, 3)
            off = off_law(problem.mu[g], lam, lam - view(work.w, first, 3) / d)
            own = dot(lam, lam)
            most = max(most, d * off)
            size = max(size, d * own)
            total += off + own
            continue
        length = 0.0
        for r in range(dim):
            x = work.lam[first + r]
            y[r] = x - work.w[first + r] / d
            length += x * x
        law(problem, g, y, p)
        error = 0.0
        for r in range(dim):
            x = work.lam[first + r] - p[r]
            error += x * x
        most = max(most, d * error)
        size = max(size, d * length)
        total += error + length
    return (sqrt(most) if isfinite(total) else WRONG), sqrt(size)


@procedure
def put_mass(problem: Problem, work: Work, island: int) -> None:
    """Put the mass matrix of an island into the panels of ``H``."""
    H = work.H
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        size = work.panel_width[k] * problem.node_count[work.order[k]]
        H[work.panel_at[k] : work.panel_at[k] + size] = 0.0
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
            else:
                width = work.panel_width[work.position[b]]
                for i in range(ca):
                    for j in range(cb):
                        H[at + j * width + i] = block[i * cb + j]


@procedure
def assemble(problem: Problem, work: Work, island: int, both: int) -> None:
    """``H = M + J' A J`` of an island with the ``A`` of its groups, and ``L = H'`` if ``both``.

    ``A`` of groups that slide may be unsymmetric; that of open ones is zero.
    """
    put_mass(problem, work, island)
    if both == 0:
        add_groups(problem, work, island, True, True)
        return
    add_groups(problem, work, island, True, False)
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        size = work.panel_width[k] * problem.node_count[work.order[k]]
        for i in range(work.panel_at[k], work.panel_at[k] + size):
            work.L[i] = work.H[i]
    add_groups(problem, work, island, False, True)
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        width = work.panel_width[k]
        count = problem.node_count[work.order[k]]
        U = view(work.H, work.panel_at[k])
        L = view(work.L, work.panel_at[k])
        for i in range(count):
            for j in range(i, count):
                L[i * width + j] = U[j * width + i]


@procedure
def add_groups(problem: Problem, work: Work, island: int, sticking: bool, sliding: bool) -> None:
    """Add groups that stick or slide; those that slide alone are added to ``L`` as well.

    Contacts of the same two free bodies, the corners of a box, are added at once.
    """
    J, AJ = local("float", 2, 288)  # two bodies, 24 rows each
    k = work.island_groups_first[island]
    last = work.island_groups_first[island + 1]
    while k < last:
        g = work.island_group[k]
        if not of_free_bodies(problem, g):
            state = work.state[g]
            n = 1
            if state == STICKING and sticking and problem.dim[g] == 1:
                n = add_rows(problem, work, g, last - k)
            elif (state == STICKING and sticking) or (state == SLIDING and sliding):
                add_group(problem, work, g, not sticking)
            k += n
            continue
        begin = problem.entry_first[g]
        count = problem.entry_first[g + 1] - begin
        pair = work.pair_first[g]
        depth = 0
        n = 0
        while k < last and depth < 24:
            g = work.island_group[k]
            if n > 0 and not (same_nodes(problem, g) and problem.dim[g] == 3):
                break
            n += 1
            k += 1
            state = work.state[g]
            if not ((state == STICKING and sticking) or (state == SLIDING and sliding)):
                continue
            A = view(work.A, 6 * problem.row_first[g], 3, 3)
            for e in range(count):
                own = view(problem.J, problem.entry_at[problem.entry_first[g] + e], 3, 6)
                rows = view(J, 144 * e + 6 * depth, 3, 6)
                changed = view(AJ, 144 * e + 6 * depth, 3, 6)
                for r in range(3):
                    rows[r] = own[r]
                    changed[r] = -A[r, 0] * own[0] - A[r, 1] * own[1] - A[r, 2] * own[2]
            depth += 3
        if depth == 0:
            continue
        for e in range(count):
            for f in range(e, count):
                i = e
                j = f
                a = work.position[problem.entry_node[begin + e]]
                b = work.position[problem.entry_node[begin + f]]
                if b < a:
                    i = f
                    j = e
                width = work.panel_width[min(a, b)]
                at = work.pair_at[pair]
                pair += 1
                take(
                    view(work.H, at), width, view(J, 144 * i), 6, view(AJ, 144 * j), 6, depth, 6, 6
                )
                if e != f and not sticking:
                    take(view(work.L, at), width, view(AJ, 144 * i), 6, view(J, 144 * j), 6, depth,
                         6, 6)  # fmt: skip


@procedure
def of_free_bodies(problem: Problem, g: int) -> bool:
    """Whether a group is a contact with three rows of one or two free bodies."""
    begin = problem.entry_first[g]
    end = problem.entry_first[g + 1]
    free = problem.dim[g] == 3 and end - begin <= 2
    for e in range(begin, end):
        free = free and problem.node_count[problem.entry_node[e]] == 6
    return free


@procedure
def add_rows(problem: Problem, work: Work, g: int, most: int) -> int:
    """``H += J' A J`` of a group with one row, and of those like it that follow: how many.

    Rows of a loop have the same nodes, and lie at the same distance from one another.
    """
    begin = problem.entry_first[g]
    end = problem.entry_first[g + 1]
    stride = problem.entry_at[end] - problem.entry_at[begin] if most > 1 else 0
    n = 0
    while n < most and (n == 0 or (problem.dim[g + n] == 1 and same_nodes(problem, g + n))):
        at = problem.entry_at[problem.entry_first[g + n]]
        if at != problem.entry_at[begin] + n * stride or work.state[g + n] != STICKING:
            break
        A = work.A[6 * problem.row_first[g + n]]
        for e in range(problem.entry_first[g + n], problem.entry_first[g + n + 1]):
            at = problem.entry_at[e]
            for c in range(problem.node_count[problem.entry_node[e]]):
                work.AJ[at + c] = -A * problem.J[at + c]
        n += 1
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
            take(view(work.H, work.pair_at[pair]), width, view(problem.J, problem.entry_at[i]),
                 stride, view(work.AJ, problem.entry_at[j]), stride, n, rows, wide)  # fmt: skip
            pair += 1
    return n


@procedure
def add_group(problem: Problem, work: Work, g: int, both: bool) -> None:
    """``H += J' A J`` of a group, and its transpose to ``L``, off the diagonal, if ``both``."""
    dim = problem.dim[g]
    begin = problem.entry_first[g]
    end = problem.entry_first[g + 1]
    A = view(work.A, 6 * problem.row_first[g])
    for e in range(begin, end):
        count = problem.node_count[problem.entry_node[e]]
        J = view(problem.J, problem.entry_at[e])
        AJ = view(work.AJ, problem.entry_at[e])
        if dim == 3:
            for c in range(count):
                x = -J[c]
                y = -J[count + c]
                z = -J[2 * count + c]
                AJ[c] = A[0] * x + A[1] * y + A[2] * z
                AJ[count + c] = A[3] * x + A[4] * y + A[5] * z
                AJ[2 * count + c] = A[6] * x + A[7] * y + A[8] * z
        else:
            for r in range(dim):
                for c in range(count):
                    s = 0.0
                    for m in range(dim):
                        s -= A[r * dim + m] * J[m * count + c]
                    AJ[r * count + c] = s
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
            take(view(work.H, at), width, view(problem.J, problem.entry_at[i]), rows,
                 view(work.AJ, problem.entry_at[j]), wide, dim, rows, wide)  # fmt: skip
            if both and e != f:
                take(view(work.L, at), width, view(work.AJ, problem.entry_at[i]), rows,
                     view(problem.J, problem.entry_at[j]), wide, dim, rows, wide)  # fmt: skip
