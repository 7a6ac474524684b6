# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Factors of small symmetric matrices on a GPU, of which every lane has a column in registers.

What lanes need of others they read in the memory of the team, ``L``: row ``k`` has column ``k`` of
the factor, with the inverse pivot on the diagonal.
"""

import math

from kinetree.codegen.procedures import lanes, procedure, unroll, view


@procedure(inline=True)
def eliminate(L: "float[:]", n: int, columns: int, x: "float[32]"):
    """Factorise ``L D Lᵀ`` from columns held by lanes; inverse pivots on the diagonal of ``L``.

    Row ``k`` of ``L`` has column ``k`` of the factor. Further columns become ``L⁻¹`` times them.
    """
    for k in unroll(n):
        row = view(L, k * n)
        for j in lanes(columns):
            if j == k:
                inverse = 1.0 / x[k]
                row[k] = inverse
                for i in unroll(k + 1, n):
                    row[i] = inverse * x[i]
        for j in lanes(columns):
            if j > k:
                for i in unroll(k + 1, n):
                    x[i] -= row[i] * x[k]


@procedure(inline=True)
def solve_forward(L: "float[:]", n: int, x: "float[32]"):
    """Solve ``L x = b`` in place, for a unit lower-triangular factor."""
    for k in unroll(n):
        for i in unroll(k + 1, n):
            x[i] -= L[k * n + i] * x[k]


@procedure(inline=True)
def solve_backward(L: "float[:]", n: int, x: "float[32]"):
    """Solve ``D Lᵀ x = b`` in place, from the factors ``L D Lᵀ``."""
    for k in unroll(n):
        x[k] *= L[k * n + k]
    for e in unroll(n):
        i = n - 1 - e
        for k in unroll(i):
            x[k] -= L[k * n + i] * x[i]


@procedure(inline=True)
def has_right_signs(L: "float[:]", n: int, first: int) -> bool:
    """Whether the first pivots are positive, and all those after them negative."""
    wrong = 0
    for k in range(n):
        pivot = L[k * n + k] if k < first else -L[k * n + k]
        wrong += 0 if 0.0 < pivot < math.inf else 1
    return wrong == 0
