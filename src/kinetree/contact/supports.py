"""Where a convex shape is farthest in a direction, and how that point moves when it turns.

``point(d)`` is smooth where the surface is curved, with the derivative ``bend``: radii of curvature
of the surface, a ball of radius r having ``r`` across the direction. Corners do not move at all. On
edges and faces that are at right angles to the direction the point may be anywhere.
"""

from typing import NamedTuple

import numpy as np

from kinetree.contact.features import farthest_points
from kinetree.contact.shapes.placed import Placed
from kinetree.model.geometry import Capsule, Cylinder, Ellipsoid, Sphere

__all__ = ["Support", "support"]


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
