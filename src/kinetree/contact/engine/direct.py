"""Problems of few rows, loops and rows that push one way, by the factors that a step has anyway.

    A lam + b = w,    A = J M⁻¹ Jᵀ = Y Yᵀ,    b = J free + target,    v = free + M⁻¹ Jᵀ lam

with ``w = 0`` for rows without bounds (loops, couplings), and ``lam ≥ 0, w ≥ 0, lam w = 0`` for
others: shifts of positions, stops. Rows act one after another, the one that is violated most
first, while those that would begin to pull let go: the dual method of D. Goldfarb and A. Idnani,
"A numerically stable dual method for solving strictly convex quadratic programs" (1983). Only rows
that are violated at some time cost more than a scalar product. Where there is friction, where too
many rows act, or where rows contradict each other, ``newton.solve`` does it.
"""

import numpy as np

from kinetree.codegen.procedures import procedure, record, sqrt, view
from kinetree.contact.engine.mechanism import divide_by_lower, divide_by_upper
from kinetree.contact.newton.matrix import is_loop
from kinetree.contact.newton.pattern import split
from kinetree.contact.newton.problem import BOUNDS, Problem, Work

MOST = 32
"""Rows that act up to which a dense matrix is as quick as a sparse one."""

WIDE = 512
"""Velocity variables up to which there is room for the answers to rows."""

DEPENDENT = 1e-9
"""Part of a diagonal of ``A`` that is left by the rows before, below which a row says nothing."""

EXACT = 1e-13
"""Error of velocities of rows, relative to what they had to change by, that needs no correction."""

SMALL = 1e-6
"""The same where a row that pushes one way is not violated, at most."""

ROUNDING = 1e-13
"""Velocity of rows that counts as zero [m/s or rad/s]."""


@record
class Direct:
    """Room for rows that may act, and what is known of them.

    Attributes:
        most: rows that there is room for;  rows: how many there are;  acts: how many of them act.
        group: of rows;  loop: 1 for those without bounds.
        y: ``Y``, rows of nv numbers;  first, last: where the numbers of a row are.
        A, L: products of rows, and the factor of those that act, ``most`` numbers a row.
        acting: rows that act, in the order of ``L``;  place: of rows: where they are there, or -1.
        lam, w: of rows;  share: of rows that act, in an impulse of another one.
    """

    most: int
    rows: int
    acts: int
    group: "int[:]"
    loop: "int[:]"
    y: "float[:]"
    first: "int[:]"
    last: "int[:]"
    A: "float[:]"
    L: "float[:]"
    acting: "int[:]"
    place: "int[:]"
    lam: "float[:]"
    w: "float[:]"
    share: "float[:]"
    change: "float[:]"


def direct_of(nv: int) -> Direct:
    """``Direct`` workspace for up to ``MOST`` rows, empty if there are too many variables."""
    most = MOST if nv <= WIDE else 0
    whole = ("group", "loop", "first", "last", "acting", "place")
    return Direct(
        most=most,
        y=np.zeros(most * nv),
        change=np.zeros(nv if most else 0),
        **{name: np.zeros(most, dtype=np.int64) for name in whole},
        **{name: np.zeros(most) for name in ("lam", "w", "share")},
        **{name: np.zeros(most * most) for name in ("A", "L")},
    )


@procedure
def solve_directly(d: Direct, p: Problem, L: "float[:]", w: Work) -> bool:
    """Solve a problem of loops and one-sided rows by an active set; whether it succeeded."""
    if d.most == 0 or not is_direct(p):
        return False
    d.rows = d.acts = 0
    v = p.velocity
    v[: p.nv] = p.free[: p.nv]
    most = largest_error(p, v)
    enough = max(min(p.tolerance, SMALL) * most, ROUNDING)
    if not add_rows(d, p, L, v, enough):
        return False
    corrects = True
    while d.rows > 0:
        if not all_act(d, enough):
            return False
        velocities(d, p, L, v)
        rows = d.rows
        if not add_rows(d, p, L, v, enough):
            return False
        if d.rows == rows:
            after = renew_errors(d, p, v)
            if after <= EXACT * most or not corrects:
                break
            correct(d)
            corrects = False
    after = largest_error(p, v)
    if after > max(p.tolerance * most, enough):  # rows that depend on others contradict them
        return False
    p.impulse[: p.groups] = 0.0
    for c in range(d.rows):
        p.impulse[d.group[c]] = d.lam[c]
    p.islands = split(p, w)
    w.started = -1
    p.velocity_error = after
    p.error = p.momentum_error = p.cone_error = p.complementarity = 0.0
    p.left = p.rounds = p.newton = p.factored = p.status = 0
    return True


