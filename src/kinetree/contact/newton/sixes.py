"""Panels and blocks of six rows, those of free bodies: unrolled, in registers.

Most islands of piles have no others. See ``cholesky`` for what factors are.
"""

from kinetree.codegen.procedures import isfinite, local, procedure, vector, view

__all__ = [
    "eliminate_six",
    "eliminate_six_both",
    "invert_six",
    "six_backward",
    "six_forward",
    "take_six",
]


@procedure(inline=True)
def put_six(
    P: "float[:]",
    width: int,
    a: "float[6]",
    b: "float[6]",
    c: "float[6]",
    d: "float[6]",
    e: "float[6]",
    f: "float[6]",
) -> None:
    """Write six rows of six numbers into a panel of this width."""
    row = view(P, 0, 6)
    row[0:6] = a
    row = view(P, width, 6)
    row[0:6] = b
    row = view(P, 2 * width, 6)
    row[0:6] = c
    row = view(P, 3 * width, 6)
    row[0:6] = d
    row = view(P, 4 * width, 6)
    row[0:6] = e
    row = view(P, 5 * width, 6)
    row[0:6] = f


@procedure(inline=True)
def take_six(
    C: "float[:]", wc: int, A: "float[:]", wa: int, B: "float[:]", wb: int, depth: int
) -> None:
    """Subtract ``A' B`` from a 6 x 6 block C, with A and B of ``depth`` rows."""
    x = local("float", 6, 6)
    for r in range(6):
        x[r] = view(C, r * wc, 6)
    for m in range(depth):
        k = m * wa
        row = view(B, m * wb, 6)
        x[0] -= A[k] * row
        x[1] -= A[k + 1] * row
        x[2] -= A[k + 2] * row
        x[3] -= A[k + 3] * row
        x[4] -= A[k + 4] * row
        x[5] -= A[k + 5] * row
    put_six(C, wc, x[0], x[1], x[2], x[3], x[4], x[5])


@procedure(inline=True)
def eliminate_columns(
    U: "float[:]", L: "float[:]", width: int, s: "float[6]", T: "float[36]", copies: bool
) -> None:
    """Eliminate six panel columns of ``U`` by the factored diagonal block ``T`` of ``L'``.

    What they are before the last factor ``s``, the inverse pivots, becomes ``L`` if that
    ``copies``.
    """
    a = view(U, 0, 6) + 0.0
    p = s[0] * a
    b = view(U, width, 6) - T[1] * p
    q = s[1] * b
    c = view(U, 2 * width, 6) - T[2] * p - T[8] * q
    r = s[2] * c
    d = view(U, 3 * width, 6) - T[3] * p - T[9] * q - T[15] * r
    t = s[3] * d
    e = view(U, 4 * width, 6) - T[4] * p - T[10] * q - T[16] * r - T[22] * t
    u = s[4] * e
    f = view(U, 5 * width, 6) - T[5] * p - T[11] * q - T[17] * r - T[23] * t - T[29] * u
    v = s[5] * f
    put_six(U, width, p, q, r, t, u, v)
    if copies:
        put_six(L, width, a, b, c, d, e, f)


@procedure(inline=True)
def eliminate_below(L: "float[:]", width: int, T: "float[36]") -> None:
    """Eliminate six panel columns of ``L'`` by the factored diagonal block ``T`` of ``U``."""
    a = view(L, 0, 6) + 0.0
    b = view(L, width, 6) - T[1] * a
    c = view(L, 2 * width, 6) - T[2] * a - T[8] * b
    d = view(L, 3 * width, 6) - T[3] * a - T[9] * b - T[15] * c
    e = view(L, 4 * width, 6) - T[4] * a - T[10] * b - T[16] * c - T[22] * d
    f = view(L, 5 * width, 6) - T[5] * a - T[11] * b - T[17] * c - T[23] * d - T[29] * e
    put_six(L, width, a, b, c, d, e, f)


