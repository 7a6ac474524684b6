# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Riccati's recursion by the lanes of a team, with the matrices of a step in its memory.

For horizons whose positions follow from velocities, ``dq' = A dq + h B dqd'``: with ``G`` the
matrix of both, the cost to go ``P`` becomes ``Gᵀ P G`` in place, of which ``M``, ``N`` and
``A' P_qq A`` are blocks. Of the matrix of a knot, ``H + V' (M V + N) + N' V``, a lane has a tile of
six rows and four columns in registers, from when it is read until the cost to go is left of it. The
columns of a tile are as far apart as a row has tiles: what lanes read together lies side by side.

The memory of a team, one after the other: ``P``, with its gradient as last column;  ``V``;
``W = M V + N``, where gap and blocks are before;  the latter two become ``L`` and rows of controls.
"""

from kinetree.codegen.procedures import lanes, local, procedure, unroll, view
from kinetree.control.lane_columns import eliminate, has_right_signs, solve_backward
from kinetree.control.riccati import Horizon, roll_out

LINES = 32
"""Controls that a lane has room for, and one more."""


def team_panel_of(n: int, m: int, turns: int) -> int:
    """Size of one step's working matrices, for ``n`` states and ``m`` controls [numbers]."""
    size, nv = n + m, n // 2
    products = nv * size + max(nv * size, n + 72 * turns)
    return n * (n + 1) + max(products, m * m + max(m * (size + 1), 2 * m * (n + 1))) + 8


