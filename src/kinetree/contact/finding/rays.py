"""Rays ``p + t d``, ``t ≥ 0``, and shapes in their own coordinates: where the first is met."""

import os
from functools import lru_cache

import numpy as np

from kinetree.model.geometry import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    HeightField,
    Mesh,
    Plane,
    Sphere,
)
from kinetree.model.triangles import read_triangles

_NOWHERE = (np.inf, -np.inf)


def first_hit(shape, p, d) -> float:
    """The smallest ``t ≥ 0`` at which a ray meets the surface of a shape, from either side.

    Infinite where it misses. Planes have no end; height fields are taken as triangles between
    their points, and meshes as their triangles.
    """
    if isinstance(shape, Plane):
        t = -p[2] / d[2] if d[2] else -1.0
        return t if t >= 0 else np.inf
    if isinstance(shape, Mesh):
        changed = os.stat(shape.path).st_mtime_ns if os.path.exists(shape.path) else 0
        return _hit_triangles(_mesh(shape.path, tuple(map(float, shape.scale)), changed), p, d)
    if isinstance(shape, HeightField):
        return _hit_triangles(_ground(shape), p, d)
    low, high = interval(shape, p, d)
    return min((t for t in (low, high) if t >= 0 and low <= high), default=np.inf)


def interval(shape, p, d) -> tuple[float, float]:
    """The smallest and largest ``t`` of a line within a solid; the larger first where it misses."""
    if isinstance(shape, Box):
        return _common(*(_slab(p[k], d[k], shape.size[k] / 2) for k in range(3)))
    if isinstance(shape, (Sphere, Ellipsoid)):
        radii = np.array(shape.radii if isinstance(shape, Ellipsoid) else [shape.radius] * 3)
        return _ball(p / radii, d / radii)
    half, r = shape.length / 2, shape.radius
    parts = [_common(_ball(p[:2] / r, d[:2] / r), _slab(p[2], d[2], half))]
    if isinstance(shape, Capsule):
        parts += [_ball((p - np.array([0, 0, z])) / r, d / r) for z in (half, -half)]
    met = [part for part in parts if part[0] <= part[1]]
    return (min(a for a, _ in met), max(b for _, b in met)) if met else _NOWHERE


def is_solid(shape) -> bool:
    """Whether ``interval`` knows the shape."""
    return isinstance(shape, (Box, Sphere, Ellipsoid, Cylinder, Capsule))


def _slab(p, d, half):
    """Where ``|p + t d| ≤ half``."""
    if d == 0:
        return (-np.inf, np.inf) if abs(p) <= half else _NOWHERE
    a, b = (-half - p) / d, (half - p) / d
    return min(a, b), max(a, b)


def _ball(p, d):
    """Where ``|p + t d| ≤ 1``."""
    a, b, c = d @ d, p @ d, p @ p - 1
    if a == 0:
        return (-np.inf, np.inf) if c <= 0 else _NOWHERE
    if b * b < a * c:
        return _NOWHERE
    root = np.sqrt(b * b - a * c)
    return (-b - root) / a, (-b + root) / a


def _common(*intervals):
    return max(low for low, _ in intervals), min(high for _, high in intervals)


# --- triangles -----------------------------------------------------------------------------------


def _hit_triangles(corners, p, d):
    """T. Möller, B. Trumbore, "Fast, minimum storage ray/triangle intersection", 1997."""
    a, u, v = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    n = np.cross(d, v)
    det = np.sum(u * n, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.sum((p - a) * n, axis=1) / det
        m = np.cross(p - a, u)
        y, t = (m @ d) / det, np.sum(v * m, axis=1) / det
        met = (x >= 0) & (y >= 0) & (x + y <= 1) & (t >= 0)
    return float(np.min(t[met], initial=np.inf))


@lru_cache(maxsize=64)
def _mesh(path, scale, changed):
    del changed  # a file that has changed is read again
    return np.array(read_triangles(path, scale).triangles)


@lru_cache(maxsize=16)
def _ground(field):
    """Two triangles for every four neighbouring heights, (n, 3, 3)."""
    h = np.array(field.heights, dtype=float)
    x, y = (np.linspace(-s / 2, s / 2, n) for s, n in zip(field.size, h.shape, strict=True))
    points = np.stack([*np.meshgrid(x, y, indexing="ij"), h], axis=-1)
    a, b, c, e = points[:-1, :-1], points[1:, :-1], points[:-1, 1:], points[1:, 1:]
    halves = [np.stack(three, axis=-2).reshape(-1, 3, 3) for three in ((a, b, c), (b, e, c))]
    return np.concatenate(halves)
