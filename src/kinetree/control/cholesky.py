# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false
"""Cholesky factors of dense matrices, in compiled code."""

from kinetree.codegen.procedures import procedure, sqrt, view
from kinetree.contact.newton.cholesky import take, take_row


@procedure
def factor_dense(P: "float[:]", rows: int, width: int) -> int:
    """Cholesky factor ``U`` of a symmetric ``H = Uᵀ U`` in place: 0, or 1 if it is not positive.

    ``P`` holds the first rows of ``H``, of which the upper half counts. Columns that follow those
    of ``H`` are multiplied by the inverse of ``Uᵀ``.
    """
    first = 0
    while first < rows:
        count = min(6, rows - first)
        rest = width - first
        D = view(P, first * (width + 1))
        if first > 0:
            before = view(P, first)
            take(D, width, before, width, before, width, first, count, rest)
        for a in range(count):
            at = a * (width + 1)
            take_row(view(D, at), view(D, a), width, view(D, a), width, a, rest - a)
            pivot = D[at]
            if not pivot > 0.0:
                return 1
            scale = 1.0 / sqrt(pivot)
            D[at : at + rest - a] *= scale
        first += count
    return 0
