"""The one loop of steps: those of a call in all motions of a worker, every n-th of them stored.

Worlds, batches of them, ``simulate``, rollouts and environments all come here. Stored are states
and work, and where that is wanted energies, residuals and forces; contacts by the numbers of their
shapes and features, in one list with an index, so that names are made only for those who ask.
"""

from kinetree.codegen.procedures import isfinite, procedure, record
from kinetree.codegen.tied import Code, run
from kinetree.contact.engine.arrivals import overlap_at_end
from kinetree.contact.engine.carrying import (
    ROOM,
    carry,
    copy_numbers,
    inputs_of_call,
    inputs_of_step,
    own_numbers,
)
from kinetree.contact.engine.listing import LATER, list_contacts
from kinetree.contact.engine.motions import Inputs, Motions, Storage, WorkerState
from kinetree.contact.engine.parts import (
    FOUND_FULL,
    IN_FLIGHT,
    NO_CONTROL,
    NO_INERTIA,
    NO_TRUST,
    Parts,
)
from kinetree.contact.engine.step import one_more
from kinetree.contact.newton.problem import Problem

NOT_FINITE, PAUSE, LIST_FULL, ASKS = -10, -11, -12, -13
"""Codes of a state that has not stayed finite, of a worker that has taken the steps that it may
take in one call, of stored lists that are full, and of a controller that has no answer: Python
writes down what is held, and sets ``WorkerState.answered``."""


@procedure
def fly(a: Parts, flight: Code, length: "float[:]", flown: "float[:]") -> int:
    """Take a contact-free step with the smooth integrator; 0, or ``FOUND_FULL`` without a change.

    0, or ``FOUND_FULL``: then the state is as it was.
    """
    s = a.step
    length[0] = s.h
    run(flight)
    s.overlap = overlap_at_end(a)
    if s.overlap < 0.0:
        return FOUND_FULL
    s.q[: a.mechanism.nq] = s.q_e[: a.mechanism.nq]
    s.v[: a.mechanism.nv] = s.v_e[: a.mechanism.nv]
    s.change[: a.mechanism.nv] = s.last[: a.mechanism.nv] = 0.0
    s.time[0] += s.h
    a.total[10] += flown[0]
    a.total[3] = max(a.total[3], s.overlap)
    a.rows.follows = a.rows.contacts = a.balance.known = 0
    a.sleep.calm[: a.sleep.trees] = 0
    return 0


@procedure
def is_finite(a: Parts) -> bool:
    """Whether all positions and velocities of the state are finite."""
    s, m = a.step, a.mechanism
    x = 0.0
    for i in range(m.nq):
        x += s.q[i] * s.q[i]
    for i in range(m.nv):
        x += s.v[i] * s.v[i]
    return isfinite(x)


@procedure
def smallest_pivot(p: Problem, factors: "float[:]") -> float:
    """Smallest pivot of the inertia matrix relative to its diagonal entry, at most 1."""
    least = 1.0
    for i in range(p.nodes):
        n = p.node_count[i]
        at = p.block_at[p.node_blocks_first[i]]
        for k in range(n):
            c = factors[at + k * n + k]
            least = min(least, c * c / p.M[at + k * n + k])
    return least


# --- what is stored ------------------------------------------------------------------------------


@procedure
def due_time(x: Storage, step: int) -> int:
    """Number of the storage time that is due after step number ``step``, or -1 for none."""
    if x.pending >= 0:
        return x.pending
    if x.every > 0 and step <= x.last and (step == x.last or step % x.every == 0):
        return (step + x.every - 1) // x.every
    return -1


@procedure
def store_forces(a: Parts, x: Storage, k: int):
    """Store forces of the last step's contacts in the columns of requested contact names."""
    rows = a.rows
    f = a.found
    for g in range(rows.contacts):
        c = rows.contact[g]
        pair = f.first[c] * a.shapes.count + f.second[c]
        if x.column[pair] >= 0:
            y = x.dense[k * x.columns + x.column[pair] + min(f.feature[c], x.points[pair] - 1)]
            for r in range(3):
                y[r] += rows.scale[g, r] * rows.force[g, r] if r < rows.dim[g] else 0.0


