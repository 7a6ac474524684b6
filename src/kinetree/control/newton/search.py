"""How far to go along a direction: trials, the merit function, and what follows from the step."""

import math

from kinetree.codegen.procedures import isfinite, lane_max, lane_sum, lanes, procedure, view
from kinetree.control.newton.calls import call
from kinetree.control.newton.records import ERRORS, Batch, WorkerArrays
from kinetree.control.newton.values import (
    begin_steps,
    copy,
    find_merit,
    is_finite,
    refresh,
    take_steps,
)

TRIALS = 12  # halvings of a step before its matrices are damped instead
SHORT, FAR = 0.3, 0.5  # parts of a step from which on matrices are damped more, and less
MOST = 1e-3  # damping because of short steps
BOLD = 3  # whole steps in a row that the merit function does not judge, from known multipliers
FIRST, GIVEN_UP = 1e-6, 1e8  # the first damping of matrices, and that at which a sample is given up


@procedure
def limit_step(b: Batch, w: WorkerArrays):
    """Largest steps of slacks and multipliers that keep all of them positive."""
    primal, dual = 1.0, 1.0
    for r in lanes((b.steps + 1) * b.ni):
        primal = min(primal, w.reach[r])
        dual = min(dual, w.reach_dual[r])
    w.search.primal, w.search.dual = -lane_max(-primal), -lane_max(-dual)


@procedure
def find_slope(b: Batch, w: WorkerArrays) -> float:
    """Directional derivative of the merit function; raises its penalty as needed."""
    x, mu = w.now, w.search.mu
    slope, curve = 0.0, 0.0
    for i in lanes((b.steps + 1) * b.size):
        slope += w.g[i] * w.dz[i]
    for k in lanes(b.steps + 1):
        curve += w.curve_of_step[k]
    for k, j in lanes(b.steps + 1, b.ni):
        r = k * b.ni + j
        if b.mask[r] != 0.0:
            slope -= mu * w.ds[r] / x.s[r]
            curve += w.z[r] / x.s[r] * w.ds[r] * w.ds[r]
            if b.soft[r] != 0.0:
                slope += (b.rho[j] - mu / x.e[r]) * w.de[r]
                curve += w.w[r] / x.e[r] * w.de[r] * w.de[r]
    slope = lane_sum(slope)
    curve = lane_sum(curve)
    errors = x.sums[ERRORS]
    if errors > 1e-12:
        w.search.penalty = max(w.search.penalty, (slope + 0.5 * max(curve, 0.0)) / (0.9 * errors))
    return slope


@procedure
def begin_search(b: Batch, w: WorkerArrays):
    """Compute the merit function's value and slope at the start of a line search."""
    limit_step(b, w)
    merit = find_merit(b, w.now, w.search.mu)
    slope = find_slope(b, w)
    errors = w.now.sums[ERRORS]
    w.search.merit = merit + w.search.penalty * errors
    w.search.fall = w.search.penalty * errors - slope
    w.search.alpha = w.search.primal
    w.search.trials = 0
    w.search.accepted = 0


@procedure
def begin_trial(b: Batch, w: WorkerArrays, first: int, end: int):
    """Trial knots after a part of the step, except positions on the manifold."""
    x, y, m, nv = w.now, w.tried, b.m, b.nv
    for e, j in lanes(end - first, m):
        k = first + e
        y.u[k * m + j] = x.u[k * m + j] + w.search.alpha * w.dz[k * b.size + j]
    for e, j in lanes(end - first, nv):
        k = first + e
        d = view(w.dz, k * b.size + m)
        y.qd[k * nv + j] = x.qd[k * nv + j] + w.search.alpha * d[nv + j]
        if b.flat == 1:
            y.q[k * nv + j] = x.q[k * nv + j] + w.search.alpha * d[j]
        else:
            w.lines[k * nv + j] = w.search.alpha * d[j]
    if b.memory > 0:
        for e in lanes(min(end, b.steps) - first):
            k = first + e
            refresh(b, w, k, view(x.after, k * b.memory))
    begin_steps(b, w, first, min(end, b.steps))


