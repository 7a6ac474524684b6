"""Rounds of sweeps from mixtures of those before (Anderson 1965).

A round changes impulses; how these changes differ from round to round says which mixture of the
last impulses a round would change least. Mixtures are linear, so velocities are mixed with the
impulses that they belong to. ``changes`` and ``impulses`` have four places of all rows, and
``velocities`` four of all degrees of freedom: three differences, and what was last. Rows of an
island lie in a few runs, whose numbers are taken four at a time.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, view
from kinetree.contact.newton.freedoms import clear_numbers
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.sweeps import sweep

__all__ = ["sweep_rounds"]

EACH = 2
"""Sweeps between mixtures: a mixture takes half as long as one."""

LAST = 3
"""Place of what was last."""

WORSE = 2.25
"""Growth of the squared changes from which on mixtures begin anew."""


@procedure(inline=True)
def sum_of_four(x: "float[4]") -> float:
    """Sum of a 4-vector's numbers, added in pairs for vector registers."""
    return (x[0] + x[2]) + (x[1] + x[3])


@procedure
def begin_rounds(problem: Problem, work: Work, island: int) -> None:
    """Set the scales of an island's rows, and zero its history of changes for Anderson mixing."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        scale = sqrt(work.delassus[g])
        for i in range(problem.row_first[g], problem.row_first[g] + problem.dim[g]):
            work.scale[i] = scale
    for place in range(LAST):
        X = view(work.impulses, place * work.rows_room)
        for n in range(work.run_first[island], work.run_first[island + 1]):
            for i in range(work.run[n, 0], work.run[n, 1]):
                X[i] = 0.0
        clear_numbers(problem, work, island, view(work.velocities, place * problem.nv))


@procedure
def keep_impulses(work: Work, island: int) -> None:
    """Copy an island's impulses to ``y``, to measure their change over a round of sweeps."""
    for n in range(work.run_first[island], work.run_first[island + 1]):
        for i in range(work.run[n, 0], work.run[n, 1]):
            work.y[i] = work.lam[i]


@procedure(inline=True)
def note_row(work: Work, i: int, at: int, rest: "float[8]") -> None:
    """Store one row's impulse change of a round for Anderson mixing, and add to the products."""
    f = work.scale[i] * (work.lam[i] - work.y[i])
    new = f - work.changes[LAST * work.rows_room + i]
    b = work.changes[(at + 1) % 3 * work.rows_room + i]
    c = work.changes[(at + 2) % 3 * work.rows_room + i]
    rest[0] += new * new
    rest[1] += new * b
    rest[2] += new * c
    rest[3] += new * f
    rest[4] += b * f
    rest[5] += c * f
    rest[6] += f * f
    rest[7] = max(rest[7], abs(f))
    work.changes[at * work.rows_room + i] = new
    work.changes[LAST * work.rows_room + i] = f
    x = work.lam[i]
    work.impulses[at * work.rows_room + i] = x - work.impulses[LAST * work.rows_room + i]
    work.impulses[LAST * work.rows_room + i] = x


@procedure
def note_changes(work: Work, island: int, at: int, G: "float[4, 4]") -> "(float, float)":
    """Store a round's impulse changes at place ``at``, and the products of differences in ``G``.

    Returns the sum of the squared changes, scaled, and the largest.
    """
    second = (at + 1) % 3
    third = (at + 2) % 3
    own = at * work.rows_room
    last = LAST * work.rows_room
    sums = local("float", 8, 4)
    rest = local("float", 8)
    sums[:8] = 0.0
    rest[:8] = 0.0
    for n in range(work.run_first[island], work.run_first[island + 1]):
        i = work.run[n, 0]
        end = work.run[n, 1]
        while i + 4 <= end:
            x = view(work.lam, i, 4)
            f = view(work.scale, i, 4) * (x - view(work.y, i, 4))
            new = f - view(work.changes, last + i, 4)
            b = view(work.changes, second * work.rows_room + i, 4)
            c = view(work.changes, third * work.rows_room + i, 4)
            sums[0] += new * new
            sums[1] += new * b
            sums[2] += new * c
            sums[3] += new * f
            sums[4] += b * f
            sums[5] += c * f
            sums[6] += f * f
            most = sums[7]
            size = abs(f)
            for r in range(4):
                most[r] = max(most[r], size[r])
            noted = view(work.changes, own + i, 4)
            noted[:4] = new
            noted = view(work.changes, last + i, 4)
            noted[:4] = f
            before = view(work.impulses, last + i, 4)
            noted = view(work.impulses, own + i, 4)
            noted[:4] = x - before
            before[:4] = x
            i += 4
        while i < end:
            note_row(work, i, at, rest)
            i += 1
    total = work.products
    total[:8] = sums  # in memory, so that LLVM has vectors of what is summed
    for k in range(7):
        rest[k] += sum_of_four(total[k])
    G[at, at] = rest[0]
    G[at, second] = G[second, at] = rest[1]
    G[at, third] = G[third, at] = rest[2]
    G[at, 3] = rest[3]
    G[second, 3] = rest[4]
    G[third, 3] = rest[5]
    most = total[7]
    return rest[6], max(rest[7], max(max(most[0], most[1]), max(most[2], most[3])))


