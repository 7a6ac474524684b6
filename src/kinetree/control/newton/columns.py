"""Steps with contacts on a GPU: systems of one knot, of which every lane has a column.

    [M  Jᵀ ] [a]   [r]
    [J -SOFT] [g] = [q]          forces of contacts are -g

The matrix has as many columns as velocities and rows of contacts, and a team at least one lane for
each and one more. A column is in registers; what lanes need of others they read in the memory of
the team. Rows of contacts that are open count as -1 on the diagonal. ``stance`` has the same
systems in tiles, for a core and for robots with more columns.
"""

import math

from kinetree.codegen.procedures import cross, dot, lanes, local, procedure, unroll, view
from kinetree.control.lane_columns import (
    eliminate,
    has_right_signs,
    solve_backward,
    solve_forward,
)
from kinetree.control.newton.contact_derivatives import cone_rows, contact_rows, turning
from kinetree.control.newton.contacts import ContactTables, Stance
from kinetree.control.newton.records import Batch, WorkerArrays
from kinetree.control.newton.stance import (
    SOFT,
    begin_rows,
    count_landings,
    count_rows,
    find_arm,
    find_motions,
    find_row_column,
    move_knots,
)

MOST = 31
"""Columns that registers and lanes have room for, but for one."""


@procedure(inline=True)
def fill_column(b: Batch, c: ContactTables, s: Stance, k: int, j: int, x: "float[32]"):
    """Column ``j`` of the contact system of a knot, by a lane; ``n``: the right-hand side."""
    nv, live = b.nv, s.live[k]
    J = view(s.J, k * c.rows * nv)
    if j < nv:
        for i in unroll(nv):
            x[i] = s.M[(k * nv + i) * nv + j]
        for r in unroll(c.rows):
            x[nv + r] = J[r * nv + j] if r < live else 0.0
    elif j < nv + c.rows:
        own = j - nv
        for i in unroll(nv):
            x[i] = J[own * nv + i] if own < live else 0.0
        for r in unroll(c.rows):
            diagonal = -SOFT if r < live else -1.0
            x[nv + r] = diagonal if r == own else 0.0
    else:
        for i in unroll(nv + c.rows):
            x[i] = s.right[i]


@procedure
def solve_knot(b: Batch, c: ContactTables, s: Stance, k: int) -> bool:
    """Solve the contact system of a knot: accelerations and forces; False if singular."""
    nv, n = b.nv, b.nv + c.rows
    x = local("float", 32)
    for j in lanes(n + 1):
        fill_column(b, c, s, k, j, x)
    eliminate(s.L, n, n + 1, x)
    for j in lanes(n + 1):
        if j == n:
            solve_backward(s.L, n, x)
            for i in unroll(nv):
                s.right[i] = x[i]
            for r in unroll(c.rows):
                s.right[nv + r] = -x[nv + r]
    return has_right_signs(s.L, n, nv)


@procedure
def stop_by_columns(b: Batch, w: WorkerArrays, first: int, end: int):
    """Impacts at touch-down of several knots, a column per lane; like ``stop_landing``."""
    c, s, nv = b.contacts, w.stance, b.nv
    for k in range(first, end):
        if count_landings(c, k) > 0:
            J, qd = view(s.J, k * c.rows * nv), view(w.tried.qd, k * nv)
            for i in lanes(nv):
                s.right[i] = 0.0
            for r in lanes(c.rows):
                total = 0.0
                if r < s.live[k]:
                    for i in range(nv):
                        total -= J[r * nv + i] * qd[i]
                s.right[nv + r] = total
            fine = solve_knot(b, c, s, k)
            for i in lanes(nv):
                s.v[k * nv + i] += s.right[i] if fine else math.inf
            for r in lanes(s.live[k]):
                s.impulse[k * c.rows + s.row[k * c.rows + r]] = s.right[nv + r]


