"""Inverse kinematics on robots: targets are reached, within limits, and success is never false."""

import warnings
from importlib.metadata import distribution

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import kinetree as kt
from kinetree.ik import PoseTask, inverse_kinematics


def pose_error(T, target):
    """Angle and distance in one, by SciPy."""
    turn = Rotation.from_matrix(target[..., :3, :3] @ np.swapaxes(T[..., :3, :3], -1, -2))
    shift = target[..., :3, 3] - T[..., :3, 3]
    return np.hypot(turn.magnitude(), np.linalg.norm(shift, axis=-1))


def ur5():
    files = distribution("example-robot-data").files
    path = next(f for f in files if str(f).endswith("ur_description/urdf/ur5_robot.urdf"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        return kt.interop.pinocchio.from_model(pin.buildModelFromUrdf(str(path.locate())))


ROBOTS = {
    "panda": (kt.samples.panda, "tool"),
    "ur5": (ur5, "tool0"),
    "arm": (kt.samples.arm, "tool"),
}


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    make, frame = ROBOTS[request.param]
    model = make()
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(200)])
    return model, frame, q, kt.pose(model, q, frame)


def within_limits(model, q):
    for i, body in enumerate(model.bodies, start=1):
        part = q[..., model.q_slice[i]]
        if body.limits is not None:
            assert np.all(part >= np.array(body.limits.lower))
            assert np.all(part <= np.array(body.limits.upper))


@pytest.mark.covers("6-D Guide 2: Kinematics", by=inverse_kinematics)
def test_random_targets_are_reached_within_limits(robot):
    model, frame, _, targets = robot
    first = kt.inverse_kinematics(model, frame, targets, restarts=0)
    assert np.mean(first.success) >= 0.92
    result = kt.inverse_kinematics(model, frame, targets)
    assert np.all(result.success)
    assert set(result.reason) == {"converged"}
    for found in (first, result):
        error = pose_error(kt.pose(model, found.q, frame), targets)
        assert np.array_equal(error < 1e-8, found.success)
        np.testing.assert_allclose(found.error, error, rtol=1e-3, atol=1e-13)
        within_limits(model, found.q)
    assert np.all(first.success[result.restarts == 0])
    assert result.require() is result.q


def test_a_half_turn_is_no_success(robot):
    """XtoV vanishes at 180°; the logarithm does not."""
    model, frame, q, _ = robot
    for axis in np.vstack([np.eye(3), [[0.6, 0.0, -0.8]]]):
        target = kt.pose(model, q[:20], frame)
        target[:, :3, :3] = target[:, :3, :3] @ Rotation.from_rotvec(np.pi * axis).as_matrix()
        result = kt.inverse_kinematics(model, frame, target, q0=q[:20], restarts=2)
        error = pose_error(kt.pose(model, result.q, frame), target)
        assert np.array_equal(error < 1e-8, result.success)
        assert np.any(result.success)


def test_results_do_not_depend_on_the_rest_of_the_batch(robot):
    model, frame, _, targets = robot
    whole = kt.inverse_kinematics(model, frame, targets, restarts=3)
    part = kt.inverse_kinematics(model, frame, targets[40:57], restarts=3)
    assert np.array_equal(whole.q[40:57], part.q)
    assert np.array_equal(whole.iterations[40:57], part.iterations)


def test_the_same_seed_gives_the_same_result_and_another_seed_need_not(robot):
    model, frame, _, targets = robot
    failed = ~kt.inverse_kinematics(model, frame, targets, restarts=0).success
    if not np.any(failed):
        return
    a, b, c = (
        kt.inverse_kinematics(model, frame, targets[failed], seed=seed) for seed in (0, 0, 1)
    )
    assert np.array_equal(a.q, b.q)
    assert not np.array_equal(a.q, c.q)


def test_batches_broadcast_and_single_targets_give_numbers():
    model = kt.samples.arm()
    rng = np.random.default_rng(0)
    q = np.array([[model.random_configuration(rng) for _ in range(3)] for _ in range(2)])
    targets = kt.pose(model, q, "tool")
    result = kt.inverse_kinematics(model, "tool", targets, q0=q[:1] + 0.01)
    assert result.q.shape == (2, 3, 6)
    assert result.success.shape == result.error.shape == result.reason.shape == (2, 3)
    one = kt.inverse_kinematics(model, "tool", targets[0, 0], q0=q[0, 0] + 0.01)
    assert one.q.shape == (6,)
    assert bool(one.success)
    assert one.reason == "converged"
    np.testing.assert_allclose(one.q, q[0, 0], atol=1e-6)
    assert repr(one).startswith("<inverse kinematics: converged, error ")
    none = kt.inverse_kinematics(model, "tool", targets[:0])
    assert none.q.shape == (0, 3, 6)


def test_the_start_decides_which_solution_is_found(robot):
    model, frame, q, targets = robot
    near = np.clip(q + 1e-3, *_bounds(model))
    result = kt.inverse_kinematics(model, frame, targets, q0=near, restarts=0)
    assert np.mean(result.success) > 0.98
    assert np.median(np.abs(result.q - q)[result.success].max(axis=1)) < 0.1


def _bounds(model):
    limits = [body.limits for body in model.bodies if body.limits is not None]
    lower, upper = ([x for one in limits for x in getattr(one, s)] for s in ("lower", "upper"))
    return np.array(lower), np.array(upper)


def test_what_does_not_move_the_frame_stays():
    model = kt.samples.panda()
    q0 = model.neutral()
    q0[-2:] = 0.03, 0.01  # the fingers
    target = kt.pose(model, model.random_configuration(1), "tool")
    q = kt.inverse_kinematics(model, "tool", target, q0).require()
    assert np.array_equal(q[-2:], q0[-2:])


def test_a_roughly_orthonormal_target_means_the_nearest_rotation():
    model = kt.samples.panda()
    target = kt.pose(model, model.random_configuration(2), "tool")
    result = kt.inverse_kinematics(model, "tool", target.astype(np.float32))
    assert result.success
    assert result.q.dtype == float
    assert pose_error(kt.pose(model, result.q, "tool"), target) < 1e-6


def test_limits_can_be_ignored_or_given():
    model = kt.samples.panda()
    lower, upper = _bounds(model)
    target = kt.pose(model, model.random_configuration(3), "tool")
    free = kt.inverse_kinematics(model, "tool", target, limits=False)
    assert free.success
    tight = (np.full(9, -np.inf), np.full(9, np.inf))
    tight[0][0], tight[1][0] = -0.1, 0.1
    result = kt.inverse_kinematics(model, "tool", target, limits=tight)
    assert result.success
    assert abs(result.q[0]) <= 0.1
    assert np.any((result.q < lower) | (result.q > upper))


def test_tasks_and_the_short_form_agree():
    model = kt.samples.panda()
    target = kt.pose(model, model.random_configuration(4), "tool")
    short = kt.inverse_kinematics(model, "tool", target)
    for tasks in (PoseTask("tool", target), [PoseTask("tool", target)]):
        assert np.array_equal(kt.inverse_kinematics(model, tasks).q, short.q)
