"""Worlds as rows of numbers, and all steps of a call in them, one world after another.

State and memory of a world are copied into the engine, all its steps are taken, and both are copied
back. What differs between worlds is copied in the same way: shapes and their coefficients, gains of
actuators, and the tables of bodies that the code of the terms reads.
"""

from kinetree.codegen.procedures import procedure, record
from kinetree.codegen.tied import Code
from kinetree.contact.engine.known_contacts import known_again
from kinetree.contact.engine.parts import IN_FLIGHT, NO_INERTIA, Parts
from kinetree.contact.engine.recording import NOT_FINITE, ROOM, fly, is_finite
from kinetree.contact.engine.row_tables import FULL
from kinetree.contact.engine.step import one_more

PAUSE = -11  # a thread has taken the steps that it may take in one call


@record
class Many:
    """Rows of all worlds, and what a call does with them.

    Attributes:
        worlds: how many;  steps: of the call.
        row: state and memory, ``width`` numbers each in the order of ``carry``;  number: what of it
            are integers, ``whole`` each.
        room: contacts that a world can have;  key, kept, ended, spot, bent: rows as in ``Rows``.
        failed: 0, or the code of why the world stands still.
        held, held_size, held_world: joint forces, or inputs of forces, during the whole call; from
            where those of a world are to the next, 0 for the same of all.
        timed, timed_size, timed_world, timed_step: likewise, of every step; inputs have them first.
        driven: 1 where ``timed`` are controls of actuators.
        pushed: 1 where worlds have their own external forces;  push: wrenches, those of a world
            one after another.
        activation, states: of actuators, and how many.
        gains: 1 where worlds have their own;  gain: gains and biases of ``Actuators``, in turn.
        shaped: 1 where worlds have their own shapes;  shape: friction, restitution, size, radius,
            thin, box and place of all.
        bodies: 1 where worlds have their own inertias, 2 where they have all their own numbers;
            inertia, body, gravity: as in ``model.general.tables``: body has placement, armature and
            dynamics;  joint: armature, damping and stiffness of the variables.
        rough: 1 where worlds have their own levels of dry friction;  level: as ``Rows.dry_level``.
        every: steps between stored states, 0 for none;  q, v, work: stored states;  force: of the
            contacts that scenes of few pairs can have, ``columns`` of them, 0 for none;  column:
            of two shapes, that of the feature 0, or -1;  points: how many they have.
        total: of the call, as ``Parts.total``;  last: velocities before the last step.
        since, counts: of the call, as in ``Parts``;  overlap: at the end of the last step, infinite
            where it is not known.
        ends: contacts with forces, islands, trees asleep, steps taken;  errors: residual, margin.
        listed: how many contacts had rows in the last step;  place: their points, normals, gaps,
            friction, restitution, forces and moments, velocities;  which: shapes, feature, bodies.
    """

    worlds: int
    steps: int
    h: float
    width: int
    whole: int
    row: "float[:]"
    number: "int[:]"
    room: int
    key: "int[:, 3]"
    kept: "float[:, 6]"
    ended: "float[:, 3]"
    spot: "float[:, 3]"
    bent: "float[:, 3]"
    failed: "int[:]"
    held: "float[:]"
    held_size: int
    held_world: int
    timed: "float[:]"
    timed_size: int
    timed_world: int
    timed_step: int
    driven: int
    pushed: int
    push: "float[:, 6]"
    activation: "float[:]"
    states: int
    gains: int
    gain: "float[:, 6]"
    shaped: int
    shape: "float[:, 27]"
    bodies: int
    inertia: "float[:, 10]"
    body: "float[:, 43]"
    gravity: "float[:, 3]"
    joint: "float[:, 3]"
    rough: int
    level: "float[:]"
    every: int
    q: "float[:]"
    v: "float[:]"
    work: "float[:]"
    columns: int
    force: "float[:, 3]"
    column: "int[:]"
    points: "int[:]"
    total: "float[:, 11]"
    since: "float[:, 12]"
    counts: "int[:, 6]"
    overlap: "float[:]"
    last: "float[:]"
    ends: "int[:, 4]"
    errors: "float[:, 2]"
    listed: "int[:]"
    place: "float[:, 18]"
    which: "int[:, 5]"


