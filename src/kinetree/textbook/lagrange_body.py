"""One rigid body in generalised coordinates, by Lagrange's equations — tutorial §4, (25)–(48).

The coordinates ``q`` are the position of the mass centre and those of a rotation: a rotation vector
(``"exponential"``), three angles about z, y and x (``"euler"``), or a quaternion ``(w, x, y, z)``
(``"quaternion"``). Velocities are ``V = (v, w) = J qd``, linear first, along the axes of the world,
and with ``M_c = blockdiag(m 1, I_c)``

    M qdd + C = Q,    M = Jᵀ M_c J,    C = Jᵀ (M_c Jd + [w~] M_c J) qd,    Q = Jᵀ (f, n)

A quaternion makes seven coordinates for six degrees of freedom: ``M`` has rank 6, as stretching the
quaternion moves nothing, and its unit length is a separate equation, ``p·pdd = -pd·pd``. The others
are singular somewhere: at full turns, and where the second angle is ±90°.
"""

from typing import NamedTuple

import numpy as np

from kinetree.errors import SingularError, UnknownNameError
from kinetree.joints.euler import successive_turns
from kinetree.joints.jet import jets
from kinetree.spatial.lie import left_jacobian
from kinetree.spatial.rotation import rotation_exp, rotation_from_quaternion
from kinetree.spatial.vector3 import cross

COORDINATES = {"exponential": 6, "euler": 6, "quaternion": 7}
"""Kinds of coordinates, and how many they are."""


class LagrangeTerms(NamedTuple):
    """The five terms of (36), an entry for each coordinate: ``a + b + c - d + e = Q``."""

    a: np.ndarray
    """``(J)_jᵀ M_c J qdd``."""
    b: np.ndarray
    """``(J)_jᵀ M_c Jd qd``."""
    c: np.ndarray
    """``(J)_jᵀ dM_c/dt J qd``, which is ``j_jᵀ [w] I_c w`` — (37)."""
    d: np.ndarray
    """``½ qdᵀ Jᵀ ∂M_c/∂q_j J qd``, which is ``-j_jᵀ [w] I_c w`` — (38)."""
    e: np.ndarray
    """``((Jd)_j - ∂J/∂q_j qd)ᵀ M_c J qd``, which is ``-j_jᵀ [w] I_c w`` — (40), (43)."""

    @property
    def total(self) -> np.ndarray:
        """Sum ``d/dt ∂T/∂qd - ∂T/∂q`` of the five Lagrange terms (36)."""
        return self.a + self.b + self.c - self.d + self.e


def rotation(kind, q):
    """Rotation matrix from body to world for rotation coordinates of a kind."""
    r = q[3:]
    if kind == "exponential":
        return rotation_exp(r).T
    if kind == "euler":
        return successive_turns("zyx", r, 0 * r)[0].T
    _require_kind(kind)
    return rotation_from_quaternion(r / np.sqrt(r @ r)).T


def jacobian(kind, q):
    """Jacobian (6, n) from coordinate rates to ``(v, w)`` (28)–(31), (52), (54)."""
    _require_kind(kind)
    r = q[3:]
    if kind == "exponential":
        J_w = left_jacobian(r)
    elif kind == "euler":
        E, s, _ = successive_turns("zyx", r, 0 * r)
        J_w = E.T @ s
    else:
        w, x, y, z = r
        J_w = np.array([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]]) * (2 / (r @ r))
    J = np.zeros((6, COORDINATES[kind]), dtype=J_w.dtype)
    J[:3, :3], J[3:, 3:] = np.eye(3, dtype=int), J_w
    return J


def jacobian_rate(kind, q, qd):
    """Time derivative (6, n) of the Jacobian at rates ``qd``."""
    return _derivative(lambda q: jacobian(kind, q), q, qd)


