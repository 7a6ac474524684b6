"""Shapes in their place, points where they touch, and heights of splines; all can be traced.

Height fields are bicubic splines through heights on an even grid, with first and second
derivatives. On numbers, the 16 coefficients around a point are looked up. Compiled code cannot look
things up: there the weights of all coefficients are computed, and most are zero.
"""

import hashlib
import io
import os
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.dual import Dual
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
        """World coordinates of a point given in the shape's coordinates."""
        return self.origin + self.axes @ np.asarray(local)

    def local(self, point):
        """Coordinates in the shape of a point given in the world."""
        return self.axes.T @ (point - self.origin)


def as_hull(placed: Placed) -> Placed:
    """Placed shape itself, or the convex hull of a mesh that is not convex."""
    if getattr(placed.shape, "convex", True):
        return placed
    return placed._replace(shape=type(placed.shape)(placed.shape.path, placed.shape.scale))


def place_shapes(model, q, shapes):
    """``Placed`` shapes in the world of a list of ``Geometry`` at a configuration."""
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

    def reverse(self):
        """Same contact with the two shapes in reverse order."""
        return Touch(self.point, -self.normal, self.gap)


def touch(foot, normal, gap):
    """``Touch`` with a gap from the nearest point ``foot`` of the first shape."""
    return Touch(foot + normal * (gap / 2), normal, gap)


def choose(condition, a, b):
    """Vector ``a`` where a scalar condition holds, else ``b``; traceable."""
    return np.array([select(condition, x, y) for x, y in zip(a, b, strict=True)])


def clamp(x, low, high):
    """``x`` limited to the interval from ``low`` to ``high``; traceable."""
    return select(less(x, low), low, select(less(high, x), high, x))


def absolute(x):
    """Absolute value of ``x`` and its sign, 1 at zero; traceable."""
    sign = select(less(x, 0), -1, 1)
    return sign * x, sign


def direction(vector, fallback):
    """Unit vector and length of a vector; ``fallback`` and 0 for a zero vector."""
    square = sum(x * x for x in vector)
    has = less(_TINY * _TINY, square)
    length = sqrt(select(has, square, 1))
    return choose(has, vector / length, fallback), select(has, length, 0)


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
    """Convex hull of a mesh file, from the disk cache if the file is unchanged."""
    del changed  # a file that has changed is read again
    kind = os.path.splitext(path)[1].lower()
    digest = hashlib.sha256(content_of(path, path)).hexdigest()
    key = "\n".join(["hull 2", kind, digest, repr(scale)])
    return Hull(*kept_arrays(key, lambda: _made_hull(path, scale)))


def _made_hull(path, scale):
    """New convex hull of a mesh file: vertices, faces and face normals."""
    need("scipy", f"the convex hull of {path!r}", "contact")
    found = convex_hull(read_triangles(path, scale), path)
    return found.vertices, found.faces, found.face_normals


def kept_arrays(key, make) -> list:
    """Arrays stored in the disk cache under a key, made by ``make`` and stored if missing."""
    kept = open_store().get(key)
    if kept is not None:
        file = io.BytesIO(kept)
        return [np.load(file) for _ in range(int(np.load(file)))]
    arrays, file = [np.array(a) for a in make()], io.BytesIO()
    for array in (np.array(len(arrays)), *arrays):
        np.save(file, array)
    open_store().put(key, file.getvalue())
    return arrays


class HeightDerivatives(NamedTuple):
    """Height at a point, and its derivatives with respect to x and y."""

    h: Any
    hx: Any
    hy: Any
    hxx: Any
    hxy: Any
    hyy: Any


@lru_cache(maxsize=64)
def spline_coefficients(heights):
    """Coefficients of the B-splines, one more on every side than there are heights."""
    c = np.array(heights, dtype=float)
    for axis in (0, 1):
        n = c.shape[axis]
        A = np.zeros((n + 2, n + 2))
        for i in range(n):
            A[i + 1, i : i + 3] = 1 / 6, 4 / 6, 1 / 6
        A[0, :3] = A[-1, -3:] = 1, -2, 1  # natural ends: no curvature at the edge
        c = np.moveaxis(c, axis, 0)
        padded = np.zeros((n + 2, *c.shape[1:]))
        padded[1:-1] = c
        c = np.moveaxis(np.linalg.solve(A, padded), 0, axis)
    return c


