"""Interior-point method for an island: follows the central path where Newton's method flips states.

Complementary pairs have the product ``sigma`` instead of zero: ``lam_n w_n = sigma``, and for
friction ``b o h = sigma e`` in the second-order cone, with ``b = (mu lam_n, lam_t)``,
``h = (h_0, w_t)`` and the Jordan product; ``h_0`` becomes the sliding speed. For ``sigma = 0`` that
is Coulomb's law: no dilation, so the matrix is not symmetric. Bounds have a pair for each side.
The cone is scaled after Nesterov and Todd (1997): a point ``q`` of its unit hyperboloid and a
factor ``theta`` with ``G b = h``, ``G = theta (2 q q' - R)``, ``R = diag(1, -1, ...)``. Steps are
those of Mehrotra (1992): a predictor chooses ``sigma``, a corrector has its products of changes.
Friction by interior points: Acary, Armand, Nguyen, Shpakovych (2023); Howell et al. (2022), Dojo.
The law is not monotone, and in large piles the path turns back: it is then followed by its arc.

``work.changes`` has ``q`` and ``theta``; ``work.inner``, of every group, the velocities ``w+`` at
the lower and ``w-`` at the upper bound (``w = w+ - w-``), or ``w+`` and ``h_0`` of a cone, and
their changes, then two steps that are kept.
"""

from kinetree.codegen.procedures import isfinite, local, procedure, sqrt, vector, view
from kinetree.contact.newton.cholesky import factor, solve_factored
from kinetree.contact.newton.cones import SLIDING, STICKING, tangential
from kinetree.contact.newton.equations import CHECKED, assemble, evaluate, laws, moved
from kinetree.contact.newton.problem import CONE, Problem, Work, give, row_velocity

__all__ = ["begin", "follow"]

LEAST = 1e-3
"""``sigma`` of a step at least, as a part of the mean product."""

SHORT_OF = 0.99
"""Part of the way to the boundary that a step goes."""

AHEAD = 0.9
"""Part of the way to the boundary that a step along the path's arc goes at first."""

OFF = 0.3
"""Distance from the path, in units of ``sigma``, above which the arc is not looked for."""

TURNING = 0.5
"""Part of a predictor's step below which the path is followed by its arc."""

TURNING_FIRST = 0.2
"""The same at the first try: fewer steps, and lost more often."""

WINDING = 40
"""Steps without progress along the arc after which it is given up."""

TO_AND_FRO = 6
"""Changes of direction along the arc, one a step, after which it is given up: it was lost."""

EQUAL = 1e5
"""Stiffness of rows without bounds, in units of 1 / d."""


@procedure
def rubs(problem: Problem, g: int) -> bool:
    """Whether a group is a contact with friction."""
    return problem.kind[g] == CONE and problem.dim[g] > 1 and problem.mu[g] > 0.0


@procedure
def bounds(problem: Problem, g: int) -> "(float, float)":
    """Bounds of the first impulse of a group."""
    if problem.kind[g] == CONE:
        return 0.0, 1e300
    return problem.low[g], problem.high[g]


@procedure
def begin(problem: Problem, work: Work, island: int, size: float) -> None:
    """Bring impulses inside; products become about ``size`` squared."""
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        w = view(work.w, first)
        z = work.inner[g]
        least = size / sqrt(work.delassus[g])
        low, high = bounds(problem, g)
        if low > -1e299 and high < 1e299:
            least = min(least, 0.3 * (high - low))
        lam[0] = min(max(lam[0], low + least), max(high - least, low + least))
        z[0] = 0.0
        z[1] = 0.0
        if low > -1e299:
            z[0] = max(w[0], max(size * size / (lam[0] - low), 0.1 * size * size / least))
        if high < 1e299:
            z[1] = max(-w[0], max(size * size / (high - lam[0]), 0.1 * size * size / least))
        if problem.kind[g] == CONE and dim > 1:
            most = problem.mu[g] * lam[0]
            length = tangential(lam, dim)
            part = 0.9 * most / length if length > 0.9 * most else 1.0
            for r in range(1, dim):
                lam[r] *= part
            if most > 0.0:
                speed = tangential(w, dim)
                own = size * size / least
                z[1] = max(1.1 * sqrt(speed * speed + own * own), size * size / most)


