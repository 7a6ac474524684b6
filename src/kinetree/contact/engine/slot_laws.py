"""Rows of contacts with slots, and what their laws ask, by some lanes for each world.

Impulses ``lam`` and velocities ``w = b + Y u`` of the contacts with slots are along normal and
tangents, three numbers each, with ``u = Yᵀ lam``: ``Y = G L⁻¹ D^{-1/2}``, so that the mobility of
the contacts is ``Y Yᵀ``. Rows of ``Y`` are stored along the chain of the variables that move a
body, which begins alike for all bodies of a tree. ``own`` has the six numbers of the blocks on the
diagonal of ``Y Yᵀ``. Laws are those of ``stepping.step``; ``slot_sweeps`` and ``slot_newton`` find
impulses that obey them.
"""

from kinetree.codegen.procedures import (
    cross,
    lane_sum,
    lanes,
    local,
    procedure,
    sqrt,
    vector,
    view,
    worlds_max,
)
from kinetree.contact.engine.slot_pairs import PairTables
from kinetree.contact.engine.slot_points import motion_of
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns

SLOT_SIZE = 9
"""Numbers of a slot."""
MAX_CHAIN_DOFS = 128
"""Variables that move a body at most: turns of a lane that is alone."""


@procedure(inline=True)
def first_column(
    world: SlotWorld,
    pairs: PairTables,
    carrier: int,
    d: int,
    column: "float[:, 6]",
    out: "float[6]",
) -> None:
    """Column ``d`` of the first body's motion in a two-body contact's row of ``Y``."""
    o, both = pairs.couple[carrier, 0], pairs.couple[carrier, 2]
    n, others = world.moves[pairs.couple[carrier, 1]], world.moves[o]
    level = d if d < n else both + d - n
    first = both if d < both else level if d >= n else others
    out[:] = 0.0
    for e in range(first, others):
        at = o * world.deep + e
        out += world.work[world.begin[at] + level] * column[world.chain[at]]


