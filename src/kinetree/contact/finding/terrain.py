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

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.finding.height_fields import surface_at_points
from kinetree.contact.finding.shapes import Placed, hull_of, touch
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Sphere

__all__ = ["on_terrain"]

_FINE = 4  # samples between two heights
_STEPS = 30  # of Newton's method
_DONE = 1e-9  # of the spacing: steps that end it
_CONVERGED = 1e-9  # of the size: conditions that count as met
_RIM = 32  # samples of a rim at least
_LEVEL = 1e-12  # of the size: clearances that differ by less are the same
_BENT = 1e-9  # of 1/size: curvature below which a face lies on the ground as a whole


class _Found(NamedTuple):
    """Feet (n, 3) in coordinates of the field, points of the shape (n, 3), the radius there."""

    feet: Any
    points: Any
    radius: float = 0.0


def on_terrain(a, b, margin):
    """Where a shape is within ``margin`` of a height field: a list of ``Touch``, ``a`` first."""
    if not isinstance(a.shape, HeightField):
        return [t.reversed() for t in on_terrain(b, a, margin)]
    local = Placed(b.shape, a.axes.T @ b.axes, a.local(b.origin))
    field, touches = a.shape, []
    for found in _nearest(field, local, margin):
        s = surface_at_points(field, found.feet[:, 0], found.feet[:, 1])
        N = np.stack([-s.hx, -s.hy, np.ones_like(s.h)], axis=-1)
        N /= np.linalg.norm(N, axis=1)[:, None]
        gaps = np.sum(N * (found.points - found.feet), axis=1) - found.radius
        for foot, n, gap in zip(found.feet, N, gaps, strict=True):
            if gap <= margin:
                touches.append(touch(a.point(foot), a.axes @ n, gap))
    return touches


def _nearest(field, b, margin):
    """All that may touch, feature by feature."""
    shape, R, o = b
    if isinstance(shape, Sphere):
        return [_round(field, b, np.zeros((2, 3)) + o, shape.radius, margin)]
    if isinstance(shape, Capsule):
        ends = o + np.outer([-0.5, 0.5], R[:, 2] * shape.length)
        ends_alone = [_round(field, b, np.stack([e, e]), shape.radius, margin) for e in ends]
        return [_round(field, b, ends, shape.radius, margin), *ends_alone]
    if isinstance(shape, Ellipsoid):
        return [_ellipsoid(field, b, margin)]
    if isinstance(shape, Cylinder):
        return _cylinder(field, b, margin)
    corners, edges, faces = _polyhedron(b)
    low = np.max(field.heights) * 2 - np.min(field.heights) + margin  # splines overshoot
    found = [_corners(field, corners[corners[:, 2] <= low])]
    found += [_curves(field, _Lines(edges[np.min(edges[..., 2], axis=1) <= low]), margin)]
    faces = [(polygon, f) for polygon, f in faces if np.min(polygon[:, 2]) <= low]
    return found + [_face(field, polygon, f, margin) for polygon, f in faces]


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
    side = _round(field, b, ends, shape.radius, margin)
    along = (side.points - o) @ R[:, 2]
    inside = np.abs(along) < shape.length / 2 * (1 - 1e-12)  # beyond it is the rim that touches
    found = [_Found(side.feet[inside], side.points[inside], shape.radius)]
    rims = _Circles(ends, shape.radius * R[:, 0], shape.radius * R[:, 1])
    quarters = np.pi / 2 * np.tile(np.arange(4), (2, 1))  # for when it stands, as on a plane
    found.append(_corners(field, rims.at(np.arange(2)[:, None], quarters).reshape(-1, 3)))
    found.append(_curves(field, rims, margin))
    down = -np.copysign(1.0, R[2, 2]) * R[:, 2]
    if down[2] < 0:
        disc = ends[[int(np.argmax(ends @ down))]]
        found.append(_face(field, disc, down, margin, radius=shape.radius))
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


# --- Newton's method on each kind of feature ------------------------------------------------------


