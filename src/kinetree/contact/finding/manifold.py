"""Contact manifolds of two convex shapes: a face of one, clipped by the other.

A routine for distances gives one point. Where the normal is that of a flat face of one shape, the
nearest corners of the other, cut off at the border of the face, carry the load together: they do
for contact all over it, RBDA §11.6.
"""

import numpy as np

from kinetree.contact.contacts import contact_axes
from kinetree.contact.finding.shapes import hull_of, touch
from kinetree.contact.finding.supports import farthest_points
from kinetree.model.geometry import Plane

_FACE = 1e-7  # [rad] by which the normal may miss that of a face


def manifold(a, b, normal, gap, foot):
    """Where two shapes touch, given how they are nearest: a list of ``Touch``.

    Args:
        a: first ``Placed`` shape.
        b: second.
        normal: unit vector from the first to the second, (3,).
        gap: distance along it [m].
        foot: nearest point of the first shape, (3,).
    """
    face_a = farthest_points(a, normal, _FACE)
    face_b = farthest_points(b, -normal, _FACE)
    if len(face_a) > 2:
        found = _resting(face_a, farthest_points(b, -normal), normal)
    elif len(face_b) > 2:
        found = [t.reversed() for t in _resting(face_b, farthest_points(a, normal), -normal)]
    elif len(face_a) == len(face_b) == 2:
        lines = _side_by_side if _are_parallel(face_a, face_b) else _crossing
        found = lines(face_a, face_b, normal)
    else:
        found = []
    return found or [touch(foot, normal, gap)]


def _resting(face, points, normal):
    """Points of another shape above a face, cut off at its border."""
    axes = contact_axes(normal)
    order = hull_order((face - face[0]) @ axes[1:].T)
    if len(order) > 2:  # the normal of the face itself, free of the errors of the search
        axes = contact_axes(_normal_of(face[order]))
    window = (face[order] - face[0]) @ axes[1:].T
    local = (points - face[0]) @ axes[[1, 2, 0]].T  # the height comes last
    local = clipped(local[hull_order(local[:, :2])], window)
    found = [touch(face[0] + p[:2] @ axes[1:], axes[0], p[2]) for p in local]
    return [t._replace(face=0) for t in found]


def _normal_of(polygon):
    """Unit normal of a plane polygon, by Newell's formula."""
    around = polygon - polygon.mean(axis=0)
    area = np.sum(np.cross(around, np.roll(around, -1, axis=0)), axis=0)
    return area / np.sqrt(area @ area)


def _crossing(a, b, normal):
    """The nearest points of two edges that pass each other."""
    u, w, d = a[1] - a[0], b[1] - b[0], b[0] - a[0]
    s, _ = np.linalg.lstsq(np.column_stack([u, -w]), d - normal * (normal @ d), rcond=None)[0]
    return [touch(a[0] + s * u, normal, normal @ d)]


def _are_parallel(a, b):
    u, w = a[1] - a[0], b[1] - b[0]
    return np.sum(np.cross(u, w) ** 2) < 1e-10 * (u @ u) * (w @ w)


def _side_by_side(a, b, normal):
    """Both ends of the overlap of two parallel edges."""
    along = (a[1] - a[0]) / np.sqrt(np.sum((a[1] - a[0]) ** 2))
    (low, high), (start, end) = (np.sort((e - a[0]) @ along) for e in (a, b))
    ends = max(low, start), min(high, end)
    if ends[0] > ends[1]:
        return []
    height = normal @ (b[0] - a[0])
    return [touch(a[0] + s * along, normal, height) for s in dict.fromkeys(ends)]


def on_plane(a, b, margin):
    """Corners of a mesh with many of them that are at most ``margin`` above a plane."""
    if not isinstance(a.shape, Plane):
        return [t.reversed() for t in on_plane(b, a, margin)]
    n = a.axes[:, 2]
    points = b.origin + hull_of(b.shape).vertices @ b.axes.T
    heights = (points - a.origin) @ n
    low = heights <= margin
    return [touch(p - h * n, n, h) for p, h in zip(points[low], heights[low], strict=True)]


# --- Convex polygons -----------------------------------------------------------------------------


def hull_order(points, tolerance=1e-12):
    """Numbers of the points on the convex hull of points of a plane, counter-clockwise.

    Points on edges, and all but one of those that coincide, are left out. Andrew's monotone chain.

    Args:
        points: (n, 2).
        tolerance: how far, as a part of the size of the set, a point must stick out.
    """
    if not len(points):
        return []
    points = np.asarray(points, dtype=float)
    order = np.lexsort((points[:, 1], points[:, 0]))
    size = np.max(np.ptp(points, axis=0))
    chain = _half_hull(points, order, tolerance * size)
    back = _half_hull(points, order[::-1], tolerance * size)
    return chain[:-1] + back[:-1] or [int(order[0])]


def _half_hull(points, order, tolerance):
    chain: list[int] = []
    for k in order:
        if chain and np.max(np.abs(points[k] - points[chain[-1]])) <= tolerance:
            continue
        while len(chain) > 1 and _height(points, chain[-2], chain[-1], k) <= tolerance:
            chain.pop()
        chain.append(int(k))
    return chain


def _height(points, a, b, c):
    """How far b is to the right of the line from a to c."""
    (x, y), (u, v) = points[b] - points[a], points[c] - points[a]
    return (x * v - y * u) / max(np.hypot(u, v), np.finfo(float).tiny)


def clipped(points, window):
    """The part of a convex polygon, or of a segment or point, that lies over a convex window.

    Sutherland and Hodgman's algorithm. Coordinates beyond the first two are carried along.

    Args:
        points: corners in order, (n, k) with k at least 2.
        window: corners, counter-clockwise, (m, 2).
    """
    corners = [np.asarray(p, dtype=float) for p in points]
    for a, b in zip(window, np.roll(window, -1, axis=0), strict=True):
        edge = b - a
        inside = [edge[0] * (p[1] - a[1]) - edge[1] * (p[0] - a[0]) for p in corners]
        corners = _cut(corners, inside, 1e-12 * (edge @ edge))
    return np.array(corners).reshape(-1, np.shape(points)[1])


def _cut(corners, inside, tolerance):
    """The corners that are inside, and where sides cross the line."""
    n, kept = len(corners), []
    for k in range(n):
        here, there = inside[k], inside[(k + 1) % n]
        if here >= -tolerance:
            kept.append(corners[k])
        crosses = (here > tolerance and there < -tolerance) or (
            here < -tolerance and there > tolerance
        )
        if crosses and not (n == 2 and k == 1):  # a segment has one side, not two
            kept.append(corners[k] + here / (here - there) * (corners[(k + 1) % n] - corners[k]))
    return kept
