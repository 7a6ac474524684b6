"""Ends of steps, costs, constraints and merit of knots that are tried."""

import math

from kinetree.codegen.procedures import isfinite, lane_sum, lanes, procedure, view
from kinetree.control.newton.calls import call
from kinetree.control.newton.records import COST, ERRORS, Batch, Knots, WorkerArrays
from kinetree.control.newton.stance import follow_feet, take_contact_steps

FEW, MANY = 1e-100, 1e100  # products of slacks that are far from the ends of numbers


@procedure
def hold(b: Batch, k: Knots, first: int, count: int):
    """Copy sought controls into the held joint forces or controls of steps."""
    for e, j in lanes(count, b.m):
        i = first + e
        k.held[i * b.nf + b.columns[j]] = k.u[i * b.m + j]


@procedure
def begin_steps(b: Batch, w: WorkerArrays, first: int, end: int):
    """Held forces and pre-impact velocities of steps, for trial knots."""
    hold(b, w.tried, first, end - first)
    if b.contacts.count > 0:
        nv, rows = b.nv, b.contacts.rows
        copy(view(w.stance.v, first * nv), view(w.tried.qd, first * nv), (end - first) * nv)
        for i in lanes((end - first) * rows):
            w.stance.impulse[first * rows + i] = 0.0


@procedure
def take_steps(b: Batch, w: WorkerArrays, first: int, count: int):
    """Take ``count`` integration steps from trial knot ``first`` on."""
    s = w.steps
    begin_steps(b, w, first, first + count)
    if b.contacts.count > 0:
        take_contact_steps(b, w, first, count)
        return
    if s.simple == 0:
        call(s.step, first, count)
        return
    if s.forced == 1:
        call(s.force, first, count)
    call(s.accelerate, first, count)
    step_simply(b, w, first, first + count)


@procedure
def step_simply(b: Batch, w: WorkerArrays, first: int, end: int):
    """Ends of semi-implicit Euler steps, from known accelerations."""
    k = w.tried
    for e in lanes((end - first) * b.nv):
        i = first * b.nv + e
        v = k.qd[i] + b.h * k.qdd[i]
        k.v_after[i] = v
        k.q_after[i] = k.q[i] + b.h * v


@procedure
def restore(b: Batch, w: WorkerArrays):
    """Copy the current knots to the trial knots, to take their steps again."""
    x, y, ends = w.now, w.tried, b.steps + 1
    copy(y.q, x.q, ends * b.nq)
    copy(y.qd, x.qd, ends * b.nv)
    copy(y.u, x.u, ends * b.m)
    w.search.fresh = 1


@procedure
def refresh(b: Batch, w: WorkerArrays, start: int, found: "float[:]"):
    """Reset a step's contact memory to forces alone, for warm starts."""
    own = w.tried.start
    at = start * b.memory
    for i in range(b.memory):
        x = found[i]
        own[at + i] = x if i < b.rows and isfinite(x) else 0.0


@procedure
def is_finite(x: "float[:]", first: int, count: int) -> bool:
    """Whether ``count`` numbers from ``first`` on are all finite."""
    total = 0.0
    for i in range(first, first + count):
        total += 0.0 * x[i]
    return isfinite(total)


@procedure
def find_ends(b: Batch, w: WorkerArrays, first: int, end: int):
    """Ends of steps, and gaps to the next knots in the tangent space."""
    k = w.tried
    nq, nv, n = b.nq, b.nv, b.n
    for e in lanes(end - first):
        i = first + e
        fine = is_finite(k.q_after, i * nq, nq) and is_finite(k.v_after, i * nv, nv)
        for j in range(nq):
            k.row[i * nq + j] = k.q_after[i * nq + j] if fine else k.q[(i + 1) * nq + j]
        for j in range(nv):
            v = k.v_after[i * nv + j] - k.qd[(i + 1) * nv + j]
            k.gap[i * n + nv + j] = v if fine else math.inf
        if b.flat == 1:
            for j in range(nv):
                k.gap[i * n + j] = k.row[i * nq + j] - k.q[(i + 1) * nq + j]


@procedure
def open_gaps(b: Batch, w: WorkerArrays):
    """Set gaps to infinity where a step has no finite end."""
    k = w.tried
    for i in lanes(b.steps):
        if not isfinite(k.gap[i * b.n + b.nv]):
            for j in range(b.nv):
                k.gap[i * b.n + j] = math.inf


