"""Spatial and classical acceleration, and what the points of a body do — RBDA §2.2, §2.11.

The linear part of a spatial acceleration is not the acceleration of the body point at the origin:
it is the rate at which the velocity of the points that stream through the origin changes. A body
that spins steadily about a fixed line has no spatial acceleration at all. In exchange, spatial
accelerations add and transform like velocities; classical ones do neither, so here they are plain
3-vectors and never a ``Motion``.
"""

from typing import NamedTuple

import numpy as np

from kinetree.spatial.vector import Motion
from kinetree.spatial.vector3 import cross

__all__ = [
    "ClassicalAcceleration",
    "classical_acceleration",
    "point_acceleration",
    "point_velocity",
    "spatial_acceleration",
]


class ClassicalAcceleration(NamedTuple):
    """Angular acceleration, and linear acceleration of the body point at the origin."""

    angular: np.ndarray
    """Angular acceleration [rad/s²], (3,)."""
    linear: np.ndarray
    """Acceleration of the body-fixed point that is now at the origin [m/s²], (3,)."""


def classical_acceleration(a, v):
    """``(ω̇, r̈)`` from the spatial acceleration and velocity — RBDA (2.50)."""
    return ClassicalAcceleration(a.angular, a.linear + cross(v.angular, v.linear))


def spatial_acceleration(angular, linear, v):
    """Spatial acceleration of a body from its classical one — RBDA (2.48).

    Args:
        angular: angular acceleration [rad/s²], (3,).
        linear: acceleration of the body-fixed point at the origin [m/s²], (3,).
        v: spatial velocity of the body.
    """
    return Motion(angular, linear - cross(v.angular, v.linear))


def point_velocity(v, p):
    """Velocity [m/s] of the point of the body that is now at ``p`` — RBDA (2.1)."""
    return v.linear + cross(v.angular, np.asarray(p))


def point_acceleration(a, v, p):
    """Acceleration [m/s²] of the point of the body that is now at ``p``."""
    p = np.asarray(p)
    streaming = a.linear + cross(a.angular, p)  # the acceleration field, like a velocity field
    return streaming + cross(v.angular, point_velocity(v, p))
