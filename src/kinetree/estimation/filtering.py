"""A step of the filter of floating bases in compiled code, from readings to states."""

from kinetree.codegen.procedures import cross, dot, isfinite, local, procedure, record, sqrt, view
from kinetree.codegen.tied import Code, run
from kinetree.estimation.base import (
    CLOSES,
    ERRORS,
    FOOT,
    OPEN,
    READING,
    STAYS,
    Base,
    correct,
    gain_of,
    innovation,
    make_symmetric,
    move,
    narrow,
    set_points,
    spread,
)

_LEAST = 1e-14
"""Variance of a place that encoders do not see [m²]."""


@record
class Legs:
    """Kinematics of a robot whose base rests at the origin, from its encoders.

    Attributes:
        joints, rates: numbers of positions and velocities of the joints beside that of the base.
        q, qd: state, of which the base comes first.
        places, spins: of contacts, in the IMU's frame: positions, and rates of turn relative to it.
        slopes: derivatives of the places by the joints, (3 contacts, rates).
        mount: orientation and position of the base in the IMU's frame.
        sway: velocity of the IMU relative to the base, in its axes, angular first.
        variance: of the encoders, (rates,).
        code: computes places to sway.
    """

    joints: int
    rates: int
    q: "float[:]"
    qd: "float[:]"
    places: "float[:]"
    spins: "float[:]"
    slopes: "float[:]"
    mount: "float[:]"
    sway: "float[:]"
    variance: "float[:]"
    code: Code


@record
class IntervalReadings:
    """Readings of the sensors of all robots in an interval, one robot after another.

    Attributes:
        gyro, accelerometer: (robots, 3).
        q, qd: positions and velocities of joints.
        closed: 1 for contacts that are closed, (robots, contacts).
    """

    gyro: "float[:]"
    accelerometer: "float[:]"
    q: "float[:]"
    qd: "float[:]"
    closed: "int[:]"


@procedure
def read(b: Base, legs: Legs, r: IntervalReadings, k: int, out: "float[:]") -> int:
    """Read one robot's sensors for a step; 0, or 1 if numbers are not finite."""
    view(out, 0, 3)[:] = view(r.gyro, 3 * k, 3)
    view(out, 3, 3)[:] = view(r.accelerometer, 3 * k, 3)
    for i in range(legs.joints):
        legs.q[7 + i] = r.q[k * legs.joints + i]
    for i in range(legs.rates):
        legs.qd[6 + i] = r.qd[k * legs.rates + i]
    if not isfinite(dot(view(out, 0, 6), view(out, 0, 6))):
        return 1
    run(legs.code)
    if legs.code.status[0] != 0:
        legs.code.status[0] = 0
        return 1
    N = local("float", 3, 3)
    for c in range(b.contacts):
        foot = view(out, READING + FOOT * c)
        view(foot, 0, 3)[:] = view(legs.places, 3 * c, 3)
        view(foot, 3, 3)[:] = view(legs.spins, 3 * c, 3)
        for i in range(3):
            one = view(legs.slopes, (3 * c + i) * legs.rates)
            for j in range(i + 1):
                other = view(legs.slopes, (3 * c + j) * legs.rates)
                total = _LEAST if i == j else 0.0
                for m in range(legs.rates):
                    total += one[m] * legs.variance[m] * other[m]
                N[i, j] = total
        _factor(N)
        view(foot, 6, 3, 3)[:] = N
    return 0


@procedure
def _factor(S: "float[3, 3]") -> None:
    """Cholesky factor of a symmetric matrix in place, by its lower half."""
    for j in range(3):
        for i in range(j, 3):
            total = S[i, j]
            for k in range(j):
                total -= S[i, k] * S[j, k]
            S[i, j] = sqrt(max(total, _LEAST)) if i == j else total / S[j, j]
            if i > j:
                S[j, i] = 0.0


@record
class Filter:
    """States and covariances of all robots, and what a step needs.

    Attributes:
        robots: how many;  width: numbers of a state.
        gate: square of the error of a contact, in standard deviations, beyond which it has slipped.
        state: (robots, width).  covariance: (robots, errors, errors).
        does: what contacts did in the last step, (robots, contacts).
        slipped: 1 for contacts that did not stay where they were, (robots, contacts).
        nis: squares of the errors of contacts, in standard deviations, (robots, contacts).
        q, qd: states of the robots, (robots, nq) and (robots, nv).
        reading, noise, next, F, G, H, K, error: of one robot.
    """

    base: Base
    legs: Legs
    readings: IntervalReadings
    robots: int
    width: int
    gate: float
    state: "float[:]"
    covariance: "float[:]"
    does: "int[:]"
    slipped: "int[:]"
    nis: "float[:]"
    q: "float[:]"
    qd: "float[:]"
    reading: "float[:]"
    noise: "float[:]"
    next: "float[:]"
    F: "float[:]"
    G: "float[:]"
    H: "float[:]"
    K: "float[:]"
    error: "float[:]"


