"""Every way to keep constraints converges with the order of its integrator."""

from functools import cache

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import ShapeError, TraceError, UnknownNameError
from kinetree.integration.explicit import ExplicitRungeKutta
from kinetree.integration.registry import INTEGRATORS
from kinetree.loops.kinematics.assembly import assemble
from kinetree.loops.kinematics.projection import project_velocity
from kinetree.loops.stepping.charts import ChartStepper
from kinetree.loops.stepping.options import Charts, GeneralizedAlpha


@cache
def hinges():
    """The four-bar: revolute joints."""
    model = kt.samples.four_bar()
    q = np.array(model.posture("home").q)
    return model, q, np.zeros(3), exact(model, q, np.zeros(3))


@cache
def balls():
    """A spatial crank and rocker: hinges at the base, balls at both ends of the coupler."""
    bar = kt.shapes.box(0.03, 0.02, 0.3, mass=0.5, at=(0, 0, 0.15))
    model = (
        kt.ModelBuilder("RSSR")
        .body("crank", joint=kt.Revolute("y"), inertia=kt.shapes.box(0.02, 0.02, 0.1, mass=0.3))
        .body("coupler", on="crank", joint=kt.Spherical(), at=(0, 0, 0.1), inertia=bar)
        .body("rocker", joint=kt.Revolute("x"), at=(0.25, 0.1, 0), inertia=bar)
        .loop(
            "ball", predecessor="coupler", successor="rocker", joint=kt.Spherical(),
            at=(0, 0, 0.3), successor_at=(0, 0, 0.3),
        )
        .build()
    )  # fmt: skip
    q = assemble(model, model.neutral())
    qd = project_velocity(model, q, np.array([1.5, 0.0, 0.0, 0.0, 0.0]))
    return model, q, qd, exact(model, q, qd)


def exact(model, q, qd):
    return kt.simulate(model, q, qd, duration=0.4, dt=5e-4).q[-1]


def distance(model, q, other):
    return np.linalg.norm(model.difference(q, other))


def orders(start, way, integrator, steps):
    model, q, qd, end = start()
    errors = []
    for dt in steps:
        motion = kt.simulate(
            model, q, qd, duration=0.4, dt=dt, constraints=way, integrator=integrator
        )
        errors.append(distance(model, motion.q[-1], end))
    return np.log2(errors[0] / errors[1]), motion


@pytest.mark.parametrize("start", [hinges, balls])
@pytest.mark.parametrize("integrator", ["heun", "rk4", "dopri5", "rk6", "rosenbrock_w"])
def test_projection_keeps_the_order_of_the_integrator(start, integrator):
    steps = (0.02, 0.01) if INTEGRATORS[integrator].order > 4 else (0.01, 0.005)
    order, motion = orders(start, "projection", integrator, steps)
    assert order > INTEGRATORS[integrator].order - 0.4
    assert motion.report.loop_error < 1e-14


@pytest.mark.covers("Spencer 2.2", "Spencer 2.3", by=ChartStepper)
@pytest.mark.parametrize("start", [hinges, balls])
def test_charts_keep_the_order_of_the_integrator_and_every_step_on_the_constraints(start):
    order, motion = orders(start, "charts", "rk4", (0.01, 0.005))
    assert order > 3.6
    assert motion.report.loop_error < 1e-12
    assert motion.report.loop_rate_error < 1e-12
    assert motion.report.constraints == "charts"


@pytest.mark.parametrize("start", [hinges, balls])
def test_generalized_alpha_is_of_the_second_order(start):
    order, motion = orders(start, "generalized_alpha", "auto", (0.01, 0.005))
    assert order > 1.9
    assert motion.report.loop_error < 1e-14
    assert motion.report.loop_rate_error < 1e-13
    assert motion.report.integrator == "generalized_alpha"


@pytest.mark.parametrize("start", [hinges, balls])
def test_baumgarte_keeps_the_order_of_the_integrator(start):
    order, motion = orders(start, "baumgarte", "rk4", (0.005, 0.0025))
    assert order > 3.6
    assert 1e-13 < motion.report.loop_error < 1e-6


