"""Elimination with pivots that were chosen beforehand — RBDA §8.9 without the search.

A matrix whose zeros are known and whose entries vary from sample to sample can be eliminated in
one order for all samples, which is what compiled code needs. Rows are dicts from column to
entry; zeros are left out. The pivots come back, for the caller to see whether they were any good.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import ltl
from kinetree.errors import SingularError


def is_zero(x) -> bool:
    """Whether a number is a known zero, not a traced one."""
    return isinstance(x, (int, float, np.integer)) and x == 0


def sparse_rows(A):
    """Rows of a matrix as dicts ``{column: entry}`` without known zeros."""
    return [{j: x for j, x in enumerate(row) if not is_zero(x)} for row in A]


def solve_for(rows, pivots):
    """Gaussian elimination: solve ``Σ_j row[j] x_j = 0`` for the unknowns of the given pivots.

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
        pivot = _check_pivot(row.pop(j, 0))
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


def _check_pivot(pivot):
    """The pivot; SingularError if it is zero."""
    if is_zero(pivot):
        raise SingularError("a pivot that was chosen beforehand is zero: this matrix needs others")
    return pivot


def _insert(row, j, expression):
    """Replace the unknown ``j`` in a row by its expression in other unknowns."""
    factor = row.pop(j, 0)
    if is_zero(factor):
        return
    for c, x in expression.items():
        row[c] = row[c] + factor * x if c in row else factor * x


def positive_solution(A, b):
    """Solution ``A⁻¹ b`` for a symmetric positive-definite matrix, without pivoting; the pivots.

    Only the lower triangle of ``A`` is read.
    """
    n = len(b)
    L, x = [list(row) for row in A], list(b)
    D = []
    for k in range(n):
        D.append(_check_pivot(L[k][k]))
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


# --- the two solvers: RBDA (8.37), (8.40) --------------------------------------------------------
# Both return the pivots they divided by, whose sizes show how far the result can be trusted.


def orthogonal_solution(A, b):
    """Solution of ``A x = b`` by Gram-Schmidt orthogonalisation; redundant rows are allowed.

    Gram and Schmidt's method in the stable order, without square roots. Rows may be redundant.

    Args:
        A: (nc, r), of full column rank.
        b: right-hand sides in the range of ``A``, (nc, m).

    Returns:
        ``x``, (r, m); for each column the square of what the ones before leave of it, relative to
        that of all of ``A``; ``b - A x``, what is not in the range of ``A``.
    """
    (_, r), m = A.shape, b.shape[1]
    columns = [*A.T, *b.T]
    R, parts, whole = {}, [], sum(column @ column for column in A.T)
    for k in range(r):
        q = columns[k]
        square = _check_pivot(q @ q)
        parts.append(square / whole)
        for j in range(k + 1, r + m):
            R[k, j] = (q @ columns[j]) / square
            columns[j] = columns[j] - R[k, j] * q
    x = [[R[k, r + j] for j in range(m)] for k in range(r)]
    for k in reversed(range(r)):
        for i in range(k):
            x[i] = [a - R[i, k] * c for a, c in zip(x[i], x[k], strict=True)]
    return np.array(x).reshape(r, m), parts, np.array(columns[r:]).reshape(m, len(A)).T


def null_space(H, b, K, k, pivots):
    """Null-space method, RBDA (8.40): ``qdd = G ydd + g`` with ``Gᵀ H G ydd = Gᵀ (b - H g)``.

    Args:
        H: inertia matrix of the tree, (nv, nv).
        b: forces less bias forces, ``tau - C``, (nv,).
        K: constraint matrix, (nc, nv).
        k: right-hand side, (nc,).
        pivots: pairs of constraint and variable to solve it for, in the order of elimination.

    Returns:
        ``qdd``; the pivots of the constraints, then those of the projected inertia matrix.
    """
    G, g, free, sizes = null_space_basis(K, k, pivots)
    n = len(b)
    rest = [b[i] - _dot(row, g) for i, row in enumerate(sparse_rows(H))]
    place = {j: c for c, j in enumerate(free)}
    ydd, more = positive_solution(project_matrix(H, G, free), transposed_product(G, free, rest))
    qdd = [g[i] + sum((x * ydd[place[j]] for j, x in G[i].items()), start=0) for i in range(n)]
    return np.array(qdd), [*sizes, *more]


