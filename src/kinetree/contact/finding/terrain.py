"""Where a convex shape is nearest to a height field: corners, edges, rims, faces, and round sides.

The ground is smooth, so that the normal of every contact is that of the ground. Above a foot
``g = (x, y, h)`` with the tangents ``t1 = (1, 0, hx)``, ``t2 = (0, 1, hy)`` and the upward vector
``N = (-hx, -hy, 1)`` a point ``p`` of the shape is nearest if

    corner          t1 · (p - g) = t2 · (p - g) = 0
    edge, rim       the same, and the curve is level there: N · dp/ds = 0
    face            its normal is that of the ground: t1 · f = t2 · f = 0
    ball, capsule   t1 · (k - g) = t2 · (k - g) = 0 with the point k of the core nearest to g;
                    likewise the side of a cylinder, away from its ends
    ellipsoid       t1 · (p - g) = t2 · (p - g) = 0 with p farthest along -N

Every shape may be nearest in many places: a plank lies on two ridges, a ball in a ditch on both of
its sides. All are found: clearances are sampled closer than the heights are, every local minimum of
the samples is a start, and Newton's method ends on the conditions above. Two minima of which one is
missed are within a quarter of the spacing of the heights of each other. NumPy only.
"""

import numpy as np

from kinetree.contact.finding.height_fields import ground_at
from kinetree.contact.finding.shapes import Placed, hull_of, touch
from kinetree.contact.finding.terrain_points import (
    Found,
    nearest_to_corners,
    nearest_to_curves,
    nearest_to_ellipsoid,
    nearest_to_face,
    nearest_to_round,
)
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Sphere

_RIM = 32  # samples of a rim at least


def on_terrain(a, b, margin):
    """Where a shape is within ``margin`` of a height field: a list of ``Touch``, ``a`` first."""
    if not isinstance(a.shape, HeightField):
        return [t.reversed() for t in on_terrain(b, a, margin)]
    local = Placed(b.shape, a.axes.T @ b.axes, a.local(b.origin))
    field, touches = a.shape, []
    for found in _nearest(field, local, margin):
        up = ground_at(field, found.feet[:, :2]).up
        N = up / np.linalg.norm(up, axis=1)[:, None]
        gaps = np.sum(N * (found.points - found.feet), axis=1) - found.radius
        for foot, n, gap in zip(found.feet, N, gaps, strict=True):
            if gap <= margin:
                touches.append(touch(a.point(foot), a.axes @ n, gap))
    return touches


def _nearest(field, b, margin):
    """All that may touch, feature by feature."""
    shape, R, o = b
    if isinstance(shape, Sphere):
        return [nearest_to_round(field, np.zeros((2, 3)) + o, shape.radius, margin)]
    if isinstance(shape, Capsule):
        ends = o + np.outer([-0.5, 0.5], R[:, 2] * shape.length)
        ends_alone = [nearest_to_round(field, np.stack([e, e]), shape.radius, margin) for e in ends]
        return [nearest_to_round(field, ends, shape.radius, margin), *ends_alone]
    if isinstance(shape, Ellipsoid):
        return [nearest_to_ellipsoid(field, b, margin)]
    if isinstance(shape, Cylinder):
        return _cylinder(field, b, margin)
    corners, edges, faces = _polyhedron(b)
    low = np.max(field.heights) * 2 - np.min(field.heights) + margin  # splines overshoot
    found = [nearest_to_corners(field, corners[corners[:, 2] <= low])]
    found += [nearest_to_curves(field, _Lines(edges[np.min(edges[..., 2], axis=1) <= low]), margin)]
    faces = [(polygon, f) for polygon, f in faces if np.min(polygon[:, 2]) <= low]
    return found + [nearest_to_face(field, polygon, f, margin) for polygon, f in faces]


# --- Features of the shapes ----------------------------------------------------------------------


