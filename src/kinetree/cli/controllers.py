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
        name: ``none``; ``gravity`` carries the weight; ``pd`` also pulls to ``goal``. Both within
            the effort limits of the joints.
        goal: positions (nq,).
    """
    import kinetree as kt

    if name not in NAMES:
        hint = did_you_mean(name, NAMES, f"there are {', '.join(NAMES)}")
        misuse(f"no controller is called {name!r}; {hint}")
    if name == "none":
        return None
    driven = _driven(model)
    law = kt.control.GravityCompensation(model)
    if name == "pd":
        inertia = np.diagonal(kt.mass_matrix(model, goal))
        kp, kd = BANDWIDTH**2 * inertia, 2 * BANDWIDTH * inertia
        law = kt.control.PDWithFeedforward(model, goal, kp, kd, feedforward="gravity")
    most = np.where(model.effort_limits > 0, model.effort_limits, np.inf)  # as far as motors go
    return lambda t, q, qd: np.clip(driven * law(t, q, qd), -most, most)


def _driven(model):
    """One for each velocity that a motor can act on: not those of joints that float freely."""
    from kinetree.joints import Free

    driven = np.ones(model.nv)
    for i, body in enumerate(model.bodies, start=1):
        if isinstance(body.joint, Free):
            driven[model.v_slice[i]] = 0
    return driven
