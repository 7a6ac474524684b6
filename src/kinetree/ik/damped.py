"""The damped step, by ``LDLᵀ`` without pivoting, written out for the compiler."""

import numpy as np

__all__ = ["damped_step", "solve"]


def damped_step(J, e, mu, free):
    """The ``dq`` that minimises ``|J dq - e|² + mu |dq|²``; zero where ``free`` is.

    In the smaller of its two forms: ``Jᵀ (J Jᵀ + mu)⁻¹ e`` or ``(Jᵀ J + mu)⁻¹ Jᵀ e``.
    """
    m, n = J.shape
    J = J * free
    if m <= n:
        return J.T @ solve(J @ J.T + mu * np.eye(m, dtype=int), e)
    return solve(J.T @ J + mu * np.eye(n, dtype=int), J.T @ e)


def solve(A, b):
    """``A⁻¹ b`` for a symmetric positive definite matrix of any kind of numbers.

    Nothing is checked: where rounding spoils the matrix the result is useless, and may not be
    finite. An iteration that keeps only what reduces its error does not mind.
    """
    n = len(b)
    L, D, inverse = (np.zeros(shape, dtype=object) for shape in ((n, n), n, n))
    x = np.array(b, dtype=object)
    for j in range(n):
        scaled = L[j, :j] * D[:j]
        D[j] = A[j, j] - _dot(L[j, :j], scaled)
        inverse[j] = 1 / D[j]
        for i in range(j + 1, n):
            L[i, j] = (A[i, j] - _dot(L[i, :j], scaled)) * inverse[j]
        x[j] = x[j] - _dot(L[j, :j], x[:j])
    x = x * inverse
    for j in reversed(range(n)):
        x[j] = x[j] - _dot(L[j + 1 :, j], x[j + 1 :])
    return x


def _dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))
