# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Least squares in the order of their priorities, within equations and bounds, in compiled code.

The meaning is that of ``lexicographic.minimize``. The equations are eliminated first; the unknowns
that stay free move in ``x + Z y``, and ``Z`` contains a unit matrix, so that rows of tasks and
bounds with few numbers stay short. Tasks of all levels but the last are tried as equations first:
where these can be met within the bounds, one program is left. Otherwise each level is a small dense
program for ``active_set``; further levels move in what the tasks and active bounds of the levels
before leave: these are eliminated in the same way (A. Escande, N. Mansard, P.-B. Wieber,
"Hierarchical quadratic programming", 2014), and begin with the bounds that are active by then.
"""

import numpy as np

from kinetree.codegen.procedures import procedure, record, sqrt, view
from kinetree.control.active_set import FOUND, INFEASIBLE, LOST, Quadratic, improve, minimum
from kinetree.control.elimination import basis, eliminate, find_free
from kinetree.control.tiles import (
    add_row,
    clear,
    pad,
    pad_to_eight,
    product,
    subtract,
    subtract_square,
    times_row,
)

CONTRADICTION = 3
"""The equations contradict each other; other results are those of ``active_set``."""

_HELD = 1e-7  # how well equations hold, per size of what they consist of
_STUCK = 1e-10  # part of a row's length that rounding leaves of it in a null space
_CLEAR = 1e5  # times the rank's tolerance: what a task must leave of itself to be an equation
_PRESSED = 1e-6  # of the gradient of the level, or of the largest multiplier
_FIRST = 1e-9  # damping of levels that others follow, of the largest curvature
_ACCURATE = 1e-9  # last correction of the unknowns, relative to them


@record
class Levels:
    """Minimise weighted ``|A x - b|²`` level by level, subject to ``E x = e`` and bounds.

    In:
        n, equations, tasks, bounds: numbers of unknowns and rows.  levels: how many.
        E: equations with their right-hand sides, (equations, n + 1).
        A: (tasks, n).  b, root: right-hand sides, and roots of weights, (tasks,).
        level: of each task from 0, -1 for those that are left out, (tasks,).
        G: (bounds, n).  low, high: (bounds,).
        damping: weights of ``x²`` beside the last level, (n,).
        hopeful: whether it is tried first to meet all levels but the last exactly.
        program: for the small programs.

    Out:
        x: (n,).  iterations: of the active-set method.
        accuracy: size of the last correction, relative to the unknowns.

    Work, of matrices with rows of ``program.wide`` numbers:
        Z: of the unknowns;  AZ, Ax: of the tasks, weighted, the latter less ``b``;  Gx: values of
        bounds;  size, length: of equations and bounds;  pivot, free_at, free: numbers;
        M, rest: stacked rows of a level and their values;  W: a matrix like ``E``, with rows of
        ``pad(n + 1)`` numbers, and room after it;  kept: its first rows;
        diagonal: weights of unknowns that appear alone.
    """

    n: int
    equations: int
    tasks: int
    bounds: int
    levels: int
    hopeful: bool
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
    free: "int[:]"
    M: "float[:]"
    rest: "float[:]"
    W: "float[:]"
    kept: "float[:]"
    diagonal: "float[:]"
    spare: "float[:]"


@procedure
def solve_levels(p: Levels) -> int:
    """Solve a lexicographic least-squares problem; a code of ``active_set`` or CONTRADICTION."""
    p.iterations = 0
    p.accuracy = 0.0
    p.program.guess = 0
    code = _eliminate_equations(p)
    if code != FOUND:
        return code
    if p.hopeful and p.levels > 1:
        if _meet_exactly(p) == FOUND:
            return FOUND
        p.accuracy = 0.0
    _free_directions(p, p.equations)
    _project(p)
    for level in range(p.levels):
        code = _solve_level(p, level, level == 0)
        if code != FOUND:
            return code
        if level < p.levels - 1:
            _narrow(p, level)
            if p.program.n == 0:
                break
    return FOUND


@procedure
def _meet_exactly(p: Levels) -> int:
    """Solve the last level with all others as equations, if possible; a result code.

    Then no program is needed for these. Another code than ``FOUND``: it is not, or not without
    accelerations that are large for what they achieve. Rows that were active by then are a guess.
    """
    rows, last, long = p.equations, p.levels - 1, p.equations * pad(p.n + 1)
    for i in range(p.tasks):
        if 0 <= p.level[i] < last and p.root[i] > 0.0:
            rows += 1
    if rows > p.n:
        return CONTRADICTION
    p.kept[:long] = p.W[:long]
    rows = p.equations
    for i in range(p.tasks):
        if 0 <= p.level[i] < last and p.root[i] > 0.0:
            _write_row(p, rows, view(p.A, i * p.n), p.b[i])
            p.size[rows] *= _CLEAR
            rows += 1
    code = CONTRADICTION
    if eliminate(p.W, p.equations, rows, p.n, p.size, p.pivot, False) == rows:
        _free_directions(p, rows)
        _project(p)
        code = _solve_level(p, last, True)
        p.program.guess = p.program.count
    p.W[:long] = p.kept[:long]
    return code


@procedure
def _solve_level(p: Levels, level: int, first: bool) -> int:
    """Solve one level and take its step; ``first`` if ``x`` may violate bounds. Result code."""
    q = p.program
    last = level == p.levels - 1
    stacked = _stack(p, level, last, first)
    _normal_equations(p, stacked, last)
    if _bound_directions(p, first) != 0:
        return INFEASIBLE
    code = minimum(q)
    p.iterations += q.iterations
    if code != FOUND:
        return code
    _polish(p, stacked)
    _move(p, level)
    return FOUND if p.accuracy <= _ACCURATE else LOST


@procedure
def _eliminate_equations(p: Levels) -> int:
    """Eliminate the equations, with null space ``Z``; CONTRADICTION if unsolvable."""
    wide, largest = pad(p.n + 1), 1.0
    for i in range(p.equations):
        source = view(p.E, i * (p.n + 1))
        _write_row(p, i, source, source[p.n])
    eliminate(p.W, 0, p.equations, p.n, p.size, p.pivot, True)
    for i in range(p.equations):
        if p.pivot[i] >= 0:
            largest = max(largest, abs(p.W[i * wide + p.n]))
    for i in range(p.equations):
        if p.pivot[i] < 0:
            wrong = abs(p.W[i * wide + p.n])
            if wrong > _HELD * (p.rest[i] + p.size[i] * largest):
                return CONTRADICTION
    return FOUND


@procedure
def _free_directions(p: Levels, rows: int) -> None:
    """Particular solution ``x`` of the eliminated rows, and null-space directions ``Z``."""
    p.program.n = find_free(rows, p.n, p.pivot, p.free_at, p.free)
    p.program.wide = pad(p.program.n)
    basis(p.W, rows, p.n, p.pivot, p.free, p.program.n, p.Z)
    for j in range(p.n):
        p.x[j] = 0.0
    for i in range(rows):
        if p.pivot[i] >= 0:
            p.x[p.pivot[i]] = p.W[i * pad(p.n + 1) + p.n]


@procedure
def _write_row(p: Levels, i: int, source: "float[:]", right: float) -> None:
    """Write an equation into row ``i`` of ``W``, with its norm and right-hand side."""
    row = view(p.W, i * pad(p.n + 1))
    clear(row, pad(p.n + 1))
    for j in range(p.n):
        row[j] = source[j]
    row[p.n] = right
    p.size[i] = sqrt(product(source, source, p.n))
    p.rest[i] = abs(right)


@procedure
def _times_basis(p: Levels, row: "float[:]", out: "float[:]") -> float:
    """Write the product of a row with ``Z`` to ``out``; returns the row's product with ``x``."""
    wide = p.program.wide
    value = 0.0
    clear(out, wide)
    for j in range(p.n):
        a = row[j]
        if a != 0.0:
            value += a * p.x[j]
            if p.free_at[j] >= 0:
                out[p.free_at[j]] += a
            else:
                add_row(out, a, view(p.Z, j * wide), wide)
    return value


