"""Matrices and vectors of contact problems as users give them, checked."""

import numpy as np

from kinetree.contact.complementarity.rows import MixedRows
from kinetree.errors import ShapeError
from kinetree.model.arrays import as_numbers


def numbers(x, name):
    """``x`` as a vector of floats, infinities allowed; ShapeError for anything else."""
    a = as_numbers(x, name)
    if a.ndim != 1 or a.dtype == object or np.iscomplexobj(a) or np.any(np.isnan(a)):
        raise ShapeError(f"{name} must be a vector of real numbers, got {x!r}")
    return a.astype(float)


def matrix_and_vector(M, d, matrix="M", vector="d", symmetric=True):
    """Square matrix and matching vector of a problem as checked float arrays."""
    M, d = as_numbers(M, matrix), numbers(d, vector)
    if M.shape != (len(d), len(d)):
        raise ShapeError(
            f"{matrix} must be a square matrix for {vector} of length {len(d)}, got {M.shape}"
        )
    if M.dtype == object or np.iscomplexobj(M) or not np.all(np.isfinite(M)):
        raise ShapeError(f"{matrix} must hold finite real numbers")
    if not np.all(np.isfinite(d)):
        raise ShapeError(f"{vector} must be finite, got {d.tolist()}")
    if symmetric and not np.allclose(M, M.T, rtol=1e-8, atol=1e-10 * np.max(np.abs(M), initial=0)):
        raise ShapeError(
            f"{matrix} must be symmetric, but differs from its transpose by up to "
            f"{np.max(np.abs(M - M.T)):.3g}"
        )
    return M.astype(float), d


def bounds(low, high, n):
    """Lower and upper bounds as vectors of length ``n``, checked for order."""
    pair = []
    for x, name in ((low, "low"), (high, "high")):
        a = np.full(n, float(x)) if np.ndim(x) == 0 else numbers(x, name)
        if a.shape != (n,) or np.any(np.isnan(a)):
            raise ShapeError(f"{name} must be a number or {n} of them, got {x!r}")
        pair.append(a)
    _check_order(*pair)
    return pair


def mixed_problem(A, b, mu, low, high):
    """Matrix, vector and ``MixedRows`` of a mixed problem, checked to fit one another."""
    A, b = matrix_and_vector(A, b, "A", "b")
    rows = MixedRows(numbers(mu, "mu"), numbers(low, "low"), numbers(high, "high"))
    if len(rows.low) != len(rows.high) or rows.size != len(b):
        raise ShapeError(
            f"b has {len(b)} rows, but {len(rows.mu)} contacts take 3 each, and there are "
            f"{len(rows.low)} lower and {len(rows.high)} upper bounds for the others"
        )
    if not np.all((rows.mu >= 0) & np.isfinite(rows.mu)):
        raise ShapeError(f"mu must be finite and not negative, got {rows.mu.tolist()}")
    _check_order(rows.low, rows.high)
    return A, b, rows


def _check_order(low, high):
    """Raise ShapeError unless every interval from ``low`` to ``high`` is nonempty."""
    if not np.all((low <= high) & (low < np.inf) & (high > -np.inf)):
        raise ShapeError(f"low must not exceed high, got {low.tolist()} and {high.tolist()}")
