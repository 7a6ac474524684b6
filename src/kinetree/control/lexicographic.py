# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Least squares in the order of their priorities, subject to linear constraints.

Each level is a quadratic program for DAQP, a dual active-set solver: D. Arnström, A. Bemporad, D.
Axehill, "A dual active-set solver for embedded quadratic programming using recursive LDLᵀ updates"
(2022). The first takes the equations as they are. Further ones move in the null space of the
equations and of all rows of the levels before, which they therefore cannot change: A. Escande,
N. Mansard, P.-B. Wieber, "Hierarchical quadratic programming" (2014).
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.codegen.procedures import procedure, sqrt, view
from kinetree.errors import SingularError, need

_FAR = 1e30  # what DAQP takes for infinity
_EQUATION = 5  # DAQP's sense of a row that must hold with equality
RANK = 1e-9  # of the largest singular value, or of the longest row
_HELD = 1e-7  # how well equations hold, per size of what they consist of
_STUCK = 1e-10  # part of a row's length that rounding leaves of it in a null space
_TOLERANCE = 1e-9
_GAPS = 0.0, 1e-8, 1e-7, 1e-6  # by which bounds that are met may be exceeded, one after the other
_PRESSED = 1e-6  # of the gradient of the level, or of the largest multiplier
_FIRST = 1e-9  # damping of levels that others follow, of the largest curvature


class Constraints(NamedTuple):
    """Equations ``E x = e`` and bounds ``lower <= G x <= upper``."""

    E: np.ndarray
    e: np.ndarray
    G: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class InfeasibleError(Exception):
    """No point meets the bounds; ``excess`` is how far the closest is outside each of them.

    None where there are such points, and the solver failed all the same.
    """

    def __init__(self, excess):
        super().__init__("infeasible")
        self.excess = excess


def solver() -> Any:
    """The package DAQP; MissingPackageError if it is not installed."""
    return need("daqp", "kinetree.control.WholeBody", "qp")


def minimize(levels, constraints: Constraints, damping) -> tuple[np.ndarray, int]:
    """Lexicographic least squares: minimise the first sum of squares, then the next, ....

    Args:
        levels: pairs ``A, b`` of ``|A x - b|²``, the most important first.
        constraints: what holds in any case.
        damping: weights of ``x²`` beside the last of the sums, (n,).

    Returns:
        The point, and the number of iterations of the solver.

    Raises:
        InfeasibleError: no point meets the constraints.
        SingularError: the equations contradict each other.
    """
    E, e, G = constraints.E, constraints.e, constraints.G
    last = len(levels) == 1
    x, count, pressed = _direct(levels[0], constraints, _floor(levels[0], damping, last), last)
    if x is None:
        x = np.linalg.lstsq(E, e, rcond=RANK)[0]
        if np.max(np.abs(E @ x - e), initial=0.0) > _HELD * _size(E, x, e):
            raise SingularError("the equations contradict each other")
        x, count, pressed = _within(
            levels[0], x, null_space(E), constraints, damping, last, inside=False
        )
    held = [E]
    for k in range(1, len(levels)):
        held += [levels[k - 1][0], G[pressed]]
        Z = null_space(np.concatenate(held))
        if not Z.shape[1]:
            break
        last = k == len(levels) - 1
        x, more, pressed = _within(levels[k], x, Z, constraints, damping, last)
        count += more
    return x, count


def _floor(level, damping, last):
    """Regularisation added to the diagonal of a level, so that its minimum is unique."""
    if last:
        return damping
    largest = np.max(np.einsum("ij,ij->j", level[0], level[0]), initial=0.0)
    return np.full_like(damping, _FIRST * (largest or 1.0))


def _direct(level, constraints, floor, last):
    """Solution of a level with independent equations by DAQP; None where it fails."""
    (A, b), (E, e, G, lower, upper) = level, constraints
    H = A.T @ A
    H.reshape(-1)[:: len(H) + 1] += floor
    sense = np.zeros(len(e) + len(G), dtype=np.int32)
    sense[: len(e)] = _EQUATION
    rows = np.concatenate([E, G])
    low, high = np.concatenate([e, lower]), np.concatenate([e, upper])
    x, flag, count, pressed = _solve(H, -(A.T @ b), rows, high, low, sense, last)
    if flag != 1:
        return None, count, pressed
    wrong = np.abs(E @ x - e).max(initial=0.0)
    if wrong > _HELD and wrong > _HELD * _size(E, x, e):
        return None, count, pressed
    return x, count, pressed[len(e) :]


def _within(level, x, Z, constraints, damping, last, inside=True):
    """Minimum of a level over ``x + Z z``; ``inside`` if ``x`` meets the bounds."""
    A, b = level
    AZ, GZ, Gx = A @ Z, constraints.G @ Z, constraints.G @ x
    low, high = constraints.lower - Gx, constraints.upper - Gx
    if inside:
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
    floor = _floor((AZ, b), damping, last)
    if last:
        DZ = floor[:, None] * Z
        H, f = AZ.T @ AZ + Z.T @ DZ, AZ.T @ (A @ x - b) + DZ.T @ x
    else:
        H, f = AZ.T @ AZ, AZ.T @ (A @ x - b)
        H.flat[:: len(H) + 1] += floor[0]
    # Rows that the null space cannot move are rounding errors, which the solver would scale up.
    length = np.einsum("ij,ij->i", GZ, GZ)
    free = length > _STUCK**2 * np.einsum("ij,ij->i", constraints.G, constraints.G)
    fits = inside or not np.any((low > _HELD) & ~free | (high < -_HELD) & ~free)
    sense = np.zeros(np.count_nonzero(free), dtype=np.int32)
    rows, least, most, size = GZ[free], low[free], high[free], np.sqrt(length[free])
    for gap in _GAPS:  # where bounds meet in a corner, rounding errors may leave nothing between
        z, flag, count, pressed = _solve(
            H, f, rows, most + gap * size, least - gap * size, sense, last
        )
        if flag == 1 or not inside:
            break
    if flag != 1 and inside:
        raise InfeasibleError(None)
    if flag != 1 or not fits:
        raise InfeasibleError(_excess(GZ, low, high))
    free[free] = pressed
    return x + Z @ z, count, free


