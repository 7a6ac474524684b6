"""Forces that joints exert of their own accord: springs, dampers, dry friction."""

import numpy as np

from kinetree.model.dynamics import has_dynamics
from kinetree.spatial.ops import less, select

__all__ = ["passive_force"]


def passive_force(model, q, qd):
    """``-k Δ - d qd - c sign(qd)`` of every joint, (nv,); dry friction is zero at rest.

    ``Δ`` is the displacement from the rest position on the manifold of the joint,
    ``joint.difference(rest, q)``.
    """
    tau = [model.zero_velocity[:0]]
    for i, body in enumerate(model.bodies, start=1):
        q_i, qd_i = q[model.q_slice[i]], qd[model.v_slice[i]]
        joint, dynamics, f = body.joint, body.dynamics, np.zeros(body.joint.nv, dtype=int)
        if has_dynamics(body, "stiffness"):
            rest = np.array(dynamics.rest) if dynamics.rest else joint.neutral()
            f = f - np.array(dynamics.stiffness) * joint.difference(rest, q_i)
        if has_dynamics(body, "damping"):
            f = f - np.array(dynamics.damping) * qd_i
        if has_dynamics(body, "friction"):
            f = f - np.array(dynamics.friction) * np.array([_sign(x) for x in qd_i])
        tau.append(f)
    return np.concatenate(tau)


def _sign(x):
    return select(less(0, x), 1, select(less(x, 0), -1, 0))
