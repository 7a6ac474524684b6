"""Linear complementarity problems: ``w = M lam + d``, ``w ≥ 0``, ``lam ≥ 0``, ``w · lam = 0``.

RBDA (11.42): contacts push or part. ``pivoting`` is for the symmetric positive-semidefinite
matrices of frictionless contact, where it always ends with a basic solution or with the proof that
there is none. ``lemke`` takes any matrix, such as that of contacts with polyhedral friction
cones. ``enumerated`` finds all basic solutions of a small problem, by trying.
"""

from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.complementarity.inputs import matrix_and_vector
from kinetree.contact.complementarity.pivoting import Dense, ForceSolution, pivot, solution_of
from kinetree.contact.complementarity.residuals import certificate_of, residuals
from kinetree.contact.complementarity.rows import MixedRows
from kinetree.errors import ShapeError

__all__ = ["enumerated", "follow", "lemke", "pivoting"]

LARGEST_ENUMERATED = 14
"""Rows of the largest problem that ``enumerated`` takes: it tries 2ⁿ bases."""

_TOLERANCE = 1e-9


def pivoting(M: ArrayLike, d: ArrayLike) -> ForceSolution:
    """Basic LCP solution for a symmetric positive-semidefinite matrix by principal pivoting.

    Args:
        M: inverse inertia along the contact normals, (n, n).
        d: accelerations along them without contact forces, (n,).
    """
    M, d = matrix_and_vector(M, d)
    low, high = np.zeros(len(d)), np.full(len(d), np.inf)
    return solution_of(pivot(Dense(M, d), low, high), M, d, low, high)


def lemke(M: ArrayLike, d: ArrayLike) -> ForceSolution:
    """LCP solution for any square matrix by Lemke's algorithm, if its path ends at a solution.

    It does, or ends with a proof, for positive-semidefinite and other copositive-plus matrices. For
    others it may end with neither: ``solved`` false and no certificate.

    Args:
        M: square matrix, (n, n), symmetric or not.
        d: right side, (n,).
    """
    M, d = matrix_and_vector(M, d, symmetric=False)
    diagonal = np.diagonal(M)
    units = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    size = np.max(np.abs(units * d), initial=0.0)
    path = follow(units[:, None] * M * units, units * d / (size if size > 0 else 1.0))
    lam = _basic(M, d, path.basis) if path.ray is None else np.zeros(len(d))
    certificate = None
    if path.ray is not None:  # Farkas: Mᵀ y ≤ 0 and d · y < 0 leave no room for lam ≥ 0
        certificate = certificate_of(M, d, units * path.ray, one_sided=True)
    return _solution(M, d, lam, path.basis, path.ray is None, certificate, path.pivots)


def enumerated(M: ArrayLike, d: ArrayLike, tolerance: float = _TOLERANCE) -> list[ForceSolution]:
    """All basic LCP solutions, those with fewest forces first, by enumerating all bases.

    Args:
        M: square matrix, (n, n), symmetric or not.
        d: right side, (n,).
        tolerance: what may be missing, in units of the largest terms.
    """
    M, d = matrix_and_vector(M, d, symmetric=False)
    n, found = len(d), []
    if n > LARGEST_ENUMERATED:
        raise ShapeError(
            f"lcp.enumerated tries 2ⁿ bases, and takes n up to {LARGEST_ENUMERATED}, got {n}; "
            f"use lcp.lemke or lcp.pivoting"
        )
    for basis in chain.from_iterable(combinations(range(n), k) for k in range(n + 1)):
        block = M[np.ix_(basis, basis)]
        if basis and np.linalg.cond(block) > 1e11:
            continue
        lam = _basic(M, d, basis)
        terms = np.abs(M) @ np.abs(lam) + np.abs(d)
        small = tolerance * np.max(np.abs(lam), initial=1.0)
        if np.any(lam < -small) or np.any(M @ lam + d < -tolerance * (terms + 1e-300)):
            continue
        if all(np.max(np.abs(lam - other.lam)) > small for other in found):
            found.append(_solution(M, d, np.maximum(lam, 0.0), basis, True, None, 0))
    return found


def _basic(M, d, basis):
    """Basic solution (n,) of a linear complementarity problem for the given basis."""
    lam, basis = np.zeros(len(d)), list(basis)
    lam[basis] = np.linalg.solve(M[np.ix_(basis, basis)], -d[basis])
    return lam


def _solution(M, d, lam, basis, solved, certificate, pivots):
    """Solution of a linear complementarity problem with residuals and pivots."""
    bounds = np.zeros(len(d)), np.full(len(d), np.inf)
    found = residuals(MixedRows(np.zeros(0), *bounds), M, d, lam)
    return ForceSolution(lam, M @ lam + d, solved, tuple(basis), certificate, pivots, found)


# --- Lemke's method ------------------------------------------------------------------------------
# An artificial variable is added to all rows, and complementary pivots follow a path of almost
# complementary bases until it leaves. Ties are broken lexicographically, so that no basis comes
# twice. Where the path ends in a ray, that ray is a proof for copositive-plus matrices that there
# is no solution, positive-semidefinite ones among them; for others it says nothing.

_ZERO = 1e-11  # entries of the tableau and differences of ratios that count as zero


class Path(NamedTuple):
    """End of the path.

    Attributes:
        basis: numbers of the unknowns that are not zero, increasing; none in a ray.
        ray: direction of the unknowns in a ray, (n,), or None at a solution.
        pivots: length of the path.
    """

    basis: tuple[int, ...]
    ray: np.ndarray | None
    pivots: int


def follow(M, d) -> Path:
    """Lemke's path of ``w = M z + d``, ``w ≥ 0``, ``z ≥ 0``, ``w · z = 0``: end and pivots.

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
            return Path((), np.maximum(ray[n : 2 * n], 0.0), count)
        row = _leaving_row(table, open_rows, column, basic, n)


def _leaving_row(table, rows, column, basic, n):
    """Row that leaves Lemke's basis: the artificial variable if it can, else lexicographic."""
    ratios = table[rows, -1] / column[rows]
    tied = rows[ratios <= np.min(ratios) + _ZERO * max(1.0, abs(np.min(ratios)))]
    for row in tied:
        if basic[row] == 2 * n:
            return row
    return _least(table, rows, column[rows], n)


def _least(table, rows, divisors, n):
    """Row of a tableau with the lexicographically smallest entries divided by ``divisors``."""
    for column in (-1, *range(n)):
        ratios = table[rows, column] / divisors
        kept = ratios <= np.min(ratios) + _ZERO * max(1.0, abs(np.min(ratios)))
        rows, divisors = rows[kept], divisors[kept]
        if len(rows) == 1:
            break
    return rows[0]


def _pivot(table, row, column):
    """Pivot a simplex tableau on one row and column, in place."""
    table[row] /= table[row, column]
    factors = table[:, column].copy()
    factors[row] = 0.0
    table -= np.outer(factors, table[row])
    table[:, column] = 0.0
    table[row, column] = 1.0


guard_module(__name__)
