"""Rows without bounds alone, loops and couplings: velocities and impulses by one linear system.

    A lam = -(J free + target),    A = J M⁻¹ Jᵀ = Y Yᵀ,    v = free + M⁻¹ Jᵀ lam

with the factors of ``M`` that a step has anyway. Where rows with bounds act too, where there are
many, or where rows contradict each other, ``newton.solve`` does it.
"""

from kinetree.codegen.procedures import procedure, sqrt, view
from kinetree.contact.engine.mechanism import divide_by_lower, divide_by_upper
from kinetree.contact.newton.matrix import is_loop
from kinetree.contact.newton.pattern import split
from kinetree.contact.newton.problem import Problem, Work

MOST = 32
"""Rows up to which a dense matrix is as quick as a sparse one."""

DEPENDENT = 1e-9
"""Part of a diagonal of ``A`` that is left by the rows before, below which a row says nothing."""

EXACT = 1e-13
"""Error of velocities of rows, relative to what they had to change by, that needs no correction."""

ROUNDING = 1e-13
"""Velocity of rows that counts as zero [m/s or rad/s]."""


@procedure
def close_directly(p: Problem, L: "float[:]", w: Work) -> bool:
    """Solve a problem that has rows without bounds alone: whether it was one, and was solved."""
    n = p.groups
    if p.condenses == 0 or n > MOST or n > w.groups_room:
        return False
    for g in range(n):
        if p.dim[g] != 1 or not is_loop(p, g):
            return False
    spread_rows(p, L, w)
    factor_products(p, w)
    w.v[: p.nv] = p.free[: p.nv]
    w.lam[:n] = 0.0
    before = correct(p, L, w)
    after = row_errors(p, w)
    if after > EXACT * before:
        correct(p, L, w)
        after = row_errors(p, w)
    if after > p.tolerance * before + ROUNDING:  # rows that depend on others contradict them
        return False
    p.velocity[: p.nv] = w.v[: p.nv]
    p.impulse[:n] = w.lam[:n]
    p.islands = split(p, w)
    w.started = -1
    p.velocity_error = after
    p.error = p.momentum_error = p.cone_error = p.complementarity = 0.0
    p.left = p.rounds = p.newton = p.factored = p.status = 0
    return True


@procedure
def spread_rows(p: Problem, L: "float[:]", w: Work):
    """``Y = J L⁻ᵀ``, rows of nv numbers in ``response``; their first and last in ``acting``."""
    for g in range(p.groups):
        y = view(w.response, g * p.nv)
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
        w.acting[g] = p.node_first[low] if low < high else 0
        w.pivot[g] = p.node_first[high - 1] + p.node_count[high - 1] if low < high else 0


@procedure
def factor_products(p: Problem, w: Work):
    """Cholesky's factor of ``Y Yᵀ`` in ``small``; of rows that depend on others the diagonal is 0.

    Those get no impulse: planar loops have rows that say nothing, spatial ones rows that repeat.
    """
    n = p.groups
    for g in range(n):
        y = view(w.response, g * p.nv)
        row = view(w.small, g * n)
        for k in range(g + 1):
            z = view(w.response, k * p.nv)
            x = 0.0
            for i in range(max(w.acting[g], w.acting[k]), min(w.pivot[g], w.pivot[k])):
                x += y[i] * z[i]
            row[k] = x
        own = row[g]
        for k in range(g + 1):
            x = row[k]
            other = view(w.small, k * n)
            for j in range(k):
                x -= row[j] * other[j]
            if k == g:
                row[k] = sqrt(x) if x > DEPENDENT * own else 0.0
            else:
                row[k] = x / other[k] if other[k] > 0.0 else 0.0


@procedure
def row_errors(p: Problem, w: Work) -> float:
    """``J v + target`` of all rows in ``short``, and the largest."""
    most = 0.0
    for g in range(p.groups):
        x = p.target[g]
        for n in range(p.entry_first[g], p.entry_first[g + 1]):
            a = p.entry_node[n]
            for j in range(p.node_count[a]):
                x += p.J[p.entry_at[n] + j] * w.v[p.node_first[a] + j]
        w.short[g] = x
        most = max(most, abs(x))
    return most


@procedure
def correct(p: Problem, L: "float[:]", w: Work) -> float:
    """Add impulses that take the errors of all rows out of the velocities; the largest of these."""
    n = p.groups
    most = row_errors(p, w)
    lam = w.short
    for g in range(n):
        row = view(w.small, g * n)
        x = -lam[g]
        for k in range(g):
            x -= row[k] * lam[k]
        lam[g] = x / row[g] if row[g] > 0.0 else 0.0
    for r in range(n):
        g = n - 1 - r
        x = lam[g]
        for k in range(g + 1, n):
            x -= w.small[k * n + g] * lam[k]
        own = w.small[g * n + g]
        lam[g] = x / own if own > 0.0 else 0.0
    change = w.temp
    change[: p.nv] = 0.0
    for g in range(n):
        y = view(w.response, g * p.nv)
        w.lam[g] += lam[g]
        for i in range(w.acting[g], w.pivot[g]):
            change[i] += lam[g] * y[i]
    divide_by_upper(p, L, change)
    w.v[: p.nv] += change[: p.nv]
    return most
