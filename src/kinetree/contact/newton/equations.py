"""Equations of an island: momentum, velocities of rows, errors of the laws, and the matrix.

Errors are in units of the square root of energy, so that light and heavy bodies count alike: of
momentum ``|M (v - free) - J' lam| / sqrt(M_ii)``, of the laws ``|lam - P(lam - w / d)| sqrt(d)``
with ``d`` a diagonal of ``J M^-1 J'``. Most groups are contacts of free bodies: blocks of 3 by 6.
"""

from kinetree.codegen.procedures import isfinite, local, procedure, sqrt, view
from kinetree.contact.newton.cholesky import take
from kinetree.contact.newton.cones import law
from kinetree.contact.newton.problem import Problem, Work, give, row_velocity, times_six

__all__ = ["add_group", "evaluate", "laws", "momentum", "put_mass"]


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
        for r in range(problem.dim[g]):
            w[r] += problem.target[first + r]
        give(problem, problem.J, g, view(work.lam, first), work.g)
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
def put_mass(problem: Problem, work: Work, island: int, both: int) -> None:
    """Put the mass matrix of an island into the panels of ``H``, and of ``L`` if ``both``."""
    H = work.H
    L = work.L
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


@procedure
def add_group(problem: Problem, work: Work, g: int, A: "float[:]", both: int) -> None:
    """``H += J' A J`` of a group, and its transpose to ``L`` if ``both``."""
    dim = problem.dim[g]
    begin = problem.entry_first[g]
    end = problem.entry_first[g + 1]
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
            if both != 0:
                take(view(work.L, at), width, view(work.AJ, problem.entry_at[i]), rows,
                     view(problem.J, problem.entry_at[j]), wide, dim, rows, wide)  # fmt: skip
