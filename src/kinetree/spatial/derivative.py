"""Differentiation in moving coordinates — RBDA §2.10, Table 2.4.

The derivative of a vector and the derivative of its coordinates agree only in a frame at rest. In
a frame that moves at ``v_A`` they differ by ``v_A × m`` (motions), ``v_A ×* f`` (forces) or
``ω_A × u`` (3-D vectors). The book writes a dot for the first and a ring for the second.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import SpatialTypeError
from kinetree.spatial import dense
from kinetree.spatial.articulated_inertia import ArticulatedInertia, InverseInertia
from kinetree.spatial.dyads import Dyadic
from kinetree.spatial.inertia import Inertia
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import cross, skew

if TYPE_CHECKING:
    from kinetree.spatial import Plucker


def true_derivative(ring: Any, x: Any, v_A: Motion) -> Any:
    """True derivative ``dx/dt`` in coordinates of a frame moving at ``v_A`` — RBDA (2.36)–(2.38).

    Args:
        ring: derivative of the coordinates of ``x``, of the kind of ``x``.
        x: a motion, a force, an inertia or dyadic, or an array of three coordinates.
        v_A: velocity of the frame, in its own coordinates; an angular velocity for a 3-D ``x``.
    """
    return ring + carried_rate(x, v_A)


def apparent_derivative(dot: Any, x: Any, v_A: Motion) -> Any:
    """Apparent derivative of ``x``, relative to a frame moving at ``v_A``.

    Inverse of ``true_derivative`` — RBDA (2.43), (2.44).
    """
    return dot + carried_rate(x, v_A) * -1


def carried_rate(x: Any, v: Any) -> Any:
    """Rate of change of a quantity fixed in a body that moves at ``v``.

    ``v × m`` and ``v ×* f`` for vectors, ``v×* I - I v×`` for an inertia (RBDA (2.65)), and
    likewise for every kind of dyadic. Returns the kind it is given.
    """
    if isinstance(x, (Motion, Force)):
        return v.cross(x)
    if isinstance(x, Inertia):
        return _inertia_rate(x, v)
    if isinstance(x, ArticulatedInertia):
        return ArticulatedInertia.from_matrix(_dyadic_rate(x.to_matrix(), Motion, Force, v))
    if isinstance(x, InverseInertia):
        return InverseInertia.from_matrix(_dyadic_rate(x.to_matrix(), Force, Motion, v))
    if isinstance(x, Dyadic):
        rate = _dyadic_rate(x.matrix, x.domain, x.codomain, v)
        return Dyadic(rate, x.domain, x.codomain)
    if np.shape(x) == (3,) and np.shape(v) == (3,):
        return cross(v, x)
    raise SpatialTypeError(
        f"carried_rate knows motions, forces, inertias, dyadics and, with an angular velocity, "
        f"3-D vectors; got {type(x).__name__} and {type(v).__name__}"
    )


def _inertia_rate(I, v):
    """Rate of the inertia of a rigid body at velocity ``v``, in compact form."""
    w, u = v.angular, v.linear
    W, U, H = skew(w), skew(u), skew(I.first_moment)
    rotational = W @ I.rotational - I.rotational @ W - (U @ H + H @ U)
    return Inertia(0, cross(w, I.first_moment) + I.mass * u, rotational)


def _dyadic_rate(A, domain, codomain, v):
    """Rate of a 6×6 map between motions and forces, fixed in a frame moving at ``v``."""
    cross_matrix = {Motion: dense.crm, Force: dense.crf}
    v = v.to_array()
    return cross_matrix[codomain](v) @ A - A @ cross_matrix[domain](v)


def transform_rate(X: "Plucker", v_A: Motion, v_B: Motion) -> Array:
    """Rate ``d/dt(ᴮX_A) = (v_A - v_B)× ᴮX_A`` of a transform, (6, 6) — RBDA (2.45).

    Args:
        X: transform from A to B.
        v_A: velocity of frame A, in B coordinates.
        v_B: velocity of frame B, in B coordinates.
    """
    return dense.crm((v_A - v_B).to_array()) @ X.to_matrix()


# --- Spatial and classical acceleration, and what the points of a body do — RBDA §2.2, §2.11 -----
# The linear part of a spatial acceleration is not the acceleration of the body point at the
# origin: it is the rate at which the velocity of the points that stream through the origin
# changes. A body that spins steadily about a fixed line has no spatial acceleration at all. In
# exchange, spatial accelerations add and transform like velocities; classical ones do neither, so
# here they are plain 3-vectors and never a ``Motion``.


class ClassicalAcceleration(NamedTuple):
    """Angular acceleration, and linear acceleration of the body point at the origin."""

    angular: np.ndarray
    """Angular acceleration [rad/s²], (3,)."""
    linear: np.ndarray
    """Acceleration of the body-fixed point that is now at the origin [m/s²], (3,)."""


def classical_acceleration(a: Motion, v: Motion) -> "ClassicalAcceleration":
    """Classical acceleration ``(ω̇, r̈)`` from spatial acceleration and velocity — RBDA (2.50)."""
    return ClassicalAcceleration(a.angular, a.linear + cross(v.angular, v.linear))


def spatial_acceleration(angular: ArrayLike, linear: ArrayLike, v: Motion) -> Motion:
    """Spatial acceleration of a body from its classical acceleration — RBDA (2.48).

    Args:
        angular: angular acceleration [rad/s²], (3,).
        linear: acceleration of the body-fixed point at the origin [m/s²], (3,).
        v: spatial velocity of the body.
    """
    return Motion(angular, linear - cross(v.angular, v.linear))


def point_velocity(v: Motion, p: ArrayLike) -> Array:
    """Velocity [m/s] of the body-fixed point that is now at ``p`` — RBDA (2.1)."""
    return v.linear + cross(v.angular, np.asarray(p))


def point_acceleration(a: Motion, v: Motion, p: ArrayLike) -> Array:
    """Acceleration [m/s²] of the body-fixed point that is now at ``p``."""
    p = np.asarray(p)
    streaming = a.linear + cross(a.angular, p)  # the acceleration field, like a velocity field
    return streaming + cross(v.angular, point_velocity(v, p))
