"""Motion of a floating base and its contacts between two readings, and measurements of it.

The state is that of the IMU: its orientation ``R``, velocity ``v`` and position ``p`` in the world,
the biases of its two sensors, and the points ``d`` where contacts stand. It lies on a group, and
the error of an estimate is the right-invariant one: ``R̄ = exp(ξ_R) R``, and likewise ``v``, ``p``
and ``d``, so that equations of errors hardly depend on the estimate. A. Barrau, S. Bonnabel, "The
invariant extended Kalman filter as a stable observer" (2017); R. Hartley, M. Ghaffari, R. M.
Eustice, J. W. Grizzle, "Contact-aided invariant extended Kalman filtering for robot state
estimation" (2020).

    R⁺ = R exp(φ)                       φ = (gyro - b_g - w_g) h
    v⁺ = v + (R exp(φ/2) a + g) h       a = accelerometer - b_a - w_a
    p⁺ = p + v h + (R exp(φ/2) a + g) h²/2
    d⁺ = d + r h (R ω) × up + R⁺ w_d    the centre of a round foot rolls; of a point r = 0
    b⁺ = b + w_b

A contact that has just closed stands where the legs say, ``d = p + R (y + L w_d)``; then the same
readings are a measurement, ``d - p = R y`` up to the noise of the encoders.
"""

from kinetree.codegen.procedures import cross, local, procedure, record, sqrt, view
from kinetree.estimation.rotations import cross_matrix, left_jacobian, rotation, rotation_vector

OPEN, STAYS, CLOSES = 0, 1, 2
"""What a contact does at a reading."""

POINTS = 21  # numbers of a state before the points of contacts
ERRORS = 15  # numbers of an error before those
NOISES = 12  # numbers of noise before those
READING = 6  # numbers of a reading before those of contacts: gyroscope, accelerometer
FOOT = 15  # of a contact: place and rate of turn in the IMU's frame; factor of the covariance


@record
class Base:
    """Numbers of a robot that all steps have in common.

    Attributes:
        contacts: how many points;  errors: numbers of an error;  noises: of noise.
        h: time between readings [s].
        gravity, up: along the axes of the world [m/s²].
        radius: of round feet [m].
        variance: of the noises in an interval; of points, while they stay.
        product: a workspace, (errors, errors).
    """

    contacts: int
    errors: int
    noises: int
    h: float
    gravity: "float[3]"
    up: "float[3]"
    radius: "float[:]"
    variance: "float[:]"
    product: "float[:]"


@procedure
def move(
    b: Base,
    x: "float[:]",
    reading: "float[:]",
    w: "float[:]",
    y: "float[:]",
    F: "float[:]",
    G: "float[:]",
) -> None:
    """Predict the state ``y`` after an interval; its error is ``F e + Gᵀ w'``.

    Args:
        b: the robot.
        x: state before.
        reading: of the interval.
        w: noise.
        y: state after; points of contacts that roll, but none that closes.
        F: (errors, errors).
        G: (noises, errors).
    """
    h, n = b.h, b.errors
    R, S, E, K, A, B, J = local("float", 7, 3, 3)
    phi, turn, a, u, v = local("float", 5, 3)
    for i in range(n * n):
        F[i] = 0.0
    for i in range(b.noises * n):
        G[i] = 0.0
    R[:] = view(x, 0, 3, 3)
    turn[:] = view(reading, 0, 3) - view(x, 15, 3) - view(w, 0, 3)
    a[:] = view(reading, 3, 3) - view(x, 18, 3) - view(w, 3, 3)
    phi[:] = h * turn
    rotation(phi, S)
    view(y, 0, 3, 3)[:] = R @ S
    left_jacobian(phi, J)
    B[:] = h * (R @ J)  # of the rotation to that of the gyroscope
    phi *= 0.5
    rotation(phi, S)
    E[:] = R @ S
    u[:] = E @ a + b.gravity
    view(y, 9, 3)[:] = view(x, 9, 3) + h * u
    view(y, 12, 3)[:] = view(x, 12, 3) + h * view(x, 9, 3) + (0.5 * h * h) * u
    for k in range(6):
        y[15 + k] = x[15 + k] + w[6 + k]
    phi *= -1.0
    left_jacobian(phi, J)
    cross_matrix(a, S)
    A[:] = (0.5 * h) * (E @ (S @ J))  # of E a to the gyroscope
    cross_matrix(b.gravity, K)
    for i in range(ERRORS):
        F[i * n + i] = 1.0
    _put(F, n, 0, 9, -1.0, B)
    _put(F, n, 3, 0, h, K)
    _put(F, n, 6, 0, 0.5 * h * h, K)
    for i in range(3):
        F[(6 + i) * n + 3 + i] = h
    v[:] = view(y, 9, 3)
    cross_matrix(v, S)
    K[:] = h * A - S @ B
    _put(F, n, 3, 9, 1.0, K)
    v[:] = view(y, 12, 3)
    cross_matrix(v, S)
    K[:] = (0.5 * h * h) * A - S @ B
    _put(F, n, 6, 9, 1.0, K)
    _put(F, n, 3, 12, -h, E)
    _put(F, n, 6, 12, -0.5 * h * h, E)
    _roll(b, x, reading, turn, B, y, F)
    _from_noise(b, y, w, F, G)