@procedure
def try_step(b: Batch, w: WorkerArrays):
    """Trial knots after a part of the step, with gaps between knots."""
    begin_trial(b, w, 0, b.steps + 1)
    if b.flat == 0:
        call(w.move, 0, b.steps + 1)


@procedure
def try_slacks(b: Batch, w: WorkerArrays):
    """Trial slacks and violations: a part of their steps, or the values that fit."""
    x, y = w.now, w.tried
    for r in lanes((b.steps + 1) * b.ni):
        if b.touching == 0:
            y.s[r] = x.s[r] + w.search.alpha * w.ds[r]
            y.e[r] = x.e[r] + w.search.alpha * w.de[r]
        else:
            least = 1.0 - w.search.keep
            y.s[r] = max(-y.c[r], least * x.s[r]) if b.mask[r] != 0.0 else 1.0
            y.e[r] = max(y.c[r] + y.s[r], least * x.e[r]) if b.soft[r] != 0.0 else 0.0


@procedure
def judge_trial(b: Batch, w: WorkerArrays) -> bool:
    """Whether the merit function decreased enough; otherwise the step is halved.

    From multipliers of a solution nearby, whole steps are taken for some iterations: the errors
    that these leave are of second order, and the next step takes them off. The merit function
    would allow only short ones (Maratos), and a plan with few iterations would stay where it was.
    """
    try_slacks(b, w)
    merit = find_merit(b, w.tried, w.search.mu)
    new = merit + w.search.penalty * w.tried.sums[ERRORS]
    whole = w.search.trials == 0
    if new <= w.search.merit - 1e-4 * w.search.alpha * w.search.fall + 1e-12 * (
        1.0 + abs(w.search.merit)
    ):
        w.search.accepted = 1
        if whole:
            w.search.bold = 0
        return True
    if whole and b.warm == 1 and b.touching == 0 and w.search.bold < BOLD and isfinite(new):
        w.search.accepted = 1
        w.search.bold += 1
        return True
    w.search.alpha *= 0.5
    w.search.trials += 1
    return False


# --- motions ---------------------------------------------------------------------------------


@procedure
def deviate(b: Batch, w: WorkerArrays, k: int):
    """Deviation of a trial knot from the current one, except on the manifold."""
    x, y, nv = w.now, w.tried, b.nv
    for j in lanes(nv):
        w.change[b.n * k + nv + j] = y.qd[k * nv + j] - x.qd[k * nv + j]
        if b.flat == 1:
            w.change[b.n * k + j] = y.q[k * nv + j] - x.q[k * nv + j]


@procedure
def feed_back(b: Batch, w: WorkerArrays, k: int, gains: "float[:]", part: float, near: float):
    """Controls of a rollout step: part of the Newton step plus feedback, within limits.

    ``near`` is how much of the distance to a limit must be left.
    """
    x, y, m, n = w.now, w.tried, b.m, b.n
    d = view(w.dz, k * b.size)
    off = view(w.change, k * n)
    for a in lanes(m):
        total = 0.0
        for c in range(n):
            behind = off[c] - part * d[m + c] if part != 0.0 else off[c]
            total += gains[(k * m + a) * n + c] * behind
        if part != 0.0:
            total += part * d[a]
        u = x.u[k * m + a]
        low, high = b.lower[a], b.upper[a]
        if near > 0.0 and isfinite(low):
            low = max(low, low + near * (u - low))
        if near > 0.0 and isfinite(high):
            high = min(high, high + near * (u - high))
        y.u[k * m + a] = min(max(u + total, low), high)


@procedure
def begin_motion(b: Batch, w: WorkerArrays):
    """Begin a rollout at the current first knot."""
    copy(w.tried.q, w.now.q, b.nq)
    copy(w.tried.qd, w.now.qd, b.nv)
    for j in lanes(b.m):
        w.tried.u[b.steps * b.m + j] = w.now.u[b.steps * b.m + j]


