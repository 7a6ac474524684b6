"""What each joint, of the tree or closing a loop, asks of its two bodies — RBDA §3.5, §4.4.

A joint confines ``v_J = v_s - v_p`` to ``S qd + sigma``, so ``Tᵀ a_J = Tᵀ (c_J + v_s × v_J)``
with ``c_J = S° qd + sigma°`` (3.44). This is the equation ``Tᵀ a_J = -Tdᵀ v_J`` of (3.71) without
a derivative of ``T``: as ``Tᵀ S = 0`` in every configuration, ``T°ᵀ S = -Tᵀ S°``, hence
``-Tdᵀ v_J = -(T° + v_s ×* T)ᵀ v_J = Tᵀ (c_J + v_s × v_J)`` for ``v_J = S qd``.

The variables of a loop joint are no part of ``q``: ``loop_joints`` measures it on the bodies.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.loop_joints import loop_joint
from kinetree.spatial import Force, Motion, crm, log

__all__ = ["JointConstraint", "expanded", "joint_constraints", "loop_constraint", "reduced"]


class JointConstraint(NamedTuple):
    """One joint at one instant, in base coordinates."""

    predecessor: int
    successor: int
    T: Force
    """Constraint forces, n_c columns."""
    T_a: Force
    """Active forces, one column for each variable of a tree joint; none for a loop joint."""
    c: Motion
    """Acceleration ``c_J + v_s × v_J`` across the joint when its ``qdd`` is zero."""
    error: np.ndarray
    """Position error, (n_c,), as stabilisation needs it; zero for a tree joint."""
    gap: np.ndarray
    """Motion from the nearest position that the joint allows [rad, m], (6,), however large."""
    rate: np.ndarray
    """Velocity error ``Tᵀ (v_J - sigma)``, (n_c,); zero for a tree joint."""
    velocities: tuple
    """Velocities of the two bodies, (6,) each."""
    scale: float
    """Size of the terms that the right-hand side ``Tᵀ c`` is computed from."""


def joint_constraints(model, q, qd, X_0, v):
    """A ``JointConstraint`` for every joint: tree joints first, then the loop joints.

    Args:
        model: the mechanism.
        q: position variables of the tree joints, (nq,).
        qd: velocity variables of the tree joints, (nv,).
        X_0: transforms from base to body coordinates, entry 0 for the base.
        v: body velocities in base coordinates.
    """
    joints = []
    for i in range(1, model.body_count + 1):
        joint, q_i = model.joint[i], q[model.q_slice[i]]
        _, _, v_J, c_J = model.jcalc(i, q, qd)
        T, T_a = joint.constraint_subspace(q_i), joint.active_subspace(q_i)
        joints.append(_in_base(model.parent[i], i, X_0[i], v, T, T_a, v_J, c_J))
    return joints + [loop_constraint(loop, X_0, v) for loop in model.loops]


def reduced(loops, rows):
    """The constraints of loop joints with some of all their rows; all for None.

    Args:
        loops: ``JointConstraint`` of every loop joint.
        rows: numbers of the rows that are kept, among those of all loops.
    """
    if rows is None:
        return loops
    found, at = [], 0
    for J in loops:
        kept = [int(row) - at for row in rows if at <= row < at + len(J.rate)]
        at += len(J.rate)
        T = Force(J.T.angular[:, kept], J.T.linear[:, kept])
        found.append(J._replace(T=T, error=J.error[kept], rate=J.rate[kept]))
    return found


def expanded(lam, rows, count):
    """Forces of ``count`` rows, zero for those that were not kept; as they are for None."""
    if rows is None:
        return lam
    every = np.zeros(count)
    every[rows] = lam
    return every


def loop_constraint(loop, X_0, v):
    """A ``JointConstraint`` for one loop joint."""
    joint, p, s = loop.joint, loop.predecessor, loop.successor
    X_p, X_s = loop.predecessor_placement @ X_0[p], loop.successor_placement @ X_0[s]
    X_J = X_s @ X_p.inverse()
    v_J = X_s @ (v[s] - v[p])

    asked = loop_joint(joint, X_J, v_J)
    # Any acceleration with Tᵀ c = bias will do; this is the smallest.
    c_J = Motion.from_array(np.linalg.lstsq(asked.T.to_array().T, asked.bias)[0])
    T_a = Force(np.zeros((3, 0)), np.zeros((3, 0)))
    nearest = joint.transform(joint.coordinates(X_J))
    return _in_base(p, s, X_s, v, asked.T, T_a, v_J, c_J)._replace(
        error=joint.loop_error(X_J),
        gap=log(X_J @ nearest.inverse()).to_array().astype(float),
        rate=asked.rate,
    )


def _in_base(p, s, X_s, v, T, T_a, v_J, c_J):
    """Everything from successor to base coordinates, without errors."""
    v_J, c_J = X_s.inv_apply(v_J), X_s.inv_apply(c_J)
    velocities = tuple(v[b].to_array().astype(float) for b in (p, s))
    speed = max(float(np.linalg.norm(x)) for x in velocities)
    none = np.zeros(T.angular.shape[1])
    return JointConstraint(
        predecessor=p,
        successor=s,
        T=X_s.T @ T,
        T_a=X_s.T @ T_a,
        c=c_J + crm(v[s], v_J),
        error=none,
        gap=np.zeros(6),
        rate=none,
        velocities=velocities,
        scale=_size(c_J) + speed * _size(v_J),
    )


def _size(m):
    return float(np.linalg.norm(m.to_array().astype(float)))
