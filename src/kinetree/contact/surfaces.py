"""How the surface of a shape is curved at a point: face, edge, corner, or smooth — see ``rolling``.

RBDA §11.6: a polyhedron has normals that are constant by pieces, and no curvature to speak of.
"""

import numpy as np

from kinetree.contact import rolling
from kinetree.contact.shapes.hulls import hull_of
from kinetree.contact.shapes.splines import height_and_slopes
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Plane, Sphere

__all__ = ["surface_at", "surfaces_between"]

_NEAR = 1e-6  # part of the size of a shape by which a point may miss a face, edge or corner


def surface_at(placed, point, normal):
    """(turn, travel), each (3, 3), in base coordinates.

    Args:
        placed: the shape.
        point: a point of its surface, in base coordinates, (3,).
        normal: outward normal of the contact there, (3,).
    """
    R = placed.axes
    turn, travel = _local(placed.shape, placed.local(point), R.T @ normal)
    return R @ turn @ R.T, R @ travel @ R.T


def _local(shape, x, n):
    if isinstance(shape, Plane):
        return rolling.flat(n)
    if isinstance(shape, Sphere):
        return _ball(n, shape.radius)
    if isinstance(shape, Capsule):
        beyond = abs(x[2]) > shape.length / 2
        return _ball(n, shape.radius) if beyond else _tube(n, shape.radius)
    if isinstance(shape, Cylinder):
        return _cylinder(shape, x, n)
    if isinstance(shape, Ellipsoid):
        form = np.diag(1 / np.square(shape.radii))
        slope = form @ x
        return rolling.curved(n, form / np.sqrt(slope @ slope))
    if isinstance(shape, HeightField):
        s = height_and_slopes(shape, x[0], x[1])
        bend = np.array([[s.hxx, s.hxy, 0], [s.hxy, s.hyy, 0], [0, 0, 0]])
        return rolling.curved(n, -bend / np.sqrt(1 + s.hx**2 + s.hy**2))
    if isinstance(shape, Box):
        half = np.array(shape.size) / 2
        faces = np.eye(3)[np.abs(x) >= half - _NEAR * half.max()]
        return _polyhedron(n, faces)
    hull = hull_of(shape)
    distance = hull.offsets - hull.normals @ x
    size = np.ptp(hull.vertices, axis=0).max()
    return _polyhedron(n, hull.normals[distance <= _NEAR * size])


def _ball(n, radius):
    return rolling.curved(n, np.eye(3) / radius)


def _tube(n, radius):
    """A cylinder's side: curved around z, straight along it."""
    return rolling.curved(n, np.diag([1.0, 1.0, 0.0]) / radius)


def _cylinder(shape, x, n):
    size = max(shape.radius, shape.length)
    rho = np.hypot(x[0], x[1])
    on_side = rho >= shape.radius - _NEAR * size
    on_end = abs(x[2]) >= shape.length / 2 - _NEAR * size
    if not on_side:
        return rolling.flat(n)
    if not on_end:
        return _tube(n, shape.radius)
    # The rim is an edge that turns: along it, the normal is carried around the axis.
    outward = np.array([x[0], x[1], 0]) / rho
    along = np.cross([0, 0, 1], outward)
    turn, travel = rolling.edge(n, along)
    return turn + (n @ outward / shape.radius) * travel, travel


def _polyhedron(n, faces):
    """Face, edge or corner, by how many different faces meet at the point."""
    axes = np.linalg.svd(faces)[2] if len(faces) else np.eye(3)
    kinds = np.sum(np.linalg.svd(faces, compute_uv=False) > 1e-5) if len(faces) else 0
    if kinds >= 3:
        return rolling.corner(n)
    return rolling.edge(n, axes[2]) if kinds == 2 else rolling.flat(n)


def surfaces_between(a, b, found):
    """(turn, travel), each (2, 3, 3), of the first and second shape at a ``Touch``."""
    half = found.normal * (found.gap / 2)
    sides = [
        _ball(normal, radius) if radius else surface_at(placed, found.point + away, normal)
        for placed, away, normal, radius in (
            (a, -half, found.normal, found.radii[0]),
            (b, half, -found.normal, found.radii[1]),
        )
    ]
    turn, travel = (np.stack(part) for part in zip(*sides, strict=True))
    if found.face is not None and np.trace(travel[0] + travel[1]) < 1.5:
        # Corners on corners, as of equal boxes on top of each other: one of them is on a face.
        turn[found.face], travel[found.face] = rolling.flat(found.normal)
    return turn, travel
