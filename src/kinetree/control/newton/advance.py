"""Newton's iterations of one sample after the other, from the first knots to the last.

What comes next is a state of the worker, so that steps and their derivatives may also be computed
outside: see ``kinetree.control.outside``.
"""

import math

from kinetree.codegen.procedures import isfinite, lane_max, lane_sum, lanes, procedure, view
from kinetree.control.newton.calls import call
from kinetree.control.newton.derivatives import derive, find_curves
from kinetree.control.newton.direction import find_costates, find_direction
from kinetree.control.newton.records import COST, Batch, Knots, WorkerArrays
from kinetree.control.newton.search import (
    TRIALS,
    adapt_damping,
    begin_motion,
    begin_search,
    deviate,
    end_step,
    feed_back,
    judge_trial,
    move_multipliers,
    roll,
    try_step,
)
from kinetree.control.newton.values import (
    accept,
    begin_steps,
    copy,
    evaluate,
    refresh,
    take_steps,
)

LITTLE = 0.1  # of what the barrier costs: the barrier falls where a step gains less
NEAR = 10.0  # the barrier falls once errors are below this multiple of it
COLD, WARM = 1e-2, 1e-4  # least slacks
NOTHING, BEGIN, DERIVATIVES, CURVES, TRIAL, STEP, END, DERIVE = 0, 1, 2, 3, 4, 5, 6, 7
"""What comes next: nothing, values of the first knots, derivatives, second ones of steps, values of
a trial, one step of the motion at the end, values of that; derivatives, which are needed."""


@procedure
def load(b: Batch, w: WorkerArrays, sample: int):
    """Load a sample into the worker's arrays: knots, arguments and memory."""
    k, ends, s = w.tried, b.steps + 1, sample
    copy(k.q, view(b.q, s * ends * b.nq), ends * b.nq)
    copy(k.qd, view(b.qd, s * ends * b.nv), ends * b.nv)
    copy(k.u, view(b.u, s * ends * b.m), ends * b.m)
    copy(w.given, view(b.given, s * b.ng), b.ng)
    for i in lanes(b.steps * b.memory):
        k.start[i] = 0.0
    for i in lanes(b.steps * b.m * b.n):
        w.kept[i] = 0.0
    w.search.sample = s
    w.search.damping = w.search.penalty = 0.0
    w.search.halted = w.search.accepted = w.search.bold = 0
    w.search.wanted = BEGIN
    w.search.count = b.count[s] = b.converged[s] = 0


@procedure
def begin(b: Batch, w: WorkerArrays):
    """Initialise slacks and multipliers at the first iterate, which becomes the current one."""
    evaluate(b, w)
    begin_slacks(b, w)


@procedure
def begin_slacks(b: Batch, w: WorkerArrays):
    """Initialise slacks and multipliers at the first iterate, whose values are known."""
    k, s = w.tried, w.search.sample
    mu = w.search.mu = b.mu[s] if b.mu[s] > 0.0 else first_barrier(b, k)
    least = WARM if b.warm == 1 else COLD
    for i in lanes(b.steps + 1):
        for j in range(b.ni):
            begin_slack(b, w, i * b.ni + j, b.rho[j], mu, least)
    for j in lanes(b.ne):
        w.y[j] = b.y[s * b.ne + j] if b.warm == 1 else 0.0
    accept(b, w)
    b.history[s * (b.most + 1)] = k.sums[COST]
    w.search.wanted = DERIVATIVES


@procedure
def first_barrier(b: Batch, k: Knots) -> float:
    """Initial barrier parameter from the cost and the soft-limit penalty.

    With less than that penalty, violations begin near zero and allow only short steps.
    """
    count = max(count_held(b), float(b.steps))
    size = min(max(abs(k.sums[COST]) / count, 0.1), 1e3)
    if b.warm == 1:
        return 1e-3 * size
    mu = 0.1 * size
    for j in range(b.ni):
        if isfinite(b.rho[j]):
            mu = max(mu, b.rho[j])
    return mu


@procedure
def count_held(b: Batch) -> float:
    """Number of inequalities that apply, summed over all knots."""
    count = 0.0
    for r in lanes((b.steps + 1) * b.ni):
        count += b.mask[r]
    return lane_sum(count)


