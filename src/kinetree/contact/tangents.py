"""Axes at a contact: the normal and two tangents, as a smooth function of the normal.

No field of tangents on a sphere is continuous. This one jumps where the normal points 60° or more
below the horizon of the base, which ground, walls and most overhangs never see.
"""

import numpy as np

from kinetree.functional.choose import select

__all__ = ["contact_axes", "contact_axes_rate"]

_JUMP = -0.5


def contact_axes(normal):
    """Rows (normal, tangent 1, tangent 2), (..., 3, 3): a right-handed frame.

    The tangents are x and y of the base turned the shortest way that takes z to the normal. Many
    normals at once must be floats; traced numbers come one normal at a time.
    """
    x, y, z, s, a = _parts(normal)
    b = x * y * a
    first = [1 + s * x * x * a, s * b, -s * x]
    second = [b, s + y * y * a, -y]
    return _rows(([x, y, z], first, second))


def contact_axes_rate(normal, rate):
    """Rate of ``contact_axes`` when the normal changes at ``rate``, (..., 3, 3)."""
    x, y, _, s, a = _parts(normal)
    xd, yd, zd = np.moveaxis(rate, -1, 0)
    ad = zd * a * a
    bd = (xd * y + x * yd) * a + x * y * ad
    first = [s * (2 * x * xd * a + x * x * ad), s * bd, -s * xd]
    second = [bd, 2 * y * yd * a + y * y * ad, -yd]
    return _rows(([xd, yd, zd], first, second))


def _parts(normal):
    x, y, z = np.moveaxis(normal, -1, 0)
    s = select(z < _JUMP, -1, 1)  # of the axis ±z that is turned towards the normal
    return x, y, z, s, -1 / (s + z)


def _rows(rows):
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
