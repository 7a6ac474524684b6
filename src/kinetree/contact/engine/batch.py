"""Many worlds of one engine in one native call: so many steps of each, worlds over threads.

A world is a row of numbers: its state, and what its last step leaves for the next (``Memory``).
A thread has an engine of its own; it copies a row into it, takes all steps of the call, and copies
the row back. What differs between worlds is copied in the same way: shapes and their coefficients,
gains of actuators, and the tables of bodies that the code of the terms reads. So worlds are the
same to the bit whatever the number of threads. One that fails keeps its last state and is flagged.
"""

from collections.abc import Callable
from itertools import count as counting
from itertools import product
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.loops.language import BODIES, SINGLE
from kinetree.codegen.procedures import isfinite, procedure, record
from kinetree.codegen.runtime.threads import on_threads, threads
from kinetree.contact.contacts import Contacts
from kinetree.contact.engine.engine import ContactForces, Engine, tied_code
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.rows import FULL, known_again
from kinetree.contact.engine.step import IN_FLIGHT, NO_INERTIA, Code, Parts, Step, run, take_steps
from kinetree.model.general.tables import data_of
from kinetree.model.limits import joint_values, position_index

__all__ = ["EngineBatch", "Laws", "drive", "has_constant_arms", "laws_of", "no_laws"]

NOT_FINITE, ROOM = -7, -8
"""Codes of a world whose state has not stayed finite, or that has more contacts than ``room``."""

LEAST = 4  # worlds that a thread takes at a time, at least


@record
class Laws:
    """Actuators with constant moment arms, and the joints that they drive.

    Attributes:
        gain: of the control: value, by length, by velocity;  bias: likewise.
        control: smallest and largest control;  effort: likewise, of the force before the gear.
        state: number of the activation, or -1.
        offset: length where all positions are zero.
        arm_first: arms of an actuator are ``arm[arm_first[k]:arm_first[k + 1]]``.
        arm: joint force for a unit of force;  arm_q, arm_v: position and velocity variable.
        most: of the velocity variables: largest joint force.
    """

    count: int
    nv: int
    gain: "float[:, 3]"
    bias: "float[:, 3]"
    control: "float[:, 2]"
    effort: "float[:, 2]"
    state: "int[:]"
    offset: "float[:]"
    arm_first: "int[:]"
    arm: "float[:]"
    arm_q: "int[:]"
    arm_v: "int[:]"
    most: "float[:]"


def no_laws() -> Laws:
    """No actuators."""
    return Laws(count=0, arm_first=np.zeros(1, dtype=np.int64))


def has_constant_arms(model) -> bool:
    """Whether all actuators drive joints of one variable, or tendons."""
    return not model.couplings and all(
        a.tendon or (a.joint and model.joint[a.joint].nv == model.joint[a.joint].nq == 1)
        for a in model.actuators
    )


def laws_of(model) -> Laws:
    """The actuators of a model as a table."""
    arms, at, n = model.actuation, position_index(model), len(model.actuators)
    used = [np.flatnonzero(arms[:, k]) for k in range(n)]
    joined = np.concatenate([np.zeros(0, dtype=np.int64), *used]).astype(np.int64)
    gears = [arms[i, k] for k in range(n) for i in used[k]]
    offset = [a.gear[0] * model.tendon(a.tendon).offset if a.tendon else 0.0
              for a in model.actuators]  # fmt: skip
    states = np.array([bool(a.activation) for a in model.actuators], dtype=bool)
    most = np.where(model.effort_limits > 0, model.effort_limits, np.inf)

    def table(name, width):
        values = [getattr(a, name) for a in model.actuators]
        return np.array(values, dtype=float).reshape(n, width)

    return Laws(
        count=n, nv=model.nv, gain=table("gain", 3), bias=table("bias", 3),
        control=table("control", 2), effort=table("effort", 2),
        state=np.where(states, np.cumsum(states) - 1, -1).astype(np.int64),
        offset=np.array(offset, dtype=float), arm=np.array(gears, dtype=float),
        arm_first=np.cumsum([0, *map(len, used)]).astype(np.int64),
        arm_q=at[joined].astype(np.int64), arm_v=joined, most=np.array(most, dtype=float),
    )  # fmt: skip