@procedure
def begin_slack(b: Batch, w: WorkerArrays, r: int, rho: float, mu: float, least: float):
    """Initial slack, violation and multiplier of an inequality at a knot."""
    k = w.tried
    c = k.c[r]
    k.s[r] = 1.0
    k.e[r] = w.z[r] = 0.0
    w.w[r] = math.inf
    if b.mask[r] == 0.0:
        return
    k.s[r] = max(-c, least)
    if b.soft[r] != 0.0:
        k.e[r] = max(c + k.s[r], mu / rho)
    z = min(mu / k.s[r], 0.5 * rho)
    if b.warm == 1:
        given = b.z[w.search.sample * (b.steps + 1) * b.ni + r]
        z = min(max(given, 1e-2 * z), 0.99 * rho)
    w.z[r] = z
    if b.soft[r] != 0.0:
        w.w[r] = rho - z


@procedure
def complementarity_error(b: Batch, w: WorkerArrays, mu: float) -> float:
    """Largest deviation of the complementarity products ``s z`` and ``e w`` from ``mu``."""
    x, worst = w.now, 0.0
    for r in lanes((b.steps + 1) * b.ni):
        if b.mask[r] != 0.0:
            worst = max(worst, abs(x.s[r] * w.z[r] - mu))
            if b.soft[r] != 0.0:
                worst = max(worst, abs(x.e[r] * w.w[r] - mu))
    return lane_max(worst)


@procedure
def find_gap(b: Batch, w: WorkerArrays) -> float:
    """Largest dynamics gap between knots."""
    gap = 0.0
    for i in lanes(b.steps * b.n):
        gap = max(gap, abs(w.now.gap[i]))
    return lane_max(gap)


@procedure
def find_violation(b: Batch, w: WorkerArrays) -> float:
    """Largest violation of a limit or constraint."""
    beyond = 0.0
    for r in lanes((b.steps + 1) * b.ni):
        if b.mask[r] != 0.0:
            beyond = max(beyond, w.now.c[r])
    for i in lanes(b.ne):
        beyond = max(beyond, abs(w.now.final[i]))
    return lane_max(beyond)


@procedure
def find_error(b: Batch, w: WorkerArrays) -> float:
    """Largest error of constraints and of the Lagrangian's gradient."""
    x, s, gap = w.now, w.search.sample, find_gap(b, w)
    dual = find_costates(b, w)
    b.gap[s] = gap
    b.optimality[s] = dual
    error = max(gap, dual)
    for r in lanes((b.steps + 1) * b.ni):
        if b.mask[r] != 0.0:
            error = max(error, abs(x.c[r] + x.s[r] - x.e[r]))
    for i in lanes(b.ne):
        error = max(error, abs(x.final[i]))
    return lane_max(error)


@procedure
def lower_barrier(b: Batch, w: WorkerArrays, error: float):
    """Reduce the barrier parameter once its subproblem is nearly solved."""
    least = b.tolerance / NEAR
    if b.ni == 0:
        return
    small = (
        w.search.accepted == 1
        and w.search.trials == 0
        and w.search.fall < LITTLE * w.search.mu * count_held(b)
    )
    for _ in range(8):
        off = max(error, complementarity_error(b, w, w.search.mu))
        if not ((small or off <= NEAR * w.search.mu) and w.search.mu > least):
            return
        small = False
        w.search.mu = max(least, min(0.2 * w.search.mu, w.search.mu * math.sqrt(w.search.mu)))
        w.search.penalty = 0.0


@procedure
def examine(b: Batch, w: WorkerArrays):
    """Decide whether derivatives are needed, or the sample ends as it is."""
    s = w.search.sample
    ends = w.search.count >= b.most or w.search.halted == 1
    w.search.wanted = DERIVE
    if ends and w.search.count > 0 and b.lax > 0.0 and find_violation(b, w) <= b.lax:
        b.gap[s] = find_gap(b, w)
        w.search.wanted = STEP


