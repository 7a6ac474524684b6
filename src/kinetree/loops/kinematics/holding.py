"""Joints that are held at given positions while loops are closed."""

import numpy as np

from kinetree.errors import ShapeError
from kinetree.loops.linear.independent import velocity_columns

__all__ = ["held"]


def held(model, q, hold):
    """Configurations with the held joints set, and which velocity variables stay free, (nv,).

    Args:
        model: the mechanism.
        q: configurations, (..., nq).
        hold: names of joints that stay where they are in ``q``, or positions by joint name.
    """
    names = [hold] if isinstance(hold, str) else list(hold)
    free = np.ones(model.nv, dtype=bool)
    free[velocity_columns(model, names, "hold")] = False
    q = np.array(q, dtype=float)
    for name, given in hold.items() if isinstance(hold, dict) else ():
        at = model.q_slice[model.joint_index(name)]
        value = np.atleast_1d(np.asarray(given, dtype=float))
        if value.shape != (at.stop - at.start,):
            raise ShapeError(
                f"joint {name!r} must be held at {at.stop - at.start} numbers, got {given!r}"
            )
        q[..., at] = value
    return q, free
