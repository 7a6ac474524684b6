"""Projected Gauss–Seidel on the mixed problem: one contact or row at a time, each solved exactly.

Simple, and never far from a solution; slow where contacts lean on one another, as in stacks.
``cones.solve(method="pgs")``, which impacts at several points turn to where other methods fail.
"""

import numpy as np

_REGULARIZATION = 1e-10  # blocks of A may be singular, as in planar mechanisms


def sweep(A, b, rows, lam):
    """Forces after one projected Gauss-Seidel pass over all contacts and bounded rows."""
    lam, start = lam.copy(), 3 * len(rows.mu)
    for i, mu in enumerate(rows.mu):
        at = slice(3 * i, 3 * i + 3)
        block = A[at, at] + _REGULARIZATION * np.eye(3)
        free = A[at] @ lam + b[at] - block @ lam[at]
        lam[at] = one_contact_force(block, free, mu, rows.convex, near=lam[at])
    for k, (low, high) in enumerate(zip(rows.low, rows.high, strict=True), start):
        step = (A[k] @ lam + b[k]) / (A[k, k] + _REGULARIZATION)
        lam[k] = min(max(lam[k] - step, low), high)
    return lam


def projected_gauss_seidel(problem, lam, tolerance, iterations):
    """Solve a contact problem by Gauss-Seidel sweeps; forces and number of sweeps."""
    for k in range(iterations):
        if problem.error(lam) <= tolerance:
            return lam, k
        lam = sweep(problem.A, problem.b, problem.rows, lam)
    return lam, iterations


# --- one contact with friction, solved exactly ---------------------------------------------------
# Either nothing touches, or the contact sticks, or it slides in a direction that is a root of a
# polynomial: with ``lam = lam_n g``, ``g = (1, mu c)`` and ``c`` a unit vector, the normal motion
# (for the convex law, the motion along ``g``) gives ``lam_n``; then ``w_t`` must be along ``-c``.
# That is a trigonometric polynomial in the angle of ``c``, of degree 2 for Coulomb's law and 3
# for the convex one.

_ANGLES = 2 * np.pi * np.arange(7) / 7


def one_contact_force(A, b, mu, convex=False, near=None):
    """Force of one contact (3,) that satisfies its friction law exactly.

    Args:
        A: symmetric positive-definite matrix, (3, 3).
        b: motion without the force, (3,).
        mu: coefficient of friction.
        convex: which friction law, see ``rows``.
        near: of several solutions the one nearest to this; the smallest by default.
    """
    if b[0] >= (mu * np.hypot(b[1], b[2]) if convex else 0.0):
        return np.zeros(3)
    sticking = -np.linalg.solve(A, b)
    if np.hypot(sticking[1], sticking[2]) <= mu * sticking[0]:
        return sticking
    if mu == 0:
        return np.array([-b[0] / A[0, 0], 0.0, 0.0])
    g, line, resistance = _slides(A, mu, convex, _directions(A, b, mu, convex))
    lam = np.maximum(-(line @ b) / resistance, 0.0)[:, None] * g
    w = lam @ A + b
    backward = np.einsum("ij,ij->i", g[:, 1:], w[:, 1:]) < 0
    if not np.any(backward):  # a root so flat that its side is undecided
        backward[:] = True
    distance = np.sum((lam - (0.0 if near is None else near)) ** 2, axis=1)
    return lam[int(np.argmin(np.where(backward & (resistance > 0), distance, np.inf)))]


def _slides(A, mu, convex, angle):
    """Sliding force directions g by angle, constraint line, and resistance ``line A g``."""
    g = np.stack([np.ones_like(angle), mu * np.cos(angle), mu * np.sin(angle)], axis=1)
    line = g if convex else np.tile([1.0, 0.0, 0.0], (len(g), 1))
    return g, line, np.einsum("ij,jk,ik->i", line, A, g)


def _directions(A, b, mu, convex):
    """Candidate angles of the sliding force: real roots of the sliding polynomial."""
    g, line, resistance = _slides(A, mu, convex, _ANGLES)
    w = b * resistance[:, None] - (line @ b)[:, None] * (g @ A)  # times the resistance
    samples = np.cos(_ANGLES) * w[:, 2] - np.sin(_ANGLES) * w[:, 1]
    series = np.roll(np.fft.fft(samples) / 7, 3)  # coefficients of exp(ikθ), k from -3 to 3
    roots = np.roots(series[::-1] if convex else series[-2:0:-1])
    angle = np.angle(roots[np.abs(np.abs(roots) - 1) < 1e-3])
    return angle if len(angle) else np.zeros(1)