@procedure
def drive(
    a: Laws, q: "float[:]", v: "float[:]", u: "float[:]", activation: "float[:]", tau: "float[:]",
    K: "float[:]", D: "float[:]",
):  # fmt: skip
    """Joint forces, and diagonals of stiffness and damping; see ``algorithms.actuators``."""
    for i in range(a.nv):
        tau[i] = 0.0
        K[i] = 0.0
        D[i] = 0.0
    for k in range(a.count):
        x = min(max(u[k], a.control[k, 0]), a.control[k, 1])
        if a.state[k] >= 0:
            x = activation[a.state[k]]
        l = a.offset[k]
        ld = 0.0
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            l += a.arm[j] * q[a.arm_q[j]]
            ld += a.arm[j] * v[a.arm_v[j]]
        f = (a.gain[k, 0] + a.gain[k, 1] * l + a.gain[k, 2] * ld) * x
        f += a.bias[k, 0] + a.bias[k, 1] * l + a.bias[k, 2] * ld
        stiff = 0.0
        damp = 0.0
        if a.effort[k, 0] < f and f < a.effort[k, 1]:
            stiff = max(-(a.gain[k, 1] * x + a.bias[k, 1]), 0.0)
            damp = max(-(a.gain[k, 2] * x + a.bias[k, 2]), 0.0)
        f = min(max(f, a.effort[k, 0]), a.effort[k, 1])
        for j in range(a.arm_first[k], a.arm_first[k + 1]):
            i = a.arm_v[j]
            tau[i] += a.arm[j] * f
            K[i] += a.arm[j] * a.arm[j] * stiff
            D[i] += a.arm[j] * a.arm[j] * damp
    for i in range(a.nv):
        tau[i] = min(max(tau[i], -a.most[i]), a.most[i])


@record
class Many:
    """Rows of all worlds, and what a call does with them.

    Attributes:
        worlds: how many;  steps: of the call.
        row: state and memory, ``width`` numbers each in the order of ``carry``;  number: what of it
            are integers, ``whole`` each.
        room: contacts that a world can have;  key, kept, ended: so many rows as in ``Rows``.
        failed: 0, or the code of why the world stands still.
        held, held_size, held_world: joint forces, or inputs of forces, during the whole call; from
            where those of a world are to the next, 0 for the same of all.
        timed, timed_size, timed_world, timed_step: likewise, of every step; inputs have them first.
        driven: 1 where ``timed`` are controls of actuators.
        activation, states: of actuators, and how many.
        gains: 1 where worlds have their own;  gain: gains and biases of ``Laws``, in turn.
        shaped: 1 where worlds have their own shapes;  shape: friction, restitution, size, radius,
            thin, box and place of all.
        bodies: 1 where worlds have their own inertias, 2 where they have all numbers of their own;
            inertia, body, gravity: as in ``model.general.tables``: body has placement, armature and
            dynamics;  joint: armature, damping and stiffness of the variables.
        every: steps between stored states, 0 for none;  q, v, work: stored states;  force: of the
            contacts that scenes of few pairs can have, ``columns`` of them, 0 for none;  column:
            of two shapes, that of the feature 0, or -1;  points: how many they have.
        total: of the call, as ``Parts.total``;  last: velocities before the last step.
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
    failed: "int[:]"
    held: "float[:]"
    held_size: int
    held_world: int
    timed: "float[:]"
    timed_size: int
    timed_world: int
    timed_step: int
    driven: int
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
    every: int
    q: "float[:]"
    v: "float[:]"
    work: "float[:]"
    columns: int
    force: "float[:, 3]"
    column: "int[:]"
    points: "int[:]"
    total: "float[:, 11]"
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
        laws: actuators;  state: activations of the world;  control: of its actuators.
        flight: code of a step of an integrator, where nothing is near;  length, flown: its length
            and work.
        inertia, placement, armature, dynamics, gravity: tables that the code of the engine reads.
    """

    world: int
    end: int
    step: int
    flew: int
    laws: Laws
    state: "float[:]"
    control: "float[:]"
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
    for i in range(n):
        if back:
            row[at + i] = x[i]
        else:
            x[i] = row[at + i]
    return at + n


