"""Steps of one motion in compiled code, every n-th of which is stored: the run of ``simulate``.

Stored are states, work, energies, residuals and forces; contacts by the numbers of their shapes and
features, in one list with an index, so that names are made only for those who ask.
"""

from kinetree.codegen.procedures import isfinite, procedure, record
from kinetree.codegen.tied import Code, run
from kinetree.contact.engine.arrivals import overlap_at_end
from kinetree.contact.engine.parts import FOUND_FULL, IN_FLIGHT, Parts
from kinetree.contact.engine.step import take_steps
from kinetree.contact.newton.problem import Problem

NOT_FINITE, ROOM = -10, -8
"""Codes of a state that has not stayed finite, and of stored lists that are full."""


@record
class Recording:
    """What is stored of a motion, and what has happened since.

    Attributes:
        step: how many were taken;  last: how many a call is to reach;  base: one of them, and
            start: the time at which it begins [s]: so times have no rounding errors that add up.
        every: steps between stored states;  since: steps since the last stored one;  due: 1 where
            the present state is to be stored.
        rows, room: stored states, and how many there is room for;  most: the same of contacts.
        nj: forces of stops, dry friction and loops.
        q, v, joints, drive: of the stored states, one after another;  work: since the start;
            kinetic, potential: energies of the bodies [J].
        residuals: of the steps since the state before: the worst, and sums of energies.
        first: contacts of a state are those from ``first[k]`` to ``first[k + 1]``;  key: their
            shapes and features;  force: along normal and tangents [N].
        total: residuals since the last stored state;  done: work since the start.
        pivot: smallest one of the inertia matrix so far, relative to its diagonal.
        flies: 1 where steps without any row are those of an integrator;  flight: its code, with
            its length, its work and, where it solves equations, its last correction;  defect: the
            largest correction.
        bare: 1 where no force has acted in the last step.
        control: code of a controller, which writes what is held;  controlled: 1 where there is one.
    """

    step: int
    last: int
    base: int
    start: float
    every: int
    since: int
    due: int
    rows: int
    room: int
    most: int
    nj: int
    q: "float[:]"
    v: "float[:]"
    joints: "float[:]"
    drive: "float[:]"
    work: "float[:]"
    kinetic: "float[:]"
    potential: "float[:]"
    residuals: "float[:, 10]"
    first: "int[:]"
    key: "int[:, 3]"
    force: "float[:, 3]"
    total: "float[:]"
    done: float
    pivot: float
    flies: int
    flight: Code
    length: "float[:]"
    flown: "float[:]"
    correction: "float[:]"
    defect: float
    bare: int
    control: Code
    controlled: int


@procedure
def fly(a: Parts, flight: Code, length: "float[:]", flown: "float[:]") -> int:
    """A step of the integrator, after which no contact continues and nothing is calm.

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
def smallest_pivot(p: Problem, factors: "float[:]") -> float:
    """Smallest pivot of the inertia matrix of a step, relative to its diagonal."""
    least = 1.0
    for i in range(p.nodes):
        n = p.node_count[i]
        at = p.block_at[p.node_blocks_first[i]]
        for k in range(n):
            c = factors[at + k * n + k]
            least = min(least, c * c / p.M[at + k * n + k])
    return least


@procedure
def note(a: Parts, r: Recording):
    """Add what the last call of steps has done to what is stored next."""
    for i in range(10):
        summed = i == 5 or i == 6 or i == 7 or i == 9
        r.total[i] = r.total[i] + a.total[i] if summed else max(r.total[i], a.total[i])
    r.done += a.total[10]


@procedure
def put(x: "float[:]", n: int, row: "float[:]", at: int) -> int:
    """Copy ``n`` numbers to a place in a list: where the next ones are."""
    row[at : at + n] = x[:n]
    return at + n


@procedure
def store(a: Parts, r: Recording) -> int:
    """Store the present state, and the forces of the last step; 0, or ``ROOM``."""
    s, m, rows, f, b = a.step, a.mechanism, a.rows, a.found, a.balance
    k = r.rows
    n = 0 if r.bare == 1 else rows.contacts
    at = r.first[k]
    if k == r.room or at + n > r.most:
        return ROOM
    put(s.q, m.nq, r.q, k * m.nq)
    put(s.v, m.nv, r.v, k * m.nv)
    r.work[k] = r.done
    run(a.kernels.energy_before)
    r.kinetic[k] = r.potential[k] = 0.0
    for i in range(b.bodies):
        r.kinetic[k] += b.of_motion[i, 0]
        r.potential[k] += b.of_place[i, 0]
    r.residuals[k] = r.total[:10]
    r.total[:10] = 0.0
    for i in range(r.nj):
        r.joints[k * r.nj + i] = 0.0
    if r.bare == 0:
        i = put(rows.stop_kept, rows.stops, r.joints, k * r.nj)
        i = put(rows.dry_kept, rows.dry, r.joints, i)
        put(rows.loop_kept, rows.loops, r.joints, i)
    for i in range(m.nv):
        r.drive[k * m.nv + i] = s.drive[i] / s.h if r.bare == 0 else 0.0
    for g in range(n):
        c = rows.contact[g]
        x = r.key[at + g]
        x[0] = f.first[c]
        x[1] = f.second[c]
        x[2] = f.feature[c]
        for j in range(3):
            r.force[at + g, j] = rows.scale[g, j] * rows.force[g, j] if j < rows.dim[g] else 0.0
    r.rows = k + 1
    r.first[k + 1] = at + n
    return 0


@procedure
def is_finite(a: Parts) -> bool:
    """Whether the state is."""
    s, m = a.step, a.mechanism
    x = 0.0
    for i in range(m.nq):
        x += s.q[i] * s.q[i]
    for i in range(m.nv):
        x += s.v[i] * s.v[i]
    return isfinite(x)


@procedure
def record_steps(a: Parts, r: Recording) -> int:
    """Take and store steps up to ``last``; a code of why there are fewer, or of ``take_steps``."""
    s = a.step
    notice = 0
    while True:
        if r.due == 1:
            if store(a, r) < 0:
                return ROOM
            r.due = 0
        if r.step == r.last:
            return notice
        s.time[0] = r.start + (r.step - r.base) * s.h
        if r.controlled == 1:
            run(r.control)
        code = take_steps(a, 1, False)
        r.bare = 0
        if code == IN_FLIGHT and r.flies == 1:
            code = fly(a, r.flight, r.length, r.flown)
            r.defect = max(r.defect, r.correction[0])
            r.bare = 1
        if code < 0:
            return code
        notice = max(notice, code)
        note(a, r)
        r.pivot = min(r.pivot, smallest_pivot(a.problem, s.factors))
        r.step += 1
        r.since += 1
        if not is_finite(a):
            return NOT_FINITE
        if r.since == r.every:
            r.since = 0
            r.due = 1
