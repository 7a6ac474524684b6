# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""A linear-quadratic problem over a horizon: Riccati's recursion.

A knot has the variables ``z = (u, x)``: controls first, so that eliminating them from the matrix
``[[H_uu, H_ux], [H_xu, H_xx]]`` leaves the matrix of the cost to go. Every matrix ``H`` has its
gradient as one more column, and so do factors and what they leave.
"""

from kinetree.codegen.procedures import procedure, view
from kinetree.contact.newton.cholesky import eliminated, take


@procedure
def _cost_to_go(
    at: int, n: int, m: int, F: "float[:]", H: "float[:]", gap: "float[:]", work: "float[:]"
) -> int:
    """Eliminate the controls of the knot at ``H[at:]``, that after it being done: 0, or 1.

    ``n`` and ``m`` are the numbers of states and controls; ``F`` and ``gap`` are those of the knot.
    """
    size = n + m
    wide = size + 1
    own = at + m * wide + m  # of the block of states
    P = view(H, own + size * wide)
    for i in range(n * wide):
        work[i] = 0.0
    take(work, wide, P, wide, F, size, n, n, size)
    for i in range(n):
        total = P[i * wide + n]
        for j in range(n):
            total += P[j * wide + i] * gap[j]
        work[i * wide + size] = -total
    take(view(H, at), wide, F, size, work, wide, n, size, wide)
    if eliminated(view(H, at), m, wide) != 0:
        return 1
    right = view(H, at + m)
    take(view(H, own), wide, right, wide, right, wide, m, n, n + 1)
    for i in range(n):
        for j in range(i):
            mean = 0.5 * (H[own + i * wide + j] + H[own + j * wide + i])
            H[own + i * wide + j] = mean
            H[own + j * wide + i] = mean
    return 0


@procedure
def _gains(U: "float[:]", n: int, m: int, K: "float[:]", k: "float[:]") -> None:
    """``u = K x + k`` from the rows of the factor."""
    wide = n + m + 1
    for e in range(m):
        a = m - 1 - e
        scale = 1.0 / U[a * wide + a]
        for c in range(n):
            total = U[a * wide + m + c]
            for b in range(a + 1, m):
                total += U[a * wide + b] * K[b * n + c]
            K[a * n + c] = -scale * total
        total = U[a * wide + m + n]
        for b in range(a + 1, m):
            total += U[a * wide + b] * k[b]
        k[a] = -scale * total


@procedure
def solve_one(
    n: int, m: int, steps: int, F: "float[:]", H: "float[:]", gap: "float[:]",
    K: "float[:]", z: "float[:]", work: "float[:]",
) -> int:  # fmt: skip
    """Minimise ``sum of z' H z / 2 + g' z`` subject to ``x' = F z + gap``, from ``x = 0``.

    Args:
        n: numbers of a state;  m: of the controls of a step.
        steps: of the horizon.
        F: derivatives of the next state, (steps, n, m + n).
        H: matrices and gradients, (steps + 1, m + n, m + n + 1); overwritten.
        gap: (steps, n).
        K: becomes the gains ``du = K dx``, (steps, m, n).
        z: becomes the solution, (steps + 1, m + n).
        work: ``n (n + m + 1)`` numbers.

    Returns:
        0, or 1 if a matrix was not positive.
    """
    size = n + m
    wide = size + 1
    for i in range(size):
        z[steps * size + i] = 0.0
    for e in range(steps):
        j = steps - 1 - e
        at = j * size * wide
        if _cost_to_go(at, n, m, view(F, j * n * size), H, view(gap, j * n), work) != 0:
            return 1
        _gains(view(H, at), n, m, view(K, j * m * n), view(z, j * size))
    for i in range(n):
        z[m + i] = 0.0
    for j in range(steps):
        here = j * size
        for a in range(m):
            total = z[here + a]
            for c in range(n):
                total += K[(j * m + a) * n + c] * z[here + m + c]
            z[here + a] = total
        for i in range(n):
            total = gap[j * n + i]
            for c in range(size):
                total += F[(j * n + i) * size + c] * z[here + c]
            z[here + size + m + i] = total
    return 0
