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
"""

import numpy as np

from kinetree.codegen.procedures import procedure, record, sqrt
from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.rows import Rows
from kinetree.contact.newton.problem import Problem

ROUNDING = 1e-14  # of the energies: smaller gains count as rounding
BOUND = 1e-3  # of the kinetic energy
FLIGHT = 1e-4  # of the kinetic energy, beyond which free flight gains none


@record
class Balance:
    """Energies [J] of bodies, of trees and of islands, of which there are no more than trees.

    Attributes:
        bodies: number of them, without the base;  tree: of each, -1 for none.
        of_motion, of_place: kinetic and potential, of bodies.
        energy: of trees at the end of the last step;  known: whether it is.
        total, kinetic: of trees at the end of the step;  unshifted: before positions were shifted;
            shifts: 1 where they were.
        joints, rows: work of the joint forces and of the rows on trees, at the mean velocity.
        island: of trees, -1 for none;  deep: of islands: 1 where penetration is left.
        drifts: of islands: 1 where a surface drifts.
        excess, size, moving, put, lifted: of islands: gain, size of all energies, kinetic energy,
            work of the rows, and gain by the shift;  factor: of the velocities;  flown: of those
            of trees that nothing touches.
    """

    bodies: int
    tree: "int[:]"
    of_motion: "float[:, 1]"
    of_place: "float[:, 1]"
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
    excess: "float[:]"
    size: "float[:]"
    moving: "float[:]"
    put: "float[:]"
    lifted: "float[:]"
    factor: "float[:]"
    flown: "float[:]"


def balance_of(m, p) -> Balance:
    """Room for the energies of a mechanism with the trees of a problem."""
    n, trees = m.bodies - 1, p.trees
    of_trees = ("energy", "total", "kinetic", "joints", "rows", "excess", "size", "moving", "put")
    of_trees += ("unshifted", "lifted")
    tree = np.where(m.node >= 0, p.node_tree[np.maximum(m.node, 0)] if p.nv else -1, -1)[1:]
    return Balance(
        bodies=n, tree=np.ascontiguousarray(tree, dtype=np.int64), of_motion=np.zeros((n, 1)),
        of_place=np.zeros((n, 1)),
        **{name: np.zeros(trees, dtype=np.int64) for name in ("drifts", "island", "deep")},
        **{name: np.zeros(trees) for name in (*of_trees, "factor", "flown")},
    )  # fmt: skip


@procedure
def energy_of_trees(b: Balance, trees: int, total: "float[:]"):
    """Energies of trees from those of their bodies: ``total``, and ``b.kinetic``."""
    for t in range(trees):
        total[t] = b.kinetic[t] = 0.0
    for i in range(b.bodies):
        t = b.tree[i]
        if t >= 0:
            total[t] += b.of_motion[i, 0] + b.of_place[i, 0]
            b.kinetic[t] += b.of_motion[i, 0]


@procedure
def balanced(b: Balance, p: Problem, rows: Rows, f: Found, v: "float[:]") -> "(float, float)":
    """Let islands have no more energy than they had or were given: what was taken, what is left.

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
    taken = left = 0.0
    for i in range(p.trees):
        least = min(b.put[i], 0.0)
        most = max(b.put[i], 0.0) if b.drifts[i] == 1 else 0.0
        excess = b.excess[i] - most - least
        if excess > ROUNDING * b.size[i]:
            gain = b.excess[i] - most
            take = max(gain - max(b.lifted[i], 0.0), 0.0)
            take = min(take + min(excess - take, BOUND * b.moving[i]), b.moving[i])
            b.factor[i] = sqrt((b.moving[i] - take) / b.moving[i]) if b.moving[i] > 0.0 else 1.0
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
            v[k] *= b.factor[i] if i >= 0 else b.flown[t]
    return taken, left
