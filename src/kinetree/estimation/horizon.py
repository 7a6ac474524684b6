"""Least squares over a window of readings in compiled code: Gauss and Newton's method.

Unknown are the error of the first state and all noise of the window; states follow from them, so
that equations of motion always hold. A linearised window is solved by a Kalman filter forwards and
by its adjoint backwards, which needs no inverse of a covariance: B. M. Bell, "The iterated Kalman
smoother as a Gauss–Newton method" (1994); J. Durbin, S. J. Koopman, "A simple and efficient
simulation smoother" (2002). What was known before the window is its arrival cost: state and
covariance of the filter, about the states that were found.
"""

from kinetree.codegen.procedures import local, procedure, record, view
from kinetree.estimation.base import (
    CLOSES,
    ERRORS,
    FOOT,
    OPEN,
    READING,
    STAYS,
    Base,
    correct,
    difference,
    gain_of,
    innovation,
    make_symmetric,
    move,
    narrow,
    noise_of,
    set_points,
    spread,
    transform,
)
from kinetree.estimation.filtering import IntervalReadings, Legs, read, tell


@record
class HorizonWindows:
    """Windows of all robots, and what solving one of them needs.

    Attributes:
        robots: how many;  width: numbers of a state;  log: of a reading.
        size: intervals of a window;  iterations: at most.
        tolerance: of the last step, in standard deviations.
        gate: square of the error of a contact, in standard deviations, beyond which it has slipped.
        count: intervals so far, (robots,).
        first: state at the start of a window, (robots, width).
        prior, spread: state and covariance of what was known there, one after another.
        later, later_spread: likewise, one interval later.
        readings_of: (robots, size, log).
        does: (robots, size, contacts).  was: likewise before the window, (robots, contacts).
        w: noise, (robots, size, noises).
        states: of the window of each robot, (robots, size + 1, width).
        last: covariances at the ends of windows, (robots, errors, errors).
        taken, steps: iterations, and the last step in standard deviations, (robots,).
        slipped, nis, q, qd: of robots, as in ``Filter``.
        F, G, K, s, used: of all intervals of a window: (size, errors, errors), (size, noises,
            errors), (size, contacts, 3 errors), (size, contacts, 3), (size, contacts).
        P, mean, shift, H, slope, back: of one instant.
    """

    base: Base
    legs: Legs
    readings: IntervalReadings
    robots: int
    width: int
    log: int
    size: int
    iterations: int
    tolerance: float
    gate: float
    count: "int[:]"
    first: "float[:]"
    prior: "float[:]"
    spread: "float[:]"
    later: "float[:]"
    later_spread: "float[:]"
    readings_of: "float[:]"
    does: "int[:]"
    was: "int[:]"
    w: "float[:]"
    states: "float[:]"
    last: "float[:]"
    taken: "int[:]"
    steps: "float[:]"
    slipped: "int[:]"
    nis: "float[:]"
    q: "float[:]"
    qd: "float[:]"
    F: "float[:]"
    G: "float[:]"
    K: "float[:]"
    s: "float[:]"
    used: "int[:]"
    P: "float[:]"
    mean: "float[:]"
    shift: "float[:]"
    H: "float[:]"
    slope: "float[:]"
    back: "float[:]"


@procedure
def estimate_all(f: HorizonWindows) -> int:
    """Update the moving-horizon estimates of all robots; 0, or 1 + a failed robot's number."""
    b = f.base
    for k in range(f.robots):
        if f.count[k] == f.size:
            _slide(f, k)
        at = k * f.size + f.count[k]
        reading = view(f.readings_of, at * f.log)
        if read(b, f.legs, f.readings, k, reading) != 0:
            return k + 1
        _append(f, k, at)
        f.count[k] += 1
        _solve(f, k)
        x = view(f.states, (k * (f.size + 1) + f.count[k]) * f.width)
        tell(
            b,
            f.legs,
            reading,
            x,
            view(f.q, k * (7 + f.legs.joints)),
            view(f.qd, k * (6 + f.legs.rates)),
        )
    return 0


