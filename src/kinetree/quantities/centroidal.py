"""The mechanism as a whole: mass centre, momentum, and whether it stands.

Linear quantities are in base coordinates. Moments of ``momentum`` are about the origin of the base,
those of the functions called centroidal about the mass centre, along the axes of the base; moments
come first. All are those of the actual motion: bodies that prescribed joints move count.
"""

import numpy as np

from kinetree.algorithms import centroidal as texts
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, TraceError
from kinetree.model import Model
from kinetree.model.arrays import as_numbers, check_finite
from kinetree.model.define import quantity

__all__ = [
    "center_of_mass", "center_of_mass_acceleration", "center_of_mass_jacobian",
    "center_of_mass_jacobian_rate", "center_of_mass_velocity", "centroidal_inertia",
    "centroidal_momentum", "centroidal_momentum_bias", "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate", "centroidal_momentum_rate", "momentum", "support_margin",
    "zero_moment_point",
]  # fmt: skip


def _is_laden(model, options):
    """Whether all bodies on the base have mass."""
    return all(on or p for on, p in zip(model.laden[1:], model.parent[1:], strict=True))


@quantity((3,), texts.center_of_mass, general=True, gears=True)
def center_of_mass(model: Model, q: ArrayLike) -> Array:
    """Centre of mass of all moving bodies in base coordinates [m], (..., 3)."""