@procedure
def store_record(a: Parts, b: Motions, w: int, k: int) -> int:
    """Store energies, residuals and contact forces as record ``k``; 0, or ``LIST_FULL``."""
    s, m, rows, f, e, x = a.step, a.mechanism, a.rows, a.found, a.balance, b.storage
    n = 0 if b.bare[w] == 1 else rows.contacts
    at = x.first[k]
    if at + n > x.most:
        return LIST_FULL
    x.residuals[k] = a.total[:10]
    if x.pending < 0:
        a.total[:10] = 0.0
        if e.fresh == 0 or b.bare[w] == 1 or a.sleep.asleep > 0:
            run(a.kernels.energy_before)
        x.kinetic[k] = x.potential[k] = 0.0
        for i in range(e.bodies):
            x.kinetic[k] += e.of_motion[i, 0]
            x.potential[k] += e.of_place[i, 0]
    x.joints[k * x.nj : (k + 1) * x.nj] = 0.0
    if b.bare[w] == 0:
        i = copy_numbers(rows.stop_kept, rows.stops, x.joints, k * x.nj, True)
        i = copy_numbers(rows.dry_kept, rows.dry, x.joints, i, True)
        copy_numbers(rows.loop_kept, rows.loops, x.joints, i, True)
    for i in range(m.nv if m.prescribed == 1 else 0):
        x.push[k * m.nv + i] = s.push[i] / s.h if b.bare[w] == 0 else 0.0
    for g in range(n):
        c = rows.contact[g]
        y = x.key[w * x.most + at + g]
        y[0] = f.first[c]
        y[1] = f.second[c]
        y[2] = f.feature[c]
        z = x.force[w * x.most + at + g]
        for j in range(3):
            z[j] = rows.scale[g, j] * rows.force[g, j] if j < rows.dim[g] else 0.0
    x.first[k + b.worlds] = at + n
    return 0


@procedure
def store(a: Parts, b: Motions, w: int, time: int) -> int:
    """Store state, work and forces of motion ``w`` at a storage time; 0, or ``LIST_FULL``."""
    s, m, x = a.step, a.mechanism, b.storage
    k = time * b.worlds + w
    copy_numbers(s.q, m.nq, x.q, k * m.nq, True)
    copy_numbers(s.v, m.nv, x.v, k * m.nv, True)
    x.work[k] = a.total[10]
    if x.columns > 0 and b.bare[w] == 0:
        store_forces(a, x, k)
    return store_record(a, b, w, k) if x.full == 1 else 0


# --- steps ---------------------------------------------------------------------------------------


@procedure
def controls_are_finite(x: Inputs) -> bool:
    """Whether the held controls of a single motion are all finite."""
    total = 0.0
    for i in range(x.timed_size if x.driven == 1 else 0):
        total += abs(x.timed[i])
    return isfinite(total)


@procedure
def begin_motion(a: Parts, b: Motions, t: WorkerState) -> int:
    """Load the motion of a worker into its engine, with inputs; 0, or an error code."""
    w = t.world
    if b.raises == 1 and not controls_are_finite(b.inputs):
        return NO_CONTROL
    if t.loaded == 0:
        code = carry(a, b, w, False)
        if code < 0:
            return code
    t.loaded = 1 if b.worlds == 1 else 0
    own_numbers(a, b.samples, t, w)
    inputs_of_call(a, b.inputs, w)
    a.total[:11] = b.total[w]
    a.since[:12] = b.since[w]
    a.counts[:6] = b.counts[w]
    a.step.overlap = b.overlap[w]
    a.step.time[0] = b.row[w * b.width + a.mechanism.nq + a.mechanism.nv]
    b.ends[w, 3] = 0
    t.step = 0
    x = b.storage
    t.due = 0 if b.done == 0 and x.full == 1 and x.every > 0 and x.pending < 0 else -1
    return 0


@procedure
def stand_still(a: Parts, b: Motions, w: int):
    """Restore the state before the failed step of motion ``w``, without its memory."""
    s, m = a.step, a.mechanism
    at = copy_numbers(s.q, m.nq, b.row, w * b.width, False)
    copy_numbers(s.v, m.nv, b.row, at, False)
    s.change[: m.nv] = s.last[: m.nv] = 0.0
    a.rows.follows = a.rows.known = a.rows.contacts = a.balance.known = 0
    a.sleep.sleeps[: a.sleep.trees] = a.sleep.calm[: a.sleep.trees] = 0


