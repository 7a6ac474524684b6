"""Balls and capsules against balls, capsules, boxes and cylinders.

A ball is its centre and a radius, a capsule a segment and a radius: what is nearest to them is
what is nearest to the centre or the segment.
"""

import numpy as np

from kinetree.contact.shapes.placed import absolute, chosen, clamped, direction, touch
from kinetree.spatial import cross
from kinetree.spatial.ops import less, select

__all__ = [
    "ball_and_ball",
    "box_and_ball",
    "capsule_and_ball",
    "capsule_and_capsule",
    "cylinder_and_ball",
]


def ball_and_ball(a, b):
    """One point."""
    return [_rounded(a.origin, a.shape.radius, b.origin, b.shape.radius, a.axes[:, 2])]


def capsule_and_ball(a, b):
    """One point."""
    half = a.shape.length / 2
    return [_segment_and_point(a, half, b.origin, b.shape.radius)]


def capsule_and_capsule(a, b):
    """Five points: the nearest of the two segments, and each of the four ends on the other one.

    The ends are what holds one capsule level on another that is parallel to it.
    """
    half_a, half_b = a.shape.length / 2, b.shape.length / 2
    core_a, core_b = _nearest_of_segments(a, half_a, b, half_b)
    # Where the segments cross, the shortest way out is at right angles to both.
    across = direction(cross(a.axes[:, 2], b.axes[:, 2]), a.axes[:, 0])[0]
    middle = _rounded(core_a, a.shape.radius, core_b, b.shape.radius, across)
    ends_b = [
        _segment_and_point(a, half_a, b.point([0, 0, end]), b.shape.radius)
        for end in (half_b, -half_b)
    ]
    ends_a = [
        _segment_and_point(b, half_b, a.point([0, 0, end]), a.shape.radius).reversed()
        for end in (half_a, -half_a)
    ]
    return [middle, *ends_b, *ends_a]


def box_and_ball(a, b):
    """One point."""
    half = [s / 2 for s in a.shape.size]
    x = a.local(b.origin)
    nearest = np.array([clamped(c, -h, h) for c, h in zip(x, half, strict=True)])
    outward, distance = direction(x - nearest, [0, 0, 1])
    # With its centre inside, the ball is pushed out through the face that is nearest.
    sizes, signs = zip(*(absolute(c) for c in x), strict=True)
    depths = [h - s for h, s in zip(half, sizes, strict=True)]
    faces = np.diag(signs)
    depth, way_out = depths[2], faces[2]
    for k in (1, 0):
        nearer = less(depths[k], depth)
        depth, way_out = select(nearer, depths[k], depth), chosen(nearer, faces[k], way_out)
    inside = less(0, depth)
    normal = chosen(inside, way_out, outward)
    return [_around(a, x, normal, select(inside, -depth, distance), b.shape.radius)]


def cylinder_and_ball(a, b):
    """One point."""
    radius, half = a.shape.radius, a.shape.length / 2
    x = a.local(b.origin)
    radial, rho = direction(np.array([x[0], x[1]]), [1, 0])
    across, along = clamped(rho, 0, radius), clamped(x[2], -half, half)
    outward, distance = direction(np.array([rho - across, x[2] - along]), [0, 1])
    size, sign = absolute(x[2])
    by_side, by_end = radius - rho, half - size
    nearer = less(by_side, by_end)
    depth = select(nearer, by_side, by_end)
    inside = less(0, depth)
    way_out = chosen(nearer, [1, 0], [0, sign])
    out, up = chosen(inside, way_out, outward)
    normal = np.array([radial[0] * out, radial[1] * out, up])
    return [_around(a, x, normal, select(inside, -depth, distance), b.shape.radius)]


def _around(a, center, normal, distance, radius):
    """A ball whose centre, in coordinates of ``a``, is at a signed distance from its surface."""
    n = a.axes @ normal
    return touch(a.point(center - normal * distance), n, distance - radius)


def _rounded(core_a, radius_a, core_b, radius_b, fallback, ball=0):
    n, distance = direction(core_b - core_a, fallback)
    return touch(core_a + n * radius_a, n, distance - radius_a - radius_b, ball)


def _segment_and_point(a, half, point, radius):
    along = clamped(a.local(point)[2], -half, half)
    core = a.point([0, 0, along])
    return _rounded(core, a.shape.radius, point, radius, a.axes[:, 0], radius)


def _nearest_of_segments(a, half_a, b, half_b):
    """The points of two segments that are nearest to each other, (3,) each."""
    u, w, d = a.axes[:, 2], b.axes[:, 2], b.origin - a.origin
    c, e, f = u @ w, u @ d, w @ d
    slant = 1 - c * c
    crossing = less(1e-12, slant)
    free = (e - c * f) / select(crossing, slant, 1)
    level = (e + clamped(e, -half_a - half_b, half_a + half_b)) / 2  # parallel: amid the overlap
    s = clamped(select(crossing, free, level), -half_a, half_a)
    t = clamped(c * s - f, -half_b, half_b)
    s = clamped(c * t + e, -half_a, half_a)
    return a.origin + u * s, b.origin + w * t
