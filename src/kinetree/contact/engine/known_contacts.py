"""Contacts that were known in the last step: their impulses, velocities and places."""

from kinetree.codegen.procedures import dot, local, procedure
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.contact_frames import relative_velocity, scaled_rows
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.row_tables import FULL, Rows
from kinetree.contact.engine.sleep import Sleep, is_asleep
from kinetree.contact.newton.problem import Problem

RESTING = 1e-9
"""Way of a contact between two steps up to which it is where it was [m]."""


@procedure
def slot_of(rows: Rows, first: int, second: int, feature: int) -> int:
    """Hash slot of a contact by shapes and feature: its own, or a free one."""
    s = (first * 7919 + second * 104729 + (abs(feature) % 1000003) * 31) % rows.slots
    while rows.slot[s] > 0:
        k = rows.key[rows.slot[s] - 1]
        if k[0] == first and k[1] == second and k[2] == feature:
            break
        s += 1
        if s == rows.slots:
            s = 0
    return s


@procedure
def pair_slot_of(rows: Rows, first: int, second: int) -> int:
    """Hash slot of two shapes' first known contact: its own, or a free one."""
    s = (first * 7919 + second * 104729) % rows.slots
    while rows.pair_slot[s] > 0:
        k = rows.key[rows.pair_slot[s] - 1]
        if k[0] == first and k[1] == second:
            break
        s += 1
        if s == rows.slots:
            s = 0
    return s


@procedure
def index_pairs(rows: Rows):
    """Index the first known contact of every pair of shapes in ``pair_slot``."""
    rows.pair_slot[: rows.slots] = 0
    for n in range(rows.known):
        s = pair_slot_of(rows, rows.key[n, 0], rows.key[n, 1])
        if rows.pair_slot[s] == 0:
            rows.pair_slot[s] = n + 1


@procedure
def place_contacts(m: Mechanism, rows: Rows, f: Found, first: int):
    """Write contact points in coordinates of their second bodies to ``local``."""
    for c in range(first, f.count):
        q = m.pose[f.bodies[c, 1]]
        d = f.point[c] - q[3::4]
        rows.local[c] = d[0] * q[:3] + d[1] * q[4:7] + d[2] * q[8:11]


@procedure
def is_of_pair(rows: Rows, f: Found, c: int, n: int) -> bool:
    """Whether known contact ``n`` belongs to the two shapes of detected contact ``c``."""
    if n < 0 or n >= rows.known:
        return False
    return rows.key[n, 0] == f.first[c] and rows.key[n, 1] == f.second[c]


@procedure
def nearest_known(rows: Rows, f: Found, c: int, n: int, free: bool) -> int:
    """Index of the pair's known contact nearest to contact ``c``, or -1.

    Those of two shapes lie side by side. ``free``: of those that are not claimed.
    """
    while is_of_pair(rows, f, c, n - 1):
        n -= 1
    nearest = -1
    least = 1e300
    while is_of_pair(rows, f, c, n):
        d = rows.local[c] - rows.spot[n]
        way = dot(d, d)
        if way < least and not (free and rows.claimed[n] == 1):
            least = way
            nearest = n
        n += 1
    return nearest


@procedure(inline=True)
def is_at_rest(rows: Rows, c: int, n: int) -> bool:
    """Whether contact ``c`` is at the place, in its body, of known contact ``n``."""
    d = rows.local[c] - rows.spot[n]
    return dot(d, d) <= RESTING * RESTING


@procedure
def match_contacts(m: Mechanism, rows: Rows, f: Found, count: int):
    """Match detected contacts with those of the last step that they continue.

    By shapes and feature, if that is the nearest. A feature can change its name though nothing
    moves, where two corners are the same up to rounding, and two can exchange theirs: impulses
    would be lost or act elsewhere, and what rests would rattle. What is left takes the nearest of
    the same two shapes that no other has.
    """
    place_contacts(m, rows, f, 0)
    rows.claimed[: rows.known] = 0
    for k in range(count):
        c = rows.order[k]
        n = rows.slot[slot_of(rows, f.first[c], f.second[c], f.feature[c])] - 1
        rows.match[c] = 0
        if n >= 0 and (is_at_rest(rows, c, n) or nearest_known(rows, f, c, n, False) == n):
            rows.match[c] = n + 1
            rows.claimed[n] = 1
    indexed = 0  # only where something is new: a search through all that is known would take long
    for k in range(count):
        c = rows.order[k]
        if rows.match[c] > 0:
            continue
        n = rows.slot[slot_of(rows, f.first[c], f.second[c], f.feature[c])] - 1
        if n < 0:
            if indexed == 0:
                index_pairs(rows)
                indexed = 1
            n = rows.pair_slot[pair_slot_of(rows, f.first[c], f.second[c])] - 1
        if n >= 0:
            n = nearest_known(rows, f, c, n, True)
        if n >= 0:
            rows.match[c] = n + 1
            rows.claimed[n] = 1


@procedure
def known_again(rows: Rows):
    """Rebuild the hash table of known contacts after its size changed."""
    for n in range(rows.known):
        k = rows.key[n]
        rows.slot[slot_of(rows, k[0], k[1], k[2])] = n + 1


