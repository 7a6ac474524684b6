"""Mechanisms with loops and couplings: what holds by default, and what is refused."""

import numpy as np
import pytest
from support.motions import assert_trusted

import kinetree as kt
from kinetree.errors import LoopError, UnknownNameError
from kinetree.loops.stepping.options import Baumgarte, Projection
from kinetree.loops.stepping.projected import Constrained, Projected


def four_bar():
    model = kt.samples.four_bar()
    return model, np.array(model.posture("home").q)


def gears():
    rod = kt.shapes.rod(0.3, mass=0.5, at=(0, 0, -0.15))
    return (
        kt.ModelBuilder("gears")
        .body("left", joint=kt.Revolute("y"), inertia=rod)
        .body("right", joint=kt.Revolute("y"), at=(0.5, 0, 0), inertia=rod)
        .coupling("gear", joint="right_joint", source="left_joint", coefficients=(0, -2))
        .build()
    )


@pytest.mark.covers("Spencer 3.1", by=Projected)
@pytest.mark.parametrize("dt", [1e-3, 0.02])
def test_loops_are_closed_to_rounding_error_after_every_step(dt):
    model, q = four_bar()
    motion = kt.simulate(model, q, duration=0.5, dt=dt)
    assert_trusted(motion, energy=1e-4 if dt > 0.01 else 1e-11, loops=1e-14)
    assert motion.report.loop_rate_error < 1e-13
    assert motion.report.constraints == "projection"
    assert motion.report.refined == 0


@pytest.mark.covers("Spencer 3.1", by=Projection)
def test_energy_can_be_kept_to_rounding_error_as_well():
    model, q = four_bar()
    run = {"duration": 0.5, "dt": 5e-3, "integrator": "rk4"}
    plain, scaled = (
        kt.simulate(model, q, constraints=c, **run) for c in ("projection", "projection+energy")
    )
    assert plain.report.energy_error > 1e-9
    assert scaled.report.energy_error < 1e-13
    assert scaled.report.loop_error < 1e-14
    np.testing.assert_allclose(plain.q, scaled.q, atol=1e-5)


def test_energy_that_joint_forces_take_is_not_given_back():
    """The energy that is kept is that which the joint forces leave."""
    model, q = four_bar()
    damper = {"crank_joint": kt.JointDynamics(damping=0.05)}
    run = {"duration": 0.5, "dt": 2e-3, "integrator": "rk4", "constraints": "projection+energy"}
    motion = kt.simulate(model.replace(dynamics=damper), q, **run)
    assert motion.report.energy_error < 1e-12
    assert motion.energy[-1] < motion.energy[0] - 1e-3


def test_loops_that_are_not_corrected_open_with_the_order_of_the_integrator():
    model, q = four_bar()
    run = {"duration": 0.1, "constraints": "none", "integrator": "rk4"}
    errors = [kt.simulate(model, q, dt=dt, **run).report.loop_error for dt in (5e-3, 2.5e-3)]
    assert np.log2(errors[0] / errors[1]) > 3.5


def test_loops_that_open_are_warned_of():
    model, q = four_bar()
    with pytest.warns(kt.SimulationWarning, match="'four-bar' lets its loops open: the error grew"):
        motion = kt.simulate(model, q, duration=0.5, dt=0.02, integrator="rk4", constraints="none")
    assert motion.report.loop_error > 1e-6
    assert motion.loop_error[0] < 1e-12


@pytest.mark.covers("RBDA 8.3", by=(Constrained, Baumgarte))
def test_stabilized_errors_decay_like_a_critically_damped_oscillator():
    """``δ (1 + t/T) e^(-t/T)`` for a loop that is open at the start by a little."""
    model, q = four_bar()
    T, apart = 0.05, q + np.array([0.0, 0.0, 1e-6])
    motion = kt.simulate(model, apart, constraints=Baumgarte(T), duration=0.2, dt=2e-3)
    assert_trusted(motion, energy=1e-3, loops=1e-5)
    t = motion.t / T
    expected = motion.loop_error[0] * (1 + t) * np.exp(-t)
    np.testing.assert_allclose(motion.loop_error, expected, atol=0.02 * motion.loop_error[0])


@pytest.mark.covers("RBDA 8.3", by=Baumgarte)
def test_the_time_constant_hardly_matters():
    model, q = four_bar()
    run = {"duration": 0.3, "dt": 5e-3, "integrator": "rk4"}
    ways = (Baumgarte(0.05), Baumgarte(0.1), "baumgarte")
    motions = [kt.simulate(model, q, constraints=way, **run) for way in ways]
    assert_trusted(motions[0], energy=1e-4, loops=1e-6)
    for other in motions[1:]:
        np.testing.assert_allclose(motions[0].q, other.q, atol=1e-5)


