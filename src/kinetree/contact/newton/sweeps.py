"""Projected Gauss–Seidel: group by group, each with the velocities that the others leave.

It finds out soon which contacts act and slide, which is what Newton's method needs to start from,
and converges slowly afterwards. Only for islands of trees with one node each, as free bodies are:
there the inverse of the mass matrix is known by its blocks.
"""

from kinetree.codegen.procedures import local, procedure, sqrt, vector, view
from kinetree.contact.newton.cholesky import eliminate_symmetric
from kinetree.contact.newton.cones import disc_end
from kinetree.contact.newton.matrix import is_of_free_bodies
from kinetree.contact.newton.problem import (
    BOUNDS,
    Problem,
    Work,
    clear_matrix,
    give,
    row_velocity,
    times_six,
)
from kinetree.contact.newton.sixes import invert_six, sum_of_six


@procedure
def invert_block(M: "float[:]", n: int, out: "float[:]") -> None:
    """Write the inverse of a positive definite (n, n) matrix."""
    U, L = local("float", 2, 256)
    U[: n * n] = M[: n * n]
    eliminate_symmetric(U, L, n, n)
    out[: n * n] = 0.0
    for r in range(n):
        out[r * n + r] = 1.0
        for k in range(r):
            for c in range(r):
                out[r * n + c] -= U[k * n + r] * out[k * n + c]
    for m in range(n):
        r = n - 1 - m
        for c in range(n):
            s = out[r * n + c] * L[r * n + r]
            for k in range(r + 1, n):
                s -= U[r * n + k] * out[k * n + c]
            out[r * n + c] = s


@procedure
def invert_body(M: "float[36]", inverted: "float[36]", inverse: "float[6, 6]") -> None:
    """Write the inverse of a free body's mass matrix, unless it is the last ``inverted`` one."""
    differs = abs(view(M, 0, 6) - view(inverted, 0, 6))
    for r in range(1, 6):
        differs += abs(view(M, 6 * r, 6) - view(inverted, 6 * r, 6))
    if sum_of_six(differs) == 0.0:
        return
    invert_six(M, inverse)
    for r in range(6):
        row = view(inverted, 6 * r, 6)
        row[:6] = view(M, 6 * r, 6)


@procedure
def begin_responses(problem: Problem, work: Work, island: int) -> bool:
    """Set velocities to ``free`` and invert the mass matrices; False for trees of several nodes."""
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        a = work.order[work.island_node[n]]
        count = problem.node_count[a]
        if problem.node_parent[a] >= 0:
            return False
        first = problem.node_first[a]
        at = problem.block_at[problem.node_blocks_first[a]]
        if count == 6:
            six = view(work.v, first, 6)
            six[:6] = view(problem.free, first, 6)
            invert_body(
                view(problem.M, at, 36), view(work.inverted, at, 36), view(work.inverses, at, 6, 6)
            )
            continue
        for i in range(first, first + count):
            work.v[i] = problem.free[i]
        invert_block(view(problem.M, at), count, view(work.inverses, at))
    return True


@procedure(inline=True)
def respond_as_before(work: Work, g: int, lam: "float[3]") -> None:
    """Add a free-body contact's velocity response to its impulses, by cached responses."""
    spot = work.spot[g]
    six = view(work.v, spot[1], 6)
    for r in range(3):
        six += view(work.AJ, spot[0] + 6 * r, 6) * lam[r]
    if spot[2] >= 0:
        other = view(work.v, spot[3], 6)
        for r in range(3):
            other += view(work.AJ, spot[2] + 6 * r, 6) * lam[r]


@procedure(inline=True)
def respond_in_row(J: "float[6]", inverse: "float[:]", response: "float[6]") -> float:
    """Mobility of a row of a free body; writes the velocity ``response`` to a unit impulse."""
    response[:6] = view(J, 0, 6) @ view(inverse, 0, 6, 6)
    return times_six(response, J)