@procedure
def scaling(b0: float, b: "float[:]", h0: float, h: "float[:]", dim: int, q: "float[:]") -> float:
    """``theta``, and ``q``, of a cone."""
    bt = tangential(b, dim)
    ht = tangential(h, dim)
    sb = sqrt(max((b0 - bt) * (b0 + bt), 1e-300))
    sh = sqrt(max((h0 - ht) * (h0 + ht), 1e-300))
    dot = b0 * h0
    for r in range(1, dim):
        dot += b[r] * h[r]
    part = 0.5 / sqrt(max(0.5 + 0.5 * dot / (sb * sh), 0.5))
    q[0] = part * (h0 / sh + b0 / sb)
    for r in range(1, dim):
        q[r] = part * (h[r] / sh - b[r] / sb)
    return sh / sb


@procedure
def scaled(q: "float[:]", root: float, sign: float, x: "float[:]", dim: int, out: "float[:]"):
    """``W x``, or its inverse if ``sign`` is -1; ``W W = G``, ``root`` is that of ``theta``."""
    dot = (q[0] + 1.0) * x[0]
    for r in range(1, dim):
        dot += sign * q[r] * x[r]
    dot /= q[0] + 1.0
    f = root if sign > 0.0 else 1.0 / root
    out[0] = f * ((q[0] + 1.0) * dot - x[0])
    for r in range(1, dim):
        out[r] = f * (sign * q[r] * dot + x[r])


@procedure
def matrices(problem: Problem, work: Work, island: int) -> int:
    """Make and factor the matrix of a step: 0, or 1."""
    q = local("float", 6)
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        z = work.inner[g]
        A = view(work.A, 6 * first)
        for i in range(dim * dim):
            A[i] = 0.0
        A[0] = 1.0 / stiffness(problem, work, g)
        work.state[g] = STICKING
        if rubs(problem, g):
            work.state[g] = SLIDING
            mu = problem.mu[g]
            theta = scaling(mu * lam[0], lam, z[1], view(work.w, first), dim, q)
            work.changes[first, 1] = theta
            for r in range(dim):
                work.changes[first + r, 0] = q[r]
            length = tangential(q, dim)
            less = 2.0 / (1.0 + 2.0 * length * length)
            for r in range(1, dim):
                A[r * dim] = -less * q[0] * q[r] * mu * A[0]
                for m in range(1, dim):
                    A[r * dim + m] = -less * q[r] * q[m] / theta
                A[r * dim + r] += 1.0 / theta
    assemble(problem, work, island, 1)
    problem.factored += 1
    return factor(problem, work, island, 1)


@procedure
def stiffness(problem: Problem, work: Work, g: int) -> float:
    """Change of velocity by which the first impulse of a group resists its own change."""
    low, high = bounds(problem, g)
    x = work.lam[problem.row_first[g]]
    z = work.inner[g]
    s = 0.0
    if low > -1e299:
        s += z[0] / (x - low)
    if high < 1e299:
        s += z[1] / (high - x)
    if low <= -1e299 and high >= 1e299:
        s = work.delassus[g] / EQUAL
    return s


