"""Closed forms of pairs of shapes: where they touch, as formulas that can be compiled."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from kinetree.contact.finding.shapes import (
    COMPILED_VERTICES,
    absolute,
    choose,
    clamp,
    direction,
    height_and_derivatives,
    hollow,
    hull_of,
    touch,
)
from kinetree.model import geometry
from kinetree.spatial import cross
from kinetree.spatial.ops import less, select, sqrt

# --- A ball on a height field, by Newton's method ------------------------------------------------
# In a ditch that is narrower than the ball there are two, and other shapes may touch with
# corners, edges and faces at any number of places: see ``terrain``, which is not compiled.

COMPILED_HEIGHTS = 400
"""Height fields with more heights than this are not compiled into kernels."""

_STEPS = 5


def fits(field, ball) -> bool:
    """Whether a ball is smaller than all hollows of a field, so that it touches once."""
    return ball.radius * hollow(field) < 1


def field_and_ball(a, b):
    """Contact of a height field and a ball that is smaller than the field's hollows."""
    c = a.local(b.origin)
    x, y = c[0], c[1]
    for _ in range(_STEPS):
        x, y = _step(a.shape, c, x, y)
    s = height_and_derivatives(a.shape, x, y)
    length = sqrt(s.hx * s.hx + s.hy * s.hy + 1)
    normal = np.array([-s.hx, -s.hy, 1]) / length
    foot = np.array([x, y, s.h])
    distance = normal @ (c - foot)
    radius = b.shape.radius
    return [touch(a.point(foot), a.axes @ normal, distance - radius)]


def _step(field, c, x, y):
    """One Newton step towards the foot (x, y) of point ``c`` on a height field."""
    s = height_and_derivatives(field, x, y)
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


# --- Convex shapes on a plane --------------------------------------------------------------------

RIM_POINTS = 4
_UPRIGHT = 1e-3  # sine of the tilt below which a cylinder stands on its rim as a whole
_STANDING = 0.05  # sine of the tilt below which corners of its rim may arrive next


def round_points(shape):
    """Points and radii of balls whose convex hull is the shape; of a cylinder inscribed.

    Of a cylinder they are corners of its two rims: an approximation from inside.
    """
    if isinstance(shape, geometry.Sphere):
        return [([0, 0, 0], shape.radius)]
    if isinstance(shape, geometry.Capsule):
        return [([0, 0, end * shape.length / 2], shape.radius) for end in (1, -1)]
    if isinstance(shape, geometry.Box):
        x, y, z = (s / 2 for s in shape.size)
        return [([i * x, j * y, k * z], 0) for i in (1, -1) for j in (1, -1) for k in (1, -1)]
    if isinstance(shape, geometry.Cylinder):
        angles = [2 * math.pi * k / RIM_POINTS for k in range(RIM_POINTS)]
        rim = [(shape.radius * math.cos(t), shape.radius * math.sin(t)) for t in angles]
        return [([x, y, end * shape.length / 2], 0) for end in (1, -1) for x, y in rim]
    return [(vertex, 0) for vertex in hull_of(shape).vertices.tolist()]


def plane_and_points(a, b):
    """Contacts of a plane with each of ``round_points``: exact for all but cylinders."""
    return [_above(a, b.point(local), radius) for local, radius in round_points(b.shape)]


def plane_and_ellipsoid(a, b):
    """Contact of a plane and an ellipsoid at its lowest point."""
    n = a.axes[:, 2]
    m = b.axes.T @ n
    stretched = np.array([r * x for r, x in zip(b.shape.radii, m, strict=True)])
    length = sqrt(stretched @ stretched)
    lowest = -np.array([r * x for r, x in zip(b.shape.radii, stretched, strict=True)]) / length
    return [_above(a, b.point(lowest), 0)]


def plane_and_cylinder(a, b):
    """Ten contacts of a plane and a cylinder: lowest rim points, and rim corners.

    Rolling and tilting are exact. The disc that a standing cylinder rests on is approximated by a
    square, RBDA Fig. 11.7, whose first corner also stands in for the lowest point there. Of one
    that is tilted, corners are where the lowest point is: they would hold back what rolls.
    """
    m = b.axes.T @ a.axes[:, 2]
    down = np.array([-m[0], -m[1]])
    lean = down @ down
    down = choose(less(_UPRIGHT * _UPRIGHT, lean), down, [1, 0])
    lowest, stands = down * (b.shape.radius / sqrt(down @ down)), less(lean, _STANDING * _STANDING)
    points = [[*lowest, end * b.shape.length / 2] for end in (1, -1)]
    points += [
        [*choose(stands, corner[:2], lowest), corner[2]] for corner, _ in round_points(b.shape)
    ]
    return [_above(a, b.point(p), 0) for p in points]


def _above(a, point, radius):
    """Contact of a plane with a ball about a point."""
    n = a.axes[:, 2]
    distance = n @ (point - a.origin)
    return touch(point - n * distance, n, distance - radius)


# --- Balls and capsules against balls, capsules, boxes and cylinders -----------------------------
# A ball is its centre and a radius, a capsule a segment and a radius: what is nearest to them is
# what is nearest to the centre or the segment.


def ball_and_ball(a, b):
    """Contact of two balls: one point."""
    return [_touch_rounded(a.origin, a.shape.radius, b.origin, b.shape.radius, a.axes[:, 2])]


def capsule_and_ball(a, b):
    """Contact of a capsule and a ball: one point."""
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
    middle = _touch_rounded(core_a, a.shape.radius, core_b, b.shape.radius, across)
    ends_b = [
        _segment_and_point(a, half_a, b.point([0, 0, end]), b.shape.radius)
        for end in (half_b, -half_b)
    ]
    ends_a = [
        _segment_and_point(b, half_b, a.point([0, 0, end]), a.shape.radius).reverse()
        for end in (half_a, -half_a)
    ]
    return [middle, *ends_b, *ends_a]