@procedure
def _roll(
    b: Base,
    x: "float[:]",
    reading: "float[:]",
    turn: "float[3]",
    B: "float[3, 3]",
    y: "float[:]",
    F: "float[:]",
) -> None:
    """Contact points of rolling feet after an interval, and error terms; fixed ones stay."""
    n = b.errors
    R, S, K, A = local("float", 4, 3, 3)
    spin, d = local("float", 2, 3)
    R[:] = view(x, 0, 3, 3)
    for c in range(b.contacts):
        at = ERRORS + 3 * c
        r = b.radius[c] * b.h
        d[:] = view(x, POINTS + 3 * c, 3)
        if r != 0.0:
            spin[:] = R @ (turn + view(reading, READING + FOOT * c + 3, 3))
            d += r * cross(spin, b.up)
        view(y, POINTS + 3 * c, 3)[:] = d
        cross_matrix(d, S)
        K[:] = -(S @ B)
        if r != 0.0:
            cross_matrix(b.up, S)
            K += r * (S @ R)
            cross_matrix(spin, A)
            A[:] = A @ S
            _put(F, n, at, 0, r, A)
        _put(F, n, at, 9, 1.0, K)
        for i in range(3):
            F[(at + i) * n + at + i] = 1.0


@procedure
def _from_noise(b: Base, y: "float[:]", w: "float[:]", F: "float[:]", G: "float[:]") -> None:
    """Derivatives ``G`` of the predicted error by noise of sensors, biases and points."""
    n = b.errors
    R = local("float", 3, 3)
    for i in range(n):
        for k in range(6):
            if i < 9 or i >= ERRORS:
                G[k * n + i] = -F[i * n + 9 + k]
    for k in range(6):
        G[(6 + k) * n + 9 + k] = -1.0
    R[:] = view(y, 0, 3, 3)
    for c in range(b.contacts):
        view(y, POINTS + 3 * c, 3)[:] += R @ view(w, NOISES + 3 * c, 3)
        for k in range(3):
            for i in range(3):
                G[(NOISES + 3 * c + k) * n + ERRORS + 3 * c + i] = -R[i, k]


@procedure(inline=True)
def _put(F: "float[:]", n: int, row: int, column: int, scale: float, A: "float[3, 3]") -> None:
    """Add a scaled 3×3 block to a matrix."""
    for i in range(3):
        for j in range(3):
            F[(row + i) * n + column + j] = scale * A[i, j]


