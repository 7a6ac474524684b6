"""Between planar and spatial quantities: the plane is z = 0, coordinates 3, 4, 5 — RBDA §2.16."""

import numpy as np

from kinetree.errors import SpatialTypeError
from kinetree.spatial.articulated_inertia import ArticulatedInertia
from kinetree.spatial.inertia import Inertia
from kinetree.spatial.planar import PlanarForce, PlanarMotion, PlanarTransform
from kinetree.spatial.planar_inertia import PlanarArticulatedInertia, PlanarInertia
from kinetree.spatial.transform import Plucker
from kinetree.spatial.vector import Force, Motion

__all__ = ["lift", "restrict"]


def lift(x):
    """A planar motion, force or transform as a spatial one.

    Inertias cannot be lifted: a planar one does not say how heavy a tilt would be.
    """
    if isinstance(x, (PlanarMotion, PlanarForce)):
        kind = Motion if isinstance(x, PlanarMotion) else Force
        zero = np.zeros_like(x.angular[0], dtype=int)
        return kind(np.array([zero, zero, x.angular[0]]), np.array([*x.linear, zero]))
    if isinstance(x, PlanarTransform):
        return Plucker(np.array([[x.c, x.s, 0], [-x.s, x.c, 0], [0, 0, 1]]), [*x.r, 0])
    raise SpatialTypeError(
        f"lift takes a PlanarMotion, PlanarForce or PlanarTransform, got {type(x).__name__}"
    )


def restrict(x):
    """What a spatial quantity means for motion in the plane; everything else is dropped.

    A transform must turn about z for this to be meaningful.
    """
    if isinstance(x, Motion):
        return PlanarMotion(x.angular[2:], x.linear[:2])
    if isinstance(x, Force):
        return PlanarForce(x.angular[2:], x.linear[:2])
    if isinstance(x, Plucker):
        return PlanarTransform(x.E[0, 0], x.E[0, 1], x.r[:2])
    if isinstance(x, Inertia):
        return PlanarInertia(x.mass, x.first_moment[:2], x.rotational[2, 2])
    if isinstance(x, ArticulatedInertia):
        return PlanarArticulatedInertia(x.I[2, 2], x.H[2, :2], x.M[:2, :2])
    raise SpatialTypeError(f"restrict takes a spatial quantity, got {type(x).__name__}")
