# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Linear-quadratic problems over a horizon, many at once: Riccati's recursion, and adjoints.

A knot has the variables ``z = (u, x)``: controls first, so that eliminating them from the matrix
``[[H_uu, H_ux], [H_xu, H_xx]]`` leaves the matrix of the cost to go. Every matrix ``H`` has its
gradient as one more column, and so do factors and what they leave.
"""

import numpy as np

from kinetree.codegen.procedures import procedure, record, view
from kinetree.codegen.runtime.threads import on_threads, threads
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


@record
class Problems:
    """Linear-quadratic problems of the same sizes, as in ``solve``.

    In:
        n, m: numbers of states and controls;  steps: of the horizon.
        F, gap: next states are ``F z + gap``.
        H: matrices and gradients; overwritten.
        damping: that is added to diagonals, one number for each problem.

    Out:
        K: gains;  z: solutions;  failed: 1 for problems whose matrices were not positive.
    """

    n: int
    m: int
    steps: int
    F: "float[:]"
    H: "float[:]"
    gap: "float[:]"
    damping: "float[:]"
    K: "float[:]"
    z: "float[:]"
    failed: "int[:]"


@procedure
def _solve(first: int, end: int, problems: Problems, work: "float[:]") -> None:
    """Solve problems ``first`` to ``end - 1``; ``work`` has ``n (n + m + 1)`` numbers."""
    n = problems.n
    m = problems.m
    steps = problems.steps
    F = problems.F
    H = problems.H
    gap = problems.gap
    K = problems.K
    z = problems.z
    size = n + m
    wide = size + 1
    for s in range(first, end):
        start = s * (steps + 1) * size
        problems.failed[s] = 0
        for i in range((steps + 1) * size):
            H[(start + i) * wide + i % size] += problems.damping[s]
        for e in range(steps):
            j = steps - 1 - e
            knot = s * steps + j
            at = (start + j * size) * wide
            row = view(F, knot * n * size)
            if _cost_to_go(at, n, m, row, H, view(gap, knot * n), work) != 0:
                problems.failed[s] = 1
                break
            k = view(z, start + j * size)
            _gains(view(H, at), n, m, view(K, knot * m * n), k)
        for i in range(n):
            z[start + m + i] = 0.0
        if problems.failed[s] == 0:
            for j in range(steps):
                knot = s * steps + j
                here = start + j * size
                for a in range(m):
                    total = z[here + a]
                    for c in range(n):
                        total += K[(knot * m + a) * n + c] * z[here + m + c]
                    z[here + a] = total
                for i in range(n):
                    total = gap[knot * n + i]
                    for c in range(size):
                        total += F[(knot * n + i) * size + c] * z[here + c]
                    z[here + size + m + i] = total


@procedure
def _adjoint(
    first: int,
    end: int,
    steps: int,
    n: int,
    m: int,
    F: "float[:]",
    g: "float[:]",
    found: "float[:]",
) -> None:
    """Gradients with respect to controls, of problems ``first`` to ``end - 1``."""
    size = n + m
    for s in range(first, end):
        start = s * (steps + 1) * size
        for e in range(steps):
            j = steps - 1 - e
            here = start + j * size
            for i in range(n):  # states after this knot: their gradients are complete in g
                weight = g[here + size + m + i]
                row = ((s * steps + j) * n + i) * size
                for c in range(size):
                    g[here + c] += F[row + c] * weight
            for a in range(m):
                found[(s * steps + j) * m + a] = g[here + a]


def solve(F, H, gap, damping) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise ``sum of z' H z / 2 + g' z`` subject to ``x' = F z + gap``, from ``x = 0``.

    Args:
        F: derivatives of the next state, (samples, steps, n, m + n).
        H: matrices and gradients, (samples, steps + 1, m + n, m + n + 1); overwritten.
        gap: (samples, steps, n).
        damping: that is added to diagonals, (samples,).

    Returns:
        Solutions (samples, steps + 1, m + n); gains ``du = K dx``, (samples, steps, m, n); and
        which matrices were not positive, (samples,).
    """
    samples, steps, n, size = F.shape
    m = size - n
    z, failed = np.zeros((samples, steps + 1, size)), np.zeros(samples, int)
    K = np.zeros((samples, steps, m, n))
    arrays = {"F": F, "H": H, "gap": gap, "damping": damping, "K": K, "z": z}
    flat = {name: x.reshape(-1) for name, x in arrays.items()}
    problems = Problems(n=n, m=m, steps=steps, failed=failed, **flat)

    def piece(first, end):
        _solve(first, end, problems, np.empty(n * (size + 1)))

    _in_pieces(piece, samples, steps * size**3)
    return z, K, failed > 0


def control_gradients(F, g) -> tuple[np.ndarray, np.ndarray]:
    """Gradients with respect to controls, (samples, steps, m), and next states, (..., n).

    Args:
        F: derivatives of the next state, (samples, steps, n, m + n).
        g: gradients with respect to the variables of the knots, (samples, steps + 1, m + n).
    """
    samples, steps, n, size = F.shape
    found, g = np.empty((samples, steps, size - n)), g.copy()
    flat = [x.reshape(-1) for x in (F, g, found)]
    _in_pieces(
        lambda first, end: _adjoint(first, end, steps, n, size - n, *flat), samples, steps * size**2
    )
    return found, g[:, 1:, size - n :]


def _in_pieces(function, samples, work):
    """Call ``function(first, end)`` for all samples, on several threads if that pays."""
    count = max(1, min(threads(), samples, samples * work // 200_000))
    cuts = np.linspace(0, samples, count + 1).astype(int)
    on_threads(lambda k: function(int(cuts[k]), int(cuts[k + 1])), count)
