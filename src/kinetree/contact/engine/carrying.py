"""Motions between rows and an engine: state, memory, inputs and numbers."""

from kinetree.codegen.procedures import procedure
from kinetree.contact.engine.known_contacts import known_again
from kinetree.contact.engine.motions import Inputs, Motions, Samples, WorkerState
from kinetree.contact.engine.parts import Parts
from kinetree.contact.engine.row_tables import FULL

ROOM = -8
"""Code of lists of motions that are full."""


@procedure
def copy_numbers(x: "float[:]", n: int, row: "float[:]", at: int, back: bool) -> int:
    """Copy ``n`` floats from a row at ``at`` to ``x``, or back; returns the next offset."""
    if back:
        row[at : at + n] = x[:n]
    else:
        x[:n] = row[at : at + n]
    return at + n


@procedure
def copied_whole(x: "int[:]", n: int, row: "int[:]", at: int, back: bool) -> int:
    """Copy ``n`` integers from a row at ``at`` to ``x``, or back; returns the next offset."""
    if back:
        row[at : at + n] = x[:n]
    else:
        x[:n] = row[at : at + n]
    return at + n


@procedure
def carry(a: Parts, b: Motions, w: int, back: bool) -> int:
    """Load state and memory of motion ``w`` into the engine, or save them; 0 or an error code."""
    s = a.step
    m = a.mechanism
    rows = a.rows
    z = a.sleep
    at = copy_numbers(s.q, m.nq, b.row, w * b.width, back)
    at = copy_numbers(s.v, m.nv, b.row, at, back)
    at = copy_numbers(s.time, 1, b.row, at, back)
    at = copy_numbers(s.change, m.nv, b.row, at, back)
    at = copy_numbers(s.last, m.nv, b.row, at, back)
    at = copy_numbers(a.balance.energy, a.problem.trees, b.row, at, back)
    at = copy_numbers(rows.stop_kept, rows.stops, b.row, at, back)
    at = copy_numbers(rows.stop_was, rows.stops, b.row, at, back)
    at = copy_numbers(rows.dry_kept, rows.dry, b.row, at, back)
    at = copy_numbers(rows.loop_kept, rows.loops, b.row, at, back)
    at = copy_numbers(rows.loop_ended, rows.loops, b.row, at, back)
    at = copy_numbers(z.tau, m.nv, b.row, at, back)
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
    carry_contacts(a, b, w, back)
    if not back:
        z.asleep = 0
        for t in range(z.trees):
            z.asleep += z.sleeps[t]
        rows.slot[: rows.slots] = 0
        known_again(rows)
    return 0


@procedure
def carry_contacts(a: Parts, b: Motions, w: int, back: bool):
    """Load the last step's contacts of motion ``w`` into the engine, or save them."""
    rows = a.rows
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


@procedure
def own_numbers(a: Parts, b: Samples, t: WorkerState, w: int):
    """Load individual shapes, gains and inertias of motion ``w`` into the engine."""
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
def inputs_of_call(a: Parts, b: Inputs, w: int):
    """Load step length, external wrenches and activations of motion ``w`` for a call."""
    a.step.h = b.h
    a.drives.acts = max(b.driven, a.drives.reads)
    for i in range(a.pushes.count if b.pushed == 1 else 0):
        a.pushes.wrench[i] = b.push[w * a.pushes.count + i]
    for i in range(b.states):
        a.drives.activation[i] = b.activation[w * b.states + i]


@procedure
def inputs_of_step(a: Parts, b: Inputs, w: int, step: int):
    """Load the joint forces, or controls, of motion ``w`` for one step."""
    s, m = a.step, a.mechanism
    n = b.timed_size
    at = w * b.timed_world + step * b.timed_step
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
