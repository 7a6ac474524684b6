"""Rollouts: the steps of the integrator, whatever the batch, the threads and what is stored."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.arguments import with_guard
from kinetree.functional.parameters import with_parameters
from kinetree.integration.field import Field
from kinetree.integration.registry import INTEGRATORS
from kinetree.loops.kinematics.projection import project_configuration
from kinetree.simulation.rollouts.rollout import rollout
from kinetree.spelling import explains, takes_former

DT = 2e-3
PENDULUM = kt.samples.double_pendulum()
SATELLITE = kt.samples.satellite()
ARM = kt.samples.arm()


@kt.kernel
def pulled_to(model, q, qd, goal, gain: ()):
    return gain * (goal - q) - 0.3 * qd


@kt.kernel
def swung(model, t, q, qd, phase: ()):
    return -0.2 * qd + 0.1 * np.sin(3 * t + phase)


@kt.kernel
def drag(model, t, q, qd):
    return -0.1 * qd


def starts(model, rng, *batch):
    q = np.array([model.random_configuration(rng) for _ in range(int(np.prod(batch)))])
    return q.reshape(*batch, model.nq), rng.standard_normal((*batch, model.nv))


def taken(model, q, qd, taus, integrator, forces=()):
    """The states of one sample, step by step, by the text of the integrator."""
    method, field, states = INTEGRATORS[integrator], Field(tuple(forces)), [(q, qd, 0.0)]
    for k, tau in enumerate(taus):
        q, qd, work = states[-1]
        after = method.step(field, model, k * DT, DT, q, qd, tau)
        states.append((after.q, after.qd, work + after.work))
    return [np.array(x) for x in zip(*states, strict=True)]


def assert_same_motion(motion, expected, ulps=1e4):
    q, qd, work = expected
    assert_close(motion.q, q, ulps=ulps)
    assert_close(motion.qd, qd, ulps=ulps)
    assert_close(motion.work, work, ulps=ulps, scale=1 + np.max(np.abs(work)))


def assert_energy_is_work(motion, tolerance=1e-8):
    gained = motion.energy - motion.energy[0]
    assert_close(gained, motion.work, ulps=tolerance / np.finfo(float).eps, scale=1.0)


# --- the motion ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [PENDULUM, SATELLITE], ids=lambda m: m.name)
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rk4"])
def test_states_are_those_of_the_integrator(model, integrator, rng):
    q, qd = starts(model, rng, 3)
    tau = 0.3 * rng.standard_normal((20, 3, model.nv))
    motion = rollout(model, q, qd, tau, steps=20, dt=DT, integrator=integrator)
    assert motion.q.shape == (21, 3, model.nq)
    assert_close(motion.t, DT * np.arange(21))
    for k in range(3):
        expected = taken(model, q[k], qd[k], tau[:, k], integrator)
        assert_same_motion(motion.motion(k), expected)
    assert_close(motion.tau[:-1], tau, ulps=1)
    if integrator == "rk4":
        assert_energy_is_work(motion, 1e-7)


def test_momentum_of_what_floats_free_is_conserved(rng):
    # Without stops, at which the motion is not smooth enough for the order of the integrator.
    model = SATELLITE.replace(limits=dict.fromkeys(SATELLITE.joint_names))
    q, qd = starts(model, rng, 5)
    motion = rollout(model, q, qd, steps=200, dt=DT, store_every=50)
    h = kt.momentum(model, motion.q, motion.qd)
    assert_close(h, np.broadcast_to(h[0], h.shape), ulps=1e-8 / np.finfo(float).eps)
    assert_energy_is_work(motion)
    assert_close(np.linalg.norm(motion.q[..., 3:7], axis=-1), np.ones((5, 5)), ulps=1000)


def test_a_rollout_is_what_simulate_returns(rng):
    q, qd = starts(ARM, rng, 2)
    motion = rollout(ARM, q, 0.1 * qd, steps=50, dt=DT, store_every=10, forces=(drag,))
    expected = kt.simulate(
        ARM, q, 0.1 * qd, duration=50 * DT, dt=DT, integrator="rk4", forces=(drag,), store_every=10
    )
    assert_close(motion.t, expected.t)
    for name in ("q", "qd", "work", "energy"):
        assert_close(getattr(motion, name), getattr(expected, name), ulps=1e5)
    assert_energy_is_work(motion)


def test_stops_and_friction_of_the_model_act_as_in_simulate():
    model = kt.samples.cart_pole()
    start = {"q0": model.neutral(), "qd0": np.array([40.0, 0.0])}
    motion = rollout(model, *start.values(), steps=4000, dt=1e-4, store_every=400)
    expected = kt.simulate(model, **start, duration=0.4, dt=1e-4, store_every=400)
    assert_close(motion.q, expected.q, ulps=1e6)
    unbounded = model.replace(limits=dict.fromkeys(model.joint_names))
    free = rollout(unbounded, *start.values(), steps=4000, dt=1e-4, store_every=4000)
    assert abs(free.q[-1, 0]) > 2 * abs(motion.q[-1, 0])  # the stop has held it
    without = rollout(model, *start.values(), steps=4000, dt=1e-4, store_every=4000, limits=None)
    assert_close(without.q, free.q, ulps=1e4)
    with pytest.raises(kt.UnknownNameError, match="limits: joints reach their stops inside"):
        rollout(model, *start.values(), steps=1, limits="rigid")


def test_what_is_stored_does_not_change_the_motion(rng):
    q, qd = starts(PENDULUM, rng, 4)
    full = rollout(PENDULUM, q, qd, steps=25, dt=DT)
    some = rollout(PENDULUM, q, qd, steps=25, dt=DT, store_every=10)
    assert_close(some.t, full.t[[0, 10, 20, 25]])  # the last is always stored
    assert_close(some.q, full.q[[0, 10, 20, 25]], ulps=100)
    assert_energy_is_work(some)
    tau = rng.standard_normal((25, 4, 2))
    full = rollout(PENDULUM, q, qd, tau, steps=25, dt=DT)
    some = rollout(PENDULUM, q, qd, tau, steps=25, dt=DT, store_every=10)
    assert np.array_equal(some.q, full.q[[0, 10, 20, 25]])
    assert np.array_equal(some.tau[:3], tau[[0, 10, 20]])


def test_forces_that_are_held_may_be_given_once(rng):
    q, qd = starts(PENDULUM, rng, 3)
    tau = rng.standard_normal(2)
    expected = rollout(PENDULUM, q, qd, np.tile(tau, (10, 3, 1)), steps=10, dt=DT)
    for held in (tau, tau[np.newaxis], np.tile(tau, (1, 3, 1))):
        motion = rollout(PENDULUM, q, qd, held, steps=10, dt=DT)
        assert_close(motion.q, expected.q, ulps=100)
        assert_energy_is_work(motion, 1e-7)


@pytest.mark.parametrize("integrator", ["implicit_midpoint", "dopri5"])
def test_other_integrators_roll_out_too(integrator, rng):
    q, qd = starts(PENDULUM, rng, 2)
    motion = rollout(PENDULUM, q, qd, steps=10, dt=DT, integrator=integrator)
    expected = taken(PENDULUM, q[1], qd[1], np.zeros((10, 2)), integrator)
    assert_same_motion(motion.motion(1), expected, ulps=1e5)
    assert_energy_is_work(motion, 1e-4)


# --- batches -------------------------------------------------------------------------------------


def test_results_do_not_depend_on_threads_nor_on_the_batch(rng):
    q, qd = starts(SATELLITE, rng, 701)
    before, found = kt.threads(), []
    try:
        for count in (1, 2, 3):
            kt.set_threads(count)
            motion = rollout(SATELLITE, q, qd, steps=30, dt=DT, store_every=15)
            found.append((motion.q, motion.qd))
    finally:
        kt.set_threads(before)
    for q_n, qd_n in found[1:]:
        assert np.array_equal(q_n, found[0][0])
        assert np.array_equal(qd_n, found[0][1])
    few = rollout(SATELLITE, q[330:335], qd[330:335], steps=30, dt=DT, store_every=15)
    assert np.array_equal(few.q, found[0][0][:, 330:335])
    one = rollout(SATELLITE, q[332], qd[332], steps=30, dt=DT, store_every=15)
    assert_close(one.q, few.q[:, 2], ulps=1000)
    assert_energy_is_work(few)


def test_batch_axes_broadcast(rng):
    q, qd = starts(PENDULUM, rng, 3, 1)
    tau = rng.standard_normal((5, 1, 4, 2))
    motion = rollout(PENDULUM, q, qd, tau, steps=5, dt=DT)
    assert motion.batch == (3, 4)
    assert motion.q.shape == motion.tau.shape == (6, 3, 4, 2)
    assert motion.energy.shape == (6, 3, 4)
    alone = rollout(PENDULUM, q[2, 0], qd[2, 0], tau[:, 0, 1], steps=5, dt=DT)
    assert_close(motion.q[:, 2, 1], alone.q, ulps=100)
    assert_close(motion.motion((2, 1)).qd, alone.qd, ulps=100)
    assert_energy_is_work(motion, 1e-6)


def test_parameters_are_those_of_each_sample(rng):
    q, qd = starts(PENDULUM, rng, 3)
    mass = np.array([0.5, 1.0, 4.0])
    values = {"mass:lower": mass, "gravity": np.array([0.0, 0.0, -1.6]), "damping:elbow": [[0.2]]}
    motion = rollout(PENDULUM, q, qd, steps=20, dt=DT, parameters=values)
    for k in range(3):
        own = with_parameters(
            PENDULUM,
            {"mass:lower": mass[k], "gravity": values["gravity"], "damping:elbow": np.array([0.2])},
        )
        alone = rollout(own, q[k], qd[k], steps=20, dt=DT)
        assert_close(motion.q[:, k], alone.q, ulps=1000)
        trajectory = motion.motion(k)
        assert trajectory.model.inertia[2].mass == mass[k]
        assert_close(trajectory.energy, alone.energy, ulps=1000)
    assert_energy_is_work(motion)


def test_memory_of_an_earlier_rollout_is_used_again(rng):
    q, qd = starts(PENDULUM, rng, 6)
    first = rollout(PENDULUM, q, qd, steps=12, dt=DT, store_every=4)
    kept = first.q.copy()
    again = rollout(PENDULUM, q + 1, qd, steps=12, dt=DT, store_every=4, out=first)
    assert np.shares_memory(again.q, first.q)
    again = rollout(PENDULUM, q, qd, steps=12, dt=DT, store_every=4, out=again)
    assert np.array_equal(again.q, kept)
    with pytest.raises(kt.ShapeError, match=r"out has 4 states of a batch of shape \(6,\)"):
        rollout(PENDULUM, q, qd, steps=12, dt=DT, out=first)
    with pytest.raises(kt.ShapeError, match="starts from or reads; copy that"):
        rollout(PENDULUM, first.q[-1], qd, steps=12, dt=DT, store_every=4, out=first)
    with pytest.raises(TypeError, match="what an earlier rollout returned"):
        rollout(PENDULUM, q, qd, steps=12, dt=DT, out=kept)


def test_single_precision_stays_single(rng):
    q, qd = (a.astype(np.float32) for a in starts(PENDULUM, rng, 3))
    motion = rollout(PENDULUM, q, qd, steps=20, dt=DT)
    assert {a.dtype for a in (motion.q, motion.qd, motion.work, motion.energy)} == {np.dtype("f4")}
    exact = rollout(PENDULUM, q.astype(float), qd.astype(float), steps=20, dt=DT)
    assert np.max(np.abs(motion.q - exact.q)) < 1e-4


def test_nothing_to_do_is_no_special_case(rng):
    q, qd = starts(PENDULUM, rng, 2)
    still = rollout(PENDULUM, q, qd, steps=0, dt=DT)
    assert np.array_equal(still.q, q[np.newaxis])
    none = rollout(PENDULUM, q[:0], qd[:0], steps=3, dt=DT)
    assert none.q.shape == (4, 0, 2)
    at_rest = rollout(PENDULUM, PENDULUM.neutral(), steps=3, dt=DT)
    assert np.array_equal(at_rest.qd[0], np.zeros(2))
    frozen = kt.ModelBuilder("rock").build()
    assert rollout(frozen, frozen.neutral(), steps=3, dt=DT).q.shape == (4, 0)


# --- controllers ---------------------------------------------------------------------------------


def test_a_policy_acts_like_the_controller_of_simulate(rng):
    q, qd = starts(ARM, rng, 2)
    phase = np.array([0.0, 1.0])
    motion = rollout(
        ARM,
        q,
        0.1 * qd,
        steps=30,
        dt=DT,
        controller=swung,
        arguments={"phase": phase},
        store_every=10,
    )

    def controller(t, q, qd):
        return -0.2 * qd + 0.1 * np.sin(3 * t + phase[:, np.newaxis])

    expected = kt.simulate(
        ARM, q, 0.1 * qd, duration=30 * DT, dt=DT, integrator="rk4", controller=controller,
        store_every=10,
    )  # fmt: skip
    for name in ("q", "qd", "tau", "work"):
        assert_close(getattr(motion, name), getattr(expected, name), ulps=1e5)
    assert_energy_is_work(motion, 1e-6)


def test_a_policy_gets_inputs_of_every_step_and_adds_to_tau(rng):
    q, qd = starts(PENDULUM, rng, 3)
    goal, tau = rng.standard_normal((2, 15, 3, 2))
    gain = np.array([1.0, 2.0, 3.0])
    motion = rollout(
        PENDULUM, q, qd, tau, steps=15, dt=DT, integrator="semi_implicit_euler",
        controller=pulled_to, inputs={"goal": goal}, arguments={"gain": gain},
    )  # fmt: skip
    expected = tau + gain[:, np.newaxis] * (goal - motion.q[:-1]) - 0.3 * motion.qd[:-1]
    assert_close(motion.tau[:-1], expected)
    replayed = rollout(PENDULUM, q, qd, expected, steps=15, dt=DT, integrator="semi_implicit_euler")
    assert_close(replayed.q, motion.q, ulps=1000)
    assert_energy_is_work(replayed, 0.1)
    once = rollout(
        PENDULUM, q, qd, steps=15, dt=DT, controller=pulled_to,
        inputs={"goal": goal[:1]}, arguments={"gain": 1.0},
    )  # fmt: skip
    assert_close(once.tau[3], goal[0] - once.q[3] - 0.3 * once.qd[3])


# --- what goes wrong -----------------------------------------------------------------------------


def fails(error, match, *args, model=PENDULUM, **options):
    options = {"steps": 5, "dt": DT, **options}
    with pytest.raises(error, match=match):
        rollout(model, *(args or ([0.1, 0.2],)), **options)


def test_errors_name_the_argument():
    fails(kt.ShapeError, "tau has time first: 5 values", [0.0, 0.0], None, np.zeros((4, 2)))
    fails(kt.ShapeError, r"tau\[np.newaxis\]", np.zeros((3, 2)), None, np.zeros((3, 2)))
    fails(kt.ShapeError, "steps must be an integer", steps=2.5)
    fails(kt.ShapeError, "store_every must be at least 1", store_every=0)
    fails(kt.ShapeError, "dt must be a positive time in seconds", dt=0.0)
    fails(kt.ShapeError, "batch axes of a rollout do not broadcast.*qd0 \\(3,\\)",
          np.zeros((2, 2)), np.zeros((3, 2)))  # fmt: skip
    fails(kt.ShapeError, "real numbers, got an array of complex", np.zeros(2) + 1j)
    fails(kt.ShapeError, "parameter 'mass:lower'", parameters={"mass:lower": -1.0})
    fails(kt.UnknownNameError, "there is no integrator 'rk5'", integrator="rk5")


def test_errors_name_the_kernel_and_the_array():
    fails(TypeError, "controller becomes part of a compiled loop", controller=lambda m, q: -q)
    fails(kt.errors.TraceError, "decorate it with @kinetree", forces=[lambda m, t, q, qd: -qd])
    fails(kt.UnknownNameError, "swung takes 'phase'", controller=swung)
    fails(kt.UnknownNameError, "hold 'phas'.*did you mean 'phase'", controller=swung,
          arguments={"phas": 1.0})  # fmt: skip
    fails(kt.UnknownNameError, "cannot hold 'q'", controller=swung, arguments={"q": 1.0})

    @kt.kernel
    def short(model, q):
        return q[:1]

    fails(
        kt.ShapeError,
        r"controller 'short' must return joint forces of shape \(nv,\)",
        controller=short,
    )


def test_motions_of_mechanisms_with_loops_are_those_of_simulate():
    model = kt.samples.four_bar()
    alone = kt.simulate(model, np.array(model.posture("home").q), duration=0.3, dt=2e-3)
    starts = alone.q[::50], alone.qd[::50]
    motion = kt.rollout(model, *starts, steps=50, dt=2e-3)
    np.testing.assert_allclose(motion.q[-1, :3], alone.q[50::50], rtol=0, atol=1e-13)
    np.testing.assert_allclose(motion.work, 0, atol=1e-15)
    np.testing.assert_allclose(motion.energy, alone.energy[0], rtol=0, atol=1e-9)


def test_gradients_go_through_loops():
    model = kt.samples.four_bar()
    q, tau, away = np.array(model.posture("home").q), np.zeros((4, 3)), np.zeros((4, 3))
    away[1, 0] = 1e-4

    @kt.kernel
    def cost(model, q):
        return q[0] * q[0] + q[2]

    found = kt.rollout_gradient(model, q, tau=tau, steps=4, dt=0.01, terminal=cost)
    ends = [kt.rollout(model, q, tau=tau + d, steps=4, dt=0.01).q[-1] for d in (away, -away)]
    difference = (cost(model, ends[0]) - cost(model, ends[1])) / 2e-4
    np.testing.assert_allclose(found.tau[1, 0], difference, rtol=1e-7)


def test_motions_that_come_close_to_a_singular_configuration_are_warned_of():
    model = kt.samples.five_bar()
    home = np.array(model.posture("home").q)
    lopsided = project_configuration(model, home + np.array([1e-3, 0.0, 0.0, 0.0]))
    near = kt.simulate(model, lopsided, duration=0.64)
    with pytest.warns(kt.SimulationWarning, match="1 of 2 motions of 'five-bar' came so close"):
        kt.rollout(
            model, [near.q[-1], home], [near.qd[-1], 0 * near.qd[-1]], steps=15,
        )  # fmt: skip


def test_starts_with_open_loops_are_rejected():
    model = kt.samples.four_bar()
    fails(kt.LoopError, "q0.*does not close loop 'pin'", model.neutral() + 0.1, model=model)


def test_what_diverges_is_named_with_its_time_and_sample():
    @kt.kernel
    def explosive(model, t, q, qd):
        return qd * qd * qd

    qd = np.array([[0.1, 0.1], [50.0, 50.0], [0.1, 0.1]])
    fails(kt.SimulationError, r"stopped in the step from t = 0\.00\d s: sample \(1,\)",
          np.zeros((3, 2)), qd, steps=200, forces=[explosive], store_every=200)  # fmt: skip
    fails(kt.SimulationError, r"sample \(1, 0\)", np.zeros((3, 1, 2)), qd[:, np.newaxis],
          steps=200, forces=[explosive])  # fmt: skip
    fails(kt.SimulationError, r"t = 0\.00\d s: forward_dynamics: (?!sample)", np.zeros(2), qd[1],
          steps=200, forces=[explosive])  # fmt: skip


def test_a_quaternion_that_is_not_of_unit_length_is_named():
    q = np.tile(SATELLITE.neutral(), (3, 1))
    q[1, 3] = 1.2
    fails(kt.SimulationError, "bus_floating", q, model=SATELLITE)


def test_policy_is_the_former_name_of_a_controller():
    @kt.kernel
    def damped(m, qd):
        return -qd

    start = (PENDULUM, [0.3, 0.2], [0.1, 0.0])
    new = rollout(*start, steps=3, controller=damped)
    with pytest.warns(DeprecationWarning, match="use controller="):
        old = rollout(*start, steps=3, policy=damped)
    assert np.array_equal(new.q, old.q)
    with pytest.warns(DeprecationWarning, match="use controller="):
        with_guard(takes_former(policy="controller")(explains(_of_controller)))(policy=damped)


@explains
def _of_controller(*, controller):
    assert controller is not None
