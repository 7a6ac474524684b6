"""Loops that must be solved together, and those that need not — RBDA §8.9.

Loops that share a tree joint are coupled; sharing a body is not enough. A minimal loop cluster is a
set of loops that are coupled, directly or through others, with the joints they run through. ``K``
has a block for each cluster, and so has ``G``: there are as many small problems as clusters.
Couplings count: one joins the joint that follows to the joint that leads.
"""

import heapq
from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import loop_signs
from kinetree.algorithms.closed.systems import SubsystemEquation
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import calling
from kinetree.loops.dynamics.methods import (
    Accelerations,
    ConstrainedEquations,
    NullSpace,
    null_space,
    smallest_forces,
)
from kinetree.loops.kinematics.constraint import rank
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.gearing import with_leaders
from kinetree.model.transfer import transfer_parts, transferred_postures
from kinetree.spatial import Plucker


class Cluster(NamedTuple):
    """A minimal loop cluster."""

    loops: tuple
    """Names of its loop joints, and of user-defined constraints."""
    joints: tuple
    """Numbers of the tree joints in it, ascending."""
    rows: np.ndarray
    """Its rows of ``K``."""
    columns: np.ndarray
    """Its columns of ``K``: the velocity variables of its joints."""


class Renumbered(NamedTuple):
    """A model with its bodies in another order."""

    model: object
    order: tuple
    """Old number of body ``i``, with 0 for the base."""
    q: np.ndarray
    """Where the new position variables were, (nq,): ``q_new = q_old[q]``."""
    v: np.ndarray
    """Where the new velocity variables were, (nv,)."""


def clusters(model: Model) -> tuple[Cluster, ...]:
    """Minimal loop clusters of a model, ordered by their first loops (RBDA §8.9)."""
    found: list[tuple[list, set, list]] = []  # names, joints, rows
    for one in _constraints(model):
        coupled = [c for c in found if c[1] & one[1]] + [one]
        found = [c for c in found if c not in coupled]
        names, joints, rows = zip(*coupled, strict=True)
        found.append(([*chain(*names)], set().union(*joints), [*chain(*rows)]))
        found.sort(key=lambda c: c[2])
    return tuple(
        Cluster(tuple(names), tuple(sorted(joints)), np.array(rows), _variables(model, joints))
        for names, joints, rows in found
    )


def _constraints(model):
    """Name, joints and constraint rows of every loop and coupling of a model, one by one.

    What a joint that follows others does is up to its leaders, which belong here, too. A constraint
    of one's own may depend on every joint.
    """
    row = 0
    for loop in model.loops:
        count = 6 - loop.joint.nv
        joints = with_leaders(model, loop_signs(model, loop.predecessor, loop.successor))
        yield [loop.name], joints, list(range(row, row + count))
        row += count
    for own in model.constraints:
        yield [own.name], set(range(1, model.body_count + 1)), list(range(row, row + own.rows))
        row += own.rows


def _variables(model, joints):
    """Indices of the velocity variables of some joints."""
    at = [model.v_slice[j] for j in sorted(joints)]
    return np.concatenate([np.zeros(0, int), *(np.arange(s.start, s.stop) for s in at)])


def renumber(model: Model) -> Renumbered:
    """Copy of a model with each cluster's joints numbered consecutively, parents first.

    The blocks of ``K`` are then along its diagonal, apart from gaps for joints in no loop; those of
    ``G`` too, with unit matrices in the gaps. Clusters that a coupling forms from separate branches
    cannot always be numbered like this, and are then treated as separate.
    """
    unit = {i: (i,) for i in range(1, model.body_count + 1)}
    for cluster in clusters(model.uncoupled):
        unit |= dict.fromkeys(cluster.joints, cluster.joints)
    unit[0] = (0,)
    on: dict[int, list[int]] = {}  # first joints of the units that hang on a unit
    for i in range(1, model.body_count + 1):
        if unit[i][0] == i:  # all joints of a cluster hang on each other, or on one body
            on.setdefault(unit[model.parent[i]][0], []).append(i)
    order, ready = [], [0]
    while ready:
        joints = unit[heapq.heappop(ready)]
        order += joints
        for i in on.get(joints[0], ()):
            heapq.heappush(ready, i)
    return _in_order(model, tuple(order))


def _in_order(model, order):
    """Copy of a model with its bodies in another order, and the new places of its variables."""
    number = {old: new for new, old in enumerate(order)}
    same = [Plucker.identity()] * len(order)
    bodies = [replace(model.bodies[i - 1], parent=number[model.parent[i]]) for i in order[1:]]
    postures = transferred_postures([b.joint for b in bodies], (order[1:], model))
    renumbered = model.replace(
        bodies=bodies, **transfer_parts(model, number, same), postures=postures
    )
    q, v = (
        np.concatenate([np.zeros(0, int), *(np.arange(s[i].start, s[i].stop) for i in order[1:])])
        for s in (model.q_slice, model.v_slice)
    )
    return Renumbered(renumbered, order, q, v)


