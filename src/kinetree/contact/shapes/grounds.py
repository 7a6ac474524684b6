"""A ball on a height field: the nearest point of the surface, by Newton's method.

In a ditch that is narrower than the ball there are two, and other shapes may touch with corners,
edges and faces at any number of places: see ``terrain``, which is not compiled.
"""

import numpy as np

from kinetree.contact.shapes.placed import touch
from kinetree.contact.shapes.splines import height_and_slopes, hollow
from kinetree.spatial.ops import less, select, sqrt

__all__ = ["COMPILED_HEIGHTS", "field_and_ball", "fits"]

COMPILED_HEIGHTS = 400
"""Height fields with more heights than this are not compiled into kernels."""

_STEPS = 5


def fits(field, ball) -> bool:
    """Whether a ball is smaller than all hollows of a field, and so touches it in one place."""
    return ball.radius * hollow(field) < 1


def field_and_ball(a, b):
    """One point, where the ball is smaller than the hollows of the ground."""
    c = a.local(b.origin)
    x, y = c[0], c[1]
    for _ in range(_STEPS):
        x, y = _step(a.shape, c, x, y)
    s = height_and_slopes(a.shape, x, y)
    length = sqrt(s.hx * s.hx + s.hy * s.hy + 1)
    normal = np.array([-s.hx, -s.hy, 1]) / length
    foot = np.array([x, y, s.h])
    distance = normal @ (c - foot)
    radius = b.shape.radius
    return [touch(a.point(foot), a.axes @ normal, distance - radius, radius)]


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
