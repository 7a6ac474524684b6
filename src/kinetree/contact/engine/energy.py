"""Energy balance of a step: what touches may gain no energy but by the work of forces.

With constant inertia and forces the change of energy in a step is exactly the work of all forces at
the mean velocity. What the variation of inertia and the curvature of surfaces add is an error of
either sign. Where it would be a gain, velocities are made smaller by a common factor, which leaves
contacts closed, friction against sliding, and loops closed as they are. That is done for every
island by itself; trees that nothing touches keep what they have, unless they turn so far in a step
that their velocity products are not found, and they would go faster and faster.

Two parts are taken with a bound, a small part of the kinetic energy: what the shift of positions
out of a penetration has added, and what rows were to take by their work and have not. Otherwise a
body that is pushed out of another, or an impact, would stop whatever moves in the same island.
What is left of the first is the reported gain.

Islands that fly, touching nothing fixed, keep their momentum in all this: what the shift of
positions has changed of the angular momentum is given back by a turn of each tree about its own
centre of mass, whose momentum is then what contacts made it. Only motion relative to that of the
island as one rigid body is made smaller, as long as there is some.
"""

import numpy as np

from kinetree.codegen.procedures import cross, dot, procedure, record, sqrt, vector
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.newton.problem import Problem
from kinetree.joints import Free

ROUNDING = 1e-14  # of the energies: smaller gains count as rounding
BOUND = 2e-3  # of the kinetic energy
FLIGHT = 1e-4  # of the kinetic energy, beyond which free flight gains none


@record
class Balance:
    """Energies [J] of bodies, of trees and of islands, of which there are no more than trees.

    Attributes:
        bodies: number of them, without the base;  tree: of each, -1 for none.
        of_motion, of_place: kinetic and potential, of bodies;  fresh: 1 where they are those at the
            end of the last step.
        energy: of trees at the end of the last step;  known: whether it is.
        total, kinetic: of trees at the end of the step;  unshifted: before positions were shifted;
            shifts: 1 where they were.
        joints, rows: work of the joint forces and of the rows on trees, at the mean velocity.
        island: of trees, -1 for none;  deep: of islands: 1 where penetration is left.
        drifts: of islands: 1 where a surface drifts.
        fastest: of trees: their largest velocity before the step, in the units of variables.
        excess, size, moving, put, lifted: of islands: gain, size of all energies, kinetic energy,
            work of the rows, and gain by the shift;  factor: of the velocities;  flown: of those
            of trees that nothing touches.
    """

    bodies: int
    tree: "int[:]"
    of_motion: "float[:, 1]"
    of_place: "float[:, 1]"
    fresh: int
    known: int
    energy: "float[:]"
    total: "float[:]"
    shifts: int
    unshifted: "float[:]"
    kinetic: "float[:]"
    joints: "float[:]"
    rows: "float[:]"
    island: "int[:]"
    deep: "int[:]"
    drifts: "int[:]"
    fastest: "float[:]"
    excess: "float[:]"
    size: "float[:]"
    moving: "float[:]"
    put: "float[:]"
    lifted: "float[:]"
    factor: "float[:]"
    flown: "float[:]"


def balance_of(m, p) -> Balance:
    """``Balance`` record with zero energies of a mechanism's bodies and trees."""
    n, trees = m.bodies - 1, p.trees
    of_trees = ("energy", "total", "kinetic", "joints", "rows", "excess", "size", "moving", "put")
    of_trees += ("unshifted", "lifted", "fastest")
    tree = np.where(m.node >= 0, p.node_tree[np.maximum(m.node, 0)] if p.nv else -1, -1)[1:]
    return Balance(
        bodies=n,
        tree=np.ascontiguousarray(tree, dtype=np.int64),
        of_motion=np.zeros((n, 1)),
        of_place=np.zeros((n, 1)),
        **{name: np.zeros(trees, dtype=np.int64) for name in ("drifts", "island", "deep")},
        **{name: np.zeros(trees) for name in (*of_trees, "factor", "flown")},
    )


