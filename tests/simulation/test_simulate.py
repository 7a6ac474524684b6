"""``kinetree.simulate``: what comes out, what may go in, and what is refused."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.motions import assert_trusted

import kinetree as kt
from kinetree.errors import JointError, LoopError, ShapeError, TraceError, UnknownNameError
from kinetree.integration.integrator import Stepped
from kinetree.simulation import INTEGRATORS, Integrator
from kinetree.simulation.runs import Clock

PENDULUM = kt.samples.double_pendulum()
START = np.array([1.0, 0.5])


def run(**options):
    options = {"duration": 0.1, "dt": 1e-3} | options
    return kt.simulate(PENDULUM, options.pop("q0", START), options.pop("qd0", None), **options)


def test_arrays_have_time_first_and_batch_axes_second():
    motion = run(q0=np.tile(START, (4, 3, 1)), store_every=10)
    assert_trusted(motion, energy=1e-8)
    assert motion.t.shape == (11,)
    assert motion.q.shape == motion.qd.shape == motion.tau.shape == (11, 4, 3, 2)
    assert motion.energy.shape == motion.work.shape == motion.loop_error.shape == (11, 4, 3)


def test_samples_of_a_batch_move_as_they_would_alone(rng):
    q, qd = rng.uniform(-1, 1, (2, 5, 2))
    together = kt.simulate(PENDULUM, q, qd, duration=0.2, dt=1e-3, store_every=20)
    assert_trusted(together, energy=1e-8)
    for k in range(5):
        alone = kt.simulate(PENDULUM, q[k], qd[k], duration=0.2, dt=1e-3, store_every=20)
        assert_close(together.q[:, k], alone.q, ulps=1e4)
        assert_close(together.qd[:, k], alone.qd, ulps=1e4)


def test_what_is_stored_does_not_change_the_motion():
    all_of_it, some = run(), run(store_every=7)
    assert_trusted(some, energy=1e-8)
    assert_close(some.q[:-1], all_of_it.q[::7], ulps=1e3)
    assert_close(some.q[-1], all_of_it.q[-1], ulps=1e3)
    assert_close(some.t, np.append(all_of_it.t[::7], all_of_it.t[-1]))


def test_a_duration_that_is_not_a_multiple_of_the_step_ends_in_a_shorter_one():
    motion = run(duration=0.0105)
    assert_trusted(motion, energy=1e-8)
    assert motion.report.steps == 11
    assert motion.t[-1] == 0.0105
    whole = run(duration=0.0105, dt=0.0105 / 11)
    np.testing.assert_allclose(motion.q[-1], whole.q[-1], atol=1e-12)


def test_no_duration_is_the_state_at_the_start():
    motion = run(duration=0.0)
    assert_trusted(motion, energy=0.0)
    assert motion.q.shape == (1, 2)
    assert_close(motion.q[0], START)


def test_time_starts_at_t0():
    def force(model, t, q, qd):
        return np.sin(t) * np.ones(2)

    late = run(t0=5.0, forces=kt.kernel(force))
    assert_trusted(late, energy=1e-8)
    assert late.t[0] == 5.0
    shifted = run(forces=kt.kernel(lambda model, t, q, qd: np.sin(t + 5.0) * np.ones(2)))
    np.testing.assert_allclose(late.q, shifted.q, atol=1e-12)


# --- controllers and work ------------------------------------------------------------------------


def test_controllers_are_called_at_the_start_of_every_step_and_once_at_the_end():
    called = []

    def controller(t, q, qd):
        called.append(t)
        return -0.3 * qd

    motion = run(controller=controller, duration=0.01)
    assert_trusted(motion, energy=1e-8)
    assert_close(np.array(called), motion.t)
    assert_close(motion.tau, -0.3 * motion.qd)


def test_work_of_the_controller_is_the_change_of_energy():
    motion = run(controller=lambda t, q, qd: np.array([2.0, -1.0]) * np.cos(9 * t), duration=1.0)
    assert_trusted(motion, energy=1e-9)
    change = motion.energy - motion.energy[0]
    assert np.max(np.abs(change)) > 0.1
    np.testing.assert_allclose(motion.work, change, atol=1e-8)


def test_energy_in_springs_is_part_of_the_energy():
    spring = kt.JointDynamics(stiffness=40.0, rest=0.3)
    model = PENDULUM.replace(dynamics={"elbow": spring})
    motion = kt.simulate(model, START, duration=1.0, dt=1e-3)
    assert_trusted(motion, energy=1e-8)
    np.testing.assert_allclose(motion.energy, motion.energy[0], atol=1e-7)
    assert np.ptp(motion.work) > 0.1  # of the springs, which are joint forces


def test_dampers_take_energy_away():
    model = PENDULUM.replace(dynamics={"elbow": kt.JointDynamics(damping=0.5)})
    motion = kt.simulate(model, START, duration=1.0, dt=1e-3)
    assert_trusted(motion, energy=1e-8)
    assert np.all(np.diff(motion.energy) < 1e-9)


# --- hooks, integrators of one's own -------------------------------------------------------------


def test_hooks_may_end_a_simulation_and_shorten_its_last_step():
    def stop(step):
        if step.t1 > 0.0355:
            step = step.cut(0.0355)
            step.stop = True
        return step

    motion = run(hooks=[stop])
    assert_trusted(motion, energy=1e-8)
    assert motion.t[-1] == 0.0355
    exact = run(duration=0.0355)
    np.testing.assert_allclose(motion.q[-1], exact.q[-1], atol=1e-12)


def test_hooks_may_change_the_state_at_the_end_of_a_step():
    """And say what energy that takes."""

    def kick(step):
        if abs(step.t1 - 0.05) < 1e-9:
            before = kt.kinetic_energy(PENDULUM, step.q1, step.qd1)
            step.qd1 = step.qd1 + np.array([0.0, 1.0])
            step.work = step.work + kt.kinetic_energy(PENDULUM, step.q1, step.qd1) - before

    motion = run(hooks=[kick])
    assert_trusted(motion, energy=1e-8)
    np.testing.assert_allclose(motion.qd[50] - motion.qd[49], [0, 1], atol=0.1)


def test_an_integrator_of_ones_own_plugs_in():
    class Backwards(Integrator):
        """Positions first, then velocities."""

        name, order = "backwards", 1

        def step(self, field, model, t, h, q, qd, tau):
            q = model.integrate(q, h * qd)
            qdd, power = field(model, t, q, qd, tau)
            return Stepped(q, qd + h * qdd, h * power)

    motion = run(integrator=Backwards(), dt=1e-4)
    assert_trusted(motion, energy=1e-2)
    np.testing.assert_allclose(motion.q[-1], run().q[-1], atol=1e-3)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_every_integrator_goes_to_the_same_place(name):
    motion = run(integrator=name, dt=2e-4)
    assert_trusted(motion, energy=5e-3)
    np.testing.assert_allclose(motion.q[-1], run().q[-1], atol=1e-3)
    assert motion.report.integrator == name


def test_auto_is_rk4_and_with_tolerances_dopri5():
    assert run().report.integrator == "rk4"
    assert run(rtol=1e-6).report.integrator == "dopri5"


def test_a_stiff_spring_needs_an_implicit_integrator():
    """Of 1e6 N·m/rad and 2 kN·m·s/rad at steps of 10 ms, which RK4 does not survive."""
    stiff = kt.JointDynamics(stiffness=1e6, damping=2e3)
    model = PENDULUM.replace(dynamics={"elbow": stiff})
    options = {"duration": 1.0, "dt": 0.01, "limits": None}
    with (
        pytest.warns(kt.SimulationWarning, match="'elbow' acts within .* 'rk4' is stable in steps"),
        pytest.raises(kt.SimulationError, match=r"double pendulum' (blew up|stopped in the step)"),
    ):
        kt.simulate(model, [1.0, 0.0], integrator="rk4", **options)
    rigid = kt.edit.lock(PENDULUM, {"elbow": 0.0})
    expected = kt.simulate(rigid, [1.0], **options)
    for name, atol in (("rosenbrock", 2e-4), ("auto", 2e-4), ("implicit_midpoint", 2e-3)):
        motion = kt.simulate(model, [1.0, 0.0], integrator=name, **options)
        assert_trusted(motion, energy=2e-3)
        np.testing.assert_allclose(motion.q[:, 0], expected.q[:, 0], atol=atol)


def test_a_model_without_freedom_stays_where_it_is():
    model = kt.ModelBuilder("rock").body("rock", joint=kt.Fixed(), inertia=_ball()).build()
    motion = kt.simulate(model, np.zeros(0), duration=0.1, dt=0.01)
    assert_trusted(motion, energy=0.0)
    assert motion.q.shape == (11, 0)


def test_nothing_at_all_moves_too():
    motion = kt.simulate(kt.ModelBuilder("empty").build(), np.zeros(0), duration=0.1, dt=0.01)
    assert_trusted(motion, energy=0.0)
    assert motion.q.shape == (11, 0)
    assert not motion.energy.any()


def _ball():
    return kt.shapes.sphere(0.1, mass=1.0)


def test_progress_gets_the_time():
    times = []
    run(progress=times.append, store_every=10)
    assert times[0] == 0.0
    assert times[-1] == 0.1
    assert len(times) >= 10


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"integrator": "rk_4"}, UnknownNameError, "no integrator 'rk_4'; did you mean 'rk4'"),
        ({"integrator": "rk4", "rtol": 1e-6}, UnknownNameError, "does not estimate the error"),
        ({"dt": 0.0}, ShapeError, "dt must be a positive time in seconds, got 0.0"),
        ({"duration": np.inf}, ShapeError, "duration must be a positive time"),
        ({"store_every": 0}, ShapeError, "store_every must be at least 1"),
        ({"rtol": -1.0}, ShapeError, "rtol and atol must not be negative"),
        ({"q0": np.zeros(3)}, ShapeError, "q0 must have shape"),
        ({"qd0": np.zeros(3)}, ShapeError, "qd0 must have shape"),
        ({"q0": np.zeros((3, 2)), "qd0": np.zeros((4, 2))}, ShapeError, "do not broadcast"),
        ({"controller": 3.0}, TypeError, "controller must be a function"),
        ({"controller": lambda t, q, qd: np.zeros(3)}, ShapeError, "nv = 2, got"),
        ({"forces": [3.0]}, TypeError, "force"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_named(options, error, message):
    with pytest.raises(error, match=message):
        run(**options)


def test_a_controller_that_returns_nonsense_is_named_with_the_time():
    with pytest.raises((ShapeError, kt.SimulationError), match=r"nan.*t = 0.05|t = 0.05.*nan"):
        run(controller=lambda t, q, qd: np.full(2, np.nan) if t >= 0.0499 else np.zeros(2))


def test_implicit_integrators_need_forces_that_can_be_differentiated():
    with pytest.raises(TraceError, match=r"'rosenbrock' .* needs derivatives.*@kinetree.kernel"):
        run(integrator="rosenbrock", forces=lambda model, t, q, qd: -qd)


def test_implicit_integrators_are_for_trees():
    model = kt.samples.four_bar()
    with pytest.raises(LoopError, match=r"'variational' .* the loops of model 'four-bar'"):
        kt.simulate(model, model.posture("home").q, duration=0.1, integrator="variational")


def test_prescribed_joints_are_rejected_by_name():
    swing = kt.Prescribed(kt.Revolute("y"), lambda t: ([np.sin(t)], [np.cos(t)], [-np.sin(t)]))
    model = kt.ModelBuilder("swing").body("seat", joint=swing, inertia=_ball()).build()
    with pytest.raises(JointError, match=r"joint 'seat_joint' .* is a fixed function of time"):
        kt.simulate(model, np.zeros(0), duration=0.1)


def test_an_error_says_when_and_where_a_motion_diverged():
    @kt.kernel
    def runaway(model, t, q, qd):
        return np.array([0, 1]) * (1 + qd * qd) * 1e3

    with pytest.raises(kt.SimulationError, match=r"at t = 0\.\d+ s|from t = 0\.\d+ s") as caught:
        run(forces=runaway, duration=1.0, limits=None)
    assert "'elbow'" in str(caught.value) or "'shoulder'" in str(caught.value)


def test_a_clock_with_many_steps_has_no_longer_one():
    """Of a million steps the last is shorter as well; rounding errors are no step."""
    clock = Clock(0.0, 1000.0004, 1e-3)
    assert clock.count == 1_000_001
    assert clock.time(clock.count) == 1000.0004
    assert clock.time(clock.count) - clock.time(clock.count - 1) < 1e-3
    assert Clock(0.0, 0.7, 0.1).count == 7
    assert Clock(1e6, 1e6 + 5.0, 1e-3).count == 5000


def test_a_mechanism_without_freedoms_simulates_by_every_integrator():
    inertia = kt.Inertia.from_mass_center(1.0, np.zeros(3), np.eye(3))
    still = kt.ModelBuilder("still").body("a", joint=kt.Fixed(), inertia=inertia).build()
    for integrator in ("rk4", "rosenbrock"):
        motion = kt.simulate(still, still.neutral(), duration=0.01, integrator=integrator)
        assert motion.q.shape == (11, 0)
        assert motion.q.dtype == float