@procedure
def _project(p: Levels) -> None:
    """Project rows of tasks and bounds onto the directions ``Z``, with their values at ``x``."""
    q = p.program
    for i in range(p.tasks):
        if p.level[i] >= 0:
            out = view(p.AZ, i * q.wide)
            value = _times_basis(p, view(p.A, i * p.n), out)
            w = p.root[i]
            p.Ax[i] = w * (value - p.b[i])
            for k in range(q.n):
                out[k] *= w
    for i in range(p.bounds):
        row = view(p.G, i * p.n)
        p.Gx[i] = _times_basis(p, row, view(q.C, i * q.wide))
        p.length[i] = sqrt(product(row, row, p.n))


@procedure
def _stack(p: Levels, level: int, last: bool, first: bool) -> int:
    """Stack the rows of a level and its damping for normal equations; number of rows.

    Unknowns that a row contains alone go to the diagonal.
    """
    wide = p.program.wide
    count = 0
    clear(p.diagonal, wide)
    clear(p.program.g, wide)
    for i in range(p.tasks):
        if p.level[i] == level:
            count = _stack_row(p, view(p.AZ, i * wide), 1.0, p.Ax[i], count)
    if last:
        for j in range(p.n):
            w = sqrt(p.damping[j])
            if first and p.free_at[j] >= 0:
                p.diagonal[p.free_at[j]] += p.damping[j]
            else:
                count = _stack_row(p, view(p.Z, j * wide), w, w * p.x[j], count)
    return count