@procedure
def take_steps_by_columns(b: Batch, w: WorkerArrays, first: int, end: int):
    """Contact steps of several knots, a column per lane; like ``take_steps_of_contacts``."""
    c, s, nv = b.contacts, w.stance, b.nv
    force = w.tried.total if s.tried.forced == 1 else w.tried.held
    for k in range(first, end):
        at = k * c.rows
        for i in lanes(nv):
            s.right[i] = force[k * nv + i] - s.bias[k * nv + i]
        for r in lanes(c.rows):
            s.right[nv + r] = -s.drift[at + r] if r < s.live[k] else 0.0
        fine = solve_knot(b, c, s, k)
        for i in lanes(nv):
            w.tried.qdd[k * nv + i] = s.right[i] if fine else math.inf
        for r in lanes(c.rows):
            s.f[at + r] = 0.0
        for r in lanes(s.live[k]):
            s.f[at + s.row[at + r]] = s.right[nv + r]
    move_knots(b, w, first, end)


@procedure
def factor_knot(b: Batch, c: ContactTables, s: Stance, k: int):
    """Factorise the contact system of a knot by columns."""
    n = b.nv + c.rows
    x = local("float", 32)
    for j in lanes(n):
        fill_column(b, c, s, k, j, x)
    eliminate(s.L, n, n, x)


@procedure
def impacts_by_columns(b: Batch, w: WorkerArrays, first: int, end: int):
    """Derivatives of touch-down impacts by columns; like ``derivatives_of_impacts``."""
    c, s, nv = b.contacts, w.stance, b.nv
    n = nv + c.rows
    x = local("float", 32)
    for k in range(first, end):
        if count_landings(c, k) > 0:
            I_q = view(s.I_q, s.hit[k] * nv * nv)
            G_q = view(I_q, nv * nv)
            factor_knot(b, c, s, k)
            for j in lanes(2 * nv):
                if j < nv:
                    for i in unroll(nv):
                        at = i * nv + j
                        x[i] = s.D[k * nv * nv + at] - I_q[at] + G_q[at]
                    for r in unroll(c.rows):
                        x[nv + r] = -s.A_q[(k * c.rows + r) * nv + j] if r < s.live[k] else 0.0
                else:
                    for i in unroll(nv):
                        x[i] = s.M[(k * nv + i) * nv + j - nv]
                    for r in unroll(c.rows):
                        x[nv + r] = 0.0
                solve_forward(s.L, n, x)
                s.df[j] = x[0]  # the same numbers of L are read again: registers cannot have all
                solve_backward(s.L, n, x)
                for i in unroll(nv):
                    s.B[(k * nv + i) * 2 * nv + j] = x[i]


@procedure(inline=True)
def fill_derivatives(b: Batch, c: ContactTables, s: Stance, k: int, j: int, x: "float[32]"):
    """Right-hand side of the derivatives of a contact step by variable ``j``."""
    nv, m, live = b.nv, b.m, s.live[k]
    for i in unroll(nv):
        x[i] = 0.0
        if s.now.forced == 1:
            x[i] = s.f_z[(k * nv + i) * b.size + j]
        elif j < m:
            x[i] = 1.0 if b.columns[j] == i else 0.0
    for r in unroll(c.rows):
        x[nv + r] = 0.0
    if m <= j < m + nv:
        for i in unroll(nv):
            at = (k * nv + i) * nv + j - m
            x[i] += s.D[at] - s.E_q[at]
        for r in unroll(c.rows):
            x[nv + r] = -s.A_q[(k * c.rows + r) * nv + j - m] if r < live else 0.0
    if j >= m and count_landings(c, k) > 0:
        for e in range(nv):
            of_speed = s.B[(k * nv + e) * 2 * nv + j - m]
            for i in unroll(nv):
                x[i] -= s.E_v[(k * nv + i) * nv + e] * of_speed
            for r in unroll(c.rows):
                x[nv + r] -= s.A_v[(k * c.rows + r) * nv + e] * of_speed if r < live else 0.0
    elif j >= m + nv:
        for i in unroll(nv):
            x[i] -= s.E_v[(k * nv + i) * nv + j - m - nv]
        for r in unroll(c.rows):
            x[nv + r] = -s.A_v[(k * c.rows + r) * nv + j - m - nv] if r < live else 0.0