@procedure
def _slide(f: HorizonWindows, k: int) -> None:
    """Marginalise the window's first interval into the prior."""
    b, n = f.base, f.base.errors
    m = f.size - 1
    for c in range(b.contacts):
        f.was[k * b.contacts + c] = f.does[k * f.size * b.contacts + c]
    for i in range(f.width):
        f.first[k * f.width + i] = f.states[(k * (f.size + 1) + 1) * f.width + i]
        f.prior[k * f.width + i] = f.later[k * f.width + i]
    for i in range(n * n):
        f.spread[k * n * n + i] = f.later_spread[k * n * n + i]
    for i in range(m * f.log):
        f.readings_of[k * f.size * f.log + i] = f.readings_of[(k * f.size + 1) * f.log + i]
    for i in range(m * b.contacts):
        f.does[k * f.size * b.contacts + i] = f.does[(k * f.size + 1) * b.contacts + i]
    for i in range(m * b.noises):
        f.w[k * f.size * b.noises + i] = f.w[(k * f.size + 1) * b.noises + i]
    f.count[k] = m


@procedure
def _append(f: HorizonWindows, k: int, at: int) -> None:
    """Append an interval to the window, with zero noise at first."""
    b = f.base
    for c in range(b.contacts):
        before = f.was[k * b.contacts + c]
        if f.count[k] > 0:
            before = f.does[(at - 1) * b.contacts + c]
        if f.readings.closed[k * b.contacts + c] == 0:
            f.does[at * b.contacts + c] = OPEN
        elif before == OPEN:
            f.does[at * b.contacts + c] = CLOSES
        else:
            f.does[at * b.contacts + c] = STAYS
    for i in range(b.noises):
        f.w[at * b.noises + i] = 0.0


@procedure
def _solve(f: HorizonWindows, k: int) -> None:
    """Find the noise in the window that fits best by Gauss-Newton iterations."""
    f.steps[k] = 1e300
    f.taken[k] = 0
    while f.taken[k] < f.iterations and f.steps[k] > f.tolerance:
        _forwards(f, k, f.taken[k] == 0)
        f.steps[k] = _backwards(f, k)
        f.taken[k] += 1
    for j in range(f.count[k]):
        _advance(f, k, j)


@procedure
def _advance(f: HorizonWindows, k: int, j: int) -> None:
    """State after an interval of the window, with its derivatives."""
    b, n = f.base, f.base.errors
    at = k * f.size + j
    reading, w = view(f.readings_of, at * f.log), view(f.w, at * b.noises)
    x = view(f.states, (k * (f.size + 1) + j) * f.width)
    y = view(x, f.width)
    if j == 0:
        for i in range(f.width):
            x[i] = f.first[k * f.width + i]
    F, G = view(f.F, j * n * n), view(f.G, j * b.noises * n)
    move(b, x, reading, w, y, F, G)
    set_points(b, reading, view(f.does, at * b.contacts), w, y, F, G)


@procedure
def _predict_start(f: HorizonWindows, k: int) -> None:
    """Mean and covariance of the first state's error, relative to its current value."""
    b, n = f.base, f.base.errors
    difference(b, view(f.first, k * f.width), view(f.prior, k * f.width), f.mean)
    for i in range(n * n):
        f.P[i] = f.spread[k * n * n + i]
        f.F[i] = 0.0
    for i in range(n):
        f.F[i * n + i] = 1.0
    for block in range(3 + b.contacts):  # 1 + ad / 2: the left Jacobian, up to squares
        at = 3 * block if block < 3 else ERRORS + 3 * (block - 3)
        _half_cross(f.F, n, at, 0, view(f.mean, at, 3))
        if block > 0:
            _half_cross(f.F, n, at, at, view(f.mean, 0, 3))
    transform(f.F, f.P, n, b.product)
    transform(f.F, f.P, n, b.product)


@procedure
def _half_cross(F: "float[:]", n: int, row: int, column: int, v: "float[3]") -> None:
    """Add ``v× / 2`` to a block of a matrix."""
    for i in range(3):
        j = (i + 1) % 3
        m = (i + 2) % 3
        F[(row + j) * n + column + m] -= 0.5 * v[i]
        F[(row + m) * n + column + j] += 0.5 * v[i]


@procedure
def _forwards(f: HorizonWindows, k: int, is_new: bool) -> None:
    """Forward Kalman pass along the window: means and covariances of errors."""
    b, n = f.base, f.base.errors
    _predict_start(f, k)
    for j in range(f.count[k]):
        at = k * f.size + j
        does = view(f.does, at * b.contacts)
        _advance(f, k, j)
        F, G, w = view(f.F, j * n * n), view(f.G, j * b.noises * n), view(f.w, at * b.noises)
        for i in range(n):
            total = 0.0
            for m in range(n):
                total += F[i * n + m] * f.mean[m]
            for m in range(b.noises):
                total -= G[m * n + i] * w[m]
            f.shift[i] = total
        for i in range(n):
            f.mean[i] = f.shift[i]
        spread(b, F, G, does, f.P)
        _measure(f, k, j, is_new and j == f.count[k] - 1)
        make_symmetric(n, f.P)
        if j == 0:
            _keep_later(f, k)
    for i in range(n * n):
        f.last[k * n * n + i] = f.P[i]