@quantity((3,), texts.center_of_mass_velocity, general=True, gears=True)
def center_of_mass_velocity(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Velocity of the centre of mass [m/s], that of prescribed motion included, (..., 3)."""


@quantity((3,), texts.center_of_mass_acceleration, general=True, gears=True)
def center_of_mass_acceleration(model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """Acceleration of the centre of mass [m/s²], gravity not subtracted, (..., 3)."""


@quantity((3, "nv"), texts.center_of_mass_jacobian, general=True, gears=True)
def center_of_mass_jacobian(model: Model, q: ArrayLike) -> Array:
    """Jacobian ``J = ∂v/∂qd`` of the centre of mass's velocity, (..., 3, nv).

    ``center_of_mass_velocity(model, q, qd) == J @ qd + center_of_mass_velocity(model, q, 0 * qd)``;
    the last term is zero without prescribed joints.
    """


@quantity((3, "nv"), texts.center_of_mass_jacobian_rate, general=True, gears=True)
def center_of_mass_jacobian_rate(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Time derivative of ``center_of_mass_jacobian``, (..., 3, nv)."""


@quantity((6,), texts.total_momentum, general=True, gears=True)
def momentum(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Total spatial momentum about the base origin, moment first [N·m·s, N·s], (..., 6).

    That of the bodies, as they move: prescribed joints count, armature does not.
    """


@quantity((6,), texts.centroidal_momentum, general=True, general_for=_is_laden, gears=True)
def centroidal_momentum(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Total momentum about the mass centre, moment first [N·m·s, N·s], (..., 6).

    That of the bodies, as they move: prescribed joints count, armature does not.
    """


@quantity((6,), texts.centroidal_momentum_rate, general=True, general_for=_is_laden, gears=True)
def centroidal_momentum_rate(model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """Rate of ``centroidal_momentum`` [N·m, N], (..., 6).

    It is the sum of all forces on the mechanism from outside, its weight included.
    """


@quantity((6,), texts.centroidal_momentum_bias, general=True, general_for=_is_laden, gears=True)
def centroidal_momentum_bias(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """``centroidal_momentum_rate`` at ``qdd = 0``, (..., 6)."""


@quantity(
    (6, "nv"), texts.centroidal_momentum_matrix, general=True, general_for=_is_laden, gears=True
)
def centroidal_momentum_matrix(model: Model, q: ArrayLike) -> Array:
    """Centroidal momentum matrix ``A = ∂h/∂qd``, (..., 6, nv).

    ``centroidal_momentum(model, q, qd) == A @ qd + centroidal_momentum(model, q, 0 * qd)``;
    the last term is zero without prescribed joints.
    """


@quantity(
    (6, "nv"),
    texts.centroidal_momentum_matrix_rate,
    general=True,
    general_for=_is_laden,
    gears=True,
)
def centroidal_momentum_matrix_rate(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Time derivative of ``centroidal_momentum_matrix``, (..., 6, nv)."""


@quantity((6, 6), texts.centroidal_inertia, general=True, general_for=_is_laden, gears=True)
def centroidal_inertia(model: Model, q: ArrayLike) -> Array:
    """Inertia of the mechanism with locked joints about its mass centre, (..., 6, 6).

    Block diagonal: rotational inertia [kg·m²] and mass [kg]. With the momentum it gives the average
    angular velocity of the mechanism.
    """


@quantity((3,), texts.zero_moment_point, general=True, gears=True)
def zero_moment_point(
    model: Model, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, point: ArrayLike = (0.0, 0.0, 0.0)
) -> Array:
    """Zero moment point of a motion on flat ground, if nothing else holds the mechanism.

    Args:
        model: the mechanism; its gravity defines the vertical.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        qdd: joint accelerations, (..., nv).
        point: a point of the ground [m], (..., 3).

    Returns:
        The point about which the ground force has no moment parallel to the ground [m], (..., 3).
        At rest it lies below the mass centre. If it is outside the support polygon, the motion is
        impossible: the feet would tip (``support_margin``).
    """


# --- Stability margin: the distance of a point to the edge of the polygon of support -------------
# Computed on the CPU: which contacts are corners of the polygon depends on the numbers.


@on_host
def support_margin(
    contacts: ArrayLike, point: ArrayLike, *, up: ArrayLike = (0.0, 0.0, 1.0)
) -> Array:
    """Distance of a point from the edge of the support polygon [m], (...); negative outside.

    Static: with ``center_of_mass`` the margin of a mechanism at rest. Dynamic: with
    ``zero_moment_point``.

    Args:
        contacts: points that touch the ground [m], (n, 3); heights do not matter.
        point: points to judge [m], (..., 3); they are moved along ``up`` into the ground.
        up: direction that the ground is perpendicular to, such as ``-model.gravity``.

    Returns:
        Distance to the nearest edge, positive inside and negative outside. One or two contacts, or
        contacts in line, have no inside: the distance is zero on them and negative elsewhere.
    """
    contacts, point = _points(contacts, "contacts"), _points(point, "point")
    if contacts.ndim != 2 or not len(contacts):
        raise ShapeError(f"contacts must be points (n, 3), at least one, got {contacts.shape}")
    E = _horizontal_axes(up)
    corners, p = hull(contacts @ E.T), point @ E.T
    start, edge = corners, np.roll(corners, -1, axis=0) - corners
    to_point = p[..., None, :] - start
    length = np.linalg.norm(edge, axis=-1)
    safe = np.where(length > 0, length, 1.0)
    along = np.clip(np.sum(to_point * edge, axis=-1) / safe**2, 0.0, 1.0)
    distance = np.linalg.norm(to_point - along[..., None] * edge, axis=-1).min(axis=-1)
    left = (edge[:, 0] * to_point[..., 1] - edge[:, 1] * to_point[..., 0]) / safe
    inside = np.all(left >= 0, axis=-1) & (len(corners) > 2)
    return np.where(inside, distance, -distance)[()]


def hull(points):
    """Corners of the convex hull of planar points (n, 2), anticlockwise.

    A. M. Andrew, "Another efficient algorithm for convex hulls in two dimensions", 1979.
    """
    points = np.unique(points, axis=0)
    if len(points) < 3:
        return points

    def chain(ordered):
        kept: list = []
        for p in ordered:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], p) <= 0:
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return np.array(chain(points) + chain(points[::-1]))


def _turn(a, b, c):
    """Twice the signed area of a triangle, positive if anticlockwise."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _horizontal_axes(up):
    """Unit vectors that span the ground and form a right-handed system with ``up``, (2, 3)."""
    up = _points(up, "up")
    size = float(np.linalg.norm(up))
    if up.shape != (3,) or size == 0:
        raise ShapeError(f"up must be a direction (3,), not zero, got {up}")
    up = up / size
    x = np.eye(3)[np.argmin(np.abs(up))]
    x = x - (x @ up) * up
    x = x / np.linalg.norm(x)
    return np.array([x, np.cross(up, x)])


def _points(x, name):
    """Points as float arrays (..., 3); an error if they are traced."""
    x = as_numbers(x, name)
    if x.dtype == object:
        raise TraceError(
            f"support_margin works on the CPU, in Python, and cannot be traced: {name} is traced"
        )
    if x.shape[-1:] != (3,):
        raise ShapeError(f"{name} must have 3 coordinates, (..., 3), got shape {x.shape}")
    return check_finite(x, name)