@procedure
def step_all(f: Filter) -> int:
    """Predict and correct the states of all robots; 0, or 1 + a failed robot's number."""
    b = f.base
    for k in range(f.robots):
        if read(b, f.legs, f.readings, k, f.reading) != 0:
            return k + 1
        x = view(f.state, k * f.width)
        P = view(f.covariance, k * b.errors * b.errors)
        does = view(f.does, k * b.contacts)
        change(b, view(f.readings.closed, k * b.contacts), does)
        _predict(f, x, P, does)
        _correct(f, x, P, does, k)
        tell(
            b,
            f.legs,
            f.reading,
            x,
            view(f.q, k * (7 + f.legs.joints)),
            view(f.qd, k * (6 + f.legs.rates)),
        )
    return 0


@procedure
def change(b: Base, closed: "int[:]", does: "int[:]") -> None:
    """Update contact phases (open, closing, closed) from contact flags."""
    for c in range(b.contacts):
        if closed[c] == 0:
            does[c] = OPEN
        elif does[c] == OPEN:
            does[c] = CLOSES
        else:
            does[c] = STAYS


@procedure
def _predict(f: Filter, x: "float[:]", P: "float[:]", does: "int[:]") -> None:
    """Predict state and covariance of a robot by its IMU."""
    b = f.base
    move(b, x, f.reading, f.noise, f.next, f.F, f.G)
    set_points(b, f.reading, does, f.noise, f.next, f.F, f.G)
    for i in range(f.width):
        x[i] = f.next[i]
    spread(b, f.F, f.G, does, P)


@procedure
def _correct(f: Filter, x: "float[:]", P: "float[:]", does: "int[:]", robot: int) -> None:
    """Correct state and covariance of a robot by leg kinematics of standing feet."""
    b, n = f.base, f.base.errors
    N = local("float", 3, 3)
    r, s = local("float", 2, 3)
    e = f.error
    for i in range(n):
        e[i] = 0.0
    for c in range(b.contacts):
        f.slipped[robot * b.contacts + c] = 0
        f.nis[robot * b.contacts + c] = 0.0
        if does[c] == STAYS:
            foot = view(f.reading, READING + FOOT * c)
            innovation(x, foot, c, r, N)
            r[:] = r - (view(e, 6, 3) - view(e, ERRORS + 3 * c, 3))
            gain_of(b, P, c, N, f.H, f.K, N)
            s[:] = N @ r
            f.nis[robot * b.contacts + c] = r @ s
            if r @ s > f.gate:
                f.slipped[robot * b.contacts + c] = 1
                does[c] = OPEN  # and stands anew at the next reading
            else:
                for i in range(n):
                    e[i] += view(f.K, 3 * i, 3) @ r
                narrow(b, P, f.H, f.K)
    correct(b, x, e)
    make_symmetric(n, P)


@procedure
def tell(
    b: Base, legs: Legs, reading: "float[:]", x: "float[:]", q: "float[:]", qd: "float[:]"
) -> None:
    """Write a robot's ``q, qd``: base from the estimate, joints from encoders."""
    R, M, S = local("float", 3, 3, 3)
    turn, v, p = local("float", 3, 3)
    R[:] = view(x, 0, 3, 3)
    M[:] = view(legs.mount, 0, 3, 3)
    p[:] = view(legs.mount, 9, 3)
    view(q, 0, 3)[:] = view(x, 12, 3) + R @ p
    S[:] = R @ M
    quaternion(S, q)
    turn[:] = view(reading, 0, 3) - view(x, 15, 3) - view(legs.sway, 0, 3)
    v[:] = R.T @ view(x, 9, 3) - view(legs.sway, 3, 3) + cross(turn, p)
    view(qd, 0, 3)[:] = M.T @ turn
    view(qd, 3, 3)[:] = M.T @ v
    for i in range(legs.joints):
        q[7 + i] = legs.q[7 + i]
    for i in range(legs.rates):
        qd[6 + i] = legs.qd[6 + i]


@procedure
def quaternion(R: "float[3, 3]", q: "float[:]") -> None:
    """Write the unit quaternion of a rotation after three entries of ``q``, ``w`` >= 0 first.

    S. W. Shepperd, "Quaternion from rotation matrix" (1978).
    """
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    k = 0
    if R[1, 1] > R[0, 0]:
        k = 1
    if R[2, 2] > R[k, k]:
        k = 2
    if trace >= R[k, k]:
        s = sqrt(1.0 + trace)
        q[3] = 0.5 * s
        q[4] = 0.5 * (R[2, 1] - R[1, 2]) / s
        q[5] = 0.5 * (R[0, 2] - R[2, 0]) / s
        q[6] = 0.5 * (R[1, 0] - R[0, 1]) / s
        return
    i = (k + 1) % 3
    j = (k + 2) % 3
    s = sqrt(max(1.0 + R[k, k] - R[i, i] - R[j, j], 0.0))
    w = 0.5 * (R[j, i] - R[i, j]) / s
    sign = 1.0 if w >= 0.0 else -1.0
    q[3] = sign * w
    q[4 + k] = sign * 0.5 * s
    q[4 + i] = sign * 0.5 * (R[i, k] + R[k, i]) / s
    q[4 + j] = sign * 0.5 * (R[j, k] + R[k, j]) / s