@procedure
def measure(b: Batch, w: WorkerArrays):
    """Compute errors; finish the sample if they are small or iterations are used up."""
    ends = w.search.count >= b.most or w.search.halted == 1
    error = find_error(b, w)
    if max(error, complementarity_error(b, w, 0.0)) <= b.tolerance:
        b.converged[w.search.sample] = 1
        w.search.wanted = STEP
    elif ends:
        w.search.wanted = STEP
    else:
        lower_barrier(b, w, error)
        w.search.wanted = CURVES


@procedure
def derive_and_measure(b: Batch, w: WorkerArrays):
    """Compute derivatives and errors, or begin the final rollout."""
    examine(b, w)
    if w.search.wanted == DERIVE:
        derive(b, w)
        measure(b, w)
    if w.search.wanted == STEP:
        begin_end(b, w)


@procedure
def set_out(b: Batch, w: WorkerArrays):
    """Compute a search direction and the first trial along it."""
    if b.exact == 1:
        find_curves(b, w)
    find_direction(b, w)
    choose_way(b, w)
    if w.search.wanted == TRIAL:
        propose(b, w)
    elif w.search.wanted == STEP:
        begin_end(b, w)


@procedure
def choose_way(b: Batch, w: WorkerArrays):
    """Begin the line search, or end the iteration if no direction was found."""
    begin_search(b, w)
    w.search.wanted = TRIAL
    w.search.fresh = 0
    if w.search.failed == 1:
        w.search.fresh = 1
        end_iteration(b, w)


@procedure
def propose(b: Batch, w: WorkerArrays):
    """Compute the knots of a line-search trial, by rollout if there are contacts."""
    if b.touching == 1:
        roll(b, w)
    else:
        try_step(b, w)


@procedure
def try_again(b: Batch, w: WorkerArrays):
    """Evaluate a trial; accept it, or compute a shorter one."""
    evaluate(b, w)
    judge(b, w)
    if w.search.wanted == TRIAL:
        propose(b, w)
    elif w.search.wanted == STEP:
        begin_end(b, w)


@procedure
def judge(b: Batch, w: WorkerArrays):
    """Accept an evaluated line-search trial, or request a shorter one."""
    if not judge_trial(b, w) and w.search.trials < TRIALS:
        return
    if w.search.accepted == 1:
        accept(b, w)
        move_multipliers(b, w)
    end_iteration(b, w)


@procedure
def end_iteration(b: Batch, w: WorkerArrays):
    """Count the iteration; request new derivatives unless the sample is given up."""
    s = w.search.sample
    w.search.count += 1
    b.count[s] = w.search.count
    b.history[s * (b.most + 1) + w.search.count] = w.now.sums[COST]
    w.search.left -= 1
    w.search.wanted = DERIVATIVES if adapt_damping(w) else STEP


# --- the end -----------------------------------------------------------------------------------


@procedure
def begin_end(b: Batch, w: WorkerArrays):
    """Begin the final rollout with feedback, at its first step."""
    w.search.at = 0
    begin_motion(b, w)
    prepare_step(b, w)


@procedure
def prepare_step(b: Batch, w: WorkerArrays):
    """Compute the controls of one step of the final rollout, with feedback."""
    if b.flat == 0:
        call(w.deviate, w.search.at, 1)
    begin_last_step(b, w, w.search.at, w.search.at + 1)


@procedure
def begin_last_step(b: Batch, w: WorkerArrays, first: int, end: int):
    """Controls of a step of the final rollout, given the deviation on the manifold."""
    deviate(b, w, first)
    feed_back(b, w, first, w.kept, 0.0, 0.0)
    begin_steps(b, w, first, end)
    if b.memory > 0:
        before = max(first - 1, 0)
        if first > 0:
            refresh(b, w, first, view(w.tried.after, before * b.memory))
        else:
            refresh(b, w, first, view(w.now.after, 0))


@procedure
def end_last_step(b: Batch, w: WorkerArrays, first: int, end: int):
    """Set the next knot of the final rollout."""
    end_step(b, w, first, 0.0)


@procedure
def finish_step(b: Batch, w: WorkerArrays):
    """End a step of the final rollout, and begin the next step, or the evaluation."""
    end_step(b, w, w.search.at, 0.0)
    w.search.at += 1
    if w.search.at < b.steps:
        prepare_step(b, w)
        return
    end_motion(b, w)