# --- block by block ------------------------------------------------------------------------------


class ClusterBlock(NamedTuple):
    """``qdd = G ydd + g`` for the variables of one cluster, or for those in none."""

    columns: np.ndarray
    """Numbers of its velocity variables."""
    free: np.ndarray
    """Numbers of its independent variables, ascending."""
    G: np.ndarray | None
    """``G_i``; None for variables in no cluster, which are all independent."""
    g: np.ndarray
    """``g_i``."""
    rank: int
    """Number of its independent constraints."""

    def across(self, H):
        """Product ``H_ai G_i`` of the block's columns of ``H`` with its basis."""
        return H[:, self.columns] if self.G is None else H[:, self.columns] @ self.G

    def along(self, x):
        """Product ``G_iᵀ x_i`` of the block's basis with its rows of a vector or matrix."""
        return x[self.columns] if self.G is None else self.G.T @ x[self.columns]


def _blocks(instant: ConstrainedEquations) -> list[ClusterBlock]:
    """Blocks of ``G`` and ``g`` of all clusters, the last for variables in no cluster."""
    model, K, k, units = instant.model, instant.K, instant.k, instant.units
    found = []
    for c in clusters(model):
        K_i, k_i = K[np.ix_(c.rows, c.columns)], k[c.rows]
        scaled = units.part(c.rows, c.columns)
        part = null_space(K_i, k_i, rank(K_i, scaled), scaled)
        found.append(
            ClusterBlock(c.columns, c.columns[part.independent], part.G, part.g, part.rank)
        )
    inner = np.concatenate([np.zeros(0, int), *(block.columns for block in found)])
    outer = np.setdiff1d(np.arange(model.nv), inner)
    return [*found, ClusterBlock(outer, outer, None, np.zeros(len(outer)), 0)]


@on_host
def block_null_space(model: Model, q: ArrayLike, qd: ArrayLike) -> NullSpace:
    """Block-structured ``G`` and ``g`` of ``qdd = G ydd + g`` by clusters (RBDA §8.9).

    Variables in no cluster are independent, and ``G`` is zero between clusters.

    Args:
        model: the mechanism.
        q: joint positions that close the loops, (nq,).
        qd: joint velocities that keep them closed, (nv,).
    """
    with calling("block_null_space"):
        q, qd = as_configuration(as_model(model), q), as_joint_vector(model, qd, "qd")
        instant = ConstrainedEquations(model, q, qd, np.zeros(model.nv))
        K, k = instant.K, instant.k
    blocks = _blocks(instant)
    free = np.sort(np.concatenate([block.free for block in blocks]))
    G, g = np.zeros((model.nv, len(free))), np.zeros(model.nv)
    G[free, range(len(free))] = 1
    for block in blocks[:-1]:
        G[np.ix_(block.columns, np.searchsorted(free, block.free))] = block.G
        g[block.columns] = block.g
    return NullSpace(G, g, free, sum(block.rank for block in blocks), K @ g - k)


def solve_by_clusters(instant: ConstrainedEquations) -> Accelerations:
    """Accelerations and loop forces by the null-space method with clusters — RBDA (8.46), §8.9.

    ``GᵀHG`` has the blocks ``G_iᵀ H_ij G_j``: none where clusters are on different branches.
    """
    blocks, H = _blocks(instant), instant.H
    place = np.cumsum([0, *(len(block.free) for block in blocks)])
    at = [slice(a, b) for a, b in pairwise(place)]
    g, M = np.zeros(instant.model.nv), np.zeros((place[-1], place[-1]))
    for block in blocks:
        g[block.columns] = block.g
    force, right = instant.force - H @ g, np.zeros(place[-1])
    for j, block in enumerate(blocks):
        right[at[j]] = block.along(force)
        HG = block.across(H)
        for i, other in enumerate(blocks[: j + 1]):
            if np.any(H[np.ix_(other.columns, block.columns)]):
                M[at[i], at[j]] = other.along(HG)
                M[at[j], at[i]] = M[at[i], at[j]].T
    ydd, qdd = SubsystemEquation(M, np.zeros_like(right), right).acceleration(), g
    for j, block in enumerate(blocks):
        qdd[block.columns] += ydd[at[j]] if block.G is None else block.G @ ydd[at[j]]
    return Accelerations(qdd, smallest_forces(instant, H @ qdd - instant.force))
