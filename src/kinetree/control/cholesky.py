"""Cholesky factors of dense matrices, in compiled code."""

from kinetree.codegen.procedures import procedure, sqrt, view
from kinetree.contact.newton.cholesky import take_row


@procedure
def factored(P: "float[:]", rows: int, width: int) -> int:
    """Cholesky factor ``U`` of a symmetric ``H = Uᵀ U`` in place: 0, or 1 if it is not positive.

    ``P`` holds the first rows of ``H``, of which the upper half counts. Columns that follow those
    of ``H`` are multiplied by the inverse of ``Uᵀ``.
    """
    for a in range(rows):
        at = a * (width + 1)
        take_row(view(P, at), view(P, a), width, view(P, a), width, a, width - a)
        pivot = P[at]
        if not pivot > 0.0:
            return 1
        scale = 1.0 / sqrt(pivot)
        P[at : at + width - a] *= scale
    return 0
