"""Position errors of joints that share an axis — RBDA §8.3, Table 8.1, for any axis.

The table is printed for the z axis, entry by entry of the 6×6 matrix ``X``. Here ``frame`` is a
right-handed basis ``(u, v, a)`` with ``a`` along the joint axis: ``X23 = v·E a``, ``X53 = v·B a``,
where ``B a = E (a × r)`` is ``a`` times the lower left block. Every error vanishes with the
closure error, and its rate is then ``Tᵀ v_J``.
"""

import numpy as np

from kinetree.spatial.vector3 import cross

__all__ = ["axis_offset", "axis_shift", "axis_tilt"]


def axis_tilt(X, frame):
    """``(X23, -X13)``: how far the axes of the two frames are from parallel."""
    u, v, a = frame
    Ea = X.E @ a
    return np.array([v @ Ea, -(u @ Ea)])


def axis_offset(X, frame):
    """``(X53, -X43)``: distance of the successor's origin from the axis."""
    u, v, a = frame
    Ba = X.E @ cross(a, X.r)
    return np.array([v @ Ba, -(u @ Ba)])


def axis_shift(X, frame):
    """``X41 X21 + X42 X22``: shift along the axis."""
    u, v, a = frame
    return a @ X.E @ X.r - (u @ X.E @ cross(a, X.r)) * (v @ X.E @ a)
