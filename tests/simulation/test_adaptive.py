"""Steps that adapt to their error."""

import numpy as np
import pytest
from support.motions import assert_trusted

import kinetree as kt
from kinetree.simulation.adaptive_runs import run_adaptive_steps

PENDULUM = kt.samples.double_pendulum()
START = np.array([2.5, 1.0])
OPTIONS = {"duration": 3.0, "dt": 0.05, "limits": None}


def exact(**options):
    return kt.simulate(PENDULUM, START, **{**OPTIONS, "rtol": 1e-12, "atol": 1e-12, **options})


@pytest.fixture(scope="module")
def end():
    return exact().q[-1]


@pytest.mark.parametrize("integrator", ["dopri5", "rosenbrock"])
def test_smaller_tolerances_give_smaller_errors(integrator, end):
    errors = []
    for rtol in (1e-4, 1e-6, 1e-8):
        motion = kt.simulate(
            PENDULUM, START, integrator=integrator, rtol=rtol, atol=rtol, **OPTIONS
        )
        assert_trusted(motion, energy=30 * rtol)
        errors.append(np.max(np.abs(motion.q[-1] - end)))
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_states_between_steps_are_as_good_as_those_at_their_ends():
    coarse, fine = exact(rtol=1e-9, atol=1e-9), exact(dt=0.0125)
    assert_trusted(coarse, energy=1e-7)
    np.testing.assert_allclose(coarse.t, np.arange(61) * 0.05)
    np.testing.assert_allclose(coarse.q, fine.q[::4], atol=2e-6)
    np.testing.assert_allclose(coarse.qd, fine.qd[::4], atol=2e-5)
    np.testing.assert_allclose(coarse.work, 0, atol=0)


@pytest.mark.covers("RBDA 10.1", by=run_adaptive_steps)
def test_with_the_same_number_of_evaluations_steps_that_adapt_lose_less_energy():
    """Where accelerations come in short bursts: a stiff bump in an otherwise calm motion."""

    @kt.kernel
    def bump(model, t, q, qd):
        away = 50 * (q[0] - 0.2)
        return np.array([2 * away / (1 + away * away) ** 2 * 50, 0])

    options = {"forces": bump, "duration": 4.0, "limits": None}
    start = [1.2, 0.0]
    adaptive = kt.simulate(PENDULUM, start, dt=0.1, rtol=1e-6, atol=1e-8, **options)
    attempts = adaptive.report.steps + adaptive.report.rejected
    fixed = kt.simulate(PENDULUM, start, dt=4.0 / attempts, integrator="dopri5", **options)
    assert_trusted(adaptive, energy=1e-4)
    assert fixed.report.energy_error > 10 * adaptive.report.energy_error
    assert adaptive.report.rejected > 0


def test_a_controller_is_called_on_its_grid_and_held_in_between():
    called = []

    def controller(t, q, qd):
        called.append(t)
        return -0.2 * qd

    motion = kt.simulate(PENDULUM, START, controller=controller, rtol=1e-8, **OPTIONS)
    assert_trusted(motion, energy=1e-6)
    np.testing.assert_allclose(sorted(set(called)), motion.t, atol=1e-12)
    held = kt.simulate(PENDULUM, START, controller=controller, duration=0.5, dt=0.05, limits=None)
    np.testing.assert_allclose(held.q, motion.q[:11], atol=1e-3)


def test_a_batch_shares_its_steps():
    q = START + np.linspace(-0.5, 0.5, 5)[:, None]
    batch = kt.simulate(PENDULUM, q, rtol=1e-10, atol=1e-10, **OPTIONS)
    assert_trusted(batch, energy=1e-7)
    alone = kt.simulate(PENDULUM, q[2], rtol=1e-10, atol=1e-10, **OPTIONS)
    np.testing.assert_allclose(batch.q[-1, 2], alone.q[-1], atol=1e-6)
    assert batch.report.steps >= alone.report.steps


def test_the_longest_step_is_kept():
    motion = kt.simulate(PENDULUM, [0.01, 0.0], rtol=1e-3, max_step=0.02, **OPTIONS)
    assert_trusted(motion, energy=1e-3)
    assert motion.report.largest_step <= 0.02 * (1 + 1e-9)


def test_a_force_that_has_no_end_makes_steps_too_small_and_is_named():
    """``1/(1 - t)``, whose impulse until t = 1 is infinite."""

    @kt.kernel
    def pole(model, t, q, qd):
        return np.array([0, 1]) / (1 - t)

    with pytest.raises(kt.SimulationError, match=r"too small at t = (1|0\.99)\d* s") as caught:
        kt.simulate(PENDULUM, START, forces=pole, rtol=1e-6, **OPTIONS)
    assert "make it an event, or smooth the force" in str(caught.value)