class _Ground(NamedTuple):
    """The ground at feet: positions and tangents (n, 3), second derivatives (n, 2, 2), upward."""

    feet: Any
    tangents: Any
    bend: Any
    up: Any

    @property
    def metric(self):
        """Products of the tangents, (n, 2, 2)."""
        return np.einsum("nik,njk->nij", self.tangents, self.tangents)


def _ground(field, xy) -> _Ground:
    s = surface_at_points(field, xy[:, 0], xy[:, 1])
    one, none = np.ones_like(s.h), np.zeros_like(s.h)
    tangents = np.stack(
        [np.stack([one, none, s.hx], axis=-1), np.stack([none, one, s.hy], axis=-1)], axis=1
    )
    bend = np.stack([s.hxx, s.hxy, s.hxy, s.hyy], axis=-1).reshape(-1, 2, 2)
    up = np.stack([-s.hx, -s.hy, one], axis=-1)
    return _Ground(np.column_stack([xy, s.h]), tangents, bend, up)


def _newton(start, equations, longest, size):
    """Roots near ``start`` (n, m): steps of at most ``longest``; and whether each was found.

    Args:
        start: (n, m).
        equations: function of (n, m) that returns residuals (n, m) and their matrix (n, m, m).
        longest: step along each unknown, (m,).
        size: of the residuals.
    """
    x = np.array(start, dtype=float)
    for _ in range(_STEPS if len(x) else 0):
        r, J = equations(x)
        step = -_solved(J, r)
        step *= np.minimum(1.0, 1 / np.maximum(np.max(np.abs(step) / longest, axis=1), 1e-300))[
            :, None
        ]
        x = x + step
        if np.max(np.abs(step) / longest) <= _DONE:  # what is left is its square
            break
    met = np.max(np.abs(equations(x)[0]), axis=1, initial=0.0) <= _CONVERGED * size
    return x, met & np.all(np.isfinite(x), axis=1)


def _solved(J, r):
    """``J⁻¹ r``; where a matrix is singular, the smallest solution."""
    return np.einsum("nij,nj->ni", np.linalg.pinv(J, rcond=1e-12), r)


def _above(ground, points):
    """Residuals ``t · (p - g)`` (n, 2), and their derivatives by x and y for fixed points."""
    d = points - ground.feet
    r = np.einsum("nik,nk->ni", ground.tangents, d)
    return r, ground.bend * d[:, 2, None, None] - ground.metric


def _corners(field, points):
    """The feet of points; each has one, straight below it at first."""
    if not len(points):
        return _Found(np.zeros((0, 3)), points)
    spacing = _spacing(field)

    def equations(xy):
        ground = _ground(field, xy)
        r, J = _above(ground, points)
        # Beyond the centre of curvature there is no minimum: go on without the curvature there.
        bad = (J[:, 0, 0] >= 0) | (np.linalg.det(J) <= 0)
        return r, np.where(bad[:, None, None], -ground.metric, J)

    xy, met = _newton(points[:, :2], equations, np.full(2, spacing), _size(field, points))
    xy = np.where(met[:, None], xy, points[:, :2])
    return _Found(_ground(field, xy).feet, points)


def _curves(field, curves, margin):
    """Places where edges or rims are nearest, away from their ends."""
    fine = _spacing(field) / _FINE
    s = curves.samples(fine)
    every = np.arange(len(curves.at(slice(None), np.zeros(1))))
    points = curves.at(every[:, None], np.tile(s, (len(every), 1)))
    ground = _ground(field, points[..., :2].reshape(-1, 2))
    clearance = (points.reshape(-1, 3) - ground.feet)[:, 2] / np.linalg.norm(ground.up, axis=1)
    clearance = clearance.reshape(points.shape[:2])
    size = _size(field, points)
    lowest = _minima(clearance, curves.closed, _LEVEL * size) & (clearance <= margin + 2 * fine)
    which, at = np.nonzero(lowest)
    start = np.column_stack([points[which, at, :2], s[at]])
    longest = np.array([_spacing(field)] * 2 + [2 * (s[1] - s[0])])

    def equations(x):
        p, (dp, ddp) = curves.at(which, x[:, 2]), curves.derivatives(which, x[:, 2])
        g = _ground(field, x[:, :2])
        J = np.zeros((len(x), 3, 3))
        r, J[:, :2, :2] = _above(g, p)
        J[:, :2, 2] = np.einsum("nik,nk->ni", g.tangents, dp)
        J[:, 2, :2] = -np.einsum("nij,nj->ni", g.bend, dp[:, :2])
        J[:, 2, 2] = np.sum(g.up * ddp, axis=1)
        return np.column_stack([r, np.sum(g.up * dp, axis=1)]), J

    x, met = _newton(start, equations, longest, size)
    near = np.abs(x[:, 2] - start[:, 2]) <= 2 * (s[1] - s[0])
    good = met & near & curves.inside(x[:, 2])
    x = np.where(good[:, None], x, start)  # a point of the edge, if not the nearest one
    return _Found(_ground(field, x[:, :2]).feet, curves.at(which, x[:, 2]))


