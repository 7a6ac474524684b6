"""Deriving assembly formulae by elimination — RBDA §7.4, (7.51)–(7.56).

Five block equations say what is known about two handles and the joint between them. They are put
in a composite system, as nearly upper triangular as its zeros allow, brought to triangular form
by block elimination, and back-substituted until the wanted unknown stands alone as an affine
function of the given one. The book does this with symbols for each new set of equations; here
it is done with numbers, for any set. Cannot be traced: pivots are tested for rank.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np

from kinetree.errors import SingularError

__all__ = ["BlockEquation", "assembly_equations", "composite", "derive", "orders"]


class BlockEquation(NamedTuple):
    """``Σ terms[x] x = constant`` over named vector unknowns ``x``."""

    terms: dict
    constant: np.ndarray


def assembly_equations(handle_1, handle_2, joint, *, inverted=False, implicit=False):
    """The five equations of two handles and a joint, in the book's order — RBDA (7.51)–(7.55).

    Args:
        handle_1: pair ``(I, p)`` of ``f = I a + p``; with ``inverted`` a pair ``(Phi, b)`` of
            ``a = Phi f + b``.
        handle_2: the same for the other handle.
        joint: ``(S, c, tau)``; with ``implicit`` ``(T, Ta, c, tau)``, where the unknown of the
            joint is ``lam`` in place of ``qdd``.
        inverted: the book's change 1.
        implicit: the book's change 2.
    """
    one = np.eye(6)
    left, right = ("a", "f") if inverted else ("f", "a")
    equations = [
        BlockEquation({f"{left}{n}": one, f"{right}{n}": -matrix}, bias)
        for n, (matrix, bias) in ((1, handle_1), (2, handle_2))
    ]
    equations.append(BlockEquation({"f": one, "f1": -one, "f2": -one}, np.zeros(6)))
    if implicit:
        T, Ta, c, tau = joint
        equations.append(BlockEquation({"f2": one, "lam": -T}, Ta @ tau))
        equations.append(BlockEquation({"a2": T.T, "a1": -T.T}, T.T @ c))
    else:
        S, c, tau = joint
        equations.append(BlockEquation({"a2": one, "a1": -one, "qdd": -S}, c))
        equations.append(BlockEquation({"f2": S.T}, tau))
    return equations


def derive(equations, wanted, given):
    """``M, n`` with ``wanted = M given + n``, by elimination and back-substitution."""
    for rows, columns in orders(equations, wanted, given):
        solution = _solve(*composite(equations, rows, columns, given))
        if solution is not None:
            return solution
    raise SingularError(
        f"the equations do not determine {wanted!r} as a function of {given!r}: in every order "
        f"some pivot block is singular"
    )


def composite(equations, rows, columns, given):
    """``A x = constant + B given`` in the chosen order of equations and unknowns.

    Returns the blocks: ``A`` and ``B`` as lists of matrices (None where a block is zero), the
    constants as a list of vectors.
    """
    ordered = [equations[r] for r in rows]
    A = [[e.terms.get(x) for x in columns] for e in ordered]
    B = [-e.terms[given] if given in e.terms else None for e in ordered]
    return A, [e.constant for e in ordered], B


def orders(equations, wanted, given):
    """Orders by the book's rules 1–5, those with fewest blocks below the diagonal first."""
    size = {x: block.shape[1] for e in equations for x, block in e.terms.items()}
    unknowns = [x for x in size if x != given]
    bottom = [x for x in unknowns if size[x] != 6] or [unknowns[-1]]
    middle = [x for x in unknowns if x != wanted and x not in bottom]
    last = [r for r, e in enumerate(equations) if len(e.constant) != 6] or [len(equations) - 1]
    upper = [r for r in range(len(equations)) if r not in last]
    found = []
    for rows in permutations(upper):
        for columns in permutations(middle):
            order = ([*rows, *last], [wanted, *columns, *bottom])
            A, _, _ = composite(equations, *order, given)
            below = sum(A[r][k] is not None for r in range(len(A)) for k in range(r))
            found.append((below, order))
    return [order for _, order in sorted(found, key=lambda item: item[0])]


def _solve(A, constant, B):
    """First unknown of the composite system as ``(M, n)``, or None at a singular pivot."""
    A, right = [list(row) for row in A], _right_hand_sides(constant, B)
    N = len(A)
    for k in range(N):
        pivot = A[k][k]
        if pivot is None or len(pivot) != pivot.shape[1] or _is_singular(pivot):
            return None
        for r in range(k + 1, N):
            if A[r][k] is not None:
                factor = A[r][k] @ np.linalg.inv(pivot)
                for j in range(k, N):
                    if A[k][j] is not None:
                        change = factor @ A[k][j]
                        A[r][j] = -change if A[r][j] is None else A[r][j] - change
                right[r] = right[r] - factor @ right[k]
    x = {}
    for k in reversed(range(N)):
        known = sum(A[k][j] @ x[j] for j in range(k + 1, N) if A[k][j] is not None)
        x[k] = np.linalg.solve(A[k][k], right[k] - known)
    return x[0][:, 1:], x[0][:, 0]


def _right_hand_sides(constant, B):
    """Constants and coefficients of the given unknown side by side."""
    width = next(b.shape[1] for b in B if b is not None)
    zero = [np.zeros((len(c), width)) for c in constant]
    return [
        np.column_stack([c, z if b is None else b])
        for c, b, z in zip(constant, B, zero, strict=True)
    ]


def _is_singular(block):
    return block.size > 0 and np.linalg.cond(block) > 1e12
