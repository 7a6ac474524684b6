"""Newton's direction: slacks and multipliers eliminated, then a linear-quadratic problem."""

import math

from kinetree.codegen.procedures import (
    isfinite,
    lane_max,
    lane_sum,
    lanes,
    local,
    procedure,
    unroll,
    view,
)
from kinetree.control.newton.records import Batch, WorkerArrays
from kinetree.control.newton.values import copy
from kinetree.control.riccati import Horizon, along, solve_horizon
from kinetree.control.riccati_team import (
    across,
    add_products,
    all_tiles,
    column_of_tile,
    row_of_tile,
    rows_end,
    solve_horizon_in_team,
)
from kinetree.control.tiles import add_transposed, product, square_form, subtract_square_tiles

PROXIMAL = 1e-7  # inverse penalty of final constraints between updates of their multipliers
PARTS = 1.0, 0.5, 0.1, 0.0  # of second derivatives of steps, until matrices are positive


@procedure
def add_inequalities(b: Batch, w: WorkerArrays, weights: "float[:]", first: int, end: int):
    """Add inequality gradients times ``weights`` to the gradients of knots."""
    if b.nb > 0:
        for e in lanes(end - first):
            g = view(w.gradient, (first + e) * b.size)
            at = (first + e) * b.ni
            for j in range(b.nb):
                g[b.index[j]] += weights[at + j] * b.sign[j]
    if b.nc > 0:
        for k in range(first, min(end, b.steps)):
            A = view(w.path, k * b.nc * b.size)
            x = view(weights, k * b.ni + b.nb)
            add_transposed(view(w.gradient, k * b.size), A, x, b.nc, b.size)


@procedure
def begin_gradient(b: Batch, w: WorkerArrays, first: int, end: int):
    """Initialise the gradients of knots with those of the cost."""
    at = first * b.size
    copy(view(w.gradient, at), view(w.g, at), (end - first) * b.size)


@procedure
def add_final(b: Batch, w: WorkerArrays, scale: float):
    """Add final-constraint gradients times multipliers, and ``scale`` times their values."""
    g = view(w.gradient, b.steps * b.size)
    for c in lanes(b.size):
        for j in range(b.ne):
            g[c] += (w.y[j] + scale * w.now.final[j]) * w.final[j * b.size + c]


@procedure
def find_costates(b: Batch, w: WorkerArrays) -> float:
    """Gradient of the Lagrangian by controls, and costates; returns its largest relative entry.

    Relative to the largest force of the costates, at least 1. Costates are those of motions with
    the feedback of the last iteration: without it, those of motions that fall over grow so much
    from step to step that no gradient looks small. Where all gradients vanish both are the same.
    """
    n, m, size = b.n, b.m, b.size
    begin_gradient(b, w, 0, b.steps + 1)
    add_inequalities(b, w, w.z, 0, b.steps + 1)
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
    """Costate terms of a step: velocities' with positions' after it, and positions' before it.

    The former in ``pull``, the latter added to ``g``.
    """
    nv = x.n // 2
    for i in lanes(nv):
        pull[nv + i] = p[nv + i] + x.h * along(x, k, x.spun, p, i)
        g[i] += along(x, k, x.turned, p, i)


@procedure
def larger(x: float, y: float) -> float:
    """Larger of two numbers; infinite if the second is NaN."""
    return y if y > x else (x if y <= x else math.inf)


@procedure
def eliminate_slacks(b: Batch, w: WorkerArrays, first: int, end: int):
    """Eliminate slacks of inequalities: weights of their squares, multipliers, gradients."""
    x, mu = w.now, w.search.mu
    begin_gradient(b, w, first, end)
    for e in lanes((end - first) * b.ni):
        r = first * b.ni + e
        w.give[r] = w.ratio[r] = w.pull[r] = w.push[r] = 0.0
        if b.mask[r] != 0.0:
            w.give[r] = x.e[r] / w.w[r] if b.soft[r] != 0.0 else 0.0
            off = x.c[r] + mu / w.z[r]
            if b.soft[r] != 0.0:
                off -= mu / w.w[r]
            w.ratio[r] = w.z[r] / (x.s[r] + w.z[r] * w.give[r])
            w.pull[r] = w.ratio[r] * off
            w.push[r] = w.z[r] + w.pull[r]
    add_inequalities(b, w, w.push, first, end)
    if end > b.steps:
        add_final(b, w, 1.0 / PROXIMAL)