@procedure
def end_step(b: Batch, w: WorkerArrays, k: int, rest: float):
    """Next knot of a rollout: the step's end, and ``rest`` of the former gap."""
    x, y, nq, nv = w.now, w.tried, b.nq, b.nv
    fine = is_finite(y.q_after, k * nq, nq) and is_finite(y.v_after, k * nv, nv)
    to = (k + 1) * nq
    for j in lanes(nq):
        y.q[to + j] = y.q_after[k * nq + j] if fine else x.q[to + j]
    for j in lanes(nv):
        y.qd[(k + 1) * nv + j] = y.v_after[k * nv + j] if fine else x.qd[(k + 1) * nv + j]
    for j in lanes(nv):
        if rest == 0.0:
            w.away[j] = 0.0
            continue
        y.qd[(k + 1) * nv + j] -= rest * x.gap[k * b.n + nv + j]
        if not fine:
            y.qd[(k + 1) * nv + j] = math.inf
        if b.flat == 1:
            y.q[to + j] -= rest * x.gap[k * b.n + j]
        else:
            w.away[j] = -rest * x.gap[k * b.n + j]
    if b.flat == 0:
        copy(w.reached, view(y.q, to), nq)


@procedure
def roll(b: Batch, w: WorkerArrays):
    """Trial by rollout: each knot follows from the one before, with reduced gaps.

    Feet that stand on the ground stay there, where knots that move on their own would be pushed
    through it and thrown off.
    """
    begin_motion(b, w)
    for k in range(b.steps):
        if b.flat == 0:
            call(w.deviate, k, 1)
        begin_rolled_step(b, w, k, k + 1)
        take_steps(b, w, k, 1)
        end_rolled_step(b, w, k, k + 1)
        if b.flat == 0:
            call(w.shift, k + 1, 1)


@procedure
def begin_rolled_step(b: Batch, w: WorkerArrays, first: int, end: int):
    """Controls of a rollout step, given the deviation on the manifold."""
    deviate(b, w, first)
    feed_back(b, w, first, w.K, w.search.alpha, 1.0 - w.search.keep)
    if b.memory > 0:
        refresh(b, w, first, view(w.now.after, first * b.memory))
    begin_steps(b, w, first, end)


@procedure
def end_rolled_step(b: Batch, w: WorkerArrays, first: int, end: int):
    """Next knot of a trial rollout, except positions on the manifold."""
    end_step(b, w, first, 1.0 - w.search.alpha)


# --- what follows ------------------------------------------------------------------------------


@procedure
def move_multipliers(b: Batch, w: WorkerArrays):
    """Update multipliers after an accepted step, kept near ``mu / s`` for inequalities."""
    for k, j in lanes(b.steps + 1, b.ni):
        r = k * b.ni + j
        if b.mask[r] == 0.0:
            continue
        change = w.search.dual * w.dlam[r]
        z = w.z[r] + change
        middle = w.search.mu / w.now.s[r]
        moved = min(max(z, 1e-10 * middle), min(1e10 * middle, b.rho[j]))
        if b.soft[r] != 0.0:
            w.w[r] = w.w[r] - change - (moved - z)
        w.z[r] = moved
    for j in lanes(b.ne):
        w.y[j] += w.search.alpha * w.dy[j]


@procedure
def adapt_damping(w: WorkerArrays) -> bool:
    """Adapt the regularisation to the step length; False if it would become too large."""
    damping = w.search.damping
    more = max(10.0 * damping, FIRST)
    if w.search.accepted == 1:
        more = min(more, max(damping, MOST))
        if w.search.alpha >= FAR * w.search.primal:
            w.search.damping = damping / 10.0 if damping > FIRST else 0.0
        elif w.search.alpha < SHORT * w.search.primal:
            w.search.damping = more
    else:
        w.search.damping = more
    return w.search.damping <= GIVEN_UP
