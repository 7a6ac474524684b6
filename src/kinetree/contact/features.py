"""The points of a shape that are farthest in a direction: its corners, edges and faces there."""

from itertools import product

import numpy as np

from kinetree.contact.shapes.hulls import hull_of
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh

__all__ = ["farthest_points"]

DISC_POINTS = 16
"""Corners of the polygon that stands for the flat end of a cylinder, RBDA Fig. 11.7."""

_LOOSE = 0.2  # [rad] tilt up to which the whole of a face counts


def farthest_points(placed, direction, tilt=_LOOSE):
    """Surface points of a shape that are farthest along a unit direction, (n, 3).

    Edges and faces count as a whole when they are within ``tilt`` [rad] of right angles to it.
    """
    d, shape = placed.axes.T @ direction, placed.shape
    if isinstance(shape, Ellipsoid):
        stretched = np.square(shape.radii) * d
        points = stretched[None] / np.sqrt(d @ stretched)
    elif isinstance(shape, Cylinder):
        points = _of_cylinder(shape, d, tilt)
    elif isinstance(shape, Mesh):
        points = _of_hull(hull_of(shape), d, tilt)
    elif isinstance(shape, Box):
        points = _of_box(np.array(shape.size) / 2, d, tilt)
    else:  # a capsule is a thin box with a ball around every point
        length = shape.length if isinstance(shape, Capsule) else 0
        points = shape.radius * d + _of_box(np.array([0, 0, length / 2]), d, tilt)
    return placed.origin + points @ placed.axes.T


def _of_box(half, d, tilt):
    """Corners of a box: both ends along every axis that is at right angles to the direction."""
    across = (np.abs(d) <= np.sin(tilt)) & (half > 0)
    ends = [
        (-h, h) if free else (np.copysign(h, x),)
        for h, x, free in zip(half, d, across, strict=True)
    ]
    return np.array(list(product(*ends)))


def _of_hull(hull, d, tilt):
    """Corners of faces at right angles to the direction; without any, of edges at the top."""
    faces = hull.triangles[hull.normals @ d >= np.cos(tilt)]
    if len(faces):
        return hull.vertices[np.unique(faces)]
    top = np.argmax(hull.vertices @ d)
    near = np.unique(hull.triangles[np.any(hull.triangles == top, axis=1)])
    ways = hull.vertices[near] - hull.vertices[top]
    level = -(ways @ d) <= np.sin(tilt) * np.sqrt(np.sum(ways * ways, axis=1))
    return hull.vertices[near[level]]


def _of_cylinder(shape, d, tilt):
    across, half, reach = np.hypot(d[0], d[1]), shape.length / 2, np.sin(tilt)
    toward = np.array([d[0], d[1]]) / across if across > 1e-12 else np.array([1.0, 0.0])
    ends = [np.copysign(half, d[2])] if abs(d[2]) > reach else [half, -half]
    if across > reach:
        return np.array([[*(shape.radius * toward), end] for end in ends])
    start = np.arctan2(toward[1], toward[0])
    angles = start + 2 * np.pi * np.arange(DISC_POINTS) / DISC_POINTS
    rim = shape.radius * np.array([np.cos(angles), np.sin(angles)])
    return np.column_stack([*rim, np.full(DISC_POINTS, ends[0])])