@procedure
def mix(b: Batch, w: WorkerArrays, share: float, first: int, end: int):
    """Interpolate between Gauss-Newton and exact second derivatives, in ``mixed``."""
    for e in lanes((end - first) * b.size * b.size):
        r = first * b.size * b.size + e
        w.mixed[r] = w.H[r] + share * (w.exact[r] - w.H[r])


@procedure
def prepare_knots(b: Batch, w: WorkerArrays, first: int, end: int):
    """Linear-quadratic subproblem of some knots, with exact second derivatives if computed."""
    eliminate_slacks(b, w, first, end)
    if b.exact == 1:
        mix(b, w, 1.0, first, end)
    fill_squares(b, w, first, end)


@procedure
def fill_squares(b: Batch, w: WorkerArrays, first: int, end: int):
    """Upper triangles and gradients of the linear-quadratic subproblem's matrices."""
    size, wide = b.size, w.horizon.wide
    all_of_them = w.mixed if b.exact == 1 else w.H
    for k in range(first, end):
        own = view(w.square, k * size * wide)
        H = view(all_of_them, k * size * size)
        for i, c in lanes(size, size):
            own[i * wide + c] = H[i * size + c]
        fill_diagonal(b, w, k, own)
        if k < b.steps:
            add_path(b, w, k, own)


@procedure
def prepare_knots_in_team(b: Batch, w: WorkerArrays, first: int, end: int):
    """``prepare_knots`` without second derivatives, each tile of a matrix by a lane."""
    x, size, wide = w.horizon, b.size, w.horizon.wide
    y = local("float", 6, 4)
    scaled, rows = view(w.acting, 0), view(w.acting, b.nc * wide)
    eliminate_slacks(b, w, first, end)
    for k in range(first, end):
        own, H = view(w.square, k * size * wide), view(w.H, k * size * size)
        count = gather_path(b, w, k, 1.0) if k < b.steps else 0
        for tile in lanes(all_tiles(x)):
            r, c = row_of_tile(x, tile), column_of_tile(x, tile)
            apart, stop = across(x, r), rows_end(x, r)
            for i in unroll(6):
                for j in unroll(4):
                    y[i, j] = H[min((r + i) * size + c + j * apart, size * size - 1)]
            add_products(y, view(scaled, r), wide, view(rows, c), wide, apart, count, 1.0)
            for i in unroll(6):
                for j in unroll(4):
                    row, column = r + i, c + j * apart
                    if row < stop and row <= column < size:
                        own[row * wide + column] = y[i, j]
        fill_diagonal(b, w, k, own)


@procedure
def fill_diagonal(b: Batch, w: WorkerArrays, k: int, own: "float[:]"):
    """Gradient, damping, and weights of bounds and final constraints of a knot's matrix."""
    size, wide = b.size, w.horizon.wide
    for i in lanes(size):
        own[i * wide + size] = w.gradient[k * size + i]
        own[i * wide + i] += w.search.damping
    for _ in lanes(1):
        for j in range(b.nb):
            r = b.index[j]
            own[r * wide + r] += w.ratio[k * b.ni + j]
    if k == b.steps:
        for j in range(b.ne):
            add_square(own, view(w.final, j * size), size, wide, 1.0 / PROXIMAL)


@procedure
def gather_path(b: Batch, w: WorkerArrays, k: int, sign: float) -> int:
    """Rows of path constraints that count, scaled by their weights and a sign, and as they are."""
    size, wide, count = b.size, w.horizon.wide, 0
    scaled, rows = view(w.acting, 0), view(w.acting, b.nc * wide)
    for j in range(b.nc):
        x = sign * w.ratio[k * b.ni + b.nb + j]
        if x != 0.0:
            row, to = view(w.path, (k * b.nc + j) * size), count * wide
            for c in lanes(size):
                rows[to + c] = row[c]
                scaled[to + c] = x * row[c]
            for c in lanes(wide - size):
                rows[to + size + c] = 0.0
            count += 1
    return count


