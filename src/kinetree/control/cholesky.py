# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false
"""Cholesky factors of dense matrices, in compiled code."""

from kinetree.codegen.procedures import procedure, sqrt, view
from kinetree.contact.newton.cholesky import take, take_row


@procedure
def factored(P: "float[:]", rows: int, width: int) -> int:
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


@procedure
def substituted(
    U: "float[:]", wide: int, n: int, X: "float[:]", columns: int, room: "float[:]"
) -> None:
    """``X`` becomes ``U⁻¹ X``; both have rows as wide as those of ``U``; ``room`` for ``6 n``."""
    end = n
    while end > 0:
        first = max(0, end - 6)
        rest = n - end
        if rest > 0:
            for e in range(rest):
                for a in range(end - first):
                    room[6 * e + a] = U[(first + a) * wide + end + e]
            below = view(X, end * wide)
            take(view(X, first * wide), wide, room, 6, below, wide, rest, end - first, columns)
        for e in range(end - first):
            a = end - 1 - e
            row = view(X, a * wide)
            if e > 0:
                off = view(U, a * wide + a + 1)
                take_row(row, off, 1, view(X, (a + 1) * wide), wide, e, columns)
            scale = 1.0 / U[a * wide + a]
            row[:columns] *= scale
        end = first
