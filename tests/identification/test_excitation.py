"""Periodic motions for identification."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.identification import base_parameters, exciting_trajectory, fourier_trajectory


def test_rates_of_a_fourier_series(rng):
    sines, cosines = rng.standard_normal((2, 3, 2))
    t, h = np.linspace(0, 4, 7), 1e-5
    mid, before, after = (
        fourier_trajectory(t + s, [0.1, 0.2], sines, cosines, 4.0) for s in (0, -h, h)
    )
    np.testing.assert_allclose((after.q - before.q) / (2 * h), mid.qd, atol=1e-7)
    np.testing.assert_allclose((after.qd - before.qd) / (2 * h), mid.qdd, atol=1e-6)
    assert_close(mid.q[0], mid.q[-1])


def test_limits_are_kept_and_all_parameters_shown():
    m = kt.samples.arm()
    motion = exciting_trajectory(m, samples=100, candidates=3, rng=0)
    low, high, fastest = (
        np.array([getattr(b.limits, name)[0] for b in m.bodies])
        for name in ("lower", "upper", "velocity")
    )
    assert np.all(motion.q >= low - 1e-12)
    assert np.all(motion.q <= high + 1e-12)
    assert np.all(np.abs(motion.qd) <= fastest + 1e-12)
    base = base_parameters(m)
    W = base.regressor(motion.q, motion.qd, motion.qdd).reshape(-1, len(base))
    assert np.linalg.cond(W / np.linalg.norm(W, axis=0)) < 100


def test_more_candidates_are_no_worse():
    m = kt.samples.double_pendulum()
    base = base_parameters(m)

    def condition(candidates):
        motion = exciting_trajectory(m, candidates=candidates, samples=50, rng=3)
        W = base.regressor(motion.q, motion.qd, motion.qdd).reshape(-1, len(base))
        return np.linalg.cond(W / np.linalg.norm(W, axis=0))

    assert condition(30) <= condition(1)


def consistent(model, motion):
    """Whether velocities and accelerations are the derivatives, by differences of second order."""
    q, qd, qdd, h = motion.q, motion.qd, motion.qdd, motion.t[1]
    rate = model.difference(q[:-2], q[2:]) / (2 * h)
    np.testing.assert_allclose(rate, qd[1:-1], atol=0.01 * np.abs(qd).max())
    change = (qd[2:] - qd[:-2]) / (2 * h)
    np.testing.assert_allclose(change, qdd[1:-1], atol=0.02 * np.abs(qdd).max())


def test_ball_and_free_joints_are_displaced_by_the_series():
    for joint in (kt.Spherical(), kt.Free()):
        m = kt.samples.random_tree(2, 0, joints=[joint, kt.Revolute("z")])
        motion = exciting_trajectory(m, samples=800, harmonics=2, candidates=2, rng=0)
        consistent(m, motion)
        assert np.ptp(motion.q, axis=0).min() > 0.05


@pytest.mark.parametrize("floating", [False, True])
def test_independent_joints_of_a_linkage_move_by_the_series_and_the_others_follow(floating):
    m = kt.samples.four_bar()
    if floating:
        m = kt.edit.floating(m, inertia=kt.shapes.sphere(0.2, mass=2.0))
    motion = exciting_trajectory(m, samples=200, harmonics=1, candidates=1, rng=0)
    consistent(m, motion)
    assert np.abs(kt.loops.closure_error(m, motion.q)).max() < 1e-12
    lower, upper = m.position_limits
    assert np.all((motion.q >= lower) & (motion.q <= upper))


def test_motors_are_moved_by_the_series_if_they_determine_the_rest():
    m = kt.samples.four_bar()
    one, other = (
        exciting_trajectory(m, samples=50, candidates=1, rng=0, independent=names)
        for names in (None, ["crank_joint"])
    )
    np.testing.assert_array_equal(one.q, other.q)
    by_rocker = exciting_trajectory(
        m, samples=50, candidates=1, rng=0, independent=["rocker_joint"]
    )
    assert np.abs(by_rocker.q - one.q).max() > 1e-3
    with pytest.raises(kt.LoopError, match="1 degrees of freedom"):
        exciting_trajectory(m, independent=["crank_joint", "rocker_joint"])