def count_tiles(n: int, m: int) -> int:
    """Number of tiles of a knot's matrix, for ``n`` states and ``m`` controls."""
    starts = [*range(0, m, 6), *range(m, m + n // 2, 6), *range(m + n // 2, n + m, 6)]
    return sum(-(-(n + m - r) // 4) for r in starts)


def has_room(n: int, m: int, lanes: int) -> bool:
    """Whether a team of ``lanes`` has a lane for each tile and each column of controls."""
    return count_tiles(n, m) <= lanes and n + m < lanes and m < LINES


@procedure(inline=True)
def across(x: Horizon, r: int) -> int:
    """Number of tiles side by side from the diagonal on, in row ``r`` of a knot's matrix."""
    return (x.n + x.m - r + 3) // 4


@procedure(inline=True)
def rows_end(x: Horizon, r: int) -> int:
    """Row after a tile that begins at row ``r``, within controls, positions or velocities."""
    end = x.n + x.m
    if r < x.m:
        end = x.m
    elif r < x.m + x.n // 2:
        end = x.m + x.n // 2
    return min(r + 6, end)


@procedure(inline=True)
def row_of_tile(x: Horizon, tile: int) -> int:
    """First row of a tile of a knot's matrix."""
    r, t = 0, tile
    while t >= across(x, r):
        t -= across(x, r)
        r = rows_end(x, r)
    return r


@procedure(inline=True)
def column_of_tile(x: Horizon, tile: int) -> int:
    """First column of a tile of a knot's matrix."""
    r, t = 0, tile
    while t >= across(x, r):
        t -= across(x, r)
        r = rows_end(x, r)
    return r + t


@procedure(inline=True)
def all_tiles(x: Horizon) -> int:
    """Number of tiles of a knot's matrix, as a procedure."""
    r, count = 0, 0
    while r < x.n + x.m:
        count += across(x, r)
        r = rows_end(x, r)
    return count


@procedure(inline=True)
def add_turn(
    x: "float[6, 4]", A: "float[:]", a: int, B: "float[:]", b: int, apart: int, part: float
):
    """Add a multiple of the outer product of six and four numbers to a tile."""
    for i in unroll(6):
        for j in unroll(4):
            x[i, j] += (part * A[a + i]) * B[b + j * apart]


@procedure(inline=True)
def add_products(
    x: "float[6, 4]",
    A: "float[:]",
    wa: int,
    B: "float[:]",
    wb: int,
    apart: int,
    depth: int,
    part: float,
):
    """Add ``part`` times ``Aᵀ B`` to a tile, for six columns of ``A`` and four of ``B``."""
    for e in range(0, depth - 1, 2):
        add_turn(x, A, e * wa, B, e * wb, apart, part)
        add_turn(x, A, (e + 1) * wa, B, (e + 1) * wb, apart, part)
    if depth % 2 == 1:
        add_turn(x, A, (depth - 1) * wa, B, (depth - 1) * wb, apart, part)


@procedure(inline=True)
def begin_cost(x: Horizon):
    """Initialise the cost-to-go with the full matrix of the last knot."""
    n, m, size, wide = x.n, x.m, x.n + x.m, x.wide
    P = view(x.panel, 0)
    H = view(x.H, (x.steps * size + m) * wide + m)
    for i, j in lanes(n, n):
        P[i * (n + 1) + j] = H[min(i, j) * wide + max(i, j)]
    for i in lanes(n):
        P[i * (n + 1) + n] = H[i * wide + n]


@procedure(inline=True)
def read_step(x: Horizon, k: int):
    """Load a step's velocity derivatives, gap and the blocks of rotating joints."""
    n, size, nv = x.n, x.n + x.m, x.n // 2
    V = view(x.panel, n * (n + 1))
    more = view(x.panel, n * (n + 1) + nv * size)
    F = view(x.F, (k * n + nv) * size)
    for i in lanes(nv * size):
        V[i] = F[i]
    for i in lanes(n):
        more[i] = x.gap[k * n + i]
    for t in range(x.turns):
        count, at = x.width[t], (k * x.turns + t) * 36
        for e in lanes(36):
            i, j = e // 6, e % 6
            turned, spun = 0.0, 0.0
            if i < count and j < count:
                turned = x.turned[at + i * count + j]
                spun = x.spun[at + i * count + j] - (1.0 if i == j else 0.0)
            more[n + 72 * t + e] = turned
            more[n + 72 * t + 36 + e] = spun


@procedure(inline=True)
def move_line(x: Horizon, line: "float[:]", apart: int):
    """Multiply a row or column of the cost-to-go by ``G``, the blocks of rotating joints."""
    n, nv = x.n, x.n // 2
    blocks = view(x.panel, n * (n + 1) + nv * (n + x.m) + n)
    q = local("float", 6)
    for j in range(nv):
        line[(nv + j) * apart] += x.h * line[j * apart]
    for t in range(x.turns):
        first, count = x.turn[t], x.width[t]
        for e in unroll(6):
            q[e] = line[(first + e) * apart] if e < count else 0.0
        for c in unroll(6):
            turned, spun = 0.0, 0.0
            for e in unroll(6):
                turned += q[e] * blocks[72 * t + 6 * e + c]
                spun += q[e] * blocks[72 * t + 36 + 6 * e + c]
            if c < count:
                line[(first + c) * apart] = turned
                line[(nv + first + c) * apart] += x.h * spun


@procedure(inline=True)
def move_cost(x: Horizon):
    """Transform the cost-to-go to positions before a step and velocities after it."""
    n, nv, wide = x.n, x.n // 2, x.n + 1
    P = view(x.panel, 0)
    gap = view(x.panel, n * wide + nv * (n + x.m))
    for i in lanes(n):
        total = P[i * wide + n]
        for j in range(n):
            total += P[i * wide + j] * gap[j]
        P[i * wide + n] = total
    for i in lanes(n):
        move_line(x, view(P, i * wide), 1)
    for j in lanes(wide):
        move_line(x, view(P, j), wide)


@procedure(inline=True)
def multiply_velocities(x: Horizon):
    """Matrix product ``W = M V + N`` of the Riccati recursion."""
    n, m, size, nv, wide = x.n, x.m, x.n + x.m, x.n // 2, x.n + 1
    P = view(x.panel, 0)
    V = view(x.panel, n * wide)
    W = view(x.panel, n * wide + nv * size)
    apart = (size + 3) // 4
    y = local("float", 6, 4)
    for tile in lanes((nv + 5) // 6 * apart):
        r, c = 6 * (tile // apart), tile % apart
        for i in unroll(6):
            for j in unroll(4):
                y[i, j] = 0.0
        add_products(y, view(P, nv * wide + nv + r), wide, view(V, c), size, apart, nv, 1.0)
        for i in unroll(6):
            for j in unroll(4):
                row, column = r + i, c + j * apart
                if row < nv and column < size:
                    own = y[i, j]
                    if m <= column < m + nv:
                        own += P[(nv + row) * wide + column - m]
                    W[row * size + column] = own


@procedure(inline=True)
def fill_tiles(x: Horizon, k: int, y: "float[6, 4]", g: "float[1]"):
    """Tiles of a knot's matrix plus the cost-to-go, and an entry of the gradient."""
    n, m, size, nv, wide = x.n, x.m, x.n + x.m, x.n // 2, x.n + 1
    P = view(x.panel, 0)
    V = view(x.panel, n * wide)
    W = view(x.panel, n * wide + nv * size)
    H = view(x.H, k * size * x.wide)
    for tile in lanes(all_tiles(x)):
        r, c = row_of_tile(x, tile), column_of_tile(x, tile)
        apart = across(x, r)
        for i in unroll(6):
            for j in unroll(4):
                y[i, j] = H[(r + i) * x.wide + c + j * apart]
        if m <= r < m + nv:
            for i in unroll(6):
                for j in unroll(4):
                    column = c + j * apart
                    if column < m + nv:
                        y[i, j] += P[(r - m + i) * wide + column - m]
            N = view(P, nv * wide + r - m)
            add_products(y, N, wide, view(V, c), size, apart, nv, 1.0)
        add_products(y, view(V, r), size, view(W, c), size, apart, nv, 1.0)
    for c in lanes(size):
        total = H[c * x.wide + size]
        if m <= c < m + nv:
            total += P[(c - m) * wide + n]
        for e in range(nv):
            total += V[e * size + c] * P[(nv + e) * wide + n]
        g[0] = total


@procedure(inline=True)
def put_controls(x: Horizon, y: "float[6, 4]", g: "float[1]"):
    """Store the rows of controls of a knot's full matrix, and its gradient."""
    n, m, size, wide = x.n, x.m, x.n + x.m, x.n + 1
    P = view(x.panel, 0)
    U = view(x.panel, n * wide + m * m)
    for tile in lanes(all_tiles(x)):
        r, c = row_of_tile(x, tile), column_of_tile(x, tile)
        apart, end = across(x, r), rows_end(x, r)
        if r < m:
            for i in unroll(6):
                for j in unroll(4):
                    row, column = r + i, c + j * apart
                    if row < end and row <= column < size:
                        U[row * (size + 1) + column] = y[i, j]
                        if column < m:
                            U[column * (size + 1) + row] = y[i, j]
    for c in lanes(size):
        if c < m:
            U[c * (size + 1) + size] = g[0]
        else:
            P[(c - m) * wide + n] = g[0]


@procedure(inline=True)
def find_feedback(x: Horizon, k: int) -> int:
    """Feedback of a step and its reduction of the cost; 0, or 1 without positive pivots.

    ``Y = L⁻¹ (H_ux, g_u)``, and ``D⁻¹ Y`` after it.
    """
    n, m, size, wide = x.n, x.m, x.n + x.m, x.n + 1
    L = view(x.panel, n * wide)
    U = view(x.panel, n * wide + m * m)
    Z = view(U, m * wide)
    own = local("float", 32)
    for c in lanes(size + 1):
        for i in unroll(m):
            own[i] = U[i * (size + 1) + c]
    eliminate(L, m, size + 1, own)
    if not has_right_signs(L, m, m):
        return 1
    for c in lanes(size + 1):
        if c >= m:
            for i in unroll(m):
                U[i * wide + c - m] = own[i]
                Z[i * wide + c - m] = own[i] * L[i * m + i]
    for c in lanes(size + 1):
        if c >= m:
            solve_backward(L, m, own)
            for i in unroll(m):
                if c < size:
                    x.K[(k * m + i) * n + c - m] = -own[i]
                else:
                    x.z[k * size + i] = -own[i]
    return 0


@procedure(inline=True)
def leave_cost(x: Horizon, y: "float[6, 4]"):
    """Cost-to-go at a knot, from its tiles less the reduction by feedback."""
    n, m, size, wide = x.n, x.m, x.n + x.m, x.n + 1
    P = view(x.panel, 0)
    Y = view(x.panel, n * wide + m * m)
    Z = view(Y, m * wide)
    for tile in lanes(all_tiles(x)):
        r, c = row_of_tile(x, tile), column_of_tile(x, tile)
        apart, end = across(x, r), rows_end(x, r)
        if r >= m:
            add_products(y, view(Y, r - m), wide, view(Z, c - m), wide, apart, m, -1.0)
            for i in unroll(6):
                for j in unroll(4):
                    row, column = r + i, c + j * apart
                    if row < end and row <= column < size:
                        P[(row - m) * wide + column - m] = y[i, j]
                        P[(column - m) * wide + row - m] = y[i, j]
    for c in lanes(n):
        total = P[c * wide + n]
        for e in range(m):
            total -= Z[e * wide + c] * Y[e * wide + n]
        P[c * wide + n] = total


@procedure
def solve_horizon_in_team(x: Horizon) -> int:
    """Solve the linear-quadratic problem in a team's shared memory, like ``solve_horizon``."""
    y = local("float", 6, 4)
    g = local("float", 1)
    begin_cost(x)
    for e in range(x.steps):
        k = x.steps - 1 - e
        read_step(x, k)
        move_cost(x)
        multiply_velocities(x)
        fill_tiles(x, k, y, g)
        put_controls(x, y, g)
        if find_feedback(x, k) != 0:
            return 1
        leave_cost(x, y)
    roll_out(x)
    return 0
