"""Sparse ``LᵀL`` and ``LᵀDL`` factorisation and solves — RBDA §6.5, Tables 6.3–6.5.

``lam`` is the expanded parent array (``model.expanded_parent``): ``lam[k]`` is the variable that
variable ``k`` hangs on, or -1. Row ``k`` of ``H`` is nonzero below the diagonal in columns
``lam[k]``, ``lam[lam[k]]``, … only; nothing else is touched, and the factors fill nothing in.
"""

import numpy as np

from kinetree.spatial.ops import check_pivot, sqrt


def dense(n):
    """The parent array of a matrix without structural zeros: ``lam[k] = k - 1``."""
    return tuple(range(-1, n - 1))


def ancestors(lam, k):
    """Ancestors ``lam[k]``, ``lam[lam[k]]``, … of a variable up to the base."""
    while lam[k] >= 0:
        k = lam[k]
        yield k


def not_positive(k):
    """Message for a pivot that is zero or negative."""
    return (
        f"the matrix is not positive definite: pivot {k} is not above zero to working precision. "
        f"A joint-space inertia matrix fails so when a joint moves no inertia; check also that the "
        f"parent array is the one of the matrix"
    )


def ltl(H, lam, message=not_positive):
    """Cholesky-like factor ``L`` (lower triangular) with ``H = LᵀL``; reads the lower triangle."""
    L = np.tril(H)
    for k in reversed(range(len(lam))):
        L[k, k] = sqrt(check_pivot(L[k, k], H[k, k], lambda k=k: message(k)))
        for i in ancestors(lam, k):
            L[k, i] = L[k, i] / L[k, k]
        for i in ancestors(lam, k):
            for j in (i, *ancestors(lam, i)):
                L[i, j] = L[i, j] - L[k, i] * L[k, j]
    return L


def ltdl(H, lam, message=not_positive, check=check_pivot):
    """Factors with ``H = LᵀDL`` in one array: unit lower ``L`` below the diagonal, ``D`` on it."""
    L = np.tril(H)
    for k in reversed(range(len(lam))):
        L[k, k] = check(L[k, k], H[k, k], lambda k=k: message(k))
        for i in ancestors(lam, k):
            a = L[k, i] / L[k, k]
            for j in (i, *ancestors(lam, i)):
                L[i, j] = L[i, j] - a * L[k, j]
            L[k, i] = a
    return L


def solve_l(L, lam, b, unit=False):
    """Solution ``L⁻¹ b`` of a sparse lower-triangular system."""
    x = list(b)
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            x[i] = x[i] - L[i, j] * x[j]
        x[i] = x[i] if unit else x[i] / L[i, i]
    return np.array(x)


def solve_lt(L, lam, b, unit=False):
    """Solution ``L⁻ᵀ b`` of a sparse lower-triangular system, transposed."""
    x = list(b)
    for i in reversed(range(len(lam))):
        x[i] = x[i] if unit else x[i] / L[i, i]
        for j in ancestors(lam, i):
            x[j] = x[j] - L[i, j] * x[i]
    return np.array(x)


def solve_ltl(L, lam, b):
    """Solution ``H⁻¹ b`` from the factor ``L`` of ``ltl(H, lam)``."""
    return solve_l(L, lam, solve_lt(L, lam, b))


def solve_ltdl(L, lam, b):
    """Solution ``H⁻¹ b`` from the factors of ``ltdl(H, lam)``."""
    y = solve_lt(L, lam, b, unit=True)
    return solve_l(L, lam, [y[k] / L[k, k] for k in range(len(lam))], unit=True)


def two_columns_at_a_time(n):
    """Index pairs (row, column) of a square matrix, two columns at a time, for generated code.

    It keeps the order of the source, and writes neighbours to memory together if they are adjacent.
    """
    for first in range(0, n, 2):
        for row in range(n):
            yield from ((row, column) for column in range(first, min(first + 2, n)))


def inverse_ltdl(L, lam):
    """Inverse ``H⁻¹ = L⁻¹ D⁻¹ L⁻ᵀ`` from the factors of ``ltdl(H, lam)``.

    ``A`` has the zeros of ``L``. An entry of ``H⁻¹`` is a sum over the variables that support both
    its row and its column, or zero if there is none.
    """
    n = len(lam)
    A = solve_l(L, lam, np.eye(n, dtype=int), unit=True).reshape(n, n)
    path = [(*reversed([*ancestors(lam, k)]), k) for k in range(n)]
    AD = [{k: A[i, k] / L[k, k] for k in path[i]} for i in range(n)]
    H_inv = np.zeros((n, n), dtype=L.dtype)
    for j, i in two_columns_at_a_time(n):
        if j <= i:
            shared = [k for k, other in zip(path[i], path[j], strict=False) if k == other]
            H_inv[i, j] = H_inv[j, i] = sum(AD[i][k] * A[j, k] for k in shared)
    return H_inv


def inverse(H, lam, message=not_positive):
    """Inverse ``H⁻¹`` as a full matrix, by sparse factorisation."""
    return inverse_ltdl(ltdl(H, lam, message), lam)


class Inverse:
    """``H⁻¹`` of a small full matrix, kept as factors: ``H⁻¹ @ B`` and ``B @ H⁻¹`` are solves."""

    __array_ufunc__ = None

    def __init__(self, H, message=not_positive):
        self.lam = dense(len(H))
        self.L = ltdl(H, self.lam, message)

    def __matmul__(self, B):
        if not self.lam:
            return B
        if np.ndim(B) == 1:
            return solve_ltdl(self.L, self.lam, B)
        return np.array([solve_ltdl(self.L, self.lam, b) for b in B.T]).reshape(B.T.shape).T

    def __rmatmul__(self, B):
        return (self @ np.transpose(B)).T

    def arrays(self):
        """Arrays that the factors consist of, for tables of recorded loops."""
        return [self.L]

    def like(self, arrays):
        """Inverse made of other arrays; the inverse function of ``arrays``."""
        made = object.__new__(Inverse)
        made.lam, made.L = self.lam, arrays[0]
        return made


# --- products with a matrix or its factors — Table 6.5 -------------------------------------------


def multiply_l(L, lam, x, unit=False):
    """Product ``L x`` with a sparse lower-triangular factor."""
    y = [x[i] if unit else L[i, i] * x[i] for i in range(len(lam))]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[i] = y[i] + L[i, j] * x[j]
    return np.array(y)


def multiply_lt(L, lam, x, unit=False):
    """Product ``Lᵀ x`` with a sparse lower-triangular factor."""
    y = [x[i] if unit else L[i, i] * x[i] for i in range(len(lam))]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[j] = y[j] + L[i, j] * x[i]
    return np.array(y)


def multiply(H, lam, x):
    """Product ``H x`` from the lower triangle of a sparse symmetric ``H``."""
    y = [H[i, i] * x[i] for i in range(len(lam))]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[i] = y[i] + H[i, j] * x[j]
            y[j] = y[j] + H[i, j] * x[i]
    return np.array(y)
