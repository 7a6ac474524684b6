"""Joints that close loops: their variables, and what forces along them do — RBDA §8.4, §8.6.

The position of a loop joint is not part of ``q``: it is measured on the two bodies. A force
``tau_k`` along its degrees of freedom is the spatial force ``T_a tau_k`` on the successor and its
opposite on the predecessor; in joint space (8.5), (8.33)

    tau_a = J_Lᵀ T_a tau_k = B tau_k        qd_k = Bᵀ qd  (+ prescribed rates)

``T_a`` is taken where the joint is, so it may vary. ``C - tau_a`` in one pass is inverse dynamics
at zero acceleration with the forces of ``forces_on_bodies`` as external ones — Tables 8.2 and 8.3.

Angles are known up to whole turns. They are measured within half a turn of the middle of the
joint's limits, or else of the rest position of its spring, or else of zero.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import loop_motion
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.spatial import Force
from kinetree.spatial.ops import atan2, cos, sin


class LoopJointMotion(NamedTuple):
    """The variables of loop joints, one joint after the other."""

    q: Any
    """Position variables [m or rad], (nq_L,)."""
    qd: Any
    """Velocity variables [m/s or rad/s], (nv_L,)."""
    B: Any
    """From forces along them to joint space, (nv, nv_L)."""


@for_all_joints(lambda result, at: result._replace(B=force(result.B, at)))
def loop_joint_motion(model, q, qd, loops=None) -> LoopJointMotion:
    """Positions and velocities of loop joints, and ``B`` from their forces to tree joint forces.

    Args:
        model: the mechanism.
        q: position variables of the tree, (nq,).
        qd: velocity variables of the tree, (nv,).
        loops: which loop joints; all by default.
    """
    positions, velocities = [np.zeros(0)], [model.zero_velocity[:0]]
    columns = [np.zeros((model.nv, 0), dtype=int)]
    for loop in model.loops if loops is None else loops:
        m, joint = loop_motion(model, loop, q, qd), loop.joint
        q_k = _joint_position(loop, m.X_J)
        _, _, sigma, _ = joint.jcalc(q_k, np.zeros(joint.nv, dtype=int))
        positions.append(q_k)
        velocities.append(joint.velocity_variables(q_k, m.v_J - sigma))
        T_a = m.X_s.T @ loop.active_subspace(q_k)  # to coordinates of the loop's root
        B = np.zeros((model.nv, joint.nv), model.scalar_type(q))
        for j, J in m.J.items():
            B[model.v_slice[j]] = J.T @ T_a
        columns.append(B)
    return LoopJointMotion(
        np.concatenate(positions), np.concatenate(velocities), np.concatenate(columns, axis=1)
    )


def forces_on_bodies(model, q, forces):
    """Forces along loop joints as spatial forces on the bodies, in base coordinates; entry 0 None.

    Args:
        model: the mechanism.
        q: position variables of the tree, (nq,).
        forces: along the degrees of freedom of all loop joints, one joint after the other, (nv_L,).
    """
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    f, start = [Force.zero() for _ in X_0], 0
    for loop in model.loops:
        p, s, count = loop.predecessor, loop.successor, loop.joint.nv
        f_a = active_force(loop, X_0, forces[start : start + count])
        f[s], f[p] = f[s] + f_a, f[p] - f_a
        start += count
    return [None, *f[1:]]


def active_force(loop, X_0, tau):
    """Spatial force on the successor due to forces ``tau`` along a loop joint, in base coordinates.

    Args:
        loop: the loop joint.
        X_0: transforms from base to body coordinates, entry 0 for the base.
        tau: force along its degrees of freedom, (nv of the joint,).
    """
    X_p = loop.predecessor_placement @ X_0[loop.predecessor]
    X_s = loop.successor_placement @ X_0[loop.successor]
    return X_s.T @ (loop.active_subspace(_joint_position(loop, X_s @ X_p.inverse())) @ tau)


def reference_position(loop):
    """Reference position of a loop joint, (nq,), which decides how its angles are unwrapped."""
    given = () if loop.dynamics is None else loop.dynamics.rest
    reference = np.array(given) if given else loop.joint.neutral()
    limits = loop.limits
    if limits is not None and limits.lower and limits.upper:
        middle = (np.array(limits.lower) + np.array(limits.upper)) / 2
        reference = np.array(
            [m if np.isfinite(m) else r for m, r in zip(middle, reference, strict=True)]
        )
    return reference


def _joint_position(loop, X_J):
    """Position variables of a loop joint for a transform, angles unwrapped near the reference."""
    q = loop.joint.coordinates(X_J)
    if not loop.joint.angles:
        return q
    reference, q = reference_position(loop), list(q)
    for k in loop.joint.angles:
        away = q[k] - reference[k]
        if np.any(reference[k] != 0):  # angles are near zero already
            q[k] = reference[k] + atan2(sin(away), cos(away))
    return np.array(q)