@procedure
def copied_whole(x: "int[:]", n: int, row: "int[:]", at: int, back: bool) -> int:
    """The same of integers."""
    for i in range(n):
        if back:
            row[at + i] = x[i]
        else:
            x[i] = row[at + i]
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
        for r in range(6):
            if back:
                b.kept[k, r] = rows.kept[n, r]
            else:
                rows.kept[n, r] = b.kept[k, r]
        for r in range(3):
            if back:
                b.key[k, r] = rows.key[n, r]
                b.ended[k, r] = rows.ended[n, r]
            else:
                rows.key[n, r] = b.key[k, r]
                rows.ended[n, r] = b.ended[k, r]
    if not back:
        z.asleep = 0
        for t in range(z.trees):
            z.asleep += z.sleeps[t]
        for k in range(rows.slots):
            rows.slot[k] = 0
        known_again(rows)
    return 0


@procedure
def own_numbers(a: Parts, b: Many, t: Turn, w: int):
    """Give the engine the shapes, gains and inertias of a world."""
    shapes = a.shapes
    m = a.mechanism
    for i in range(shapes.count if b.shaped == 1 else 0):
        r = b.shape[w * shapes.count + i]
        for j in range(3):
            shapes.friction[i, j] = r[j]
            shapes.size[i, j] = r[4 + j]
        shapes.restitution[i] = r[3]
        shapes.radius[i] = r[7]
        shapes.thin[i] = r[8]
        for j in range(6):
            shapes.box[i, j] = r[9 + j]
        for j in range(12):
            shapes.place[i, j] = r[15 + j]
    for i in range(t.laws.count if b.gains == 1 else 0):
        g = b.gain[w * t.laws.count + i]
        for j in range(3):
            t.laws.gain[i, j] = g[j]
            t.laws.bias[i, j] = g[3 + j]
    for i in range(b.states):
        t.state[i] = b.activation[w * b.states + i]
    for i in range(m.bodies - 1 if b.bodies > 0 else 0):
        x = b.inertia[w * (m.bodies - 1) + i]
        for j in range(10):
            t.inertia[i, j] = x[j]
    if b.bodies > 1:
        for i in range(m.bodies - 1):
            y = b.body[w * (m.bodies - 1) + i]
            for j in range(12):
                t.placement[i, j] = y[j]
            for j in range(6):
                t.armature[i, j] = y[12 + j]
            for j in range(25):
                t.dynamics[i, j] = y[18 + j]
        for j in range(3):
            t.gravity[0, j] = b.gravity[w, j]
        for i in range(m.nv):
            z = b.joint[w * m.nv + i]
            m.armature[i] = z[0]
            m.damping[i] = z[1]
            m.stiffness[i] = z[2]
            a.step.own_D[i] = z[1]
            a.step.own_K[i] = z[2]


@procedure
def inputs_of_step(s: Step, m: Mechanism, b: Many, t: Turn, w: int):
    """Joint forces of a step, and stiffness and damping of actuators; or inputs of forces."""
    n = b.timed_size
    at = w * b.timed_world + t.step * b.timed_step
    if s.forced == 1:
        for i in range(n):
            s.inputs[i] = b.timed[at + i]
        for i in range(b.held_size):
            s.inputs[n + i] = b.held[w * b.held_world + i]
    elif b.driven == 1:
        for i in range(n):
            t.control[i] = b.timed[at + i]
        drive(t.laws, s.q, s.v, t.control, t.state, s.tau, s.more_K, s.more_D)
        for i in range(m.nv):
            m.stiffness[i] = s.own_K[i] + s.more_K[i]
            m.damping[i] = s.own_D[i] + s.more_D[i]
        for i in range(b.held_size):
            s.tau[i] = b.held[w * b.held_world + i] + s.tau[i]
    else:
        for i in range(m.nv):
            s.tau[i] = b.timed[at + i] if n > 0 else 0.0
        for i in range(b.held_size):
            s.tau[i] += b.held[w * b.held_world + i]


@procedure
def fly(a: Parts, t: Turn):
    """A step of the integrator, after which nothing goes on as it was."""
    s = a.step
    t.flew = 1
    t.length[0] = s.h
    run(t.flight)
    for i in range(a.mechanism.nq):
        s.q[i] = s.q_e[i]
    for i in range(a.mechanism.nv):
        s.v[i] = s.v_e[i]
        s.change[i] = 0.0
        s.last[i] = 0.0
    s.time[0] += s.h
    a.total[10] += t.flown[0]
    a.rows.follows = 0
    a.rows.contacts = 0
    a.balance.known = 0
    for i in range(a.sleep.trees):
        a.sleep.calm[i] = 0


