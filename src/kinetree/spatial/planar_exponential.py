"""Displacements in the plane as velocities: exponential, logarithm, ``XtoV`` — RBDA §A.1.

The planar counterpart of ``kinetree.spatial.exponential``.
"""

import numpy as np

from kinetree.spatial.ops import atan2
from kinetree.spatial.planar import PlanarMotion, PlanarTransform, turned
from kinetree.spatial.stumpff import stumpff

__all__ = ["displacement_velocity", "exp", "log", "simple_displacement_velocity"]


def exp(v):
    """Transform to the frame reached by moving at velocity ``v`` for one second."""
    w, u = v.angular[0], v.linear
    c = stumpff(w * w)
    return PlanarTransform(c[0], w * c[1], c[1] * u + c[2] * turned(w, u))


def log(X):
    """Velocity that carries frame A to frame B in one second; the turn is at most 180°."""
    theta = atan2(X.s, X.c)
    c = stumpff(theta * theta)
    # θ/2 cot(θ/2) = c₁ / 2c₂ is smooth at zero and vanishes at 180°.
    return PlanarMotion(theta, c[1] / (2 * c[2]) * X.r - turned(theta, X.r) / 2)


def displacement_velocity(X):
    """The book's ``XtoV``, version 2: velocity from A to B for a small displacement.

    RBDA Table A.1. Exact for translations, an invariant, ``X v = v``, and parallel to the exact
    velocity: ``log(X) = v θ / sin θ``. Vanishes at 180°, where only ``log`` has an answer.
    """
    u, v = simple_displacement_velocity(X).linear
    c, s = X.c, X.s
    return PlanarMotion(s, np.array([u + c * u - s * v, v + c * v + s * u]) / 2)


def simple_displacement_velocity(X):
    """The book's ``XtoV``, version 1: cheaper, less accurate, not an invariant."""
    X_21, X_31 = X.to_matrix()[1:, 0]
    return PlanarMotion(X.s, np.array([X_31, -X_21]))