@procedure
def eliminate_six(U: "float[:]", L: "float[:]", width: int) -> int:
    """Factor a symmetric panel of six rows in place; 0, or 1 if not positive definite."""
    T = local("float", 36)
    a = view(U, 0, 6) + 0.0
    i = 1.0 / a[0]
    p = i * a
    b = view(U, width, 6) - a[1] * p
    j = 1.0 / b[1]
    q = j * b
    c = view(U, 2 * width, 6) - a[2] * p - b[2] * q
    k = 1.0 / c[2]
    r = k * c
    d = view(U, 3 * width, 6) - a[3] * p - b[3] * q - c[3] * r
    m = 1.0 / d[3]
    t = m * d
    e = view(U, 4 * width, 6) - a[4] * p - b[4] * q - c[4] * r - d[4] * t
    n = 1.0 / e[4]
    u = n * e
    f = view(U, 5 * width, 6) - a[5] * p - b[5] * q - c[5] * r - d[5] * t - e[5] * u
    o = 1.0 / f[5]
    if not (a[0] > 0.0 and b[1] > 0.0 and c[2] > 0.0 and d[3] > 0.0 and e[4] > 0.0 and f[5] > 0.0):
        return 1
    put_six(T, 6, a, b, c, d, e, f)
    put_six(U, width, p, q, r, t, u, f)
    put_six(L, width, a, b, c, d, e, f)
    s = vector(i, j, k, m, n, o)
    put_diagonal(L, width, s)
    at = 6
    while at < width:
        eliminate_columns(view(U, at), view(L, at), width, s, T, True)
        at += 6
    return 0


@procedure
def eliminate_six_both(U: "float[:]", L: "float[:]", width: int) -> int:
    """Factor an unsymmetric panel of six rows in place; 0, or 1 for a zero pivot."""
    T, unit = local("float", 2, 36)
    x = view(U, 0, 6) + 0.0
    i = 1.0 / x[0]
    p = i * x
    a = view(L, 0, 6) + 0.0
    x = view(U, width, 6) - a[1] * p
    j = 1.0 / x[1]
    q = j * x
    b = view(L, width, 6) - p[1] * a
    x = view(U, 2 * width, 6) - a[2] * p - b[2] * q
    k = 1.0 / x[2]
    r = k * x
    c = view(L, 2 * width, 6) - p[2] * a - q[2] * b
    x = view(U, 3 * width, 6) - a[3] * p - b[3] * q - c[3] * r
    m = 1.0 / x[3]
    t = m * x
    d = view(L, 3 * width, 6) - p[3] * a - q[3] * b - r[3] * c
    x = view(U, 4 * width, 6) - a[4] * p - b[4] * q - c[4] * r - d[4] * t
    n = 1.0 / x[4]
    u = n * x
    e = view(L, 4 * width, 6) - p[4] * a - q[4] * b - r[4] * c - t[4] * d
    x = view(U, 5 * width, 6) - a[5] * p - b[5] * q - c[5] * r - d[5] * t - e[5] * u
    o = 1.0 / x[5]
    if not isfinite(i + j + k + m + n + o + x[5]):
        return 1
    put_six(T, 6, a, b, c, d, e, e)
    put_six(unit, 6, p, q, r, t, u, u)
    put_six(U, width, p, q, r, t, u, x)
    put_six(L, width, a, b, c, d, e, e)
    s = vector(i, j, k, m, n, o)
    put_diagonal(L, width, s)
    at = 6
    while at < width:
        eliminate_columns(view(U, at), view(L, at), width, s, T, False)
        eliminate_below(view(L, at), width, unit)
        at += 6
    return 0


@procedure(inline=True)
def put_diagonal(P: "float[:]", width: int, s: "float[6]") -> None:
    """Write six numbers to the diagonal of a panel's first block."""
    P[0] = s[0]
    P[width + 1] = s[1]
    P[2 * width + 2] = s[2]
    P[3 * width + 3] = s[3]
    P[4 * width + 4] = s[4]
    P[5 * width + 5] = s[5]


