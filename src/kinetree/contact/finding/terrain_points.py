"""Nearest points of a height field and the features of a shape, by Newton's method.

The conditions are those of ``terrain``. Clearances are sampled, every local minimum of the samples
is a start, and Newton's method ends on the conditions.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.finding.height_fields import (
    SAMPLES,
    grid,
    grid_spacing,
    ground_at,
    minima_of_grid,
)

_STEPS = 30  # of Newton's method
_DONE = 1e-9  # of the spacing: steps that end it
_CONVERGED = 1e-9  # of the size: conditions that count as met
_LEVEL = 1e-12  # of the size: clearances that differ by less are the same
_BENT = 1e-9  # of 1/size: curvature below which a face lies on the ground as a whole


class Found(NamedTuple):
    """Feet (n, 3) in coordinates of the field, points of the shape (n, 3), the radius there."""

    feet: Any
    points: Any
    radius: float = 0.0


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


def nearest_to_corners(field, points):
    """The feet of points; each has one, straight below it at first."""
    if not len(points):
        return Found(np.zeros((0, 3)), points)

    def equations(xy):
        ground = ground_at(field, xy)
        r, J = _above(ground, points)
        # Beyond the centre of curvature there is no minimum: go on without the curvature there.
        bad = (J[:, 0, 0] >= 0) | (np.linalg.det(J) <= 0)
        return r, np.where(bad[:, None, None], -ground.metric, J)

    xy, met = _newton(
        points[:, :2], equations, np.full(2, grid_spacing(field)), _size(field, points)
    )
    xy = np.where(met[:, None], xy, points[:, :2])
    return Found(ground_at(field, xy).feet, points)


def nearest_to_curves(field, curves, margin):
    """Places where edges or rims are nearest, away from their ends."""
    fine = grid_spacing(field) / SAMPLES
    s = curves.samples(fine)
    every = np.arange(len(curves.at(slice(None), np.zeros(1))))
    points = curves.at(every[:, None], np.tile(s, (len(every), 1)))
    ground = ground_at(field, points[..., :2].reshape(-1, 2))
    clearance = (points.reshape(-1, 3) - ground.feet)[:, 2] / np.linalg.norm(ground.up, axis=1)
    clearance = clearance.reshape(points.shape[:2])
    size = _size(field, points)
    lowest = _minima(clearance, curves.closed, _LEVEL * size) & (clearance <= margin + 2 * fine)
    which, at = np.nonzero(lowest)
    start = np.column_stack([points[which, at, :2], s[at]])
    longest = np.array([grid_spacing(field)] * 2 + [2 * (s[1] - s[0])])

    def equations(x):
        p, (dp, ddp) = curves.at(which, x[:, 2]), curves.derivatives(which, x[:, 2])
        g = ground_at(field, x[:, :2])
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
    return Found(ground_at(field, x[:, :2]).feet, curves.at(which, x[:, 2]))


def _minima(values, closed, least):
    """Which values of every row are smaller than both neighbours, or equal to one, (m, n)."""
    before, after = np.roll(values, 1, axis=1), np.roll(values, -1, axis=1)
    lowest = (values <= before) & (values <= after)
    lowest &= np.maximum(before, after) - values > least
    if not closed:
        lowest[:, [0, -1]] = False  # the ends are corners
    return lowest


def nearest_to_face(field, polygon, f, margin, radius=0.0):
    """Peaks of the ground against a face: a polygon (n, 3), or a disc about one point (1, 3)."""
    spread, fine = radius * np.sqrt(np.maximum(1 - f[:2] ** 2, 0)), grid_spacing(field) / SAMPLES
    low, high = (end(polygon[:, :2], axis=0) for end in (np.min, np.max))
    xy, shape = grid(field, low - spread, high + spread)
    clearance = (ground_at(field, xy).feet - polygon[0]) @ f
    size = _size(field, polygon)
    at = minima_of_grid(clearance.reshape(shape), _LEVEL * size)
    start = xy[at[clearance[at] <= margin + 2 * fine]]

    def equations(x):
        g = ground_at(field, x)
        return np.einsum("nik,k->ni", g.tangents, f), f[2] * g.bend

    x, met = _newton(start, equations, np.full(2, grid_spacing(field)), 1.0)
    x = x[met & (np.max(np.abs(x - start), axis=1, initial=0.0) <= 2 * grid_spacing(field))]
    g = ground_at(field, x)
    feet = g.feet[np.linalg.eigvalsh(g.bend)[:, -1] < -_BENT / size]
    points = feet - np.multiply.outer((feet - polygon[0]) @ f, f)
    if radius:
        within = np.linalg.norm(points - polygon[0], axis=1) <= radius
    else:
        within = _in_polygon(points, polygon, f)
    return Found(feet[within], points[within])


def _in_polygon(points, polygon, f):
    """Which points of the plane of a convex polygon are in it."""
    ahead = np.roll(polygon, -1, axis=0) - polygon
    inward = np.cross(f, ahead)
    middle = polygon.mean(axis=0)
    inward *= np.sign(np.sum(inward * (middle - polygon), axis=1))[:, None]
    return np.all(np.einsum("nmk,mk->nm", points[:, None] - polygon, inward) >= 0, axis=1)


def nearest_to_round(field, core, radius, margin):
    """Places where a ball, or what is round about a segment, is nearest to the ground."""
    way = core[1] - core[0]
    square = float(way @ way)

    def on_core(points):
        s = np.zeros(len(points)) if square == 0 else (points - core[0]) @ way / square
        return core[0] + np.multiply.outer(np.clip(s, 0, 1), way), (s > 0) & (s < 1)

    reach = min(radius + max(margin, 0.0), _below(field, core))
    xy, shape = grid(field, core[:, :2].min(axis=0) - reach, core[:, :2].max(axis=0) + reach)
    ground = ground_at(field, xy)
    size = _size(field, core) + radius
    distance = np.linalg.norm(on_core(ground.feet)[0] - ground.feet, axis=1).reshape(shape)
    at = minima_of_grid(distance, _LEVEL * size)
    near = distance.ravel()[at] <= radius + margin + 2 * grid_spacing(field) / SAMPLES
    start = xy[at[near]]

    def equations(x):
        g = ground_at(field, x)
        k, free = on_core(g.feet)
        r, J = _above(g, k)
        if square:
            t = np.einsum("nik,k->ni", g.tangents, way)
            J = J + free[:, None, None] * np.einsum("ni,nj->nij", t, t) / square
        return r, J

    x, met = _newton(start, equations, np.full(2, grid_spacing(field)), size * size)
    near = np.max(np.abs(x - start), axis=1, initial=0.0) <= 2 * grid_spacing(field)
    x = np.where((met & near)[:, None], x, start)
    feet = ground_at(field, x).feet
    return Found(feet, on_core(feet)[0], radius)


def nearest_to_ellipsoid(field, b, margin):
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
    xy, shape = grid(field, b.origin[:2] - reach, b.origin[:2] + reach)
    local = (ground_at(field, xy).feet - b.origin) @ b.axes
    level = np.sqrt(np.sum(local * local / squares, axis=1)).reshape(shape)
    start = xy[minima_of_grid(level, _LEVEL)]

    def equations(x):
        g = ground_at(field, x)
        p, turned = lowest(g.up)
        r, J = _above(g, p)
        up_rate = np.concatenate([-g.bend, np.zeros((len(x), 2, 1))], axis=2)  # by x and y
        return r, J + np.einsum("nik,nkl,njl->nij", g.tangents, turned, up_rate)

    size = _size(field, b.origin[None]) + float(np.max(b.shape.radii))
    x, met = _newton(start, equations, np.full(2, grid_spacing(field)), size * size)
    near = np.max(np.abs(x - start), axis=1, initial=0.0) <= 3 * grid_spacing(field)
    g = ground_at(field, np.where((met & near)[:, None], x, start))
    return Found(g.feet, lowest(g.up)[0])


def _below(field, points):
    """How far from points the ground straight below them is at most; nothing nearer is farther."""
    drop = points[:, 2] - ground_at(field, points[:, :2]).feet[:, 2]
    return float(np.max(np.abs(drop))) + 2 * grid_spacing(field)


def _size(field, points):
    return float(np.max(np.abs(points), initial=0.0)) + max(field.size)
