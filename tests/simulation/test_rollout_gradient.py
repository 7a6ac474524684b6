"""Derivatives of rollouts against complex steps: one more run of the reference algorithms each."""

import numpy as np
import pytest
from support.closeness import EPS, assert_close

import kinetree as kt
from kinetree.functional.parameters import with_parameters
from kinetree.integration.field import Field
from kinetree.integration.registry import INTEGRATORS
from kinetree.simulation.rollouts.gradient import final_state_derivatives, rollout_gradient
from kinetree.simulation.rollouts.rollout import rollout

PENDULUM = kt.samples.double_pendulum()
SATELLITE = kt.samples.satellite()
STEP = 1e-30


@kt.kernel
def effort(model, t, qd, tau, weight: ()):
    return weight * (tau @ tau) + (1 + t) * (qd @ qd)


@kt.kernel
def distance(model, q, qd, target: (3,)):
    p = kt.center_of_mass(model, q) - target
    return p @ p + kt.kinetic_energy(model, q, qd)


@kt.kernel
def damped(model, t, q, qd, gain):
    return -gain * qd + 0.1 * np.sin(t)


WEIGHT, TARGET = 0.3, np.array([0.2, -0.1, 0.4])


@kt.kernel
def network(model, q, qd, first: (3, 4), bias: (3,), second: (2, 3)):
    """A neural network of one hidden layer."""
    return second @ np.tanh(first @ np.concatenate([q, qd]) + bias)


def cost_of_motion(model, q, qd, taus, integrator, dt, gain=None):
    """Value by the texts of integrator and algorithms, on numbers of any kind."""
    method, field, value = INTEGRATORS[integrator], Field(), 0
    for k, tau in enumerate(taus):
        t = k * dt
        tau = tau if gain is None else tau + damped.function(model, t, q, qd, gain)
        value = value + effort.function(model, t, qd, tau, WEIGHT)
        q, qd = method.step(field, model, t, dt, q, qd, tau)[:2]
    return value + distance.function(model, q, qd, TARGET)


def gradient(model, q, qd, tau, integrator, dt, **more):
    arguments = {"weight": WEIGHT, "target": TARGET, **more.pop("arguments", {})}
    return rollout_gradient(
        model, q, qd, tau, steps=len(tau), dt=dt, integrator=integrator,
        running=effort, terminal=distance, arguments=arguments, **more,
    )  # fmt: skip


def moved(model, q, direction):
    """``q`` moved by an imaginary step along a tangent direction."""
    return model.integrate(q, 1j * STEP * direction)


def start(model, rng):
    return model.random_configuration(rng), 0.5 * rng.standard_normal(model.nv)


@pytest.mark.parametrize(
    ("model", "integrator", "steps"),
    [(PENDULUM, "rk4", 50), (SATELLITE, "semi_implicit_euler", 50), (SATELLITE, "rk4", 25)],
    ids=lambda x: getattr(x, "name", x),
)
def test_gradient_of_many_steps_agrees_with_complex_steps(model, integrator, steps, rng):
    q, qd = start(model, rng)
    tau, dt = 0.2 * rng.standard_normal((steps, model.nv)), 5e-3
    found = gradient(model, q, qd, tau, integrator, dt)

    values = []

    def derivative(q, qd, tau):
        values.append(cost_of_motion(model, q, qd, tau, integrator, dt))
        return values[-1].imag / STEP

    along_tau = rng.standard_normal(tau.shape)
    along_q, along_qd = rng.standard_normal((2, model.nv))
    checks = [
        (np.sum(found.tau * along_tau), derivative(q, qd, tau + 1j * STEP * along_tau)),
        (found.q0 @ along_q, derivative(moved(model, q, along_q), qd, tau)),
        (found.qd0 @ along_qd, derivative(q, qd + 1j * STEP * along_qd, tau)),
    ]
    one = np.zeros(tau.shape)
    one[3, -1] = 1  # a single input: nothing averages out
    checks.append((found.tau[3, -1], derivative(q, qd, tau + 1j * STEP * one)))
    for actual, expected in checks:
        assert_close(actual, expected, ulps=1e-9 / EPS)
    for value in values:
        assert_close(found.value, value.real, ulps=1e5)


