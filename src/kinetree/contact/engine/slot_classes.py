"""Contacts with slots where they couple trees: by classes that share no tree, a lane for each.

Contacts of a class do not feel each other, so that lanes solve them side by side. ``sort_slots``
sorts the slots by classes; what is next to each other in memory are the numbers of a class.
"""

from kinetree.codegen.procedures import (
    cross,
    lane_max,
    lanes,
    local,
    procedure,
    view,
    worlds_max,
)
from kinetree.contact.engine.slot_laws import SLOT_SIZE, first_column
from kinetree.contact.engine.slot_pairs import POINT_SIZE, PairTables
from kinetree.contact.engine.slot_points import motion_of
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns, bits_of, number_of

COLOURS = 24
"""Classes that are looked for at once: bits of a number in single precision."""


def odd(slots: int) -> int:
    """Smallest odd number of at least ``slots``: a row stride that avoids bank conflicts."""
    return slots + 1 - slots % 2


@procedure
def colour_slots(
    world: SlotWorld, used: int, side: "float[:, 2]", found: "float[:]", busy: "float[:]"
) -> None:
    """Colour contacts greedily so that those of one colour share no tree."""
    for s in lanes(used):
        found[s] = -1.0
    for turn in range(worlds_max((used + COLOURS - 1) // COLOURS)):
        waiting = 0.0
        for s in lanes(used):
            waiting = max(waiting, -found[s])
        if worlds_max(1 if lane_max(waiting) > 0.0 else 0) == 0:
            break
        for t in lanes(world.trees):
            busy[t] = 0.0
        for _ in lanes(1):
            for s in range(used):
                a, b = int(side[s, 0]), int(side[s, 1])
                one, other = int(busy[a]), int(busy[b])
                free = (1 << COLOURS) - 1 - (one | other)
                low = free & -free
                if found[s] < 0.0 and low > 0:
                    busy[a] = float(one | low)
                    busy[b] = float(other | low)
                    found[s] = float(turn * COLOURS + bits_of(low - 1))


@procedure
def sort_slots(live: int, world: SlotWorld, pairs: PairTables, used: int) -> None:
    """Sort the contacts that have slots by colour, and store where colours end."""
    before = view(world.work, 0)
    found = view(world.work, world.slots)
    side = view(world.work, 2 * world.slots, world.slots, 2)
    for s in lanes(used):
        c = int(world.taken[s * world.taken_step])
        column = 0
        if c >= world.contacts:
            row = int(world.which[(c - world.contacts) * world.which_step])
            column = int(world.points[(POINT_SIZE * row + 7) * world.points_step])
        else:
            column = pairs.column[c]
        before[s] = float(c)
        for r in range(2):
            side[s, r] = float(world.sides[pairs.carrier[column], r])
    colour_slots(world, used, side, found, view(world.work, 4 * world.slots))
    most = -1.0
    for s in lanes(used):
        at = 0
        end = 0
        for o in range(used):
            if found[o] < found[s] or (found[o] == found[s] and o < s):
                at += 1
            if found[o] <= float(s):
                end += 1
        world.taken[at * world.taken_step] = before[s]
        world.classes[(1 + s) * world.classes_step] = float(end)
        most = max(most, found[s])
    most = lane_max(most)
    for _ in lanes(1 if live > 0 else 0):
        world.classes[0] = most + 1.0


@procedure
def coupled_rows(live: int, world: SlotWorld, pairs: PairTables) -> None:
    """Compute ``Y`` and the diagonal blocks of ``Y Yᵀ``, stored slot by slot for each entry."""
    used = int(world.found[0]) if live > 0 else 0
    column = view(world.work, world.inverses, world.nv, 6)
    for k in lanes(world.inverses if used > 0 else 0):
        world.work[k] = world.inverse[k * world.inverse_step]
    for k in lanes(world.nv if used > 0 else 0):
        motion_of(k, world.S, world.S_step, column[k])
    room = world.inverses + 6 * world.nv
    carriers, place = view(world.work, room), view(world.work, room + world.slots, world.slots, 12)
    for s in lanes(used):
        carriers[s] = world.slot[number_of(world, s, 0, SLOT_SIZE) * world.slot_step]
    for k in lanes(12 * used):
        s, r = k % used, k // used
        place[s, r] = world.place[number_of(world, s, r, 12) * world.place_step]
    for k in lanes(used * world.deep):
        s, d = k % used, k // used
        carrier = int(carriers[s])
        i, o, both = pairs.couple[carrier, 1], pairs.couple[carrier, 0], pairs.couple[carrier, 2]
        n, others = world.moves[i], world.moves[o]
        x, a = local("float", 3), local("float", 6)
        its = local("float", 12)
        x[:] = 0.0
        if d < world.moves[carrier]:
            its[:] = place[s]
            p = its[9:]
            R = view(its, 0, 3, 3)
            a[:] = 0.0
            for e in range(max(d, both), n):
                row = world.begin[i * world.deep + e]
                a += world.work[row + d] * column[world.chain[i * world.deep + e]]
            x[:] = R @ (a[3:] + cross(a[:3], p))
            if others > both:
                there = p + world.origin[world.tree[i]] - world.origin[world.tree[o]]
                first_column(world, pairs, carrier, d, column, a)
                x -= R @ (a[3:] + cross(a[:3], there))
        for r in range(3):
            world.Y[((r * world.deep + d) * world.slots + s) * world.Y_step] = x[r]
    for s in lanes(used):
        D = local("float", 6)
        x = local("float", 3)
        D[:] = 0.0
        for d in range(world.deep):
            for r in range(3):
                x[r] = world.Y[((r * world.deep + d) * world.slots + s) * world.Y_step]
                for k in range(r + 1):
                    D[r * (r + 1) // 2 + k] += x[r] * x[k]
        for r in range(6):
            world.own[(r * world.slots + s) * world.own_step] = D[r]


@procedure(inline=True)
def row_of(world: SlotWorld, its: Unknowns, s: int, d: int, out: "float[3]") -> None:
    """Copy column ``d`` of the three rows ``Y`` of contact ``s`` to ``out``."""
    wide = world.slots + 1 - world.slots % 2
    for r in range(3):
        out[r] = its.rows[(r * world.deep + d) * wide + s]


@procedure(inline=True)
def feel(world: SlotWorld, its: Unknowns, s: int, v: "float[:]", out: "float[3]") -> None:
    """Write the contact velocity change ``Y v`` of contact ``s``."""
    wide = world.slots + 1 - world.slots % 2
    at = its.carrier[s] * world.deep
    out[:] = 0.0
    for d in range(0, world.deep, 4):
        x = local("float", 4)
        for k in range(4):
            x[k] = v[world.chain[at + d + k]]
        for r in range(3):
            for k in range(4):
                out[r] += its.rows[(r * world.deep + d + k) * wide + s] * x[k]


@procedure(inline=True)
def push_four(
    world: SlotWorld, its: Unknowns, s: int, d: int, x: "float[3]", v: "float[:]"
) -> None:
    """Add four entries of ``Yᵀ x`` of contact ``s``, from place ``d`` on, to velocities ``v``.

    Where fewer variables move the contact, rows have zeros. All are read before any is written.
    """
    wide = world.slots + 1 - world.slots % 2
    at = its.carrier[s] * world.deep + d
    y = local("float", 4)
    spot = local("int", 4)
    for k in range(4):
        spot[k] = world.chain[at + k]
        y[k] = v[spot[k]]
    for r in range(3):
        for k in range(4):
            y[k] += its.rows[(r * world.deep + d + k) * wide + s] * x[r]
    for k in range(4):
        v[spot[k]] = y[k]


@procedure(inline=True)
def push(world: SlotWorld, its: Unknowns, s: int, x: "float[3]", v: "float[:]") -> None:
    """Add ``Yᵀ x`` of contact ``s`` to the velocities ``v``."""
    for d in range(0, world.deep, 4):
        push_four(world, its, s, d, x, v)


@procedure
def press(world: SlotWorld, its: Unknowns, used: int, lam: "float[:]", v: "float[:]") -> None:
    """Write ``v = Yᵀ lam`` of all contacts, colour by colour."""
    for k in lanes(world.nv + 1):
        v[k] = 0.0
    first, fours = 0, world.deep // 4
    for c in range(its.ends[0] if used > 0 else 0):
        for k in lanes((its.ends[1 + c] - first) * fours):
            s = first + k // fours
            x = local("float", 3)
            for r in range(3):
                x[r] = lam[3 * s + r]
            push_four(world, its, s, 4 * (k % fours), x, v)
        first = its.ends[1 + c]


@procedure
def speeds_of(world: SlotWorld, its: Unknowns, used: int, v: "float[:]") -> None:
    """Write all contact velocities ``w = b + Y v``."""
    for s in lanes(used):
        x = local("float", 3)
        feel(world, its, s, v, x)
        for r in range(3):
            its.w[3 * s + r] = its.b[3 * s + r] + x[r]
