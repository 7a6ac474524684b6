"""Lemke's method for linear complementarity problems with any matrix.

An artificial variable is added to all rows, and complementary pivots follow a path of almost
complementary bases until it leaves. Ties are broken lexicographically, so that no basis comes
twice. Where the path ends in a ray, that ray is a proof for copositive-plus matrices that there
is no solution, positive-semidefinite ones among them; for others it says nothing.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["Path", "follow"]

_ZERO = 1e-11  # entries of the tableau and differences of ratios that count as zero


class Path(NamedTuple):
    """Where the path ended.

    Attributes:
        basis: numbers of the unknowns that are not zero, increasing.
        ray: direction of the unknowns in a ray, (n,), or None at a solution.
        pivots: length of the path.
    """

    basis: tuple[int, ...]
    ray: np.ndarray | None
    pivots: int


def follow(M, d) -> Path:
    """The path of ``w = M z + d``, ``w ≥ 0``, ``z ≥ 0``, ``w · z = 0``.

    Variables are numbered: w from 0, z from n, the artificial one is 2 n.
    """
    n = len(d)
    if np.all(d >= 0):
        return Path((), None, 0)
    table = np.hstack([np.eye(n), -M, -np.ones((n, 1)), d[:, None]])
    basic = np.arange(n)
    row = _least(table, np.arange(n), np.ones(n), n)
    entering, count = 2 * n, 0
    while True:
        leaving = basic[row]
        _pivot(table, row, entering)
        basic[row] = entering
        count += 1
        if leaving == 2 * n:
            return Path(tuple(sorted(int(i) - n for i in basic if i >= n)), None, count)
        entering = leaving + n if leaving < n else leaving - n
        column = table[:, entering]
        open_rows = np.flatnonzero(column > _ZERO * max(1.0, np.max(np.abs(column))))
        if not len(open_rows):
            ray = np.zeros(2 * n + 1)
            ray[basic], ray[entering] = -column, 1.0
            return Path(tuple(sorted(int(i) - n for i in basic if n <= i < 2 * n)),
                        np.maximum(ray[n : 2 * n], 0.0), count)  # fmt: skip
        row = _chosen(table, open_rows, column, basic, n)


def _chosen(table, rows, column, basic, n):
    """The row that leaves: the artificial variable as soon as it can, else the least ratio."""
    ratios = table[rows, -1] / column[rows]
    tied = rows[ratios <= np.min(ratios) + _ZERO * max(1.0, abs(np.min(ratios)))]
    for row in tied:
        if basic[row] == 2 * n:
            return row
    return _least(table, rows, column[rows], n)


def _least(table, rows, divisors, n):
    """The row whose entries, divided, are lexicographically least: right side, then inverse."""
    for column in (-1, *range(n)):
        ratios = table[rows, column] / divisors
        kept = ratios <= np.min(ratios) + _ZERO * max(1.0, abs(np.min(ratios)))
        rows, divisors = rows[kept], divisors[kept]
        if len(rows) == 1:
            break
    return rows[0]


def _pivot(table, row, column):
    table[row] /= table[row, column]
    factors = table[:, column].copy()
    factors[row] = 0.0
    table -= np.outer(factors, table[row])
    table[:, column] = 0.0
    table[row, column] = 1.0