@procedure
def _keep_later(f: HorizonWindows, k: int) -> None:
    """Store the state and covariance at the end of the first interval."""
    b, n = f.base, f.base.errors
    later = view(f.later, k * f.width)
    for i in range(f.width):
        later[i] = f.states[(k * (f.size + 1) + 1) * f.width + i]
    correct(b, later, f.mean)
    for i in range(n * n):
        f.later_spread[k * n * n + i] = f.P[i]


@procedure
def _measure(f: HorizonWindows, k: int, j: int, is_new: bool) -> None:
    """Apply contact measurements at the end of an interval; new ones may detect slip."""
    b, n = f.base, f.base.errors
    at = k * f.size + j
    N = local("float", 3, 3)
    r, s = local("float", 2, 3)
    x = view(f.states, (k * (f.size + 1) + j + 1) * f.width)
    for c in range(b.contacts):
        f.used[j * b.contacts + c] = 0
        if is_new:
            f.slipped[k * b.contacts + c] = 0
            f.nis[k * b.contacts + c] = 0.0
        if f.does[at * b.contacts + c] == STAYS:
            foot = view(f.readings_of, at * f.log + READING + FOOT * c)
            K = view(f.K, (j * b.contacts + c) * 3 * n)
            innovation(x, foot, c, r, N)
            r[:] = r - (view(f.mean, 6, 3) - view(f.mean, ERRORS + 3 * c, 3))
            gain_of(b, f.P, c, N, f.H, K, N)
            s[:] = N @ r
            if is_new:
                f.nis[k * b.contacts + c] = r @ s
            if is_new and r @ s > f.gate:
                f.slipped[k * b.contacts + c] = 1
                f.does[at * b.contacts + c] = OPEN
            else:
                f.used[j * b.contacts + c] = 1
                view(f.s, (j * b.contacts + c) * 3, 3)[:] = s
                for i in range(n):
                    f.mean[i] += view(K, 3 * i, 3) @ r
                narrow(b, f.P, f.H, K)


@procedure
def _backwards(f: HorizonWindows, k: int) -> float:
    """Backward smoothing pass: corrects noise and first state; largest scaled step."""
    b, n = f.base, f.base.errors
    slope, back = f.slope, f.back
    u = local("float", 3)
    most = 0.0
    for i in range(n):
        slope[i] = 0.0
    for turn in range(f.count[k]):
        j = f.count[k] - 1 - turn
        at = k * f.size + j
        for other in range(b.contacts):
            c = b.contacts - 1 - other
            if f.used[j * b.contacts + c] == 1:
                K = view(f.K, (j * b.contacts + c) * 3 * n)
                u[:] = view(f.s, (j * b.contacts + c) * 3, 3)
                for i in range(n):
                    u[:] = u - slope[i] * view(K, 3 * i, 3)
                view(slope, 6, 3)[:] += u
                view(slope, ERRORS + 3 * c, 3)[:] -= u
        G, w, F = view(f.G, j * b.noises * n), view(f.w, at * b.noises), view(f.F, j * n * n)
        for m in range(b.noises):
            variance = noise_of(b, view(f.does, at * b.contacts), m)
            total = 0.0
            for i in range(n):
                total += G[m * n + i] * slope[i]
            step = variance * total - w[m]
            w[m] += step
            if variance > 0.0:
                most = max(most, step * step / variance)
        for i in range(n):
            back[i] = 0.0
        for i in range(n):
            for m in range(n):
                back[m] += F[i * n + m] * slope[i]
        for i in range(n):
            slope[i] = back[i]
    _predict_start(f, k)
    for i in range(n):
        total = f.mean[i]
        for m in range(n):
            total += f.P[i * n + m] * slope[m]
        back[i] = total
        if f.P[i * n + i] > 0.0:
            most = max(most, total * total / f.P[i * n + i])
    correct(b, view(f.first, k * f.width), back)
    return most
