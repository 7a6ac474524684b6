"""The mechanism as a whole: mass centre, momentum, and whether it stands.

Linear quantities are in base coordinates. Moments of ``momentum`` are about the origin of the base,
those of the functions called centroidal about the mass centre, along the axes of the base; moments
come first.
"""

from kinetree.algorithms import centroidal as texts
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.model import Model
from kinetree.model.define import quantity

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


@quantity((3,), texts.center_of_mass)
def center_of_mass(model: Model, q: ArrayLike) -> Array:
    """Centre of mass of all moving bodies in base coordinates [m], (..., 3)."""


@quantity((3,), texts.center_of_mass_velocity)
def center_of_mass_velocity(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Velocity of the centre of mass [m/s], (..., 3)."""


@quantity((3,), texts.center_of_mass_acceleration)
def center_of_mass_acceleration(model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """Acceleration of the centre of mass [m/s²], gravity not subtracted, (..., 3)."""


@quantity((3, "nv"), texts.center_of_mass_jacobian)
def center_of_mass_jacobian(model: Model, q: ArrayLike) -> Array:
    """``J`` with ``center_of_mass_velocity(model, q, qd) == J @ qd``, (..., 3, nv)."""


@quantity((3, "nv"), texts.center_of_mass_jacobian_rate)
def center_of_mass_jacobian_rate(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Time derivative of ``center_of_mass_jacobian``, (..., 3, nv)."""


@quantity((6,), texts.total_momentum)
def momentum(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Total spatial momentum about the base origin, moment first [N·m·s, N·s], (..., 6).

    That of the bodies alone: armature has no part in it.
    """


@quantity((6,), texts.centroidal_momentum)
def centroidal_momentum(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Total momentum about the mass centre, moment first [N·m·s, N·s], (..., 6)."""


@quantity((6,), texts.centroidal_momentum_rate)
def centroidal_momentum_rate(model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """Rate of ``centroidal_momentum`` [N·m, N], (..., 6).

    It is the sum of all forces on the mechanism from outside, its weight included.
    """


@quantity((6,), texts.centroidal_momentum_bias)
def centroidal_momentum_bias(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """``centroidal_momentum_rate`` at ``qdd = 0``, (..., 6)."""


@quantity((6, "nv"), texts.centroidal_momentum_matrix)
def centroidal_momentum_matrix(model: Model, q: ArrayLike) -> Array:
    """``A`` with ``centroidal_momentum(model, q, qd) == A @ qd``, (..., 6, nv)."""


@quantity((6, "nv"), texts.centroidal_momentum_matrix_rate)
def centroidal_momentum_matrix_rate(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Time derivative of ``centroidal_momentum_matrix``, (..., 6, nv)."""


@quantity((6, 6), texts.centroidal_inertia)
def centroidal_inertia(model: Model, q: ArrayLike) -> Array:
    """Inertia of the mechanism with locked joints about its mass centre, (..., 6, 6).

    Block diagonal: rotational inertia [kg·m²] and mass [kg]. With the momentum it gives the average
    angular velocity of the mechanism.
    """


@quantity((3,), texts.zero_moment_point)
def zero_moment_point(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    *,
    point: ArrayLike = (0.0, 0.0, 0.0),
) -> Array:
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