def test_parameters_and_gains_of_a_policy_have_slopes(rng):
    q, qd = start(PENDULUM, rng)
    tau, gain = 0.2 * rng.standard_normal((40, 2)), np.array([0.1, 0.3])
    values = {"mass:lower": 0.7, "gravity": np.array([0.1, 0.2, -3.0])}
    found = gradient(
        PENDULUM, q, qd, tau, "rk4", 5e-3, controller=damped, parameters=values,
        arguments={"gain": gain},
    )  # fmt: skip

    def derivative(gain=gain, mass=0.7):
        changed = {"mass:lower": np.asarray(mass), "gravity": values["gravity"]}
        model = with_parameters(PENDULUM, changed)
        return cost_of_motion(model, q + 0j, qd, tau, "rk4", 5e-3, gain).imag / STEP

    along = rng.standard_normal(2)
    expected = derivative(gain=gain + 1j * STEP * along)
    assert_close(found.arguments["gain"] @ along, expected, ulps=1e-9 / EPS)
    assert_close(found.parameters["mass:lower"], derivative(mass=0.7 + 1j * STEP), ulps=1e-9 / EPS)
    assert found.parameters["gravity"].shape == (3,)
    assert found.arguments["target"].shape == (3,)
    assert found.arguments["weight"].shape == ()


def test_inputs_by_name_and_forces_that_are_held_have_slopes_in_their_own_shape(rng):
    @kt.kernel
    def tracking(model, q, goal):
        return (q - goal) @ (q - goal)

    q, qd = start(PENDULUM, rng)
    goal = rng.standard_normal((30, 2))
    options = {"steps": 30, "dt": 5e-3, "running": tracking, "inputs": {"goal": goal}}
    found = rollout_gradient(PENDULUM, q, qd, np.zeros(2), **options)
    motion = rollout(PENDULUM, q, qd, steps=30, dt=5e-3)
    assert_close(found.value, np.sum((motion.q[:-1] - goal) ** 2), ulps=1000)
    assert_close(found.inputs["goal"], 2 * (goal - motion.q[:-1]), ulps=1000)
    each = rollout_gradient(PENDULUM, q, qd, np.zeros((30, 2)), **options)
    assert_close(found.tau, each.tau.sum(axis=0), ulps=1000)
    once = rollout_gradient(PENDULUM, q, qd, np.zeros((1, 2)), **options)
    assert_close(once.tau, found.tau[np.newaxis], ulps=10)
    assert rollout_gradient(PENDULUM, q, qd, **options).tau is None


def test_gradients_do_not_depend_on_threads_nor_on_the_batch(rng):
    states = [start(SATELLITE, rng) for _ in range(150)]
    q, qd = (np.array(x) for x in zip(*states, strict=True))
    tau = 0.1 * rng.standard_normal((20, 150, 7))
    before, found = kt.threads(), []
    try:
        for count in (1, 3):
            kt.set_threads(count)
            found.append(gradient(SATELLITE, q, qd, tau, "semi_implicit_euler", 5e-3))
    finally:
        kt.set_threads(before)
    for name in ("value", "q0", "qd0", "tau"):
        assert np.array_equal(getattr(found[0], name), getattr(found[1], name))
    few = gradient(SATELLITE, q[70:73], qd[70:73], tau[:, 70:73], "semi_implicit_euler", 5e-3)
    assert np.array_equal(few.tau, found[0].tau[:, 70:73])
    assert np.array_equal(few.q0, found[0].q0[70:73])
    assert few.arguments["target"].shape == (3, 3)  # of each sample, though they share it


