"""Stability margin: the distance of a point to the edge of the polygon of support.

Computed on the CPU: which contacts are corners of the polygon depends on the numbers.
"""

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, TraceError
from kinetree.model.arrays import as_numbers, check_finite

__all__ = ["support_margin"]


@on_host
def support_margin(
    contacts: ArrayLike, point: ArrayLike, *, up: ArrayLike = (0.0, 0.0, 1.0)
) -> Array:
    """How far a point may move before it leaves the polygon of support [m], (...).

    Static: with ``center_of_mass`` the margin of a mechanism at rest. Dynamic: with
    ``zero_moment_point``.

    Args:
        contacts: points that touch the ground [m], (n, 3); heights do not matter.
        point: points to judge [m], (..., 3); they are moved along ``up`` into the ground.
        up: direction that the ground is perpendicular to, such as ``-model.gravity``.

    Returns:
        Distance to the nearest edge: positive inside, negative outside. With one or two contacts,
        or contacts in line, there is no inside: zero on them, negative elsewhere.
    """
    contacts, point = _points(contacts, "contacts"), _points(point, "point")
    if contacts.ndim != 2 or not len(contacts):
        raise ShapeError(f"contacts must be points (n, 3), at least one, got {contacts.shape}")
    E = _horizontal_axes(up)
    corners, p = hull(contacts @ E.T), point @ E.T
    start, edge = corners, np.roll(corners, -1, axis=0) - corners
    to_point = p[..., None, :] - start
    length = np.linalg.norm(edge, axis=-1)
    safe = np.where(length > 0, length, 1.0)
    along = np.clip(np.sum(to_point * edge, axis=-1) / safe**2, 0.0, 1.0)
    distance = np.linalg.norm(to_point - along[..., None] * edge, axis=-1).min(axis=-1)
    left = (edge[:, 0] * to_point[..., 1] - edge[:, 1] * to_point[..., 0]) / safe
    inside = np.all(left >= 0, axis=-1) & (len(corners) > 2)
    return np.where(inside, distance, -distance)[()]


def hull(points):
    """Corners of the convex hull of points (n, 2), anticlockwise; no three of them in line.

    A. M. Andrew, "Another efficient algorithm for convex hulls in two dimensions", 1979.
    """
    points = np.unique(points, axis=0)
    if len(points) < 3:
        return points

    def chain(ordered):
        kept: list = []
        for p in ordered:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], p) <= 0:
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return np.array(chain(points) + chain(points[::-1]))


def _turn(a, b, c):
    """Twice the area of the triangle, positive if it is anticlockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _horizontal_axes(up):
    """Two unit vectors that span the ground and make a right-handed system with ``up``, (2, 3)."""
    up = _points(up, "up")
    size = float(np.linalg.norm(up))
    if up.shape != (3,) or size == 0:
        raise ShapeError(f"up must be a direction (3,), not zero, got {up}")
    up = up / size
    x = np.eye(3)[np.argmin(np.abs(up))]
    x = x - (x @ up) * up
    x = x / np.linalg.norm(x)
    return np.array([x, np.cross(up, x)])


def _points(x, name):
    x = as_numbers(x, name)
    if x.dtype == object:
        raise TraceError(
            f"support_margin works on the CPU, in Python, and cannot be traced: {name} is traced"
        )
    if x.shape[-1:] != (3,):
        raise ShapeError(f"{name} must have 3 coordinates, (..., 3), got shape {x.shape}")
    return check_finite(x, name)