@procedure
def end_motion(b: Batch, w: WorkerArrays):
    """Request the evaluation of the final rollout."""
    copy(w.tried.start, w.now.start, b.steps * b.memory)
    w.search.wanted = END


@procedure
def finish(b: Batch, w: WorkerArrays):
    """Store the results of a sample that has been evaluated."""
    k, s, ends = w.tried, w.search.sample, b.steps + 1
    copy(k.s, w.now.s, ends * b.ni)
    copy(k.e, w.now.e, ends * b.ni)
    beyond = 0.0
    hard = 0.0
    for r in lanes(ends * b.ni):
        if b.mask[r] != 0.0:
            beyond = max(beyond, k.c[r])
            if b.soft[r] == 0.0:
                hard = max(hard, k.c[r])
    for i in lanes(b.ne):
        beyond = max(beyond, abs(k.final[i]))
        hard = max(hard, abs(k.final[i]))
    gap = 0.0
    for i in lanes(b.steps * b.n):
        gap = max(gap, abs(k.gap[i]))
    gap, hard = lane_max(gap), lane_max(hard)
    if not (gap < b.tolerance and hard < NEAR * b.tolerance):
        b.converged[s] = 0
    b.cost[s] = k.sums[COST]
    b.violation[s] = lane_max(beyond)
    keep(b, w, s)
    w.search.sample = -1
    w.search.wanted = NOTHING


@procedure
def keep(b: Batch, w: WorkerArrays, s: int):
    """Store motion, feedback gains and multipliers of a sample in the batch."""
    k, ends = w.tried, b.steps + 1
    copy(view(b.q, s * ends * b.nq), k.q, ends * b.nq)
    copy(view(b.qd, s * ends * b.nv), k.qd, ends * b.nv)
    copy(view(b.u, s * ends * b.m), k.u, ends * b.m)
    copy(view(b.z, s * ends * b.ni), w.z, ends * b.ni)
    copy(view(b.y, s * b.ne), w.y, b.ne)
    count = b.steps * b.m * b.n
    copy(view(b.K, s * count), w.kept, count)
    count = b.steps * b.contacts.rows
    copy(view(b.f, s * count), w.stance.f, count)
    copy(view(b.impulse, s * count), w.stance.impulse, count)


# --- the loop ----------------------------------------------------------------------------------


@procedure
def take_wanted_steps(b: Batch, w: WorkerArrays):
    """Take the integration steps that the next stage needs, if not taken yet."""
    if w.search.wanted == STEP:
        take_steps(b, w, w.search.at, 1)
        return
    taken = (
        b.touching == 1 if w.search.wanted == TRIAL else w.search.wanted == END and b.memory == 0
    )
    if not taken and (
        w.search.wanted == BEGIN or w.search.wanted == TRIAL or w.search.wanted == END
    ):
        take_steps(b, w, 0, b.steps)


@procedure
def go_on(b: Batch, w: WorkerArrays):
    """Run one stage of a sample's iteration, as requested by the stage before."""
    if b.outside == 0:
        take_wanted_steps(b, w)
    if w.search.wanted == BEGIN:
        begin(b, w)
    elif w.search.wanted == DERIVATIVES:
        derive_and_measure(b, w)
    elif w.search.wanted == CURVES:
        set_out(b, w)
    elif w.search.wanted == TRIAL:
        try_again(b, w)
    elif w.search.wanted == STEP:
        finish_step(b, w)
    elif w.search.wanted == END:
        evaluate(b, w)
        finish(b, w)


@procedure
def advance(b: Batch, w: WorkerArrays, end: int, iterations: int) -> int:
    """Iterate samples up to ``end - 1``, with a budget of iterations; the next sample."""
    w.search.left = iterations
    if w.search.wanted == NOTHING and w.search.at_sample < end:
        load(b, w, w.search.at_sample)
    while w.search.wanted != NOTHING:
        if w.search.wanted == DERIVATIVES and w.search.left <= 0:
            return w.search.at_sample
        go_on(b, w)
        if w.search.wanted == NOTHING:
            w.search.at_sample += 1
            if w.search.at_sample < end:
                load(b, w, w.search.at_sample)
    return w.search.at_sample
