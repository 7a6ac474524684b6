"""Several points where two convex shapes lie against each other: a face, cut by the other.

A routine for distances gives one point. Where the normal is that of a flat face of one shape, the
nearest corners of the other, cut off at the border of the face, carry the load together: they do
for contact all over it, RBDA §11.6.
"""

import numpy as np

from kinetree.contact.features import farthest_points
from kinetree.contact.polygons import clipped, hull_order
from kinetree.contact.shapes.hulls import hull_of
from kinetree.contact.shapes.placed import touch
from kinetree.contact.tangents import contact_axes
from kinetree.model.geometry import Plane

__all__ = ["manifold", "on_plane"]

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
