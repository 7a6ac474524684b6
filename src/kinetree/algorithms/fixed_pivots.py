"""Elimination with pivots that were chosen beforehand — RBDA §8.9 without the search.

A matrix whose zeros are known and whose entries vary from sample to sample can be eliminated in
one order for all samples, which is what compiled code needs. Rows are dicts from column to
entry; zeros are left out. The pivots come back, for the caller to see whether they were any good.
"""

import numpy as np

from kinetree.errors import SingularError

__all__ = ["is_zero", "positive_solution", "solve_for", "sparse_rows"]


def is_zero(x) -> bool:
    """Whether a number is zero and known to be."""
    return isinstance(x, (int, float, np.integer)) and x == 0


def sparse_rows(A):
    """The rows of a matrix as dicts."""
    return [{j: x for j, x in enumerate(row) if not is_zero(x)} for row in A]


def solve_for(rows, pivots):
    """Solve equations ``Σ_j row[j] x_j = 0`` for some of the unknowns.

    Args:
        rows: the equations, a dict by number.
        pivots: pairs of equation and unknown, in the order of elimination.

    Returns:
        For each unknown that is a pivot, a dict with ``x = Σ_j solution[j] x_j`` over the others;
        and the pivots.
    """
    rows, solved, sizes = {i: dict(row) for i, row in rows.items()}, {}, []
    for n, (i, j) in enumerate(pivots):
        row = rows[i]
        pivot = _checked(row.pop(j, 0))
        sizes.append(pivot)
        inverse = 1 / pivot
        solved[j] = {c: -(x * inverse) for c, x in row.items()}
        for other, _ in pivots[n + 1 :]:
            _insert(rows[other], j, solved[j])
    for n in reversed(range(len(pivots))):  # what was solved later goes into what was solved before
        _, j = pivots[n]
        for _, later in pivots[n + 1 :]:
            _insert(solved[j], later, solved[later])
    return solved, sizes


def _checked(pivot):
    if is_zero(pivot):
        raise SingularError("a pivot that was chosen beforehand is zero: this matrix needs others")
    return pivot


def _insert(row, j, expression):
    """Replace the unknown ``j`` in a row by what it equals."""
    factor = row.pop(j, 0)
    if is_zero(factor):
        return
    for c, x in expression.items():
        row[c] = row[c] + factor * x if c in row else factor * x


def positive_solution(A, b):
    """``A⁻¹ b`` for a symmetric positive-definite matrix in its natural order, and the pivots.

    Only the lower triangle of ``A`` is read.
    """
    n = len(b)
    L, x = [list(row) for row in A], list(b)
    D = []
    for k in range(n):
        D.append(_checked(L[k][k]))
        inverse = 1 / D[k]
        column = [None if i <= k or is_zero(L[i][k]) else L[i][k] for i in range(n)]
        for i in range(k + 1, n):
            if column[i] is None:
                continue
            factor = column[i] * inverse
            for j in range(k + 1, i + 1):
                if column[j] is not None:
                    L[i][j] = L[i][j] - factor * column[j]
            x[i] = x[i] - factor * x[k]
            L[i][k] = factor
        x[k] = x[k] * inverse
    for k in reversed(range(n)):
        for i in range(k + 1, n):
            if not is_zero(L[i][k]):
                x[k] = x[k] - L[i][k] * x[i]
    return x, D
