# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Strictly convex quadratic programs by a dual active-set method, in compiled code.

D. Goldfarb, A. Idnani, "A numerically stable dual method for solving strictly convex quadratic
programs" (1983): from the minimum without constraints, one that is violated is added after the
other, and those that press the wrong way are dropped on the way. ``J`` and ``R`` are their factors,
``Jᵀ H J = 1`` and ``Jᵀ N = R`` for the normals ``N`` of active rows; a row is added by one
reflection. Rows that are expected to be active may be given: those that press the wrong way are
dropped first. Nothing is kept from call to call, so that results do not depend on earlier ones: to
begin with the rows that were active last did not save iterations.
"""

import math

from kinetree.codegen.procedures import isfinite, procedure, record, sqrt, view
from kinetree.control.tiles import add_row, clear, factor_rows, fill_inverse, pad, times_row

FOUND, INFEASIBLE, LOST = 0, 1, 2
"""Results: the minimum; no point meets the bounds; rounding errors or too many iterations."""

_TOLERANCE = 1e-9  # by which bounds may be exceeded, per length of their rows
_DEPENDENT = 1e-20  # square of the part of a normal that others leave of it
_DOUBTFUL = 1e-12  # the same, below which a row that is expected to be active is left out
_NEVER = 1e300


@record
class Quadratic:
    """Minimise ``xᵀ H x / 2 + gᵀ x`` subject to ``low <= C x <= high``.

    Vectors and rows of matrices are ``wide`` numbers long, zeros after the first ``n``.

    In:
        n, rows: numbers of unknowns and of constraints.  wide: ``pad(n)``.
        H: (n, wide), of which the upper half counts; overwritten by its factor.  g: (wide,).
        C: (rows, wide).  low, high: (rows,).
        scale: one over the lengths of the rows of ``C``, 0 for those that do not count, (rows,).
        guess: how many rows are expected to be active, the first of ``active`` and ``side``.

    Out:
        x: (wide,).  count: number of active rows;  active: which they are;
        side: 1 for those at their lower bound, -1 at the upper;  u: their multipliers.
        iterations: rows added and dropped.  worst: of an infeasible problem, a row that contradicts
            the active ones.

    Work:
        J, R: factors, by columns, (n, wide);  d, z, r, v: (wide,);  is_active: (rows,);
        near, nears: rows that were violated when all were looked at, and how many.
    """

    n: int
    wide: int
    rows: int
    H: "float[:]"
    g: "float[:]"
    C: "float[:]"
    low: "float[:]"
    high: "float[:]"
    scale: "float[:]"
    guess: int
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
    near: "int[:]"
    nears: int


@procedure
def minimum(p: Quadratic) -> int:
    """Solve a convex quadratic program by an active-set method, from the last active set."""
    if _begin(p) != 0:
        return LOST
    _take_guess(p)
    while p.iterations <= 10 * (p.n + p.rows):
        row, sign = _find_violation(p)
        if row < 0:
            return FOUND
        code = _take_in(p, row, sign)
        if code != FOUND:
            return code
    return LOST


@procedure
def _begin(p: Quadratic) -> int:
    """Factorise ``H`` and find the unconstrained minimum; 0, or 1 if ``H`` is not positive."""
    n = p.n
    wide = p.wide
    p.count = 0
    p.iterations = 0
    p.nears = 0
    for i in range(p.rows):
        p.is_active[i] = 0
    if factor_rows(p.H, n, wide) != 0:
        return 1
    fill_inverse(p.H, n, wide, p.J)
    clear(p.x, wide)
    clear(p.u, wide)
    for k in range(n):
        row = view(p.J, k * wide)
        add_row(p.x, -times_row(row, p.g, wide), row, wide)
    return 0 if isfinite(times_row(p.x, p.x, wide)) else 1


@procedure
def _take_guess(p: Quadratic) -> None:
    """Activate the guessed constraints, then drop those whose multipliers have the wrong sign."""
    wide = p.wide
    for i in range(p.guess):
        row, sign = p.active[i], p.side[i]
        c = view(p.C, row * wide)
        whole, free = _directions(p, c, sign)
        if p.scale[row] > 0.0 and free > _DOUBTFUL * whole:
            t = sign * (_bound_at(p, row, sign) - times_row(c, p.x, wide)) / free
            add_row(p.u, -t, p.r, wide)
            add_row(p.x, t, p.z, wide)
            _add(p, row, sign, sqrt(free))
            p.u[p.count - 1] = t
            p.iterations += 1
    worst = 0
    while worst >= 0:
        worst = -1
        least = 0.0
        for i in range(p.count):
            if p.u[i] < least:
                least = p.u[i]
                worst = i
        if worst >= 0:
            row, force = p.active[worst], p.side[worst] * least
            _drop(p, worst)
            clear(p.v, wide)
            add_row(p.v, force, view(p.C, row * wide), wide)
            improve(p, p.v)
            p.iterations += 1


@procedure(inline=True)
def _bound_at(p: Quadratic, row: int, sign: float) -> float:
    """Bound of a constraint at its lower (``sign`` 1) or upper side."""
    return p.low[row] if sign > 0.0 else p.high[row]


@procedure
def _find_violation(p: Quadratic) -> "(int, float)":
    """A violated constraint, or -1, and the side: 1.0 at its lower bound, -1.0 at the upper.

    The worst of those that were when all rows were looked at; once none of them is, the worst.
    """
    worst = -1
    most = _TOLERANCE
    for k in range(p.nears):
        excess = _excess(p, p.near[k])
        if abs(excess) > most:
            most = abs(excess)
            worst = p.near[k]
    if worst < 0:
        p.nears = 0
        for i in range(p.rows):
            excess = _excess(p, i)
            if abs(excess) > _TOLERANCE:
                p.near[p.nears] = i
                p.nears += 1
                if abs(excess) > most:
                    most = abs(excess)
                    worst = i
    side = 1.0
    if worst >= 0 and _excess(p, worst) > 0.0:
        side = -1.0
    return worst, side


@procedure(inline=True)
def _excess(p: Quadratic, row: int) -> float:
    """Violation of a constraint relative to its norm; 0 within bounds and for active ones."""
    excess = 0.0
    if p.is_active[row] == 0 and p.scale[row] > 0.0:
        value = times_row(view(p.C, row * p.wide), p.x, p.wide)
        excess = max(value - p.high[row], 0.0) + min(value - p.low[row], 0.0)
    return excess * p.scale[row]


@procedure
def _take_in(p: Quadratic, row: int, sign: float) -> int:
    """Add a constraint to the active set, and drop those whose multipliers become zero."""
    wide = p.wide
    c = view(p.C, row * wide)
    force = 0.0
    while p.iterations <= 10 * (p.n + p.rows):
        p.iterations += 1
        whole, free = _directions(p, c, sign)
        full = _NEVER
        if free > _DEPENDENT * whole:
            full = max(0.0, sign * (_bound_at(p, row, sign) - times_row(c, p.x, wide)) / free)
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
        add_row(p.u, -t, p.r, wide)
        force += t
        if full < _NEVER:
            add_row(p.x, t, p.z, wide)
        if full <= part:
            _add(p, row, sign, sqrt(free))
            p.u[p.count - 1] = force
            return FOUND
        _drop(p, first)
    return LOST


@procedure
def _directions(p: Quadratic, c: "float[:]", sign: float) -> "(float, float)":
    """Step direction ``z`` toward a constraint, and the change ``r`` of the active multipliers.

    Returns the squares of its normal, and of the part of it that the active rows leave free.
    """
    n = p.n
    q = p.count
    wide = p.wide
    whole = 0.0
    free = 0.0
    clear(p.z, wide)
    for k in range(n):
        x = sign * times_row(view(p.J, k * wide), c, wide)
        p.d[k] = x
        whole += x * x
        if k >= q:
            free += x * x
            add_row(p.z, x, view(p.J, k * wide), wide)
    against(p, p.d)
    return whole, free


@procedure
def against(p: Quadratic, d: "float[:]") -> None:
    """Solve ``R r = d`` with the triangular factor of the active set."""
    clear(p.r, p.wide)
    for i in range(p.count):
        p.r[i] = d[i]
    for e in range(p.count):
        j = p.count - 1 - e
        column = view(p.R, j * p.wide)
        x = p.r[j] / column[j]
        add_row(p.r, -x, column, pad(j + 1))
        p.r[j] = x


@procedure
def _add(p: Quadratic, row: int, sign: float, length: float) -> None:
    """Add a constraint to the QR factors of the active set, by a reflection."""
    q = p.count
    wide = p.wide
    top = -math.copysign(length, p.d[q])
    scale = 1.0 / (length * (length + abs(p.d[q])))
    first = view(p.J, q * wide)
    for c in range(0, wide, 8):
        own = view(p.v, c, 8)
        own[0:8] = view(p.z, c, 8) - top * view(first, c, 8)
    column = view(p.R, q * wide)
    clear(column, wide)
    for i in range(q):
        column[i] = p.d[i]
    column[q] = top
    p.d[q] -= top
    for k in range(q, p.n):
        add_row(view(p.J, k * wide), -scale * p.d[k], p.v, wide)
    p.active[q] = row
    p.side[q] = sign
    p.is_active[row] = 1
    p.count = q + 1


@procedure
def _drop(p: Quadratic, k: int) -> None:
    """Remove an active constraint from the QR factors, by rotations."""
    wide = p.wide
    p.is_active[p.active[k]] = 0
    last = p.count - 1
    for j in range(k, last):
        p.active[j] = p.active[j + 1]
        p.side[j] = p.side[j + 1]
        p.u[j] = p.u[j + 1]
        for i in range(j + 2):
            p.R[j * wide + i] = p.R[(j + 1) * wide + i]
    p.u[last] = 0.0
    for j in range(k, last):
        a = p.R[j * wide + j]
        b = p.R[j * wide + j + 1]
        length = sqrt(a * a + b * b)
        c = a / length
        s = b / length
        p.R[j * wide + j] = length
        p.R[j * wide + j + 1] = 0.0
        for m in range(j + 1, last):
            a = p.R[m * wide + j]
            b = p.R[m * wide + j + 1]
            p.R[m * wide + j] = c * a + s * b
            p.R[m * wide + j + 1] = c * b - s * a
        rotate(view(p.J, j * wide), view(p.J, (j + 1) * wide), c, s, wide)
    p.count = last


@procedure(inline=True)
def rotate(a: "float[:]", b: "float[:]", c: float, s: float, width: int) -> None:
    """Rotate two rows in their plane, by the cosine and sine of an angle."""
    for i in range(0, width, 8):
        first = view(a, i, 8)
        second = view(b, i, 8)
        x = c * first + s * second
        second[0:8] = c * second - s * first
        first[0:8] = x


@procedure
def improve(p: Quadratic, gradient: "float[:]") -> float:
    """Refine the minimum by a Newton step against a residual gradient; returns the step's size.

    The active rows stay as they are; their multipliers change.
    """
    wide = p.wide
    size = 0.0
    for k in range(p.n):
        row = view(p.J, k * wide)
        x = times_row(row, gradient, wide)
        p.d[k] = x
        if k >= p.count:
            add_row(p.x, -x, row, wide)
            size += x * x
    against(p, p.d)
    add_row(p.u, 1.0, p.r, wide)
    return sqrt(size)
