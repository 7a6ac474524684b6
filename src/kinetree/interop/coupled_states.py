"""States of models with couplings, to and from programs with a variable for every joint."""

import numpy as np

from kinetree.model.arrays import as_configuration, as_joint_vector
from kinetree.model.gearing import Gearing

__all__ = ["all_joints", "leading_forces", "leading_positions", "leading_variables"]


def all_joints(model, q, *, qd=None, qdd=None, tau=None):
    """``model.uncoupled`` and the given arrays of all its joints, in this order.

    Forces of followers are zero: what they would add is in those of the leaders.
    """
    if not model.couplings:
        return model, q, *(x for x in (qd, qdd, tau) if x is not None)
    q = as_configuration(model, q)
    found = [model.uncoupled, model.expand(q)]
    if qd is not None:
        found.append(model.expand_velocity(q, qd))
    if qdd is not None:
        found.append(model.expand_acceleration(q, qd, qdd))
    if tau is not None:
        tau = as_joint_vector(model, tau, "tau")
        forces = np.zeros((*tau.shape[:-1], model.uncoupled.nv), tau.dtype)
        forces[..., model.independent_variables[1]] = tau
        found.append(forces)
    return tuple(found)


def leading_positions(model, q):
    """``q`` of a model from the positions of all joints; those of the followers are dropped."""
    return q[..., model.independent_variables[0]] if model.couplings else q


def leading_variables(model, x):
    """Velocities or accelerations of a model from those of all joints."""
    return x[..., model.independent_variables[1]] if model.couplings else x


def leading_forces(model, q, tau):
    """Joint forces of a model, ``Gᵀ tau``, from those of all joints at the positions ``q``."""
    if not model.couplings:
        return tau
    y = leading_positions(model, q)
    batch = np.broadcast_shapes(y.shape[:-1], tau.shape[:-1])
    y, tau = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (y, tau))
    result = np.zeros((*batch, model.nv), tau.dtype)
    for n in np.ndindex(batch):
        result[n] = Gearing(model, y[n]).G.T @ tau[n]
    return result
