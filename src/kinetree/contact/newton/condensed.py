"""Matrices of islands with loops, condensed to the few rows that change between Newton's steps.

Rows without bounds act in every state, with the same penalty. So ``B = M + J' A J`` of these rows
alone is the same in all steps of a problem, and is factored once. What contacts, limits and dry
friction add is of low rank, ``H = B + C' A C`` with their rows ``C``, and

    H⁻¹ = B⁻¹ - R (1 + A C R)⁻¹ A C B⁻¹,    R = B⁻¹ C'    (Woodbury).

A net of many loops that touches with few contacts takes a small dense matrix for each step.
"""

from kinetree.codegen.procedures import procedure, view
from kinetree.contact.newton.cholesky import backward, factor, forward, solve_factored
from kinetree.contact.newton.cones import OPEN
from kinetree.contact.newton.matrix import is_loop, put_frame
from kinetree.contact.newton.problem import (
    MOST_CONDENSED,
    Problem,
    Work,
    row_velocity,
)

__all__ = ["LEAST", "condense", "forget", "solve_matrix"]

LEAST = 48
"""Velocities of an island from which on its matrix is condensed; others are factored as quickly."""


@procedure
def forget(problem: Problem, work: Work) -> None:
    """Discard the cached factors and responses that changes of the problem made invalid."""
    if problem.changed > 1:
        work.based[: problem.nodes] = 0
        work.framed[: problem.nodes] = 0
    if problem.changed > 0:
        work.response_at[: problem.groups] = 0
        work.responded = 0
    problem.changed = 0


@procedure
def make_base(problem: Problem, work: Work, island: int) -> bool:
    """Factor an island's mass matrix with its loop rows, unless cached; False if it fails."""
    first = work.island_nodes_first[island]
    last = work.island_nodes_first[island + 1]
    known = True
    for n in range(first, last):
        known = known and work.based[work.island_node[n]] == 1
    if known:
        return True
    put_frame(problem, work, island)
    problem.factored += 1
    if factor(problem, work, island, 0) != 0:
        return False
    for n in range(first, last):
        m = work.island_node[n]
        work.based[m] = 1
        at = work.panel_at[m]
        for i in range(at, at + work.panel_width[m] * problem.node_count[work.order[m]]):
            work.base[i] = work.H[i]
            work.base_lower[i] = work.L[i]
    return True


@procedure
def respond(problem: Problem, work: Work, island: int, g: int) -> None:
    """Compute a group's velocity responses to unit impulses, and compliances with known ones."""
    dim = problem.dim[g]
    first = work.responded
    work.response_at[g] = first + 1
    work.responded = first + dim
    for r in range(dim):
        work.response_group[first + r] = g
        x = view(work.response, (first + r) * problem.nv)
        for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
            x[work.island_dof[n]] = 0.0
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            node = problem.entry_node[e]
            count = problem.node_count[node]
            J = view(problem.J, problem.entry_at[e] + r * count)
            y = view(x, problem.node_first[node])
            y[:count] = J[:count]
        forward(problem, work, island, work.base_lower, x)
        backward(problem, work, island, work.base, x)
        a = 0
        while a < first + dim:
            other = work.response_group[a]
            if work.tree_island[problem.node_tree[top_node(problem, other)]] != island:
                a += problem.dim[other]
                continue
            row_velocity(problem, other, x, work.short)
            for m in range(problem.dim[other]):
                c = work.short[m]
                work.compliance[(a + m) * MOST_CONDENSED + first + r] = c
                work.compliance[(first + r) * MOST_CONDENSED + a + m] = c
            a += problem.dim[other]


@procedure
def top_node(problem: Problem, g: int) -> int:
    """First of the nodes (bodies or joints) that move a group."""
    return problem.entry_node[problem.entry_first[g]]


