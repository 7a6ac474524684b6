# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""A linear-quadratic problem over a horizon: Riccati's recursion.

A knot has the variables ``z = (u, x)``: controls first, so that eliminating them from the matrix
``[[H_uu, H_ux], [H_xu, H_xx]]`` leaves the matrix of the cost to go. Every matrix ``H`` has its
gradient as one more column, and so do factors and what they leave. Matrices are symmetric: only
what is on and above the diagonal is read and written.

Where positions follow from velocities at the end of a step, ``dq' = dq + h dqd'``, with ``V`` the
derivatives of velocities, the cost to go ``P`` becomes ``V' M V + V' N + N' V + P_qq``, with
``M = h² P_qq + h (P_qv + P_vq) + P_vv`` and ``N = h P_qq + P_vq``: a third of the operations. For
floating bodies, ``dq' = A dq + h B dqd'`` with small blocks.
"""

from kinetree.codegen.procedures import local, procedure, record, view
from kinetree.contact.newton.cholesky import take
from kinetree.control.cholesky import factored, substituted


@record
class Horizon:
    """A linear-quadratic problem: minimise ``sum of z' H z / 2 + g' z``, ``x' = F z + gap``.

    From ``x = 0``.

    Attributes:
        n, m: numbers of states and controls;  steps: of the horizon.
        h: of steps whose positions follow from velocities, 0 for others.
        F: derivatives of next states, (steps, n, m + n);  gap: (steps, n).
        H: matrices and gradients, (steps + 1, m + n, m + n + 1); overwritten.
        K: gains ``du = K dx``, (steps, m, n);  z: the solution, (steps + 1, m + n).
        room: ``2 n (n + m + 2)`` numbers.
        turns: joints whose positions follow by blocks, ``dq' = turned dq + h spun dqd'``;  turn,
            width: their first variables, and how many;  turned, spun: (steps, turns, 36).
    """

    n: int
    m: int
    steps: int
    h: float
    F: "float[:]"
    gap: "float[:]"
    H: "float[:]"
    K: "float[:]"
    z: "float[:]"
    room: "float[:]"
    turns: int
    turn: "int[:]"
    width: "int[:]"
    turned: "float[:]"
    spun: "float[:]"


@procedure
def take_upper(
    C: "float[:]", wc: int, A: "float[:]", wa: int, B: "float[:]", wb: int, depth: int, rows: int
):
    """``C -= A' B`` where it counts: of a symmetric matrix with a column more, from its diagonal.

    ``C`` is (rows, rows + 1) with wider rows; some numbers below the diagonal are written, too.
    """
    r = 0
    while r < rows:
        count = min(6, rows - r)
        to = view(C, r * wc + r)
        take(to, wc, view(A, r), wa, view(B, r), wb, depth, count, rows + 1 - r)
        r += count


@procedure
def mirror(P: "float[:]", n: int, wide: int):
    """Fill a symmetric matrix below its diagonal."""
    for i in range(n):
        for j in range(i):
            P[i * wide + j] = P[j * wide + i]


@procedure
def pull_back(x: Horizon, k: int):
    """Add the cost to go after step ``k`` to the matrix of its knot."""
    n, size, room = x.n, x.n + x.m, x.room
    wide = size + 1
    F = view(x.F, k * n * size)
    P = view(x.H, ((k + 1) * size + x.m) * wide + x.m)
    mirror(P, n, wide)
    for i in range(n * wide):
        room[i] = 0.0
    for r in range(0, n, 6):
        take(view(room, r * wide), wide, view(P, r), wide, F, size, n, min(6, n - r), size)
    for i in range(n):
        total = P[i * wide + n]
        for j in range(n):
            total += P[i * wide + j] * x.gap[k * n + j]
        room[i * wide + size] = -total
    take_upper(view(x.H, k * size * wide), wide, F, size, room, wide, n, size)


@procedure
def times_blocks(x: Horizon, k: int, blocks: "float[:]", P: "float[:]", transposed: int):
    """``P B``, or ``Bᵀ P``, in place for (nv, nv), with the blocks of joints that turn at ``k``."""
    nv = x.n // 2
    for t in range(x.turns):
        first, count = x.turn[t], x.width[t]
        B = view(blocks, (k * x.turns + t) * 36)
        y = local("float", 6)
        for i in range(nv):
            step = nv if transposed == 1 else 1
            line = view(P, i + first * nv) if transposed == 1 else view(P, i * nv + first)
            for c in range(count):
                y[c] = 0.0
                for e in range(count):
                    y[c] += line[e * step] * B[e * count + c]
            for c in range(count):
                line[c * step] = y[c]


@procedure
def fill_simple(x: Horizon, k: int, P: "float[:]", M: "float[:]", N: "float[:]"):
    """``M`` and ``N`` of a step, from the cost to go."""
    h, nv, wide = x.h, x.n // 2, x.n + x.m + 1
    for i in range(nv):
        top = view(P, i * wide)
        low = view(P, (nv + i) * wide)
        for j in range(nv):
            both = h * top[nv + j] + h * low[j]
            M[i * nv + j] = h * h * top[j] + both + low[nv + j]
            N[i * nv + j] = h * top[j] + low[j]


@procedure
def fill_turning(x: Horizon, k: int, P: "float[:]", room: "float[:]"):
    """``fill_simple`` with blocks, ``dq' = A dq + h B dqd'``, and ``A' P_qq A``."""
    h, nv, wide = x.h, x.n // 2, x.n + x.m + 1
    square = nv * nv
    M = view(room, 0)
    N = view(room, square)
    Q = view(room, 2 * square)
    R = view(room, 3 * square)
    for i in range(nv):
        for j in range(nv):
            M[i * nv + j] = N[i * nv + j] = Q[i * nv + j] = P[i * wide + j]
            R[i * nv + j] = P[i * wide + nv + j]
    times_blocks(x, k, x.spun, N, 1)
    times_blocks(x, k, x.spun, R, 1)
    times_blocks(x, k, x.spun, M, 1)
    times_blocks(x, k, x.spun, M, 0)
    times_blocks(x, k, x.turned, Q, 1)
    times_blocks(x, k, x.turned, Q, 0)
    for i in range(nv):
        low = view(P, (nv + i) * wide)
        for j in range(nv):
            both = R[i * nv + j] + R[j * nv + i]
            M[i * nv + j] = h * h * M[i * nv + j] + h * both + low[nv + j]
            N[i * nv + j] = h * N[i * nv + j] + low[j]
    times_blocks(x, k, x.turned, N, 0)