@procedure
def is_finite(s: Step, m: Mechanism) -> bool:
    """Whether the state is."""
    x = 0.0
    for i in range(m.nq):
        x += s.q[i] * s.q[i]
    for i in range(m.nv):
        x += s.v[i] * s.v[i]
    return isfinite(x)


@procedure
def step_world(a: Parts, b: Many, t: Turn) -> int:
    """One step of a world; 0, or the code of why there is none."""
    s = a.step
    m = a.mechanism
    w = t.world
    copied(s.q, m.nq, b.row, w * b.width, True)  # for one that fails
    copied(s.v, m.nv, b.row, w * b.width + m.nq, True)
    inputs_of_step(s, m, b, t, w)
    t.flew = 0
    code = take_steps(a, 1)
    if code == IN_FLIGHT:
        fly(a, t)
        code = 0
    if code >= 0 and not is_finite(s, m):
        b.failed[w] = NOT_FINITE
    elif code == NO_INERTIA:
        b.failed[w] = code
    if b.failed[w] != 0:
        at = copied(s.q, m.nq, b.row, w * b.width, False)
        copied(s.v, m.nv, b.row, at, False)
        for i in range(m.nv):
            s.change[i] = 0.0
            s.last[i] = 0.0
        a.rows.follows = 0
        a.rows.known = 0
        a.rows.contacts = 0
        a.balance.known = 0
        for i in range(a.sleep.trees):
            a.sleep.sleeps[i] = 0
            a.sleep.calm[i] = 0
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
    """What is reported of a world; 0, or ``ROOM``."""
    rows = a.rows
    f = a.found
    for i in range(11):
        b.total[w, i] = a.total[i]
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
        for r in range(3):
            x[r] = f.point[c, r]
            x[3 + r] = f.normal[c, r]
            x[15 + r] = rows.slip[g, r]
        x[6] = f.gap[c]
        x[7] = f.friction[c, 0]
        x[8] = f.restitution[c]
        for r in range(6):
            x[9 + r] = rows.scale[g, r] * rows.force[g, r] if r < rows.dim[g] else 0.0
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
            for i in range(11):
                a.total[i] = 0.0
            b.ends[w, 3] = 0
            s.h = b.h
            t.step = 0
        while t.step < b.steps:
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
        t.world += 1
        t.step = -1
    return 0


# --- Python's side -------------------------------------------------------------------------------