@procedure
def is_direct(p: Problem) -> bool:
    """Whether all groups are single rows: unbounded, or with impulse at least 0."""
    for g in range(p.groups):
        if p.kind[g] != BOUNDS or p.dim[g] != 1 or p.high[g] < 1e299:
            return False
        if p.low[g] != 0.0 and not is_loop(p, g):
            return False
    return True


@procedure
def error_of(p: Problem, g: int, v: "float[:]") -> float:
    """Velocity error ``J v + target`` of a single-row group."""
    x = p.target[g]
    for n in range(p.entry_first[g], p.entry_first[g + 1]):
        a = p.entry_node[n]
        for j in range(p.node_count[a]):
            x += p.J[p.entry_at[n] + j] * v[p.node_first[a] + j]
    return x


@procedure
def largest_error(p: Problem, v: "float[:]") -> float:
    """Largest violation of the single-row groups at velocities ``v``."""
    most = 0.0
    for g in range(p.groups):
        x = error_of(p, g, v)
        most = max(most, -x)
        if x > most and is_loop(p, g):
            most = x
    return most


# --- Rows that may act ---------------------------------------------------------------------------


@procedure
def add_rows(d: Direct, p: Problem, L: "float[:]", v: "float[:]", enough: float) -> bool:
    """Add all loops, then violated rows, to the active-set problem; False without room."""
    rows = d.rows
    for times in range(2):  # first they are counted
        more = 0
        for g in range(p.groups):
            loop = is_loop(p, g)
            if loop and rows > 0:
                continue
            x = error_of(p, g, v)
            if (loop or x < -enough) and not is_there(d, rows, g):
                more += 1
                if rows + more > d.most:
                    return False
                if times == 1:
                    add_row(d, p, L, g, x)
                    d.loop[d.rows - 1] = 1 if loop else 0
        if more == 0:
            return True
    return True


@procedure
def is_there(d: Direct, rows: int, g: int) -> bool:
    """Whether group ``g`` is among the first ``rows`` rows of the active-set problem."""
    found = False
    for c in range(rows):
        found = found or d.group[c] == g
    return found


@procedure
def add_row(d: Direct, p: Problem, L: "float[:]", g: int, w: float) -> None:
    """Add a row to the active-set problem: its ``Y = J L⁻ᵀ`` and products with the others."""
    c = d.rows
    y = view(d.y, c * p.nv)
    y[: p.nv] = 0.0
    low = p.nodes
    high = 0
    for n in range(p.entry_first[g], p.entry_first[g + 1]):
        a = p.entry_node[n]
        high = max(high, a + 1)
        for j in range(p.node_count[a]):
            y[p.node_first[a] + j] = p.J[p.entry_at[n] + j]
        while p.node_parent[a] >= 0:
            a = p.node_parent[a]
        low = min(low, a)
    divide_by_lower(p, L, y, low, high)
    d.first[c] = p.node_first[low] if low < high else 0
    d.last[c] = p.node_first[high - 1] + p.node_count[high - 1] if low < high else 0
    d.group[c] = g
    d.lam[c] = 0.0
    d.w[c] = w
    d.place[c] = -1
    d.rows = c + 1
    for k in range(c + 1):
        z = view(d.y, k * p.nv)
        x = 0.0
        for i in range(max(d.first[c], d.first[k]), min(d.last[c], d.last[k])):
            x += y[i] * z[i]
        d.A[c * d.most + k] = d.A[k * d.most + c] = x


# --- Rows that act -------------------------------------------------------------------------------


@procedure
def all_act(d: Direct, enough: float) -> bool:
    """Activate violated rows until none is left; False if rows contradict each other."""
    for c in range(d.rows):
        if d.loop[c] == 1 and d.place[c] < 0 and not act(d, c, enough):
            return False
    for _ in range(8 * MOST):
        worst = -1
        for c in range(d.rows):
            violated = d.loop[c] == 0 and d.place[c] < 0 and d.w[c] < -enough
            if violated and (worst < 0 or d.w[c] < d.w[worst]):
                worst = c
        if worst < 0:
            return True
        if not act(d, worst, enough):
            return False
    return False


