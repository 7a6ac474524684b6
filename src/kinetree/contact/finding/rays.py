"""Lines ``p + t d`` and solids in their own coordinates: from where to where they are inside."""

import numpy as np

from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Sphere

_NOWHERE = (np.inf, -np.inf)


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