@procedure
def asked_of_three(
    mu: float, lam: "float[:]", w: "float[:]", dlam: "float[:]", dw: "float[:]", y: "float[:]",
    z: "float[8]", A0: float, kept: "float[:, 4]", sigma: float, correct: float,
) -> float:  # fmt: skip
    """The right side of a step for a contact with three rows, in ``dlam`` and ``y``.

    Returns the velocity that the normal impulse asks for; ``kept`` has ``q`` and ``theta``.
    """
    q0 = kept[0, 0]
    q1 = kept[1, 0]
    q2 = kept[2, 0]
    theta = kept[0, 1]
    x0 = mu * lam[0]
    x1 = lam[1]
    x2 = lam[2]
    own = sigma
    y0 = y1 = y2 = 0.0
    if correct > 0.0:
        own -= correct * dlam[0] * z[2]
        less = 1.0 / (q0 + 1.0)
        part = x0 + (q1 * x1 + q2 * x2) * less  # the point itself, scaled
        e0 = (q0 + 1.0) * part - x0
        e1 = q1 * part + x1
        e2 = q2 * part + x2
        d0 = mu * dlam[0]
        part = d0 + (q1 * dlam[1] + q2 * dlam[2]) * less  # the change of impulses
        b0 = (q0 + 1.0) * part - d0
        b1 = q1 * part + dlam[1]
        b2 = q2 * part + dlam[2]
        part = z[3] - (q1 * dw[1] + q2 * dw[2]) * less  # the change of velocities
        s0 = (q0 + 1.0) * part - z[3]
        s1 = dw[1] - q1 * part
        s2 = dw[2] - q2 * part
        p0 = -(b0 * s0 + b1 * s1 + b2 * s2)
        p1 = -(b0 * s1 + s0 * b1)
        p2 = -(b0 * s2 + s0 * b2)
        length = sqrt(e1 * e1 + e2 * e2)
        p0 = (e0 * p0 - e1 * p1 - e2 * p2) / max((e0 - length) * (e0 + length), 1e-300)
        part = 1.0 / e0
        p1 = (p1 - e1 * p0) * part
        p2 = (p2 - e2 * p0) * part
        part = p0 + (q1 * p1 + q2 * p2) * less
        y0 = correct * ((q0 + 1.0) * part - p0)
        y1 = correct * (q1 * part + p1)
        y2 = correct * (q2 * part + p2)
    own /= lam[0]
    force = sqrt(x1 * x1 + x2 * x2)
    part = sigma / max((x0 - force) * (x0 + force), 1e-300)
    y0 += part * x0 - z[1]
    y1 -= part * x1 + w[1]
    y2 -= part * x2 + w[2]
    y[:3] = vector(y0, y1, y2)
    less = 2.0 / (1.0 + 2.0 * (q1 * q1 + q2 * q2))
    c0 = (own - w[0]) * A0
    across = 1.0 / theta
    part = less * ((q1 * y1 + q2 * y2) * across + q0 * mu * c0)
    dlam[:3] = vector(c0, y1 * across - q1 * part, y2 * across - q2 * part)
    return own


