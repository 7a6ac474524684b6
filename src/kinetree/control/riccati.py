# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""A linear-quadratic problem over a horizon: Riccati's recursion.

A knot has the variables ``z = (u, x)``: controls first, so that eliminating them from the matrix
``[[H_uu, H_ux], [H_xu, H_xx]]`` leaves the matrix of the cost to go. Every matrix ``H`` has its
gradient as one more column, and so do factors and what they leave. Matrices are symmetric: only
what is on and above the diagonal is read and written.

Where positions follow from velocities at the end of a step, ``dq' = dq + h dqd'``, with ``V`` the
derivatives of velocities, the cost to go ``P`` becomes ``V' M V + V' N + N' V + P_qq``, with
``M = h² P_qq + h (P_qv + P_vq) + P_vv`` and ``N = h P_qq + P_vq``: a third of the operations.
"""

from kinetree.codegen.procedures import procedure, record, view
from kinetree.contact.newton.cholesky import take
from kinetree.control.cholesky import factored


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
        room: ``2 n (n + m + 1)`` numbers.
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
    take(room, wide, P, wide, F, size, n, n, size)
    for i in range(n):
        total = P[i * wide + n]
        for j in range(n):
            total += P[i * wide + j] * x.gap[k * n + j]
        room[i * wide + size] = -total
    take_upper(view(x.H, k * size * wide), wide, F, size, room, wide, n, size)


@procedure
def pull_back_simply(x: Horizon, k: int):
    """Pull a quadratic form back where positions follow from velocities."""
    n, m, size, h, nv = x.n, x.m, x.n + x.m, x.h, x.n // 2
    wide = size + 1
    P = view(x.H, ((k + 1) * size + m) * wide + m)
    V = view(x.F, (k * n + nv) * size)
    own = view(x.H, k * size * wide)
    mirror(P, n, wide)
    M = view(x.room, 0)
    N = view(x.room, nv * nv)
    W = view(x.room, 2 * nv * nv)
    for i in range(nv):
        top = view(P, i * wide)
        low = view(P, (nv + i) * wide)
        for j in range(nv):
            both = h * top[nv + j] + h * low[j]
            M[i * nv + j] = h * h * top[j] + both + low[nv + j]
            N[i * nv + j] = h * top[j] + low[j]
        push = view(x.gap, k * n)
        upper = top[n]
        lower = low[n]
        for j in range(n):
            upper += top[j] * push[j]
            lower += low[j] * push[j]
        row = view(W, i * wide)
        for c in range(size):
            row[c] = 0.0
        row[size] = -(h * upper + lower)
        into = view(own, (m + i) * wide + m)
        for j in range(nv):
            row[m + j] = -N[i * nv + j]
            into[j] += top[j]
        into[n] += upper
    # W = -(M V + N, w) and H += V' (M V + N, w) + N' V, positions alone
    take(W, wide, M, nv, V, size, nv, nv, size)
    take_upper(own, wide, V, size, W, wide, nv, size)
    for i in range(nv * nv):
        N[i] = -N[i]
    take(view(own, m * wide + m), wide, N, nv, view(V, m), size, nv, nv, n)


@procedure
def find_gains(x: Horizon, k: int):
    """``u = K x + z`` from the rows of the factor."""
    n, m = x.n, x.m
    wide = n + m + 1
    U = view(x.H, k * (n + m) * wide)
    K = view(x.K, k * m * n)
    free = view(x.z, k * (n + m))
    for e in range(m):
        a = m - 1 - e
        row = view(K, a * n)
        scale = -1.0 / U[a * wide + a]
        for c in range(n):
            row[c] = U[a * wide + m + c]
        total = U[a * wide + m + n]
        for b in range(a + 1, m):
            weight = U[a * wide + b]
            other = view(K, b * n)
            for c in range(n):
                row[c] += weight * other[c]
            total += weight * free[b]
        for c in range(n):
            row[c] = scale * row[c]
        free[a] = scale * total


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
            total = z[here + a]
            for c in range(n):
                total += x.K[(k * m + a) * n + c] * z[here + m + c]
            z[here + a] = total
        for i in range(n):
            total = x.gap[k * n + i]
            for c in range(size):
                total += x.F[(k * n + i) * size + c] * z[here + c]
            z[here + size + m + i] = total


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
