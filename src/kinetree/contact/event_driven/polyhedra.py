"""Shapes of event-driven contact: corners, faces and edges of polyhedra, rims of cylinders.

A cylinder touches faces with the lowest points of its rims, and edges with its side; that is exact,
``Barrel``. Where it stands on an end, the disc is approximated by a polygon, RBDA Fig. 11.7: the
corners and edges of its polyhedron count there alone, and so do its two ends as faces. Its axis is
an edge with a radius: a rod.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.event_driven.vectors import cross
from kinetree.contact.finding.shapes import hull_of
from kinetree.model.geometry import Box, Cylinder, Plane

RIM_CORNERS = 8
"""Corners of the polygon that a cylinder stands on."""
STANDING = 0.05
"""[rad] of tilt below which it may stand on them."""

_COPLANAR = 1e-7  # [rad] between triangles of the same face


class Barrel(NamedTuple):
    """A cylinder."""

    center: Any
    """(3,)."""
    axis: Any
    """Unit vector, (3,)."""
    radius: float
    """[m]."""
    half: float
    """Half its length [m]."""

    def place(self, R, r) -> "Barrel":
        """Cylinder surface rotated by ``R`` (3, 3), then translated by ``r``."""
        return Barrel(R @ self.center + r, R @ self.axis, self.radius, self.half)


class Polyhedron(NamedTuple):
    """A convex polyhedron: corners, faces and edges."""

    corner: Any
    """(v, 3)."""
    cone: Any
    """Unit vectors along the edges of every corner, repeated where it has few, (v, k, 3)."""
    normal: Any
    """Outward unit normals of the faces, (f, 3)."""
    offset: Any
    """Distances of their planes from the origin, (f,)."""
    start: Any
    """One end of every edge, (e, 3)."""
    along: Any
    """Its unit direction, (e, 3)."""
    length: Any
    """(e,)."""
    inward: Any
    """Unit vectors at right angles to it into both its faces, (e, 2, 3)."""
    size: float
    """[m]."""
    flat: int
    """Number of faces that corners can touch; those after them are borders alone."""
    radius: Any
    """Of the rods that edges are: 0 but for the axis of a cylinder, (e,)."""
    barrel: Any = None
    """The cylinder that this stands for, a ``Barrel``."""

    def place(self, R, r) -> "Polyhedron":
        """Polyhedron rotated by ``R`` (3, 3), then translated by ``r``."""
        normal = self.normal @ R.T
        return Polyhedron(
            self.corner @ R.T + r,
            self.cone @ R.T,
            normal,
            self.offset + normal @ r,
            self.start @ R.T + r,
            self.along @ R.T,
            self.length,
            self.inward @ R.T,
            self.size,
            self.flat,
            self.radius,
            None if self.barrel is None else self.barrel.place(R, r),
        )


def polyhedron(shape) -> Polyhedron:
    """Polyhedron of a ``Box``, ``Cylinder``, hull of a ``Mesh``, or ``Plane`` (one face)."""
    if isinstance(shape, Plane):
        none = np.zeros((0, 3))
        return Polyhedron(
            none,
            np.zeros((0, 1, 3)),
            np.array([[0.0, 0, 1]]),
            np.zeros(1),
            none,
            none,
            np.zeros(0),
            np.zeros((0, 2, 3)),
            np.inf,
            1,
            np.zeros(0),
        )
    if isinstance(shape, Box):
        return _of_box(tuple(map(float, shape.size)))
    if isinstance(shape, Cylinder):
        return of_cylinder(float(shape.radius), float(shape.length))
    hull = hull_of(shape)
    return _of_triangles(hull.vertices, hull.triangles, hull.normals)


@lru_cache(maxsize=256)
def _of_box(size):
    """Polyhedron of a box, with corners, face normals and edges."""
    signs = np.array([[i, j, k] for i in (1, -1) for j in (1, -1) for k in (1, -1)], dtype=float)
    corner, normal = signs * size / 2, np.concatenate([np.eye(3), -np.eye(3)])
    edges = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            start = np.zeros(3)
            start[[i, j, k]] = a * size[i] / 2, b * size[j] / 2, -size[k] / 2
            inward = np.array([-b * np.eye(3)[j], -a * np.eye(3)[i]])
            edges.append((start, np.eye(3)[k], size[k], inward))
    start, along, length, inward = (np.array(part) for part in zip(*edges, strict=True))
    cone = -signs[:, :, None] * np.eye(3)
    offset = np.tile(size, 2) / 2
    size = max(size)
    rods = np.zeros(len(length))
    return Polyhedron(
        corner, cone, normal, offset, start, along, length, inward, size, len(normal), rods
    )


def _of_triangles(vertices, triangles, normals):
    """Polyhedron of a triangulated hull, coplanar triangles merged into faces."""
    size = float(np.ptp(vertices, axis=0).max())
    offset = np.sum(normals * vertices[triangles[:, 0]], axis=1)
    sides: dict = {}
    for k, t in enumerate(triangles.tolist()):
        for i, j in zip(t, (*t[1:], t[0]), strict=True):
            sides.setdefault((min(i, j), max(i, j)), []).append(k)
    edges, rays = [], [[] for _ in vertices]
    for (i, j), (a, b) in ((side, both) for side, both in sides.items() if len(both) == 2):
        across = cross(normals[a], normals[b])
        if np.sqrt(across @ across) < _COPLANAR:
            continue
        way = vertices[j] - vertices[i]
        length = np.sqrt(way @ way)
        into = [-(n - m * (m @ n)) for m, n in ((normals[a], normals[b]), (normals[b], normals[a]))]
        inward = np.array([x / np.sqrt(x @ x) for x in into])
        edges.append((vertices[i], way / length, length, inward))
        rays[i].append(way / length)
        rays[j].append(-way / length)
    used = [k for k, r in enumerate(rays) if r]
    most = max(len(rays[k]) for k in used)
    cone = np.array([[rays[k][j % len(rays[k])] for j in range(most)] for k in used])
    planes = np.column_stack([normals, offset / size])
    _, kept = np.unique(np.round(planes / _COPLANAR / 10), axis=0, return_index=True)
    start, along, length, inward = (np.array(part) for part in zip(*edges, strict=True))
    faces, rods = (normals[kept], offset[kept]), np.zeros(len(length))
    edges = start, along, length, inward
    return Polyhedron(vertices[used], cone, *faces, *edges, size, len(kept), rods)


@lru_cache(maxsize=256)
def of_cylinder(radius, length) -> Polyhedron:
    """Prism inscribed in a cylinder, used where it stands, with the cylinder's surface."""
    half, n = length / 2, RIM_CORNERS
    angle = 2 * np.pi * np.arange(n) / n
    around = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    middle = np.column_stack([np.cos(angle + np.pi / n), np.sin(angle + np.pi / n), 0 * angle])
    up = np.array([0.0, 0, 1])
    corner = np.concatenate([radius * around + end * half * up for end in (1, -1)])
    # Normals within STANDING of the axis have all rays of a corner on their other side.
    rays = (np.cos(STANDING) * around - end * np.sin(STANDING) * up for end in (1, -1))
    cone = np.concatenate([np.tile(each, (n, 1, 1)) for each in rays])
    normal = np.concatenate([[up, -up], middle])
    offset = np.append([half, half], np.full(n, radius * np.cos(np.pi / n)))
    along = np.cross(up, middle)
    inward = [
        np.stack([-middle, np.cos(STANDING) * middle - end * np.sin(STANDING) * up], axis=1)
        for end in (1, -1)
    ]
    edges = (
        np.concatenate([corner, [-half * up]]),
        np.concatenate([along, along, [up]]),
        np.append(np.full(2 * n, 2 * radius * np.sin(np.pi / n)), length),
        np.concatenate([*inward, np.zeros((1, 2, 3))]),
    )
    size, rods = max(2 * radius, length), np.append(np.zeros(2 * n), radius)
    barrel = Barrel(np.zeros(3), up, radius, half)
    return Polyhedron(corner, cone, normal, offset, *edges, size, 2, rods, barrel)
