"""How deep two convex shapes are inside each other: the shortest way out, over all directions.

The differences ``a - b`` of all points of both shapes fill a convex set, which holds the origin if
the shapes overlap; the nearest point of its border is the shortest way out. Points of the border
are known in any direction, from the farthest points of both shapes. Their hull is inside the set,
and each of its faces says: the border is nowhere nearer than this face, and in the direction of its
normal no farther than so. Faces that could be nearer than the best direction get another point,
until there are none: the expanding polytope of van den Bergen, "Proximity queries and penetration
depth computation on 3D game objects" (2001), with all open faces at once. So the answer is the
global minimum, where a search along the surface ends in the next local one.
"""

import importlib

import numpy as np

from kinetree.contact.shapes.hulls import hull_of
from kinetree.errors import MissingPackageError
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Sphere

__all__ = ["size_of", "way_out"]

_CLOSE = 1e-4  # of the depth: how near bounds must come; the rest is for Newton's method
_ROUNDS = 12
_POINTS = 2000  # of the hull; round shapes that are concentric have the same depth everywhere


def way_out(a, b):
    """Unit direction in which ``b`` leaves ``a`` by the shortest way, nearly, and the depth [m].

    A depth that is not positive means that a plane at right angles to the direction is between the
    shapes.
    """
    hull_type = _convex_hull()
    directions = np.concatenate([_DIRECTIONS, *(s * p.axes.T for p in (a, b) for s in (1, -1))])
    points, best, depth = np.zeros((0, 3)), directions[0], np.inf
    for _ in range(_ROUNDS):
        found = farthest(a, directions) - farthest(b, -directions)
        depths = np.sum(found * directions, axis=1)
        k = int(np.argmin(depths))
        if depths[k] < depth:
            best, depth = directions[k], float(depths[k])
        points = np.concatenate([points, found])
        if depth <= 0 or len(points) > _POINTS:
            break
        faces = np.unique(hull_type(points, qhull_options="QJ Pp").equations, axis=0)
        directions = faces[-faces[:, 3] < depth - _CLOSE * abs(depth), :3]
        if not len(directions):
            break
        directions = directions / np.sqrt(np.sum(directions**2, axis=1))[:, None]
    return best, depth


def size_of(placed):
    """Radius [m] of about the smallest ball around the middle of a shape that is not within it."""
    shape = placed.shape
    if isinstance(shape, Box):
        return min(shape.size) / 2
    if isinstance(shape, Ellipsoid):
        return min(shape.radii)
    if isinstance(shape, Cylinder):
        return min(shape.radius, shape.length / 2)
    if isinstance(shape, (Sphere, Capsule)):
        return shape.radius
    return float(np.min(np.ptp(hull_of(shape).vertices, axis=0))) / 2


def farthest(placed, directions):
    """A point of a shape that is farthest in each of several directions, (n, 3)."""
    shape, d = placed.shape, directions @ placed.axes
    ends = np.where(d[:, 2:] < 0, -1.0, 1.0) * [0, 0, 1]
    if isinstance(shape, Box):
        points = np.where(d < 0, -1.0, 1.0) * (np.array(shape.size) / 2)
    elif isinstance(shape, Ellipsoid):
        stretched = np.square(shape.radii) * d
        points = stretched / np.sqrt(np.sum(d * stretched, axis=1))[:, None]
    elif isinstance(shape, Sphere):
        points = shape.radius * d
    elif isinstance(shape, Capsule):
        points = shape.radius * d + shape.length / 2 * ends
    elif isinstance(shape, Cylinder):
        across = d * [1, 1, 0]
        length = np.sqrt(np.sum(across**2, axis=1))[:, None]
        out = np.where(length > 1e-12, across / np.maximum(length, 1e-12), 0.0)
        points = shape.radius * out + shape.length / 2 * ends
    else:
        vertices = hull_of(shape).vertices
        points = vertices[np.argmax(d @ vertices.T, axis=1)]
    return placed.origin + points @ placed.axes.T


def _spread(n):
    """Unit vectors spread evenly over the sphere, on a spiral, (n, 3)."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + np.sqrt(5)) * k
    across = np.sqrt(1 - z * z)
    return np.column_stack([across * np.cos(turn), across * np.sin(turn), z])


_DIRECTIONS = _spread(60)


def _convex_hull():
    try:
        return importlib.import_module("scipy.spatial").ConvexHull
    except ImportError as error:
        raise MissingPackageError(
            f"the depth of shapes inside each other needs SciPy, which cannot be imported "
            f'({error}): pip install "kinetree[contact]"'
        ) from error
