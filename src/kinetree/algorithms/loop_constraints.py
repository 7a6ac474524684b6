"""Loops as equations ``K qdd = k`` on the joint accelerations — RBDA §8.2, Table 8.4.

A loop joint from body ``p`` to body ``s`` contributes ``K_l = Tᵀ (J_s - J_p)`` (8.17), which has
columns for the joints of the loop alone: those above the *loop root*, the nearest common ancestor
of ``p`` and ``s``, carry both bodies alike and cancel (8.18). So does their motion. Hence a loop
can be described as if its root were fixed, in coordinates of the root; this takes fewer operations
than the base coordinates of the book, and loses no digits when the mechanism is far from the base
(§8.7). Scalar-generic, off the constraint manifold too; structural zeros stay exact.

The table is for joints with constant ``T`` that time does not move; ``loop_joints`` has the rest.
Its ``k`` includes the stabilisation; this one does not.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.loop_joints import loop_joint
from kinetree.errors import UnknownNameError
from kinetree.spatial import Motion, Plucker, crm

__all__ = [
    "LoopConstraints",
    "LoopMotion",
    "coupled_rows",
    "loop_constraints",
    "loop_errors",
    "loop_motion",
    "loop_root",
    "loop_rows",
    "loop_signs",
    "stacked",
]


class LoopConstraints(NamedTuple):
    """Loops at one instant: rows of the loops in order."""

    K: np.ndarray
    """Constraint matrix, (nc, nv)."""
    k: np.ndarray
    """``K qdd = k``, from velocity products alone, (nc,)."""
    error: np.ndarray
    """Position error ``δ``, (nc,); its rate of change is ``rate``, up to its own size."""
    rate: np.ndarray
    """Velocity error ``K qd`` less what moves with time, (nc,)."""

    def stabilized(self, T):
        """``k`` with errors that decay with the time constant ``T`` [s] — RBDA (8.22), (8.35)."""
        return self.k - (2 / T) * self.rate - self.error / (T * T)


class LoopMotion(NamedTuple):
    """The bodies of a loop as seen from its root, and the motion across the loop joint."""

    X_J: Plucker
    """From predecessor to successor frame of the loop joint."""
    v_J: Motion
    """Velocity across it, in successor frame coordinates."""
    X_s: Plucker
    """From the root to the successor frame."""
    a_J: Motion
    """``a_s - a_p - v_s × v_J`` of velocity products, in root coordinates."""
    J: dict
    """Columns ``S_j`` by joint number, in root coordinates, with the sign of (8.18)."""


def loop_constraints(model, q, qd, *, coordinates="loop") -> LoopConstraints:
    """``K``, ``k`` and the errors of all loops.

    Args:
        model: the mechanism.
        q: position variables [m or rad], (nq,).
        qd: velocity variables [m/s or rad/s], (nv,).
        coordinates: ``"loop"``, each loop in coordinates of its own root, as seen from there;
            ``"base"``, all in base coordinates, as the book has it.
    """
    parts = [loop_rows(model, loop, q, qd, coordinates) for loop in model.loops]
    return stacked(model, parts)


def stacked(model, parts) -> LoopConstraints:
    """Constraints of several loops, or of none, one after the other."""
    none = model.zero_velocity[:0]
    parts = [LoopConstraints(np.zeros((0, model.nv)), none, none, none), *parts]
    return LoopConstraints(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def coupled_rows(rows, at):
    """Rows in the variables that follow nothing: ``K G ydd = k - K g``."""
    return rows._replace(K=rows.K @ at.G, k=rows.k - rows.K @ at.g)


def loop_errors(model, q):
    """Position errors alone, (nc,) — RBDA (8.23), (8.24)."""
    at_rest = model.zero_velocity
    parts = [
        loop.joint.loop_error(loop_motion(model, loop, q, at_rest).X_J) for loop in model.loops
    ]
    return np.concatenate([at_rest[:0], *parts])


@for_all_joints(coupled_rows)
def loop_rows(model, loop, q, qd, coordinates="loop"):
    """``LoopConstraints`` of one loop."""
    m = loop_motion(model, loop, q, qd, coordinates)
    T, bias, rate = loop_joint(loop.joint, m.X_J, m.v_J)
    T = m.X_s.T @ T
    K = np.zeros((len(rate), model.nv), model.scalar_type(q))
    for j, J in m.J.items():
        K[:, model.v_slice[j]] = T.T @ J
    return LoopConstraints(K, bias - T.T @ m.a_J, loop.joint.loop_error(m.X_J), rate)


@for_all_joints()
def loop_motion(model, loop, q, qd, coordinates="loop") -> LoopMotion:
    """Positions, velocities and velocity-product accelerations that a loop joint depends on."""
    p, s = loop.predecessor, loop.successor
    if coordinates not in ("loop", "base"):
        raise UnknownNameError(
            f"coordinates of loop constraints are 'loop' or 'base', got {coordinates!r}"
        )
    epsilon = loop_signs(model, p, s)
    root, above = (loop_root(model, p, s), ()) if coordinates == "loop" else (0, model.support[s])
    zero = model.zero_motion
    X, v, a, J = {root: model.identity_transform}, {root: zero}, {root: zero}, {}
    for i in sorted({*epsilon, *above}):
        lam = model.parent[i]
        X_J, S, v_J, c_J = model.jcalc(i, q, qd)
        X_i = X_J @ model.tree_transform[i]
        X[i] = X_i if lam == root else X_i @ X[lam]
        S, v_J, c_J = (X[i].inv_apply(m) for m in (S, v_J, c_J))
        v[i] = v[lam] + v_J
        a[i] = a[lam] + c_J + crm(v[lam], v_J)  # v_i × v_J, as v_J × v_J = 0
        if i in epsilon:
            J[i] = S * epsilon[i]
    X_p, X_s = loop.predecessor_placement @ X[p], loop.successor_placement @ X[s]
    return LoopMotion(
        X_J=X_s @ X_p.inverse(),
        v_J=X_s @ (v[s] - v[p]),
        X_s=X_s,
        a_J=a[s] - a[p] + crm(v[s], v[p]),
        J=J,
    )


def loop_root(model, p, s):
    """Nearest common ancestor: step back from the higher-numbered body until they meet."""
    while p != s:
        p, s = (model.parent[p], s) if p > s else (p, model.parent[s])
    return p


def loop_signs(model, p, s):
    """``ε_lj`` of (8.18) for the joints of a loop: the sign of their motion across its joint."""
    to_s, to_p = set(model.support[s]), set(model.support[p])
    return {j: 1 if j in to_s else -1 for j in to_s ^ to_p}
