"""Sparse factor by panels, for one island: ``H = L U``, without square roots; ``L' = D U`` where
it is symmetric.

Panels are made from left to right: those before, which have the node, are taken from its own, then
it is eliminated in itself. Rows of blocks that follow one another in both panels are taken at once.
``H`` holds the rows of ``U``, which has ones on its diagonal; ``L`` holds those of ``L'``, on its
diagonal the inverse pivots: nothing is divided when factors are applied. What most islands have,
panels of six rows, those of free bodies, is unrolled (``sixes``).
"""

from kinetree.codegen.procedures import isfinite, local, procedure, vector, view
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.sixes import (
    eliminate_six,
    eliminate_six_both,
    six_backward,
    six_forward,
    sum_of_six,
    take_six,
)


@procedure
def take(
    C: "float[:]",
    wc: int,
    A: "float[:]",
    wa: int,
    B: "float[:]",
    wb: int,
    depth: int,
    rows: int,
    width: int,
) -> None:
    """Subtract ``A' B`` from a block C (rows, width), where A and B have ``depth`` rows.

    Tiles of six or three rows and six columns stay in registers.
    """
    x, y, z = local("float", 3, 6)
    r = 0
    if rows == 6:
        c = 0
        while c + 6 <= width:
            take_six(view(C, c), wc, A, wa, view(B, c), wb, depth)
            c += 6
        for n in range(6):
            if c < width:
                take_row(view(C, n * wc + c), view(A, n), wa, view(B, c), wb, depth, width - c)
        return
    while r + 3 <= rows:
        c = 0
        p = r * wc
        while c + 6 <= width:
            first = view(C, p + c, 6)
            second = view(C, p + wc + c, 6)
            third = view(C, p + 2 * wc + c, 6)
            x[0:6] = first
            y[0:6] = second
            z[0:6] = third
            for m in range(depth):
                k = m * wa + r
                row = view(B, m * wb + c, 6)
                x -= A[k] * row
                y -= A[k + 1] * row
                z -= A[k + 2] * row
            first[0:6] = x
            second[0:6] = y
            third[0:6] = z
            c += 6
        if c + 3 <= width:  # ball joints
            take_three(view(C, p + c), wc, view(A, r), wa, view(B, c), wb, depth)
            c += 3
        for n in range(r, r + 3):
            if c < width:
                take_row(view(C, n * wc + c), view(A, n), wa, view(B, c), wb, depth, width - c)
        r += 3
    while r < rows:
        take_row(view(C, r * wc), view(A, r), wa, B, wb, depth, width)
        r += 1


@procedure(inline=True)
def take_three(
    C: "float[:]", wc: int, A: "float[:]", wa: int, B: "float[:]", wb: int, depth: int
) -> None:
    """Subtract ``A' B`` from a 3 x 3 block C, with A and B of ``depth`` rows."""
    x, y, z = local("float", 3, 3)
    first = view(C, 0, 3)
    second = view(C, wc, 3)
    third = view(C, 2 * wc, 3)
    x[0:3] = first
    y[0:3] = second
    z[0:3] = third
    for m in range(depth):
        k = m * wa
        row = view(B, m * wb, 3)
        x -= A[k] * row
        y -= A[k + 1] * row
        z -= A[k + 2] * row
    first[0:3] = x
    second[0:3] = y
    third[0:3] = z


@procedure
def take_row(
    C: "float[:]", A: "float[:]", wa: int, B: "float[:]", wb: int, depth: int, width: int
) -> None:
    """Subtract ``A' B`` from one row C, where A is a single column of ``depth`` numbers."""
    x = local("float", 6)
    y = local("float", 3)
    c = 0
    while c + 6 <= width:
        own = view(C, c, 6)
        x[0:6] = own
        for m in range(depth):
            x -= A[m * wa] * view(B, m * wb + c, 6)
        own[0:6] = x
        c += 6
    if c + 3 <= width:  # ball joints
        few = view(C, c, 3)
        y[0:3] = few
        for m in range(depth):
            y -= A[m * wa] * view(B, m * wb + c, 3)
        few[0:3] = y
        c += 3
    while c < width:
        one = C[c]
        for m in range(depth):
            one -= A[m * wa] * B[m * wb + c]
        C[c] = one
        c += 1


