"""Smooth where a surface is round, sharp where it has an edge; and coarser where it is too fine."""

import numpy as np

from kinetree.viewer.scene.description import Surface

__all__ = ["coarser", "creased", "normals"]

_EDGE = np.cos(np.radians(35.0))
_MOST = 64  # faces at a point, beyond which all of them count as one smooth surface


def creased(surface) -> Surface:
    """The same surface with its points doubled along edges, so that each has one normal."""
    vertices, faces = _merged(surface.vertices, surface.faces)
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
    _, index, back = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return Surface(vertices[corner[index]], back.reshape(-1, 3))


def normals(surface) -> np.ndarray:
    """Unit normals of the vertices, (n, 3), from the faces around each."""
    weighted, _ = _face_normals(surface.vertices, surface.faces)
    total = np.zeros_like(surface.vertices)
    for k in range(3):
        np.add.at(total, surface.faces[:, k], weighted)
    return total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-30)


def coarser(surface, most) -> Surface:
    """A surface of about ``most`` faces at most, by merging points that are close."""
    extent = np.ptp(surface.vertices, axis=0).max()
    cells = np.sqrt(most)
    while len(surface.faces) > most and cells > 4:
        step = extent / cells
        _, first, back = np.unique(
            np.round(surface.vertices / step).astype(int), axis=0, return_index=True,
            return_inverse=True,
        )  # fmt: skip
        back = back.ravel()
        count = np.bincount(back)[:, None]
        middle = np.zeros((len(first), 3))
        np.add.at(middle, back, surface.vertices)
        surface = Surface(*_without_slivers(middle / count, back[surface.faces]))
        cells *= 0.7
    return surface


def _merged(vertices, faces):
    """Points at the same place are one, and triangles without area are none."""
    vertices = np.asarray(vertices, dtype=float)
    extent = np.ptp(vertices, axis=0).max(initial=0.0) if len(vertices) else 0.0
    step = max(extent, 1e-12) * 1e-6
    keys = np.round(vertices / step).astype(np.int64)
    _, first, back = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return _without_slivers(vertices[first], back.ravel()[np.asarray(faces)])


def _without_slivers(vertices, faces):
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    _, once = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
    return vertices, faces[np.sort(once)]


def _face_normals(vertices, faces):
    """Normals of the faces, as long as twice their area, and of unit length."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    weighted = np.cross(b - a, c - a)
    return weighted, weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-30)
