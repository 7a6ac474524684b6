"""The moving-horizon estimator: least squares from scratch, and the filter."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import least_squares
from support.walker import FEET, NOISE, START, H, Walk, after, errors, skew, variances, walker

from kinetree.errors import ShapeError
from kinetree.estimation import BaseFilter, MovingHorizon, Uncertainty

SPREAD = np.diag(np.repeat([0.05, 0.1, 0.02, 0.02, 0.1], 3) ** 2)


@pytest.fixture(scope="module")
def robot():
    return walker()


def run(estimator, walk, start, steps, uncertainty=SPREAD):
    """Estimates after each reading."""
    estimator.reset(start, uncertainty=uncertainty)
    return [
        estimator.step(
            walk.gyro[k], walk.accelerometer[k], walk.joints[k], np.zeros(9), walk.closed[k]
        )
        for k in range(steps)
    ]


def applied(e, x):
    """``exp(-e) x`` of a state without points."""
    X = np.eye(5)
    X[:3, :3], X[:3, 3], X[:3, 4] = x[0], x[1], x[2]
    E = np.zeros((5, 5))
    E[:3, :3], E[:3, 3], E[:3, 4] = skew(e[:3]), e[3:6], e[6:9]
    X = expm(-E) @ X
    return X[:3, :3], X[:3, 3], X[:3, 4], x[3] - e[9:12], x[4] - e[12:]


def followed(unknowns, walk, start, steps):
    """States of a window, and all residuals in standard deviations, in NumPy alone."""
    e, w = unknowns[:15], unknowns[15:].reshape(steps, 21)
    sigma = np.sqrt(variances())
    x, before = (*applied(e, start), np.zeros((3, 3))), np.zeros(3, dtype=bool)
    residuals, states = [e / np.sqrt(np.diag(SPREAD))], [x]
    for k in range(steps):
        noise, now = w[k] * sigma, walk.closed[k]
        u = np.concatenate([walk.gyro[k], walk.accelerometer[k]])
        x = after(x, u, noise, now & before)
        legs = walk.joints[k].reshape(3, 3)
        for c in np.flatnonzero(now):
            if before[c]:
                residuals.append((legs[c] - (x[5][c] - x[2]) @ x[0]) / NOISE.encoder)
            else:
                x[5][c] = x[2] + x[0] @ (legs[c] + NOISE.encoder * w[k, 12 + 3 * c : 15 + 3 * c])
        residuals.append(w[k])
        states.append(x)
        before = now
    return states, np.concatenate(residuals)


def test_it_solves_the_problem_of_least_squares(robot):
    """States of a window with a foot that leaves and one that lands, by SciPy from scratch."""
    steps, walk = 4, Walk(np.random.default_rng(5), 4, swing=1)
    mhe = MovingHorizon(
        robot, FEET, H, window=steps, iterations=20, tolerance=1e-9, noise=NOISE, gate=1e9
    )
    run(mhe, walk, robot.neutral(), steps)
    x0 = (np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))
    problem = least_squares(
        lambda z: followed(z, walk, x0, steps)[1], np.zeros(15 + 21 * steps), method="lm"
    )
    states, _ = followed(problem.x, walk, x0, steps)
    found = mhe.smoothed()
    for k, x in enumerate(states):
        at = tuple(
            found[n][k]
            for n in ("orientation", "velocity", "position", "gyro_bias", "accelerometer_bias")
        )
        assert np.abs(errors(at, x)).max() < 2e-7, k


def test_one_interval_and_one_iteration_are_the_filter(robot):
    """Up to squares of errors: the same covariance, and means within hundredths of it."""
    walk, start = Walk(np.random.default_rng(1), 60), robot.neutral()
    start[2] = 0.5
    one = run(MovingHorizon(robot, FEET, H, window=1, iterations=1, noise=NOISE), walk, start, 60)
    two = run(BaseFilter(robot, FEET, H, noise=NOISE), walk, start, 60)
    for a, b in zip(one, two, strict=True):
        size = np.sqrt(np.diag(b.covariance))
        assert np.abs(np.sqrt(np.diag(a.covariance)) / size - 1).max() < 0.02
        assert (np.abs(a.velocity - b.velocity) / size[3:6]).max() < 0.1
        assert (np.abs(a.gyro_bias - b.gyro_bias) / size[9:12]).max() < 0.1


def test_later_readings_improve_what_is_known_of_earlier_states(robot):
    """Velocities half a second ago, as the window tells them now and as the filter told them."""
    start, before, after_all = robot.neutral(), [], []
    start[2] = 0.5
    for seed in range(3):
        walk = Walk(np.random.default_rng(seed), 40)
        mhe = MovingHorizon(robot, FEET, H, window=20, noise=NOISE)
        run(mhe, walk, start, 40, START)
        filtered = run(BaseFilter(robot, FEET, H, noise=NOISE), walk, start, 40, START)
        smoothed = mhe.smoothed()["velocity"]
        for k in range(25, 32):
            true = walk.truth[k][1]
            before.append(np.sum((filtered[k].velocity - true) ** 2))
            after_all.append(np.sum((smoothed[k - 19] - true) ** 2))
    assert np.mean(after_all) < 0.8 * np.mean(before)
    print(np.mean(after_all) / np.mean(before))


def test_a_batch_is_its_robots_one_by_one(robot):
    walks, options = [Walk(np.random.default_rng(k), 15) for k in range(3)], {"window": 5}
    many, one = (
        MovingHorizon(robot, FEET, H, batch=3, **options),
        MovingHorizon(robot, FEET, H, **options),
    )
    for k in range(15):
        names = "gyro", "accelerometer", "joints"
        given = (np.array([getattr(w, name)[k] for w in walks]) for name in names)
        together = many.step(*given, np.zeros(9), np.array([w.closed[k] for w in walks]))
    for j, w in enumerate(walks):
        alone = run(one, w, robot.neutral(), 15, Uncertainty())[-1]
        assert np.array_equal(alone.q, together.q[j])
        assert np.array_equal(alone.covariance, together.covariance[j])


def test_wrong_options_are_named(robot):
    with pytest.raises(ShapeError):
        MovingHorizon(robot, FEET, H, window=0)
    with pytest.raises(ShapeError, match="tolerance"):
        MovingHorizon(robot, FEET, H, tolerance=-1.0)
