"""Joints that move as told while bodies touch in equal steps: what their drives exert."""

import numpy as np

from kinetree.contact import mobility
from kinetree.errors import ModelError
from kinetree.model.tree import supports

__all__ = ["drive_forces", "require_movable"]


def require_movable(scene, told):
    """Raise for pairs of bodies that only joints that move as told could keep apart."""
    model = scene.model
    fixed = set(told.joints)
    fixed |= {c.joint for c in model.couplings if fixed.issuperset(c.leaders)}
    kappa = [set(joints) - fixed for joints in supports(model.parent)]
    stuck = [
        f"{pair.first.name!r} and {pair.second.name!r}"
        for pair in scene.pairs
        if not kappa[pair.first.body] ^ kappa[pair.second.body]
    ]
    if stuck:
        raise ModelError(
            f"{', '.join(stuck)}: between these only joints that move as told "
            f"({', '.join(map(repr, told.names))}) could keep the shapes apart, and they do not "
            f"give way; leave the pairs out of the scene, with ignore="
        )


def drive_forces(step, field, arrays, history):
    """Joint forces of the controller, and of the drives where it has no say, (T, ..., nv).

    Those that go with the contact forces of the step that ended at each time.

    Args:
        step: a ``ContactStep``.
        field: what moves the mechanism.
        arrays: what was stored, by name.
        history: ``ContactHistory``, of contact forces.
    """
    model, told = step.holds.model, step.told
    free, found = told.others(model) == 1, np.array(arrays["tau"])
    for at in np.ndindex(found.shape[:-1]):
        t, tau = arrays["t"][at[0]], found[at]
        q, qd, qdd = told.at(model, t, arrays["q"][at], arrays["qd"][at])
        push = _push(step.holds.at(model, q, qd), history, at)
        acting = field.joint_force(model, t, q, qd, tau)
        qdd = mobility.free_acceleration(model, q, qd, acting + push, told.names, qdd)
        total = mobility.drive_forces(model, q, qd, acting, qdd, push, told.names)
        found[at] = np.where(free, tau, total - acting)
    return found


def _push(rows, history, at):
    """Joint forces, (nv,), of all rows but loops, at one stored time."""
    known = dict(zip(history.names, history.force[at], strict=True))
    contacts = [known.get(name, np.zeros(3)) for name in rows.names]
    forces, count = np.concatenate([*contacts, history.joint_force[at]]), len(rows.error)
    return forces[: len(forces) - count] @ rows.G[: len(rows.G) - count]