def _minima(values, closed, least):
    """Which values of every row are smaller than both neighbours, or equal to one, (m, n)."""
    before, after = np.roll(values, 1, axis=1), np.roll(values, -1, axis=1)
    lowest = (values <= before) & (values <= after)
    lowest &= np.maximum(before, after) - values > least
    if not closed:
        lowest[:, [0, -1]] = False  # the ends are corners
    return lowest


def _face(field, polygon, f, margin, radius=0.0):
    """Peaks of the ground against a face: a polygon (n, 3), or a disc about one point (1, 3)."""
    spread, fine = radius * np.sqrt(np.maximum(1 - f[:2] ** 2, 0)), _spacing(field) / _FINE
    low, high = (end(polygon[:, :2], axis=0) for end in (np.min, np.max))
    xy, shape = _grid(field, low - spread, high + spread)
    clearance = (_ground(field, xy).feet - polygon[0]) @ f
    size = _size(field, polygon)
    at = _minima_of_grid(clearance.reshape(shape), _LEVEL * size)
    start = xy[at[clearance[at] <= margin + 2 * fine]]

    def equations(x):
        g = _ground(field, x)
        return np.einsum("nik,k->ni", g.tangents, f), f[2] * g.bend

    x, met = _newton(start, equations, np.full(2, _spacing(field)), 1.0)
    x = x[met & (np.max(np.abs(x - start), axis=1, initial=0.0) <= 2 * _spacing(field))]
    g = _ground(field, x)
    feet = g.feet[np.linalg.eigvalsh(g.bend)[:, -1] < -_BENT / size]
    points = feet - np.multiply.outer((feet - polygon[0]) @ f, f)
    if radius:
        within = np.linalg.norm(points - polygon[0], axis=1) <= radius
    else:
        within = _in_polygon(points, polygon, f)
    return _Found(feet[within], points[within])


def _in_polygon(points, polygon, f):
    """Which points of the plane of a convex polygon are in it."""
    ahead = np.roll(polygon, -1, axis=0) - polygon
    inward = np.cross(f, ahead)
    middle = polygon.mean(axis=0)
    inward *= np.sign(np.sum(inward * (middle - polygon), axis=1))[:, None]
    return np.all(np.einsum("nmk,mk->nm", points[:, None] - polygon, inward) >= 0, axis=1)


def _round(field, b, core, radius, margin):
    """Places where a ball, or what is round about a segment, is nearest to the ground."""
    way = core[1] - core[0]
    square = float(way @ way)

    def on_core(points):
        s = np.zeros(len(points)) if square == 0 else (points - core[0]) @ way / square
        return core[0] + np.multiply.outer(np.clip(s, 0, 1), way), (s > 0) & (s < 1)

    reach = min(radius + max(margin, 0.0), _below(field, core))
    xy, shape = _grid(field, core[:, :2].min(axis=0) - reach, core[:, :2].max(axis=0) + reach)
    ground = _ground(field, xy)
    size = _size(field, core) + radius
    distance = np.linalg.norm(on_core(ground.feet)[0] - ground.feet, axis=1).reshape(shape)
    at = _minima_of_grid(distance, _LEVEL * size)
    near = distance.ravel()[at] <= radius + margin + 2 * _spacing(field) / _FINE
    start = xy[at[near]]

    def equations(x):
        g = _ground(field, x)
        k, free = on_core(g.feet)
        r, J = _above(g, k)
        if square:
            t = np.einsum("nik,k->ni", g.tangents, way)
            J = J + free[:, None, None] * np.einsum("ni,nj->nij", t, t) / square
        return r, J

    x, met = _newton(start, equations, np.full(2, _spacing(field)), size * size)
    near = np.max(np.abs(x - start), axis=1, initial=0.0) <= 2 * _spacing(field)
    x = np.where((met & near)[:, None], x, start)
    feet = _ground(field, x).feet
    return _Found(feet, on_core(feet)[0], radius)