@pytest.mark.parametrize("model", [PENDULUM, SATELLITE], ids=lambda m: m.name)
def test_final_state_moves_as_its_derivatives_say(model, rng):
    states = [start(model, rng) for _ in range(2)]
    q, qd = (np.array(x) for x in zip(*states, strict=True))
    tau, n = 0.2 * rng.standard_normal((20, 2, model.nv)), model.nv
    body = model.body_names[-1]
    options = {"steps": 20, "dt": 5e-3, "integrator": "semi_implicit_euler"}
    mass = {f"mass:{body}": model.inertia[-1].mass}
    found = final_state_derivatives(model, q, qd, tau, **options, parameters=mass)
    motion = rollout(model, q, qd, tau, **options)
    assert_close(found.q, motion.q[-1], ulps=1000)
    assert found.state.shape == (2, 2 * n, 2 * n)
    assert found.tau.shape == (20, 2, 2 * n, n)
    assert found.parameters[f"mass:{body}"].shape == (2, 2 * n)

    def end(q, qd, tau):
        """The final state of the second sample, as a change of the one that was found."""
        method, field = INTEGRATORS["semi_implicit_euler"], Field()
        for k, forces in enumerate(tau):
            q, qd = method.step(field, model, k * 5e-3, 5e-3, q, qd, forces)[:2]
        dq = model.difference(found.q[1], q)
        return np.concatenate([dq, qd]).imag / STEP

    d_q, d_qd, d_tau = (rng.standard_normal(s) for s in (n, n, (20, n)))
    cases = [
        (found.state[1, :, :n] @ d_q, (moved(model, q[1], d_q), qd[1], tau[:, 1])),
        (found.state[1, :, n:] @ d_qd, (q[1], qd[1] + 1j * STEP * d_qd, tau[:, 1])),
        (
            np.einsum("kij,kj->i", found.tau[:, 1], d_tau),
            (q[1], qd[1], tau[:, 1] + 1j * STEP * d_tau),
        ),
    ]
    for actual, arguments in cases:
        assert_close(actual, end(*arguments), ulps=1e-9 / EPS)


def test_errors_say_what_a_cost_may_be():
    q, options = np.zeros(2), {"steps": 3, "dt": 1e-2}

    @kt.kernel
    def vector(model, q):
        return q

    @kt.kernel
    def late(model, tau):
        return tau @ tau

    with pytest.raises(TypeError, match="needs a cost"):
        rollout_gradient(PENDULUM, q, **options)
    with pytest.raises(TypeError, match="running cost becomes part of a compiled loop"):
        rollout_gradient(PENDULUM, q, running=lambda m, q: q @ q, **options)
    with pytest.raises(kt.ShapeError, match="cost 'vector' must return one number"):
        rollout_gradient(PENDULUM, q, running=vector, **options)
    with pytest.raises(kt.UnknownNameError, match="'late' takes 'tau', which belongs to a step"):
        rollout_gradient(PENDULUM, q, terminal=late, **options)
    rock = kt.ModelBuilder("rock").build()
    with pytest.raises(kt.ShapeError, match="no joint of model 'rock' moves"):
        final_state_derivatives(rock, rock.neutral(), **options)


def test_a_cost_may_be_constant():
    @kt.kernel
    def nothing(model, q):
        return 0.0

    found = rollout_gradient(PENDULUM, np.ones(2), terminal=nothing, steps=3)
    assert found.value == 0
    assert np.array_equal(found.q0, np.zeros(2))


def test_what_blows_up_has_the_number_that_the_caller_knows(rng):
    @kt.kernel
    def nothing(model, q):
        return q @ q

    q, qd = np.zeros((2, 900, 2)), np.zeros((2, 900, 2))
    qd[1, 850] = 1e80
    with pytest.raises(kt.SimulationError, match=r"sample \(1, 850\)"):
        rollout_gradient(PENDULUM, q, qd, steps=3, running=nothing)


def test_gradient_of_the_weights_of_a_network(rng):
    weights = {
        "first": rng.standard_normal((3, 4)), "bias": rng.standard_normal(3),
        "second": rng.standard_normal((2, 3)),
    }  # fmt: skip
    q, qd = start(PENDULUM, rng)

    def found(weights):
        return rollout_gradient(
            PENDULUM, q, qd, steps=40, dt=5e-3, controller=network, terminal=distance,
            arguments={"target": TARGET, **weights},
        )  # fmt: skip

    derivatives, h = found(weights).arguments, 1e-5
    for name, x in weights.items():
        along = rng.standard_normal(x.shape)
        ahead, back = (found({**weights, name: x + s * h * along}).value for s in (1, -1))
        assert np.sum(derivatives[name] * along) == pytest.approx(
            (ahead - back) / (2 * h), rel=1e-6
        )
