"""The axis of a joint, a letter or any direction, and bases of its motions and forces.

Forces that do no work, or unit work, on given motions — RBDA (3.35), (3.36) — are written for any
kind of number: nothing there looks at a value but to choose a sign.
"""

import numpy as np

from kinetree.errors import JointError, ShapeError, SingularError
from kinetree.spatial import Force, Inertia, Motion
from kinetree.spatial.ops import atan2, cos, less, select, sin, sqrt
from kinetree.spatial.rotation import rotation_about
from kinetree.spatial.transform import rx, ry, rz
from kinetree.spatial.vector3 import cross, identity3

_LETTERS = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
_EXPECTED = "must be 'x', 'y', 'z', one of them with a sign, or three finite numbers, not all zero"


def as_axis(axis, what="joint axis"):
    """Unit vector as a tuple; coordinate axes keep exact integer entries.

    Takes ``"x"``, ``"-y"`` or any three numbers that are not all zero.
    """
    if isinstance(axis, str):
        name, sign = axis[-1:], {"": 1, "+": 1, "-": -1}.get(axis[:-1])
        if name not in _LETTERS or sign is None:
            raise JointError(f"{what} {_EXPECTED}, got {axis!r}")
        return tuple(sign * k for k in _LETTERS[name])
    try:
        a = np.asarray(axis, dtype=float)
    except (TypeError, ValueError):
        raise JointError(f"{what} {_EXPECTED}, got {axis!r}") from None
    if a.shape != (3,) or not np.all(np.isfinite(a)) or not np.any(a):
        raise JointError(f"{what} {_EXPECTED}, got {axis!r}")
    a = a / np.max(np.abs(a))  # so that the squares neither overflow nor vanish
    unit = a / np.linalg.norm(a)
    if np.count_nonzero(unit) == 1:
        return tuple(int(k) for k in np.sign(unit))
    return tuple(float(k) for k in unit)


class AnyAxis(tuple):
    """A direction by numbers that may be traced, with one that is perpendicular to it."""

    across: np.ndarray

    def __new__(cls, values):
        made = super().__new__(cls, tuple(values)[:3])
        made.across = np.array(values[3:])
        return made


def axis_parameters(axis):
    """Parameters of an axis direction: it and a perpendicular; none for a coordinate axis."""
    return () if index_of(axis) is not None else (*axis, *completed_basis(axis)[0])


def axis_with(axis, values):
    """Axis of the same kind with other parameters."""
    return AnyAxis(values) if len(values) else axis


def index_of(axis):
    """Index and sign of a coordinate axis, or None for a general direction."""
    if isinstance(axis, AnyAxis) or sum(k != 0 for k in axis) != 1:
        return None
    k = next(k for k in range(3) if axis[k] != 0)
    return k, axis[k]


def axis_rotation(axis, angle):
    """Coordinate rotation by an angle about a unit axis; sparse for coordinate axes."""
    aligned = index_of(axis)
    if aligned is None:
        return rotation_about(axis, cos(angle), sin(angle))
    k, sign = aligned
    return (rx, ry, rz)[k](angle if sign > 0 else -angle)


def axis_angle(axis, E):
    """Angle in (-π, π] of the rotation about ``axis`` that is closest to ``E``."""
    u, v = completed_basis(axis)
    return atan2(u @ E @ v - v @ E @ u, u @ E @ u + v @ E @ v)


def completed_basis(axis):
    """Two unit vectors that complete ``axis`` to a right-handed orthonormal basis: u × v = axis."""
    aligned = index_of(axis)
    if aligned is not None:
        k, sign = aligned
        u = np.zeros(3, dtype=int)
        v = np.zeros(3, dtype=int)
        u[(k + 1) % 3], v[(k + 2) % 3] = 1, sign
        return u, v
    a = np.asarray(axis)
    if isinstance(axis, AnyAxis):
        return axis.across, cross(a, axis.across)
    u = np.cross(a, np.eye(3)[np.argmin(np.abs(a))])
    u /= np.linalg.norm(u)
    return u, np.cross(a, u)


def motions(*columns):
    """Motion columns from (angular, linear) pairs of 3-vectors."""
    return Motion(*(np.column_stack(part) for part in zip(*columns, strict=True)))


def forces(*columns):
    """Force columns from (moment, force) pairs of 3-vectors."""
    if not columns:
        return Force(np.zeros((3, 0), int), np.zeros((3, 0), int))
    return Force(*(np.column_stack(part) for part in zip(*columns, strict=True)))


# --- Inertia that may move across a joint with an axis — RBDA §9.7, Table 9.7 --------------------


def rod_along(axis, inertia):
    """Massless rod along an axis with the body's second moment along it, as an inertia."""
    a, I = np.array(axis), inertia.rotational
    second_moment = np.trace(I) / 2 - a @ I @ a
    return Inertia(0, 0 * inertia.first_moment, second_moment * (identity3() - np.outer(a, a)))