def _ellipsoid(field, b, margin):
    """Places where an ellipsoid is nearest to the ground."""
    squares = np.square(b.shape.radii)

    def lowest(up):
        """Farthest points along ``-up``, (n, 3), and their derivatives, (n, 3, 3)."""
        d = -up @ b.axes
        length = np.sqrt(np.sum(squares * d * d, axis=1))
        p = squares * d / length[:, None]
        bend = (np.diag(squares) - np.einsum("ni,nj->nij", p, p)) / length[:, None, None]
        return b.origin + p @ b.axes.T, -b.axes @ bend @ b.axes.T

    reach = np.sqrt((b.axes * b.axes) @ squares)[:2]
    reach = reach + min(max(margin, 0.0), _below(field, b.origin[None]))
    xy, shape = _grid(field, b.origin[:2] - reach, b.origin[:2] + reach)
    local = (_ground(field, xy).feet - b.origin) @ b.axes
    level = np.sqrt(np.sum(local * local / squares, axis=1)).reshape(shape)
    start = xy[_minima_of_grid(level, _LEVEL)]

    def equations(x):
        g = _ground(field, x)
        p, turned = lowest(g.up)
        r, J = _above(g, p)
        up_rate = np.concatenate([-g.bend, np.zeros((len(x), 2, 1))], axis=2)  # by x and y
        return r, J + np.einsum("nik,nkl,njl->nij", g.tangents, turned, up_rate)

    size = _size(field, b.origin[None]) + float(np.max(b.shape.radii))
    x, met = _newton(start, equations, np.full(2, _spacing(field)), size * size)
    near = np.max(np.abs(x - start), axis=1, initial=0.0) <= 3 * _spacing(field)
    g = _ground(field, np.where((met & near)[:, None], x, start))
    return _Found(g.feet, lowest(g.up)[0])


# --- samples of the ground -----------------------------------------------------------------------


def _spacing(field):
    counts = np.shape(field.heights)
    return min(size / (n - 1) for size, n in zip(field.size, counts, strict=True))


def _below(field, points):
    """How far from points the ground straight below them is at most; nothing nearer is farther."""
    return float(np.max(np.abs(points[:, 2] - _ground(field, points[:, :2]).feet[:, 2]))) + 2 * (
        _spacing(field)
    )


def _size(field, points):
    return float(np.max(np.abs(points), initial=0.0)) + max(field.size)


def _grid(field, low, high):
    """Points of a rectangle (n, 2), close enough to see every hill; how many along each side."""
    step = _spacing(field) / _FINE
    sides = [
        np.linspace(a, b, 3 + int(np.ceil((b - a) / step))) for a, b in zip(low, high, strict=True)
    ]
    xy = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 2)
    return xy, (len(sides[0]), len(sides[1]))


def _minima_of_grid(values, least):
    """Numbers of the samples inside a grid that no neighbour is below, and some are above."""
    inner, neighbours = values[1:-1, 1:-1], []
    for i in (0, 1, 2):
        for j in (0, 1, 2):
            if (i, j) != (1, 1):
                n, m = inner.shape
                neighbours.append(values[i : i + n, j : j + m])
    around = np.array(neighbours)
    lowest = np.all(inner <= around, axis=0) & (around.max(axis=0) - inner > least)
    at = np.argwhere(lowest) + 1
    return at[:, 0] * values.shape[1] + at[:, 1]
