"""Matrix of an island, ``H = M + J' A J``, in the panels of its factor.

Rows without bounds, those of loops, act in every state with the same ``A``: ``frame`` keeps the
matrix with them alone, until it has changed, and steps add the other groups to a copy.
"""

from kinetree.codegen.procedures import local, procedure, vector, view
from kinetree.contact.newton.bunches import add_bunch
from kinetree.contact.newton.cholesky import take
from kinetree.contact.newton.cones import SLIDING, STICKING
from kinetree.contact.newton.pattern import same_nodes
from kinetree.contact.newton.problem import BOUNDS, Problem, Work

__all__ = ["FIRM", "assemble", "assemble_anew", "is_loop", "is_of_free_bodies", "put_frame"]

FIRM = 1e-5
"""Inverse penalty of rows without bounds, in units of d."""

ALL, LOOPS, OTHERS = 0, 1, 2
"""Groups to add: all of them, rows without bounds alone, or all but these."""


@procedure
def is_loop(problem: Problem, g: int) -> bool:
    """Whether a group is an unbounded row, such as one of a kinematic loop."""
    return problem.kind[g] == BOUNDS and problem.low[g] < -1e299 and problem.high[g] > 1e299


@procedure(inline=True)
def is_body(problem: Problem, a: int, width: int) -> bool:
    """Whether a node is a free body (6 velocities) coupled in its panel with free bodies alone."""
    blocks = problem.node_blocks_first[a + 1] - problem.node_blocks_first[a]
    return problem.node_count[a] == 6 and blocks == 1 and width % 6 == 0


