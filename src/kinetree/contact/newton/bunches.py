"""Contacts of the same free bodies in the matrix of an island: the corners of a box, at once.

They follow one another in the lists of a problem; ``pattern.note_bunch`` has noted where their
blocks lie. ``J`` is read where it is, blocks stay in registers from contact to contact.
"""

from kinetree.codegen.procedures import local, procedure, view
from kinetree.contact.newton.cones import SLIDING, STICKING
from kinetree.contact.newton.problem import Problem, Work
from kinetree.contact.newton.sixes import put_six

__all__ = ["add_bunch"]


@procedure
def add_bunch(problem: Problem, work: Work, g: int, sticking: bool, sliding: bool) -> None:
    """Add J'AJ of contact ``g`` and the following contacts of the same free bodies to the matrix.

    Where ``sticking`` and ``sliding`` ones are added at once the matrix is symmetric, and only half
    of the blocks on the diagonal are read.
    """
    AJ = local("float", 288)  # two bodies, 24 rows each
    at, there = local("int", 2, 8)
    count = 0
    bunch = work.bunch[g]
    for h in range(g, g + bunch[0]):
        state = work.state[h]
        if not ((state == STICKING and sticking) or (state == SLIDING and sliding)):
            continue
        A = view(work.A, 6 * problem.row_first[h], 9)
        spot = work.spot[h]
        at[count] = spot[0]
        there[count] = spot[2]
        times_three(A, view(problem.J, spot[0], 18), view(AJ, 18 * count, 18))
        if spot[2] >= 0:
            times_three(A, view(problem.J, spot[2], 18), view(AJ, 144 + 18 * count, 18))
        count += 1
    if count == 0:
        return
    H = work.H
    J = problem.J
    if sticking and sliding:
        add_upper(view(H, bunch[1]), bunch[2], J, at, AJ, count)
    else:
        add_sixes(view(H, bunch[1]), bunch[2], J, at, AJ, count)
    if bunch[3] < 0:
        return
    other = view(AJ, 144)
    if sticking and sliding:
        add_upper(view(H, bunch[3]), bunch[4], J, there, other, count)
    else:
        add_sixes(view(H, bunch[3]), bunch[4], J, there, other, count)
    if bunch[7] == 0:
        add_sixes(view(H, bunch[5]), bunch[6], J, at, other, count)
    else:
        add_sixes(view(H, bunch[5]), bunch[6], J, there, AJ, count)
    if not sticking:
        if bunch[7] == 0:
            add_turned(view(work.L, bunch[5]), bunch[6], J, there, AJ, count)
        else:
            add_turned(view(work.L, bunch[5]), bunch[6], J, at, other, count)


@procedure(inline=True)
def times_three(A: "float[9]", J: "float[18]", AJ: "float[18]") -> None:
    """Write ``-A J`` of a three-row contact for one free body's (3, 6) Jacobian block."""
    a = view(J, 0, 6)
    b = view(J, 6, 6)
    c = view(J, 12, 6)
    first = view(AJ, 0, 6)
    first[0:6] = -A[0] * a - A[1] * b - A[2] * c
    second = view(AJ, 6, 6)
    second[0:6] = -A[3] * a - A[4] * b - A[5] * c
    third = view(AJ, 12, 6)
    third[0:6] = -A[6] * a - A[7] * b - A[8] * c


@procedure
def add_sixes(
    C: "float[:]", width: int, J: "float[:]", at: "int[8]", AJ: "float[:]", count: int
) -> None:
    """Subtract ``J' AJ`` of ``count`` three-row contacts of two free bodies from a 6 x 6 block."""
    x = local("float", 6, 6)
    for r in range(6):
        x[r] = view(C, r * width, 6)
    for n in range(count):
        for m in range(3):
            k = at[n] + 6 * m
            row = view(AJ, 18 * n + 6 * m, 6)
            x[0] -= J[k] * row
            x[1] -= J[k + 1] * row
            x[2] -= J[k + 2] * row
            x[3] -= J[k + 3] * row
            x[4] -= J[k + 4] * row
            x[5] -= J[k + 5] * row
    put_six(C, width, x[0], x[1], x[2], x[3], x[4], x[5])


@procedure
def add_turned(
    C: "float[:]", width: int, J: "float[:]", at: "int[8]", AJ: "float[:]", count: int
) -> None:
    """Subtract ``AJ' J`` of ``count`` three-row contacts from a 6 x 6 block of the transpose."""
    x = local("float", 6, 6)
    for r in range(6):
        x[r] = view(C, r * width, 6)
    for n in range(count):
        for m in range(3):
            k = 18 * n + 6 * m
            row = view(J, at[n] + 6 * m, 6)
            x[0] -= AJ[k] * row
            x[1] -= AJ[k + 1] * row
            x[2] -= AJ[k + 2] * row
            x[3] -= AJ[k + 3] * row
            x[4] -= AJ[k + 4] * row
            x[5] -= AJ[k + 5] * row
    put_six(C, width, x[0], x[1], x[2], x[3], x[4], x[5])


@procedure
def add_upper(
    C: "float[:]", width: int, J: "float[:]", at: "int[8]", AJ: "float[:]", count: int
) -> None:
    """Subtract the upper triangle of ``J' AJ`` of three-row contacts from a 6 x 6 block ``C``."""
    a, b = local("float", 2, 6)
    c, d = local("float", 2, 4)
    e, f = local("float", 2, 2)
    third = view(C, 2 * width + 2, 4)
    fourth = view(C, 3 * width + 2, 4)
    fifth = view(C, 4 * width + 4, 2)
    sixth = view(C, 5 * width + 4, 2)
    a[0:6] = view(C, 0, 6)
    b[0:6] = view(C, width, 6)
    c[0:4] = third
    d[0:4] = fourth
    e[0:2] = fifth
    f[0:2] = sixth
    for n in range(count):
        for m in range(3):
            k = at[n] + 6 * m
            row = view(AJ, 18 * n + 6 * m, 6)
            a -= J[k] * row
            b -= J[k + 1] * row
            c -= J[k + 2] * row[2:6]
            d -= J[k + 3] * row[2:6]
            e -= J[k + 4] * row[4:6]
            f -= J[k + 5] * row[4:6]
    first = view(C, 0, 6)
    first[0:6] = a
    second = view(C, width, 6)
    second[0:6] = b
    third[0:4] = c
    fourth[0:4] = d
    fifth[0:2] = e
    sixth[0:2] = f