@record
class Turn:
    """What a thread is at.

    Attributes:
        world, end: the world, and that before which it ends;  step: of the world, -1 before it;
            flew: 1 where nothing was near in the last one.
        left: steps that it may take before it returns, so that it can be interrupted.
        flight: code of a step of an integrator, where nothing is near;  length, flown: its length
            and work.
        inertia, placement, armature, dynamics, gravity: tables that the code of the engine reads.
    """

    world: int
    end: int
    step: int
    left: int
    flew: int
    flight: Code
    flown: "float[:]"
    length: "float[:]"
    inertia: "float[:, 10]"
    placement: "float[:, 12]"
    armature: "float[:, 6]"
    dynamics: "float[:, 25]"
    gravity: "float[:, 3]"


@procedure
def copied(x: "float[:]", n: int, row: "float[:]", at: int, back: bool) -> int:
    """Copy ``n`` numbers from a row, or back into it: where the next ones are."""
    if back:
        row[at : at + n] = x[:n]
    else:
        x[:n] = row[at : at + n]
    return at + n


@procedure
def copied_whole(x: "int[:]", n: int, row: "int[:]", at: int, back: bool) -> int:
    """Copy ``n`` integers from a row, or back into it: where the next ones are."""
    if back:
        row[at : at + n] = x[:n]
    else:
        x[:n] = row[at : at + n]
    return at + n


@procedure
def carry(a: Parts, b: Many, w: int, back: bool) -> int:
    """Put state and memory of a world into the engine, or back; 0, ``FULL`` or ``ROOM``."""
    s = a.step
    m = a.mechanism
    rows = a.rows
    z = a.sleep
    at = copied(s.q, m.nq, b.row, w * b.width, back)
    at = copied(s.v, m.nv, b.row, at, back)
    at = copied(s.time, 1, b.row, at, back)
    at = copied(s.change, m.nv, b.row, at, back)
    at = copied(s.last, m.nv, b.row, at, back)
    at = copied(a.balance.energy, a.problem.trees, b.row, at, back)
    at = copied(rows.stop_kept, rows.stops, b.row, at, back)
    at = copied(rows.dry_kept, rows.dry, b.row, at, back)
    at = copied(rows.loop_kept, rows.loops, b.row, at, back)
    at = copied(rows.loop_ended, rows.loops, b.row, at, back)
    at = copied(z.tau, m.nv, b.row, at, back)
    at = w * b.whole
    if back:
        if rows.known > b.room:
            return ROOM
        b.number[at] = rows.follows
        b.number[at + 1] = a.balance.known
        b.number[at + 2] = rows.known
    else:
        if b.number[at + 2] >= rows.groups_room:
            return FULL
        rows.follows = b.number[at]
        a.balance.known = b.number[at + 1]
        rows.known = b.number[at + 2]
    at = copied_whole(z.sleeps, z.trees, b.number, at + 3, back)
    at = copied_whole(z.pile, z.trees, b.number, at, back)
    at = copied_whole(z.calm, z.trees, b.number, at, back)
    for n in range(rows.known):
        k = w * b.room + n
        if back:
            b.kept[k] = rows.kept[n]
            b.key[k] = rows.key[n]
            b.ended[k] = rows.ended[n]
            b.spot[k] = rows.spot[n]
            b.bent[k] = rows.bent[n]
        else:
            rows.kept[n] = b.kept[k]
            rows.key[n] = b.key[k]
            rows.ended[n] = b.ended[k]
            rows.spot[n] = b.spot[k]
            rows.bent[n] = b.bent[k]
    if not back:
        z.asleep = 0
        for t in range(z.trees):
            z.asleep += z.sleeps[t]
        rows.slot[: rows.slots] = 0
        known_again(rows)
    return 0