@procedure
def step_motion(a: Parts, b: Motions, t: WorkerState) -> int:
    """Take one step of a worker's motion; 0, or the code of the failure or warning."""
    s, m, w, i = a.step, a.mechanism, t.world, b.inputs
    at = copy_numbers(s.q, m.nq, b.row, w * b.width, True)  # for one that fails
    copy_numbers(s.v, m.nv, b.row, at, True)
    if i.clocked == 1:
        s.time[0] = i.start + (b.done + t.step - i.base) * s.h
    if i.controlled == 1:
        if t.answered == 0:
            run(t.control)
            if t.control.status[0] != 0:
                return ASKS
        t.answered = 0
    else:
        inputs_of_step(a, i, w, t.step)
    t.flew = 0
    code = one_more(a)
    if code == IN_FLIGHT and t.flies == 1:
        code = fly(a, t.flight, t.length, t.flown)
        t.defect = max(t.defect, t.correction[0])
        t.flew = 1
    if code >= 0 and not is_finite(a):
        code = NOT_FINITE
        a.counts[0] -= 1 - t.flew  # what is not taken was judged
    fails = code == NOT_FINITE
    fails = fails or code == NO_INERTIA
    if fails and b.raises == 0:
        b.failed[w] = code
        stand_still(a, b, w)
        return 0
    if code < 0 and code != NO_TRUST:
        return code
    b.bare[w] = t.flew
    b.ends[w, 3] += 1
    if t.step == b.steps - 1:
        copy_numbers(s.began, m.nv, b.last, w * m.nv, True)
    if b.storage.full == 1:
        t.pivot = min(t.pivot, smallest_pivot(a.problem, s.factors))
    return code


@procedure
def end_motion(a: Parts, b: Motions, t: WorkerState) -> int:
    """Write back residuals, contacts and state of a worker's motion; 0, or ``ROOM``."""
    rows, w = a.rows, t.world
    b.total[w] = a.total[:11]
    b.since[w] = a.since[:12]
    b.counts[w] = a.counts[:6]
    b.overlap[w] = a.step.overlap
    asleep = a.sleep.asleep == a.sleep.trees and a.sleep.trees > 0
    if not (asleep and b.ends[w, 2] == a.sleep.trees):  # else contacts are those of before
        b.ends[w, 0] = 0
        for g in range(rows.contacts):
            if rows.force[g, 0] != 0.0:
                b.ends[w, 0] += 1
        b.ends[w, 1] = a.problem.islands if t.flew == 0 else 0
        b.ends[w, 2] = a.sleep.asleep
        b.errors[w, 0] = a.problem.error
        b.errors[w, 1] = a.step.near
        if b.worlds == 1:
            b.listed[w] = LATER
        elif rows.contacts > b.room:
            return ROOM
        elif b.lists == 1:
            list_contacts(a, b, w)
    i = b.inputs
    copy_numbers(a.drives.activation, i.states, i.activation, w * i.states, True)
    if b.worlds > 1:
        return carry(a, b, w, True)
    at = copy_numbers(a.step.q, a.mechanism.nq, b.row, 0, True)  # the rest stays in the engine
    at = copy_numbers(a.step.v, a.mechanism.nv, b.row, at, True)
    copy_numbers(a.step.time, 1, b.row, at, True)
    return 0


@procedure
def advance(a: Parts, b: Motions, t: WorkerState) -> int:
    """Take all steps of the call in a worker's range of motions; 0, or the code that stopped it."""
    while t.world < t.end:
        if t.step < 0:
            code = begin_motion(a, b, t)
            if code < 0:
                return code
        while True:
            if t.due >= 0:
                if store(a, b, t.world, t.due) < 0:
                    return LIST_FULL
                t.due = -1
            if t.step == b.steps:
                break
            if t.left < 1:
                return PAUSE
            t.left -= 1
            if b.failed[t.world] == 0:
                code = step_motion(a, b, t)
                if code < 0:
                    return code
            t.step += 1
            t.due = due_time(b.storage, b.done + t.step)
        if end_motion(a, b, t) < 0:
            return ROOM
        t.world += 1
        t.step = -1
    return 0


@record
class Call:
    """Data that the calls of one worker share."""

    parts: Parts
    motions: Motions
    worker: WorkerState


@procedure
def advance_at_once(c: Call, steps: int, first: int, end: int) -> int:
    """Take all steps of a call in one worker; 0, 1 if a warning is due, or an error code."""
    a, b, t = c.parts, c.motions, c.worker
    b.steps = steps
    t.world = first
    t.end = end
    t.step = -1
    t.left = steps * (end - first)
    code = advance(a, b, t)
    if code < 0:
        return code
    b.done += steps
    untold = a.counts[1] > 0 and a.warned == 0
    return 1 if untold or a.step.turn > a.most_turn else 0