@procedure
def eliminate_symmetric(U: "float[:]", L: "float[:]", rows: int, width: int) -> int:
    """Factor a symmetric panel's diagonal rows in place; 0, or 1 if not positive definite."""
    if rows == 6 and width % 6 == 0:
        return eliminate_six(U, L, width)
    for a in range(rows):
        at = a * (width + 1)
        take_row(view(U, at), view(L, a), width, view(U, a), width, a, width - a)
        pivot = U[at]
        if not pivot > 0.0:
            return 1
        scale = 1.0 / pivot
        L[at : at + width - a] = U[at : at + width - a]
        U[at : at + width - a] *= scale
        L[at] = scale
    return 0


@procedure
def eliminated_both(U: "float[:]", L: "float[:]", rows: int, width: int) -> int:
    """Factor an unsymmetric panel, rows of ``U`` and ``L'``, in place; 0, or 1 for a zero pivot."""
    if rows == 6 and width % 6 == 0:
        return eliminate_six_both(U, L, width)
    for a in range(rows):
        at = a * (width + 1)
        take_row(view(U, at), view(L, a), width, view(U, a), width, a, width - a)
        take_row(view(L, at), view(U, a), width, view(L, a), width, a, width - a)
        pivot = U[at]
        if pivot == 0.0 or not isfinite(pivot):
            return 1
        scale = 1.0 / pivot
        U[at : at + width - a] *= scale
        L[at] = scale
    return 0


@procedure(inline=True)
def turn_block(U: "float[:]", L: "float[:]", rows: int, width: int) -> None:
    """Set the diagonal block of ``L'`` to the transpose of that of ``U``."""
    if rows == 6:
        for i in range(6):
            row = view(L, i * width, 6)
            row[0:6] = vector(
                U[i],
                U[width + i],
                U[2 * width + i],
                U[3 * width + i],
                U[4 * width + i],
                U[5 * width + i],
            )
        return
    for i in range(rows):
        for j in range(i, rows):
            L[i * width + j] = U[j * width + i]


@procedure
def factor(problem: Problem, work: Work, island: int, both: int) -> int:
    """Factor an island's sparse Newton matrix in place; 0, or 1 for a failed pivot.

    Blocks of ``L`` on the diagonal are not read: they are those of ``H``, turned.
    """
    H = work.H
    L = work.L
    for e in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[e]
        rows = problem.node_count[work.order[k]]
        width = work.panel_width[k]
        at = work.panel_at[k]
        work.place[k] = 0
        for i in range(work.panel_first[k], work.panel_first[k + 1]):
            work.place[work.panel_node[i]] = work.panel_offset[i]
        for m in range(work.left_first[k], work.left_first[k + 1]):
            j = work.left_panel[m]
            if work.tree_island[problem.node_tree[work.order[j]]] != island:
                continue  # of an older pattern
            depth = problem.node_count[work.order[j]]
            wide = work.panel_width[j]
            from_j = work.panel_at[j]
            i = work.left_index[m]
            a = from_j + work.panel_offset[i]
            end = work.panel_first[j + 1]
            while i < end:
                source = work.panel_offset[i]
                target = work.place[work.panel_node[i]]
                ahead = target - source
                i += 1
                while i < end and work.place[work.panel_node[i]] - work.panel_offset[i] == ahead:
                    i += 1
                stop = wide
                if i < end:
                    stop = work.panel_offset[i]
                to = at + target
                b = from_j + source
                n = stop - source
                take(view(H, to), width, view(L, a), wide, view(H, b), wide, depth, rows, n)
                if both != 0 and target == 0:  # the block on the diagonal is one for both
                    to += rows
                    b += rows
                    n -= rows
                if both != 0 and n > 0:
                    take(view(L, to), width, view(H, a), wide, view(L, b), wide, depth, rows, n)
        if both == 0:
            if eliminate_symmetric(view(H, at), view(L, at), rows, width) != 0:
                return 1
        else:
            turn_block(view(H, at), view(L, at), rows, width)
            if eliminated_both(view(H, at), view(L, at), rows, width) != 0:
                return 1
    return 0