@procedure
def own_numbers(a: Parts, b: Many, t: Turn, w: int):
    """Give the engine the shapes, gains and inertias of a world."""
    shapes = a.shapes
    m = a.mechanism
    for i in range(shapes.count if b.shaped == 1 else 0):
        r = b.shape[w * shapes.count + i]
        shapes.friction[i] = r[:3]
        shapes.restitution[i] = r[3]
        shapes.size[i] = r[4:7]
        shapes.radius[i] = r[7]
        shapes.thin[i] = r[8]
        shapes.box[i] = r[9:15]
        shapes.place[i] = r[15:]
    d = a.drives
    for i in range(d.count if b.gains == 1 else 0):
        g = b.gain[w * d.count + i]
        d.gain[i] = g[:3]
        d.bias[i] = g[3:]
    for i in range(a.rows.dry if b.rough == 1 else 0):
        a.rows.dry_level[i] = b.level[w * a.rows.dry + i]
    for i in range(b.states):
        d.activation[i] = b.activation[w * b.states + i]
    for i in range(m.bodies - 1 if b.bodies > 0 else 0):
        t.inertia[i] = b.inertia[w * (m.bodies - 1) + i]
    if b.bodies > 1:
        for i in range(m.bodies - 1):
            y = b.body[w * (m.bodies - 1) + i]
            t.placement[i] = y[:12]
            t.armature[i] = y[12:18]
            t.dynamics[i] = y[18:]
        t.gravity[0] = b.gravity[w]
        for i in range(m.nv):
            z = b.joint[w * m.nv + i]
            m.armature[i] = z[0]
            m.damping[i] = a.step.own_D[i] = z[1]
            m.stiffness[i] = a.step.own_K[i] = z[2]


@procedure
def inputs_of_step(a: Parts, b: Many, t: Turn, w: int):
    """Joint forces held in a step, and controls of actuators; or inputs of forces."""
    s, m = a.step, a.mechanism
    a.drives.acts = max(b.driven, a.drives.reads)
    for i in range(a.pushes.count if b.pushed == 1 else 0):
        a.pushes.wrench[i] = b.push[w * a.pushes.count + i]
    n = b.timed_size
    at = w * b.timed_world + t.step * b.timed_step
    if b.driven == 1:
        a.drives.u[:n] = b.timed[at : at + n]
        n = 0
    if s.inputs_count > 0:
        s.inputs[:n] = b.timed[at : at + n]
        for i in range(s.inputs_count - n):
            s.inputs[n + i] = b.held[w * b.held_world + i] if i < b.held_size else 0.0
    else:
        for i in range(m.nv):
            s.held[i] = b.timed[at + i] if n > 0 else 0.0
        for i in range(b.held_size):
            s.held[i] += b.held[w * b.held_world + i]


@procedure
def step_world(a: Parts, b: Many, t: Turn) -> int:
    """One step of a world; 0, or the code of why there is none."""
    s = a.step
    m = a.mechanism
    w = t.world
    copied(s.q, m.nq, b.row, w * b.width, True)  # for one that fails
    copied(s.v, m.nv, b.row, w * b.width + m.nq, True)
    inputs_of_step(a, b, t, w)
    t.flew = 0
    code = one_more(a)
    if code == IN_FLIGHT:
        code = fly(a, t.flight, t.length, t.flown)
        t.flew = 1
    if code >= 0 and not is_finite(a):
        b.failed[w] = NOT_FINITE
    elif code == NO_INERTIA:
        b.failed[w] = code
    if b.failed[w] != 0:
        at = copied(s.q, m.nq, b.row, w * b.width, False)
        copied(s.v, m.nv, b.row, at, False)
        s.change[: m.nv] = s.last[: m.nv] = 0.0
        a.rows.follows = a.rows.known = a.rows.contacts = a.balance.known = 0
        a.sleep.sleeps[: a.sleep.trees] = a.sleep.calm[: a.sleep.trees] = 0
    elif code < 0:
        return code
    else:
        b.ends[w, 3] += 1
        if t.step == b.steps - 1:
            for i in range(m.nv):
                b.last[w * m.nv + i] = b.row[w * b.width + m.nq + i]
    return 0


