"""Principal pivoting for positive-semidefinite problems with bounds.

The method of Dantzig and Cottle, in the form that Keller gave it for symmetric matrices: rows whose
motion is wrong are corrected one after the other. Its force is driven until its own motion is
right; forces that reach a bound on the way stay there. The rows that are free to balance, the
basis, stay independent throughout, so that the solution is a basic one. Each correction lowers
``½ lamᵀ M lam + dᵀ lam`` strictly, so that no basis comes twice and no rule against cycling is
needed. If nothing stops a force that moves nothing, it proves that there is no solution.

``Dense`` has ``M``; ``Factored`` has ``G`` with ``M = G Gᵀ`` and never forms it.
"""

from typing import NamedTuple

import numpy as np

from kinetree.errors import SingularError

__all__ = ["Dense", "Factored", "Pivoted", "pivot"]

_DEPENDENT = 1e-12  # what is left of a row that depends on others, relative to the row
_PER_ROW = 50  # changes of the basis that are taken as endless
_WRONG = 1e-12  # motion that is taken as wrong, relative to its terms


class Pivoted(NamedTuple):
    """Where the pivoting ended.

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
    """Forces between bounds that minimise ``½ lamᵀ M lam + dᵀ lam``; its KKT conditions hold."""
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
        lam = curvature.balanced(basis, lam)
    return Pivoted(lam, tuple(sorted(basis)), None, count)


def _check(count, n, rest, whole):
    if rest < -1e-7 * abs(whole) or whole < 0:
        raise SingularError(
            "pivoting needs a positive-semidefinite matrix, and this one is not: a force moves its "
            "own contact the wrong way; lcp.lemke takes any matrix"
        )
    if count > _PER_ROW * (n + 10):
        raise SingularError(
            f"pivoting did not end after {count - 1} changes of the basis of {n} rows: the matrix "
            f"is too badly scaled for the independence of its rows to be told"
        )


def _worst(curvature, lam, basis, low, high):
    """The row outside the basis whose motion is most wrong for where its force can go, or None."""
    w, limit = curvature.motion(lam), _WRONG * curvature.terms(lam)
    wrong = np.maximum(np.where(lam < high, -w, 0), np.where(lam > low, w, 0))
    wrong[basis] = 0
    wrong = np.where(wrong > limit, wrong / curvature.sizes, 0)
    row = int(np.argmax(wrong)) if len(wrong) else 0
    return row if len(wrong) and wrong[row] > 0 else None


def _first_bound(lam, direction, rows, low, high):
    """The first row to reach a bound, least number first, and how long it takes."""
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
        self.sizes = _positive(np.sqrt(np.maximum(np.diagonal(M), 0)))

    def motion(self, lam):
        """``M lam + d``."""
        return self.M @ lam + self.d

    def terms(self, lam):
        """Sizes of the terms in ``motion``."""
        return np.abs(self.M) @ np.abs(lam) + np.abs(self.d)

    def response(self, basis, row):
        """Forces of the basis that keep its motion as it is when that of ``row`` grows by 1.

        Also the motion of ``row`` that results, and what it were if the basis stood still.
        """
        M = self.M
        y = -np.linalg.solve(M[np.ix_(basis, basis)], M[basis, row])
        return y, M[row, row] + M[row, basis] @ y, M[row, row]

    def balanced(self, basis, lam):
        """``lam`` with the forces of the basis such that it does not move."""
        others = lam.copy()
        others[basis] = 0
        block = self.M[np.ix_(basis, basis)]
        others[basis] = np.linalg.solve(block, -self.motion(others)[basis])
        return others


class Factored:
    """A problem given by ``G`` and ``d``, with ``M = G Gᵀ``."""

    def __init__(self, G, d):
        self.G, self.d = G, d
        self.sizes = _positive(np.linalg.norm(G, axis=1))

    def motion(self, lam):
        """``M lam + d``."""
        return self.G @ (self.G.T @ lam) + self.d

    def terms(self, lam):
        """Sizes of the terms in ``motion``."""
        return np.abs(self.G) @ (np.abs(self.G.T) @ np.abs(lam)) + np.abs(self.d)

    def response(self, basis, row):
        """As in ``Dense``."""
        G = self.G
        y = -np.linalg.lstsq(G[basis].T, G[row], rcond=None)[0]
        left = G[row] + y @ G[basis]
        return y, left @ left, G[row] @ G[row]

    def balanced(self, basis, lam):
        """As in ``Dense``."""
        others = lam.copy()
        others[basis] = 0
        R = np.linalg.qr(self.G[basis].T)[1]
        right = np.linalg.solve(R.T, -self.motion(others)[basis])
        others[basis] = np.linalg.solve(R, right)
        return others


def _positive(sizes):
    return np.where(sizes > 0, sizes, 1.0)
