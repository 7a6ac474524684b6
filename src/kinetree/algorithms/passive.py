"""Forces that joints exert of their own accord: springs, dampers, dry friction."""

import numpy as np

from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.model.dynamics import has_dynamics
from kinetree.spatial.ops import less, select

__all__ = ["own_force", "passive_force", "spring_and_damper_force", "stretch"]


@for_all_joints(force)
def passive_force(model, q, qd):
    """``-k Δ - d qd - c sign(qd)`` of every joint, (nv,); dry friction is zero at rest.

    ``Δ`` is the displacement from the rest position on the manifold of the joint,
    ``joint.difference(rest, q)``. Joints that close loops add ``B tau_k``, see ``closed.forces``.
    """
    tau = [model.zero_velocity[:0]]
    for i, body in enumerate(model.bodies, start=1):
        q_i, qd_i = q[model.q_slice[i]], qd[model.v_slice[i]]
        tau.append(own_force(body, q_i, qd_i))
    names = ("stiffness", "damping", "friction")
    return _with_loops(model, q, qd, np.concatenate(tau), own_force, names)


def own_force(part, q, qd):
    """Spring, damper and dry friction of the joint of a body, or of a loop joint."""
    return _spring_and_damper(part, q, qd) + _friction(part, qd)


@for_all_joints(force)
def spring_and_damper_force(model, q, qd):
    """``-k Δ - d qd`` of every joint, (nv,): ``passive_force`` without dry friction."""
    tau = [model.zero_velocity[:0]]
    for i, body in enumerate(model.bodies, start=1):
        tau.append(_spring_and_damper(body, q[model.q_slice[i]], qd[model.v_slice[i]]))
    tau = np.concatenate(tau)
    return _with_loops(model, q, qd, tau, _spring_and_damper, ("stiffness", "damping"))


def _with_loops(model, q, qd, tau, force, names):
    """``tau`` and what loop joints with some dynamics of these names exert."""
    for loop in model.loops:
        if any(has_dynamics(loop, name) for name in names):
            q_k, qd_k, B = loop_joint_motion(model, q, qd, [loop])
            tau = tau + B @ force(loop, q_k, qd_k)
    return tau


def _spring_and_damper(part, q, qd):
    """``-k Δ - d qd`` of the joint of a body, or of a loop joint."""
    f = np.zeros(part.joint.nv, dtype=int)
    if has_dynamics(part, "stiffness"):
        f = f - np.array(part.dynamics.stiffness) * stretch(part, q)
    if has_dynamics(part, "damping"):
        f = f - np.array(part.dynamics.damping) * qd
    return f


def _friction(part, qd):
    if not has_dynamics(part, "friction"):
        return np.zeros(part.joint.nv, dtype=int)
    return -np.array(part.dynamics.friction) * np.array([_sign(x) for x in qd])


def stretch(part, q):
    """Displacement ``Δ`` of the spring of a body's joint, or of a loop joint, (nv,)."""
    rest = np.array(part.dynamics.rest) if part.dynamics.rest else part.joint.neutral()
    return part.joint.difference(rest, q)


def _sign(x):
    return select(less(0, x), 1, select(less(x, 0), -1, 0))