@procedure
def responses(problem: Problem, work: Work, island: int) -> bool:
    """Compute all groups' velocity responses and Delassus blocks; False for trees of several nodes.

    After those of groups of free bodies come the inverses of the normal and, of three rows, of the
    largest other diagonal. False where trees have several nodes. ``v`` becomes the velocities of
    the impulses. Groups that ``work.responds`` names have kept what this writes.
    """
    if not begin_responses(problem, work, island):
        return False
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        if work.responds[g] == 1:
            respond_as_before(work, g, view(work.lam, first, 3))
            continue
        D = view(work.A, 6 * first)
        clear_matrix(D, dim)
        for e in range(problem.entry_first[g], problem.entry_first[g + 1]):
            a = problem.entry_node[e]
            n = problem.node_count[a]
            J = view(problem.J, problem.entry_at[e])
            T = view(work.AJ, problem.entry_at[e])
            B = view(work.inverses, problem.block_at[problem.node_blocks_first[a]])
            v = view(work.v, problem.node_first[a])
            if dim == 3 and n == 6:  # a free body
                J3 = view(J, 0, 3, 6)
                T3 = view(T, 0, 3, 6)
                D3 = view(D, 0, 3, 3)
                six = view(v, 0, 6)
                for r in range(3):
                    T3[r] = J3[r] @ view(B, 0, 6, 6)
                    D3[r] += J3 @ T3[r]
                    six += T3[r] * work.lam[first + r]
                continue
            if dim == 1 and n == 6:
                D[0] += respond_in_row(view(J, 0, 6), B, view(T, 0, 6))
                six = view(v, 0, 6)
                six += view(T, 0, 6) * work.lam[first]
                continue
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
        if dim == 1:
            D[1] = 1.0 / D[0] if D[0] > 0.0 and is_of_free_bodies(problem, g) else 0.0
        elif dim == 3:
            across = max(D[4], D[8])
            D[9] = 1.0 / D[0] if D[0] > 0.0 and is_of_free_bodies(problem, g) else 0.0
            D[10] = 1.0 / across if across > 0.0 else 0.0  # what cannot slide
            work.responds[g] = 1 if work.spot[g, 0] >= 0 else 0
    return True


@procedure(inline=True)
def contact_impulse(
    problem: Problem,
    work: Work,
    spot: "int[4]",
    target: "float[3]",
    lam: "float[:]",
    D: "float[:]",
    mu: float,
) -> None:
    """Gauss-Seidel update of the impulse of a three-row contact of one or two free bodies."""
    J = view(problem.J, 0)
    T = view(work.AJ, 0)
    at = spot[0]
    both = spot[2] >= 0
    there = spot[2] if both else spot[0]
    x = view(work.v, spot[1], 6)
    y = view(work.v, spot[3] if both else spot[1], 6)
    if both:
        w0 = times_twelve(view(J, at, 6), x, view(J, there, 6), y) + target[0]
        w1 = times_twelve(view(J, at + 6, 6), x, view(J, there + 6, 6), y) + target[1]
        w2 = times_twelve(view(J, at + 12, 6), x, view(J, there + 12, 6), y) + target[2]
    else:
        w0 = times_six(view(J, at, 6), x) + target[0]
        w1 = times_six(view(J, at + 6, 6), x) + target[1]
        w2 = times_six(view(J, at + 12, 6), x) + target[2]
    r = max(-w0 * D[9], -lam[0])
    s = -(w1 + D[3] * r) * D[10]
    t = -(w2 + D[6] * r) * D[10]
    n = lam[0] + r
    p = lam[1] + s
    q = lam[2] + t
    length = p * p + q * q
    most = mu * n
    if length > most * most:
        part = most / sqrt(length)
        p *= part
        q *= part
        s = p - lam[1]
        t = q - lam[2]
    lam[:3] = vector(n, p, q)
    x[0:6] = x + view(T, at, 6) * r + view(T, at + 6, 6) * s + view(T, at + 12, 6) * t
    if both:
        y[0:6] = y + view(T, there, 6) * r + view(T, there + 6, 6) * s + view(T, there + 12, 6) * t