@procedure
def results(a: Parts, b: Many, t: Turn, w: int) -> int:
    """Residuals, forces and contacts of a world after its steps; 0, or ``ROOM``."""
    rows = a.rows
    f = a.found
    b.total[w] = a.total[:11]
    b.since[w] = a.since[:12]
    b.counts[w] = a.counts[:6]
    b.overlap[w] = a.step.overlap
    if a.sleep.asleep == a.sleep.trees and a.sleep.trees > 0 and b.ends[w, 2] == a.sleep.trees:
        return 0  # all slept through it: contacts are those of before
    b.ends[w, 0] = 0
    for g in range(rows.contacts):
        if rows.force[g, 0] != 0.0:
            b.ends[w, 0] += 1
    b.ends[w, 1] = a.problem.islands if t.flew == 0 else 0
    b.ends[w, 2] = a.sleep.asleep
    b.errors[w, 0] = a.problem.error
    b.errors[w, 1] = a.step.near
    if rows.contacts > b.room:
        return ROOM
    b.listed[w] = rows.contacts
    for g in range(rows.contacts):
        c = rows.contact[g]
        x = b.place[w * b.room + g]
        n = b.which[w * b.room + g]
        n[0] = f.first[c]
        n[1] = f.second[c]
        n[2] = f.feature[c]
        n[3] = f.bodies[c, 0]
        n[4] = f.bodies[c, 1]
        x[:3] = f.point[c]
        x[3:6] = f.normal[c]
        x[6] = f.gap[c]
        x[7] = f.friction[c, 0]
        x[8] = f.restitution[c]
        for r in range(6):
            x[9 + r] = rows.scale[g, r] * rows.force[g, r] if r < rows.dim[g] else 0.0
        x[15:] = rows.slip[g]
    return 0


@procedure
def store_forces(a: Parts, b: Many, k: int):
    """Forces of the contacts of the last step, where they are expected."""
    rows = a.rows
    f = a.found
    for g in range(rows.contacts):
        c = rows.contact[g]
        pair = f.first[c] * a.shapes.count + f.second[c]
        if b.column[pair] >= 0:
            x = b.force[k * b.columns + b.column[pair] + min(f.feature[c], b.points[pair] - 1)]
            for r in range(3):
                x[r] += rows.scale[g, r] * rows.force[g, r] if r < rows.dim[g] else 0.0


@procedure
def take_turns(a: Parts, b: Many, t: Turn) -> int:
    """All steps of the call in the worlds of a turn; 0, or the code of lists that are too small."""
    m = a.mechanism
    s = a.step
    while t.world < t.end:
        w = t.world
        if t.step < 0:
            code = carry(a, b, w, False)
            if code < 0:
                return code
            own_numbers(a, b, t, w)
            a.total[:11] = 0.0
            a.since[:12] = 0.0
            a.counts[:6] = 0
            s.overlap = b.overlap[w]
            b.ends[w, 3] = 0
            s.h = b.h
            t.step = 0
        while t.step < b.steps:
            if t.left < 1:
                return PAUSE
            t.left -= 1
            if b.failed[w] == 0:
                code = step_world(a, b, t)
                if code < 0:
                    return code
            t.step += 1
            n = t.step
            if b.every > 0 and (n == b.steps or n % b.every == 0):
                k = (n + b.every - 1) // b.every * b.worlds + w
                copied(s.q, m.nq, b.q, k * m.nq, True)
                copied(s.v, m.nv, b.v, k * m.nv, True)
                b.work[k] = a.total[10]
                if b.columns > 0:
                    store_forces(a, b, k)
        if results(a, b, t, w) < 0 or carry(a, b, w, True) < 0:
            return ROOM
        for i in range(b.states):
            b.activation[w * b.states + i] = a.drives.activation[i]
        t.world += 1
        t.step = -1
    return 0