def height_and_derivatives(field, x, y) -> HeightDerivatives:
    """Height and derivatives of a ``HeightField`` at (x, y), in its coordinates."""
    c = spline_coefficients(field.heights)
    wx, dx, ddx, first = _weights(x, field.size[0], c.shape[0])
    wy, dy, ddy, second = _weights(y, field.size[1], c.shape[1])
    c = c[first : first + len(wx), second : second + len(wy)]
    along, gradient, bend = (_sum(w, c) for w in (wx, dx, ddx))
    return HeightDerivatives(
        _sum(wy, along),
        _sum(wy, gradient),
        _sum(dy, along),
        _sum(wy, bend),
        _sum(dy, gradient),
        _sum(ddy, along),
    )


def hollow(field) -> float:
    """Upper bound of the upward curvature of a ``HeightField`` [1/m]; 0 if it has no hollows.

    Second derivatives of a spline are between those of its coefficients, taken as differences.
    """
    c = spline_coefficients(field.heights)
    steps = [size / (n - 3) for size, n in zip(field.size, c.shape, strict=True)]
    xx, yy = (np.diff(c, 2, axis=k) / steps[k] ** 2 for k in (0, 1))
    xy = np.diff(np.diff(c, axis=0), axis=1) / (steps[0] * steps[1])
    along = max(float(xx.max()), float(yy.max()), 0.0)
    return along + float(np.abs(xy).max())


def surface_at_points(field, x, y) -> HeightDerivatives:
    """Heights and derivatives of a ``HeightField`` at many points, (n,) each; floats only."""
    c = spline_coefficients(field.heights)
    rows, wx, dx, ddx = _weights_at_points(x, field.size[0], c.shape[0])
    columns, wy, dy, ddy = _weights_at_points(y, field.size[1], c.shape[1])
    around = c[rows[:, :, None], columns[:, None, :]]
    return HeightDerivatives(
        *(
            np.einsum("nij,ni,nj->n", around, a, b)
            for a, b in ((wx, wy), (dx, wy), (wx, dy), (ddx, wy), (dx, dy), (wx, ddy))
        )
    )


def _weights_at_points(x, size, count):
    """B-spline coefficient indices, weights and derivatives at points, (n, 4) each."""
    step = size / (count - 3)
    place = np.clip((x + size / 2) / step, 0, count - 3)
    first = np.minimum(place.astype(int), count - 4)
    f = place - first
    g = 1 - f
    w = np.stack([g**3, 4 - 6 * f**2 + 3 * f**3, 4 - 6 * g**2 + 3 * g**3, f**3], axis=-1) / 6
    d = np.stack([-(g**2), 3 * f**2 - 4 * f, 4 * g - 3 * g**2, f**2], axis=-1) / 2
    dd = np.stack([g, 3 * f - 2, 3 * g - 2, f], axis=-1)
    inside = (np.abs(x) <= size / 2)[:, None]
    return first[:, None] + np.arange(4), w, inside * d / step, inside * dd / step**2


def _sum(weights, values):
    """Weighted sum of values, traceable."""
    total = 0
    for w, v in zip(weights, values, strict=True):
        total = total + w * v
    return total


def _weights(x, size, count):
    """B-spline weights and derivatives at ``x``, and the index of the first coefficient."""
    step = size / (count - 3)
    place = clamp((x + size / 2) / step, 0, count - 3)
    level = less(size / 2, absolute(x)[0])
    number = place.value if isinstance(place, Dual) else place
    if isinstance(number, (float, int, np.number)):
        first = min(int(number), count - 4)
        chosen = range(first, first + 4)
    else:
        first, chosen = 0, range(count)
    weights = [_bump(place - (k - 1)) for k in chosen]
    flat = [(w, select(level, 0, d / step), select(level, 0, dd / step**2)) for w, d, dd in weights]
    return (*zip(*flat, strict=True), first)


def _bump(t):
    """Cubic B-spline centred at 0, with first and second derivative, at ``t``."""
    u, sign = absolute(t)
    near, far = less(u, 1), less(u, 2)
    v = 2 - u
    value = select(near, 2 / 3 - u * u + u * u * u / 2, select(far, v * v * v / 6, 0))
    rate = select(near, -2 * u + 3 * u * u / 2, select(far, -v * v / 2, 0))
    bend = select(near, -2 + 3 * u, select(far, v, 0))
    return value, sign * rate, bend
