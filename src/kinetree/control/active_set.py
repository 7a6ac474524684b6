# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Strictly convex quadratic programs by a dual active-set method, in compiled code.

D. Goldfarb, A. Idnani, "A numerically stable dual method for solving strictly convex quadratic
programs" (1983): from the minimum without constraints, one that is violated is added after the
other, and those that press the wrong way are dropped on the way. ``J`` and ``R`` are their factors,
``Jᵀ H J = 1`` and ``Jᵀ N = R`` for the normals ``N`` of active rows; a row is added by one
reflection. It starts afresh in every call, so that results do not depend on earlier ones: to begin
with the rows that were active last did not save iterations.
"""

import math

from kinetree.codegen.procedures import isfinite, local, procedure, record, sqrt, view
from kinetree.control.cholesky import factor_dense

FOUND, INFEASIBLE, LOST = 0, 1, 2
"""Results: the minimum; no point meets the bounds; rounding errors or too many iterations."""

_TOLERANCE = 1e-9  # by which bounds may be exceeded, per length of their rows
_DEPENDENT = 1e-20  # square of the part of a normal that others leave of it
_NEVER = 1e300


@record
class Quadratic:
    """Minimise ``xᵀ H x / 2 + gᵀ x`` subject to ``low <= C x <= high``.

    In:
        n, rows: numbers of unknowns and of constraints.
        H: (n, n), of which the upper half counts; overwritten by its factor.  g: (n,).
        C: (rows, n).  low, high: (rows,).
        scale: one over the lengths of the rows of ``C``, 0 for those that do not count, (rows,).

    Out:
        x: (n,).  count: number of active rows;  active: which they are;
        side: 1 for those at their lower bound, -1 at the upper;  u: their multipliers.
        iterations: rows added and dropped.  worst: of an infeasible problem, a row that contradicts
            the active ones.

    Work:
        J, R: factors, by columns, (n, n);  d, z, r, v: (n,);  is_active: (rows,).
    """

    n: int
    rows: int
    H: "float[:]"
    g: "float[:]"
    C: "float[:]"
    low: "float[:]"
    high: "float[:]"
    scale: "float[:]"
    x: "float[:]"
    count: int
    active: "int[:]"
    side: "float[:]"
    u: "float[:]"
    iterations: int
    worst: int
    J: "float[:]"
    R: "float[:]"
    d: "float[:]"
    z: "float[:]"
    r: "float[:]"
    v: "float[:]"
    is_active: "int[:]"


@procedure(inline=True)
def product(a: "float[:]", b: "float[:]", n: int) -> float:
    """Scalar product of long vectors, in eight sums."""
    sums = local("float", 8)
    sums[0:8] = 0.0
    k = 0
    while k + 8 <= n:
        sums += view(a, k, 8) * view(b, k, 8)
        k += 8
    total = 0.0
    for i in range(k, n):
        total += a[i] * b[i]
    even = (sums[0] + sums[4]) + (sums[2] + sums[6])
    return total + even + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


@procedure(inline=True)
def add_multiple(y: "float[:]", a: float, x: "float[:]", n: int) -> None:
    """``y += a x``."""
    for k in range(n):
        y[k] += a * x[k]


@procedure
def minimum(p: Quadratic) -> int:
    """Find the minimum."""
    if _begin(p) != 0:
        return LOST
    while p.iterations <= 10 * (p.n + p.rows):
        row, sign = _violated(p)
        if row < 0:
            return FOUND
        code = _take_in(p, row, sign)
        if code != FOUND:
            return code
    return LOST


@procedure
def _begin(p: Quadratic) -> int:
    """Factors and the minimum without constraints: 0, or 1 where ``H`` is not positive."""
    n = p.n
    p.count = 0
    p.iterations = 0
    for i in range(p.rows):
        p.is_active[i] = 0
    if factor_dense(p.H, n, n) != 0:
        return 1
    for k in range(n):
        row = view(p.J, k * n)
        for i in range(n):
            row[i] = 0.0
        row[k] = 1.0
        for i in range(k):
            add_multiple(row, -p.H[i * n + k], view(p.J, i * n), i + 1)
        scale = 1.0 / p.H[k * n + k]
        for i in range(k + 1):
            row[i] *= scale
    for i in range(n):
        p.x[i] = 0.0
    for k in range(n):
        row = view(p.J, k * n)
        add_multiple(p.x, -product(row, p.g, k + 1), row, k + 1)
    return 0 if isfinite(product(p.x, p.x, n)) else 1


@procedure
def _violated(p: Quadratic) -> "(int, float)":
    """The row that is violated most, -1 for none; 1.0 at its lower bound, -1.0 at the upper."""
    worst = -1
    side = 0.0
    most = _TOLERANCE
    for i in range(p.rows):
        if p.is_active[i] == 0 and p.scale[i] > 0.0:
            value = product(view(p.C, i * p.n), p.x, p.n)
            below = (p.low[i] - value) * p.scale[i]
            above = (value - p.high[i]) * p.scale[i]
            if below > most:
                most = below
                worst = i
                side = 1.0
            if above > most:
                most = above
                worst = i
                side = -1.0
    return worst, side


@procedure
def _take_in(p: Quadratic, row: int, sign: float) -> int:
    """Make a row active, and drop those that it takes the load off."""
    n = p.n
    c = view(p.C, row * n)
    force = 0.0
    while p.iterations <= 10 * (n + p.rows):
        p.iterations += 1
        whole, free = _directions(p, c, sign)
        full = _NEVER
        if free > _DEPENDENT * whole:
            bound = p.low[row] if sign > 0.0 else p.high[row]
            full = max(0.0, sign * (bound - product(c, p.x, n)) / free)
        part = _NEVER
        first = -1
        for i in range(p.count):
            if p.r[i] > 0.0 and p.u[i] < part * p.r[i]:
                part = p.u[i] / p.r[i]
                first = i
        if full >= _NEVER and first < 0:
            p.worst = row
            return INFEASIBLE
        t = min(full, part)
        add_multiple(p.u, -t, p.r, p.count)
        force += t
        if full < _NEVER:
            add_multiple(p.x, t, p.z, n)
        if full <= part:
            _add(p, row, sign, sqrt(free))
            p.u[p.count - 1] = force
            return FOUND
        _drop(p, first)
    return LOST


@procedure
def _directions(p: Quadratic, c: "float[:]", sign: float) -> "(float, float)":
    """The way ``z`` towards a row, and what it takes off the active ones, ``r``.

    Returns the squares of its normal, and of the part of it that the active rows leave free.
    """
    n = p.n
    q = p.count
    whole = 0.0
    free = 0.0
    for k in range(n):
        x = sign * product(view(p.J, k * n), c, n)
        p.d[k] = x
        p.z[k] = 0.0
        whole += x * x
        if k >= q:
            free += x * x
    for k in range(q, n):
        add_multiple(p.z, p.d[k], view(p.J, k * n), n)
    against(p, p.d)
    return whole, free


@procedure
def against(p: Quadratic, d: "float[:]") -> None:
    """``r = R⁻¹ d``."""
    for i in range(p.count):
        p.r[i] = d[i]
    for e in range(p.count):
        j = p.count - 1 - e
        x = p.r[j] / p.R[j * p.n + j]
        p.r[j] = x
        add_multiple(p.r, -x, view(p.R, j * p.n), j)


@procedure
def _add(p: Quadratic, row: int, sign: float, length: float) -> None:
    """Add a row to the factors, whose ``d`` and ``z`` are known, by a reflection."""
    n = p.n
    q = p.count
    top = -math.copysign(length, p.d[q])
    scale = 1.0 / (length * (length + abs(p.d[q])))
    first = view(p.J, q * n)
    for i in range(n):
        p.v[i] = p.z[i] - top * first[i]
    for i in range(q):
        p.R[q * n + i] = p.d[i]
    p.R[q * n + q] = top
    p.d[q] -= top
    for k in range(q, n):
        add_multiple(view(p.J, k * n), -scale * p.d[k], p.v, n)
    p.active[q] = row
    p.side[q] = sign
    p.is_active[row] = 1
    p.count = q + 1


@procedure
def _drop(p: Quadratic, k: int) -> None:
    """Take an active row out of the factors, by rotations."""
    n = p.n
    p.is_active[p.active[k]] = 0
    last = p.count - 1
    for j in range(k, last):
        p.active[j] = p.active[j + 1]
        p.side[j] = p.side[j + 1]
        p.u[j] = p.u[j + 1]
        for i in range(j + 2):
            p.R[j * n + i] = p.R[(j + 1) * n + i]
    for j in range(k, last):
        a = p.R[j * n + j]
        b = p.R[j * n + j + 1]
        length = sqrt(a * a + b * b)
        c = a / length
        s = b / length
        p.R[j * n + j] = length
        for m in range(j + 1, last):
            a = p.R[m * n + j]
            b = p.R[m * n + j + 1]
            p.R[m * n + j] = c * a + s * b
            p.R[m * n + j + 1] = c * b - s * a
        first = view(p.J, j * n)
        second = view(p.J, (j + 1) * n)
        for i in range(n):
            a = first[i]
            b = second[i]
            first[i] = c * a + s * b
            second[i] = c * b - s * a
    p.count = last


@procedure
def improve(p: Quadratic, gradient: "float[:]") -> float:
    """A step that removes a gradient of the Lagrangian, (n,); returns the size of the step.

    The active rows stay as they are; their multipliers change.
    """
    n = p.n
    for k in range(n):
        p.d[k] = product(view(p.J, k * n), gradient, n)
    size = 0.0
    for k in range(p.count, n):
        add_multiple(p.x, -p.d[k], view(p.J, k * n), n)
        size += p.d[k] * p.d[k]
    against(p, p.d)
    add_multiple(p.u, 1.0, p.r, p.count)
    return sqrt(size)