def inertia_matrix(kind, m, I_0, q):
    """Inertia matrix ``Jᵀ M_c J`` (n, n) of a free body in given coordinates.

    Args:
        kind: a name of ``COORDINATES``.
        m: mass [kg].
        I_0: rotational inertia about the mass centre, in body coordinates [kg m²], (3, 3).
        q: position of the mass centre [m] and coordinates of the rotation, (n,).
    """
    J = jacobian(kind, q)
    return J.T @ _body_inertia(m, I_0, rotation(kind, q)) @ J


def equation_of_motion(kind, m, I_0, q, qd):
    """Matrix ``M`` and vector ``C`` of a free body's ``M qdd + C = Jᵀ (f, n)`` (48)."""
    J, Jd = jacobian(kind, q), jacobian_rate(kind, q, qd)
    M_c, V = _body_inertia(m, I_0, rotation(kind, q)), J @ qd
    turning = np.concatenate([np.zeros(3, int), cross(V[3:], M_c[3:, 3:] @ V[3:])])
    return J.T @ M_c @ J, J.T @ (M_c @ (Jd @ qd) + turning)


def acceleration(kind, m, I_0, q, qd, f, n):
    """Coordinate accelerations of a free body under a force and moment at its mass centre.

    For a quaternion of unit length, the equation of motion is solved together with that of its
    length; the multiplier of the latter is zero.

    Raises:
        SingularError: the coordinates are singular at ``q``.
    """
    M, C = equation_of_motion(kind, m, I_0, q, qd)
    Q = jacobian(kind, q).T @ np.concatenate([f, n])
    if kind == "quaternion":
        p, pd = q[3:], qd[3:]
        unit = np.concatenate([np.zeros(3), p])[None]
        K = np.block([[M, unit.T], [unit, np.zeros((1, 1))]])
        return np.linalg.solve(K, np.concatenate([Q - C, [-(pd @ pd)]]))[:7]
    size = np.linalg.svd(jacobian(kind, q)[3:, 3:], compute_uv=False)
    if not size[-1] > 1e-12 * size[0]:
        raise SingularError(
            f"{kind} coordinates are singular at {np.round(q[3:], 6).tolist()}: some angular "
            f"velocities belong to no rates of theirs. Take 'quaternion', or leave this place"
        )
    return np.linalg.solve(M, Q - C)


def lagrange_terms(kind, m, I_0, q, qd, qdd):
    """``LagrangeTerms``: the five terms of Lagrange's equations, each by definition (33)–(36)."""

    def M_c(q):
        return _body_inertia(m, I_0, rotation(kind, q))

    J, Jd, M, V = jacobian(kind, q), jacobian_rate(kind, q, qd), M_c(q), jacobian(kind, q) @ qd
    units = np.eye(len(q), dtype=int)
    M_j = [_derivative(M_c, q, e) for e in units]
    J_j = [jacobian_rate(kind, q, e) for e in units]
    return LagrangeTerms(
        J.T @ (M @ (J @ qdd)),
        J.T @ (M @ (Jd @ qd)),
        J.T @ (_derivative(M_c, q, qd) @ V),
        np.array([V @ dM @ V / 2 for dM in M_j]),
        np.array([(Jd[:, j] - dJ @ qd) @ (M @ V) for j, dJ in enumerate(J_j)]),
    )


def _body_inertia(m, I_0, R):
    """Inertia ``blockdiag(m 1, R I_0 Rᵀ)`` of a body at its mass centre (27)."""
    I_c = R @ I_0 @ R.T
    M = np.zeros((6, 6), dtype=I_c.dtype)
    M[:3, :3], M[3:, 3:] = m * np.eye(3, dtype=int), I_c
    return M


def _derivative(function, q, direction):
    """Directional derivative of an array-valued function at ``q``."""
    found = function(jets(q, direction))
    rates = [getattr(x, "first", 0) for x in found.ravel()]
    return np.array(rates).reshape(found.shape)


def _require_kind(kind):
    """Raise UnknownNameError for an unknown kind of rotation coordinates."""
    if kind not in COORDINATES:
        raise UnknownNameError(f"coordinates must be one of {list(COORDINATES)}, got {kind!r}")