@procedure
def direction(problem: Problem, work: Work, island: int, sigma: float, correct: float) -> None:
    """Step towards products ``sigma``, less ``correct`` times those of the changes of the last."""
    q = local("float", 6)
    b = local("float", 6)
    e = local("float", 6)
    c = local("float", 6)
    first_group = work.island_groups_first[island]
    last_group = work.island_groups_first[island + 1]
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        work.dv[work.island_dof[n]] = work.g[work.island_dof[n]]
    for k in range(first_group, last_group):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        w = view(work.w, first)
        dlam = view(work.dlam, first)
        dw = view(work.dw, first)
        y = view(work.y, first)
        z = work.inner[g]
        if dim == 3 and rubs(problem, g):
            kept = view(work.changes, first)
            work.p[first] = asked_of_three(problem.mu[g], lam, w, dlam, dw, y, z,
                                           work.A[6 * first], kept, sigma, correct)  # fmt: skip
            give(problem, problem.J, g, dlam, work.dv)
            continue
        low, high = bounds(problem, g)
        work.p[first] = 0.0
        y[0] = 0.0
        asked = -w[0]
        if low > -1e299:
            work.p[first] = (sigma - correct * dlam[0] * z[2]) / (lam[0] - low)
            asked += work.p[first]
        if high < 1e299:
            y[0] = (sigma + correct * dlam[0] * z[3]) / (high - lam[0])
            asked -= y[0]
        c[0] = asked * work.A[6 * first]
        for r in range(1, dim):
            c[r] = -lam[r]
        if rubs(problem, g):
            mu = problem.mu[g]
            theta = work.changes[first, 1]
            for r in range(dim):
                q[r] = work.changes[first + r, 0]
            for r in range(dim):
                y[r] = 0.0
            if correct > 0.0:
                root = sqrt(theta)
                b[0] = mu * lam[0]
                for r in range(1, dim):
                    b[r] = lam[r]
                scaled(q, root, 1.0, b, dim, e)  # the point itself, scaled
                b[0] = mu * dlam[0]
                for r in range(1, dim):
                    b[r] = dlam[r]
                scaled(q, root, 1.0, b, dim, c)
                new = c[0]
                c[0] = asked * work.A[6 * first]
                b[0] = z[3]
                for r in range(1, dim):
                    b[r] = dw[r]
                add_product(q, root, b, new, c, dim, y)
                quotient(e, y, dim)
                for r in range(dim):
                    b[r] = correct * y[r]
                scaled(q, root, 1.0, b, dim, y)
            force = tangential(lam, dim)
            most = mu * lam[0]
            part = sigma / max((most - force) * (most + force), 1e-300)
            y[0] += part * most - z[1]
            for r in range(1, dim):
                y[r] -= part * lam[r] + w[r]
            length = tangential(q, dim)
            less = 2.0 / (1.0 + 2.0 * length * length)
            along = 0.0
            for r in range(1, dim):
                along += q[r] * y[r]
            for r in range(1, dim):
                c[r] = (y[r] - less * q[r] * along) / theta - less * q[0] * q[r] * mu * c[0]
        for r in range(dim):
            dlam[r] = c[r]
        give(problem, problem.J, g, c, work.dv)
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        work.dv[work.island_dof[n]] = -work.dv[work.island_dof[n]]
    solve_factored(problem, work, island, 1, work.dv)
    for k in range(first_group, last_group):
        g = work.island_group[k]
        dim = problem.dim[g]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        dlam = view(work.dlam, first)
        dw = view(work.dw, first)
        A = view(work.A, 6 * first)
        z = work.inner[g]
        row_velocity(problem, g, work.dv, dw)
        if dim == 3 and rubs(problem, g):
            dlam[:3] -= vector(
                A[0] * dw[0],
                A[3] * dw[0] + A[4] * dw[1] + A[5] * dw[2],
                A[6] * dw[0] + A[7] * dw[1] + A[8] * dw[2],
            )
            z[2] = work.p[first] - z[0] - z[0] / lam[0] * dlam[0]
            z[3] = change_of_speed(problem, work, first, dim, problem.mu[g])
            continue
        for r in range(dim):
            s = 0.0
            for m in range(dim):
                s += A[r * dim + m] * dw[m]
            dlam[r] -= s
        low, high = bounds(problem, g)
        z[2] = 0.0
        z[3] = 0.0
        if low > -1e299:
            z[2] = work.p[first] - z[0] - z[0] / (lam[0] - low) * dlam[0]
        if high < 1e299:
            z[3] = work.y[first] - z[1] + z[1] / (high - lam[0]) * dlam[0]
        if rubs(problem, g):
            z[3] = change_of_speed(problem, work, first, dim, problem.mu[g])


@procedure
def change_of_speed(problem: Problem, work: Work, first: int, dim: int, mu: float) -> float:
    """The change of ``h_0`` of a contact with a step."""
    q0 = work.changes[first, 0]
    both = 2.0 * q0 * q0 - 1.0
    s = 0.0
    for r in range(1, dim):  # with dw, lest h leave its cone by rounding
        s += work.changes[first + r, 0] * (work.y[first + r] - work.dw[first + r])
    s = (2.0 * q0 * s + work.changes[first, 1] * mu * work.dlam[first]) / both
    return work.y[first] - s


@procedure
def add_product(
    q: "float[:]", root: float, h: "float[:]", b0: float, b: "float[:]", dim: int, out: "float[:]"
) -> None:
    """Take the Jordan product of the scaled changes from ``out``; ``b`` has no first number."""
    s = local("float", 6)
    scaled(q, root, -1.0, h, dim, s)
    out[0] -= b0 * s[0]
    for r in range(1, dim):
        out[0] -= b[r] * s[r]
        out[r] -= b0 * s[r] + s[0] * b[r]