@record
class Flight:
    """Islands on which nothing acts from outside but gravity, as one rigid body each.

    Attributes:
        any: whether there are some;  flies: of islands: 1 where it does.
        root: of trees: its first body where a free joint carries it, else 0.
        pose, S, F: of ``terms`` at the start or at the end of the step.
        body: of islands: one of its roots, to whose origin places refer.
        mass, middle, momentum, spin, inertia: of islands: mass, centre of mass, momentum, angular
            momentum and inertia about that;  spun: angular momentum at the start.
        own: of islands: sum of the inertias of trees about their ``centre``, seen from the root.
        turn: angular velocity of the island as one;  moving: kinetic energy of that.
    """

    any: int
    flies: "int[:]"
    root: "int[:]"
    pose: "float[:, 12]"
    S: "float[:, 6]"
    F: "float[:, 6]"
    body: "int[:]"
    mass: "float[:]"
    middle: "float[:, 3]"
    momentum: "float[:, 3]"
    spin: "float[:, 3]"
    inertia: "float[:, 3, 3]"
    spun: "float[:, 3]"
    own: "float[:, 3, 3]"
    centre: "float[:, 3]"
    turn: "float[:, 3]"
    moving: "float[:]"


def flight_of(tree, m, b) -> Flight:
    """``Flight`` record for the islands of free bodies of a mechanism, all zero."""
    root, n = np.zeros(len(b.energy), dtype=np.int64), len(b.energy)
    for i in range(1, m.bodies):
        own = slice(m.first[i], m.first[i] + m.count[i])
        if isinstance(tree.joint[i], Free) and not m.parent[i] and m.free[own].all():
            root[b.tree[i - 1]] = i
    return Flight(
        root=root,
        pose=m.pose.copy(),
        S=m.S.copy(),
        F=m.F.copy(),
        centre=np.zeros((n, 3)),
        **{name: np.zeros((n, 3, 3)) for name in ("inertia", "own")},
        **{name: np.zeros(n, dtype=np.int64) for name in ("flies", "body")},
        **{name: np.zeros(n) for name in ("mass", "moving")},
        **{name: np.zeros((n, 3)) for name in ("middle", "momentum", "spin", "spun", "turn")},
    )


@procedure
def flying(
    w: Flight, b: Balance, m: Mechanism, p: Problem, rows: Rows, f: Found, tau: "float[:]"
) -> bool:
    """Find islands of mutually touching free bodies without base contact; whether any exist."""
    w.any = 0
    for g in range(rows.contacts):
        ends = f.bodies[rows.contact[g]]
        if ends[0] > 0 and ends[1] > 0:
            w.any = 1
    if w.any == 0:
        return False
    w.flies[: p.trees] = 0
    for t in range(p.trees):
        if b.island[t] >= 0 and w.root[t] > 0:
            w.flies[b.island[t]] = 1
            w.body[b.island[t]] = w.root[t]
    for g in range(p.groups):
        if p.entry_first[g] == p.entry_first[g + 1]:
            continue
        i = b.island[p.node_tree[p.entry_node[p.entry_first[g]]]]
        if g < rows.contacts:
            ends = f.bodies[rows.contact[g]]
            for side in range(2):
                if ends[side] == 0 or b.tree[ends[side] - 1] < 0:
                    w.flies[i] = 0
        elif rows.contact[g] >= rows.stops + rows.dry:
            w.flies[i] = 0  # a loop, perhaps with the base
    for t in range(p.trees):
        i = b.island[t]
        for k in range(6 if i >= 0 else 0):
            if w.root[t] == 0 or tau[m.first[w.root[t]] + k] != 0.0:
                w.flies[i] = 0
    w.any = 0
    for i in range(p.trees):
        w.any = max(w.any, w.flies[i])
    return w.any == 1


