"""Which shapes may be near each other: boxes around them along the axes, sorted and swept.

RBDA §11.6 leaves the detection of collisions to the literature. Sweep and prune is from D. Baraff,
"Dynamic simulation of non-penetrating rigid bodies" (1992).
"""

import numpy as np

from kinetree.contact.shapes.hulls import hull_of
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, HeightField, Plane, Sphere

__all__ = ["bounds", "sweep_and_prune"]

_ALIGNED = 1 - 1e-12
_FEW = 64  # boxes for which comparing all with all takes less time than sorting


def bounds(placed):
    """Lowest and highest coordinates of a shape in the base, (3,) each."""
    shape, R, origin = placed
    if isinstance(shape, Plane):
        return _half_space(R[:, 2], origin)
    if isinstance(shape, (Box, Sphere, Capsule, Cylinder, Ellipsoid)):
        reach = _reach(shape, R)
        return origin - reach, origin + reach
    if isinstance(shape, HeightField):
        return _half_space(R[:, 2], origin + R[:, 2] * _highest(shape))
    vertices = hull_of(shape).vertices @ R.T + origin
    return vertices.min(axis=0), vertices.max(axis=0)


def _reach(shape, R):
    if isinstance(shape, Box):
        return np.abs(R) @ (np.array(shape.size) / 2)
    if isinstance(shape, Ellipsoid):
        return np.sqrt((R * R) @ np.square(shape.radii))
    if isinstance(shape, Sphere):
        return np.full(3, shape.radius)
    along = np.abs(R[:, 2]) * shape.length / 2
    if isinstance(shape, Capsule):
        return along + shape.radius
    return along + shape.radius * np.sqrt(np.maximum(1 - R[:, 2] ** 2, 0))


def _half_space(normal, origin):
    """All of space, but for a plane along the axes of the base."""
    low, high = np.full(3, -np.inf), np.full(3, np.inf)
    for k in range(3):
        if normal[k] > _ALIGNED:
            high[k] = origin[k]
        elif normal[k] < -_ALIGNED:
            low[k] = origin[k]
    return low, high


def _highest(field):
    """Nothing of a field is higher: a spline overshoots by less than what its heights differ."""
    heights = np.array(field.heights)
    return 2 * heights.max() - heights.min()


def sweep_and_prune(low, high):
    """Pairs of overlapping boxes, (m, 2) numbers with the smaller one first, sorted.

    Args:
        low: lowest coordinates, (n, 3).
        high: highest coordinates, (n, 3).
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if len(low) <= _FEW:
        return np.argwhere(np.triu(_overlap(low[:, None], high[:, None], low, high), 1))
    axis = _widest(low, high)
    order = np.argsort(low[:, axis], kind="stable")
    starts = low[order, axis]
    ends = np.searchsorted(starts, high[order, axis], side="right")  # the last that begins inside
    found = []
    for k, i in enumerate(order):
        others = order[k + 1 : ends[k]]
        others = others[_overlap(low[i], high[i], low[others], high[others])]
        found.append(np.column_stack([np.full(len(others), i), others]))
    pairs = np.sort(np.concatenate(found), axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _overlap(low, high, other_low, other_high):
    return np.all((other_low <= high) & (other_high >= low), axis=-1)


def _widest(low, high):
    """The axis along which the boxes are spread most; those without end do not count."""
    with np.errstate(invalid="ignore"):
        middles = (low + high) / 2
    middles = middles[np.all(np.isfinite(middles), axis=1)]
    return int(np.argmax(np.var(middles, axis=0))) if len(middles) else 0
