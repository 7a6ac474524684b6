"""Which joints stand still when some are held: those that follow them alone do, too."""

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
        if i in leader and not leader[i].leaders:
            _follow(model, leader[i], held)
    waiting = [c for c in model.couplings if c.leaders]
    while ready := [c for c in waiting if all(i in held for i in c.leaders)]:
        for c in ready:
            waiting.remove(c)
            _follow(model, c, held)
    for i in held:
        if i in leader and not all(k in held for k in leader[i].leaders):
            c, names = leader[i], model.joint_names
            leads = " and ".join(repr(names[k - 1]) for k in c.leaders)
            raise ModelError(
                f"joint {names[i - 1]!r} follows {leads} by coupling {c.name!r} "
                f"and cannot be locked alone: lock {leads}, or remove the coupling"
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
    q = np.atleast_1d(c.position([held[i][0] for i in c.leaders]))
    given = held.setdefault(c.joint, q)
    if abs(given[0] - q[0]) > 1e-9 * (1 + abs(q[0])):
        raise ModelError(
            f"coupling {c.name!r} holds joint {names[c.joint - 1]!r} at {q[0]:.6g}; it cannot be "
            f"locked at {given[0]:.6g}"
        )
