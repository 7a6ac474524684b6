"""Points and balls on a height field: the nearest point of the surface, by Newton's method."""

import numpy as np

from kinetree.contact.shapes.placed import touch
from kinetree.contact.shapes.planes import round_points
from kinetree.contact.shapes.splines import height_and_slopes
from kinetree.spatial.ops import less, select, sqrt

__all__ = ["COMPILED_HEIGHTS", "field_and_points"]

COMPILED_HEIGHTS = 400
"""Height fields with more heights than this are not compiled into kernels."""

_FOR_POINTS, _FOR_BALLS = 2, 5  # steps; a point close to the surface is above its foot


def field_and_points(a, b):
    """A point for each of ``round_points``.

    Balls smaller than the hollows of the ground are exact, other shapes touch with their corners
    and ends alone.
    """
    return [_nearest(a, b.point(local), radius) for local, radius in round_points(b.shape)]


def _nearest(a, point, radius):
    c = a.local(point)
    x, y = c[0], c[1]
    for _ in range(_FOR_BALLS if radius else _FOR_POINTS):
        x, y = _step(a.shape, c, x, y)
    s = height_and_slopes(a.shape, x, y)
    length = sqrt(s.hx * s.hx + s.hy * s.hy + 1)
    normal = np.array([-s.hx, -s.hy, 1]) / length
    foot = np.array([x, y, s.h])
    distance = normal @ (c - foot)
    return touch(a.point(foot), a.axes @ normal, distance - radius, radius)


def _step(field, c, x, y):
    """A step towards (x, y) where ``(x, y, h) - c`` is at right angles to the surface."""
    s = height_and_slopes(field, x, y)
    up = s.h - c[2]
    f, g = x - c[0] + up * s.hx, y - c[1] + up * s.hy
    xx, xy, yy = 1 + s.hx * s.hx, s.hx * s.hy, 1 + s.hy * s.hy
    bend = np.array([s.hxx, s.hxy, s.hyy]) * up
    # Beyond the centre of curvature there is no minimum: go on without the curvature there.
    det = (xx + bend[0]) * (yy + bend[2]) - (xy + bend[1]) * (xy + bend[1])
    safe = less(0.1, det)
    xx, xy, yy = (select(safe, m + k, m) for m, k in zip((xx, xy, yy), bend, strict=True))
    det = xx * yy - xy * xy
    return x - (yy * f - xy * g) / det, y - (xx * g - xy * f) / det