def mass_on(axis, inertia):
    """Rod with the mass and first moment of a body along an axis, as an inertia."""
    a = np.array(axis)
    along = a * (a @ inertia.first_moment)
    return Inertia(inertia.mass, along, rod_along(axis, inertia).rotational)


# --- Position errors of joints that share an axis — RBDA §8.3, Table 8.1, for any axis -----------
# The table is printed for the z axis, entry by entry of the 6×6 matrix ``X``. Here ``frame`` is a
# right-handed basis ``(u, v, a)`` with ``a`` along the joint axis: ``X23 = v·E a``, ``X53 = v·B
# a``, where ``B a = E (a × r)`` is ``a`` times the lower left block. Every error vanishes with the
# closure error, and its rate is then ``Tᵀ v_J``.


def axis_tilt(X, frame):
    """Tilt ``(X23, -X13)``: how far the axes of two frames are from parallel."""
    u, v, a = frame
    Ea = X.E @ a
    return np.array([v @ Ea, -(u @ Ea)])


def axis_offset(X, frame):
    """Offset ``(X53, -X43)`` of the successor's origin from the axis [m]."""
    u, v, a = frame
    Ba = X.E @ cross(a, X.r)
    return np.array([v @ Ba, -(u @ Ba)])


def axis_shift(X, frame):
    """Shift ``X41 X21 + X42 X22`` of the successor's origin along the axis [m]."""
    u, v, a = frame
    return a @ X.E @ X.r - (u @ X.E @ cross(a, X.r)) * (v @ X.E @ a)


def orthogonal_complement(S):
    """Orthonormal basis of the complement of the columns of ``S``, by Householder reflections."""
    rows, n = S.shape
    A, Q = np.array(S), np.eye(rows, dtype=int)
    for k in range(n):
        x = A[k:, k]
        length = sqrt(x @ x)
        v = np.array([x[0] + select(less(x[0], 0), -length, length), *x[1:]])
        v_scaled = v * (2 / (v @ v))
        A = np.concatenate([A[:k], A[k:] - np.outer(v_scaled, v @ A[k:])])
        Q = np.concatenate([Q[:, :k], Q[:, k:] - np.outer(Q[:, k:] @ v, v_scaled)], axis=1)
    return Q[:, n:]


def dual_basis(S):
    """Dual basis ``T_a`` in the span of ``S``, with ``T_aᵀ S = 1``.

    Each of its columns is what a column of ``S`` has not in common with the others.
    """
    columns = []
    for k in range(S.shape[1]):
        others = np.delete(S, k, axis=1)
        rest = S[:, k]
        for e in _orthonormal(others):
            rest = rest - e * (e @ rest)
        columns.append(rest / (rest @ rest))
    return np.column_stack(columns)


def _orthonormal(S):
    """An orthonormal basis of the columns of ``S`` — Gram and Schmidt."""
    basis = []
    for s in S.T:
        for e in basis:
            s = s - e * (e @ s)
        basis.append(s / sqrt(s @ s))
    return basis


# --- Where an actuator pushes: active forces from its wrench — RBDA §3.5, Example 3.2 ------------


def active_subspace_from_wrench(joint, q, wrench):
    """Active force ``T_a`` along the actuator's wrench, scaled to ``T_aᵀ S = 1``.

    Motion does not depend on it; the bearing loads do.

    Args:
        joint: the joint.
        q: its position variables, (nq,).
        wrench: a ``Force`` on the successor in its coordinates, of any size; for a joint of n
            degrees of freedom n independent ones as columns, (6, n).
    """
    F = wrench.to_array().reshape(6, -1)
    if F.shape != (6, joint.nv):
        raise ShapeError(
            f"{type(joint).__name__} has {joint.nv} degrees of freedom and needs as many actuator "
            f"wrenches, got {F.shape[1]}"
        )
    S = joint.motion_subspace(q)
    power = S.T @ Force.from_array(F)
    if power.dtype.kind not in "fi":  # traced or exact numbers
        return Force.from_array(F @ dual_basis(power).T)
    if joint.nv == 1:
        scale = float(np.max(np.abs(S.to_array())) * np.max(np.abs(F)))
        independent = abs(power[0, 0]) > 64 * np.finfo(float).eps * scale
        coefficients = 1 / power if independent else power
    else:
        independent = np.linalg.cond(power) < 1 / (64 * np.finfo(float).eps)
        coefficients = np.linalg.inv(power) if independent else power
    if not independent:
        raise SingularError(
            f"the actuator wrench does no work on the freedom of this {type(joint).__name__} "
            f"joint (S^T f = {power.tolist()}): it loads the bearings only"
        )
    return Force.from_array(F @ coefficients)