@procedure
def quotient(a: "float[:]", x: "float[:]", dim: int) -> None:
    """Solve ``a o y = x``, in place."""
    length = tangential(a, dim)
    dot = a[0] * x[0]
    for r in range(1, dim):
        dot -= a[r] * x[r]
    x[0] = dot / max((a[0] - length) * (a[0] + length), 1e-300)
    for r in range(1, dim):
        x[r] = (x[r] - a[r] * x[0]) / a[0]


@procedure
def until(t: float, x: float, dx: float) -> float:
    """The part of a step at which a positive number becomes zero, ``t`` at most."""
    return min(t, -x / dx) if x + t * dx < 0.0 else t


@procedure
def until_cone(t: float, x0: float, x: "float[:]", dx0: float, dx: "float[:]", dim: int) -> float:
    """The part of a step at which ``(x0, x)`` leaves the cone, ``t`` at most."""
    end = x0 + t * dx0
    rest = end * end
    for r in range(1, dim):
        y = x[r] + t * dx[r]
        rest -= y * y
    if end > 0.0 and rest > 0.0:  # as most do: the cone is convex
        return t
    length = tangential(x, dim)
    a = dx0 * dx0
    b = x0 * dx0
    c = max((x0 - length) * (x0 + length), 0.0)
    for r in range(1, dim):
        a -= dx[r] * dx[r]
        b -= x[r] * dx[r]
    least = until(t, x0, dx0)
    root = b * b - a * c  # of a t^2 + 2 b t + c
    if root >= 0.0:
        s = -b - sqrt(root) if b >= 0.0 else sqrt(root) - b
        if a != 0.0 and s / a > 0.0:
            least = min(least, s / a)
        if s != 0.0 and c / s > 0.0:
            least = min(least, c / s)
    return least


@procedure
def longest(problem: Problem, work: Work, island: int, speeds: bool) -> float:
    """The part of the step, 2 at most, at which the boundary is reached; by ``h`` if ``speeds``."""
    t = 2.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        lam = view(work.lam, first)
        dlam = view(work.dlam, first)
        z = work.inner[g]
        low, high = bounds(problem, g)
        if low > -1e299:
            t = until(until(t, lam[0] - low, dlam[0]), z[0], z[2])
        if high < 1e299:
            t = until(until(t, high - lam[0], -dlam[0]), z[1], z[3])
        if rubs(problem, g):
            mu = problem.mu[g]
            t = until_cone(t, mu * lam[0], lam, mu * dlam[0], dlam, problem.dim[g])
            if speeds:
                w = view(work.w, first)
                t = until_cone(t, z[1], w, z[3], view(work.dw, first), problem.dim[g])
    return t


@procedure
def product(problem: Problem, work: Work, island: int, t: float) -> float:
    """Mean product of the pairs after a part of the step."""
    total = 0.0
    count = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        x = work.lam[first] + t * work.dlam[first]
        z = work.inner[g]
        low, high = bounds(problem, g)
        if low > -1e299:
            total += (x - low) * (z[0] + t * z[2])
            count += 1.0
        if high < 1e299:
            total += (high - x) * (z[1] + t * z[3])
            count += 1.0
        if rubs(problem, g):
            total += problem.mu[g] * x * (z[1] + t * z[3])
            count += 1.0
            for r in range(first + 1, first + problem.dim[g]):
                total += (work.lam[r] + t * work.dlam[r]) * (work.w[r] + t * work.dw[r])
    return total / max(count, 1.0)


@procedure
def open_speed(problem: Problem, work: Work, g: int, sigma: float) -> None:
    """Keep ``h_0``, which nothing else depends on, above the sliding speed after a step."""
    first = problem.row_first[g]
    dim = problem.dim[g]
    most = problem.mu[g] * work.lam[first]
    force = tangential(view(work.lam, first), dim)
    own = 0.3 * sigma
    own *= own / max((most - force) * (most + force), 1e-300)
    for r in range(first + 1, first + dim):
        own += work.w[r] * work.w[r]
    work.inner[g, 1] = max(work.inner[g, 1], sqrt(own))