@procedure
def find_inequalities(b: Batch, k: Knots):
    """Inequality values of a knot (at most 0 when met): bounds, then path constraints."""
    m, nv = b.m, b.nv
    for i, j in lanes(b.steps + 1, b.nb):
        r = b.index[j]
        x = 0.0
        if r < m:
            x = k.u[i * m + r]
        elif r >= m + nv:
            x = k.qd[i * nv + r - m - nv]
        elif b.position[r - m] >= 0:
            x = k.q[i * b.nq + b.position[r - m]]
        k.c[i * b.ni + j] = b.sign[j] * (x - b.value[j])
    for i, j in lanes(b.steps + 1, b.nc):
        k.c[i * b.ni + b.nb + j] = k.path[i * b.nc + j] if i < b.steps else 0.0


@procedure
def evaluate(b: Batch, w: WorkerArrays):
    """Evaluate gaps, costs and constraints of the trial knots."""
    k, s = w.tried, w.steps
    find_ends(b, w, 0, b.steps)
    if b.flat == 0:
        call(s.difference, 0, b.steps)
    hold(b, k, 0, b.steps)
    if s.costly == 1:
        call(s.running, 0, b.steps)
    if s.ending == 1:
        call(s.final, 0, 1)
    if b.contacts.count > 0:
        call(w.stance.tried.terms, b.steps, 1)
    sum_up(b, w)


@procedure
def sum_up(b: Batch, w: WorkerArrays):
    """Sum the costs of evaluated knots, and compute their inequalities."""
    k, s = w.tried, w.steps
    open_gaps(b, w)
    cost = 0.0
    if s.costly == 1:
        for i in lanes(b.steps):
            cost += k.costs[i]
    cost = lane_sum(cost)
    if s.ending == 1:
        cost += k.end[0]
    if b.contacts.count > 0:
        cost += follow_feet(b, w)
    k.sums[COST] = cost
    find_inequalities(b, k)


@procedure
def find_merit(b: Batch, k: Knots, mu: float) -> float:
    """Merit function: cost, barrier, soft violations; also the sum of all errors."""
    theta = 0.0
    for i in lanes(b.steps * b.n):
        theta += abs(k.gap[i])
    for i in lanes(b.ne):
        theta += abs(k.final[i])
    barrier = 0.0
    paid = 0.0
    together = 1.0  # of several slacks, which one logarithm takes
    for i, j in lanes(b.steps + 1, b.ni):
        r = i * b.ni + j
        if b.mask[r] != 0.0:
            theta += abs(k.c[r] + k.s[r] - k.e[r])
            together *= k.s[r]
            if b.soft[r] != 0.0:
                together *= k.e[r]
                paid += b.rho[j] * k.e[r]
            if not (FEW < together < MANY):
                barrier += math.log(together)
                together = 1.0
    barrier += math.log(together)
    k.sums[ERRORS] = lane_sum(theta)
    return k.sums[COST] + lane_sum(paid) - mu * lane_sum(barrier)


@procedure
def copy(x: "float[:]", y: "float[:]", count: int):
    """Copy the first ``count`` numbers of ``y`` to ``x``."""
    for i in lanes(count):
        x[i] = y[i]


@procedure
def accept(b: Batch, w: WorkerArrays):
    """Make the trial knots the current ones."""
    x, y = w.now, w.tried
    T, ends = b.steps, b.steps + 1
    copy(x.q, y.q, ends * b.nq)
    copy(x.qd, y.qd, ends * b.nv)
    copy(x.u, y.u, ends * b.m)
    copy(x.held, y.held, T * b.nf)
    copy(x.total, y.total, T * b.nv)
    copy(x.q_after, y.q_after, T * b.nq)
    copy(x.v_after, y.v_after, T * b.nv)
    copy(x.start, y.start, T * b.memory)
    copy(x.after, y.after, T * b.memory)
    copy(x.path, y.path, T * b.nc)
    copy(x.final, y.final, b.ne)
    copy(x.gap, y.gap, T * b.n)
    copy(x.c, y.c, ends * b.ni)
    copy(x.s, y.s, ends * b.ni)
    copy(x.e, y.e, ends * b.ni)
    if b.contacts.count > 0:
        copy(x.qdd, y.qdd, T * b.nv)
        w.search.fresh = 1
    copy(x.sums, y.sums, 2)
