"""Exponential and logarithm of rigid motions — Spencer A.1.3, Lynch & Park ch. 9.

Also the book's small-displacement function ``XtoV`` (RBDA Table A.2), which is not a logarithm:
its angular part is ``sin θ`` times the axis and vanishes at 180°.
"""

import numpy as np

from kinetree.errors import SpatialTypeError
from kinetree.spatial.rotation import rotation_exp, rotation_log
from kinetree.spatial.stumpff import stumpff
from kinetree.spatial.transform import Plucker
from kinetree.spatial.vector import Motion
from kinetree.spatial.vector3 import identity3, skew

__all__ = ["displacement_velocity", "exp", "left_jacobian", "left_jacobian_inverse", "log"]


def exp(v):
    """Transform to the frame reached by moving at velocity ``v`` for one second."""
    if not isinstance(v, Motion):
        raise SpatialTypeError(f"exp takes a Motion, got {type(v).__name__}")
    return Plucker(rotation_exp(v.angular), left_jacobian(v.angular) @ v.linear)


def log(X):
    """Velocity that carries frame A to frame B in one second; the rotation is at most 180°."""
    if not isinstance(X, Plucker):
        raise SpatialTypeError(f"log takes a Plucker transform, got {type(X).__name__}")
    phi = rotation_log(X.E)
    return Motion(phi, left_jacobian_inverse(phi) @ X.r)


def left_jacobian(phi):
    """``1 + c₂ φ× + c₃ φ×²`` — tutorial (54).

    Takes the rate of the rotation vector ``phi`` to the angular velocity in the parent frame; its
    transpose takes it to the child frame.
    """
    c, u = stumpff(phi @ phi), skew(phi)
    return identity3() + c[2] * u + c[3] * (u @ u)


def left_jacobian_inverse(phi):
    """Inverse of ``left_jacobian``; exists for rotations of less than 360°."""
    c, u = stumpff(phi @ phi), skew(phi)
    k = (c[3] - 2 * c[4]) / (2 * c[2])  # (1 - c₁ / 2c₂) / θ² without cancellation
    return identity3() - u / 2 + k * (u @ u)


def displacement_velocity(X):
    """The book's ``XtoV``: velocity from A to B for a small displacement — RBDA Table A.2.

    Exact for translations, off by the cube of the angle otherwise, and invariant: ``X v = v``.
    Its angular part vanishes at 180°; use ``log`` for displacements that are not small.
    """
    M = X.to_matrix()
    return Motion(
        np.array([M[1, 2] - M[2, 1], M[2, 0] - M[0, 2], M[0, 1] - M[1, 0]]) / 2,
        np.array([M[4, 2] - M[5, 1], M[5, 0] - M[3, 2], M[3, 1] - M[4, 0]]) / 2,
    )
