"""Shapes in their place, points where they touch, and vectors that can be traced."""

import hashlib
import io
import os
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kinetree.codegen.cache import open_store
from kinetree.errors import need
from kinetree.model.triangles import content_of, convex_hull, read_triangles
from kinetree.quantities import kinematics
from kinetree.spatial.ops import less, select, sqrt

_TINY = 1e-12  # [m] below this, two points have no direction between them


class Placed(NamedTuple):
    """A shape somewhere in the base: its ``axes`` are the columns, its ``origin`` a point [m]."""

    shape: Any
    axes: Any
    origin: Any

    def point(self, local):
        """Base coordinates of a point of the shape."""
        return self.origin + self.axes @ np.asarray(local)

    def local(self, point):
        """Coordinates of a point of the base in the shape."""
        return self.axes.T @ (point - self.origin)


def as_hull(placed: Placed) -> Placed:
    """The shape, or the convex hull of a mesh that is not convex."""
    if getattr(placed.shape, "convex", True):
        return placed
    return placed._replace(shape=type(placed.shape)(placed.shape.path, placed.shape.scale))


def place_shapes(model, q, shapes):
    """Every ``Geometry`` of a list where the configuration puts it."""
    poses = np.concatenate([np.eye(4)[None], kinematics.poses(model, q)])
    placed = []
    for g in shapes:
        R, r = poses[g.body, :3, :3], poses[g.body, :3, 3]
        E, at = np.asarray(g.placement.E, float), np.asarray(g.placement.r, float)
        placed.append(Placed(g.shape, R @ E.T, r + R @ at))
    return placed


class Touch(NamedTuple):
    """Where two shapes are nearest: point half-way, normal from the first to the second, gap."""

    point: Any
    normal: Any
    gap: Any

    def reversed(self):
        """The same with the shapes in the other order."""
        return Touch(self.point, -self.normal, self.gap)


def touch(foot, normal, gap):
    """A ``Touch`` from the nearest point ``foot`` of the first shape."""
    return Touch(foot + normal * (gap / 2), normal, gap)


def chosen(condition, a, b):
    """``select`` for vectors: ``a`` where the condition, a single one, holds, else ``b``."""
    return np.array([select(condition, x, y) for x, y in zip(a, b, strict=True)])


def clamped(x, low, high):
    """``x``, but not below ``low`` nor above ``high``."""
    return select(less(x, low), low, select(less(high, x), high, x))


def absolute(x):
    """``|x|`` and the sign of x, 1 at zero."""
    sign = select(less(x, 0), -1, 1)
    return sign * x, sign


def direction(vector, fallback):
    """Unit vector and length of a vector; ``fallback`` where it has none."""
    square = sum(x * x for x in vector)
    has = less(_TINY * _TINY, square)
    length = sqrt(select(has, square, 1))
    return chosen(has, vector / length, fallback), select(has, length, 0)


# --- Convex hulls of meshes: contact is that of the hull -----------------------------------------

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
    kind = os.path.splitext(path)[1].lower()
    digest = hashlib.sha256(content_of(path, path)).hexdigest()
    key = "\n".join(["hull 2", kind, digest, repr(scale)])
    return Hull(*kept_arrays(key, lambda: _made_hull(path, scale)))


def _made_hull(path, scale):
    need("scipy", f"the convex hull of {path!r}", "contact")
    found = convex_hull(read_triangles(path, scale), path)
    return found.vertices, found.faces, found.face_normals


def kept_arrays(key, make) -> list:
    """Arrays that the cache on disk has under a key, or that ``make`` returns: then it has them."""
    kept = open_store().get(key)
    if kept is not None:
        file = io.BytesIO(kept)
        return [np.load(file) for _ in range(int(np.load(file)))]
    arrays, file = [np.array(a) for a in make()], io.BytesIO()
    for array in (np.array(len(arrays)), *arrays):
        np.save(file, array)
    open_store().put(key, file.getvalue())
    return arrays
