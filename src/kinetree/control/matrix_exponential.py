"""The exponential of a matrix by scaling, squaring and a Padé approximant; numbers only.

N. J. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005).
"""

import numpy as np

__all__ = ["held_input", "matrix_exponential"]

# Coefficients of the numerator of the [13/13] approximant, and the norm up to which it is exact
# to rounding in float64.
_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_NORM = 5.371920351148152


def matrix_exponential(A):
    """``exp(A)`` of square matrices, (..., n, n)."""
    A = np.asarray(A)
    norm = np.max(np.sum(np.abs(A), axis=-2), initial=0)
    squarings = max(0, int(np.ceil(np.log2(norm / _NORM)))) if norm > 0 else 0
    X = _approximant(A / 2**squarings)
    for _ in range(squarings):
        X = X @ X
    return X


def _approximant(A):
    b, eye = _PADE, np.eye(A.shape[-1], dtype=A.dtype)
    A2 = A @ A
    A4 = A2 @ A2
    A6 = A2 @ A4
    odd = A6 @ (b[13] * A6 + b[11] * A4 + b[9] * A2) + b[7] * A6 + b[5] * A4 + b[3] * A2
    U = A @ (odd + b[1] * eye)
    even = A6 @ (b[12] * A6 + b[10] * A4 + b[8] * A2) + b[6] * A6 + b[4] * A4 + b[2] * A2
    V = even + b[0] * eye
    return np.linalg.solve(V - U, V + U)


def held_input(A, B, dt):
    """``A_d, B_d`` with ``x(dt) = A_d x(0) + B_d u`` for ``dx/dt = A x + B u`` and constant ``u``.

    Both are blocks of one exponential, which needs no inverse of ``A``.
    """
    n, m = B.shape[-2:]
    block = np.zeros((*A.shape[:-2], n + m, n + m), A.dtype)
    block[..., :n, :n], block[..., :n, n:] = dt * A, dt * B
    X = matrix_exponential(block)
    return X[..., :n, :n], X[..., :n, n:]
