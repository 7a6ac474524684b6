"""Successive turns about coordinate axes, each axis carried along by the turns before it."""

import numpy as np

from kinetree.spatial.transform import rx, ry, rz
from kinetree.spatial.vector3 import ZERO3, cross, identity3

__all__ = ["successive_turns"]


def successive_turns(axes, q, qd):
    """Rotation ``E``, axes and bias of a gimbal, all in the coordinates of the last frame.

    Args:
        axes: one letter for each turn.
        q: angles [rad].
        qd: their rates [rad/s].

    Returns:
        ``E``; a 3×n array whose column k maps the k-th rate to angular velocity — RBDA (4.8); and
        the angular acceleration at constant rates — RBDA (4.9).
    """
    E, s, w, bias = identity3(), [], ZERO3, ZERO3
    for axis, angle, rate in reversed(list(zip(axes, q, qd, strict=True))):
        k = "xyz".index(axis)
        s.insert(0, E[:, k])
        # Seen from the last frame, an axis turns against the turns that follow it.
        bias = bias - cross(w, s[0]) * rate
        w = w + s[0] * rate
        E = E @ (rx, ry, rz)[k](angle)
    return E, np.column_stack(s), bias
