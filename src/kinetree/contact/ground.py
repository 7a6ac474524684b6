"""Something to stand on."""

import numpy as np

from kinetree.contact.tangents import contact_axes
from kinetree.errors import ModelError
from kinetree.model.arrays import as_model
from kinetree.model.geometry import Geometry, Plane
from kinetree.spatial import Plucker

__all__ = ["with_ground"]


def with_ground(model, normal=(0.0, 0.0, 1.0), point=(0.0, 0.0, 0.0), name="ground"):
    """The model with a plane fixed to its base, solid on the side that ``normal`` leaves.

    Args:
        model: the mechanism.
        normal: direction out of the ground, of any length, (3,).
        point: a point of the surface [m], (3,).
        name: what to call the shape.
    """
    n = np.asarray(normal, dtype=float)
    length = np.sqrt(n @ n) if n.shape == (3,) else 0.0
    if not 0 < length < np.inf:
        raise ModelError(f"normal must be a direction of three numbers, got {normal!r}")
    axes = contact_axes(n / length)
    placement = Plucker(axes[[1, 2, 0]], np.array(point, dtype=float))
    plane = Geometry(0, Plane(), placement, name=name)
    return as_model(model).replace(geometry=(*model.geometry, plane))