@procedure(inline=True)
def put_body(block: "float[36]", P: "float[:]", width: int) -> None:
    """Write a free body's 6 x 6 mass matrix into its panel, and zeros to the other columns."""
    zero = vector(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(6):
        row = view(P, i * width, 6)
        row[0:6] = view(block, 6 * i, 6)
    at = 6
    while at < width:
        for i in range(6):
            row = view(P, i * width + at, 6)
            row[0:6] = zero
        at += 6


@procedure(inline=True)
def copy_beside(P: "float[:]", Q: "float[:]", width: int) -> None:
    """Copy a free body's panel without its diagonal block."""
    at = 6
    while at < width:
        for i in range(6):
            row = view(Q, i * width + at, 6)
            row[0:6] = view(P, i * width + at, 6)
        at += 6


@procedure
def put_mass(problem: Problem, work: Work, island: int) -> None:
    """Write the mass matrix of an island into the panels of the Newton matrix ``H``."""
    H = work.H
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        a = work.order[k]
        if is_body(problem, a, work.panel_width[k]):
            own = view(problem.M, problem.block_at[problem.node_blocks_first[a]], 36)
            put_body(own, view(H, work.panel_at[k]), work.panel_width[k])
            continue
        size = work.panel_width[k] * problem.node_count[a]
        H[work.panel_at[k] : work.panel_at[k] + size] = 0.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        ca = problem.node_count[a]
        if is_body(problem, a, work.panel_width[work.position[a]]):
            continue
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
def put_frame(problem: Problem, work: Work, island: int) -> None:
    """Write an island's mass matrix plus its loop rows to ``H``, from a cached copy if valid."""
    first = work.island_nodes_first[island]
    last = work.island_nodes_first[island + 1]
    known = True
    for n in range(first, last):
        known = known and work.framed[work.island_node[n]] == 1
    if not known:
        put_mass(problem, work, island)
        add_groups(problem, work, island, True, True, LOOPS)
    for n in range(first, last):
        k = work.island_node[n]
        work.framed[k] = 1
        at = work.panel_at[k]
        end = at + work.panel_width[k] * problem.node_count[work.order[k]]
        if known:
            work.H[at:end] = work.frame[at:end]
        else:
            work.frame[at:end] = work.H[at:end]


@procedure
def assemble_anew(problem: Problem, work: Work, island: int) -> None:
    """Assemble ``H = M + J' A J`` of an island, where loop rows have changed weights ``A``."""
    put_mass(problem, work, island)
    add_groups(problem, work, island, True, True, ALL)


@procedure
def assemble(problem: Problem, work: Work, island: int, both: int) -> None:
    """Assemble an island's Newton matrix ``H = M + J' A J``, and its transpose ``L`` if ``both``.

    ``A`` of groups that slide may be unsymmetric; that of open ones is zero. Blocks of ``L`` on the
    diagonal are left to ``factor``.
    """
    which = OTHERS
    if problem.condenses == 1:
        put_frame(problem, work, island)
    else:
        put_mass(problem, work, island)
        which = ALL
    if both == 0:
        add_groups(problem, work, island, True, True, which)
        return
    add_groups(problem, work, island, True, False, which)
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        width = work.panel_width[k]
        at = work.panel_at[k]
        if is_body(problem, work.order[k], width):
            copy_beside(view(work.H, at), view(work.L, at), width)
            continue
        for i in range(at, at + width * problem.node_count[work.order[k]]):
            work.L[i] = work.H[i]
    add_groups(problem, work, island, False, True, OTHERS)


@procedure
def add_groups(
    problem: Problem, work: Work, island: int, sticking: bool, sliding: bool, which: int
) -> None:
    """Add ``J' A J`` of an island's sticking or sliding groups to the Newton matrix.

    ``which``: ALL, LOOPS, rows without bounds alone, whatever their state, or OTHERS. Contacts of
    the same two free bodies, the corners of a box, are added at once, and so are those of a body.
    """
    k = work.island_groups_first[island]
    last = work.island_groups_first[island + 1]
    while k < last:
        g = work.island_group[k]
        alike = work.bunch[g, 0]
        if alike > 0:
            if which != LOOPS:
                add_bunch(problem, work, g, sticking, sliding)
            k += alike
        elif is_loop(problem, g):
            k += add_rows(problem, work, g, last - k) if which != OTHERS else 1
        elif which == LOOPS:
            k += 1
        else:
            k += add_alike(problem, work, g, last - k, sticking, sliding)


@procedure
def is_of_free_bodies(problem: Problem, g: int) -> bool:
    """Whether a group acts on one or two free bodies alone."""
    begin = problem.entry_first[g]
    end = problem.entry_first[g + 1]
    free = end - begin <= 2
    for e in range(begin, end):
        free = free and problem.node_count[problem.entry_node[e]] == 6
    return free


@procedure
def stride_after(problem: Problem, g: int) -> int:
    """Offset in ``J`` from a group's Jacobian numbers to those of the next group."""
    begin = problem.entry_first[g]
    return problem.entry_at[problem.entry_first[g + 1]] - problem.entry_at[begin]


@procedure
def is_alike(problem: Problem, g: int, n: int, stride: int) -> bool:
    """Whether the ``n``-th group after ``g`` has the same nodes, Jacobians lying ``stride`` apart.

    And whether all its numbers lie where ``stride`` says.
    """
    if not same_nodes(problem, g + n):
        return False
    begin = problem.entry_first[g]
    first = problem.entry_first[g + n]
    same = True
    for e in range(problem.entry_first[g + 1] - begin):
        same = same and problem.entry_at[first + e] == problem.entry_at[begin + e] + n * stride
    return same


@procedure
def add_rows(problem: Problem, work: Work, g: int, most: int) -> int:
    """Add ``J' A J`` of a loop row and the similar rows after it to ``H``; returns their number.

    Rows of a loop have the same nodes, and lie at the same distance from one another.
    """
    stride = stride_after(problem, g) if most > 1 else 0
    n = 0
    while n < most and (n == 0 or (is_loop(problem, g + n) and is_alike(problem, g, n, stride))):
        A = work.A[6 * problem.row_first[g + n]]
        for e in range(problem.entry_first[g + n], problem.entry_first[g + n + 1]):
            at = problem.entry_at[e]
            for c in range(problem.node_count[problem.entry_node[e]]):
                work.AJ[at + c] = -A * problem.J[at + c]
        n += 1
    add_pairs(problem, work, g, 1, n, stride, False)
    return n


@procedure
def add_alike(
    problem: Problem, work: Work, g: int, most: int, sticking: bool, sliding: bool
) -> int:
    """Add ``J' A J`` of a group and those after it on the same nodes; returns their number.

    Those that stick, slide, or both; without ``sticking`` also their transpose to ``L``.
    """
    state = work.state[g]
    if not ((state == STICKING and sticking) or (state == SLIDING and sliding)):
        return 1
    dim = problem.dim[g]
    stride = stride_after(problem, g) if most > 1 else 0
    n = 0
    while n < most and (n == 0 or (problem.dim[g + n] == dim and is_alike(problem, g, n, stride))):
        state = work.state[g + n]
        acts = (state == STICKING and sticking) or (state == SLIDING and sliding)
        if not acts or is_loop(problem, g + n):
            break
        times_matrix(problem, work, g + n)
        n += 1
    add_pairs(problem, work, g, dim, n, stride, not sticking)
    return n


@procedure
def times_matrix(problem: Problem, work: Work, g: int) -> None:
    """Write ``-A J`` of a group, block by block where its Jacobian ``J`` is stored."""
    dim = problem.dim[g]
    A = view(work.A, 6 * problem.row_first[g])
    for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
        count = problem.node_count[problem.entry_node[e]]
        J = view(problem.J, problem.entry_at[e])
        AJ = view(work.AJ, problem.entry_at[e])
        if dim == 3 and count == 3:
            for r in range(3):
                row = view(AJ, 3 * r, 3)
                row[0:3] = -A[3 * r] * view(J, 0, 3)
                row -= A[3 * r + 1] * view(J, 3, 3)
                row -= A[3 * r + 2] * view(J, 6, 3)
        elif dim == 3:
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


@procedure
def add_pairs(
    problem: Problem, work: Work, g: int, dim: int, groups: int, stride: int, both: bool
) -> None:
    """Add ``J' A J`` of groups on the same nodes to the Newton matrix, for all pairs of nodes.

    Their ``-A J`` are made; numbers of one group lie ``stride`` after those of the one before.
    """
    begin = problem.entry_first[g]
    end = problem.entry_first[g + 1]
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
            one = problem.entry_at[i]
            two = problem.entry_at[j]
            add_products(
                view(work.H, at),
                width,
                view(problem.J, one),
                rows,
                view(work.AJ, two),
                wide,
                dim,
                groups,
                stride,
            )
            if both and e != f:
                add_products(
                    view(work.L, at),
                    width,
                    view(work.AJ, one),
                    rows,
                    view(problem.J, two),
                    wide,
                    dim,
                    groups,
                    stride,
                )


@procedure
def add_products(
    C: "float[:]",
    width: int,
    A: "float[:]",
    rows: int,
    B: "float[:]",
    wide: int,
    dim: int,
    groups: int,
    stride: int,
) -> None:
    """Subtract ``A' B`` of several groups, each ``stride`` numbers after the last, from ``C``."""
    if rows != 3 or wide != 3:
        for n in range(groups):
            at = n * stride
            take(C, width, view(A, at), rows, view(B, at), wide, dim, rows, wide)
        return
    x, y, z = local("float", 3, 3)
    first = view(C, 0, 3)
    second = view(C, width, 3)
    third = view(C, 2 * width, 3)
    x[0:3] = first
    y[0:3] = second
    z[0:3] = third
    for n in range(groups):
        for m in range(dim):
            k = n * stride + 3 * m
            row = view(B, k, 3)
            x -= A[k] * row
            y -= A[k + 1] * row
            z -= A[k + 2] * row
    first[0:3] = x
    second[0:3] = y
    third[0:3] = z