@procedure
def sum_up(w: Flight, b: Balance, m: Mechanism, p: Problem, v: "float[:]"):
    """Sum masses, momenta and inertias of flying islands about their centres of mass."""
    w.mass[: p.trees] = 0.0
    w.middle[: p.trees] = w.momentum[: p.trees] = w.spin[: p.trees] = 0.0
    w.inertia[: p.trees] = w.own[: p.trees] = 0.0
    for k in range(p.nv):  # F v is the momentum of what a variable moves, about the tree's point
        t = p.node_tree[p.dof_node[k]]
        i = b.island[t]
        if i >= 0 and w.flies[i] == 1:
            o = w.pose[w.root[t], 3::4] - w.pose[w.body[i], 3::4]
            w.momentum[i] += v[k] * w.F[k, 3:]
            w.spin[i] += v[k] * (w.F[k, :3] + cross(o, w.F[k, 3:]))
    for t in range(p.trees):
        i = b.island[t]
        if i >= 0 and w.flies[i] == 1:
            o = w.pose[w.root[t], 3::4] - w.pose[w.body[i], 3::4]
            first = m.first[w.root[t]]
            mass = dot(w.F[first + 3, 3:], w.S[first + 3, 3:])
            c = vector(0.0, 0.0, 0.0)
            for k in range(3):  # F = m c × e and m e, or I e
                e = w.S[first + k, :3]
                c = c + cross(w.S[first + 3 + k, 3:], w.F[first + 3 + k, :3]) / (2.0 * mass)
                for r in range(3):
                    w.own[i, r] += w.F[first + k, r] * e
            w.mass[i] += mass
            w.middle[i] += mass * (o + c)
            w.centre[t] = c
            add_point(w.inertia[i], mass, o + c)
            add_point(w.own[i], -mass, c)
    for i in range(p.trees):
        if w.flies[i] == 1:
            w.middle[i] /= w.mass[i]
            for r in range(3):
                w.inertia[i, r] += w.own[i, r]
            w.spin[i] -= cross(w.middle[i], w.momentum[i])
            add_point(w.inertia[i], -w.mass[i], w.middle[i])


@procedure
def add_point(inertia: "float[3, 3]", mass: float, x: "float[3]"):
    """Add the rotational inertia of a point mass at ``x`` to a 3 x 3 matrix."""
    for r in range(3):
        inertia[r] -= mass * x[r] * x
        inertia[r, r] += mass * dot(x, x)


@procedure
def divided_by(A: "float[3, 3]", x: "float[3]", found: "float[3]"):
    """Write ``A⁻¹ x`` of a symmetric 3 x 3 matrix; zero where it is singular."""
    u = cross(A[1], A[2])
    det = dot(A[0], u)
    found[:] = 0.0
    if det > 0.0:
        found[:] = vector(dot(u, x), dot(cross(A[2], A[0]), x), dot(cross(A[0], A[1]), x)) / det


@procedure
def as_one(w: Flight, t: int, i: int, k: int) -> float:
    """Velocity of a variable if its flying island moved as one rigid body."""
    o = w.pose[w.root[t], 3::4] - w.pose[w.body[i], 3::4] - w.middle[i]
    way = w.momentum[i] / w.mass[i] + cross(w.turn[i], o)
    return dot(w.S[k, :3], w.turn[i]) + dot(w.S[k, 3:], way)


@procedure
def turn_back(w: Flight, b: Balance, m: Mechanism, p: Problem, v: "float[:]"):
    """Restore flying islands' angular momentum ``spun`` by a rigid rotation; sets ``moving``."""
    for i in range(p.trees):
        if w.flies[i] == 1:
            divided_by(w.own[i], w.spun[i] - w.spin[i], w.turn[i])
    for t in range(p.trees):
        i = b.island[t]
        if i >= 0 and w.flies[i] == 1:
            for k in range(m.first[w.root[t]], m.first[w.root[t]] + 6):
                v[k] += dot(w.S[k, :3], w.turn[i]) + dot(w.S[k, 3:], cross(w.centre[t], w.turn[i]))
    for i in range(p.trees):
        if w.flies[i] == 1:
            divided_by(w.inertia[i], w.spun[i], w.turn[i])
            P = w.momentum[i]
            w.moving[i] = (dot(w.spun[i], w.turn[i]) + dot(P, P) / w.mass[i]) / 2.0


@procedure
def energy_of_trees(b: Balance, trees: int, total: "float[:]"):
    """Sum the bodies' energies over each tree, into ``total`` and ``b.kinetic``."""
    total[:trees] = b.kinetic[:trees] = 0.0
    for i in range(b.bodies):
        t = b.tree[i]
        if t >= 0:
            total[t] += b.of_motion[i, 0] + b.of_place[i, 0]
            b.kinetic[t] += b.of_motion[i, 0]


