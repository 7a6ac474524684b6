# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""A linear-quadratic problem over a horizon: Riccati's recursion.

A knot has the variables ``z = (u, x)``: controls first, so that eliminating them from the matrix
``[[H_uu, H_ux], [H_xu, H_xx]]`` leaves the matrix of the cost to go. Every matrix ``H`` has its
gradient as one more column, and so do factors and what they leave. Matrices are symmetric: only
what is on and above the diagonal counts. Products and factors are those of ``tiles``.

Where positions follow from velocities at the end of a step, ``dq' = dq + h dqd'``, with ``V`` the
derivatives of velocities, the cost to go ``P`` becomes ``V' M V + V' N + N' V + P_qq``, with
``M = h² P_qq + h (P_qv + P_vq) + P_vv`` and ``N = h P_qq + P_vq``: a third of the operations. For
floating bodies, ``dq' = A dq + h B dqd'`` with small blocks.
"""

from kinetree.codegen.procedures import lane_count, lanes, local, procedure, record, view
from kinetree.control.tiles import (
    factor_tiles,
    pad_to_eight,
    product,
    solve_tiles,
    subtract,
    subtract_square_tiles,
    subtract_tiles,
    subtract_upper_tiles,
)


@record
class Horizon:
    """A linear-quadratic problem: minimise ``sum of z' H z / 2 + g' z``, ``x' = F z + gap``.

    From ``x = 0``.

    Attributes:
        n, m: numbers of states and controls;  steps: of the horizon.
        h: of steps whose positions follow from velocities, 0 for others.
        F: derivatives of next states, (steps, n, m + n), where ``h`` is 0, else the last half of
            them, those of velocities;  gap: (steps, n).
        wide: of the rows of ``H``, ``pad_to_eight(m + n + 1)``.
        H: matrices and gradients, (steps + 1, m + n, wide); overwritten.
        K: gains ``du = K dx``, (steps, m, n);  z: the solution, (steps + 1, m + n).
        panel, room: as many numbers as ``panel_of`` and ``room_of`` say.
        turns: joints whose positions follow by blocks, ``dq' = turned dq + h spun dqd'``;  turn,
            width: their first variables, and how many;  turned, spun: (steps, turns, 36).
    """

    n: int
    m: int
    steps: int
    wide: int
    h: float
    F: "float[:]"
    gap: "float[:]"
    H: "float[:]"
    K: "float[:]"
    z: "float[:]"
    panel: "float[:]"
    room: "float[:]"
    turns: int
    turn: "int[:]"
    width: "int[:]"
    turned: "float[:]"
    spun: "float[:]"


def panel_of(n: int, m: int, h: float) -> int:
    """Size of one step's working matrices, for ``n`` states and ``m`` controls [numbers]."""
    wide = pad_to_eight(n + m + 1)
    rows = 3 * n // 2 if h != 0.0 else 2 * n
    return max(rows * wide, m * (pad_to_eight(n + 1) + 6))


def room_of(n: int, m: int, turns: int) -> int:
    """Size of working memory for ``n`` states, ``m`` controls and rotating joints [numbers]."""
    return n + n * n // 2 + 6 * (turns + 1) * pad_to_eight(n + m + 1)


@procedure
def mirror(P: "float[:]", n: int, wide: int):
    """Copy the upper triangle of a symmetric matrix to the lower one."""
    if lane_count() > 1:
        for i, j in lanes(n, n):
            if j < i:
                P[i * wide + j] = P[j * wide + i]
        return
    for i in range(n):
        for j in range(i):
            P[i * wide + j] = P[j * wide + i]