class EngineBatch:
    """Worlds of one model and scene, each with its own state, memory and numbers.

    Args:
        make: makes an engine, one for each thread.
        n: number of worlds.
        laws: actuators whose controls steps take, or None.
        flight: kernel of a step of an integrator for what is far from everything, or None;
            engines are then ``flying``.

    Attributes:
        many: rows of all worlds.
        engine: one of the engines, to ask for names.
    """

    def __init__(self, make: Callable[[], Engine], n: int, laws: Any = None, flight: Any = None):
        self._make, self._laws, self._flight = make, laws or no_laws(), flight
        self._team: list[tuple[Engine, Turn]] = []
        self.engine = self._member(0)[0]
        m = self.engine.mechanism
        self._resistance = m.stiffness.copy(), m.damping.copy()
        e, nv, nq = self.engine, self.engine.tree.nv, self.engine.tree.nq
        trees, rows = e.problem.trees, e.rows
        names = {
            "q": nq, "v": nv, "time": 1, "change": nv, "last": nv, "energy": trees,
            "stop_kept": rows.stops, "dry_kept": rows.dry, "loop_kept": rows.loops,
            "loop_ended": rows.loops, "tau": nv,
        }  # fmt: skip
        width, whole = sum(names.values()), 3 + 3 * trees
        self.many = Many(
            worlds=n, width=width, whole=whole, row=np.zeros(n * width),
            number=np.zeros(n * whole, dtype=np.int64), failed=np.zeros(n, dtype=np.int64),
            total=np.zeros((n, 11)), last=np.zeros(n * nv), ends=np.zeros((n, 4), dtype=np.int64),
            errors=np.zeros((n, 2)), listed=np.zeros(n, dtype=np.int64),
        )  # fmt: skip
        self._have_room(64)
        ends = np.cumsum([0, *names.values()]).tolist()
        row, number = self.many.row.reshape(n, width), self.many.number.reshape(n, whole)
        self._of = {name: row[:, ends[k] : ends[k + 1]] for k, name in enumerate(names)}
        self._whole = {"follows": number[:, 0], "energy_known": number[:, 1], "known": number[:, 2]}
        for k, name in enumerate(("sleeps", "pile", "calm")):
            self._whole[name] = number[:, 3 + k * trees : 3 + (k + 1) * trees]

    def __len__(self):
        return self.many.worlds

    def _member(self, k):
        """The engine of a thread, and what it is at."""
        while len(self._team) <= k:
            e, laws = self._make(), self._laws
            own = {name: getattr(laws, name) for name in Laws.types}
            own |= {"gain": laws.gain.copy(), "bias": laws.bias.copy()}
            length, flown, s = np.zeros(1), np.zeros(1), e.s
            held = s.inputs if s.forced else s.tau
            flight = tied_code(self._flight, s.time, length, s.q, s.v, held, s.q_e, s.v_e, flown)
            states = np.zeros(int(laws.state.max(initial=-1)) + 1)
            turn = Turn(
                step=-1, laws=Laws(**own), state=states, control=np.zeros(laws.count),
                flight=flight, flown=flown, length=length,
                **{name: x for name, x in e.numbers.items() if name in Turn.types},
            )  # fmt: skip
            self._team.append((e, turn))
        return self._team[k]

    @property
    def engines(self) -> list[Engine]:
        """Those of all threads."""
        return [engine for engine, _ in self._team]

    def _have_room(self, room):
        """Lists for so many contacts of every world."""
        b, old = self.many, self.many.room
        for name, (kind, width) in _OF_CONTACTS.items():
            new = np.zeros((b.worlds, room, width), dtype=kind)
            new[:, :old] = getattr(b, name).reshape(b.worlds, old, width)
            setattr(b, name, new.reshape(-1, width))
        b.room = room

    # --- states ------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Positions, (n, nq): a copy."""
        return self._of["q"][:, self.engine.of_q]

    @property
    def qd(self) -> Array:
        """Velocities, (n, nv): a copy."""
        return self._of["v"][:, self.engine.of_v]

    @property
    def time(self) -> Array:
        """Of all worlds [s], (n,), to read and to write."""
        return self._of["time"][:, 0]

    @property
    def before(self) -> Array:
        """Velocities at the start of the last step, (n, nv)."""
        return self.many.last.reshape(len(self), -1)[:, self.engine.of_v]

    @property
    def failed(self) -> Array:
        """Which worlds have stopped because their steps failed, (n,)."""
        return self.many.failed != 0

    @property
    def joint_forces(self) -> Array:
        """Of stops, dry friction and loops in the last step, (n, rows) [N or N·m]."""
        return np.concatenate([self._of[x] for x in ("stop_kept", "dry_kept", "loop_kept")], axis=1)

    def put(self, q: Array, qd: Array) -> None:
        """Set the states, (n, nq) and (n, nv); worlds whose state is the same go on as they were.

        Impulses are kept: solutions start from them.
        """
        new = np.any(self.q != q, axis=1) | np.any(self.qd != qd, axis=1)
        for k in np.flatnonzero(new):
            self._of["q"][k], self._of["v"][k] = self.engine._full(q[k], qd[k])
        for name in ("change", "last"):
            self._of[name][new] = 0.0
        for name in ("follows", "energy_known", "sleeps", "calm"):
            self._whole[name][new] = 0
        self.many.failed[new], self.many.ends[new] = 0, 0

    def saved(self, k: int) -> dict[str, Array]:
        """What the steps of world ``k`` left, as of ``Engine.saved``."""
        n, first, b = int(self._whole["known"][k]), k * self.many.room, self.many
        found = {name: self._of[name][k].copy() for name in _MEMORY}
        found |= {name: np.array(self._whole[name][k]) for name in _WHOLE}
        found |= {x: getattr(b, x)[first : first + n].copy() for x in ("key", "kept", "ended")}
        return found | {"state": np.concatenate([self.q[k], self.qd[k]])}

    def restore(self, k: int, q: Array, qd: Array, arrays: dict[str, Array]) -> None:
        """Put world ``k`` into a state with what ``saved`` returned."""
        b, key = self.many, arrays.get("key", ())
        while len(key) > b.room:
            self._have_room(2 * b.room)
        self._of["q"][k], self._of["v"][k] = self.engine._full(q, qd)
        same = np.array_equal(arrays.get("state"), np.concatenate([q, qd]))
        for name in _MEMORY:
            keeps = same or name.endswith("_kept")
            self._of[name][k] = arrays.get(name, 0.0) if keeps else 0.0
        for name in _WHOLE:
            self._whole[name][k] = arrays.get(name, int(name == "follows")) if same else 0
        self._whole["known"][k], b.failed[k], b.ends[k], b.listed[k] = len(key), 0, 0, 0
        for name in ("key", "kept", "ended") if len(key) else ():
            getattr(b, name)[k * b.room : k * b.room + len(key)] = arrays[name]

    # --- numbers of worlds -------------------------------------------------------------------

    def give_inertias(self, inertia: Array) -> None:
        """Worlds have their own inertias, (n, bodies, 10) as in ``model.general.tables``."""
        self.many.inertia = np.ascontiguousarray(inertia).reshape(-1, 10)
        self.many.bodies = 1

    def give_models(self, models: list) -> None:
        """Worlds have models with other numbers, one each: those of ``functional.parameters``."""
        trees = [model.uncoupled.spanning_tree for model in models]
        tables = [data_of(tree).numbers for tree in trees]
        self.give_inertias(np.array([x[BODIES]["inertia"] for x in tables]))
        names, b, m = ("placement", "armature", "dynamics"), self.many, self.engine.mechanism
        b.body = np.concatenate([np.hstack([x[BODIES][y] for y in names]) for x in tables])
        b.gravity, b.bodies = np.array([x[SINGLE]["gravity"][0] for x in tables]), 2
        old, rest = self.engine.tree, (m.damping, m.stiffness)
        own = [
            y - joint_values(old, x) for x, y in zip(("damping", "stiffness"), rest, strict=True)
        ]
        b.joint = np.array([
            [x.armature, joint_values(x, "damping") + own[0], joint_values(x, "stiffness") + own[1]]
            for x in trees
        ]).swapaxes(1, 2).reshape(-1, 3)  # fmt: skip

    def give_shapes(self, tables: dict[str, Array]) -> None:
        """Worlds have their own numbers of shapes: fields of ``Shapes``, (n, shapes, ...)."""
        shapes, n = self.engine.tables.shapes, len(self)
        parts = [
            np.broadcast_to(
                tables.get(name, getattr(shapes, name)).reshape(-1, shapes.count, width),
                (n, shapes.count, width),
            )
            for name, width in _OF_SHAPES.items()
        ]
        self.many.shape = np.concatenate(parts, axis=2).reshape(-1, 27)
        self.many.shaped = 1

    def give_gains(self, factors: Array) -> None:
        """Worlds have gains of their actuators multiplied by factors, (n, actuators)."""
        both = np.concatenate([self._laws.gain, self._laws.bias], axis=1)
        self.many.gain = (factors[:, :, None] * both).reshape(-1, 6)
        self.many.gains = 1

    def expect(self, names: tuple[str, ...]) -> None:
        """Store the forces of contacts with these names, in this order, with states."""
        b, n, first = self.many, self.engine.tables.shapes.count, {}
        pairs = [name.rpartition(":")[0] for name in names]
        b.columns, b.points = len(names), np.ones(n * n, dtype=np.int64)
        b.column = np.full(n * n, -1, dtype=np.int64)
        for k, pair in enumerate(pairs):
            first.setdefault(pair, k)
        for i, j in product(range(n), range(n)):
            name = self.engine.pair_name(i, j)
            if i != j and name in first:
                b.column[i * n + j], b.points[i * n + j] = first[name], pairs.count(name)

    # --- steps -------------------------------------------------------------------------------

    def run(
        self, h: float, steps: int, timed: Array | None = None, held: Array | None = None, *,
        driven: bool = False, activation: Array | None = None, every: int = 0,
        out: tuple | None = None,
    ) -> None:  # fmt: skip
        """Take steps in all worlds, on all threads.

        Args:
            h: length of a step [s].
            steps: how many.
            timed: (steps or 1, n or 1, size): controls of the actuators if ``driven``, the first
                inputs of compiled forces, or else joint forces, (nv of all joints).
            held: (n or 1, size): joint forces, or the other inputs.
            driven: whether there are controls.
            activation: of the actuators that have one, (n, m).
            every: store states every so many steps, and the last, in ``out``; 0 for none.
            out: positions, velocities and work, (times, n, ...) each, from the second time on; and
                forces of the contacts that ``expect`` named, zeros.
        """
        b, n = self.many, len(self)
        b.h, b.steps, b.driven, b.every = h, steps, int(driven), every
        b.timed, b.timed_size, b.timed_step, b.timed_world = _source(timed, n)
        b.held, b.held_size, _, b.held_world = _source(None if held is None else held[None], n)
        b.activation = np.ascontiguousarray(_NONE if activation is None else activation).ravel()
        b.states = 0 if activation is None else activation.shape[-1]
        b.q, b.v, b.work = (x.reshape(-1) for x in (out or (_NONE,) * 3)[:3])
        if b.columns:
            b.force = out[3].reshape(-1, 3) if out else np.zeros((0, 3))
        if not self.engine.tree.nv:
            self.time[:] += steps * h
            return
        many = max(1, min(threads(), n // LEAST))
        size = max(LEAST, -(-n // (8 * many)))
        team, pieces = [self._member(k) for k in range(many)], counting()
        for e, turn in team:
            turn.world = turn.end = 0
            if not driven:
                e.mechanism.stiffness[:], e.mechanism.damping[:] = self._resistance

        def work(k):
            engine, turn = team[k]
            while True:
                if turn.world >= turn.end:
                    first = size * next(pieces)
                    if first >= n:
                        return
                    turn.world, turn.end, turn.step = first, min(first + size, n), -1
                code = take_turns(engine.parts, b, turn)
                if code == ROOM:
                    return
                if code < 0:
                    engine._help(code)

        while True:
            on_threads(work, many)
            if all(turn.world >= turn.end for _, turn in team):
                break
            self._have_room(2 * b.room)  # while no thread is at it
        max((e for e, _ in team), key=lambda e: e.s.turn).warn_of_turning()

    # --- what is reported --------------------------------------------------------------------

    def forces(self, k: int) -> ContactForces:
        """Contacts of world ``k`` that had rows in its last step."""
        b, first = self.many, k * self.many.room
        at = slice(first, first + int(b.listed[k]))
        x, which = b.place[at].copy(), b.which[at]
        names = tuple(self.engine.name_of(*key) for key in which[:, :3].tolist())
        ends = which[:, 3].copy(), which[:, 4].copy()
        found = Contacts(*ends, x[:, :3], x[:, 3:6], x[:, 6], names, x[:, 7], x[:, 8])
        return ContactForces(found, x[:, 9:12], x[:, 12:15], x[:, 15:18])

    def keys_and_forces(self, k: int) -> tuple[Array, Array]:
        """Shapes and features (n, 3) of the contacts of world ``k``, and their forces, (n, 3)."""
        at = slice(k * self.many.room, k * self.many.room + int(self.many.listed[k]))
        return self.many.which[at, :3].copy(), self.many.place[at, 9:12].copy()

    def contacts(self, k: int) -> Contacts:
        """Contacts at the state of world ``k``."""
        engine, turn = self._member(0)
        own_numbers(engine.parts, self.many, turn, k)
        return engine.contacts(self.q[k])

    def why(self, k: int) -> str:
        """Why world ``k`` stands still."""
        if self.many.failed[k] == NO_INERTIA:
            return "a joint moves no inertia, or does not stay finite"
        return "its state does not stay finite"


_NONE = np.zeros(0)
_MEMORY = ("change", "last", "energy", "stop_kept", "dry_kept", "loop_kept", "loop_ended", "tau")
_WHOLE = ("follows", "energy_known", "sleeps", "pile", "calm")
_OF_CONTACTS = {
    "key": (np.int64, 3), "kept": (float, 6), "ended": (float, 3), "place": (float, 18),
    "which": (np.int64, 5),
}  # fmt: skip
_OF_SHAPES = {
    "friction": 3, "restitution": 1, "size": 3, "radius": 1, "thin": 1, "box": 6, "place": 12,
}  # fmt: skip


def _source(array, n):
    """Numbers, how many a world has, and how far those of the next step and world are."""
    if array is None:
        return _NONE, 0, 0, 0
    array = np.ascontiguousarray(array, dtype=float)
    steps, worlds, size = array.shape
    return array.reshape(-1), size, size * worlds * (steps > 1), size * (worlds > 1)