@procedure
def find_excess(b: Balance, w: Flight, p: Problem, rows: Rows, f: Found) -> bool:
    """Compute the energy excess of every island; whether a flying island has too much.

    Rows give none, unless a surface drifts.
    """
    for i in range(p.trees):
        b.excess[i] = b.size[i] = b.moving[i] = b.put[i] = b.lifted[i] = 0.0
        b.factor[i] = 1.0
        b.drifts[i] = 0
    for t in range(p.trees):
        i = b.island[t]
        if i >= 0:
            b.excess[i] += b.total[t] - b.energy[t] - b.joints[t]
            b.size[i] += abs(b.total[t]) + abs(b.energy[t]) + b.kinetic[t]
            b.moving[i] += b.kinetic[t]
            b.put[i] += b.rows[t]
            if b.shifts == 1:
                b.lifted[i] += b.total[t] - b.unshifted[t]
    for g in range(rows.contacts):
        c = rows.contact[g]
        u = f.drift[c]
        if u[0] != 0.0 or u[1] != 0.0 or u[2] != 0.0:
            for side in range(2):
                t = b.tree[f.bodies[c, side] - 1] if f.bodies[c, side] > 0 else -1
                if t >= 0 and b.island[t] >= 0:
                    b.drifts[b.island[t]] = 1
    gains = False
    for i in range(p.trees):
        least = min(b.put[i], 0.0)
        most = max(b.put[i], 0.0) if b.drifts[i] == 1 else 0.0
        b.excess[i] -= most
        b.put[i] = least
        gains = gains or (w.any == 1 and w.flies[i] == 1 and gains_any(b, i))
    return gains


@procedure
def gains_any(b: Balance, i: int) -> bool:
    """Whether island ``i`` has more energy than joint forces and its rows gave, up to rounding."""
    return b.excess[i] - b.put[i] > ROUNDING * b.size[i]


@procedure
def limit_energy(
    b: Balance, w: Flight, m: Mechanism, p: Problem, v: "float[:]"
) -> "(float, float)":
    """Remove excess kinetic energy of islands; the energy removed and the excess left."""
    taken = left = 0.0
    for i in range(p.trees):
        if gains_any(b, i):
            gain = b.excess[i]
            take = max(gain - max(b.lifted[i], 0.0), 0.0)
            take = min(take + min(gain - b.put[i] - take, BOUND * b.moving[i]), b.moving[i])
            moves = b.moving[i]
            if w.any == 1 and w.flies[i] == 1:  # motion of the island as one is kept
                moves = max(moves - w.moving[i], 0.0)
                take = min(take, moves)
            b.factor[i] = sqrt((moves - take) / moves) if moves > 0.0 else 1.0
            taken += take
            left = max(left, gain - take)
    for t in range(p.trees):
        b.flown[t] = 1.0
        gain = b.total[t] - b.energy[t] - b.joints[t]
        if b.island[t] < 0 and gain > FLIGHT * b.kinetic[t] + ROUNDING * abs(b.total[t]):
            take = min(gain, b.kinetic[t])
            b.flown[t] = sqrt((b.kinetic[t] - take) / b.kinetic[t]) if take > 0.0 else 1.0
            taken += take
            left = max(left, gain - take)
        i = b.island[t]
        factor = b.factor[i] if i >= 0 else b.flown[t]
        b.energy[t] = b.total[t] - (1.0 - factor * factor) * b.kinetic[t]
    if taken > 0.0:
        for k in range(p.nv):
            t = p.node_tree[p.dof_node[k]]
            i = b.island[t]
            factor = b.factor[i] if i >= 0 else b.flown[t]
            if factor < 1.0 and i >= 0 and w.any == 1 and w.flies[i] == 1:
                first = m.first[w.root[t]]
                if k < first + 6:
                    one = as_one(w, t, i, k)
                    v[k] = one + factor * (v[k] - one)
                    b.known = 0  # energies of trees are others
                else:
                    v[k] *= factor
            else:
                v[k] *= factor
    return taken, left