@procedure(inline=True)
def stays_open(
    problem: Problem, work: Work, spot: "int[4]", target: float, lam: "float[:]"
) -> bool:
    """Whether a three-row contact without impulse separates, so that a sweep can skip it."""
    if lam[0] != 0.0 or lam[1] != 0.0 or lam[2] != 0.0:
        return False
    x = view(work.v, spot[1], 6)
    if spot[2] >= 0:
        y = view(work.v, spot[3], 6)
        w = times_twelve(view(problem.J, spot[0], 6), x, view(problem.J, spot[2], 6), y)
    else:
        w = times_six(view(problem.J, spot[0], 6), x)
    return w + target >= 0.0


@procedure(inline=True)
def times_twelve(a: "float[6]", x: "float[6]", b: "float[6]", y: "float[6]") -> float:
    """Sum of two scalar products of 6-vectors, in pairs for vector registers."""
    s = a[0:2] * x[0:2] + a[2:4] * x[2:4] + a[4:6] * x[4:6]
    s = s + (b[0:2] * y[0:2] + b[2:4] * y[2:4] + b[4:6] * y[4:6])
    return s[0] + s[1]


@procedure(inline=True)
def row_impulse(
    problem: Problem, work: Work, g: int, D: float, lam: "float[:]", target: float
) -> None:
    """Gauss-Seidel update of the impulse of a one-row group of one or two free bodies."""
    e = problem.entry_first[g]
    f = problem.entry_first[g + 1] - 1
    at = problem.entry_at[e]
    there = problem.entry_at[f]
    x = view(work.v, problem.node_first[problem.entry_node[e]], 6)
    y = view(work.v, problem.node_first[problem.entry_node[f]], 6)
    if f > e:
        w = times_twelve(view(problem.J, at, 6), x, view(problem.J, there, 6), y) + target
    else:
        w = times_six(view(problem.J, at, 6), x) + target
    n = lam[0] - w * D
    bounded = problem.kind[g] == BOUNDS
    n = min(max(n, problem.low[g]), problem.high[g]) if bounded else max(n, 0.0)
    r = n - lam[0]
    lam[0] = n
    x[0:6] = x + view(work.AJ, at, 6) * r
    if f > e:
        y[0:6] = y + view(work.AJ, there, 6) * r


@procedure
def group_impulse(problem: Problem, work: Work, g: int, lam: "float[:]", D: "float[:]") -> None:
    """Gauss-Seidel update of any group's impulse: normal first, then friction within its limit."""
    w, change = local("float", 2, 6)
    dim = problem.dim[g]
    first = problem.row_first[g]
    row_velocity(problem, g, work.v, w)
    for r in range(dim):
        w[r] += problem.target[first + r]
        change[r] = 0.0
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
        d = 1.0 / d if d > 0.0 else D[0]  # nothing moves sideways
        for r in range(1, dim):
            w[r] = lam[r] - (w[r] + D[r * dim] * change[0]) * d
        most = problem.mu[g] * new
        r = 1
        while r < dim:
            end = disc_end(dim, r)
            size = 0.0
            for k in range(r, end):
                size += w[k] * w[k]
            size = sqrt(size)
            part = 1.0
            if size > most:
                part = most / size
            for k in range(r, end):
                change[k] = part * w[k] - lam[k]
                lam[k] = part * w[k]
            r = end
    change[:dim] = -change[:dim]
    give(problem, work.AJ, g, change, work.v)


@procedure
def sweep(problem: Problem, work: Work, island: int) -> None:
    """One projected Gauss-Seidel pass over all groups of an island."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        D = view(work.A, 6 * first)
        if not D[0] > 0.0:
            continue
        if dim == 1 and D[1] > 0.0:
            row_impulse(problem, work, g, D[1], lam, problem.target[first])
            continue
        if dim == 3 and D[9] > 0.0:
            spot = work.spot[g]
            if stays_open(problem, work, spot, problem.target[first], lam):
                continue
            target = view(problem.target, first, 3)
            contact_impulse(problem, work, spot, target, lam, D, problem.mu[g])
            continue
        group_impulse(problem, work, g, lam, D)