@procedure
def act(d: Direct, c: int, enough: float) -> bool:
    """Activate row ``c``, dropping rows whose impulse turns negative; False if contradictory."""
    while True:
        rest = spread(d, c, d.acts)
        own = d.A[c * d.most + c]
        depends = not rest > DEPENDENT * own
        if depends and d.loop[c] == 1:  # which the others satisfy, or newton.solve has to look
            return True
        sign = 1.0 if d.w[c] <= 0.0 else -1.0
        way = 1e300 if depends else abs(d.w[c]) / rest
        first = -1
        for k in range(d.acts):
            other = d.acting[k]
            x = sign * d.share[k]
            if d.loop[other] == 0 and x > 0.0 and d.lam[other] < way * x:
                way = d.lam[other] / x
                first = k
        if depends and first < 0:
            return False
        push(d, c, sign * way)
        if first < 0:
            d.acting[d.acts] = c
            d.place[c] = d.acts
            d.L[d.acts * d.most + d.acts] = sqrt(rest)
            d.acts += 1
            return True
        let_go(d, first)
        if d.w[c] >= -enough and d.loop[c] == 0:
            return True


@procedure
def spread(d: Direct, c: int, acts: int) -> float:
    """Set the Cholesky row of row ``c`` and ``share = A_aa⁻¹ A_ac`` of active rows; the pivot."""
    row = view(d.L, acts * d.most)
    rest = d.A[c * d.most + c]
    for k in range(acts):
        other = view(d.L, k * d.most)
        x = d.A[c * d.most + d.acting[k]]
        for j in range(k):
            x -= row[j] * other[j]
        row[k] = x / other[k]
        rest -= row[k] * row[k]
    for r in range(acts):
        k = acts - 1 - r
        x = row[k]
        for j in range(k + 1, acts):
            x -= d.L[j * d.most + k] * d.share[j]
        d.share[k] = x / d.L[k * d.most + k]
    return rest


@procedure
def push(d: Direct, c: int, t: float) -> None:
    """Add impulse ``t`` to row ``c``, and impulses to active rows that keep their velocities."""
    d.lam[c] += t
    for k in range(d.acts):
        d.lam[d.acting[k]] -= t * d.share[k]
    for i in range(d.rows):
        A = view(d.A, i * d.most)
        x = A[c]
        for k in range(d.acts):
            x -= A[d.acting[k]] * d.share[k]
        d.w[i] += t * x


@procedure
def let_go(d: Direct, first: int) -> None:
    """Remove the ``first``-th active row and refactor the rows after it."""
    gone = d.acting[first]
    d.lam[gone] = 0.0
    d.place[gone] = -1
    acts = d.acts - 1
    d.acts = acts
    for k in range(first, acts):
        c = d.acting[k + 1]
        d.acting[k] = c
        d.place[c] = k
        d.L[k * d.most + k] = sqrt(max(spread(d, c, k), DEPENDENT * d.A[c * d.most + c]))


@procedure
def velocities(d: Direct, p: Problem, L: "float[:]", v: "float[:]") -> None:
    """Write ``v = free + M⁻¹ Jᵀ lam`` from the active rows' impulses."""
    change = d.change
    change[: p.nv] = 0.0
    for k in range(d.acts):
        c = d.acting[k]
        y = view(d.y, c * p.nv)
        for i in range(d.first[c], d.last[c]):
            change[i] += d.lam[c] * y[i]
    divide_by_upper(p, L, change)
    v[: p.nv] = p.free[: p.nv] + change[: p.nv]


@procedure
def renew_errors(d: Direct, p: Problem, v: "float[:]") -> float:
    """Recompute all rows' velocity errors; returns the largest of the active ones."""
    most = 0.0
    for c in range(d.rows):
        d.w[c] = error_of(p, d.group[c], v)
        if d.place[c] >= 0:
            most = max(most, abs(d.w[c]))
    return most


@procedure
def correct(d: Direct) -> None:
    """Correct the active rows' impulses by one step of iterative refinement."""
    for k in range(d.acts):
        x = -d.w[d.acting[k]]
        for j in range(k):
            x -= d.L[k * d.most + j] * d.share[j]
        d.share[k] = x / d.L[k * d.most + k]
    for r in range(d.acts):
        k = d.acts - 1 - r
        x = d.share[k]
        for j in range(k + 1, d.acts):
            x -= d.L[j * d.most + k] * d.share[j]
        d.share[k] = x / d.L[k * d.most + k]
    for k in range(d.acts):
        d.lam[d.acting[k]] += d.share[k]