@procedure
def _stack_row(p: Levels, row: "float[:]", w: float, value: float, count: int) -> int:
    """Append a weighted row to the stack, or to its diagonal; number of rows then."""
    n, wide = p.program.n, p.program.wide
    alone = -1
    several = 0
    k = 0
    while k < n and several < 2:
        if row[k] != 0.0:
            alone = k
            several += 1
        k += 1
    if several == 1:
        a = w * row[alone]
        p.diagonal[alone] += a * a
        p.program.g[alone] += a * value
        return count
    out = view(p.M, count * wide)
    clear(out, wide)
    add_row(out, w, row, wide)
    p.rest[count] = value
    return count + 1


@procedure
def _normal_equations(p: Levels, stacked: int, last: bool) -> None:
    """Normal equations ``H``, ``g`` of a level from the stack, regularised unless it is last."""
    q = p.program
    n, wide = q.n, q.wide
    clear(q.H, n * wide)
    subtract_square(q.H, wide, p.M, p.M, stacked, 0, n)
    for c in range(0, n * wide, 8):
        own = view(q.H, c, 8)
        own[0:8] = -1.0 * own
    for m in range(stacked):
        add_row(q.g, p.rest[m], view(p.M, m * wide), wide)
    largest = 0.0
    for k in range(n):
        q.H[k * wide + k] += p.diagonal[k]
        largest = max(largest, q.H[k * wide + k])
    if not last:
        floor = _FIRST * largest if largest > 0.0 else 1.0
        for k in range(n):
            q.H[k * wide + k] += floor
            p.diagonal[k] += floor


@procedure
def _bound_directions(p: Levels, first: bool) -> int:
    """Set the bounds of directions; unless ``first``, ``x`` counts as feasible.

    Returns 1 where a row that the equations determine is out of bounds.
    """
    q = p.program
    for i in range(p.bounds):
        low = p.low[i] - p.Gx[i]
        high = p.high[i] - p.Gx[i]
        if not first:
            low = min(low, 0.0)
            high = max(high, 0.0)
        row = view(q.C, i * q.wide)
        length = sqrt(times_row(row, row, q.wide))
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
    """Refine the solution against the gradient of the Lagrangian; returns the accuracy."""
    q = p.program
    wide = q.wide
    clear(p.spare, wide)
    add_row(p.spare, 1.0, q.g, wide)
    for k in range(q.n):
        p.spare[k] += p.diagonal[k] * q.x[k]
    for m in range(stacked):
        row = view(p.M, m * wide)
        add_row(p.spare, times_row(row, q.x, wide), row, wide)
    for i in range(q.count):
        add_row(p.spare, -q.side[i] * q.u[i], view(q.C, q.active[i] * wide), wide)
    before = sqrt(times_row(q.g, q.g, wide))
    left = sqrt(times_row(p.spare, p.spare, wide))
    improve(q, p.spare)
    if before > 0.0:
        p.accuracy = max(p.accuracy, left / before)


@procedure
def _move(p: Levels, level: int) -> None:
    """Move ``x`` along the step of a level, which leaves higher levels unchanged."""
    q = p.program
    wide = q.wide
    for j in range(p.n):
        p.x[j] += times_row(view(p.Z, j * wide), q.x, wide)
    for i in range(p.tasks):
        if p.level[i] >= level:
            p.Ax[i] += times_row(view(p.AZ, i * wide), q.x, wide)
    for i in range(p.bounds):
        p.Gx[i] += times_row(view(q.C, i * wide), q.x, wide)


