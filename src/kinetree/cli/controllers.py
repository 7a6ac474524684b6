"""Controllers that a simulation can be told by name."""

import numpy as np

from kinetree.cli.errors import misuse
from kinetree.spelling import did_you_mean

__all__ = ["NAMES", "controller"]

NAMES = ("none", "gravity", "pd")
BANDWIDTH = 10.0
"""How fast springs and dampers pull, as the natural frequency of each joint [rad/s]."""


def controller(model, name, goal):
    """A function ``(t, q, qd)`` to joint forces, or None.

    Args:
        model: the mechanism.
        name: ``none``; ``gravity`` carries the weight; ``pd`` also pulls to ``goal``.
        goal: positions (nq,).
    """
    import kinetree as kt

    if name not in NAMES:
        hint = did_you_mean(name, NAMES, f"there are {', '.join(NAMES)}")
        misuse(f"no controller is called {name!r}; {hint}")
    if name == "none":
        return None
    driven = _driven(model)
    inertia = np.diagonal(kt.mass_matrix(model, goal)) if name == "pd" else np.zeros(model.nv)
    kp, kd = BANDWIDTH**2 * inertia * driven, 2 * BANDWIDTH * inertia * driven

    def force(t, q, qd):
        return driven * kt.gravity_force(model, q) + kp * model.difference(q, goal) - kd * qd

    return force if name == "pd" else lambda t, q, qd: driven * kt.gravity_force(model, q)


def _driven(model):
    """One for each velocity that a motor can act on: not those of joints that float freely."""
    from kinetree.joints import Free

    driven = np.ones(model.nv)
    for i, body in enumerate(model.bodies, start=1):
        if isinstance(body.joint, Free):
            driven[model.v_slice[i]] = 0
    return driven
