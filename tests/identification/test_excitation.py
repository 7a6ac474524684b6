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


def test_joints_without_rates_are_named():
    m = kt.samples.random_tree(1, 0, joints=[kt.Spherical()])
    with pytest.raises(kt.ModelError, match="joint 'body1_joint' is Spherical"):
        exciting_trajectory(m)