@procedure
def note_velocities(problem: Problem, work: Work, island: int, at: int) -> None:
    """Store a round's velocity changes of an island at place ``at``, for Anderson mixing."""
    own = at * problem.nv
    last = LAST * problem.nv
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        i = problem.node_first[a]
        if problem.node_count[a] == 6:  # a free body
            v = view(work.v, i, 6)
            before = view(work.velocities, last + i, 6)
            noted = view(work.velocities, own + i, 6)
            noted[:6] = v - before
            before[:6] = v
            continue
        for k in range(i, i + problem.node_count[a]):
            work.velocities[own + k] = work.v[k] - work.velocities[last + k]
            work.velocities[last + k] = work.v[k]


@procedure
def mixture_coefficients(G: "float[4, 4]", n: int, c: "float[3]") -> None:
    """Anderson mixing: write the coefficients of ``n`` differences with the least residual change.

    ``G`` has their products, in its last column those with the change.
    """
    U = local("float", 3, 3)
    most = 0.0
    for i in range(n):
        most = max(most, G[i, i])
    for i in range(n):
        c[i] = G[i, 3]
        U[i] = G[i, :3]
        U[i, i] += 1e-10 * most
    for k in range(n):
        if not U[k, k] > 0.0:
            c[:n] = 0.0
            return
        for i in range(k + 1, n):
            f = U[i, k] / U[k, k]
            for j in range(k, n):
                U[i, j] -= f * U[k, j]
            c[i] -= f * c[k]
    for m in range(n):
        k = n - 1 - m
        for j in range(k + 1, n):
            c[k] -= U[k, j] * c[j]
        c[k] /= U[k, k]


@procedure
def mix_impulses(work: Work, island: int, c: "float[3]") -> None:
    """Replace an island's impulses by the Anderson mixture of the last rounds'; a copy in ``y``."""
    room = work.rows_room
    for n in range(work.run_first[island], work.run_first[island + 1]):
        i = work.run[n, 0]
        end = work.run[n, 1]
        while i + 4 <= end:
            x = view(work.lam, i, 4)
            y = view(work.y, i, 4)
            mixed = x - c[0] * view(work.impulses, i, 4)
            mixed -= c[1] * view(work.impulses, room + i, 4)
            mixed -= c[2] * view(work.impulses, 2 * room + i, 4)
            x[:4] = mixed
            y[:4] = mixed
            i += 4
        while i < end:
            x1 = work.lam[i] - c[0] * work.impulses[i] - c[1] * work.impulses[room + i]
            x1 -= c[2] * work.impulses[2 * room + i]
            work.lam[i] = x1
            work.y[i] = x1
            i += 1


@procedure
def mix_velocities(problem: Problem, work: Work, island: int, c: "float[3]") -> None:
    """Replace an island's velocities by the Anderson mixture of the last rounds' velocities."""
    nv = problem.nv
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        i = problem.node_first[a]
        if problem.node_count[a] == 6:
            v = view(work.v, i, 6)
            mixed = v - c[0] * view(work.velocities, i, 6)
            mixed -= c[1] * view(work.velocities, nv + i, 6)
            mixed -= c[2] * view(work.velocities, 2 * nv + i, 6)
            v[:6] = mixed
            continue
        for k in range(i, i + problem.node_count[a]):
            x = work.v[k] - c[0] * work.velocities[k] - c[1] * work.velocities[nv + k]
            work.v[k] = x - c[2] * work.velocities[2 * nv + k]


@procedure
def sweep_rounds(problem: Problem, work: Work, island: int, count: int, enough: float) -> int:
    """Gauss-Seidel sweeps with Anderson mixing, up to ``count`` rounds; the rounds taken.

    They end when a round changes no impulse by more than ``enough``, scaled.
    """
    G = local("float", 4, 4)  # products of differences, and with the last change
    c = local("float", 3)
    known = 0  # differences that are known
    at = 0  # the place of the next one
    last = 0.0
    begin_rounds(problem, work, island)
    for n in range(count):
        if known == 0:
            keep_impulses(work, island)
        for _ in range(EACH):
            sweep(problem, work, island)
        size, most = note_changes(work, island, at, G)
        note_velocities(problem, work, island, at)
        if most <= enough or n + 1 == count:
            return n + 1
        if n == 0 or size > WORSE * last:  # begins anew
            known = 0
            at = 0
        else:
            known = min(known + 1, 3)
            at = (at + 1) % 3
        last = size
        if known == 0:
            continue
        c[:3] = 0.0
        mixture_coefficients(G, known, c)
        mix_impulses(work, island, c)
        mix_velocities(problem, work, island, c)
    return count