@procedure
def warm_start(p: Problem, rows: Rows, n: int, g: int, h: float):
    """Set a contact's impulses to those of known contact ``n - 1``, or zero for n = 0."""
    row = p.row_first[g]
    for r in range(p.dim[g]):
        p.impulse[row + r] = h * rows.kept[n - 1, r] if n > 0 else 0.0


@procedure
def bending(
    m: Mechanism, rows: Rows, f: Found, c: int, n: int, g: int, h: float, before: "float[:, 6]"
):
    """Set half the change of a continued contact's velocity due to the bodies' rotation.

    Bodies have kept their velocities since then, but have turned, and touch at another point. In
    smooth motion it is the velocity in the middle of the step that is zero: between that before
    it, ``prior + 2 bend``, and that after it. Rows that want ``w + bend = 0`` are of second order,
    and neither Euler's disc nor a rattleback loses energy by them; as long as nothing turns they
    want the same as ever. The velocity has grown by ``bend`` in the half step since then, and the
    gap by ``h bend / 4``, which the second half takes back: ``gap`` is without it.

    Smooth is what changes about as much as in the last step, and spheres always are. Where bodies
    nearly lie flat on each other, corners of the patch between them come and go, and the point
    jumps from one end to the other: that is an impact, after which it rests, or piles would rattle
    for ever.
    """
    goes_on = rows.follows == 1 and n > 0 and rows.kept[n - 1, 0] > 0.0
    w = local("float", 3)
    relative_velocity(m, f, c, before, w)
    x = rows.axes[g] @ w
    rows.prior[g] = rows.ended[n - 1] if goes_on else x
    bend = (x - rows.prior[g]) / 2.0
    rows.turned[g, 0] = bend
    rows.turned[g, 1] = rows.bent[n - 1] if goes_on else bend
    jump = bend - rows.turned[g, 1]
    ball = rows.ball[f.first[c]] + rows.ball[f.second[c]] > 0
    if dot(jump, jump) > dot(bend, bend) / 4.0 and not ball:
        bend[:] = 0.0
    rows.bend[g] = bend
    rows.gap[g] -= h * rows.bend[g, 0] / 4.0


@procedure
def keep_asleep(z: Sleep, rows: Rows, f: Found) -> int:
    """Store the forces of sleeping contacts in ``slept``; 0, or ``FULL``."""
    if z.asleep == 0:
        return 0
    if f.count + rows.stops + rows.dry + rows.loops + 1 >= rows.groups_room:
        return FULL
    for c in range(f.count):
        if is_asleep(z, f, c):
            n = rows.slot[slot_of(rows, f.first[c], f.second[c], f.feature[c])]
            rows.slept[c] = 0.0
            if n > 0:
                rows.slept[c] = rows.kept[n - 1]
    return 0


@procedure
def show_asleep(z: Sleep, rows: Rows, f: Found):
    """Append sleeping contacts with their forces to the listed contacts of the step."""
    for c in range(f.count):
        if is_asleep(z, f, c) and rows.active[c] == 0:
            g = rows.contacts
            rows.contact[g] = c
            dim, _ = scaled_rows(rows, f, c, g)
            rows.dim[g] = dim
            rows.force[g] = rows.slept[c]
            rows.slip[g] = 0.0
            rows.contacts = g + 1


@procedure
def new_number(rows: Rows, f: Found, c: int) -> int:
    """Register contact ``c`` as known; its number, or -1 if it already is."""
    s = slot_of(rows, f.first[c], f.second[c], f.feature[c])
    if rows.slot[s] > 0:
        return -1
    n = rows.known
    rows.slot[s] = rows.known = n + 1
    rows.key[n, 0] = f.first[c]
    rows.key[n, 1] = f.second[c]
    rows.key[n, 2] = f.feature[c]
    return n


@procedure
def remember(p: Problem, rows: Rows, f: Found, h: float, has_ended: bool, z: Sleep):
    """Store impulses and velocities of all rows for the next step or attempt."""
    rows.slot[: rows.slots] = 0
    rows.known = 0
    for g in range(p.groups):
        row = p.row_first[g]
        k = rows.contact[g]
        rows.dim[g] = p.dim[g]
        rows.force[g, : p.dim[g]] = p.impulse[row : row + p.dim[g]] / h
        if g < rows.contacts:
            n = new_number(rows, f, k)
            if n >= 0:
                for r in range(6):
                    rows.kept[n, r] = p.impulse[row + r] / h if r < p.dim[g] else 0.0
                rows.ended[n] = rows.slip[g] - rows.bend[g] if has_ended else rows.prior[g]
                rows.spot[n] = rows.local[k]
                rows.bent[n] = rows.turned[g, 0 if has_ended else 1]
        elif k < rows.stops:
            rows.stop_kept[k] = p.impulse[row] / h
        elif k < rows.stops + rows.dry:
            rows.dry_kept[k - rows.stops] = p.impulse[row] / h
        else:
            rows.loop_kept[k - rows.stops - rows.dry] = p.impulse[row] / h
    for c in range(f.count if z.asleep > 0 else 0):
        if is_asleep(z, f, c):
            n = new_number(rows, f, c)
            if n >= 0:
                rows.kept[n] = rows.slept[c]
                rows.ended[n] = 0.0
                rows.spot[n] = rows.local[c]
                rows.bent[n] = 0.0