# --- Ascher and Chin, Ascher and Lin -------------------------------------------------------------


@pytest.mark.parametrize("start", [hinges, balls])
@pytest.mark.parametrize("name", ["ascher_chin", "sequential_regularization"])
def test_corrected_and_regularized_steps_keep_the_order(start, name):
    order, motion = orders(start, name, "rk4", (0.005, 0.0025))
    assert order > 3.6
    assert motion.report.loop_error < (1e-12 if name == "ascher_chin" else 1e-6)


def test_drift_of_all_ways_to_keep_constraints_compared():
    model, q, _, _ = hinges()
    run = {"duration": 1.0, "dt": 5e-3, "integrator": "rk4"}
    ways = (
        "none", "baumgarte", "sequential_regularization", kt.AscherChin(rate=50.0),
        kt.AscherChin(repeats=1), "ascher_chin", "projection",
    )  # fmt: skip
    with pytest.warns(kt.SimulationWarning, match="loops open"):  # without any
        motions = [kt.simulate(model, q, constraints=way, **run) for way in ways]
    reports = [motion.report for motion in motions]
    drift = [report.loop_error for report in reports]
    assert drift[0] > 10 * drift[1] > 10 * drift[3]  # 1.7e-6, 1.1e-7, 8.6e-8 m
    assert drift[3] > 1e6 * drift[4]
    np.testing.assert_allclose(drift[2], drift[1], rtol=0.05)
    assert drift[5] < 1e-14
    assert reports[4].loop_rate_error > 1e6 * reports[5].loop_rate_error
    true = kt.simulate(model, q, duration=1.0, dt=5e-4).q[::10]
    error = [np.max(np.abs(motion.q - true)) for motion in motions]
    np.testing.assert_allclose(error[-2], error[-1], rtol=1e-4)  # that of the step, 1.9e-6 rad
    assert error[-3] < 1.2 * error[-1]
    assert max(error[0], error[3]) < 3 * error[-1]
    np.testing.assert_allclose(error[2], error[1], rtol=1e-3)  # that of Baumgarte's terms, 2.7e-5
    assert [report.constraints for report in reports][-2:] == ["ascher_chin", "projection"]


def test_errors_decay_at_the_rate_of_ascher_and_chin():
    model, q, _, _ = hinges()
    rate, apart = 20.0, q + np.array([0.0, 0.0, 1e-6])
    motion = kt.simulate(model, apart, duration=0.2, dt=2e-3, constraints=kt.AscherChin(rate=rate))
    expected = motion.loop_error[0] * np.exp(-rate * motion.t)
    np.testing.assert_allclose(motion.loop_error, expected, atol=0.02 * motion.loop_error[0])


def test_settings_that_make_no_sense_are_named():
    with pytest.raises(ShapeError, match="makes 1 to 99 corrections, got 0"):
        kt.AscherChin(repeats=0)
    with pytest.raises(ShapeError, match=r"must be positive \[1/s\], got -1"):
        kt.AscherChin(rate=-1)
    with pytest.raises(ShapeError, match=r"an epsilon between 0 and 1 .* got epsilon = 2"):
        kt.SequentialRegularization(epsilon=2)


# --- charts ---------------------------------------------------------------------------------------


def test_a_chart_of_the_crank_ends_where_it_stands_still_and_is_replaced():
    """The rocker turns back while the crank goes on: its angle is no coordinate there."""
    model, q, _, _ = hinges()
    way = Charts(make="partition")
    motion = kt.simulate(model, q, duration=1.0, dt=5e-3, constraints=way, integrator="rk4")
    other = kt.simulate(model, q, duration=1.0, dt=5e-3, integrator="rk4")
    np.testing.assert_allclose(motion.q, other.q, atol=1e-4)
    assert motion.report.loop_error < 1e-12


