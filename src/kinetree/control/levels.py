# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Least squares in the order of their priorities, within equations and bounds, in compiled code.

The meaning is that of ``lexicographic.minimize``. The equations are eliminated first; the unknowns
that stay free move in ``x + Z y``, and ``Z`` contains a unit matrix, so that rows of tasks and
bounds with few numbers stay short. Each level is a small dense program for ``active_set``. Further
levels move in what the tasks and active bounds of the levels before leave: these are eliminated in
the same way (A. Escande, N. Mansard, P.-B. Wieber, "Hierarchical quadratic programming", 2014).
"""

import numpy as np

from kinetree.codegen.procedures import procedure, record, sqrt, view
from kinetree.contact.newton.cholesky import take
from kinetree.control.active_set import (
    FOUND,
    LOST,
    Quadratic,
    add_multiple,
    improve,
    minimum,
    product,
)
from kinetree.control.elimination import basis, eliminate

CONTRADICTION = 3
"""The equations contradict each other; other results are those of ``active_set``."""

_HELD = 1e-7  # how well equations hold, per size of what they consist of
_STUCK = 1e-10  # part of a row's length that rounding leaves of it in a null space
_PRESSED = 1e-6  # of the gradient of the level, or of the largest multiplier
_FIRST = 1e-9  # damping of levels that others follow, of the largest curvature
_ACCURATE = 1e-9  # last correction of the unknowns, relative to them


@record
class Levels:
    """Minimise weighted ``|A x - b|²`` level by level, subject to ``E x = e`` and bounds.

    In:
        n, equations, tasks, bounds: numbers of unknowns and rows.  levels: how many.
        E: equations with their right-hand sides, (equations, n + 1); overwritten.
        A: (tasks, n).  b, root: right-hand sides, and roots of weights, (tasks,).
        level: of each task from 0, -1 for those that are left out, (tasks,).
        G: (bounds, n).  low, high: (bounds,).
        damping: weights of ``x²`` beside the last level, (n,).
        program: for the small programs.

    Out:
        x: (n,).  iterations: of the active-set method.
        accuracy: size of the last correction, relative to the unknowns.

    Work:
        Z: (n, n);  AZ, Ax: of the tasks, weighted, the latter less ``b``;  Gx: values of bounds;
        size, length: of equations and bounds;  pivot, free_at: numbers;
        M, rest: stacked rows of a level and their values;  W: a matrix like ``E`` of a level;
        diagonal, toward: of unknowns that appear alone, as weights and gradients.
    """

    n: int
    equations: int
    tasks: int
    bounds: int
    levels: int
    E: "float[:]"
    A: "float[:]"
    b: "float[:]"
    root: "float[:]"
    level: "int[:]"
    G: "float[:]"
    low: "float[:]"
    high: "float[:]"
    damping: "float[:]"
    program: Quadratic
    x: "float[:]"
    iterations: int
    accuracy: float
    Z: "float[:]"
    AZ: "float[:]"
    Ax: "float[:]"
    Gx: "float[:]"
    size: "float[:]"
    length: "float[:]"
    pivot: "int[:]"
    free_at: "int[:]"
    M: "float[:]"
    rest: "float[:]"
    W: "float[:]"
    diagonal: "float[:]"
    spare: "float[:]"


@procedure
def solve_levels(p: Levels) -> int:
    """Find the solution: a code of ``active_set``, or ``CONTRADICTION``."""
    q = p.program
    p.iterations = 0
    p.accuracy = 0.0
    code = _eliminate_equations(p)
    if code != FOUND:
        return code
    _project(p)
    for level in range(p.levels):
        last = level == p.levels - 1
        stacked = _stack(p, level, last)
        _normal_equations(p, stacked, last)
        if _bound(p, level) != 0:
            return 1
        code = minimum(q)
        p.iterations += q.iterations
        if code != FOUND:
            return code
        _polish(p, stacked)
        _move(p)
        if not p.accuracy <= _ACCURATE:
            return LOST
        if not last:
            _narrow(p, level)
            if q.n == 0:
                break
    return FOUND


@procedure
def _eliminate_equations(p: Levels) -> int:
    """A solution of the equations, and the directions ``Z`` that they leave."""
    wide = p.n + 1
    for i in range(p.equations):
        row = view(p.E, i * wide)
        most = 0.0
        for j in range(p.n):
            most = max(most, abs(row[j]))
        p.size[i] = most
        p.rest[i] = abs(row[p.n])
    eliminate(p.E, p.equations, p.n, p.size, p.pivot)
    p.program.n = basis(p.E, p.equations, p.n, p.pivot, p.free_at, p.Z)
    for j in range(p.n):
        p.x[j] = 0.0
    largest = 1.0
    for i in range(p.equations):
        if p.pivot[i] >= 0:
            p.x[p.pivot[i]] = p.E[i * wide + p.n]
            largest = max(largest, abs(p.x[p.pivot[i]]))
    for i in range(p.equations):
        if p.pivot[i] < 0:
            wrong = abs(p.E[i * wide + p.n])
            if wrong > _HELD * (p.rest[i] + p.size[i] * largest):
                return CONTRADICTION
    return FOUND


@procedure
def _times_basis(p: Levels, row: "float[:]", out: "float[:]") -> float:
    """The product of a row with ``Z``, short where the row is; returns that with ``x``."""
    n = p.program.n
    value = 0.0
    for k in range(n):
        out[k] = 0.0
    for j in range(p.n):
        a = row[j]
        if a != 0.0:
            value += a * p.x[j]
            if p.free_at[j] >= 0:
                out[p.free_at[j]] += a
            else:
                add_multiple(out, a, view(p.Z, j * n), n)
    return value


@procedure
def _project(p: Levels) -> None:
    """Rows of tasks and bounds in the directions ``Z``, and their values."""
    n = p.program.n
    q = p.program
    for i in range(p.tasks):
        if p.level[i] >= 0:
            out = view(p.AZ, i * n)
            value = _times_basis(p, view(p.A, i * p.n), out)
            w = p.root[i]
            p.Ax[i] = w * (value - p.b[i])
            for k in range(n):
                out[k] *= w
    for i in range(p.bounds):
        out = view(q.C, i * n)
        p.Gx[i] = _times_basis(p, view(p.G, i * p.n), out)
        row = view(p.G, i * p.n)
        p.length[i] = sqrt(product(row, row, p.n))


@procedure
def _stack(p: Levels, level: int, last: bool) -> int:
    """Stack the rows of a level, and its damping, on top of each other: how many.

    Unknowns that a row contains alone go to the diagonal.
    """
    n = p.program.n
    count = 0
    for k in range(n):
        p.diagonal[k] = 0.0
        p.program.g[k] = 0.0
    for i in range(p.tasks):
        if p.level[i] == level:
            count = _stack_row(p, view(p.AZ, i * n), 1.0, p.Ax[i], count)
    if last:
        for j in range(p.n):
            w = sqrt(p.damping[j])
            if level == 0 and p.free_at[j] >= 0:
                p.diagonal[p.free_at[j]] += p.damping[j]
            else:
                count = _stack_row(p, view(p.Z, j * n), w, w * p.x[j], count)
    return count


@procedure
def _stack_row(p: Levels, row: "float[:]", w: float, value: float, count: int) -> int:
    """Put a row onto the stack: how many there are then."""
    n = p.program.n
    alone = -1
    several = 0
    for k in range(n):
        if row[k] != 0.0:
            alone = k
            several += 1
    if several == 1:
        a = w * row[alone]
        p.diagonal[alone] += a * a
        p.program.g[alone] += a * value
        return count
    out = view(p.M, count * n)
    for k in range(n):
        out[k] = w * row[k]
    p.rest[count] = value
    return count + 1


@procedure
def _normal_equations(p: Levels, stacked: int, last: bool) -> None:
    """``H`` and ``g`` of a level from the stack; levels that others follow get some damping."""
    q = p.program
    n = q.n
    for i in range(n * n):
        q.H[i] = 0.0
    i = 0
    while i < n:
        rows = min(6, n - i)
        take(view(q.H, i * n + i), n, view(p.M, i), n, view(p.M, i), n, stacked, rows, n - i)
        i += 6
    for k in range(n * n):
        q.H[k] = -q.H[k]
    for m in range(stacked):
        add_multiple(q.g, p.rest[m], view(p.M, m * n), n)
    largest = 0.0
    for k in range(n):
        q.H[k * n + k] += p.diagonal[k]
        largest = max(largest, q.H[k * n + k])
    if not last:
        floor = _FIRST * largest if largest > 0.0 else 1.0
        for k in range(n):
            q.H[k * n + k] += floor
            p.diagonal[k] += floor


@procedure
def _bound(p: Levels, level: int) -> int:
    """Bounds of the directions; after the first level ``x`` is within them, up to rounding.

    Returns 1 where a row that the equations determine is out of bounds.
    """
    q = p.program
    n = q.n
    for i in range(p.bounds):
        low = p.low[i] - p.Gx[i]
        high = p.high[i] - p.Gx[i]
        if level > 0:
            low = min(low, 0.0)
            high = max(high, 0.0)
        row = view(q.C, i * n)
        length = sqrt(product(row, row, n))
        if length > _STUCK * p.length[i]:
            q.scale[i] = 1.0 / length
        else:
            q.scale[i] = 0.0
            if low > _HELD * (1.0 + abs(p.Gx[i])) or high < -_HELD * (1.0 + abs(p.Gx[i])):
                q.worst = i
                return 1
        q.low[i] = low
        q.high[i] = high
    return 0


@procedure
def _polish(p: Levels, stacked: int) -> None:
    """Remove what rounding left of the gradient of the Lagrangian; how much is the accuracy."""
    q = p.program
    n = q.n
    for k in range(n):
        p.spare[k] = p.diagonal[k] * q.x[k]
    for m in range(stacked):
        row = view(p.M, m * n)
        add_multiple(p.spare, product(row, q.x, n), row, n)
    add_multiple(p.spare, 1.0, q.g, n)
    for i in range(q.count):
        add_multiple(p.spare, -q.side[i] * q.u[i], view(q.C, q.active[i] * n), n)
    before = sqrt(product(q.g, q.g, n))
    left = sqrt(product(p.spare, p.spare, n))
    improve(q, p.spare)
    if before > 0.0:
        p.accuracy = max(p.accuracy, left / before)


@procedure
def _move(p: Levels) -> None:
    """Take the step of a level."""
    q = p.program
    n = q.n
    for j in range(p.n):
        p.x[j] += product(view(p.Z, j * n), q.x, n)
    for i in range(p.tasks):
        if p.level[i] >= 0:
            p.Ax[i] += product(view(p.AZ, i * n), q.x, n)
    for i in range(p.bounds):
        p.Gx[i] += product(view(q.C, i * n), q.x, n)


@procedure
def _narrow(p: Levels, level: int) -> None:
    """Leave the directions that change neither tasks of this level nor bounds that it presses on.

    Rows with a multiplier are active at every minimum: what follows may treat them as equations.
    """
    q = p.program
    n = q.n
    wide = n + 1
    rows = 0
    for i in range(p.tasks):
        if p.level[i] == level:
            rows = _equation(
                p, rows, view(p.AZ, i * n), p.root[i] * _longest(view(p.A, i * p.n), p.n)
            )
    most = sqrt(product(q.g, q.g, n))  # damping alone makes multipliers of 1e-9 of that
    for i in range(q.count):
        most = max(most, q.u[i] / q.scale[q.active[i]])
    for i in range(q.count):
        k = q.active[i]
        if q.u[i] / q.scale[k] > _PRESSED * most:
            rows = _equation(p, rows, view(q.C, k * n), p.length[k])
    eliminate(p.W, rows, n, p.size, p.pivot)
    Y = view(p.W, rows * wide)
    count = basis(p.W, rows, n, p.pivot, p.free_at, Y)
    for j in range(p.n):
        _shorten(p, view(p.Z, j * n), view(p.Z, j * count), Y, n, count)
    for i in range(p.tasks):
        _shorten(p, view(p.AZ, i * n), view(p.AZ, i * count), Y, n, count)
    for i in range(p.bounds):
        _shorten(p, view(q.C, i * n), view(q.C, i * count), Y, n, count)
    q.n = count


@procedure
def _longest(row: "float[:]", n: int) -> float:
    """The largest number of a row."""
    most = 0.0
    for j in range(n):
        most = max(most, abs(row[j]))
    return most


@procedure
def _equation(p: Levels, rows: int, row: "float[:]", size: float) -> int:
    """Add an equation for the directions: how many there are then."""
    n = p.program.n
    out = view(p.W, rows * (n + 1))
    for k in range(n):
        out[k] = row[k]
    out[n] = 0.0
    p.size[rows] = size
    return rows + 1


@procedure
def _shorten(
    p: Levels, row: "float[:]", out: "float[:]", Y: "float[:]", n: int, count: int
) -> None:
    """The product of a row with ``Y``; it may overwrite the row, or what is before it."""
    for k in range(count):
        p.spare[k] = 0.0
    for j in range(n):
        if row[j] != 0.0:
            add_multiple(p.spare, row[j], view(Y, j * count), count)
    for k in range(count):
        out[k] = p.spare[k]


def workspace(n: int, equations: int, tasks: int, bounds: int, **given) -> Levels:
    """Arrays for problems of these sizes; ``given`` are those that exist already."""
    most = tasks + n
    program = Quadratic(
        rows=bounds,
        **{name: np.zeros(n * n) for name in ("H", "J", "R")},
        **{name: np.zeros(n) for name in ("g", "x", "u", "d", "z", "r", "v", "side")},
        **{name: np.zeros(bounds) for name in ("low", "high", "scale")},
        C=np.zeros(bounds * n),
        active=np.zeros(n + 1, int),
        is_active=np.zeros(bounds, int),
    )
    shapes = {
        "E": equations * (n + 1),
        "A": tasks * n,
        "b": tasks,
        "root": tasks,
        "G": bounds * n,
        "low": bounds,
        "high": bounds,
        "damping": n,
        "x": n,
        "Z": n * n,
        "AZ": tasks * n,
        "Ax": tasks,
        "Gx": bounds,
        "size": max(equations, most),
        "length": bounds,
        "M": most * n,
        "rest": max(equations, most),
        "W": most * (n + 1) + n * n,
        "diagonal": n,
        "spare": n,
    }
    arrays = {name: np.zeros(size) for name, size in shapes.items() if name not in given}
    numbers = {"level": tasks, "pivot": max(equations, most), "free_at": n}
    arrays |= {name: np.zeros(size, int) for name, size in numbers.items() if name not in given}
    return Levels(
        n=n,
        equations=equations,
        tasks=tasks,
        bounds=bounds,
        levels=1,
        program=program,
        **arrays,
        **given,
    )
