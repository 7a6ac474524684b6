"""Newton's direction: slacks and multipliers eliminated, then a linear-quadratic problem."""

import math

from kinetree.codegen.procedures import isfinite, lane_max, lane_sum, lanes, procedure, view
from kinetree.control.newton.records import Batch, WorkerArrays
from kinetree.control.newton.values import copy
from kinetree.control.riccati import Horizon, along, solve_horizon
from kinetree.control.tiles import add_transposed, product, subtract_square

PROXIMAL = 1e-7  # inverse penalty of final constraints between updates of their multipliers
PARTS = 1.0, 0.5, 0.1, 0.0  # of second derivatives of steps, until matrices are positive


@procedure
def add_inequalities(b: Batch, w: WorkerArrays, weights: "float[:]"):
    """Add the gradient of inequalities times weights to ``gradient``."""
    for k in lanes(b.steps + 1):
        g = view(w.gradient, k * b.size)
        at = k * b.ni
        for j in range(b.nb):
            g[b.index[j]] += weights[at + j] * b.sign[j]
        if k < b.steps:
            for j in range(b.nc):
                x = weights[at + b.nb + j]
                row = view(w.path, (k * b.nc + j) * b.size)
                for c in range(b.size):
                    g[c] += x * row[c]


@procedure
def begin_gradient(b: Batch, w: WorkerArrays):
    """Let ``gradient`` be that of the cost."""
    copy(w.gradient, w.g, (b.steps + 1) * b.size)


@procedure
def add_final(b: Batch, w: WorkerArrays, scale: float):
    """Add the gradient of final constraints times multipliers, and ``scale`` times themselves."""
    g = view(w.gradient, b.steps * b.size)
    for c in lanes(b.size):
        for j in range(b.ne):
            g[c] += (w.y[j] + scale * w.now.final[j]) * w.final[j * b.size + c]


@procedure
def find_costates(b: Batch, w: WorkerArrays) -> float:
    """Gradients of the Lagrangian by controls in ``gradient``, and costates; largest relative one.

    Relative to the largest force of the costates, at least 1. Costates are those of motions with
    the feedback of the last iteration: without it, those of motions that fall over grow so much
    from step to step that no gradient looks small. Where all gradients vanish both are the same.
    """
    n, m, size = b.n, b.m, b.size
    begin_gradient(b, w)
    add_inequalities(b, w, w.z)
    add_final(b, w, 0.0)
    scale = 1.0
    worst = 0.0
    x = w.horizon
    half = b.nv if x.h != 0.0 else 0  # positions follow from velocities
    for e in range(b.steps):
        k = b.steps - 1 - e
        g = view(w.gradient, k * size)
        p = view(w.costates, k * n)
        copy(p, view(w.gradient, (k + 1) * size + m), n)
        pull = view(w.room, 0)
        if half > 0:
            pull_positions(x, k, p, pull, view(g, m))
        else:
            copy(pull, p, n)
        forces = view(w.room, n)
        copy(forces, g, m)
        add_transposed(g, view(w.F, (k * n + half) * size), view(pull, half), n - half, size)
        for c in lanes(m):
            scale = max(scale, abs(g[c] - forces[c]))
            worst = larger(worst, abs(g[c]))
        add_transposed(view(g, m), view(w.kept, k * m * n), g, m, n)
    return lane_max(worst) / lane_max(scale)


@procedure
def pull_positions(x: Horizon, k: int, p: "float[:]", pull: "float[:]", g: "float[:]"):
    """Costates of velocities after a step with those of positions, and what positions before get.

    The former in ``pull``, the latter added to ``g``.
    """
    nv = x.n // 2
    for i in lanes(nv):
        pull[nv + i] = p[nv + i] + x.h * along(x, k, x.spun, p, i)
        g[i] += along(x, k, x.turned, p, i)


@procedure
def larger(x: float, y: float) -> float:
    """The larger of two numbers; infinite if the second is none."""
    return y if y > x else (x if y <= x else math.inf)


@procedure
def eliminate_slacks(b: Batch, w: WorkerArrays):
    """Weights of squares of inequalities, multipliers of no step, and the gradient with them."""
    x, mu = w.now, w.search.mu
    begin_gradient(b, w)
    for k in lanes(b.steps + 1):
        for j in range(b.ni):
            r = k * b.ni + j
            w.give[r] = w.ratio[r] = w.pull[r] = w.push[r] = 0.0
            if b.mask[r] != 0.0:
                w.give[r] = x.e[r] / w.w[r] if b.soft[r] != 0.0 else 0.0
                off = x.c[r] + mu / w.z[r]
                if b.soft[r] != 0.0:
                    off -= mu / w.w[r]
                w.ratio[r] = w.z[r] / (x.s[r] + w.z[r] * w.give[r])
                w.pull[r] = w.ratio[r] * off
                w.push[r] = w.z[r] + w.pull[r]
    add_inequalities(b, w, w.push)
    add_final(b, w, 1.0 / PROXIMAL)


@procedure
def mix(b: Batch, w: WorkerArrays, share: float):
    """A share of second derivatives of steps, the rest by Gauss and Newton, in ``mixed``."""
    for r in lanes((b.steps + 1) * b.size * b.size):
        w.mixed[r] = w.H[r] + share * (w.exact[r] - w.H[r])


