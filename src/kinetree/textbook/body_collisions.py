"""Impulses on one body, on a handle, on a mechanism; two bodies that collide — RBDA §11.7.

An impulse is a force vector, the time integral of a force so large and short that nothing moves
meanwhile: velocity products play no part. NumPy only.
"""

from typing import NamedTuple

import numpy as np

from kinetree.contact.contacts import contact_axes
from kinetree.contact.mobility import mobility
from kinetree.errors import ImpactError, ShapeError
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.quantities import kinematics
from kinetree.spatial import Force, Motion


class BodyCollision(NamedTuple):
    """Velocity steps, impulse and energy of a collision of two bodies."""

    dv1: Motion
    """Step in the velocity of the first."""
    dv2: Motion
    """Step in the velocity of the second."""
    impulse: np.ndarray
    """On the second: along the normal, then two tangents [N·s], (3,)."""
    energy_change: float
    """Of both [J]; never positive."""


def velocity_change(inertia, impulse: Force) -> Motion:
    """Velocity change ``I⁻¹ ι`` of a body or handle under an impulse — RBDA (11.55), (11.56).

    Args:
        inertia: ``Inertia`` or ``ArticulatedInertia``; None for what does not move.
        impulse: in the same coordinates.
    """
    if inertia is None:
        return Motion.from_array(np.zeros(6))
    return Motion.from_array(np.linalg.solve(_matrix(inertia), impulse.to_array().astype(float)))


def joint_space_impulse(model, q, name, impulse):
    """Joint-space impulse ``Jᵀ ι`` (nv,) of an impulse on a body or frame — RBDA (11.58)."""
    iota = impulse.to_array() if isinstance(impulse, Force) else np.asarray(impulse, dtype=float)
    if iota.shape != (6,):
        raise ShapeError(f"an impulse is a Force or six numbers, got shape {iota.shape}")
    return kinematics.jacobian(model, q, name, frame="world").T @ iota


def velocity_step(model, q, u):
    """Velocity change (nv,) of a mechanism under a joint-space impulse — RBDA (11.57).

    Loops answer with their own impulses. Compression waves, bearings that give
    way and the like are not in it: see the caution in RBDA §11.7.

    Args:
        model: the mechanism.
        q: joint positions, (nq,).
        u: joint-space impulse [N·s, N·m·s], (nv,).
    """
    q = as_configuration(as_model(model), q).astype(float)
    return mobility(model, q) @ as_joint_vector(model, u, "u").astype(float)


def frictionless_collision(I1, v1, I2, v2, point, normal, restitution) -> BodyCollision:
    """``BodyCollision`` of two bodies at a smooth contact point — RBDA (11.60)–(11.65).

    Args:
        I1: inertia of the first body, or of a handle; None if it does not move.
        v1: its velocity before.
        I2: of the second, which the normal points to.
        v2: its velocity before.
        point: where they meet, in the coordinates of all else [m], (3,).
        normal: unit vector from the first to the second, (3,).
        restitution: ratio of the speeds of separation after and before, from 0 to 1.
    """
    N, W, zeta = _at(I1, v1, I2, v2, point, normal)
    lam = np.zeros(3)
    if _approaching(zeta):
        lam[0] = -(1 + _fraction(restitution)) * zeta[0] / W[0, 0]
    return _collision(I1, I2, N, W, zeta, lam)


def arrested_collision(
    I1, v1, I2, v2, point, normal, restitution, friction=np.inf
) -> BodyCollision:
    """``BodyCollision`` of two bodies whose sliding is stopped by friction — RBDA (11.66)–(11.72).

    Arguments are those of ``frictionless_collision``, and ``friction``, the coefficient that the
    impulse must not exceed.

    Raises:
        ImpactError: it would take more friction than there is, or a pull.
    """
    N, W, zeta = _at(I1, v1, I2, v2, point, normal)
    if not _approaching(zeta):
        return _collision(I1, I2, N, W, zeta, np.zeros(3))
    E = np.diag([_fraction(restitution), 0, 0])
    lam = -np.linalg.solve(W, (np.eye(3) + E) @ zeta)
    if lam[0] < 0:
        raise ImpactError(
            f"an impulse that arrests the sliding would have to pull, with {lam[0]:.6g} N·s along "
            f"the normal: the bodies slide on; use kinetree.contact.impact with friction"
        )
    needed = np.hypot(*lam[1:]) / lam[0]
    if needed > friction * (1 + 1e-12):
        raise ImpactError(
            f"arresting the sliding takes a coefficient of friction of {needed:.6g}, there is "
            f"{friction:.6g}: the bodies slide on; use kinetree.contact.impact with friction"
        )
    return _collision(I1, I2, N, W, zeta, lam)


def _at(I1, v1, I2, v2, point, normal):
    """Unit forces (6, 3) at a contact point, velocity per impulse, and relative velocity."""
    if I1 is None and I2 is None:
        raise ShapeError("one of two bodies that collide must be able to move, both inertias None")
    axes = contact_axes(np.asarray(normal, dtype=float))
    N = np.vstack([np.cross(np.asarray(point, dtype=float), axes).T, axes.T])
    inverses = sum(np.linalg.inv(_matrix(I)) for I in (I1, I2) if I is not None)
    relative = (v2 - v1).to_array().astype(float)
    return N, N.T @ inverses @ N, N.T @ relative


def _collision(I1, I2, N, W, zeta, lam):
    """``BodyCollision`` for a contact impulse: velocity changes and energy."""
    iota = Force.from_array(N @ lam)
    energy = float(lam @ zeta + lam @ W @ lam / 2)
    return BodyCollision(velocity_change(I1, -iota), velocity_change(I2, iota), lam, energy)


def _approaching(zeta):
    """Whether the relative velocity closes the gap."""
    return zeta[0] < 0


def _matrix(inertia):
    """Inertia of a body or handle as a 6 x 6 float matrix."""
    return np.asarray(inertia.to_matrix(), dtype=float)


def _fraction(restitution):
    """Coefficient of restitution, checked to be from 0 to 1."""
    if not 0 <= restitution <= 1:
        raise ShapeError(f"restitution must be from 0 to 1, got {restitution!r}")
    return restitution
