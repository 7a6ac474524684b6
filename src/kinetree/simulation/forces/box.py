"""Forces within bounds that leave no motion against them: a convex program over a box."""

import numpy as np

__all__ = ["solve_box"]

_SWEEPS = 100_000


def solve_box(A, b, low, high):
    """``f`` within its bounds with ``w = A f + b`` zero, or pointing out of the box at a bound.

    So ``w_i >= 0`` where ``f_i = low_i`` and ``w_i <= 0`` where ``f_i = high_i``: the one minimum
    of ``½ fᵀ A f + bᵀ f``. By projected Gauss–Seidel, then exactly for those between bounds.

    Args:
        A: symmetric and positive definite, (n, n).
        b: (n,).
        low: smallest, infinite where there is no bound, (n,).
        high: largest, likewise.

    Returns:
        ``f`` and which are between their bounds, (n,) each.
    """
    n = len(b)
    f = np.clip(np.zeros(n), low, high)
    for _ in range(_SWEEPS):
        change = 0.0
        for i in range(n):
            x = min(max(f[i] - (A[i] @ f + b[i]) / A[i, i], low[i]), high[i])
            change, f[i] = max(change, abs(x - f[i])), x
        if change <= 1e-15 * np.max(np.abs(f), initial=0.0):
            break
    inside = (low < f) & (f < high)
    s = np.flatnonzero(inside)
    if len(s):
        rest = A[np.ix_(s, ~inside)] @ f[~inside]
        exact = np.linalg.solve(A[np.ix_(s, s)], -b[s] - rest)
        if np.all((low[s] <= exact) & (exact <= high[s])):
            f[s] = exact
    return f, inside
