"""Which joints stand still when some are held: those that follow them do, too."""

import numpy as np

from kinetree.errors import ModelError

__all__ = ["held_positions"]


def held_positions(model, positions):
    """Position variables (nq,) of every joint that stands still, by joint number.

    Args:
        model: the model.
        positions: position variables by joint name, a number or (nq,).
    """
    held = {model.joint_index(name): _position(model, name, q) for name, q in positions.items()}
    leader = {c.joint: c for c in model.couplings}
    for i in list(held):
        if i in leader and leader[i].source == 0:
            _follow(model, leader[i], held)
    waiting = [c for c in model.couplings if c.source != 0]
    while ready := [c for c in waiting if c.source in held]:
        for c in ready:
            waiting.remove(c)
            _follow(model, c, held)
    for i in held:
        if i in leader and leader[i].source not in (0, *held):
            c, names = leader[i], model.joint_names
            raise ModelError(
                f"joint {names[i - 1]!r} follows {names[c.source - 1]!r} by coupling {c.name!r} "
                f"and cannot be locked alone: lock {names[c.source - 1]!r}, or remove the coupling"
            )
    return held


def _position(model, name, q):
    joint = model.bodies[model.joint_index(name) - 1].joint
    q = np.atleast_1d(np.asarray(q))
    if q.shape != (joint.nq,):
        raise ModelError(f"joint {name!r} has {joint.nq} position variables, got {q.tolist()}")
    defect = joint.defect(q)
    if defect:
        raise ModelError(f"joint {name!r} cannot be locked there: {defect}")
    return q


def _follow(model, c, held):
    """Put the follower of a joint that is held where it belongs."""
    names = model.joint_names
    q = np.polynomial.Polynomial(c.coefficients)(held.get(c.source, np.zeros(1)))
    given = held.setdefault(c.joint, q)
    if abs(given[0] - q[0]) > 1e-9 * (1 + abs(q[0])):
        raise ModelError(
            f"coupling {c.name!r} holds joint {names[c.joint - 1]!r} at {q[0]:.6g}; it cannot be "
            f"locked at {given[0]:.6g}"
        )
