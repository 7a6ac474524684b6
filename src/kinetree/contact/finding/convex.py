"""Distance of any two convex shapes, or depth where they overlap."""

from typing import NamedTuple

import numpy as np

from kinetree.contact.collision.convex import nearest
from kinetree.contact.collision.shapes import placed_table
from kinetree.contact.finding.shapes import Placed, as_hull
from kinetree.errors import ModelError, SingularError
from kinetree.model.geometry import HeightField, Plane

_FAR = 1e100


class Nearest(NamedTuple):
    """How two shapes are nearest: gap [m], unit normal from the first, point of the first."""

    gap: float
    normal: np.ndarray
    foot: np.ndarray


def convex_distance(a: Placed, b: Placed) -> Nearest:
    """How two placed convex shapes (meshes: their hulls) are nearest, or how they overlap least."""
    if any(isinstance(p.shape, (HeightField, Plane)) for p in (a, b)):
        kinds = " and ".join(type(p.shape).__name__ for p in (a, b))
        raise ModelError(
            f"the distance between {kinds} is not one of bounded convex shapes; "
            f"Scene.contacts(q, margin) has points on planes and height fields, too"
        )
    if not all(np.all(np.abs(x) < _FAR) for p in (a, b) for x in (p.axes, p.origin)):
        raise SingularError(
            f"no distance between {a.shape!r} and {b.shape!r}, which are not at a finite place"
        )
    shapes = placed_table(as_hull(a), as_hull(b))
    o, near = np.array(a.origin, dtype=float), np.zeros(10)
    nearest(shapes, 0, 1, np.zeros((6, 3)), o, _FAR, np.zeros(3), near)
    return Nearest(float(near[3]), near[:3].copy(), o + near[4:7])