@procedure
def add_path(b: Batch, w: WorkerArrays, k: int, own: "float[:]"):
    """Add squares of a knot's path-constraint gradients with their weights."""
    size, wide, count = b.size, w.horizon.wide, gather_path(b, w, k, -1.0)
    if count > 0:
        scaled, rows = view(w.acting, 0), view(w.acting, b.nc * wide)
        subtract_square_tiles(own, wide, scaled, rows, count, 0, size)


@procedure
def add_square(H: "float[:]", a: "float[:]", size: int, wide: int, weight: float):
    """Add ``weight a aᵀ`` to a matrix, for a sparse vector ``a``."""
    for i in lanes(size):
        x = weight * a[i]
        if x != 0.0:
            for c in range(i, size):
                H[i * wide + c] += x * a[c]


@procedure
def find_knot_steps(b: Batch, w: WorkerArrays):
    """Solve the subproblem for knot steps and gains; sets ``failed`` if it is not convex.

    Second derivatives of steps are used as far as they leave the problem convex.
    """
    failed = 1
    for t in range(4):
        if t > 0 and b.exact == 1:
            mix(b, w, PARTS[t], 0, b.steps + 1)
            fill_squares(b, w, 0, b.steps + 1)
        if (t == 0 or b.exact == 1) and solve_horizon(w.horizon) == 0:
            failed = 0
            break
    keep_knot_steps(b, w, failed)


@procedure
def find_knot_steps_in_team(b: Batch, w: WorkerArrays):
    """``find_knot_steps`` without second derivatives, in the memory of a team."""
    keep_knot_steps(b, w, solve_horizon_in_team(w.horizon))


@procedure
def keep_knot_steps(b: Batch, w: WorkerArrays, failed: int):
    """Keep the feedback of steps that are finite; where it has failed there are no steps."""
    count, total = (b.steps + 1) * b.size, 0.0
    if failed == 0:
        for i in lanes(count):
            total += 0.0 * w.dz[i]
    w.search.failed = 0 if failed == 0 and isfinite(lane_sum(total)) else 1
    if w.search.failed == 1:
        for i in lanes(count):
            w.dz[i] = 0.0
    else:
        copy(w.kept, w.K, b.steps * b.m * b.n)
    w.search.keep = max(0.99, 1.0 - w.search.mu)


@procedure
def find_direction(b: Batch, w: WorkerArrays):
    """Newton direction of all variables, and largest steps of slacks and multipliers."""
    prepare_knots(b, w, 0, b.steps + 1)
    find_knot_steps(b, w)
    follow_knots(b, w, 0, b.steps + 1)


@procedure
def follow_knots(b: Batch, w: WorkerArrays, first: int, end: int):
    """Steps of slacks and multipliers of some knots, and cost curvature along the step."""
    H = w.mixed if b.exact == 1 else w.H
    for e, j in lanes(end - first, b.ni):
        find_slack_step(b, w, first + e, j)
    for k in range(first, end):
        at = k * b.size
        curve = lane_sum(square_form(view(H, at * b.size), view(w.dz, at), b.size))
        for _ in lanes(1):
            w.curve_of_step[k] = curve
    if end > b.steps:
        for j in lanes(b.ne):
            total = w.now.final[j]
            for c in range(b.size):
                total += w.final[j * b.size + c] * w.dz[b.steps * b.size + c]
            w.dy[j] = total / PROXIMAL


@procedure
def find_slack_step(b: Batch, w: WorkerArrays, k: int, j: int):
    """Steps of an inequality's slack, violation and multiplier at a knot."""
    x, r = w.now, k * b.ni + j
    if b.mask[r] == 0.0:
        w.dlam[r] = w.ds[r] = w.de[r] = 0.0
        w.reach[r] = w.reach_dual[r] = 1.0
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
    w.reach[r] = farthest(x.s[r], ds, w.search.keep)
    w.reach_dual[r] = farthest(w.z[r], dlam, w.search.keep)
    if b.soft[r] != 0.0:
        w.reach[r] = min(w.reach[r], farthest(x.e[r], de, w.search.keep))
        w.reach_dual[r] = min(w.reach_dual[r], farthest(w.w[r], -dlam, w.search.keep))


@procedure
def farthest(x: float, dx: float, keep: float) -> float:
    """Largest part, at most 1, of a step that keeps a number above ``1 - keep`` of itself."""
    return min(1.0, -keep * x / dx) if dx < 0.0 else 1.0