@procedure
def derivatives_by_columns(b: Batch, w: WorkerArrays, first: int, end: int):
    """Derivatives of contact steps by columns; like ``derivatives_of_steps``."""
    c, s, nv, size = b.contacts, w.stance, b.nv, b.size
    n = nv + c.rows
    x = local("float", 32)
    for k in range(first, end):
        V = view(w.F, (k * b.n + nv) * size)
        hits = count_landings(c, k)
        factor_knot(b, c, s, k)
        for j in lanes(size):
            fill_derivatives(b, c, s, k, j, x)
            solve_forward(s.L, n, x)
            s.df[j] = x[0]  # the same numbers of L are read again: registers cannot have all
            solve_backward(s.L, n, x)
            for i in unroll(nv):
                before = 0.0
                if hits > 0 and j >= b.m:
                    before = s.B[(k * nv + i) * 2 * nv + j - b.m]
                elif j == b.m + nv + i:
                    before = 1.0
                V[i * size + j] = before + b.h * x[i]
            for r in unroll(c.rows):
                s.df[r * size + j] = -x[nv + r]
        cone_rows(b, w, k, s.df, size, view(s.df, c.rows * size))


@procedure
def find_contacts_by_columns(b: Batch, w: WorkerArrays, first: int, end: int):
    """``find_contacts``, by columns of Jacobians."""
    c, s, nv = b.contacts, w.stance, b.nv
    for e, j in lanes(end - first, nv):
        w.tried.qdd[(first + e) * nv + j] = 0.0
    for i in lanes((end - first) * c.rows * nv):
        s.J[first * c.rows * nv + i] = 0.0
    for e, i in lanes(end - first, c.count):
        k = first + e
        if c.active[k * c.count + i] == 1:
            find_motions(b, c, s, k, i, view(w.tried.qdd, k * nv))
        begin_rows(c, s, k, i)
    for i in range(c.count):
        for e, p in lanes(end - first, c.path_first[i + 1] - c.path_first[i]):
            k = first + e
            if c.active[k * c.count + i] == 1:
                J = view(s.J, (k * c.rows + count_rows(c, k, i)) * nv)
                find_arm(c, s, k, i, view(s.R, 6, 3))
                find_row_column(c, s, k, i, c.path[c.path_first[i] + p], nv, J)


@procedure
def find_contact_rows_by_columns(b: Batch, w: WorkerArrays, first: int, end: int):
    """``find_contact_rows``, by columns of what forces do."""
    c, s = b.contacts, w.stance
    for e, i in lanes(end - first, c.count):
        k = first + e
        if c.active[k * c.count + i] == 1:
            find_motions(b, c, s, k, i, view(w.now.qdd, k * b.nv))
            contact_rows(b, c, s, k, i)
    for e, t in lanes(end - first, c.turns):
        k = first + e
        motion = view(w.now.v_after, k * b.nv + c.turn[t])
        at = (k * c.turns + t) * 36
        turning(s, motion, b.h, c.width[t], view(s.turned, at), view(s.spun, at))
    for i in lanes((end - first) * b.nv * b.nv):
        s.D[first * b.nv * b.nv + i] = 0.0
    for i in range(c.count):
        for e, p in lanes(end - first, c.path_first[i + 1] - c.path_first[i]):
            if c.active[(first + e) * c.count + i] == 1:
                add_force_column(b, c, s, first + e, i, c.path_first[i] + p)


@procedure
def add_force_column(b: Batch, c: ContactTables, s: Stance, k: int, i: int, y: int):
    """A column of ``force_rows`` from one contact: by variable ``path[y]``."""
    nv, f = b.nv, view(s.f, k * c.rows + c.first[i])
    D = view(s.D, k * nv * nv + c.path[y])
    arm = view(s.R, 6, 3)
    find_arm(c, s, k, i, arm)
    S = view(s.S, (k * nv + c.path[y]) * 6)
    way = view(S, 3, 3) + cross(view(S, 0, 3), arm)
    push = cross(view(f, 0, 3), view(S, 0, 3))
    for x in range(c.path_first[i], c.path_first[i + 1]):
        T = view(s.S, (k * nv + c.path[x]) * 6)
        if c.owner[y] <= c.owner[x]:
            total = dot(push, view(T, 3, 3) + cross(view(T, 0, 3), arm))
            if c.size[i] == 6:
                total += dot(cross(view(f, 3, 3), view(S, 0, 3)), view(T, 0, 3))
        else:
            total = dot(cross(view(f, 0, 3), view(T, 0, 3)), way)
        D[c.path[x] * nv] += total
