"""A frame that follows a pose, and the posture meanwhile."""

import numpy as np
import pytest
from support.motions import simulate

import kinetree as kt
from kinetree.control import OperationalSpaceControl


@pytest.fixture
def m():
    return kt.samples.arm()


START = np.array([0.3, -0.6, 0.9, 0.2, 0.7, -0.1])


@pytest.mark.covers("Lynch & Park 9.6", by=OperationalSpaceControl)
def test_the_frame_accelerates_as_prescribed(m, rng):
    """The acceleration of the frame is the commanded one, exactly, in every state."""
    q, qd = START + 0.1 * rng.standard_normal((5, 6)), rng.standard_normal((5, 6))
    T = kt.pose(m, START, "tool")
    v_r, a_r = rng.standard_normal((2, 6))
    reach = OperationalSpaceControl(m, "tool", lambda t: (T, v_r, a_r), kp=0.0, kd=0.0)
    qdd = kt.forward_dynamics(m, q, qd, reach(0.0, q, qd))
    found = kt.acceleration(m, q, qd, qdd, "tool", kind="classical", frame="aligned")
    assert np.abs(found - a_r).max() < 1e-8
    follow = OperationalSpaceControl(m, "tool", lambda t: (T, v_r, a_r), kp=0.0, kd=3.0)
    qdd = kt.forward_dynamics(m, q, qd, follow(0.0, q, qd))
    found = kt.acceleration(m, q, qd, qdd, "tool", kind="classical", frame="aligned")
    v = kt.velocity(m, q, qd, "tool", frame="aligned")
    assert np.abs(found - (a_r + 3.0 * (v_r - v))).max() < 1e-8


def test_it_reaches_a_pose(m):
    target = kt.pose(m, START, "tool")
    q0 = START + np.array([0.3, -0.2, 0.2, 0.3, -0.3, 0.4])
    reach = OperationalSpaceControl(m, "tool", target, kp=36.0)
    q, _ = simulate(m, reach, q0, np.zeros(6), 2.0, 0.01)
    assert np.abs(kt.pose(m, q[-1], "tool") - target).max() < 1e-3
    distance = np.linalg.norm(kt.pose(m, q, "tool")[:, :3, 3] - target[:3, 3], axis=-1)
    assert np.all(np.diff(distance) < 1e-9)


def test_it_follows_a_circle(m):
    center = kt.pose(m, START, "tool")

    def circle(t):
        s, c = np.sin(2 * t), np.cos(2 * t)
        T, v, a = center.copy(), np.zeros(6), np.zeros(6)
        T[:3, 3] += 0.1 * np.array([0, s, c - 1])
        v[3:], a[3:] = 0.2 * np.array([0, c, -s]), -0.4 * np.array([0, s, c])
        return T, v, a

    qd0 = np.linalg.solve(kt.jacobian(m, START, "tool", frame="aligned"), circle(0.0)[1])
    q, _ = simulate(m, OperationalSpaceControl(m, "tool", circle, kp=100.0), START, qd0, 1.5, 0.005)
    for k in (100, 200, 300):
        assert np.abs(kt.pose(m, q[k], "tool") - circle(0.005 * k)[0]).max() < 1e-7


def free_part(m, q, e):
    """The nearest joint motion to ``e`` that leaves the tool alone, measured by inertia."""
    J, H_inv = kt.jacobian(m, q, "tool", frame="aligned"), kt.inverse_mass_matrix(m, q)
    return e - H_inv @ J.T @ np.linalg.solve(J @ H_inv @ J.T, J @ e)


def test_the_posture_does_not_disturb_the_frame(rng):
    m = kt.samples.panda()
    q0 = np.array([0.1, -0.3, 0.2, -1.8, 0.1, 1.6, 0.4, 0.02, 0.02])
    target, posture = kt.pose(m, q0, "tool"), q0 + 0.3 * rng.standard_normal(9)
    with_posture = OperationalSpaceControl(
        m, "tool", target, kp=50.0, posture=posture, posture_kp=20.0
    )
    q, _ = simulate(m, with_posture, q0, np.zeros(9), 1.0, 0.01)
    assert np.abs(kt.pose(m, q, "tool") - target).max() < 1e-6
    # What is left of the error is what only a motion of the frame would reduce.
    before, after = (np.linalg.norm(free_part(m, x, posture - x)) for x in (q[0], q[-1]))
    assert after < 0.1 * before  # (1 + ω t) exp(-ω t) is 0.063 after a second


