"""Convex hulls of meshes: what touches is the hull, not the hollows of a mesh."""

import os
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.errors import MissingPackageError
from kinetree.model.triangles import convex_hull, read_triangles

__all__ = ["COMPILED_VERTICES", "Hull", "hull_of"]

COMPILED_VERTICES = 64
"""Meshes whose hull has more vertices than this are not compiled into kernels."""


class Hull(NamedTuple):
    """A convex polyhedron: vertices (n, 3), triangles (m, 3), outward unit normals (m, 3)."""

    vertices: np.ndarray
    triangles: np.ndarray
    normals: np.ndarray

    @property
    def offsets(self):
        """Distances of the faces' planes from the origin, (m,)."""
        return np.sum(self.normals * self.vertices[self.triangles[:, 0]], axis=1)


def hull_of(mesh) -> Hull:
    """The convex hull of a ``Mesh``, in its own coordinates."""
    changed = os.stat(mesh.path).st_mtime_ns if os.path.exists(mesh.path) else 0
    return _hull(mesh.path, tuple(map(float, mesh.scale)), changed)


@lru_cache(maxsize=256)
def _hull(path, scale, changed):
    del changed  # a file that has changed is read again
    try:
        hull = convex_hull(read_triangles(path, scale), path)
    except ImportError as error:
        raise MissingPackageError(
            f"the convex hull of {path!r} needs SciPy, which cannot be imported ({error}): "
            f'pip install "kinetree[contact]"'
        ) from error
    return Hull(np.array(hull.vertices), np.array(hull.faces), np.array(hull.face_normals))