@pytest.mark.covers("RBDA 8.3", by=Baumgarte)
def test_the_time_constant_suits_the_size_of_the_mechanism_and_the_step():
    model, _ = four_bar()
    assert 0.05 < Baumgarte().of(model, 1e-3).time_constant < 0.1
    assert Baumgarte().of(model, 0.05).time_constant == 0.5
    assert Baumgarte(0.2).of(model, 1e-3).time_constant == 0.2
    with pytest.raises(kt.ShapeError, match=r"time constant.*must be positive \[s\], got -1"):
        Baumgarte(-1)


def test_a_start_that_does_not_close_the_loops_is_rejected():
    model, q = four_bar()
    with pytest.raises(LoopError, match=r"q0 does not close loop 'pin'.*0.0.* m or rad.*assemble"):
        kt.simulate(model, q + np.array([0.0, 0.0, 0.1]), duration=0.1)
    with pytest.raises(LoopError, match=r"q0 of sample \(1,\) does not close loop 'pin'"):
        kt.simulate(model, [q, q + np.array([0.0, 0.0, 0.1])], duration=0.1)


def test_a_start_that_tears_loops_apart_is_rejected():
    model, q = four_bar()
    with pytest.raises(LoopError, match=r"qd0 tears loop 'pin' of model.*project_velocity"):
        kt.simulate(model, q, [1.0, 0.0, 0.0], duration=0.1)


def test_couplings_are_no_constraints_of_a_simulation():
    """There are no variables that could drift: any integrator will do."""
    motion = kt.simulate(gears(), [0.5], duration=0.3, dt=5e-3)
    assert_trusted(motion, energy=1e-8)
    q = gears().expand(motion.q)
    np.testing.assert_array_equal(q[:, 1], -2 * q[:, 0])


def test_unknown_ways_to_keep_constraints_are_named():
    model, q = four_bar()
    with pytest.raises(UnknownNameError, match=r"called 'projecton'.*'projection'"):
        kt.simulate(model, q, duration=0.1, constraints="projecton")
    with pytest.raises(TypeError, match=r"constraints must be one of 'projection'.*got float"):
        kt.simulate(model, q, duration=0.1, constraints=0.1)


def test_every_sample_of_a_batch_is_what_it_is_alone():
    model, q = four_bar()
    turned = kt.simulate(model, q, duration=0.2, dt=5e-3).q[-1]
    starts = np.array([q, turned])
    both = kt.simulate(model, starts, duration=0.2, dt=5e-3)
    for k, start in enumerate(starts):
        alone = kt.simulate(model, start, duration=0.2, dt=5e-3)
        np.testing.assert_allclose(both.q[:, k], alone.q, rtol=0, atol=1e-13)


def test_forces_that_are_plain_python_act_on_mechanisms_with_loops():
    model, q = four_bar()

    def push(model, t, q, qd):
        return np.array([0.3, 0.0, 0.0]) * np.ones_like(qd)

    run = {"duration": 0.1, "dt": 5e-3}
    plain = kt.simulate(model, q, forces=push, **run)
    controlled = kt.simulate(model, q, controller=lambda t, q, qd: [0.3, 0.0, 0.0], **run)
    assert_trusted(plain, energy=1e-9, loops=1e-14)
    np.testing.assert_allclose(plain.q, controlled.q, rtol=0, atol=1e-13)


def test_steps_that_adapt_end_on_the_constraints():
    model, q = four_bar()
    motion = kt.simulate(model, q, duration=0.5, rtol=1e-9, dt=0.05)
    assert_trusted(motion, energy=1e-8)
    fixed = kt.simulate(model, q, duration=0.5, dt=1e-3)
    np.testing.assert_allclose(motion.q[-1], fixed.q[-1], atol=1e-8)
    assert motion.loop_error[-1] < 1e-14


def test_events_are_found_in_mechanisms_with_loops():
    model, q = four_bar()
    level = kt.Event(lambda t, q, qd: q[0] ** 2 - 0.25, name="half a radian", terminal=True)
    motion = kt.simulate(model, q, duration=2.0, dt=5e-3, events=level)
    assert motion.events[-1].name == "half a radian"
    np.testing.assert_allclose(np.abs(motion.q[-1, 0]), 0.5, atol=1e-9)
    assert motion.loop_error[-1] < 1e-14


def test_storing_fewer_states_changes_none():
    model, q = four_bar()
    all_of_them = kt.simulate(model, q, duration=0.1, dt=1e-3)
    some = kt.simulate(model, q, duration=0.1, dt=1e-3, store_every=25)
    np.testing.assert_allclose(some.q, all_of_them.q[::25], rtol=0, atol=1e-13)
    np.testing.assert_allclose(some.work, all_of_them.work[::25], rtol=0, atol=1e-13)


def test_a_picture_shows_the_closure_error():
    pytest.importorskip("matplotlib").use("Agg")
    model, q = four_bar()
    figure = kt.simulate(model, q, duration=0.05, dt=5e-3).plot()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[-2:] == ["closure error of loops", "closure velocity error"]
