# pyright: reportArgumentType=false, reportInvalidTypeForm=false, reportIndexIssue=false
# pyright: reportInvalidTypeArguments=false, reportCallIssue=false, reportOperatorIssue=false
"""Products and factors of dense matrices in tiles of eight columns, in compiled code.

Rows are multiples of eight numbers long (``pad_to_eight``) and are taken in whole tiles, so that
loops have no remainders: what stands in the padding, and left of the diagonal of symmetric
matrices, is overwritten with numbers that mean nothing.

Where lanes share tiles, these have four columns: what lanes read at the same time lies side by
side.
"""

from kinetree.codegen.procedures import lane_count, lanes, local, procedure, sqrt, view


def pad_to_eight(count: int) -> int:
    """Next multiple of eight."""
    return -(-count // 8) * 8


@procedure(inline=True)
def pad(count: int) -> int:
    """Next multiple of eight, as a procedure."""
    return 8 * ((count + 7) // 8)


@procedure(inline=True)
def clear(x: "float[:]", width: int) -> None:
    """Fill with zeros; ``width`` is a multiple of eight."""
    for c in range(0, width, 8):
        own = view(x, c, 8)
        own[0:8] = 0.0


@procedure(inline=True)
def add_row(y: "float[:]", a: float, x: "float[:]", width: int) -> None:
    """Add a multiple of a row, ``y += a x``; ``width`` is a multiple of eight."""
    for c in range(0, width, 8):
        own = view(y, c, 8)
        own += a * view(x, c, 8)


@procedure(inline=True)
def times_row(a: "float[:]", b: "float[:]", width: int) -> float:
    """Scalar product of two rows, in eight sums; ``width`` is a multiple of eight."""
    sums = local("float", 8)
    sums[0:8] = 0.0
    for c in range(0, width, 8):
        sums += view(a, c, 8) * view(b, c, 8)
    even = (sums[0] + sums[4]) + (sums[2] + sums[6])
    return even + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


@procedure
def product(a: "float[:]", b: "float[:]", count: int) -> float:
    """Scalar product of two rows of any length."""
    sums = local("float", 8)
    sums[0:8] = 0.0
    c = 0
    while c + 8 <= count:
        sums += view(a, c, 8) * view(b, c, 8)
        c += 8
    total = (sums[0] + sums[4]) + (sums[2] + sums[6])
    total += (sums[1] + sums[5]) + (sums[3] + sums[7])
    while c < count:
        total += a[c] * b[c]
        c += 1
    return total


@procedure
def square_form(H: "float[:]", x: "float[:]", n: int) -> float:
    """A lane's share of the quadratic form ``xᵀ H x``, by the upper triangle of ``H``."""
    total = 0.0
    if lane_count() > 1:
        for i, c in lanes(n, n):
            times = min(max(c - i + 1, 0), 2)  # numbers below the diagonal count by those above it
            total += times * x[i] * H[i * n + c] * x[c]
        return total
    for i in range(n):
        row = view(H, i * n + i)
        half = product(row, view(x, i), n - i) - 0.5 * row[0] * x[i]
        total += 2.0 * x[i] * half
    return total


@procedure
def add_transposed(y: "float[:]", A: "float[:]", x: "float[:]", rows: int, count: int) -> None:
    """Add ``Aᵀ x`` to ``y``, shared by lanes, for a matrix of ``rows`` by ``count``."""
    total = local("float", 8)
    if lane_count() > 1:
        for c in lanes(count):
            whole = y[c]
            for r in range(rows):
                whole += x[r] * A[r * count + c]
            y[c] = whole
        return
    for tile in lanes((count + 7) // 8):
        first = 8 * tile
        if first + 8 <= count:
            own = view(y, first, 8)
            total[0:8] = own
            for r in range(rows):
                total += x[r] * view(A, r * count + first, 8)
            own[0:8] = total
        else:
            for c in range(first, count):
                for r in range(rows):
                    y[c] += x[r] * A[r * count + c]


@procedure(inline=True)
def put_six_rows(
    X: "float[:]",
    wide: int,
    a: "float[8]",
    b: "float[8]",
    c: "float[8]",
    d: "float[8]",
    e: "float[8]",
    f: "float[8]",
) -> None:
    """Write six rows of eight numbers to a matrix."""
    row = view(X, 0, 8)
    row[0:8] = a
    row = view(X, wide, 8)
    row[0:8] = b
    row = view(X, 2 * wide, 8)
    row[0:8] = c
    row = view(X, 3 * wide, 8)
    row[0:8] = d
    row = view(X, 4 * wide, 8)
    row[0:8] = e
    row = view(X, 5 * wide, 8)
    row[0:8] = f


@procedure(inline=True)
def take_six_rows(
    C: "float[:]", wide: int, A: "float[:]", wa: int, B: "float[:]", depth: int
) -> None:
    """Update ``C -= Aᵀ B`` for a tile of six rows and eight columns."""
    x = local("float", 6, 8)
    for r in range(6):
        x[r] = view(C, r * wide, 8)
    for e in range(depth):
        k = e * wa
        row = view(B, e * wide, 8)
        x[0] -= A[k] * row
        x[1] -= A[k + 1] * row
        x[2] -= A[k + 2] * row
        x[3] -= A[k + 3] * row
        x[4] -= A[k + 4] * row
        x[5] -= A[k + 5] * row
    put_six_rows(C, wide, x[0], x[1], x[2], x[3], x[4], x[5])


@procedure(inline=True)
def take_three_rows(
    C: "float[:]", wide: int, A: "float[:]", wa: int, B: "float[:]", depth: int
) -> None:
    """Update ``C -= Aᵀ B`` for a tile of three rows and eight columns."""
    x, y, z = local("float", 3, 8)
    x[0:8] = view(C, 0, 8)
    y[0:8] = view(C, wide, 8)
    z[0:8] = view(C, 2 * wide, 8)
    for e in range(depth):
        k = e * wa
        row = view(B, e * wide, 8)
        x -= A[k] * row
        y -= A[k + 1] * row
        z -= A[k + 2] * row
    row = view(C, 0, 8)
    row[0:8] = x
    row = view(C, wide, 8)
    row[0:8] = y
    row = view(C, 2 * wide, 8)
    row[0:8] = z


@procedure(inline=True)
def take_one_row(
    C: "float[:]", wide: int, A: "float[:]", wa: int, B: "float[:]", depth: int
) -> None:
    """Update ``C -= Aᵀ B`` for a tile of one row and eight columns."""
    x = local("float", 8)
    own = view(C, 0, 8)
    x[0:8] = own
    for e in range(depth):
        x -= A[e * wa] * view(B, e * wide, 8)
    own[0:8] = x


@procedure
def subtract(
    C: "float[:]",
    wide: int,
    A: "float[:]",
    wa: int,
    B: "float[:]",
    depth: int,
    rows: int,
    width: int,
) -> None:
    """Matrix update ``C -= Aᵀ B``: C (rows, width), A (depth, rows), B (depth, width).

    Rows of ``C`` and ``B`` are ``wide`` numbers long. ``width`` is a multiple of eight.
    """
    r = 0
    while r + 6 <= rows:
        c = 0
        while c < width:
            take_six_rows(view(C, r * wide + c), wide, view(A, r), wa, view(B, c), depth)
            c += 8
        r += 6
    if r + 3 <= rows:
        c = 0
        while c < width:
            take_three_rows(view(C, r * wide + c), wide, view(A, r), wa, view(B, c), depth)
            c += 8
        r += 3
    while r < rows:
        c = 0
        while c < width:
            take_one_row(view(C, r * wide + c), wide, view(A, r), wa, view(B, c), depth)
            c += 8
        r += 1


@procedure
def subtract_square(
    H: "float[:]", wide: int, A: "float[:]", B: "float[:]", depth: int, first: int, end: int
) -> None:
    """Symmetric update ``H -= Aᵀ B``, rows from ``first`` to ``end``, upper triangle.

    All rows are ``wide`` numbers long and begin at column 0.
    """
    r = first
    while r < end:
        count, c = min(6, end - r), 8 * (r // 8)
        to = view(H, r * wide + c)
        subtract(to, wide, view(A, r), wide, view(B, c), depth, count, wide - c)
        r += count


@procedure(inline=True)
def take_row(x: "float[6, 4]", A: "float[:]", k: int, row: "float[4]") -> None:
    """Subtract the outer product of six numbers from ``A[k]`` on and a row of four."""
    x[0] -= A[k] * row
    x[1] -= A[k + 1] * row
    x[2] -= A[k + 2] * row
    x[3] -= A[k + 3] * row
    x[4] -= A[k + 4] * row
    x[5] -= A[k + 5] * row


@procedure(inline=False)
def subtract_tile(
    C: "float[:]", wide: int, A: "float[:]", wa: int, B: "float[:]", depth: int, rows: int
) -> None:
    """Update ``C -= Aᵀ B`` for a tile of up to six rows and four columns."""
    if rows == 6:
        x = local("float", 6, 4)
        x[0] = view(C, 0, 4)
        x[1] = view(C, wide, 4)
        x[2] = view(C, 2 * wide, 4)
        x[3] = view(C, 3 * wide, 4)
        x[4] = view(C, 4 * wide, 4)
        x[5] = view(C, 5 * wide, 4)
        for e in range(0, depth - 1, 2):
            take_row(x, A, e * wa, view(B, e * wide, 4))
            take_row(x, A, (e + 1) * wa, view(B, (e + 1) * wide, 4))
        if depth % 2 == 1:
            take_row(x, A, (depth - 1) * wa, view(B, (depth - 1) * wide, 4))
        for r in range(6):
            own = view(C, r * wide, 4)
            own[0:4] = x[r]
        return
    y = local("float", 4)
    for r in range(rows):
        own = view(C, r * wide, 4)
        y[0:4] = own
        for e in range(depth):
            y -= A[e * wa + r] * view(B, e * wide, 4)
        own[0:4] = y


@procedure
def subtract_tiles(
    C: "float[:]",
    wide: int,
    A: "float[:]",
    wa: int,
    B: "float[:]",
    depth: int,
    rows: int,
    width: int,
) -> None:
    """Matrix update ``C -= Aᵀ B`` in tiles that lanes share."""
    if lane_count() > 1:
        quarter = width // 4
        for tile in lanes((rows + 5) // 6 * quarter):
            r, c = 6 * (tile // quarter), 4 * (tile % quarter)
            to = view(C, r * wide + c)
            subtract_tile(to, wide, view(A, r), wa, view(B, c), depth, min(6, rows - r))
        return
    across = width // 8
    for tile in lanes((rows + 5) // 6 * across):
        r, c = 6 * (tile // across), 8 * (tile % across)
        to = view(C, r * wide + c)
        subtract(to, wide, view(A, r), wa, view(B, c), depth, min(6, rows - r), 8)


@procedure
def subtract_upper_tiles(
    H: "float[:]",
    wide: int,
    A: "float[:]",
    B: "float[:]",
    depth: int,
    first: int,
    start: int,
    end: int,
) -> None:
    """Symmetric update ``H -= Aᵀ B`` with a further column, a tile per lane.

    Products of ``depth`` rows, of which the first is in the tile from ``start`` on, are twice as
    deep.
    """
    quarters, count, stop = (end + 4) // 4, 0, 6 * ((start + depth + 10) // 6)
    for r in range(first, end, 6):
        count += quarters - r // 4
    for tile in lanes(count):
        r, c = first, tile
        while c >= quarters - r // 4:
            c -= quarters - r // 4
            r += 6
        c = 4 * (r // 4 + c)
        own, rows = 2 * depth if start <= r < stop else depth, min(6, end - r)
        subtract_tile(view(H, r * wide + c), wide, view(A, r), wide, view(B, c), own, rows)


@procedure
def subtract_square_tiles(
    H: "float[:]", wide: int, A: "float[:]", B: "float[:]", depth: int, first: int, end: int
) -> None:
    """Symmetric update ``H -= Aᵀ B`` in tiles that lanes share."""
    if lane_count() > 1:
        subtract_upper_tiles(H, wide, A, B, depth, first, end, end)
        return
    across = wide // 8
    for tile in lanes((end - first + 5) // 6 * across):
        r, c = first + 6 * (tile // across), 8 * (tile % across)
        if c + 8 > r:
            to = view(H, r * wide + c)
            subtract(to, wide, view(A, r), wide, view(B, c), depth, min(6, end - r), 8)


@procedure(inline=True)
def fill_factor(D: "float[:]", wide: int, count: int, U: "float[36]") -> int:
    """Cholesky factor of a block of up to six rows; 0, or 1 if it is not positive.

    ``U`` has rows of six numbers, with inverse pivots on its diagonal.
    """
    for a in range(count):
        pivot = D[a * wide + a]
        for e in range(a):
            pivot -= U[6 * e + a] * U[6 * e + a]
        if not pivot > 0.0:
            return 1
        scale = 1.0 / sqrt(pivot)
        U[7 * a] = scale
        for b in range(a + 1, count):
            x = D[a * wide + b]
            for e in range(a):
                x -= U[6 * e + a] * U[6 * e + b]
            U[6 * a + b] = scale * x
    return 0


@procedure
def factor_block(D: "float[:]", wide: int, count: int, U: "float[36]") -> int:
    """Cholesky factor of a block of up to six rows, unrolled for lanes; 0, or 1 on failure."""
    if lane_count() > 1 and count == 6:
        return fill_factor(D, wide, 6, U)
    return fill_factor(D, wide, count, U)


@procedure(inline=True)
def divide_six(X: "float[:]", wide: int, U: "float[36]") -> None:
    """Triangular solve ``X = U⁻ᵀ X`` for six rows and eight columns."""
    a = U[0] * view(X, 0, 8)
    b = U[7] * (view(X, wide, 8) - U[1] * a)
    c = U[14] * (view(X, 2 * wide, 8) - U[2] * a - U[8] * b)
    d = U[21] * (view(X, 3 * wide, 8) - U[3] * a - U[9] * b - U[15] * c)
    e = U[28] * (view(X, 4 * wide, 8) - U[4] * a - U[10] * b - U[16] * c - U[22] * d)
    f = U[35] * (view(X, 5 * wide, 8) - U[5] * a - U[11] * b - U[17] * c - U[23] * d - U[29] * e)
    put_six_rows(X, wide, a, b, c, d, e, f)


@procedure
def divide_rows(X: "float[:]", wide: int, count: int, U: "float[36]", width: int) -> None:
    """Triangular solve ``X = U⁻ᵀ X`` for up to six rows; ``width`` a multiple of eight."""
    c = 0
    while c < width:
        if count == 6:
            divide_six(view(X, c), wide, U)
        else:
            for a in range(count):
                row = view(X, a * wide + c, 8)
                for e in range(a):
                    row -= U[6 * e + a] * view(X, e * wide + c, 8)
                row *= U[7 * a]
        c += 8


@procedure
def factor_rows(P: "float[:]", rows: int, wide: int) -> int:
    """Cholesky factor ``U`` of ``H = Uᵀ U`` in place; 0, or 1 if it is not positive.

    ``P`` holds the first rows of ``H``, of which the upper half counts; rows are ``wide`` numbers
    long, a multiple of eight. Columns after those of ``H`` are multiplied by the inverse of ``Uᵀ``.
    """
    U = local("float", 36)
    first = 0
    while first < rows:
        count, c = min(6, rows - first), 8 * (first // 8)
        D = view(P, first * wide)
        if first > 0:
            before = view(P, first)
            subtract(view(D, c), wide, before, wide, view(P, c), first, count, wide - c)
        if factor_block(view(D, first), wide, count, U) != 0:
            return 1
        divide_rows(view(D, c), wide, count, U, wide - c)
        first += count
    return 0


@procedure(inline=True)
def divide_column(X: "float[:]", wide: int, count: int, U: "float[36]") -> None:
    """Triangular solve ``x = U⁻ᵀ x`` for one column of up to six rows."""
    for a in range(count):
        total = X[a * wide]
        for e in range(a):
            total -= U[6 * e + a] * X[e * wide]
        X[a * wide] = U[7 * a] * total


@procedure
def factor_tiles(P: "float[:]", rows: int, wide: int) -> int:
    """Cholesky factor ``U`` of ``H = Uᵀ U`` in place, by tiles of lanes; 0, or 1 on failure."""
    U = local("float", 36)
    first = 0
    while first < rows:
        count, c = min(6, rows - first), 8 * (first // 8)
        D = view(P, first * wide)
        if first > 0:
            own, before = view(D, c), view(P, first)
            subtract_tiles(own, wide, before, wide, view(P, c), first, count, wide - c)
        if factor_block(view(D, first), wide, count, U) != 0:
            return 1
        if lane_count() > 1:
            for k in lanes(wide - c):
                if count == 6:
                    divide_column(view(D, c + k), wide, 6, U)
                else:
                    divide_column(view(D, c + k), wide, count, U)
        else:
            divide_rows(view(D, c), wide, count, U, wide - c)
        first += count
    return 0


@procedure
def fill_inverse(U: "float[:]", n: int, wide: int, X: "float[:]") -> None:
    """Inverse of ``Uᵀ``, (n, wide), for a Cholesky factor with rows of equal length."""
    T = local("float", 36)
    clear(X, n * wide)
    for i in range(n):
        X[i * wide + i] = 1.0
    first = 0
    while first < n:
        count, width = min(6, n - first), pad(first + 6)
        width = min(width, wide)
        own = view(X, first * wide)
        if first > 0:
            subtract(own, wide, view(U, first), wide, X, first, count, width)
        for a in range(count):
            at = (first + a) * wide + first
            for b in range(a + 1, count):
                T[6 * a + b] = U[at + b]
            T[7 * a] = 1.0 / U[at + a]
        divide_rows(own, wide, count, T, width)
        first += count


@procedure(inline=True)
def solve_six(X: "float[:]", wide: int, U: "float[36]") -> None:
    """Triangular solve ``X = U⁻¹ X`` for six rows and eight columns."""
    f = U[35] * view(X, 5 * wide, 8)
    e = U[28] * (view(X, 4 * wide, 8) - U[29] * f)
    d = U[21] * (view(X, 3 * wide, 8) - U[23] * f - U[22] * e)
    c = U[14] * (view(X, 2 * wide, 8) - U[17] * f - U[16] * e - U[15] * d)
    b = U[7] * (view(X, wide, 8) - U[11] * f - U[10] * e - U[9] * d - U[8] * c)
    a = U[0] * (view(X, 0, 8) - U[5] * f - U[4] * e - U[3] * d - U[2] * c - U[1] * b)
    put_six_rows(X, wide, a, b, c, d, e, f)


@procedure
def solve_block(X: "float[:]", wide: int, count: int, U: "float[36]", width: int) -> None:
    """Triangular solve ``X = U⁻¹ X`` for up to six rows; ``width`` a multiple of eight."""
    c = 0
    while c < width:
        if count == 6:
            solve_six(view(X, c), wide, U)
        else:
            for k in range(count):
                a = count - 1 - k
                row = view(X, a * wide + c, 8)
                for e in range(a + 1, count):
                    row -= U[6 * a + e] * view(X, e * wide + c, 8)
                row *= U[7 * a]
        c += 8


@procedure(inline=True)
def solve_column(X: "float[:]", wide: int, count: int, U: "float[36]") -> None:
    """Triangular solve ``x = U⁻¹ x`` for one column of up to six rows."""
    for k in range(count):
        a = count - 1 - k
        total = X[a * wide]
        for e in range(a + 1, count):
            total -= U[6 * a + e] * X[e * wide]
        X[a * wide] = U[7 * a] * total


@procedure
def solve_tiles(
    U: "float[:]", wu: int, n: int, X: "float[:]", wx: int, width: int, room: "float[:]"
) -> None:
    """Triangular solve ``X = U⁻¹ X``, (n, width), by tiles that lanes share."""
    T = local("float", 36)
    end = n
    while end > 0:
        first = max(0, end - 6)
        count, rest = end - first, n - end
        for e in lanes(rest):
            for a in range(count):
                room[6 * e + a] = U[(first + a) * wu + end + e]
        for a in range(count):
            at = (first + a) * wu + first
            for b in range(a + 1, count):
                T[6 * a + b] = U[at + b]
            T[7 * a] = 1.0 / U[at + a]
        if lane_count() > 1:
            if rest > 0:
                subtract_tiles(
                    view(X, first * wx), wx, room, 6, view(X, end * wx), rest, count, width
                )
            for c in lanes(width):
                if count == 6:
                    solve_column(view(X, first * wx + c), wx, 6, T)
                else:
                    solve_column(view(X, first * wx + c), wx, count, T)
        else:
            if rest > 0:
                subtract(view(X, first * wx), wx, room, 6, view(X, end * wx), rest, count, width)
            solve_block(view(X, first * wx), wx, count, T, width)
        end = first
