"""Pseudo-inertias and parametrisations that only physically possible inertias have.

A body is possible, as a distribution of mass, if and only if the 4×4 matrix of its moments

    P = ∫ [x; 1] [x; 1]ᵀ dm = [[Σ, h], [hᵀ, m]],    Σ = ½ tr(I) 1 - I

is positive semidefinite (Wensing, Kim & Slotine, IEEE RA-L 2018). ``P`` is linear in the ten
parameters. Its triangular factor, with logarithms of the diagonal, takes any ten numbers to a
possible body and back (Rucker & Wensing, IEEE RA-L 2022):

    P = U Uᵀ,   U = e^a [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]]

``theta = (a, d1, d2, d3, s12, s23, s13, t1, t2, t3)``: ``e^2a`` is the mass, ``t`` the mass centre.
"""

import numpy as np

from kinetree.errors import ModelError, ShapeError
from kinetree.spatial.inertia import Inertia
from kinetree.spatial.ops import exp, log, magnitude, sqrt
from kinetree.spatial.vector3 import identity3


def pseudo_inertia(I):
    """Pseudo-inertia matrix ``P`` of a rigid-body inertia, symmetric (4, 4)."""
    Sigma = np.trace(I.rotational) * identity3() / 2 - I.rotational
    h = I.first_moment
    return np.array([*([*row, x] for row, x in zip(Sigma, h, strict=True)), [*h, I.mass]])


def from_pseudo_inertia(P):
    """Rigid-body inertia with the pseudo-inertia ``P``."""
    P = np.asarray(P)
    if P.shape != (4, 4):
        raise ShapeError(f"a pseudo-inertia is a 4x4 matrix, got shape {P.shape}")
    Sigma = P[:3, :3]
    return Inertia(P[3, 3], P[:3, 3], np.trace(Sigma) * identity3() - Sigma)


def from_log_cholesky(theta):
    """Inertia with log-Cholesky parameters ``theta``, (10,), which may be any numbers."""
    U = _factor(_ten(theta))
    return from_pseudo_inertia(U @ U.T)


def log_cholesky(I):
    """Log-Cholesky parameters of a rigid-body inertia, (10,).

    Raises:
        ModelError: for an inertia at the edge of what is possible, such as a point mass or a rod
            without thickness, or beyond it: it has none.
    """
    m = _positive(I.mass, I.mass, "its mass")
    c = I.first_moment / m
    V = np.trace(I.rotational) * identity3() / (2 * m) - I.rotational / m - np.outer(c, c)
    size = V[0, 0] + V[1, 1] + V[2, 2]  # V: second moments about the mass centre, per mass
    d3 = sqrt(_positive(V[2, 2], size, "its extent along z"))
    s13, s23 = V[0, 2] / d3, V[1, 2] / d3
    d2 = sqrt(_positive(V[1, 1] - s23 * s23, size, "its extent in the y-z plane"))
    s12 = (V[0, 1] - s13 * s23) / d2
    d1 = sqrt(_positive(V[0, 0] - s12 * s12 - s13 * s13, size, "its extent in space"))
    return np.array([log(m) / 2, log(d1), log(d2), log(d3), s12, s23, s13, *c])


def log_cholesky_jacobian(theta):
    """Derivative of the ten inertial parameters by log-Cholesky parameters, (10, 10)."""
    U = _factor(_ten(theta))
    columns = []
    for dU in _factor_rates(U):
        dP = dU @ U.T
        columns.append(from_pseudo_inertia(dP + dP.T).parameters())
    return np.array(columns).T


def _factor(theta):
    """Triangular factor of a pseudo-inertia from log-Cholesky parameters."""
    a, d1, d2, d3, s12, s23, s13, t1, t2, t3 = theta
    rows = [[exp(d1), s12, s13, t1], [0, exp(d2), s23, t2], [0, 0, exp(d3), t3], [0, 0, 0, 1]]
    return exp(a) * np.array(rows)


_PLACES = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))  # of s12, s23, s13, t1, t2, t3


def _factor_rates(U):
    """Derivatives ``∂U/∂theta_k`` of the triangular factor for every ``k``."""
    yield U
    for k in range(3):
        yield _at(k, k, U[k, k])
    for i, j in _PLACES:
        yield _at(i, j, U[3, 3])


def _at(i, j, value):
    """Matrix (4, 4) with one nonzero entry."""
    return np.array([[value if (r, c) == (i, j) else 0 for c in range(4)] for r in range(4)])


def _ten(theta):
    """Log-Cholesky parameters as an array of ten."""
    theta = np.asarray(theta)
    if theta.shape != (10,):
        raise ShapeError(f"log-Cholesky parameters have shape (10,), got {theta.shape}")
    return theta


def _positive(x, scale, what):
    """The number, after an error unless it is safely positive; traced numbers pass."""
    is_number = isinstance(x, (int, float, complex, np.number))
    if is_number and not np.real(x) > 1e-12 * magnitude(scale):
        raise ModelError(
            f"an inertia has log-Cholesky parameters only if mass and extent in all three "
            f"directions are positive; {what} gives {np.real(x):.3g}. Give the body some thickness"
        )
    return x