@procedure
def orientation(problem: Problem, work: Work, island: int) -> float:
    """Sign of the determinant of the matrix that was factored."""
    sign = 1.0
    for n in range(work.island_nodes_first[island], work.island_nodes_first[island + 1]):
        k = work.island_node[n]
        for a in range(problem.node_count[work.order[k]]):
            if work.H[work.panel_at[k] + a * (work.panel_width[k] + 1)] < 0.0:
                sign = -sign
    return sign


@procedure
def keep_step(problem: Problem, work: Work, island: int, place: int) -> None:
    """Keep the step in place 2 or 3 of the columns of ``velocities``, ``impulses``, ``changes``."""
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        work.velocities[i, place] = work.dv[i]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        for r in range(problem.row_first[g], problem.row_first[g] + problem.dim[g]):
            work.impulses[r, place] = work.dlam[r]
            work.changes[r, place] = work.dw[r]
        work.inner[g, 2 * place] = work.inner[g, 2]
        work.inner[g, 2 * place + 1] = work.inner[g, 3]


@procedure
def mix_step(problem: Problem, work: Work, island: int, own: float, a: float, b: float) -> None:
    """Make the step ``own`` times itself, plus ``a`` and ``b`` times those in places 2 and 3."""
    for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
        i = work.island_dof[n]
        kept = work.velocities[i]
        work.dv[i] = own * work.dv[i] + a * kept[2] + b * kept[3]
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        for r in range(problem.row_first[g], problem.row_first[g] + problem.dim[g]):
            kept = work.impulses[r]
            work.dlam[r] = own * work.dlam[r] + a * kept[2] + b * kept[3]
            kept = work.changes[r]
            work.dw[r] = own * work.dw[r] + a * kept[2] + b * kept[3]
        z = work.inner[g]
        z[2] = own * z[2] + a * z[4] + b * z[6]
        z[3] = own * z[3] + a * z[5] + b * z[7]


@procedure
def along(problem: Problem, work: Work, island: int) -> "(float, float)":
    """Product of the tangent, in place 2, with itself and with the step, relative to the point."""
    own = 1.0
    other = 0.0
    for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
        g = work.island_group[k]
        first = problem.row_first[g]
        z = work.inner[g]
        x = work.lam[first]
        dx = work.impulses[first, 2]
        low, high = bounds(problem, g)
        if low > -1e299:
            s = 1.0 / ((x - low) * (x - low))
            own += s * dx * dx + z[4] * z[4] / (z[0] * z[0])
            other += s * dx * work.dlam[first] + z[4] * z[2] / (z[0] * z[0])
        if high < 1e299:
            s = 1.0 / ((high - x) * (high - x))
            own += s * dx * dx + z[5] * z[5] / (z[1] * z[1])
            other += s * dx * work.dlam[first] + z[5] * z[3] / (z[1] * z[1])
        if rubs(problem, g):
            most = problem.mu[g] * x
            s = 1.0 / (z[1] * z[1])
            own += s * z[5] * z[5]
            other += s * z[5] * z[3]
            for r in range(first + 1, first + problem.dim[g]):
                dx = work.impulses[r, 2] / (most * most)
                dw = work.changes[r, 2] * s
                own += dx * work.impulses[r, 2] + dw * work.changes[r, 2]
                other += dx * work.dlam[r] + dw * work.dw[r]
    return own, other


