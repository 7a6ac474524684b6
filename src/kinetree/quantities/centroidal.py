"""The mechanism as a whole: mass centre, momentum, and whether it stands.

Linear quantities are in base coordinates. Moments of ``momentum`` are about the origin of the base,
those of the functions called centroidal about the mass centre, along the axes of the base; moments
come first.
"""

from kinetree.errors import ShapeError
from kinetree.model.arrays import as_given, check_finite
from kinetree.quantities.functions import quantity

__all__ = [
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_jacobian_rate",
    "center_of_mass_velocity",
    "centroidal_inertia",
    "centroidal_momentum",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "centroidal_momentum_rate",
    "momentum",
    "zero_moment_point",
]


def center_of_mass(model, q):
    """Centre of mass of all moving bodies in base coordinates [m], (..., 3)."""
    return quantity(model, "center_of_mass").call(q)


def center_of_mass_velocity(model, q, qd):
    """Velocity of the centre of mass [m/s], (..., 3)."""
    return quantity(model, "center_of_mass_velocity").call(q, qd)


def center_of_mass_acceleration(model, q, qd, qdd):
    """Acceleration of the centre of mass [m/s²], gravity not subtracted, (..., 3)."""
    return quantity(model, "center_of_mass_acceleration").call(q, qd, qdd)


def center_of_mass_jacobian(model, q):
    """``J`` with ``center_of_mass_velocity(model, q, qd) == J @ qd``, (..., 3, nv)."""
    return quantity(model, "center_of_mass_jacobian").call(q)


def center_of_mass_jacobian_rate(model, q, qd):
    """Time derivative of ``center_of_mass_jacobian``, (..., 3, nv)."""
    return quantity(model, "center_of_mass_jacobian_rate").call(q, qd)


def momentum(model, q, qd):
    """Total spatial momentum about the base origin, moment first [N·m·s, N·s], (..., 6).

    That of the bodies alone: armature has no part in it.
    """
    return quantity(model, "momentum").call(q, qd)


def centroidal_momentum(model, q, qd):
    """Total momentum about the mass centre, moment first [N·m·s, N·s], (..., 6)."""
    return quantity(model, "centroidal_momentum").call(q, qd)


def centroidal_momentum_rate(model, q, qd, qdd):
    """Rate of ``centroidal_momentum`` [N·m, N], (..., 6).

    It is the sum of all forces on the mechanism from outside, its weight included.
    """
    return quantity(model, "centroidal_momentum_rate").call(q, qd, qdd)


def centroidal_momentum_bias(model, q, qd):
    """``centroidal_momentum_rate`` at ``qdd = 0``, (..., 6)."""
    return quantity(model, "centroidal_momentum_bias").call(q, qd)


def centroidal_momentum_matrix(model, q):
    """``A`` with ``centroidal_momentum(model, q, qd) == A @ qd``, (..., 6, nv)."""
    return quantity(model, "centroidal_momentum_matrix").call(q)


def centroidal_momentum_matrix_rate(model, q, qd):
    """Time derivative of ``centroidal_momentum_matrix``, (..., 6, nv)."""
    return quantity(model, "centroidal_momentum_matrix_rate").call(q, qd)


def centroidal_inertia(model, q):
    """Inertia of the mechanism with locked joints about its mass centre, (..., 6, 6).

    Block diagonal: rotational inertia [kg·m²] and mass [kg]. With the momentum it gives the average
    angular velocity of the mechanism.
    """
    return quantity(model, "centroidal_inertia").call(q)


def zero_moment_point(model, q, qd, qdd, *, point=(0.0, 0.0, 0.0)):
    """Where flat ground has to push for this motion, if nothing else holds the mechanism.

    Args:
        model: the mechanism; its gravity says what is up.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        qdd: joint accelerations, (..., nv).
        point: a point of the ground [m], (..., 3).

    Returns:
        The point of the ground about which its force has no moment along the ground [m], (..., 3).
        At rest it lies below the mass centre. Outside the support polygon of the feet the motion is
        impossible: they would tip (``support_margin``).
    """
    point = as_given(point, "point")
    if point.shape[-1:] != (3,):
        raise ShapeError(f"point must have 3 coordinates, (..., 3), got shape {point.shape}")
    return quantity(model, "zero_moment_point").call(q, qd, qdd, check_finite(point, "point"))
