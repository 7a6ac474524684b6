"""Mechanisms with loops and couplings: honoured, watched, and stabilized if asked for."""

import numpy as np
import pytest
from trusted import assert_trusted

import kinetree as kt
from kinetree.errors import ShapeError
from kinetree.simulation.field import Field


def four_bar():
    model = kt.samples.four_bar()
    return model, np.array(model.posture("home").q)


def test_loops_stay_closed_to_the_order_of_the_integrator():
    model, q = four_bar()
    errors = []
    for dt in (5e-3, 2.5e-3):
        motion = kt.simulate(model, q, duration=0.1, dt=dt)
        assert_trusted(motion, energy=1e-6, loops=1e-6)
        errors.append(motion.report.loop_error)
    assert np.log2(errors[0] / errors[1]) > 3.5


def test_loops_that_open_are_warned_of():
    model, q = four_bar()
    with pytest.warns(kt.SimulationWarning, match="'four-bar' lets its loops open: the error grew"):
        motion = kt.simulate(model, q, duration=0.5, dt=0.02)
    assert motion.report.loop_error > 1e-6
    assert motion.loop_error[0] < 1e-12


@pytest.mark.covers("RBDA 8.3", by=Field)
def test_stabilized_errors_decay_like_a_critically_damped_oscillator():
    """``δ (1 + t/T) e^(-t/T)`` for a loop that is open at the start by a little."""
    model, q = four_bar()
    T, apart = 0.05, q + np.array([0.0, 0.0, 1e-6])
    options = {"duration": 0.2, "dt": 2e-3}
    motion = kt.simulate(model, apart, stabilization=T, **options)
    assert_trusted(motion, energy=1e-3, loops=1e-5)
    t = motion.t / T
    expected = motion.loop_error[0] * (1 + t) * np.exp(-t)
    np.testing.assert_allclose(motion.loop_error, expected, atol=0.02 * motion.loop_error[0])


@pytest.mark.covers("RBDA 8.3", by=Field)
def test_the_time_constant_hardly_matters():
    model, q = four_bar()
    options = {"duration": 0.3, "dt": 5e-3}
    one, other = (kt.simulate(model, q, stabilization=T, **options) for T in (0.05, 0.1))
    assert_trusted(one, energy=1e-4, loops=1e-6)
    np.testing.assert_allclose(one.q, other.q, atol=1e-5)


def test_a_state_that_does_not_close_the_loops_is_refused():
    model, q = four_bar()
    with pytest.raises(ShapeError, match=r"q does not close loop.*assemble the mechanism first"):
        kt.simulate(model, q + np.array([0.0, 0.0, 0.1]), duration=0.1)


def test_couplings_are_honoured():
    rod = kt.shapes.rod(0.3, mass=0.5, at=(0, 0, -0.15))
    model = (
        kt.ModelBuilder("gears")
        .body("left", joint=kt.Revolute("y"), inertia=rod)
        .body("right", joint=kt.Revolute("y"), at=(0.5, 0, 0), inertia=rod)
        .coupling("gear", joint="right_joint", source="left_joint", coefficients=(0, -2))
        .build()
    )
    motion = kt.simulate(model, [0.5, -1.0], duration=0.3, dt=5e-3)
    assert_trusted(motion, energy=1e-6, loops=1e-12)
    np.testing.assert_allclose(motion.q[:, 1], -2 * motion.q[:, 0], atol=1e-12)
