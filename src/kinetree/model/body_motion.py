"""Where a body is and how fast it moves, from the joints that carry it."""

import numpy as np

__all__ = ["body_motion", "loop_state"]


def body_motion(model, i, q, qd):
    """Transform from the base to body ``i``, and velocity of it in its coordinates."""
    if model.couplings:
        return body_motion(model.uncoupled, i, model.expand(q), model.expand_velocity(q, qd))
    X, v = model.identity_transform, model.zero_motion
    for k in model.support[i]:
        X_J, _, v_J, _ = model.jcalc(k, q, qd)
        X_k = X_J @ model.tree_transform[k]
        X, v = X_k @ X, X_k @ v + v_J
    return X, v


def loop_state(model, loop, q, qd):
    """Position and velocity variables of a loop joint, measured on its bodies."""
    (X_p, v_p), (X_s, v_s) = (
        body_motion(model, i, q, qd) for i in (loop.predecessor, loop.successor)
    )
    X_p, X_s = loop.predecessor_placement @ X_p, loop.successor_placement @ X_s
    X_J = X_s @ X_p.inverse()
    v_J = loop.successor_placement @ v_s - X_J @ (loop.predecessor_placement @ v_p)
    q_k = loop.joint.coordinates(X_J)
    _, _, sigma, _ = loop.joint.jcalc(q_k, np.zeros(loop.joint.nv))
    return q_k, loop.joint.velocity_variables(q_k, v_J - sigma)
