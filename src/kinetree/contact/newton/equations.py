"""Equations of an island: momentum, velocities of rows, and errors of the laws.

Errors are in units of the square root of energy, so that light and heavy bodies count alike: of
momentum ``|M (v - free) - J' lam| / sqrt(M_ii)``, of the laws ``|lam - P(lam - w / d)| sqrt(d)``
with ``d`` a diagonal of ``J M^-1 J'``. Most groups are contacts of free bodies: blocks of 3 by 6.
"""

from kinetree.codegen.procedures import dot, isfinite, local, procedure, sqrt, view
from kinetree.contact.newton.cones import law, off_law, touches
from kinetree.contact.newton.freedoms import add_multiple, add_rows, largest_scaled
from kinetree.contact.newton.problem import Problem, Work, noted_give, noted_velocity, times_six

__all__ = ["CHECKED", "evaluate", "gradient_size", "laws", "momentum", "take_part_of_step"]


CHECKED = 10.0
"""Errors up to this multiple of the tolerance are evaluated anew, without accumulated rounding."""

WRONG = 1e300
"""Error of numbers that are not finite, which no comparison would find."""


@procedure(inline=True)
def add_block_of_three(
    block: "float[:]", x: "float[:]", y: "float[:]", own: "float[:]", other: "float[:]", both: bool
) -> None:
    """Add ``B y`` of a 3 x 3 block to ``own``, and ``B' x`` to ``other`` if ``both``."""
    for i in range(3):
        s = block[3 * i] * y[0]
        s += block[3 * i + 1] * y[1]
        s += block[3 * i + 2] * y[2]
        own[i] += s
    if both:
        to = view(other, 0, 3)
        to += view(block, 0, 3) * x[0]
        to += view(block, 3, 3) * x[1]
        to += view(block, 6, 3) * x[2]


@procedure(inline=True)
def add_block_of_six(block: "float[:]", x: "float[6]", own: "float[6]") -> None:
    """Add ``B x`` of a symmetric 6 x 6 block to ``own``."""
    even = view(block, 0, 6) * x[0] + view(block, 12, 6) * x[2] + view(block, 24, 6) * x[4]
    odd = view(block, 6, 6) * x[1] + view(block, 18, 6) * x[3] + view(block, 30, 6) * x[5]
    own += even + odd


@procedure
def momentum(problem: Problem, work: Work, island: int, v: "float[:]") -> None:
    """Set ``g = M (v - free)`` of an island: momentum change from the free velocities."""
    g = work.g
    e = work.temp
    first = work.island_nodes_first[island]
    last = work.island_nodes_first[island + 1]
    for n in range(first, last):
        a = work.order[work.island_node[n]]
        fa = problem.node_first[a]
        if problem.node_count[a] == 6:
            change = view(e, fa, 6)
            change[:6] = view(v, fa, 6) - view(problem.free, fa, 6)
            zero = view(g, fa, 6)
            zero[:6] = 0.0
            continue
        for i in range(fa, fa + problem.node_count[a]):
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
            if ca == 6 and b == a:  # free bodies
                add_block_of_six(block, view(x, 0, 6), view(own, 0, 6))
                continue
            if ca == 3 and cb == 3:  # ball joints
                add_block_of_three(block, x, y, own, other, b != a)
                continue
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
    """Largest scaled momentum residual of an island; ``WRONG`` if some number is not finite."""
    most, total = largest_scaled(problem, work, island, work.g, work.metric)
    return most if isfinite(total) else WRONG


@procedure
def evaluate(problem: Problem, work: Work, island: int) -> float:
    """Update row velocities and momentum residual of an island; the largest scaled residual."""
    momentum(problem, work, island, work.v)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        w = view(work.w, first)
        noted_velocity(problem, work, g, work.v, w)
        if problem.dim[g] == 3:
            three = view(w, 0, 3)
            three += view(problem.target, first, 3)
        else:
            w[: problem.dim[g]] += problem.target[first : first + problem.dim[g]]
        noted_give(problem, work, problem.J, g, view(work.lam, first), work.g)
    return gradient_size(problem, work, island)


@procedure
def take_part_of_step(problem: Problem, work: Work, island: int, t: float) -> float:
    """Advance an island's velocities, impulses and residuals linearly by step part ``t``.

    Rounding apart, which adds up: see ``CHECKED``.
    """
    add_multiple(problem, work, island, t, work.dv, work.v)
    add_multiple(problem, work, island, -t, work.g, work.g)
    add_rows(work, island, t, work.dlam, work.lam)
    add_rows(work, island, t, work.dw, work.w)
    return gradient_size(problem, work, island)


@procedure
def laws(problem: Problem, work: Work, island: int) -> "(float, float)":
    """Largest scaled error of an island's contact and bound laws, and largest scaled impulse."""
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