@procedure
def turn(problem: Problem, work: Work, island: int, mean: float, sign: float) -> "(float, float)":
    """A step along the central path where it may turn back: its length, and its ``sigma``.

    The path is followed by its arc (Keller 1977): along the tangent, by which ``sigma`` grows where
    the determinant is negative, and back to the path at right angles to it. The step is that of
    the predictor when this is called.
    """
    keep_step(problem, work, island, 2)
    direction(problem, work, island, mean, 0.0)
    keep_step(problem, work, island, 3)
    mix_step(problem, work, island, 1.0, -1.0, 0.0)  # the tangent: change by mean of sigma
    keep_step(problem, work, island, 2)
    mix_step(problem, work, island, -sign, 0.0, 0.0)
    ahead = AHEAD * min(longest(problem, work, island, True), 1.0)
    mix_step(problem, work, island, 0.0, 0.0, 1.0)
    own, other = along(problem, work, island)
    back = other / own
    if abs(back) > OFF:  # far from the path
        return 0.0, mean
    sigma = max(1.0 - sign * ahead - back, 0.01)
    part = -back - sign * ahead
    mix_step(problem, work, island, 1.0, part, 0.0)
    t = min(SHORT_OF * longest(problem, work, island, True), 1.0)
    direction(problem, work, island, sigma * mean, 1.0)  # with products of changes
    mix_step(problem, work, island, 1.0, 1.0 - sigma, -1.0)
    own, other = along(problem, work, island)
    mix_step(problem, work, island, 1.0, part - other / own, 1.0)
    length = min(SHORT_OF * longest(problem, work, island, True), 1.0)
    if length < t:
        mix_step(problem, work, island, 0.0, part, 1.0)
        length = t
    return length, sigma * mean


@procedure
def follow(
    problem: Problem, work: Work, island: int, forces: float, enough: float, most: int, arcs: int
) -> "(int, float)":
    """Steps until the relative error is ``enough``, at most so many: how many, and the error.

    With ``arcs`` the path is followed also where it turns back; 2: wherever steps are short.
    """
    turning = TURNING if arcs > 1 else TURNING_FIRST
    steps = 0
    best = 1e300
    since = 0  # steps without progress
    stuck = 0  # steps of no length, in a row
    turns = 0  # changes of direction, in a row
    last = 1.0
    error = evaluate(problem, work, island)
    while True:
        worst, size = laws(problem, work, island)
        error = max(error, worst) / max(size, forces)
        if steps > 0 and error <= CHECKED * enough:
            error = max(evaluate(problem, work, island), worst) / max(size, forces)
        since += 1
        if error < 0.5 * best:
            best = error
            since = 0
        if error <= enough or steps >= most or not isfinite(error):
            return steps, error
        if since > (WINDING if arcs > 0 else 5):
            return steps, error
        if matrices(problem, work, island) != 0:
            return steps, error
        steps += 1
        direction(problem, work, island, 0.0, 0.0)
        mean = product(problem, work, island, 0.0)
        first = min(longest(problem, work, island, True), 1.0)
        sign = orientation(problem, work, island) if arcs > 0 else 1.0
        turns = turns + 1 if sign != last else 0
        last = sign
        if turns > TO_AND_FRO:
            return steps, error
        blocked = False
        t = 0.0
        if arcs > 0 and (sign < 0.0 or first < turning):
            t, sigma = turn(problem, work, island, mean, sign)
            if t == 0.0:
                mix_step(problem, work, island, 1.0, -1.0, 0.0)  # the predictor again
        if t == 0.0:
            part = product(problem, work, island, first) / mean
            sigma = min(max(part * part * part, LEAST), 1.0) * mean
            direction(problem, work, island, sigma, first if arcs > 0 else 1.0)
            t = min(SHORT_OF * longest(problem, work, island, True), 1.0)
            blocked = t < 0.4
            if blocked:
                t = min(SHORT_OF * longest(problem, work, island, False), 1.0)
        stuck = stuck + 1 if t < 0.01 else 0
        if arcs > 0 and stuck > 4:
            return steps, error
        total = t
        for n in range(work.island_dofs_first[island], work.island_dofs_first[island + 1]):
            total += work.dv[work.island_dof[n]]
        if not isfinite(total):  # at the limit of rounding
            return steps, error
        error = moved(problem, work, island, t)
        for k in range(work.island_groups_first[island], work.island_groups_first[island + 1]):
            g = work.island_group[k]
            z = work.inner[g]
            z[0] += t * z[2]
            z[1] += t * z[3]
            if blocked and rubs(problem, g):
                open_speed(problem, work, g, sigma)