@procedure
def condense(problem: Problem, work: Work, island: int) -> bool:
    """Build and factor an island's matrix condensed to its active rows, if that is cheaper."""
    work.condensed = -1
    if problem.condenses == 0:
        return False
    dofs = work.island_dofs_first[island + 1] - work.island_dofs_first[island]
    first_group = work.island_groups_first[island]
    last_group = work.island_groups_first[island + 1]
    if problem.changed > 0:
        forget(problem, work)
    rows = count = loops = new = 0
    for k in range(first_group, last_group):
        g = work.island_group[k]
        if is_loop(problem, g):
            loops += 1
        elif work.state[g] != OPEN:
            rows += problem.dim[g]
            new += problem.dim[g] if work.response_at[g] == 0 else 0
    if loops == 0 or dofs < LEAST or 4 * rows > dofs or rows > MOST_CONDENSED:
        return False
    if work.responded + new > MOST_CONDENSED:
        work.response_at[: problem.groups] = 0
        work.responded = 0
    if not make_base(problem, work, island):
        return False
    for k in range(first_group, last_group):
        g = work.island_group[k]
        if work.state[g] != OPEN and not is_loop(problem, g):
            work.acting[count] = g
            count += 1
            if work.response_at[g] == 0:
                respond(problem, work, island, g)
    a = 0
    for m in range(count):
        g = work.acting[m]
        A = view(work.A, 6 * problem.row_first[g])
        dim = problem.dim[g]
        for r in range(dim):
            out = view(work.small, (a + r) * rows)
            b = 0
            for n in range(count):
                other = work.acting[n]
                column = work.response_at[other] - 1
                for c in range(problem.dim[other]):
                    s = 0.0
                    for i in range(dim):
                        at = (work.response_at[g] - 1 + i) * MOST_CONDENSED
                        s += A[r * dim + i] * work.compliance[at + column + c]
                    out[b] = s
                    b += 1
            out[a + r] += 1.0
        a += dim
    if not eliminated_with_pivots(work, rows):
        return False
    work.condensed = rows
    work.pivot[rows] = count
    return True


@procedure
def eliminated_with_pivots(work: Work, n: int) -> bool:
    """Factor the condensed matrix in place by LU with scaled pivoting; False if singular."""
    A = work.small
    work.sign = 1.0
    for i in range(n):
        most = 0.0
        for j in range(n):
            most = max(most, abs(A[i * n + j]))
        if not most > 0.0:
            return False
        work.short[i] = 1.0 / most
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i * n + k]) * work.short[i] > abs(A[best * n + k]) * work.short[best]:
                best = i
        work.pivot[k] = best
        if best != k:
            work.sign = -work.sign
            for j in range(n):
                x = A[k * n + j]
                A[k * n + j] = A[best * n + j]
                A[best * n + j] = x
            work.short[best] = work.short[k]
        pivot = A[k * n + k]
        if pivot == 0.0:
            return False
        if pivot < 0.0:
            work.sign = -work.sign
        for i in range(k + 1, n):
            f = A[i * n + k] / pivot
            A[i * n + k] = f
            own = view(A, i * n)
            upper = view(A, k * n)
            for j in range(k + 1, n):
                own[j] -= f * upper[j]
    return True


@procedure
def solve_condensed(problem: Problem, work: Work, island: int, x: "float[:]") -> None:
    """Solve ``H x = b`` of an island in place by the condensed matrix (Woodbury identity)."""
    forward(problem, work, island, work.base_lower, x)
    backward(problem, work, island, work.base, x)
    n = work.condensed
    if n == 0:
        return
    y = work.short
    a = 0
    for m in range(work.pivot[n]):
        g = work.acting[m]
        dim = problem.dim[g]
        A = view(work.A, 6 * problem.row_first[g])
        w = view(work.dw, problem.row_first[g])
        row_velocity(problem, g, x, w)
        for r in range(dim):
            y[a + r] = 0.0
            for i in range(dim):
                y[a + r] += A[r * dim + i] * w[i]
        a += dim
    L = work.small
    for k in range(n):
        p = work.pivot[k]
        s = y[p]
        y[p] = y[k]
        y[k] = s
    for k in range(n):
        for i in range(k):
            y[k] -= L[k * n + i] * y[i]
    for m in range(n):
        k = n - 1 - m
        for i in range(k + 1, n):
            y[k] -= L[k * n + i] * y[i]
        y[k] /= L[k * n + k]
    a = 0
    for m in range(work.pivot[n]):
        g = work.acting[m]
        for r in range(problem.dim[g]):
            column = view(work.response, (work.response_at[g] - 1 + r) * problem.nv)
            f = y[a]
            a += 1
            for k in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
                i = work.island_dof[k]
                x[i] -= f * column[i]


@procedure
def solve_matrix(problem: Problem, work: Work, island: int, x: "float[:]") -> None:
    """Solve ``H x = b`` of an island in place, by the condensed or the sparse factors."""
    if work.condensed >= 0:
        solve_condensed(problem, work, island, x)
    else:
        solve_factored(problem, work, island, x)
