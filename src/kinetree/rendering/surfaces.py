"""Triangle meshes of simple shapes, their normals and edges."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.collision.shapes import solid_hull
from kinetree.contact.finding.shapes import surface_at_points
from kinetree.model import geometry
from kinetree.model.solid import rounded_outline


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles: ``vertices`` [m], (n, 3), and ``faces``, (m, 3), counter-clockwise from outside.

    A vertex has one normal; where a surface has an edge, its points are there twice. Of a
    ``closed`` one only the outside is drawn.
    """

    vertices: np.ndarray
    faces: np.ndarray
    closed: bool = False

    def place(self, rotation: ArrayLike, position: ArrayLike) -> "Surface":
        """Surface rotated by a matrix (3, 3), then translated."""
        moved = self.vertices @ np.asarray(rotation).T + position
        return Surface(moved, self.faces, self.closed)


# --- Normals: smooth where a surface is round, sharp at edges ------------------------------------

_EDGE = np.cos(np.radians(35.0))
_MOST = 64  # faces at a point, beyond which all of them count as one smooth surface


def crease(surface) -> Surface:
    """Surface with vertices duplicated along sharp edges, one normal each."""
    vertices, faces = _merge(surface.vertices, surface.faces)
    if not len(faces):
        return Surface(vertices, faces)
    weighted, unit = _face_normals(vertices, faces)
    corner, face = faces.ravel(), np.repeat(np.arange(len(faces)), 3)
    smooth = weighted[face] * 0
    order = np.argsort(corner, kind="stable")
    counts = np.bincount(corner, minlength=len(vertices))
    starts = np.cumsum(counts) - counts
    first = starts[corner[order]]
    for k in range(min(int(counts.max()), _MOST)):
        has = k < counts[corner[order]]
        here, there = face[order[has]], face[order[first[has] + k]]
        close = np.sum(unit[here] * unit[there], axis=1) > _EDGE
        np.add.at(smooth, order[has][close], weighted[there[close]])
    smooth /= np.maximum(np.linalg.norm(smooth, axis=1, keepdims=True), 1e-30)
    keys = np.column_stack([corner, np.round(smooth * 50).astype(int)])
    index, back = _distinct(keys)
    return Surface(vertices[corner[index]], back.reshape(-1, 3))


def normals(surface) -> np.ndarray:
    """Unit vertex normals (n, 3), averaged over the adjacent faces."""
    weighted, _ = _face_normals(surface.vertices, surface.faces)
    total = np.zeros_like(surface.vertices)
    for k in range(3):
        np.add.at(total, surface.faces[:, k], weighted)
    return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-30)


def coarser(surface, most) -> Surface:
    """Surface simplified to about ``most`` faces by merging nearby vertices."""
    extent = np.ptp(surface.vertices, axis=0).max()
    cells = np.sqrt(most)
    while len(surface.faces) > most and cells > 4:
        step = extent / cells
        first, back = _distinct(np.round(surface.vertices / step).astype(int))
        count = np.bincount(back)[:, None]
        middle = np.zeros((len(first), 3))
        np.add.at(middle, back, surface.vertices)
        surface = Surface(*_without_slivers(middle / count, back[surface.faces]))
        cells *= 0.7
    return surface


def _merge(vertices, faces):
    """Vertices and faces with coincident points merged and degenerate triangles dropped."""
    vertices = np.asarray(vertices, dtype=float)
    extent = np.ptp(vertices, axis=0).max(initial=0.0) if len(vertices) else 0.0
    step = max(extent, 1e-12) * 1e-6
    keys = np.round(vertices / step).astype(np.int64)
    first, back = _distinct(keys)
    return _without_slivers(vertices[first], back[np.asarray(faces)])


def _distinct(rows):
    """Indices of first occurrences of integer rows, and the mapping of all rows to them."""
    if len(rows):
        rows = rows - rows.min(axis=0)
        sizes = rows.max(axis=0) + 1
        if np.prod(sizes.astype(float)) < 2.0**62:  # one number each is sorted much faster
            rows = np.ravel_multi_index(tuple(rows.T), tuple(sizes))
    _, first, back = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, back.ravel()


def _without_slivers(vertices, faces):
    """Vertices and faces without degenerate and repeated triangles."""
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    return vertices, faces[np.sort(_distinct(np.sort(faces, axis=1))[0])]