def test_points_leave_the_orientation_free(m):
    goal = kt.pose(m, START, "tool")[:3, 3] + np.array([0.0, 0.1, -0.05])
    reach = OperationalSpaceControl(m, "tool", goal, kp=64.0, task="position")
    q, qd = simulate(m, reach, START, np.zeros(6), 1.5, 0.01)
    assert np.linalg.norm(kt.pose(m, q[-1], "tool")[:3, 3] - goal) < 1e-3
    assert np.abs(qd[-1]).max() < 0.1


def test_at_a_singularity_forces_stay_bounded(m, rng):
    """Wrist straight: one direction of the tool is out of reach."""
    q = np.array([0.3, -0.6, 0.9, 0.2, 0.0, -0.1])
    J = kt.jacobian(m, q, "tool", frame="aligned")
    assert np.linalg.svd(J, compute_uv=False)[-1] < 1e-10
    target = kt.pose(m, START, "tool")
    tau = OperationalSpaceControl(m, "tool", target, kp=10.0)(0.0, q, np.zeros(6))
    near = OperationalSpaceControl(m, "tool", target, kp=10.0)(0.0, START, np.zeros(6))
    assert np.abs(tau).max() < 1e3 * max(np.abs(near).max(), 1.0)


def test_batches(m, rng):
    q, qd = START + 0.1 * rng.standard_normal((2, 3, 6)), rng.standard_normal((2, 3, 6))
    reach = OperationalSpaceControl(m, "tool", kt.pose(m, START, "tool"), kp=10.0, posture=START)
    many = reach(0.0, q, qd)
    assert many.shape == (2, 3, 6)
    assert np.abs(many[1, 2] - reach(0.0, q[1, 2], qd[1, 2])).max() < 1e-8 * np.abs(many).max()


def test_errors_name_what_is_wrong(m):
    T = np.eye(4)
    with pytest.raises(kt.UnknownNameError, match="task must be 'pose' or 'position', got 'turn'"):
        OperationalSpaceControl(m, "tool", T, kp=1.0, task="turn")
    with pytest.raises(
        kt.UnknownNameError, match="has no frame or body 'tol'; did you mean 'tool'"
    ):
        OperationalSpaceControl(m, "tol", T, kp=1.0)
    with pytest.raises(
        kt.ShapeError, match=r"reference pose must have shape \(\.\.\., 4, 4\), got \(3,"
    ):
        OperationalSpaceControl(m, "tool", np.zeros(3), kp=1.0)
    with pytest.raises(kt.ShapeError, match="must return the pose, velocity and acceleration"):
        OperationalSpaceControl(m, "tool", lambda t: T, kp=1.0)(0.0, START, np.zeros(6))
    with pytest.raises(kt.ShapeError, match=r"reference velocity must have shape \(\.\.\., 6\)"):
        OperationalSpaceControl(m, "tool", lambda t: (T, 0.0, 0.0), kp=1.0)(0.0, START, np.zeros(6))


def test_the_error_of_a_pose_is_the_motion_that_removes_it(rng):
    m = kt.samples.panda()
    q = np.array([m.random_configuration(rng) for _ in range(5)])
    T = kt.pose(m, q, "tool")
    step = 0.3 * rng.standard_normal((5, 6))
    target = T.copy()
    for k in range(5):  # by another way: Rodrigues' formula
        w = step[k, :3]
        W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        angle = np.linalg.norm(w)
        R = np.eye(3) + np.sin(angle) / angle * W + (1 - np.cos(angle)) / angle**2 * W @ W
        target[k, :3, :3] = R @ T[k, :3, :3]
    target[:, :3, 3] += step[:, 3:]
    np.testing.assert_allclose(kt.control.pose_error(T, target), step, atol=1e-13)
    with pytest.raises(kt.ShapeError, match=r"target must have shape \(\.\.\., 4, 4\), got \(3,\)"):
        kt.control.pose_error(T, target[0, :3, 3])
