# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Linear equations eliminated: some unknowns as functions of the others, which remain free.

Gauss and Jordan's elimination, each row with the largest of its numbers as pivot: what remains has
a unit matrix for the free unknowns, so that products with it cost little.
"""

from kinetree.codegen.procedures import procedure, view

RANK = 1e-9
"""Part of a row that rounding errors leave of it where it depends on those before."""


@procedure
def eliminate(W: "float[:]", rows: int, n: int, size: "float[:]", pivot: "int[:]") -> int:
    """Solve each of the equations ``W[:, :n] x = W[:, n]`` for an unknown: how many there are.

    Args:
        W: equations, (rows, n + 1); overwritten by those for the unknowns ``pivot``.
        rows: number of equations.
        n: number of unknowns.
        size: of what each row consists of; below ``RANK`` times that, there is nothing left of it.
        pivot: number of the unknown of each row, (rows,); -1 for rows that depend on others, whose
            right-hand side is then what they contradict them by.
    """
    wide = n + 1
    rank = 0
    for i in range(rows):
        row = view(W, i * wide)
        best = -1
        most = RANK * size[i]
        for j in range(n):
            if abs(row[j]) > most:
                most = abs(row[j])
                best = j
        pivot[i] = best
        if best < 0:
            for j in range(n):
                row[j] = 0.0
        else:
            rank += 1
            scale = 1.0 / row[best]
            for j in range(wide):
                row[j] *= scale
            row[best] = 1.0
            for k in range(rows):
                if k != i:
                    other = view(W, k * wide)
                    factor = other[best]
                    if factor != 0.0:
                        for j in range(wide):
                            other[j] -= factor * row[j]
                        other[best] = 0.0
    return rank


@procedure
def basis(
    W: "float[:]", rows: int, n: int, pivot: "int[:]", free_at: "int[:]", Z: "float[:]"
) -> int:
    """Directions in which solutions of eliminated equations differ: how many, and ``Z``.

    Args:
        W: as ``eliminate`` leaves it.
        rows: number of equations.
        n: number of unknowns.
        pivot: of each equation.
        free_at: number of the direction that is a free unknown, (n,); -1 for the others.
        Z: (n, number of directions).
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
            count += 1
    for i in range(n * count):
        Z[i] = 0.0
    for j in range(n):
        if free_at[j] >= 0:
            Z[j * count + free_at[j]] = 1.0
    for i in range(rows):
        if pivot[i] >= 0:
            row = view(W, i * (n + 1))
            out = view(Z, pivot[i] * count)
            for j in range(n):
                if free_at[j] >= 0:
                    out[free_at[j]] = -row[j]
    return count