def _face_normals(vertices, faces):
    """Face normals with length twice the area, and unit face normals."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    weighted = np.cross(b - a, c - a)
    return weighted, weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-30)


_ROUND = 28  # corners of a circle
_FINE = 40  # points along a side of a height field, where it has fewer


def surface_of(shape) -> Surface | None:
    """Surface of a shape; None for meshes and planes.

    None for meshes, which are in files, and for planes, which have no end.
    """
    if isinstance(shape, geometry.HeightField):
        return _hills(shape)
    return surface_of_solid(shape) if isinstance(shape, geometry.Solid) else None


@lru_cache(maxsize=256)
def surface_of_solid(solid: geometry.Solid) -> Surface:
    """Surface of a solid: of revolution, or the hull of its support points."""
    if isinstance(solid, geometry.Box):
        return _cuboid(solid.size)
    if isinstance(solid, geometry.Ellipsoid):
        sphere = ball(1.0)
        return Surface(sphere.vertices * np.array(solid.radii), sphere.faces, closed=True)
    outline = solid.outline(_ROUND)
    if outline is not None:
        return revolve(outline)
    hull = solid_hull(solid)
    return _outside(Surface(hull.vertices, hull.triangles))


@lru_cache(maxsize=256)
def ball(radius, count=_ROUND) -> Surface:
    """Surface of a sphere about the origin."""
    return revolve(rounded_outline(radius, 0.0, count), count)


@lru_cache(maxsize=256)
def rod(radius, start, end, count=_ROUND) -> Surface:
    """Surface of a cylinder along z from ``start`` to ``end``."""
    return revolve([(0, start), (radius, start), (radius, end), (0, end)], count)


@lru_cache(maxsize=256)
def cone(radius, start, tip, count=_ROUND) -> Surface:
    """Surface of a cone along z with its base at ``start`` and its tip at ``tip``."""
    outline = [(0, start), (radius, start), (0, tip)]
    return revolve(outline if tip > start else outline[::-1], count)


def revolve(outline, count=_ROUND) -> Surface:
    """Surface of revolution of an outline of points (r, z) about z."""
    outline = np.array(outline, dtype=float)
    angle = 2 * np.pi * np.arange(count) / count
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = outline[:, None, :1] * around
    heights = np.broadcast_to(outline[:, None, 1:], (len(outline), count, 1))
    vertices = np.concatenate([rings, heights], axis=2).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(len(outline) - 1), np.arange(count), indexing="ij")
    a, b = i * count + j, i * count + (j + 1) % count
    c, d = a + count, b + count
    faces = np.concatenate([np.stack([a, b, d], -1), np.stack([a, d, c], -1)]).reshape(-1, 3)
    return _outside(Surface(vertices, faces))


def join(surfaces) -> Surface:
    """Surface joined from several surfaces."""
    surfaces = list(surfaces)
    starts = np.cumsum([0, *(len(s.vertices) for s in surfaces[:-1])])
    faces = [s.faces + start for s, start in zip(surfaces, starts, strict=True)]
    return Surface(np.concatenate([s.vertices for s in surfaces]), np.concatenate(faces))


@lru_cache(maxsize=16)
def _hills(field):
    """Smooth surface of a height field, finely triangulated."""
    count = np.array(np.shape(field.heights))
    count = (count - 1) * -(-_FINE // count) + 1
    x, y = (np.linspace(-s / 2, s / 2, n) for s, n in zip(field.size, count, strict=True))
    at = np.stack(np.meshgrid(x, y, indexing="ij")).reshape(2, -1)
    vertices = np.column_stack([*at, surface_at_points(field, *at).h])
    i, j = np.meshgrid(np.arange(len(x) - 1), np.arange(len(y) - 1), indexing="ij")
    a = (i * len(y) + j).ravel()
    b = a + len(y)
    faces = np.concatenate([np.stack([a, b, b + 1], -1), np.stack([a, b + 1, a + 1], -1)])
    return Surface(vertices, faces)


def _cuboid(size):
    """Surface of a box with given side lengths, centred at the origin."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [face for a, b, c, d in sides for face in ((a, b, c), (a, c, d))]
    return _outside(Surface(corners * np.array(size, dtype=float), np.array(faces)))


def _outside(surface):
    """Closed surface from ``surface``, with vertices duplicated along sharp edges."""
    return replace(crease(surface), closed=True)