@procedure
def set_points(
    b: Base,
    reading: "float[:]",
    does: "int[:]",
    w: "float[:]",
    y: "float[:]",
    F: "float[:]",
    G: "float[:]",
) -> None:
    """Set points of closing contacts from leg kinematics, zeros for open ones."""
    n = b.errors
    R, L = local("float", 2, 3, 3)
    R[:] = view(y, 0, 3, 3)
    for c in range(b.contacts):
        if does[c] != STAYS:
            at = ERRORS + 3 * c
            foot = view(reading, READING + FOOT * c)
            closes = does[c] == CLOSES
            for i in range(3):
                for j in range(n):
                    F[(at + i) * n + j] = F[(6 + i) * n + j] if closes else 0.0
                for k in range(b.noises):
                    G[k * n + at + i] = G[k * n + 6 + i] if closes and k < NOISES else 0.0
            view(y, POINTS + 3 * c, 3)[:] = 0.0
            if closes:
                L[:] = R @ view(foot, 6, 3, 3)
                view(y, POINTS + 3 * c, 3)[:] = (
                    view(y, 12, 3) + R @ view(foot, 0, 3) + L @ view(w, NOISES + 3 * c, 3)
                )
                for k in range(3):
                    for i in range(3):
                        G[(NOISES + 3 * c + k) * n + at + i] = -L[i, k]


@procedure
def innovation(x: "float[:]", foot: "float[:]", c: int, r: "float[3]", N: "float[3, 3]") -> None:
    """Innovation of a contact: leg kinematics minus state, and its noise ``N``."""
    R, L = local("float", 2, 3, 3)
    R[:] = view(x, 0, 3, 3)
    r[:] = R @ view(foot, 0, 3) + view(x, 12, 3) - view(x, POINTS + 3 * c, 3)
    L[:] = R @ view(foot, 6, 3, 3)
    N[:] = L @ L.T


@procedure
def correct(b: Base, x: "float[:]", e: "float[:]") -> None:
    """Correct a state by an error, ``x = exp(-e) x``."""
    R, V, S = local("float", 3, 3, 3)
    minus, u = local("float", 2, 3)
    minus[:] = -view(e, 0, 3)
    rotation(minus, R)
    left_jacobian(minus, V)
    S[:] = R @ view(x, 0, 3, 3)
    orthogonal(S)
    view(x, 0, 3, 3)[:] = S
    for k in range(2 + b.contacts):
        at = 9 + 3 * k if k < 2 else POINTS + 3 * (k - 2)
        of = 3 + 3 * k if k < 2 else ERRORS + 3 * (k - 2)
        u[:] = R @ view(x, at, 3) - V @ view(e, of, 3)
        view(x, at, 3)[:] = u
    for k in range(6):
        x[15 + k] -= e[9 + k]


@procedure
def orthogonal(R: "float[3, 3]") -> None:
    """Reduce a rotation's deviation from orthogonality by one Newton step."""
    S, T = local("float", 2, 3, 3)
    T[:] = R
    S[:] = R @ (T.T @ T)
    R[:] = 1.5 * R - 0.5 * S


@procedure
def difference(b: Base, x: "float[:]", y: "float[:]", e: "float[:]") -> None:
    """Invariant error ``e`` of a state ``x`` against ``y``: ``x = exp(e) y``, small rotation."""
    R, V = local("float", 2, 3, 3)
    v, u = local("float", 2, 3)
    R[:] = view(x, 0, 3, 3) @ view(y, 0, 3, 3).T
    rotation_vector(R, v)
    view(e, 0, 3)[:] = v
    left_jacobian(v, V)
    for k in range(2 + b.contacts):
        at = 9 + 3 * k if k < 2 else POINTS + 3 * (k - 2)
        of = 3 + 3 * k if k < 2 else ERRORS + 3 * (k - 2)
        u[:] = view(x, at, 3) - R @ view(y, at, 3)
        _solve(V, u)
        view(e, of, 3)[:] = u
    for k in range(6):
        e[9 + k] = x[15 + k] - y[15 + k]


@procedure
def _solve(V: "float[3, 3]", u: "float[3]") -> None:
    """Solve ``V x = u`` for a 3×3 matrix close to the identity, by its adjugate."""
    a, b, c = local("float", 3, 3)
    a[:] = V[:, 0]
    b[:] = V[:, 1]
    c[:] = V[:, 2]
    n = cross(b, c)
    size = a @ n
    first = (u @ n) / size
    second = (u @ cross(c, a)) / size
    third = (u @ cross(a, b)) / size
    u[0] = first
    u[1] = second
    u[2] = third