@procedure
def contact_rows(world: SlotWorld, used: int, pairs: PairTables) -> None:
    """Compute ``Y`` of all contacts with slots, and the diagonal blocks of ``Y Yᵀ``.

    A lane computes columns ``d`` and ``d + deep/2``, of all six rows of the body first. Of two
    bodies, variables that move both come first, then others of the second, and of the first body.
    """
    half = world.deep // 2
    # At hand for all contacts, as ``inverse`` is.
    column = view(world.work, world.inverses, world.nv, 6)
    for k in lanes(world.inverses if used > 0 else 0):
        world.work[k] = world.inverse[k * world.inverse_step]
    for k in lanes(world.nv if used > 0 else 0):
        motion_of(k, world.S, world.S_step, column[k])
    for s in range(worlds_max(used)):
        here = s < used
        carrier = int(world.slot[SLOT_SIZE * s * world.slot_step]) if here else 0
        i, o, both = pairs.couple[carrier, 1], pairs.couple[carrier, 0], pairs.couple[carrier, 2]
        n = world.moves[i]
        others = world.moves[o] if here and pairs.count > 0 else 0
        shift = world.origin[world.tree[i]] - world.origin[world.tree[o]]
        at = 3 * s * world.deep
        D = local("float", 6)
        D[:] = 0.0
        for d in lanes(half if here else 0):
            a, b = local("float", 2, 6)
            a[:] = 0.0
            b[:] = 0.0
            for e in range(max(d, both), n):
                row = world.begin[i * world.deep + e]
                c = column[world.chain[i * world.deep + e]]
                a += world.work[row + d] * c
                b += (world.work[row + d + half] if e >= d + half else 0.0) * c
            its = local("float", 12)
            for k in range(12):
                its[k] = world.place[(12 * s + k) * world.place_step]
            p = its[9:]
            R = view(its, 0, 3, 3)
            x = R @ (a[3:] + cross(a[:3], p))
            y = R @ (b[3:] + cross(b[:3], p))
            if others > both:
                there = p + shift
                first_column(world, pairs, carrier, d, column, a)
                first_column(world, pairs, carrier, d + half, column, b)
                x -= R @ (a[3:] + cross(a[:3], there))
                y -= R @ (b[3:] + cross(b[:3], there))
            for r in range(3):
                world.Y[(at + r * world.deep + d) * world.Y_step] = x[r]
                world.Y[(at + r * world.deep + d + half) * world.Y_step] = y[r]
            for r in range(3):
                for k in range(r + 1):
                    D[r * (r + 1) // 2 + k] += x[r] * x[k] + y[r] * y[k]
        for r in range(6):
            D[r] = lane_sum(D[r])
        for r in range(6 if here else 0):
            world.own[(6 * s + r) * world.own_step] = D[r]


@procedure(inline=True)
def block_of(x: "float[6]", D: "float[3, 3]") -> None:
    """Expand six numbers to a symmetric 3 x 3 diagonal block of ``Y Yᵀ``."""
    D[0] = vector(x[0], x[1], x[3])
    D[1] = vector(x[1], x[2], x[4])
    D[2] = vector(x[3], x[4], x[5])


@procedure(inline=True)
def fetch_contact(
    world: SlotWorld,
    its: Unknowns,
    s: int,
    used: int,
    row: "float[3, MAX_CHAIN_DOFS]",
    place: "int[MAX_CHAIN_DOFS]",
    block: "float[6]",
) -> None:
    """Load a lane's part of contact ``s``: its rows of ``Y``, variables and diagonal block."""
    places = its.carrier[s] * world.deep if s < used else 0
    k = 0
    for d in lanes(world.deep):
        place[k] = world.chain[places + d]
        for r in range(3):
            row[r, k] = world.Y[((3 * s + r) * world.deep + d) * world.Y_step]
        k += 1  # noqa: SIM113
    for r in range(6):
        block[r] = world.own[(6 * s + r) * world.own_step]


@procedure
def effect_of_impulses(world: SlotWorld, its: Unknowns, used: int, nv: int) -> None:
    """Write the velocity change ``v = Yᵀ lam`` of all contact impulses of a world."""
    for k in lanes(nv + 1):
        its.v[k] = 0.0
    for s in range(worlds_max(used)):
        here = s < used
        places = its.carrier[s] * world.deep if here else 0
        for d in lanes(world.deep if here else 0):
            at = 3 * s * world.deep + d
            x = (
                its.lam[3 * s] * world.Y[at * world.Y_step]
                + its.lam[3 * s + 1] * world.Y[(at + world.deep) * world.Y_step]
            )
            its.v[world.chain[places + d]] += (
                x + its.lam[3 * s + 2] * world.Y[(at + 2 * world.deep) * world.Y_step]
            )


@procedure(inline=True)
def along(world: SlotWorld, s: int, long: int, places: int, u: "float[:]", v: "float[3]") -> None:
    """Write the contact velocity change ``Y u`` of contact ``s``, summed over the lanes."""
    v[:] = 0.0
    for d in lanes(long):
        part = u[world.chain[places + d]]
        for r in range(3):
            v[r] += part * world.Y[((3 * s + r) * world.deep + d) * world.Y_step]
    for r in range(3):
        v[r] = lane_sum(v[r])


@procedure
def speeds(world: SlotWorld, its: Unknowns, used: int) -> None:
    """Write all contact velocities ``w = b + Y v`` of a world, summed over the lanes."""
    for s in range(worlds_max(used)):
        here = s < used
        places = its.carrier[s] * world.deep if here else 0
        x = local("float", 3)
        along(world, s, world.deep if here else 0, places, its.v, x)
        for r in lanes(3 if here else 0):
            its.w[3 * s + r] = its.b[3 * s + r] + x[r]


@procedure(inline=True)
def contact_law_error(D: "float[3, 3]", mu: float, w: "float[:]", lam: "float[:]") -> float:
    """Violation of a contact's Coulomb law [m/s], by the Alart-Curnier function."""
    a = (D[0, 0] + D[1, 1] + D[2, 2]) / 3.0
    x = a * view(lam, 0, 3)
    y = x - view(w, 0, 3)
    n = max(y[0], 0.0)
    t = sqrt(y[1] * y[1] + y[2] * y[2])
    part = 1.0
    if t > mu * n:
        part = mu * n / t
    return max(abs(x[0] - n), abs(x[1] - part * y[1]), abs(x[2] - part * y[2]))
