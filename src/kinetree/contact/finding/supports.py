"""Support functions of convex shapes: farthest points in a direction, and their derivatives.

``point(d)`` is smooth where the surface is curved, with the derivative ``bend``: radii of curvature
of the surface, a ball of radius r having ``r`` across the direction. Corners do not move at all. On
edges and faces that are at right angles to the direction the point may be anywhere.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

from kinetree.contact.finding.shapes import Placed, hull_of
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere


class Support(NamedTuple):
    """A farthest point (3,), its derivative (3, 3), and the edge or the face normal there."""

    point: np.ndarray
    bend: np.ndarray
    edge: np.ndarray | None = None
    face: np.ndarray | None = None


def support(placed, direction, tilt) -> Support:
    """The support of a shape; edges and faces count that are within ``tilt`` [rad] of level."""
    R = placed.axes
    point, bend, edge, face = _local(placed.shape, R.T @ direction, np.sin(tilt), tilt)
    return Support(
        placed.origin + R @ point,
        R @ bend @ R.T,
        None if edge is None else R @ edge,
        None if face is None else R @ face,
    )


def _local(shape, d, reach, tilt):
    z = np.array([0.0, 0.0, 1.0])
    if isinstance(shape, Sphere):
        return shape.radius * d, shape.radius * _across(d), None, None
    if isinstance(shape, Ellipsoid):
        squares = np.square(shape.radii)
        length = np.sqrt(d @ (squares * d))
        point = squares * d / length
        return point, (np.diag(squares) - np.outer(point, point)) / length, None, None
    if isinstance(shape, Capsule):
        level = abs(d[2]) <= reach
        end = 0.0 if level else np.copysign(shape.length / 2, d[2])
        bend = shape.radius * _across(d)
        return shape.radius * d + end * z, bend, z if level else None, None
    if isinstance(shape, Cylinder):
        across = np.hypot(d[0], d[1])
        if across <= reach:
            up = np.copysign(1.0, d[2]) * z
            return up * shape.length / 2, np.zeros((3, 3)), None, up
        out, level = np.array([d[0], d[1], 0]) / across, abs(d[2]) <= reach
        end = 0.0 if level else np.copysign(shape.length / 2, d[2])
        around = np.cross(z, out)
        bend = shape.radius / across * np.outer(around, around)
        return shape.radius * out + end * z, bend, z if level else None, None
    return _polyhedron(shape, d, tilt)


def _polyhedron(shape, d, tilt):
    corners = farthest_points(Placed(shape, np.eye(3), np.zeros(3)), d, tilt)
    ways = corners[1:] - corners[0]
    point, rigid = corners[np.argmax(corners @ d)], np.zeros((3, 3))
    if len(corners) == 1:
        return point, rigid, None, None
    _, sizes, axes = np.linalg.svd(ways)
    if len(corners) == 2 or sizes[1] < 1e-9 * sizes[0]:
        return point, rigid, axes[0], None
    return point, rigid, None, np.copysign(1.0, axes[2] @ d) * axes[2]


def _across(d):
    return np.eye(3) - np.outer(d, d)


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


# --- Farthest corners, edges and faces -----------------------------------------------------------

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
