"""Linear equations inside a step: LU factors without exchange of rows.

For matrices whose symmetric part is positive definite, as ``H`` plus terms of a small step are,
elimination in the given order is stable; a pivot that is not safely positive is an error.
"""

import numpy as np

from kinetree.spatial.ops import check_pivot


def linear_solver(A):
    """Function from ``b`` to the solution of ``A x = b``, traced or vectorised."""
    if A.dtype.kind != "f" or not _is_positive(A):
        LU = factor(A)
        return lambda b: solve(LU, b)
    return lambda b: np.linalg.solve(A, b[..., None])[..., 0]


def _is_positive(A):
    """Whether the symmetric part of float matrices is positive definite."""
    try:
        np.linalg.cholesky(A + np.swapaxes(A, -1, -2))
    except np.linalg.LinAlgError:
        return False
    return True


def factor(A):
    """LU factors without pivoting in one array, unit lower triangle implied; traceable."""
    n = len(A)
    LU = np.array(A, dtype=np.result_type(A, float))
    for k in range(n):
        LU[k, k] = check_pivot(LU[k, k], A[k, k], _message)
        for i in range(k + 1, n):
            LU[i, k] = LU[i, k] / LU[k, k]
            LU[i, k + 1 :] = LU[i, k + 1 :] - LU[i, k] * LU[k, k + 1 :]
    return LU


def solve(LU, b):
    """Solution of ``A x = b`` from the LU factors of ``A``, traceable."""
    n = len(LU)
    x = np.array(b, dtype=np.result_type(LU, b))
    for i in range(1, n):
        x[i] = x[i] - LU[i, :i] @ x[:i]
    for i in reversed(range(n)):
        x[i] = (x[i] - LU[i, i + 1 :] @ x[i + 1 :]) / LU[i, i]
    return x


def _message():
    """Error message for an implicit step whose linear system is not positive definite."""
    return (
        "the linear system of an implicit step is not positive definite: the step is too large "
        "for the forces that act, take a smaller dt; or a joint moves no inertia"
    )