@procedure
def pull_back(x: Horizon, k: int):
    """Riccati recursion: add the cost-to-go after step ``k`` to the knot's matrix."""
    n, m, size, wide = x.n, x.m, x.n + x.m, x.wide
    P = view(x.H, ((k + 1) * size + m) * wide + m)
    F = view(x.panel, 0)
    W = view(x.panel, n * wide)
    mirror(P, n, wide)
    for i, c in lanes(n, size):
        F[i * wide + c] = x.F[(k * n + i) * size + c]
    for i, c in lanes(n, wide - size):
        F[i * wide + size + c] = 0.0
    for i, c in lanes(n, wide):
        W[i * wide + c] = 0.0
    for i in lanes(n):
        W[i * wide + size] = -value_of_gap(P, n, wide, view(x.gap, k * n), i)
    subtract_tiles(W, wide, P, wide, F, n, n, wide)
    subtract_square_tiles(view(x.H, k * size * wide), wide, F, W, n, 0, size)


@procedure
def value_of_gap(P: "float[:]", n: int, wide: int, gap: "float[:]", i: int) -> float:
    """Entry ``i`` of ``P gap + p``; ``p`` is the column after those of ``P``."""
    if lane_count() > 1:
        total = P[i * wide + n]
        for j in range(n):
            total += P[j * wide + i] * gap[j]
        return total
    return P[i * wide + n] + product(view(P, i * wide), gap, n)


@procedure
def times_block(line: "float[:]", B: "float[:]", count: int):
    """Product ``x B`` in place, with the 3×3 or 6×6 block of a rotating joint."""
    y = local("float", 6)
    if count == 6:
        y[0:6] = line[0] * view(B, 0, 6)
        for e in range(1, 6):
            y += line[e] * view(B, 6 * e, 6)
    else:
        for c in range(count):
            y[c] = 0.0
            for e in range(count):
                y[c] += line[e] * B[e * count + c]
    for c in range(count):
        line[c] = y[c]


@procedure
def block_times(B: "float[:]", count: int, P: "float[:]", wide: int, out: "float[:]"):
    """Eight columns of ``Bᵀ P``, with the block of a rotating joint."""
    for c in range(count):
        zero = view(out, c * wide, 8)
        zero[0:8] = 0.0
    subtract(out, wide, B, count, P, count, count, 8)
    for c in range(count):
        own = view(out, c * wide, 8)
        own[0:8] = -1.0 * own