@procedure
def _narrow(p: Levels, level: int) -> None:
    """Restrict the directions to those that change neither this level nor its active bounds.

    Rows with a multiplier are active at every minimum: what follows may treat them as equations.
    """
    q = p.program
    n, wide = q.n, q.wide
    rows = 0
    for i in range(p.tasks):
        if p.level[i] == level:
            row = view(p.A, i * p.n)
            size = p.root[i] * sqrt(product(row, row, p.n))
            rows = _add_equation(p, rows, view(p.AZ, i * wide), size)
    most = sqrt(times_row(q.g, q.g, wide))  # damping alone makes multipliers of 1e-9 of that
    for i in range(q.count):
        most = max(most, q.u[i] / q.scale[q.active[i]])
    q.guess = 0
    for i in range(q.count):
        k = q.active[i]
        if q.u[i] / q.scale[k] > _PRESSED * most:
            rows = _add_equation(p, rows, view(q.C, k * wide), p.length[k])
        else:
            q.active[q.guess] = k
            q.side[q.guess] = q.side[i]
            q.guess += 1
    eliminate(p.W, 0, rows, n, p.size, p.pivot, True)
    count = find_free(rows, n, p.pivot, p.free_at, p.free)
    Y = view(p.W, rows * pad(n + 1))
    depth = _keep_pivots(p, rows, n, count, Y)
    _shorten(p, p.Z, 0, p.n, Y, depth, count)
    _shorten(p, q.C, 0, p.bounds, Y, depth, count)
    first = 0
    while first < p.tasks:  # those of later levels
        end = first
        while end < p.tasks and p.level[end] > level:
            end += 1
        _shorten(p, p.AZ, first, end, Y, depth, count)
        first = end + 1
    q.n = count
    q.wide = pad(count)


@procedure
def _keep_pivots(p: Levels, rows: int, n: int, count: int, Y: "float[:]") -> int:
    """Copy pivot rows of ``W`` in the free unknowns to ``Y``; number of pivots."""
    wide, depth = pad(count), 0
    for i in range(rows):
        if p.pivot[i] >= 0:
            row = view(p.W, i * pad(n + 1))
            out = view(Y, depth * wide)
            clear(out, wide)
            for k in range(count):
                out[k] = row[p.free[k]]
            p.pivot[depth] = p.pivot[i]
            depth += 1
    return depth


@procedure
def _add_equation(p: Levels, rows: int, row: "float[:]", size: float) -> int:
    """Append an equation that directions have to fulfil to ``W``; number of rows then."""
    wide = pad(p.program.n + 1)
    out = view(p.W, rows * wide)
    clear(out, wide)
    for k in range(p.program.n):
        out[k] = row[k]
    p.size[rows] = size
    return rows + 1


@procedure
def _shorten(
    p: Levels, X: "float[:]", begin: int, end: int, Y: "float[:]", depth: int, count: int
) -> None:
    """Express rows of ``X`` in ``count`` remaining free directions, which shortens them."""
    old, wide = p.program.wide, pad(count)
    left = view(Y, depth * wide)
    out = view(left, 6 * depth)
    for first in range(begin, end, 6):
        several = min(6, end - first)
        for a in range(several):
            row = view(X, (first + a) * old)
            to = view(out, a * wide)
            clear(to, wide)
            for k in range(count):
                to[k] = row[p.free[k]]
            for e in range(depth):
                left[6 * e + a] = row[p.pivot[e]]
        subtract(out, wide, left, 6, Y, depth, several, wide)
        for c in range(0, several * wide, 8):
            own = view(X, first * wide + c, 8)
            own[0:8] = view(out, c, 8)


def workspace(n: int, equations: int, tasks: int, bounds: int, **given) -> Levels:
    """Arrays for problems of these sizes; arrays ``given`` are used as they are."""
    most, wide, long = tasks + n, pad_to_eight(n), pad_to_eight(n + 1)
    program = Quadratic(
        rows=bounds,
        **{name: np.zeros(n * wide) for name in ("H", "J", "R")},
        **{name: np.zeros(wide) for name in ("g", "x", "u", "d", "z", "r", "v")},
        **{name: np.zeros(bounds) for name in ("low", "high", "scale")},
        C=np.zeros(bounds * wide),
        side=np.zeros(n),
        active=np.zeros(n + 1, int),
        is_active=np.zeros(bounds, int),
        near=np.zeros(bounds, int),
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
        "Z": n * wide,
        "AZ": tasks * wide,
        "Ax": tasks,
        "Gx": bounds,
        "size": equations + most,
        "length": bounds,
        "M": most * wide,
        "rest": equations + most,
        "W": (equations + most) * long + (n + 6) * wide + 6 * n,
        "kept": equations * long,
        "diagonal": wide,
        "spare": wide,
    }
    arrays = {name: np.zeros(size) for name, size in shapes.items() if name not in given}
    numbers = {"level": tasks, "pivot": equations + most, "free_at": n, "free": n}
    arrays |= {name: np.zeros(size, int) for name, size in numbers.items() if name not in given}
    return Levels(
        n=n,
        equations=equations,
        tasks=tasks,
        bounds=bounds,
        levels=1,
        hopeful=True,
        program=program,
        **arrays,
        **given,
    )
