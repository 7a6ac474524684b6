"""Principal pivoting for positive-semidefinite problems with bounds.

The method of Dantzig and Cottle, in the form that Keller gave it for symmetric matrices: rows whose
motion is wrong are corrected one after the other. Its force is driven until its own motion is
right; forces that reach a bound on the way stay there. The rows that are free to balance, the
basis, stay independent throughout, so that the solution is a basic one. Each correction lowers
``½ lamᵀ M lam + dᵀ lam`` strictly, so that no basis comes twice and no rule against cycling is
needed. If nothing stops a force that moves nothing, it proves that there is no solution.

``Dense`` is a problem by its matrix; ``kinetree.textbook.quadratic_programs`` has one by factors.
"""

from typing import NamedTuple

import numpy as np

from kinetree.contact.complementarity.residuals import (
    Certificate,
    Residuals,
    certificate_of,
    residuals,
)
from kinetree.contact.complementarity.rows import MixedRows
from kinetree.errors import SingularError

_DEPENDENT = 1e-12  # what is left of a row that depends on others, relative to the row
_PER_ROW = 50  # changes of the basis that are taken as endless
_WRONG = 1e-12  # motion that is taken as wrong, relative to its terms


class Pivoted(NamedTuple):
    """End of the pivoting.

    Attributes:
        lam: forces, (n,).
        basis: rows that balance freely, in increasing order.
        ray: forces that move nothing and that nothing stops, (n,), or None at a solution.
        pivots: number of changes of the basis.
    """

    lam: np.ndarray
    basis: tuple[int, ...]
    ray: np.ndarray | None
    pivots: int


def pivot(curvature, low, high) -> Pivoted:
    """Forces within bounds that minimise ``½ lamᵀ M lam + dᵀ lam``, by principal pivoting."""
    n = len(low)
    lam, basis, count = np.clip(np.zeros(n), low, high), [], 0
    while (row := _worst(curvature, lam, basis, low, high)) is not None:
        w = curvature.motion(lam)
        sign = -1.0 if w[row] > 0 else 1.0
        while True:
            count += 1
            y, rest, whole = curvature.response(basis, row)
            _check(count, n, rest, whole)
            direction = np.zeros(n)
            direction[basis], direction[row] = sign * y, sign
            dependent = rest <= _DEPENDENT * whole
            length = np.inf if dependent else abs(curvature.motion(lam)[row]) / rest
            blocking, longest = _first_bound(lam, direction, [*basis, row], low, high)
            if length == longest == np.inf:
                return Pivoted(lam, tuple(sorted(basis)), direction, count)
            if longest >= length:
                basis.append(row)
                break
            lam = lam + longest * direction
            lam[blocking] = (high if direction[blocking] > 0 else low)[blocking]
            if blocking == row:
                break
            basis.remove(blocking)
        lam = curvature.balance(basis, lam)
    return Pivoted(lam, tuple(sorted(basis)), None, count)


def _check(count, n, rest, whole):
    """Raise SingularError if a pivot shows a matrix that is not positive semidefinite."""
    if rest < -1e-7 * abs(whole) or whole < 0:
        raise SingularError(
            "pivoting needs a positive-semidefinite matrix, and this one is not: a force moves its "
            "own contact the wrong way; lcp.lemke takes any matrix"
        )
    if count > _PER_ROW * (n + 10):
        raise SingularError(
            f"pivoting did not end after {count - 1} changes of the basis of {n} rows: the matrix "
            f"is too badly scaled to decide whether its rows are independent"
        )


def _worst(curvature, lam, basis, low, high):
    """Row outside the basis that violates its bound condition most, or None."""
    w, limit = curvature.motion(lam), _WRONG * curvature.terms(lam)
    wrong = np.maximum(np.where(lam < high, -w, 0), np.where(lam > low, w, 0))
    wrong[basis] = 0
    wrong = np.where(wrong > limit, wrong / curvature.sizes, 0)
    row = int(np.argmax(wrong)) if len(wrong) else 0
    return row if len(wrong) and wrong[row] > 0 else None


def _first_bound(lam, direction, rows, low, high):
    """Basis row that first reaches a bound along a direction, and the step length to it."""
    first, longest = None, np.inf
    smallest = 1e-13 * np.max(np.abs(direction))
    for i in sorted(rows):
        if abs(direction[i]) <= smallest:
            continue
        room = (high[i] - lam[i]) if direction[i] > 0 else (lam[i] - low[i])
        if (length := max(room, 0.0) / abs(direction[i])) < longest:
            first, longest = i, length
    return first, longest


class Dense:
    """A problem given by ``M`` and ``d``."""

    def __init__(self, M, d):
        self.M, self.d = M, d
        self.sizes = positive_sizes(np.sqrt(np.maximum(np.diagonal(M), 0)))

    def motion(self, lam):
        """Motion ``M lam + d`` under the forces ``lam``, (n,)."""
        return self.M @ lam + self.d

    def terms(self, lam):
        """Sums of absolute terms of ``motion``, (n,), the scale of its rounding errors."""
        return np.abs(self.M) @ np.abs(lam) + np.abs(self.d)

    def response(self, basis, row):
        """Basis forces that hold the basis still as force ``row`` grows by 1, and row's motion.

        Also the motion of ``row`` that results, and what it were if the basis stood still.
        """
        M = self.M
        y = -np.linalg.solve(M[np.ix_(basis, basis)], M[basis, row])
        return y, M[row, row] + M[row, basis] @ y, M[row, row]

    def balance(self, basis, lam):
        """Copy of ``lam`` whose basis forces make the motion of the basis zero."""
        others = lam.copy()
        others[basis] = 0
        block = self.M[np.ix_(basis, basis)]
        others[basis] = np.linalg.solve(block, -self.motion(others)[basis])
        return others


def positive_sizes(sizes):
    """Copy of sizes with ones instead of zeros."""
    return np.where(sizes > 0, sizes, 1.0)


# --- solutions -----------------------------------------------------------------------------------


class ForceSolution(NamedTuple):
    """Solution of a linear complementarity problem or quadratic program in forces.

    Attributes:
        lam: forces, (n,), a basic solution: those of the basis are the only ones not at a bound.
        w: the motion ``M lam + d`` that they leave, (n,); unique, unlike the forces.
        solved: whether this is a solution.
        basis: numbers of the rows that balance freely; their rows of ``M`` are independent.
        certificate: proof that there is no solution, where there is none; else None.
        pivots: number of changes of the basis.
        residuals: by how much the conditions are missed.
    """

    lam: np.ndarray
    w: np.ndarray
    solved: bool
    basis: tuple[int, ...]
    certificate: Certificate | None
    pivots: int
    residuals: Residuals


def solution_of(found: Pivoted, M, d, low, high) -> ForceSolution:
    """``ForceSolution`` of the pivoting result, or its infeasibility certificate."""
    certificate = None if found.ray is None else certificate_of(M, d, found.ray)
    return ForceSolution(
        lam=found.lam,
        w=M @ found.lam + d,
        solved=found.ray is None,
        basis=found.basis,
        certificate=certificate,
        pivots=found.pivots,
        residuals=residuals(MixedRows(np.zeros(0), low, high), M, d, found.lam),
    )