@procedure
def pull_back_simply(x: Horizon, k: int):
    """``pull_back`` where positions follow from velocities."""
    n, m, size, h, nv = x.n, x.m, x.n + x.m, x.h, x.n // 2
    wide = size + 1
    P = view(x.H, ((k + 1) * size + m) * wide + m)
    V = view(x.F, (k * n + nv) * size)
    own = view(x.H, k * size * wide)
    mirror(P, n, wide)
    M = view(x.room, 0)
    N = view(x.room, nv * nv)
    Q = view(x.room, 2 * nv * nv)
    W = view(x.room, 4 * nv * nv)
    lines = view(x.room, 4 * nv * nv + nv * wide)
    if x.turns > 0:
        fill_turning(x, k, P, x.room)
    else:
        fill_simple(x, k, P, M, N)
    push = view(x.gap, k * n)
    for i in range(n):
        row = view(P, i * wide)
        lines[i] = row[n]
        for j in range(n):
            lines[i] += row[j] * push[j]
    for i in range(nv):
        row = view(W, i * wide)
        into = view(own, (m + i) * wide + m)
        for c in range(size):
            row[c] = 0.0
        row[size] = -(h * along(x, k, x.spun, lines, i) + lines[nv + i])
        for j in range(nv):
            row[m + j] = -N[i * nv + j]
            into[j] += Q[i * nv + j] if x.turns > 0 else P[i * wide + j]
        into[n] += along(x, k, x.turned, lines, i)
    # W = -(M V + N, w) and H += V' (M V + N, w) + N' V, positions alone
    for r in range(0, nv, 6):
        take(view(W, r * wide), wide, view(M, r), nv, V, size, nv, min(6, nv - r), size)
    take_upper(own, wide, V, size, W, wide, nv, size)
    for i in range(nv * nv):
        N[i] = -N[i]
    for r in range(0, nv, 6):
        count, into = min(6, nv - r), view(own, (m + r) * wide + m)
        take(into, wide, view(N, r), nv, view(V, m), size, nv, count, n)


@procedure
def along(x: Horizon, k: int, blocks: "float[:]", p: "float[:]", i: int) -> float:
    """A number of ``Bᵀ p`` with the blocks of joints that turn."""
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
    """``u = K x + z`` from the rows of the factor, which are overwritten."""
    n, m = x.n, x.m
    wide = n + m + 1
    U = view(x.H, k * (n + m) * wide)
    substituted(U, wide, m, view(U, m), n + 1, x.room)
    for a in range(m):
        row = view(U, a * wide + m)
        K = view(x.K, (k * m + a) * n)
        for c in range(n):
            K[c] = -row[c]
        x.z[k * (n + m) + a] = -row[n]


@procedure
def product(a: "float[:]", b: "float[:]", count: int) -> float:
    """The scalar product of two arrays: six sums, then theirs."""
    sums = local("float", 6)
    for i in range(6):
        sums[i] = 0.0
    c = 0
    while c + 6 <= count:
        sums += view(a, c, 6) * view(b, c, 6)
        c += 6
    total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + (sums[4] + sums[5])
    while c < count:
        total += a[c] * b[c]
        c += 1
    return total


@procedure
def roll_out(x: Horizon):
    """The solution from its gains."""
    n, m, size, z = x.n, x.m, x.n + x.m, x.z
    for i in range(n):
        z[m + i] = 0.0
    for i in range(m):
        z[x.steps * size + i] = 0.0
    for k in range(x.steps):
        here = k * size
        for a in range(m):
            z[here + a] += product(view(x.K, (k * m + a) * n), view(z, here + m), n)
        for i in range(n):
            row = view(x.F, (k * n + i) * size)
            z[here + size + m + i] = x.gap[k * n + i] + product(row, view(z, here), size)


@procedure
def solve_horizon(x: Horizon) -> int:
    """Solve a linear-quadratic problem: 0, or 1 if a matrix was not positive."""
    n, m, size = x.n, x.m, x.n + x.m
    wide = size + 1
    for e in range(x.steps):
        k = x.steps - 1 - e
        if x.h != 0.0:
            pull_back_simply(x, k)
        else:
            pull_back(x, k)
        own = view(x.H, k * size * wide)
        if factored(own, m, wide) != 0:
            return 1
        right = view(own, m)
        take_upper(view(own, m * wide + m), wide, right, wide, right, wide, m, n)
        find_gains(x, k)
    roll_out(x)
    return 0
