"""The filter of floating bases: derivatives, consistency, and what the sample quadruped tells."""

import numpy as np
import pytest
from scipy.stats import chi2
from support.walker import (
    FEET,
    NOISE,
    START,
    H,
    Walk,
    after,
    errors,
    exponential,
    skew,
    walker,
)

import kinetree as kt
from kinetree.errors import LoopError, ModelError, ShapeError, UnknownNameError
from kinetree.estimation import BaseFilter, Foot, Noise
from kinetree.estimation.base import READING, move

DOG = [f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")]


@pytest.fixture(scope="module")
def robot():
    return walker()


@pytest.fixture(scope="module")
def dog():
    return kt.samples.quadruped()


def state_of(estimate, k=None):
    """``(R, v, p, b_g, b_a)`` of an estimate."""
    names = "orientation", "velocity", "position", "gyro_bias", "accelerometer_bias"
    found = (getattr(estimate, name) for name in names)
    return tuple(x if k is None else x[k] for x in found)


def flat(x):
    return np.concatenate([x[0].reshape(-1), x[1], x[2], x[3], x[4], x[5].reshape(-1)])


def invariant(x, e):
    """``exp(-e) x``, to first order in ``e``, which may be complex."""
    turn = np.eye(3) - skew(e[:3])
    R, v, p, bg, ba, d = x
    points = d @ turn.T - e[15:].reshape(-1, 3)
    return turn @ R, turn @ v - e[3:6], turn @ p - e[6:9], bg - e[9:12], ba - e[12:15], points


def rates_of(y, exact):
    """Invariant errors per step of the imaginary axis, where ``exact`` is the estimate."""
    R, v, p, bg, ba, d = y
    turned = -(R.imag @ exact[0].T)
    turn = np.array([turned[2, 1], turned[0, 2], turned[1, 0]])
    S = skew(turn)
    vectors = [-(a.imag + S @ b) for a, b in ((v, exact[1]), (p, exact[2]))]
    points = [-(a.imag + S @ b) for a, b in zip(d, exact[5], strict=True)]
    return np.concatenate([turn, *vectors, -bg.imag, -ba.imag, *points])


# --- derivatives -------------------------------------------------------------------------------


def test_derivatives_of_motion_are_those_of_complex_steps(robot, rng):
    """Of errors to errors and noise, in the compiled code, against the equations in NumPy."""
    base = BaseFilter(robot, [Foot(f, 0.03) for f in FEET], H, noise=NOISE)._setup.base
    n, m = base.errors, base.noises
    R = exponential(rng.standard_normal(3))
    x = (R, *rng.standard_normal((4, 3)), rng.standard_normal((3, 3)))
    u, w = rng.standard_normal(6), 0.1 * rng.standard_normal(m)
    spins = rng.standard_normal((3, 3))
    given = {"radius": 0.03, "spins": spins}
    reading = np.zeros(READING + 15 * 3)
    reading[:6] = u
    reading[READING:].reshape(3, 15)[:, 3:6] = spins
    y, F, Gt = np.zeros(30), np.zeros(n * n), np.zeros(m * n)
    move(base, flat(x), reading, w, y, F, Gt)
    exact = after(x, u, w, np.ones(3), **given)
    assert np.abs(y - flat(exact)).max() < 1e-14

    step = 1e-30
    for k in range(n):
        e = np.zeros(n, dtype=complex)
        e[k] = 1j * step
        found = rates_of(after(invariant(x, e), u, w, np.ones(3), **given), exact) / step
        assert np.abs(found - F.reshape(n, n)[:, k]).max() < 1e-13, k
    for k in range(m):
        noise = w.astype(complex)
        noise[k] += 1j * step
        found = rates_of(after(x, u, noise, np.ones(3), **given), exact) / step
        assert np.abs(found - Gt.reshape(m, n)[k]).max() < 1e-13, k


def test_derivatives_of_legs_are_those_of_complex_steps(dog, rng):
    """Places of feet in the frame of an IMU on a leg, which encoders move as well."""
    setup = BaseFilter(dog, DOG[:2], 2e-3, imu="front_left_thigh")._setup
    q, qd = dog.random_configuration(rng), rng.standard_normal(dog.nv)
    q[:7], qd[:6] = dog.neutral()[:7], 0.0
    places, _, slopes, mount, sway = setup.user(dog, q, qd)
    for k in range(dog.nv - 6):
        moved = q.astype(complex)
        moved[7 + k] += 1e-30j
        found = setup.user(dog, moved, qd.astype(complex))[0].imag / 1e-30
        assert np.abs(found.reshape(-1) - slopes.reshape(6, -1)[:, k]).max() < 1e-14
    T = kt.pose(dog, q, "front_left_thigh")
    assert (
        np.abs(places[1] - T[:3, :3].T @ (kt.pose(dog, q, DOG[1])[:3, 3] - T[:3, 3])).max() < 1e-14
    )
    back = np.linalg.inv(T)
    assert np.abs(mount - np.concatenate([back[:3, :3].reshape(-1), back[:3, 3]])).max() < 1e-14
    v = kt.velocity(dog, q, qd, "front_left_thigh", frame="body")
    assert np.abs(sway - v).max() < 1e-13


# --- consistency -------------------------------------------------------------------------------


def test_errors_are_as_large_as_the_covariance_says(robot):
    """NEES of 40 motions with their own noise, at once: the mean and the spread of chi squares."""
    robots, steps = 40, 80
    walks = [Walk(np.random.default_rng(k), steps) for k in range(robots)]
    f = BaseFilter(robot, FEET, H, noise=NOISE, batch=robots, gate=8.0)
    q = np.tile(robot.neutral(), (robots, 1))
    q[:, 2] = 0.5
    f.reset(q, uncertainty=START)
    squares, nis = [], []
    for k in range(steps):
        given = (
            np.array([getattr(w, name)[k] for w in walks])
            for name in ("gyro", "accelerometer", "joints")
        )
        closed = np.array([w.closed[k] for w in walks])
        estimate = f.step(*given, np.zeros((robots, 9)), closed)
        nis += [x for name in FEET for x in estimate.nis[name] if x > 0]
        if k % 10 == 9:
            e = [errors(state_of(estimate, j), w.truth[k]) for j, w in enumerate(walks)]
            P = estimate.covariance
            # heading and position start without errors: their covariance may be singular
            keep = [0, 1, 3, 4, 5, 9, 10, 11, 12, 13, 14]
            squares.append(
                [
                    x[keep] @ np.linalg.solve(p[np.ix_(keep, keep)], x[keep])
                    for x, p in zip(e, P, strict=True)
                ]
            )
    means = np.mean(squares, axis=1) / 11
    low, high = chi2.ppf([1e-3, 1 - 1e-3], 11 * robots) / (11 * robots)
    assert means.max() < high * 1.05
    assert means.min() > low * 0.95
    assert abs(np.mean(nis) / 3 - 1) < 0.05
    worst = max(np.abs(e).max() for e in squares)
    assert worst < chi2.ppf(1 - 1e-7, 11)


def test_without_noise_it_finds_velocity_tilt_and_biases(robot):
    """Wrong by much at the start, right in the end; heading and position keep their error."""
    f = BaseFilter(robot, FEET, H, noise=Noise(1e-3, 1e-2, 1e-5, 1e-4, 1e-3, 1e-4), gate=1e9)
    bg, ba = np.array([0.02, -0.01, 0.03]), np.array([0.1, 0.2, -0.1])
    x = (exponential(np.array([0.2, -0.1, 0.0])), *np.zeros((2, 3)), bg, ba, np.zeros((3, 3)))
    f.reset(robot.neutral(), uncertainty=kt.estimation.Uncertainty(0.3, 0, 1.0, 0, 0.1, 0.5))
    places, before = np.tile([0.0, 0.0, -0.5], (3, 1)) + 0.2 * np.eye(3), np.zeros(3, dtype=bool)
    for k in range(400):
        turn = np.sin(np.array([3.0, 2.0, 1.0]) * k * H + [0, 1, 2])
        force = x[0].T @ (np.cos(np.array([1.0, 2.0, 3.0]) * k * H) - [0, 0, -9.81])
        u = np.concatenate([turn + bg, force + ba])
        x = after(x, u, np.zeros(21), before)
        if k == 0:
            x = (*x[:5], x[2] + places @ x[0].T)
            before = np.ones(3, dtype=bool)
        legs = (x[5] - x[2]) @ x[0]
        found = f.step(u[:3], u[3:], legs.reshape(-1), np.zeros(9), before)
    e = errors(state_of(found), x[:5])
    assert np.abs(e[[0, 1]]).max() < 1e-4
    assert np.abs(found.orientation.T @ found.velocity - x[0].T @ x[1]).max() < 1e-3
    assert np.abs(e[9:12]).max() < 1e-4
    assert np.abs(e[12:]).max() < 5e-3


# --- robots ------------------------------------------------------------------------------------


def test_a_state_comes_back_from_an_imu_on_a_leg(dog, rng):
    """Base and joints, positions and velocities, whatever frame carries the IMU."""
    q = dog.random_configuration(rng)
    qd = rng.standard_normal(dog.nv)
    imu = "front_left_shank"
    f = BaseFilter(dog, DOG, 1e-9, imu=imu)
    f.reset(q, qd)
    turn = kt.velocity(dog, q, qd, imu, frame="body")[:3]
    found = f.step(turn, np.zeros(3), q[7:], qd[6:], [])
    assert np.abs(dog.difference(q, found.q)).max() < 1e-6
    assert np.abs(found.qd - qd).max() < 1e-6


def test_a_batch_is_its_robots_one_by_one(robot):
    walks = [Walk(np.random.default_rng(k), 40) for k in range(3)]
    many, one = BaseFilter(robot, FEET, H, batch=3), BaseFilter(robot, FEET, H)
    for k in range(40):
        names = "gyro", "accelerometer", "joints"
        given = (np.array([getattr(w, name)[k] for w in walks]) for name in names)
        together = many.step(*given, np.zeros(9), np.array([w.closed[k] for w in walks]))
    for j, w in enumerate(walks):
        one.reset(robot.neutral())
        for k in range(40):
            alone = one.step(w.gyro[k], w.accelerometer[k], w.joints[k], np.zeros(9), w.closed[k])
        assert np.array_equal(alone.q, together.q[j])
        assert np.array_equal(alone.covariance, together.covariance[j])


def test_a_foot_that_is_moved_slips(robot):
    f = BaseFilter(robot, FEET, H)
    still, places = (
        np.array([0.0, 0.0, 9.81]),
        np.array([0.1, 0, -0.5, -0.1, 0.1, -0.5, 0, 0.2, -0.5]),
    )
    for k in range(50):
        if k == 40:
            places = places + np.array([0.3, 0, 0, *np.zeros(6)])
        found = f.step(np.zeros(3), still, places, np.zeros(9), dict.fromkeys(FEET, True))
        slipped = [name for name in FEET if found.slipped[name]]
        assert slipped == (["left"] if k == 40 else [])
        assert found.closed["left"] == (k != 40)
    assert np.abs(found.position).max() < 0.01


def test_wrong_arguments_are_named(robot, dog):
    with pytest.raises(LoopError):
        BaseFilter(kt.samples.four_bar(), [], H)
    with pytest.raises(ModelError, match="free"):
        BaseFilter(kt.samples.panda(), [], H)
    with pytest.raises(UnknownNameError):
        BaseFilter(dog, ["paw"], H)
    with pytest.raises(ShapeError, match="two feet"):
        BaseFilter(dog, [DOG[0], Foot(DOG[0])], H)
    f = BaseFilter(robot, FEET, H)
    with pytest.raises(ShapeError, match=r"gyro must have shape \(3\)"):
        f.step(np.zeros(4), np.zeros(3), np.zeros(9), np.zeros(9), FEET)
    with pytest.raises(ShapeError, match="finite"):
        f.step(np.full(3, np.nan), np.zeros(3), np.zeros(9), np.zeros(9), FEET)
    with pytest.raises(UnknownNameError, match="nose"):
        f.step(np.zeros(3), np.zeros(3), np.zeros(9), np.zeros(9), ["nose"])
