"""Springs and dampers with forces computed ahead."""

import numpy as np
import pytest
from support.motions import simulate

import kinetree as kt
from kinetree.control import PDWithFeedforward


def reference(t):
    s, c = np.sin(3 * t), np.cos(3 * t)
    a = np.array([0.5, -0.4])
    return a * s, 3 * a * c, -9 * a * s


def test_feedforward_alone_follows_exactly_from_the_right_start():
    m = kt.samples.double_pendulum()
    q0, qd0, _ = reference(0.0)
    ahead = PDWithFeedforward(m, reference, kp=0.0, kd=0.0)
    q, _ = simulate(m, ahead, q0, qd0, 1.0, 0.005)
    assert np.abs(q[-1] - reference(1.0)[0]).max() < 1e-7


def test_springs_bring_it_back_and_feedforward_keeps_it_there():
    m = kt.samples.double_pendulum()
    q0, qd0, _ = reference(0.0)
    errors = {}
    for feedforward in ("reference", None):
        follow = PDWithFeedforward(m, reference, [60.0, 30.0], [15.0, 4.0], feedforward=feedforward)
        q, _ = simulate(m, follow, q0 + np.array([0.3, -0.2]), qd0, 3.0, 0.01)
        errors[feedforward] = np.abs(q[-1] - reference(3.0)[0]).max()
    assert errors["reference"] < 2e-3
    assert errors[None] > 10 * errors["reference"]


def test_with_gravity_it_comes_to_rest_at_the_goal_from_anywhere(rng):
    m = kt.samples.double_pendulum()
    goal, k = np.array([2.5, -0.7]), np.diag([60.0, 30.0])
    go = PDWithFeedforward(m, goal, k, [12.0, 5.0], feedforward="gravity")
    q, qd = simulate(m, go, rng.uniform(-2, 2, (4, 2)), np.zeros((4, 2)), 6.0, 0.01)
    assert np.abs(q[-1] - goal).max() < 1e-3
    e = goal - q
    energy = kt.kinetic_energy(m, q, qd) + 0.5 * np.einsum("...i,ij,...j", e, k, e)
    assert np.all(np.diff(energy, axis=0) < 1e-8)


def test_errors_name_what_is_wrong():
    m = kt.samples.double_pendulum()
    with pytest.raises(kt.UnknownNameError, match="'reference', 'gravity' or None, got 'full'"):
        PDWithFeedforward(m, m.neutral(), 1.0, 1.0, feedforward="full")
    with pytest.raises(kt.ShapeError, match=r"reference must have shape \(\.\.\., nq\)"):
        PDWithFeedforward(m, np.zeros(3), 1.0, 1.0)
