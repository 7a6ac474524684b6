"""Controllers and inputs: functions, kernels, recordings, rates of their own."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import assert_balanced, block

import kinetree as kt
from kinetree.errors import ShapeError, SimulationError, UnknownNameError


def pd(t, q, qd):
    return -40.0 * q - 8.0 * qd


def test_a_sampled_controller_is_called_at_its_own_rate_and_held():
    called = []

    def controller(t, q, qd):
        called.append(t)
        return pd(t, q, qd)

    m = 2.0
    motion = kt.simulate(
        block(m), [1.0], duration=1.0, dt=1e-3, controller=kt.Sampled(controller, rate=50)
    )
    assert np.allclose(called, np.arange(51) / 50, atol=1e-12)
    # Between samples the force is constant: x, v by the formula of a digital controller.
    x, v, h = 1.0, 0.0, 1 / 50
    for k in range(50):
        assert abs(motion.q[20 * k, 0] - x) < 1e-12
        a = (-40.0 * x - 8.0 * v) / m
        x, v = x + h * v + h * h * a / 2, v + h * a
    assert_balanced(motion, 1e-12)


@pytest.mark.parametrize("options", [{"dt": 7e-3}, {"dt": 7e-3, "rtol": 1e-9}])
def test_the_rate_need_not_fit_the_step(options):
    m = 2.0
    motion = kt.simulate(
        block(m), [1.0], duration=0.7, controller=kt.Sampled(pd, rate=30), **options
    )
    x, v, h = 1.0, 0.0, 1 / 30
    for _ in range(21):
        a = (-40.0 * x - 8.0 * v) / m
        x, v = x + h * v + h * h * a / 2, v + h * a
    assert abs(motion.q[-1, 0] - x) < 1e-11
    assert_balanced(motion, 1e-11)


def test_a_sampled_controller_starts_anew_in_every_simulation():
    controller = kt.Sampled(pd, rate=10)
    one = kt.simulate(block(), [1.0], duration=0.5, dt=0.01, controller=controller)
    two = kt.simulate(block(), [1.0], duration=0.5, dt=0.01, controller=controller)
    batch = kt.simulate(block(), [[1.0], [2.0]], duration=0.5, dt=0.01, controller=controller)
    assert_close(one.q, two.q)
    assert np.allclose(batch.q[:, 0], one.q)
    assert_balanced(one, 1e-12)


def test_kernels_are_controllers():
    @kt.kernel
    def hold(m, t, q, qd):
        return kt.gravity_force(m, q) - 5 * qd

    @kt.kernel
    def without_model(t, q, qd):
        return -5 * qd

    m = kt.samples.double_pendulum()
    q0 = np.array([0.4, -0.3])
    motion = kt.simulate(m, q0, duration=0.2, dt=0.01, controller=hold)
    assert np.max(np.abs(motion.q - q0)) < 1e-12
    assert_balanced(motion, 1e-6)
    batch = kt.simulate(m, [q0, q0], duration=0.1, dt=1e-3, controller=without_model)
    assert batch.tau.shape == (101, 2, 2)
    assert_balanced(batch, 1e-6)


def test_recorded_inputs_are_held_or_interpolated():
    t, u = np.array([0.0, 0.1, 0.3]), np.array([[1.0], [2.0], [-1.0]])
    hold, linear = kt.Recorded(t, u), kt.Recorded(t, u, kind="linear")
    for time, held, line in (
        (-1.0, 1.0, 1.0), (0.05, 1.0, 1.5), (0.1, 2.0, 2.0), (0.2, 2.0, 0.5), (9.0, -1.0, -1.0),
    ):  # fmt: skip
        assert_close(hold(time, None, None), np.array([held]))
        assert_close(linear(time, None, None), np.array([line]))


def test_a_motion_is_repeated_by_its_recorded_forces():
    m = block(2.0)
    first = kt.simulate(m, [1.0], duration=0.5, dt=0.01, controller=pd)
    again = kt.simulate(m, [1.0], duration=0.5, dt=0.01, controller=kt.Recorded(first.t, first.tau))
    assert_close(again.q, first.q)
    assert_balanced(again, 1e-12)


def test_recorded_inputs_change_when_they_say_not_at_the_next_step():
    m = 2.0
    push = kt.Recorded([0.0, 0.25], [[4.0], [0.0]])
    motion = kt.simulate(block(m), [0.0], duration=1.0, dt=0.1, controller=push)
    assert_close(motion.qd[-1], np.array([4.0 / m * 0.25]), ulps=1000)
    assert_balanced(motion, 1e-13)


def test_controllers_are_checked():
    m = kt.samples.double_pendulum()
    for wrong in (np.zeros(1), np.zeros(3)):
        with pytest.raises(ShapeError, match=r"joint forces of shape \(2,\) .* nv = 2, got"):
            kt.simulate(m, [0, 0], duration=0.1, controller=lambda t, q, qd, w=wrong: w)
    with pytest.raises(SimulationError, match="the controller returned nan at t = 0 s"):
        kt.simulate(m, [0, 0], duration=0.1, controller=lambda t, q, qd: np.nan * q)
    with pytest.raises(TypeError, match="controller must be a function"):
        kt.simulate(m, [0, 0], duration=0.1, controller=np.zeros(2))
    with pytest.raises(TypeError, match="Sampled takes a controller"):
        kt.Sampled(3.0, rate=10)
    with pytest.raises(ShapeError, match="rate of a Sampled controller must be positive"):
        kt.Sampled(pd, rate=0)
    with pytest.raises(ShapeError, match=r"times \(T,\) and values"):
        kt.Recorded([0.0, 1.0], [[1.0]])
    with pytest.raises(ShapeError, match="must increase, got 1 and then 1"):
        kt.Recorded([0.0, 1.0, 1.0], [[1.0], [1.0], [1.0]])
    with pytest.raises(ShapeError, match="must be finite"):
        kt.Recorded([0.0], [[np.inf]])
    with pytest.raises(UnknownNameError, match="kind must be 'hold' or 'linear'"):
        kt.Recorded([0.0], [[1.0]], kind="cubic")