@procedure(inline=True)
def six_forward(P: "float[:]", width: int, x: "float[6]") -> None:
    """Forward substitution by the 6 x 6 triangle of a panel of ``L'``, in place of ``x``."""
    a = x[0] * P[0]
    b = (x[1] - P[1] * a) * P[width + 1]
    p = view(P, 2 * width, 6)
    c = (x[2] - P[2] * a - P[width + 2] * b) * p[2]
    q = view(P, 3 * width, 6)
    d = (x[3] - P[3] * a - P[width + 3] * b - p[3] * c) * q[3]
    r = view(P, 4 * width, 6)
    e = (x[4] - P[4] * a - P[width + 4] * b - p[4] * c - q[4] * d) * r[4]
    f = x[5] - P[5] * a - P[width + 5] * b - p[5] * c - q[5] * d - r[5] * e
    x[0:6] = vector(a, b, c, d, e, f * P[5 * width + 5])


@procedure(inline=True)
def six_backward(P: "float[:]", width: int, y: "float[:]", x: "float[6]") -> None:
    """Back substitution by a six-row panel of ``U``; ``y`` has the later unknowns."""
    s = local("float", 6, 6)
    p = view(P, width, 6)
    q = view(P, 2 * width, 6)
    r = view(P, 3 * width, 6)
    t = view(P, 4 * width, 6)
    s[0:6] = 0.0
    c = 6
    while c < width:
        other = view(y, c, 6)
        s[0] += view(P, c, 6) * other
        s[1] += view(P, width + c, 6) * other
        s[2] += view(P, 2 * width + c, 6) * other
        s[3] += view(P, 3 * width + c, 6) * other
        s[4] += view(P, 4 * width + c, 6) * other
        s[5] += view(P, 5 * width + c, 6) * other
        c += 6
    f = x[5] - sum_of_six(s[5])
    e = x[4] - sum_of_six(s[4]) - t[5] * f
    d = x[3] - sum_of_six(s[3]) - r[4] * e - r[5] * f
    c3 = x[2] - sum_of_six(s[2]) - q[3] * d - q[4] * e - q[5] * f
    b = x[1] - sum_of_six(s[1]) - p[2] * c3 - p[3] * d - p[4] * e - p[5] * f
    a = x[0] - sum_of_six(s[0]) - P[1] * b - P[2] * c3 - P[3] * d - P[4] * e - P[5] * f
    x[0:6] = vector(a, b, c3, d, e, f)


@procedure(inline=True)
def sum_of_six(x: "float[6]") -> float:
    """Sum of a 6-vector's numbers, added in pairs for vector registers."""
    s = x[0:2] + x[2:4] + x[4:6]
    return s[0] + s[1]


@procedure
def invert_six(M: "float[:]", out: "float[6, 6]") -> None:
    """Write the inverse of a positive definite 6 x 6 matrix."""
    U, L = local("float", 2, 36)
    U[:36] = M[:36]
    eliminate_six(U, L, 6)
    a = vector(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    b = vector(0.0, 1.0, 0.0, 0.0, 0.0, 0.0) - U[1] * a
    c = vector(0.0, 0.0, 1.0, 0.0, 0.0, 0.0) - U[2] * a - U[8] * b
    d = vector(0.0, 0.0, 0.0, 1.0, 0.0, 0.0) - U[3] * a - U[9] * b - U[15] * c
    e = vector(0.0, 0.0, 0.0, 0.0, 1.0, 0.0) - U[4] * a - U[10] * b - U[16] * c - U[22] * d
    f = vector(0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    f = f - U[5] * a - U[11] * b - U[17] * c - U[23] * d - U[29] * e
    f = L[35] * f
    e = L[28] * e - U[29] * f
    d = L[21] * d - U[22] * e - U[23] * f
    c = L[14] * c - U[15] * d - U[16] * e - U[17] * f
    b = L[7] * b - U[8] * c - U[9] * d - U[10] * e - U[11] * f
    a = L[0] * a - U[1] * b - U[2] * c - U[3] * d - U[4] * e - U[5] * f
    out[0] = a
    out[1] = b
    out[2] = c
    out[3] = d
    out[4] = e
    out[5] = f