@procedure
def fill_squares(b: Batch, w: WorkerArrays):
    """The matrices of the linear-quadratic problem above their diagonals, with gradients."""
    size, wide = b.size, w.horizon.wide
    all_of_them = w.mixed if b.exact == 1 else w.H
    for k in lanes(b.steps + 1):
        own = view(w.square, k * size * wide)
        H = view(all_of_them, k * size * size)
        for i in range(size):
            for c in range(i, size):
                own[i * wide + c] = H[i * size + c]
            own[i * wide + size] = w.gradient[k * size + i]
            own[i * wide + i] += w.search.damping
        for j in range(b.nb):
            r = b.index[j]
            own[r * wide + r] += w.ratio[k * b.ni + j]
        if k < b.steps:
            add_path(b, w, k, own)
        else:
            for j in range(b.ne):
                add_square(own, view(w.final, j * size), size, wide, 1.0 / PROXIMAL)


@procedure
def add_path(b: Batch, w: WorkerArrays, k: int, own: "float[:]"):
    """Add the squares of the path constraints of a knot with their weights."""
    size, wide, count = b.size, w.horizon.wide, 0
    rows = view(w.rows, 0)
    scaled = view(w.rows, b.nc * wide)
    for j in range(b.nc):
        x = w.ratio[k * b.ni + b.nb + j]
        if x != 0.0:
            row = view(w.path, (k * b.nc + j) * size)
            to = count * wide
            for c in range(size):
                rows[to + c] = row[c]
                scaled[to + c] = -x * row[c]
            for c in range(size, wide):
                rows[to + c] = 0.0
            count += 1
    if count > 0:
        subtract_square(own, wide, scaled, rows, count, 0, size)


@procedure
def add_square(H: "float[:]", a: "float[:]", size: int, wide: int, weight: float):
    """Add ``weight a a'``, a being mostly zero."""
    for i in range(size):
        x = weight * a[i]
        if x != 0.0:
            for c in range(i, size):
                H[i * wide + c] += x * a[c]


@procedure
def find_knot_steps(b: Batch, w: WorkerArrays) -> int:
    """Steps of knots with feedback; 0, or 1 where no matrices were positive.

    Second derivatives of steps are used as far as they leave the problem convex.
    """
    for t in range(4):
        share = PARTS[t]
        if b.exact == 0 and share != 0.0:
            continue
        if b.exact == 1:
            mix(b, w, share)
        fill_squares(b, w)
        if solve_horizon(w.horizon) == 0:
            total = 0.0
            for i in lanes((b.steps + 1) * b.size):
                total += 0.0 * w.dz[i]
            return 0 if isfinite(lane_sum(total)) else 1
    return 1


@procedure
def find_direction(b: Batch, w: WorkerArrays):
    """Steps of all variables, and how far slacks and multipliers may go along theirs."""
    eliminate_slacks(b, w)
    w.search.failed = find_knot_steps(b, w)
    if w.search.failed == 1:
        for i in lanes((b.steps + 1) * b.size):
            w.dz[i] = 0.0
    else:
        copy(w.kept, w.K, b.steps * b.m * b.n)
    w.search.keep = max(0.99, 1.0 - w.search.mu)
    w.search.primal = w.search.dual = 1.0
    for k in lanes(b.steps + 1):
        for j in range(b.ni):
            find_slack_step(b, w, k, j)
    w.search.primal, w.search.dual = -lane_max(-w.search.primal), -lane_max(-w.search.dual)
    for j in lanes(b.ne):
        total = w.now.final[j]
        for c in range(b.size):
            total += w.final[j * b.size + c] * w.dz[b.steps * b.size + c]
        w.dy[j] = total / PROXIMAL


@procedure
def find_slack_step(b: Batch, w: WorkerArrays, k: int, j: int):
    """Steps of the slack, the violation and the multiplier of an inequality at a knot."""
    x, r = w.now, k * b.ni + j
    if b.mask[r] == 0.0:
        w.dlam[r] = w.ds[r] = w.de[r] = 0.0
        return
    if j < b.nb:
        way = b.sign[j] * w.dz[k * b.size + b.index[j]]
    else:
        row = view(w.path, (k * b.nc + j - b.nb) * b.size)
        way = product(row, view(w.dz, k * b.size), b.size)
    dlam = w.pull[r] + w.ratio[r] * way  # not from push: what give magnifies has all digits
    de = w.search.mu / w.w[r] - x.e[r] + w.give[r] * dlam if b.soft[r] != 0.0 else 0.0
    ds = -(x.c[r] + x.s[r] - x.e[r]) - way + de
    w.dlam[r] = dlam
    w.de[r] = de
    w.ds[r] = ds
    w.search.primal = min(w.search.primal, farthest(x.s[r], ds, w.search.keep))
    w.search.dual = min(w.search.dual, farthest(w.z[r], dlam, w.search.keep))
    if b.soft[r] != 0.0:
        w.search.primal = min(w.search.primal, farthest(x.e[r], de, w.search.keep))
        w.search.dual = min(w.search.dual, farthest(w.w[r], -dlam, w.search.keep))


@procedure
def farthest(x: float, dx: float, keep: float) -> float:
    """Largest part of a step, at most 1, that leaves a number ``1 - keep`` of itself."""
    return min(1.0, -keep * x / dx) if dx < 0.0 else 1.0