# --- covariances ---------------------------------------------------------------------------------


@procedure
def transform(F: "float[:]", P: "float[:]", n: int, out: "float[:]") -> None:
    """Product ``P = F Pᵀ`` of square matrices with a sparse ``F``; ``out`` is a workspace."""
    for i in range(n):
        for j in range(n):
            out[j * n + i] = P[i * n + j]
    for i in range(n):
        row = view(P, i * n)
        for j in range(n):
            row[j] = 0.0
        for k in range(n):
            factor = F[i * n + k]
            if factor != 0.0:
                other = view(out, k * n)
                for j in range(n):
                    row[j] += factor * other[j]


@procedure
def spread(b: Base, F: "float[:]", G: "float[:]", does: "int[:]", P: "float[:]") -> None:
    """Predicted covariance ``F P Fᵀ + Gᵀ W G`` after an interval."""
    n = b.errors
    transform(F, P, n, b.product)
    transform(F, P, n, b.product)
    for k in range(b.noises):
        variance = noise_of(b, does, k)
        row = view(G, k * n)
        for i in range(n):
            factor = variance * row[i]
            if factor != 0.0:
                to = view(P, i * n)
                for j in range(n):
                    to[j] += factor * row[j]


@procedure(inline=True)
def noise_of(b: Base, does: "int[:]", k: int) -> float:
    """Variance of noise component ``k``; 1 for factors of covariances."""
    if k < NOISES:
        return b.variance[k]
    return b.variance[k] if does[(k - NOISES) // 3] == STAYS else 1.0


@procedure
def gain_of(
    b: Base, P: "float[:]", c: int, N: "float[3, 3]", H: "float[:]", K: "float[:]", S: "float[3, 3]"
) -> None:
    """Kalman gain ``K = P Hᵀ S⁻¹`` of a contact measurement, and ``P Hᵀ``, (n, 3) both.

    ``S`` becomes the inverse of the covariance of the innovation.
    """
    n, at = b.errors, ERRORS + 3 * c
    for i in range(n):
        for j in range(3):
            H[3 * i + j] = P[i * n + 6 + j] - P[i * n + at + j]
    for i in range(3):
        for j in range(3):
            S[i, j] = H[3 * (6 + i) + j] - H[3 * (at + i) + j] + N[i, j]
    invert(S)
    for i in range(n):
        view(K, 3 * i, 3)[:] = S @ view(H, 3 * i, 3)


@procedure
def invert(S: "float[3, 3]") -> None:
    """Inverse of a symmetric positive 3×3 matrix, by its Cholesky factor."""
    L = local("float", 3, 3)
    L[:] = 0.0
    for j in range(3):  # L becomes the inverse of the factor
        for i in range(j, 3):
            total = 0.5 * (S[i, j] + S[j, i])
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = sqrt(total) if i == j else total / L[j, j]
    for j in range(3):
        for i in range(j, 3):
            total = 1.0 if i == j else 0.0
            for k in range(j, i):
                total -= L[i, k] * S[k, j]
            S[i, j] = total / L[i, i]
    for i in range(3):
        for j in range(3):
            L[i, j] = 0.0
            for k in range(max(i, j), 3):
                L[i, j] += S[k, i] * S[k, j]
    S[:] = L


@procedure
def narrow(b: Base, P: "float[:]", H: "float[:]", K: "float[:]") -> None:
    """Covariance ``P - K Hᵀ`` after a measurement."""
    n = b.errors
    for i in range(n):
        row = view(P, i * n)
        for j in range(n):
            row[j] -= (
                K[3 * i] * H[3 * j] + K[3 * i + 1] * H[3 * j + 1] + K[3 * i + 2] * H[3 * j + 2]
            )


@procedure
def make_symmetric(n: int, P: "float[:]") -> None:
    """Symmetrise a matrix that rounding has made asymmetric."""
    for i in range(n):
        for j in range(i):
            mean = 0.5 * (P[i * n + j] + P[j * n + i])
            P[i * n + j] = mean
            P[j * n + i] = mean
