"""Projected Gauss–Seidel: group by group, each with the velocities that the others leave.

It finds out soon which contacts act and slide, which is what Newton's method needs to start from,
and converges slowly afterwards. Only for islands of trees with one node each, as free bodies are:
there the inverse of the mass matrix is known by its blocks.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, view
from kinetree.contact.newton.cholesky import eliminated
from kinetree.contact.newton.problem import BOUNDS, Problem, Work

__all__ = ["responses", "sweep"]


@procedure
def inverted(M: "float[:]", n: int, out: "float[:]") -> None:
    """Inverse of a positive definite matrix, (n, n)."""
    U = local("float", 256)
    for k in range(n * n):
        U[k] = M[k]
    eliminated(U, n, n)
    for c in range(n):
        for r in range(n):
            s = 1.0 if r == c else 0.0
            for k in range(r):
                s -= U[k * n + r] * out[k * n + c]
            out[r * n + c] = s / U[r * n + r]
        for m in range(n):
            r = n - 1 - m
            s = out[r * n + c]
            for k in range(r + 1, n):
                s -= U[r * n + k] * out[k * n + c]
            out[r * n + c] = s / U[r * n + r]


@procedure
def responses(problem: Problem, work: Work, island: int) -> bool:
    """Velocities that unit impulses give, in ``AJ``, and blocks of ``J M^-1 J'`` in ``A``.

    False where trees have several nodes. The velocities ``v`` become those of the impulses.
    """
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        a = work.order[k]
        if problem.node_parent[a] >= 0:
            return False
        block = problem.block_at[problem.node_blocks_first[a]]
        inverted(view(problem.M, block), problem.node_count[a], view(work.L, work.panel_at[k]))
        for i in range(problem.node_first[a], problem.node_first[a] + problem.node_count[a]):
            work.v[i] = problem.free[i]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        D = view(work.A, 6 * first)
        for r in range(dim * dim):
            D[r] = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            a = problem.entry_node[e]
            n = problem.node_count[a]
            J = view(problem.J, problem.entry_at[e])
            T = view(work.AJ, problem.entry_at[e])
            B = view(work.L, work.panel_at[work.position[a]])
            v = view(work.v, problem.node_first[a])
            for r in range(dim):
                for c in range(n):
                    s = 0.0
                    for m in range(n):
                        s += J[r * n + m] * B[m * n + c]
                    T[r * n + c] = s
                    v[c] += s * work.lam[first + r]
                for q in range(dim):
                    s = 0.0
                    for c in range(n):
                        s += T[r * n + c] * J[q * n + c]
                    D[r * dim + q] += s
    return True


@procedure
def sweep(problem: Problem, work: Work, island: int) -> None:
    """One pass over all groups: first the normal part, then the others within what it allows."""
    w = local("float", 6)
    change = local("float", 6)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        D = view(work.A, 6 * first)
        for r in range(dim):
            s = problem.target[first + r]
            for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
                a = problem.entry_node[e]
                n = problem.node_count[a]
                J = view(problem.J, problem.entry_at[e] + r * n)
                v = view(work.v, problem.node_first[a])
                for c in range(n):
                    s += J[c] * v[c]
            w[r] = s
            change[r] = 0.0
        if not D[0] > 0.0:
            continue
        new = lam[0] - w[0] / D[0]
        if problem.kind[g] == BOUNDS:
            new = min(max(new, problem.low[g]), problem.high[g])
        else:
            new = max(new, 0.0)
        change[0] = new - lam[0]
        lam[0] = new
        if dim > 1:
            d = 0.0
            for r in range(1, dim):
                d = max(d, D[r * dim + r])
            if d <= 0.0:  # nothing moves sideways
                d = D[0]
            length = 0.0
            for r in range(1, dim):
                w[r] = lam[r] - (w[r] + D[r * dim] * change[0]) / d
                length += w[r] * w[r]
            length = sqrt(length)
            most = problem.mu[g] * new
            part = 1.0
            if length > most:
                part = most / length
            for r in range(1, dim):
                change[r] = part * w[r] - lam[r]
                lam[r] = part * w[r]
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            a = problem.entry_node[e]
            n = problem.node_count[a]
            T = view(work.AJ, problem.entry_at[e])
            v = view(work.v, problem.node_first[a])
            for r in range(dim):
                for c in range(n):
                    v[c] += T[r * n + c] * change[r]