@procedure
def forward(problem: Problem, work: Work, island: int, pool: "float[:]", x: "float[:]") -> None:
    """Forward substitution ``L x = b`` of an island in place, with rows of ``L'`` in ``pool``."""
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        node = work.order[k]
        rows = problem.node_count[node]
        width = work.panel_width[k]
        P = view(pool, work.panel_at[k])
        own = view(x, problem.node_first[node])
        if rows == 6:
            six = abs(view(own, 0, 6))
            if sum_of_six(six) == 0.0:  # as in a response to one contact
                continue
            six_forward(P, width, view(own, 0, 6))
        else:
            size = 0.0
            for a in range(rows):
                size += abs(own[a])
            if size == 0.0:
                continue
            for a in range(rows):
                s = own[a] * P[a * width + a]
                own[a] = s
                for b in range(a + 1, rows):
                    own[b] -= P[a * width + b] * s
        for i in range(work.panel_first[k], work.panel_first[k + 1]):
            other = work.order[work.panel_node[i]]
            y = view(x, problem.node_first[other])
            Q = view(P, work.panel_offset[i])
            count = problem.node_count[other]
            if rows == 6 and count == 6:
                six = view(y, 0, 6)
                six -= (
                    own[0] * view(Q, 0, 6)
                    + own[1] * view(Q, width, 6)
                    + own[2] * view(Q, 2 * width, 6)
                    + own[3] * view(Q, 3 * width, 6)
                    + own[4] * view(Q, 4 * width, 6)
                    + own[5] * view(Q, 5 * width, 6)
                )
                continue
            take_row(y, own, 1, Q, width, rows, count)


@procedure
def backward(problem: Problem, work: Work, island: int, pool: "float[:]", v: "float[:]") -> None:
    """Back substitution ``U v = b`` of an island in place, with the rows of ``U`` in ``pool``."""
    first = work.island_nodes_first[island]
    last = work.island_nodes_first[island + 1]
    t = work.temp
    x = local("float", 8)
    for m in range(last - first):
        k = work.island_node[last - 1 - m]
        node = work.order[k]
        rows = problem.node_count[node]
        width = work.panel_width[k]
        P = view(pool, work.panel_at[k])
        own = view(v, problem.node_first[node])
        for i in range(work.panel_first[k], work.panel_first[k + 1]):
            other = work.order[work.panel_node[i]]
            y = view(v, problem.node_first[other])
            if problem.node_count[other] == 6:
                six = view(t, work.panel_offset[i], 6)
                six[0:6] = view(y, 0, 6)
                continue
            for b in range(problem.node_count[other]):
                t[work.panel_offset[i] + b] = y[b]
        if rows == 6 and width % 6 == 0:
            six_backward(P, width, t, view(own, 0, 6))
            continue
        for c in range(rows):
            a = rows - 1 - c
            row = view(P, a * width)
            s = own[a]
            for b in range(a + 1, rows):
                s -= row[b] * own[b]
            b = rows
            if b + 8 <= width:
                x[0:8] = view(row, b, 8) * view(t, b, 8)
                b += 8
                while b + 8 <= width:
                    x += view(row, b, 8) * view(t, b, 8)
                    b += 8
                s -= (x[0] + x[4] + (x[1] + x[5])) + (x[2] + x[6] + (x[3] + x[7]))
            while b < width:
                s -= row[b] * t[b]
                b += 1
            own[a] = s


@procedure
def solve_factored(problem: Problem, work: Work, island: int, x: "float[:]") -> None:
    """Solve ``H x = b`` of an island in place by the factored sparse Newton matrix."""
    forward(problem, work, island, work.L, x)
    backward(problem, work, island, work.H, x)