class NullSpaceBasis(NamedTuple):
    """``qd = G yd`` and ``qdd = G ydd + g`` for variables ``y`` that follow nothing."""

    G: list
    """A dict for every variable, from independent variables to factors."""
    g: list
    """Numbers, or arrays of as many as there are right-hand sides."""
    free: list
    """Numbers of the independent variables, in ascending order."""
    pivots: list
    """Pivots that the elimination divided by."""


def null_space_basis(K, k, pivots) -> NullSpaceBasis:
    """Null-space basis ``G``, ``K G = 0``, and ``K g = k``, by a plan's pivots — RBDA (8.39).

    ``k`` may have several columns, (nc, columns); ``g`` then has as many.
    """
    n = constant = np.shape(K)[1]  # the constant term of an equation counts as one more unknown
    rows = dict(enumerate(sparse_rows(K)))
    for i, x in enumerate(k):
        if np.ndim(x) or not is_zero(x):
            rows[i][constant] = -x
    solved, sizes = solve_for(rows, pivots)
    g = [solved[i].pop(constant, 0) if i in solved else 0 for i in range(n)]
    free = [j for j in range(n) if j not in solved]
    return NullSpaceBasis([solved.get(i, {i: 1}) for i in range(n)], g, free, sizes)


def project_matrix(H, G, free):
    """Product ``Gᵀ H G`` of a symmetric matrix, lower triangle only."""
    place = {j: c for c, j in enumerate(free)}
    HG = [_combine_row(row, G) for row in sparse_rows(H)]
    M = [[0] * len(free) for _ in free]
    for row, products in zip(G, HG, strict=True):
        for j, x in row.items():
            for c, y in products.items():
                if place[c] <= place[j]:
                    M[place[j]][place[c]] = M[place[j]][place[c]] + x * y
    return M


def transposed_product(G, free, x):
    """Product ``Gᵀ x`` with a sparse ``G``; the entries of ``x`` may be arrays."""
    place, total = {j: c for c, j in enumerate(free)}, [0] * len(free)
    for row, value in zip(G, x, strict=True):
        for j, factor in row.items():
            total[place[j]] = total[place[j]] + factor * value
    return total


def _combine_row(row, G):
    """One row of the product ``H G`` with a sparse ``G``."""
    total = {}
    for i, h in row.items():
        for j, x in G[i].items():
            total[j] = total[j] + h * x if j in total else h * x
    return total


def _dot(row, x):
    """Product of a sparse row and a vector."""
    return sum((h * x[j] for j, h in row.items() if not is_zero(x[j])), start=0)


def range_space(L, lam, b, K, k):
    """Range-space method, RBDA (8.37), (8.38): ``qdd = H⁻¹ (b + Kᵀ λ)``, ``λ`` by Schur complement.

    Args:
        L: sparse factors of the inertia matrix, from ``ltl.ltdl``.
        lam: expanded parent array.
        b: forces less bias forces, ``tau - C``, (nv,).
        K: independent rows of the constraint matrix, (r, nv).
        k: right-hand side of these, (r,).

    Returns:
        ``qdd``; the pivots of ``K H⁻¹ Kᵀ``.
    """
    n, r = len(b), len(k)
    z = ltl.solve_lt(L, lam, b, unit=True)
    Y = [ltl.solve_lt(L, lam, row, unit=True) for row in K]
    inverse = [1 / L[i, i] for i in range(n)]
    YD = [[0 if is_zero(x) else x * inverse[i] for i, x in enumerate(y)] for y in Y]
    A = [[_sum_of_products(YD[i], Y[j]) for j in range(i + 1)] for i in range(r)]
    right = [k[i] - _sum_of_products(YD[i], z) for i in range(r)]
    force, sizes = positive_solution(A, right)
    for i, f in enumerate(force):
        z = z + Y[i] * f
    return ltl.solve_l(L, lam, [x * inverse[i] for i, x in enumerate(z)], unit=True), sizes


def _sum_of_products(x, y):
    """Sum of products, with known zeros left out."""
    pairs = zip(x, y, strict=True)
    return sum((a * b for a, b in pairs if not (is_zero(a) or is_zero(b))), start=0)