def box_and_ball(a, b):
    """Contact of a box and a ball: one point."""
    half = [s / 2 for s in a.shape.size]
    x = a.local(b.origin)
    nearest = np.array([clamp(c, -h, h) for c, h in zip(x, half, strict=True)])
    # With its centre inside, the ball is pushed out through the face that is nearest.
    sizes, signs = zip(*(absolute(c) for c in x), strict=True)
    depths = [h - s for h, s in zip(half, sizes, strict=True)]
    faces = np.diag(signs)
    depth, way_out = depths[2], faces[2]
    for k in (1, 0):
        nearer = less(depths[k], depth)
        depth, way_out = select(nearer, depths[k], depth), choose(nearer, faces[k], way_out)
    normal, distance = direction(x - nearest, way_out)
    return [_around(a, x, normal, select(less(0, distance), distance, -depth), b.shape.radius)]


def cylinder_and_ball(a, b):
    """Contact of a cylinder and a ball: one point."""
    radius, half = a.shape.radius, a.shape.length / 2
    x = a.local(b.origin)
    radial, rho = direction(np.array([x[0], x[1]]), [1, 0])
    across, along = clamp(rho, 0, radius), clamp(x[2], -half, half)
    size, sign = absolute(x[2])
    by_side, by_end = radius - rho, half - size
    nearer = less(by_side, by_end)
    depth = select(nearer, by_side, by_end)
    way_out = choose(nearer, [1, 0], [0, sign])
    (out, up), distance = direction(np.array([rho - across, x[2] - along]), way_out)
    normal = np.array([radial[0] * out, radial[1] * out, up])
    return [_around(a, x, normal, select(less(0, distance), distance, -depth), b.shape.radius)]


def _around(a, center, normal, distance, radius):
    """Contact of shape ``a`` with a ball at signed distance from its surface, in ``a``'s frame."""
    n = a.axes @ normal
    return touch(a.point(center - normal * distance), n, distance - radius)


def _touch_rounded(core_a, radius_a, core_b, radius_b, fallback):
    """Contact of two rounded cores from their nearest core points and radii."""
    n, distance = direction(core_b - core_a, fallback)
    return touch(core_a + n * radius_a, n, distance - radius_a - radius_b)


def _segment_and_point(a, half, point, radius):
    """Contact of a capsule with a ball at a point."""
    along = clamp(a.local(point)[2], -half, half)
    core = a.point([0, 0, along])
    return _touch_rounded(core, a.shape.radius, point, radius, a.axes[:, 0])


def _nearest_of_segments(a, half_a, b, half_b):
    """Nearest points of two capsules' axis segments, (3,) each."""
    u, w, d = a.axes[:, 2], b.axes[:, 2], b.origin - a.origin
    c, e, f = u @ w, u @ d, w @ d
    slant = 1 - c * c
    crossing = less(1e-12, slant)
    free = (e - c * f) / select(crossing, slant, 1)
    s = clamp(select(crossing, free, e), -half_a, half_a)  # parallel: beside the middle of b
    t = clamp(c * s - f, -half_b, half_b)
    s = clamp(c * t + e, -half_a, half_a)
    return a.origin + u * s, b.origin + w * t


def _swap(function, a, b):
    """Contacts of a closed form applied to the two shapes in reverse order."""
    return [touch.reverse() for touch in function(b, a)]


CLOSED_FORMS: dict[tuple[type, type], Callable] = {
    (geometry.Plane, geometry.Sphere): plane_and_points,
    (geometry.Plane, geometry.Capsule): plane_and_points,
    (geometry.Plane, geometry.Box): plane_and_points,
    (geometry.Plane, geometry.Mesh): plane_and_points,
    (geometry.Plane, geometry.Cylinder): plane_and_cylinder,
    (geometry.Plane, geometry.Ellipsoid): plane_and_ellipsoid,
    (geometry.HeightField, geometry.Sphere): field_and_ball,
    (geometry.Sphere, geometry.Sphere): ball_and_ball,
    (geometry.Capsule, geometry.Sphere): capsule_and_ball,
    (geometry.Capsule, geometry.Capsule): capsule_and_capsule,
    (geometry.Box, geometry.Sphere): box_and_ball,
    (geometry.Cylinder, geometry.Sphere): cylinder_and_ball,
}

CLOSED_FORMS |= {
    (second, first): partial(_swap, function)
    for (first, second), function in CLOSED_FORMS.items()
    if first is not second
}


def has_closed_form(a, b) -> bool:
    """Whether contacts of a pair of shapes are known in closed form."""
    return (type(a), type(b)) in CLOSED_FORMS


def is_compiled(a, b) -> bool:
    """Whether a pair has a complete closed form that is short enough to compile."""
    if not has_closed_form(a, b) or any(_is_long(shape) for shape in (a, b)):
        return False
    field, ball = (a, b) if isinstance(a, geometry.HeightField) else (b, a)
    return not isinstance(field, geometry.HeightField) or fits(field, ball)


def _is_long(shape):
    """Whether a hull or a height field is too large for straight-line code."""
    if isinstance(shape, geometry.Mesh):
        return len(hull_of(shape).vertices) > COMPILED_VERTICES
    if isinstance(shape, geometry.HeightField):
        return len(shape.heights) * len(shape.heights[0]) > COMPILED_HEIGHTS
    return False


def touches(a, b):
    """Nearest points of two placed shapes: a fixed number of ``Touch``, from ``a`` to ``b``."""
    return CLOSED_FORMS[type(a.shape), type(b.shape)](a, b)
