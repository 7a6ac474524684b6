"""Forces of least norm that sum up to given ones, within bounds — RBDA §8.12.

``A u = b`` has many solutions where there are more actuators than freedoms. The one returned makes
``Σ w u²`` smallest, among those within bounds if there are any. With ``D = 1/√w``,

    u = D (z_0 + N y)       A D N = 0

where ``z_0`` is the solution of least norm and ``N`` an orthonormal basis of the rest. Bounds on
``u`` are linear inequalities on ``y``, and the ``y`` of least norm that satisfies them is a problem
of least distance, which Lawson and Hanson reduce to least squares with non-negative unknowns
(Solving Least Squares Problems, 1974, chapter 23). CPU only.
"""

import numpy as np

_INFEASIBLE = 1e-12
"""Squared residual of the least-squares problem, of size one, that means that no point exists."""


def least_forces(A, b, rank, weights, low=None, high=None):
    """``u`` with ``A u = b``, or nearest to it, that makes ``Σ w u²`` smallest; None if none fits.

    Args:
        A: (m, p), with singular values that fall off after the first ``rank``.
        b: (m,).
        rank: of ``A``.
        weights: ``w``, positive, (p,).
        low: smallest ``u``, -inf where there is no bound, (p,); None for no bounds.
        high: largest ``u``, likewise.
    """
    D = 1 / np.sqrt(weights)
    U, s, Vt = np.linalg.svd(A * D)
    z = Vt[:rank].T @ ((U[:, :rank].T @ b) / s[:rank])
    u = D * z
    if low is None or high is None or np.all((low <= u) & (u <= high)):
        return u
    N = D[:, None] * Vt[rank:].T
    below, above = np.isfinite(low), np.isfinite(high)
    C = np.concatenate([N[below], -N[above]])
    d = np.concatenate([(low - u)[below], (u - high)[above]])
    y = least_distance(C, d)
    if y is None:
        return None
    return np.clip(u + N @ y, low, high)


def least_distance(C, d):
    """The shortest ``y`` with ``C y >= d``, or None where there is none."""
    size = np.max(np.abs(C), initial=0.0), np.max(np.abs(d), initial=0.0)
    if size[1] == 0:
        return np.zeros(C.shape[1])
    if size[0] == 0:
        return None if np.any(d > 0) else np.zeros(C.shape[1])
    E = np.concatenate([C.T / size[0], d[None] / size[1]])  # y in units of size[1] / size[0]
    f = np.zeros(len(E))
    f[-1] = 1
    r = E @ nonnegative_least_squares(E, f) - f
    if r @ r < _INFEASIBLE:
        return None
    return -r[:-1] / r[-1] * (size[1] / size[0])


def nonnegative_least_squares(E, f):
    """``x >= 0`` that makes ``|E x - f|`` smallest: the active-set method of Lawson and Hanson."""
    n = E.shape[1]
    x, passive = np.zeros(n), np.zeros(n, dtype=bool)
    tolerance = 100 * np.finfo(float).eps * np.linalg.norm(E) * np.linalg.norm(f)
    for _ in range(10 * n + 10):
        w = np.where(passive, -np.inf, E.T @ (f - E @ x))
        if not n or np.max(w) <= tolerance:
            return x
        passive[np.argmax(w)] = True
        while True:
            s = np.zeros(n)
            s[passive] = np.linalg.lstsq(E[:, passive], f, rcond=None)[0]
            if np.all(s[passive] > 0):
                break
            falling = passive & (s <= 0)
            drop = np.maximum(x[falling] - s[falling], np.finfo(float).tiny)
            step = np.min(x[falling] / drop)
            x = x + step * (s - x)
            passive &= x > 1e-14 * np.max(x)
            x[~passive] = 0
        x = s
    return x