@procedure
def turn_rows(x: Horizon, k: int, P: "float[:]", room: "float[:]"):
    """Rows of ``Bᵀ P`` and ``Aᵀ P`` for positions of rotating joints.

    ``P`` itself becomes that of ``Bᵀ P``; the rows of ``Aᵀ P`` are in ``room``.
    """
    n, wide = x.n, x.wide
    for t in range(x.turns):
        first, count, at = x.turn[t], x.width[t], (k * x.turns + t) * 36
        spun = view(room, 6 * x.turns * wide)
        if lane_count() > 1:
            for c, j in lanes(count, n):
                A, B = 0.0, 0.0
                for e in range(count):
                    p = P[(first + e) * wide + j]
                    A += x.turned[at + e * count + c] * p
                    B += x.spun[at + e * count + c] * p
                room[(6 * t + c) * wide + j] = A
                spun[c * wide + j] = B
        else:
            for tile in range((n + 7) // 8):
                j = 8 * tile
                rows, turned = view(P, first * wide + j), view(room, 6 * t * wide + j)
                block_times(view(x.turned, at), count, rows, wide, turned)
                block_times(view(x.spun, at), count, rows, wide, view(spun, j))
        for c, j in lanes(count, n):
            P[(first + c) * wide + j] = spun[c * wide + j]


@procedure
def fill_rows(x: Horizon, P: "float[:]", M: "float[:]", own: "float[:]", minus: "float[:]"):
    """Riccati terms ``M``, ``-N``, ``P_qq`` of a step without rotating joints."""
    h, nv, wide = x.h, x.n // 2, x.wide
    for i, j in lanes(nv, nv):
        top = P[i * wide + j]
        across = P[i * wide + nv + j] + P[(nv + i) * wide + j]
        M[i * nv + j] = h * (h * top + across) + P[(nv + i) * wide + nv + j]
        minus[i * wide + j] = -(h * top + P[(nv + i) * wide + j])
        own[i * wide + j] += top


@procedure
def fill_turning(
    x: Horizon, k: int, P: "float[:]", M: "float[:]", own: "float[:]", minus: "float[:]"
):
    """Riccati terms ``M``, ``-N``, ``Aᵀ P_qq A`` with ``dq' = A dq + h B dqd'``.

    With ``U = Bᵀ P_q`` and ``T = Aᵀ P_q``, ``M = h² U_q B + h (U_v + U_vᵀ) + P_vv`` and
    ``N = h U_q A + T_vᵀ``. ``P`` is overwritten.
    """
    h, nv, wide = x.h, x.n // 2, x.wide
    T = view(M, nv * nv)
    Q = view(T, 6 * (x.turns + 1) * wide)
    turn_rows(x, k, P, T)
    for i, j in lanes(nv, nv):  # T_q, U_q
        top = P[i * wide + j]
        Q[i * nv + j] = M[i * nv + j] = top
        minus[i * wide + j] = h * top
    for t in range(x.turns):
        first, count, at = x.turn[t], x.width[t], (k * x.turns + t) * 36
        for c, j in lanes(count, nv):
            Q[(first + c) * nv + j] = T[(6 * t + c) * wide + j]
        for i, c in lanes(nv, count):  # T_vᵀ: low rows hold P_vq
            P[(nv + i) * wide + first + c] = T[(6 * t + c) * wide + nv + i]
        for which, i in lanes(3, nv):
            if which == 0:
                times_block(view(M, i * nv + first), view(x.spun, at), count)
            elif which == 1:
                times_block(view(minus, i * wide + first), view(x.turned, at), count)
            else:
                times_block(view(Q, i * nv + first), view(x.turned, at), count)
    for i, j in lanes(nv, nv):
        across = P[i * wide + nv + j] + P[j * wide + nv + i]
        M[i * nv + j] = h * (h * M[i * nv + j] + across) + P[(nv + i) * wide + nv + j]
        minus[i * wide + j] = -(minus[i * wide + j] + P[(nv + i) * wide + j])
        own[i * wide + j] += Q[i * nv + j]


@procedure
def pull_back_simply(x: Horizon, k: int):
    """Riccati recursion of a semi-implicit step, where positions follow from velocities.

    ``H += V' (M V + N, w) + N' V``, ``N`` for positions alone: ``B`` has the rows of
    ``-(M V + N, w)``, then of ``V``; ``A``, which begins there, those of ``V``, then of ``-N``.
    """
    n, m, size, h, nv, wide = x.n, x.m, x.n + x.m, x.h, x.n // 2, x.wide
    P = view(x.H, ((k + 1) * size + m) * wide + m)
    own = view(x.H, k * size * wide)
    B = view(x.panel, 0)
    A = view(x.panel, nv * wide)
    minus = view(x.panel, n * wide)
    lines = view(x.room, 0)
    M = view(lines, n)
    mirror(P, n, wide)
    for i in lanes(n):
        lines[i] = value_of_gap(P, n, wide, view(x.gap, k * n), i)
    F = view(x.F, (k * n + nv) * size)
    for i, c in lanes(nv, size):
        A[i * wide + c] = F[i * size + c]
    for i, c in lanes(nv, wide - size):
        A[i * wide + size + c] = 0.0
    for i, c in lanes(nv, wide):
        minus[i * wide + c] = 0.0
    if x.turns > 0:
        fill_turning(x, k, P, M, view(own, m * wide + m), view(minus, m))
    else:
        fill_rows(x, P, M, view(own, m * wide + m), view(minus, m))
    for i, c in lanes(nv, wide):
        B[i * wide + c] = minus[i * wide + c]
    for i in lanes(nv):
        B[i * wide + size] = -(h * along(x, k, x.spun, lines, i) + lines[nv + i])
        own[(m + i) * wide + size] += along(x, k, x.turned, lines, i)
    subtract_tiles(B, wide, M, nv, A, nv, nv, wide)
    first, end = 6 * (m // 6), min(size, 6 * ((m + nv + 5) // 6))
    if lane_count() > 1:
        subtract_upper_tiles(own, wide, A, B, nv, 0, first, size)
    else:
        subtract_square_tiles(own, wide, A, B, nv, 0, first)
        subtract_square_tiles(own, wide, A, B, n, first, end)
        subtract_square_tiles(own, wide, A, B, nv, end, size)


@procedure
def along(x: Horizon, k: int, blocks: "float[:]", p: "float[:]", i: int) -> float:
    """Entry ``i`` of ``Bᵀ p`` with the blocks of rotating joints."""
    for t in range(x.turns):
        first, count = x.turn[t], x.width[t]
        if first <= i < first + count:
            B = view(blocks, (k * x.turns + t) * 36)
            total = 0.0
            for e in range(count):
                total += B[e * count + i - first] * p[first + e]
            return total
    return p[i]


@procedure
def find_gains(x: Horizon, k: int):
    """Feedback ``u = K x + z`` from the rows of the Riccati factor."""
    n, m, wide = x.n, x.m, x.wide
    U = view(x.H, k * (n + m) * wide)
    short = 8 * ((n + 8) // 8)
    X = view(x.panel, 0)
    for a, c in lanes(m, n + 1):
        X[a * short + c] = U[a * wide + m + c]
    for a, c in lanes(m, short - n - 1):
        X[a * short + n + 1 + c] = 0.0
    solve_tiles(U, wide, m, X, short, short, view(x.panel, m * short))
    for a, c in lanes(m, n):
        x.K[(k * m + a) * n + c] = -X[a * short + c]
    for a in lanes(m):
        x.z[k * (n + m) + a] = -X[a * short + n]


@procedure
def roll_out(x: Horizon):
    """Forward pass: states and controls from the feedback gains."""
    n, m, size, z = x.n, x.m, x.n + x.m, x.z
    for i in lanes(n):
        z[m + i] = 0.0
    for i in lanes(m):
        z[x.steps * size + i] = 0.0
    half = x.n // 2 if x.h != 0.0 else 0  # positions follow from velocities
    for k in range(x.steps):
        here = k * size
        for a in lanes(m):
            z[here + a] += product(view(x.K, (k * m + a) * n), view(z, here + m), n)
        after = view(z, here + size + m)
        for e in lanes(n - half):
            i = half + e
            row = view(x.F, (k * n + i) * size)
            after[i] = product(row, view(z, here), size)
        if half > 0:
            move_positions(x, k, view(z, here + m), after)
        for i in lanes(n):
            after[i] += x.gap[k * n + i]


@procedure
def move_positions(x: Horizon, k: int, now: "float[:]", after: "float[:]"):
    """Position changes after a step, from those before and the velocity changes."""
    nv = x.n // 2
    for i in lanes(nv):
        after[i] = now[i] + x.h * after[nv + i]
    for t in range(x.turns):
        first, count, at = x.turn[t], x.width[t], (k * x.turns + t) * 36
        for i in lanes(count):
            total = 0.0
            for e in range(count):
                total += x.turned[at + i * count + e] * now[first + e]
                total += x.spun[at + i * count + e] * (x.h * after[nv + first + e])
            after[first + i] = total


@procedure
def solve_horizon(x: Horizon) -> int:
    """Solve the linear-quadratic problem by a Riccati recursion; 0, or 1 if not convex."""
    m, size, wide = x.m, x.n + x.m, x.wide
    for e in range(x.steps):
        k = x.steps - 1 - e
        if x.h != 0.0:
            pull_back_simply(x, k)
        else:
            pull_back(x, k)
        own = view(x.H, k * size * wide)
        if factor_tiles(own, m, wide) != 0:
            return 1
        subtract_square_tiles(own, wide, own, own, m, m, size)
        find_gains(x, k)
    roll_out(x)
    return 0
