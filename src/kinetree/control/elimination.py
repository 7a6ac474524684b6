# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Linear equations eliminated: some unknowns as functions of the others, which remain free.

Gauss and Jordan's elimination, each row with the largest of its numbers as pivot: what remains has
a unit matrix for the free unknowns, so that products with it cost little.
"""

from kinetree.codegen.procedures import procedure, view
from kinetree.control.tiles import add_row, clear, pad, take_one_row

RANK = 1e-9
"""Part of a row that rounding errors leave of it where it depends on those before."""


@procedure
def eliminate(
    W: "float[:]", before: int, rows: int, n: int, size: "float[:]", pivot: "int[:]", whole: bool
) -> int:
    """Gaussian elimination with row pivots of ``W[:, :n] x = W[:, n]``; number of solved rows.

    Args:
        W: equations, rows of ``pad(n + 1)`` numbers; overwritten by those for the unknowns
            ``pivot``; and room for ``rows`` numbers after them.
        before: number of rows that are solved already.
        rows: number of equations.
        n: number of unknowns.
        size: of what each row consists of; below ``RANK`` times that, there is nothing left of it.
        pivot: number of the unknown of each row, (rows,); -1 for rows that depend on others, whose
            right-hand side is then what they contradict them by.
        whole: go on after such a row.
    """
    wide = pad(n + 1)
    for i in range(before, rows):
        row = view(W, i * wide)
        factors = view(W, rows * wide)
        for k in range(i):
            factors[k] = row[pivot[k]] if pivot[k] >= 0 else 0.0
        for c in range(0, wide, 8):
            take_one_row(view(row, c), wide, factors, 1, view(W, c), i)
        for k in range(i):
            if pivot[k] >= 0:
                row[pivot[k]] = 0.0
        best = find_largest(row, n)
        if not abs(row[best]) > RANK * size[i]:
            best = -1
        pivot[i] = best
        if best < 0:
            if not whole:
                return i
            for j in range(n):
                row[j] = 0.0
        else:
            scale = 1.0 / row[best]
            for c in range(0, wide, 8):
                own = view(row, c, 8)
                own *= scale
            row[best] = 1.0
            for k in range(i):
                other = view(W, k * wide)
                factor = other[best]
                if factor != 0.0:
                    add_row(other, -factor, row, wide)
                    other[best] = 0.0
    return rows


@procedure(inline=True)
def find_largest(row: "float[:]", n: int) -> int:
    """Index of the entry of largest magnitude, by a branch-free search."""
    first, second = 0, 0
    most, other = 0.0, 0.0
    end = 2 * (n // 2)
    for j in range(0, end, 2):
        x, y = abs(row[j]), abs(row[j + 1])
        first = j if x > most else first
        second = j + 1 if y > other else second
        most = x if x > most else most
        other = y if y > other else other
    if end < n and abs(row[end]) > most:
        return end if abs(row[end]) > other else second
    return first if most > other else second


@procedure
def find_free(rows: int, n: int, pivot: "int[:]", free_at: "int[:]", free: "int[:]") -> int:
    """Number of unknowns that eliminated equations leave free; fills their list.

    Args:
        rows: number of equations.
        n: number of unknowns.
        pivot: of each equation.
        free_at: number of each unknown among the free ones, (n,); -1 for the others.
        free: the free ones, (n,).
    """
    for j in range(n):
        free_at[j] = 0
    for i in range(rows):
        if pivot[i] >= 0:
            free_at[pivot[i]] = -1
    count = 0
    for j in range(n):
        if free_at[j] == 0:
            free_at[j] = count
            free[count] = j
            count += 1
    return count


@procedure
def basis(
    W: "float[:]", rows: int, n: int, pivot: "int[:]", free: "int[:]", count: int, Z: "float[:]"
) -> None:
    """Null-space basis of eliminated equations, in the columns of ``Z``.

    Args:
        W: as ``eliminate`` leaves it.
        rows: number of equations.
        n: number of unknowns.
        pivot: of each equation.
        free: unknowns that stay free, ``count`` of them: a direction each.
        count: number of directions.
        Z: (n, pad(count)).
    """
    wide = pad(count)
    clear(Z, n * wide)
    for k in range(count):
        Z[free[k] * wide + k] = 1.0
    for i in range(rows):
        if pivot[i] >= 0:
            row = view(W, i * pad(n + 1))
            out = view(Z, pivot[i] * wide)
            for k in range(count):
                out[k] = -row[free[k]]