def test_work_on_charts_is_that_of_the_joint_forces():
    model, q, _, _ = hinges()
    run = {"duration": 0.2, "dt": 5e-3, "integrator": "rk4"}

    def push(t, q, qd):
        return np.array([0.5, 0.0, 0.0])

    one, other = (
        kt.simulate(model, q, controller=push, constraints=way, **run)
        for way in ("charts", "projection")
    )
    np.testing.assert_allclose(one.work, other.work, atol=1e-7)
    assert one.report.energy_error < 1e-6


def test_what_charts_cannot_do_is_named():
    model, q, _, _ = hinges()
    with pytest.raises(UnknownNameError, match="charts take steps of a fixed length"):
        kt.simulate(model, q, duration=0.1, constraints="charts", rtol=1e-6)
    with pytest.raises(UnknownNameError, match="no chart called 'flat'"):
        kt.simulate(model, q, duration=0.1, constraints=Charts(make="flat"))


# --- generalized-alpha ----------------------------------------------------------------------------


def test_generalized_alpha_takes_stiff_springs_in_its_stride():
    """A spring of 20 kHz, far beyond the step: explicit steps diverge, these damp it."""
    model, q, _, _ = hinges()
    rest = float(q[0])
    stiff = kt.JointDynamics(stiffness=2e7, damping=0.0, rest=rest + 1e-6)
    model = model.replace(dynamics={"crank_joint": stiff})
    way = GeneralizedAlpha(spectral_radius=0.5)
    with pytest.warns(kt.SimulationWarning, match="loses energy"):  # that of the spring, damped
        motion = kt.simulate(model, q, duration=0.5, dt=5e-3, constraints=way)
    np.testing.assert_allclose(motion.q[-1], q, atol=1e-5)
    assert np.max(np.abs(motion.qd[-1])) < 1e-4
    assert motion.report.loop_error < 1e-14


def test_without_damping_generalized_alpha_keeps_the_energy_of_its_order():
    model, q, _, _ = hinges()
    way = GeneralizedAlpha(spectral_radius=1.0)
    errors = [
        kt.simulate(model, q, duration=0.5, dt=dt, constraints=way).report.energy_error
        for dt in (0.005, 0.0025)
    ]
    assert np.log2(errors[0] / errors[1]) > 1.9


def test_generalized_alpha_stores_some_steps_only():
    model, q, _, _ = hinges()
    run = {"duration": 0.1, "dt": 5e-3, "constraints": "generalized_alpha"}
    every, some = (kt.simulate(model, q, store_every=k, **run) for k in (1, 7))
    np.testing.assert_allclose(some.q[:-1], every.q[:-1:7], atol=1e-14)
    np.testing.assert_allclose(some.q[-1], every.q[-1], atol=1e-14)


def test_what_generalized_alpha_cannot_do_is_named():
    model, q, _, _ = hinges()
    run = {"duration": 0.1, "constraints": "generalized_alpha"}
    with pytest.raises(UnknownNameError, match="takes steps of a fixed length"):
        kt.simulate(model, q, rtol=1e-6, **run)
    with pytest.raises(TraceError, match="needs derivatives of all forces"):
        kt.simulate(model, q, forces=lambda model, t, q, qd: 0 * qd, **run)
    with pytest.raises(ShapeError, match="between 0 and 1, got 2"):
        GeneralizedAlpha(spectral_radius=2)


# --- stages in a loop -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rk4", "rk6", "dopri5", "heun"])
def test_stages_in_a_loop_give_the_same_step(name):
    model = kt.samples.double_pendulum()
    q, qd = np.array([0.3, 0.4]), np.array([1.0, -2.0])
    method = INTEGRATORS[name]
    assert isinstance(method, ExplicitRungeKutta)
    ends = [
        kt.rollout(model, q, qd, steps=3, dt=0.01, integrator=m).q[-1]
        for m in (method, ExplicitRungeKutta(method.tableau, looped=True))
    ]
    np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-15)
