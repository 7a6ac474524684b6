"""Convex shapes from first principles: support functions, and depths by brute force."""

import numpy as np
from scipy.spatial import ConvexHull

from kinetree.contact.collision import curvature
from kinetree.contact.collision.detect import narrow_phase, touch_table
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.collision.support import support_face
from kinetree.contact.finding.pairs import reach_along
from kinetree.contact.finding.shapes import Touch, hull_of
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere

SOLIDS = {
    "box": Box((0.2, 0.3, 0.5)), "ball": Sphere(0.2), "capsule": Capsule(0.1, 0.4),
    "cylinder": Cylinder(0.15, 0.4), "ellipsoid": Ellipsoid((0.1, 0.2, 0.3)),
}  # fmt: skip


def reach(shape, n):
    """The support function of a shape, about its own origin, for unit directions (m, 3)."""
    across, along = np.hypot(n[:, 0], n[:, 1]), np.abs(n[:, 2])
    match shape:
        case Box(size):
            return np.abs(n) @ np.array(size) / 2
        case Sphere(radius):
            return np.full(len(n), radius)
        case Capsule(radius, length):
            return radius + length / 2 * along
        case Cylinder(radius, length):
            return radius * across + length / 2 * along
        case Ellipsoid(radii):
            return np.linalg.norm(n * radii, axis=1)
        case Mesh():
            return np.max(n @ hull_of(shape).vertices.T, axis=1)


def depths(a, b, n):
    """How far ``b`` must move along each direction to leave ``a``."""
    return reach(a.shape, n @ a.axes) + reach(b.shape, -n @ b.axes) + n @ (a.origin - b.origin)


def unit_vectors(rng, n):
    """Random ones, (n, 3)."""
    vectors = rng.normal(size=(n, 3))
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def best_direction(a, b, rng):
    """The direction of least depth among many, sampled ever closer around the best, (3,)."""
    n = np.concatenate([unit_vectors(rng, 3000), a.axes.T, -a.axes.T, b.axes.T])
    for spread in 0.1 * 0.4 ** np.arange(10):
        n = n[np.argsort(depths(a, b, n))[:8]]
        near = n[:, None] + spread * rng.normal(size=(8, 60, 3))
        near = (near / np.linalg.norm(near, axis=2)[..., None]).reshape(-1, 3)
        n = np.concatenate([n, near])
    return n[np.argmin(depths(a, b, n))]


def least_depth(a, b, rng):
    """The depth there, never below the true one; minus the distance where shapes are apart."""
    return depths(a, b, best_direction(a, b, rng)[None])[0]


def outside(placed, points):
    """About how far points (m, 3) are outside of a shape: 0 on its surface, negative inside."""
    x = (points - placed.origin) @ placed.axes
    match placed.shape:
        case Box(size):
            return np.max(np.abs(x) - np.array(size) / 2, axis=1)
        case Sphere(radius):
            return np.linalg.norm(x, axis=1) - radius
        case Capsule(radius, length):
            beyond = x[:, 2] - np.clip(x[:, 2], -length / 2, length / 2)
            return np.linalg.norm(np.column_stack([x[:, :2], beyond]), axis=1) - radius
        case Cylinder(radius, length):
            return np.maximum(np.hypot(x[:, 0], x[:, 1]) - radius, np.abs(x[:, 2]) - length / 2)
        case Ellipsoid(radii):
            return (np.linalg.norm(x / radii, axis=1) - 1) * min(radii)
        case Mesh():
            planes = ConvexHull(hull_of(placed.shape).vertices).equations
            return np.max(x @ planes[:, :3].T + planes[:, 3], axis=1)


# --- What compiled code finds on one shape -------------------------------------------------------


def farthest_points(placed, direction, tilt=0.2):
    """Corners of the face or edge of a shape within ``tilt`` [rad] of level, or a point, (n, 3)."""
    out = np.zeros((16, 3))
    shapes, none = placed_table(placed), np.zeros((6, 3))
    n = support_face(shapes, 0, none, np.zeros(3), np.array(direction), float(np.sin(tilt)), out)
    return out[:n]


def farthest(placed, directions):
    """A farthest point in each of several unit directions, (n, 3)."""
    return np.array([farthest_points(placed, d, 0.0)[0] for d in directions])


def surface_at(placed, point, normal):
    """(turn, travel) of a shape at a point of its surface, (3, 3) each."""
    turn, travel = np.zeros((2, 3, 3))
    at = np.array(point, dtype=float), np.array(normal, dtype=float)
    curvature.surface_at(placed_table(placed), 0, *at, turn, travel)
    return turn, travel


__all__ = [
    "SOLIDS", "best_direction", "depths", "farthest", "farthest_points", "least_depth", "outside",
    "reach", "reach_along", "surface_at", "unit_vectors",
]  # fmt: skip


def touches_of(a, b, margin):
    """Points within ``margin`` of each other of two ``Placed`` shapes, as a list of ``Touch``."""
    shapes, table = placed_table(a, b), touch_table()
    swap = shapes.kind[0] > shapes.kind[1]
    n = narrow_phase(shapes, int(swap), int(not swap), min(margin, 1e100), table, 0)
    rows = zip(table.point[:n], table.normal[:n], table.gap[:n], strict=True)
    return [Touch(point, -normal if swap else normal, gap) for point, normal, gap in rows]