def _polyhedron(b):
    """Corners, edges (pairs of corners) and faces (polygon, outward normal) that may look down."""
    if isinstance(b.shape, Box):
        half = np.array(b.shape.size) / 2
        polygons, normals = [], []
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            for side in (1.0, -1.0):
                square = np.zeros((4, 3))
                square[:, k] = side * half[k]
                square[:, i] = half[i] * np.array([1, -1, -1, 1])
                square[:, j] = half[j] * np.array([1, 1, -1, -1])
                polygons.append(square)
                normals.append(side * np.eye(3)[k])
    else:
        hull = hull_of(b.shape)
        polygons, normals = [hull.vertices[t] for t in hull.triangles], hull.normals
    faces = [
        (b.origin + polygon @ b.axes.T, b.axes @ f)
        for polygon, f in zip(polygons, normals, strict=True)
        if (b.axes @ f)[2] < 0
    ]
    corners, edges = {}, {}
    for polygon, _ in faces:
        keys = [tuple(p) for p in polygon]
        corners |= dict(zip(keys, polygon, strict=True))
        for p, q in zip(keys, keys[1:] + keys[:1], strict=True):
            edges[min(p, q), max(p, q)] = np.array([p, q])
    points, ends = (np.array(list(found.values())) for found in (corners, edges))
    return points.reshape(-1, 3), ends.reshape(-1, 2, 3), faces


def _cylinder(field, b, margin):
    shape, R, o = b
    ends = o + np.outer([-0.5, 0.5], R[:, 2] * shape.length)
    side = nearest_to_round(field, ends, shape.radius, margin)
    along = (side.points - o) @ R[:, 2]
    inside = np.abs(along) < shape.length / 2 * (1 - 1e-12)  # beyond it is the rim that touches
    found = [Found(side.feet[inside], side.points[inside], shape.radius)]
    rims = _Circles(ends, shape.radius * R[:, 0], shape.radius * R[:, 1])
    quarters = np.pi / 2 * np.tile(np.arange(4), (2, 1))  # for when it stands, as on a plane
    found.append(nearest_to_corners(field, rims.at(np.arange(2)[:, None], quarters).reshape(-1, 3)))
    found.append(nearest_to_curves(field, rims, margin))
    down = -np.copysign(1.0, R[2, 2]) * R[:, 2]
    if down[2] < 0:
        disc = ends[[int(np.argmax(ends @ down))]]
        found.append(nearest_to_face(field, disc, down, margin, radius=shape.radius))
    return found


class _Lines:
    """Edges, by a parameter from 0 to 1: starts and ways, (m, 3) each."""

    closed = False

    def __init__(self, ends):
        self.start, self.way = ends[:, 0], ends[:, 1] - ends[:, 0]
        self.length = float(np.max(np.linalg.norm(self.way, axis=1), initial=0.0))

    def samples(self, spacing):
        return np.linspace(0, 1, 3 + int(np.ceil(self.length / spacing)))

    def at(self, which, s):
        return self.start[which] + s[..., None] * self.way[which]

    def derivatives(self, which, s):
        """First and second derivative."""
        return self.way[which], np.zeros((len(s), 3))

    def inside(self, s):
        return (s > 0) & (s < 1)


class _Circles:
    """Rims, by an angle: centres (m, 3), and two radii at right angles, (3,) each."""

    closed = True

    def __init__(self, centres, x, y):
        self.centres, self.x, self.y = centres, x, y
        self.length = 2 * np.pi * float(np.linalg.norm(x))

    def samples(self, spacing):
        n = max(_RIM, int(np.ceil(self.length / spacing)))
        return 2 * np.pi * np.arange(n) / n

    def at(self, which, s):
        return self.centres[which] + np.cos(s)[..., None] * self.x + np.sin(s)[..., None] * self.y

    def derivatives(self, which, s):
        """First and second derivative."""
        centres = self.centres[which]
        return self.at(which, s + np.pi / 2) - centres, centres - self.at(which, s)

    def inside(self, s):
        return np.isfinite(s)