def _solve(H, f, G, upper, lower, sense, last=True):
    """Minimum, exit flag, iterations and active rows of a quadratic program, by DAQP.

    Rows with a multiplier are active at every minimum: what follows may treat them as equations,
    and has to, since the set that they leave has no interior.
    """
    if not len(f):
        fits = np.all(lower <= _TOLERANCE) and np.all(upper >= -_TOLERANCE)
        return np.zeros(0), 1 if fits else -1, 0, np.zeros(len(G), dtype=bool)
    x, _, flag, info = solver().solve(
        H,
        f,
        np.ascontiguousarray(G),
        np.minimum(upper, _FAR),
        np.maximum(lower, -_FAR),
        sense,
        primal_tol=_TOLERANCE,
    )
    if last:
        return x, flag, info["iterations"], np.zeros(len(G), dtype=bool)
    force = np.abs(info["lam"]) * np.linalg.norm(G, axis=1)
    return x, flag, info["iterations"], force > _PRESSED * np.max(force, initial=np.linalg.norm(f))


def _excess(G, lower, upper):
    """Violation of each bound by the point with the least sum of violations, (rows,)."""
    m, n = G.shape
    size = np.maximum(np.linalg.norm(G, axis=1), 1e-9)
    G = G / size[:, None]
    H = np.diag(np.concatenate([np.full(n, 1e-8), np.full(m, 1e-8)]))
    f = np.concatenate([np.zeros(n), np.ones(m)])
    slack, free = np.eye(m), np.full(m, np.inf)
    rows = np.block([[G, -slack], [G, slack], [np.zeros((m, n)), slack]])
    low = np.concatenate([-free, lower / size, np.zeros(m)])
    high = np.concatenate([upper / size, free, free])
    x, flag, *_ = _solve(H, f, rows, high, low, np.zeros(3 * m, dtype=np.int32))
    if flag != 1:
        return np.full(m, np.nan)
    at = G @ x[:n]
    return size * np.maximum(0.0, np.maximum(lower / size - at, at - upper / size))


def _size(E, x, e):
    """Largest size of the terms in equations, at least 1, to judge residuals."""
    return np.max(np.abs(e), initial=1.0) + np.max(np.abs(E) @ np.abs(x), initial=0.0)


def null_space(A) -> np.ndarray:
    """Orthonormal basis of the null space of ``A``, (n, n - rank)."""
    m, n = A.shape
    if not m or not n:
        return np.eye(n)
    columns, V, Z, w = np.array(A.T), np.empty(n * n), np.zeros(n * n), np.empty(max(m, n))
    rank = _null_space(m, n, columns.reshape(-1), V, Z, w)
    return Z[: n * (n - rank)].reshape(n, n - rank)


@procedure
def _reflect(start: int, end: int, width: int, v: "float[:]", A: "float[:]", w: "float[:]") -> None:
    """Apply a Householder reflection, ``A -= v vᵀ A``, to rows from ``start`` to ``end``."""
    for i in range(width):
        w[i] = 0.0
    for j in range(start, end):
        row = view(A, j * width)
        for i in range(width):
            w[i] += v[j] * row[i]
    for j in range(start, end):
        row = view(A, j * width)
        for i in range(width):
            row[i] -= v[j] * w[i]


@procedure
def _null_space(m: int, n: int, A: "float[:]", V: "float[:]", Z: "float[:]", w: "float[:]") -> int:
    """Fill ``Z`` with the null space of the transpose of ``A`` (n, m); returns the rank.

    Reflections take rows to multiples of unit vectors, each time the row of which most is left.
    They are the rows of ``V``. Golub, Van Loan, 2013: Matrix Computations, section 5.4.2.
    """
    rank = 0
    first = 0.0
    while rank < m and rank < n:
        for i in range(m):
            w[i] = 0.0
        for j in range(rank, n):
            row = view(A, j * m)
            for i in range(m):
                w[i] += row[i] * row[i]
        best = 0
        for i in range(m):
            if w[i] > w[best]:
                best = i
        length = sqrt(w[best])
        if rank == 0:
            first = length
        if not length > RANK * first:
            break
        v = view(V, rank * n)
        for j in range(rank, n):
            v[j] = A[j * m + best]
        if v[rank] < 0.0:
            v[rank] -= length
        else:
            v[rank] += length
        square = 0.0
        for j in range(rank, n):
            square += v[j] * v[j]
        scale = sqrt(2.0 / square)
        for j in range(rank, n):
            v[j] = v[j] * scale
        _reflect(rank, n, m, v, A, w)
        for j in range(rank, n):
            A[j * m + best] = 0.0
        rank += 1
    free = n - rank
    for i in range(n * free):
        Z[i] = 0.0
    for i in range(free):
        Z[(rank + i) * free + i] = 1.0
    for e in range(rank):
        k = rank - 1 - e
        v = view(V, k * n)
        _reflect(k, n, free, v, Z, w)
    return rank
