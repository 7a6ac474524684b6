"""Stiff springs, dampers and servos: what limits explicit steps, and what ``"auto"`` does then."""

import re
import warnings
from itertools import pairwise

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import EventDriven, Scene, TimeStepping
from kinetree.errors import SimulationWarning
from kinetree.integration.explicit import RK4, Tableau
from kinetree.integration.registry import INTEGRATORS
from kinetree.integration.stiffness import amplification, fastest_motion, seconds, stable_reach
from kinetree.model import JointDynamics

RK = INTEGRATORS["rk4"]
PENDULUM = kt.samples.double_pendulum()
STIFF = PENDULUM.replace(dynamics={"elbow": JointDynamics(damping=3e3)})
START = [0.5, 0.2]


def slider(damping=0.0, stiffness=0.0, mass=2.0):
    """A mass on a slide, whose rates are the roots of ``m λ² + d λ + k``."""
    dynamics = JointDynamics(damping=(damping,), stiffness=(stiffness,))
    builder = kt.ModelBuilder("slider", gravity=(0, 0, 0))
    inertia = kt.shapes.sphere(0.1, mass=mass)
    builder.body("mass", joint=kt.Prismatic("x"), inertia=inertia, dynamics=dynamics)
    return builder.build()


# --- what limits explicit steps ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "real", "imaginary"),
    [("euler", 2.0, 0.14), ("semi_implicit_euler", 2.0, 2.0), ("rk4", 2.785, 2.83)],
)
def test_explicit_methods_reach_as_far_as_the_books_say(name, real, imaginary):
    angles, reach = stable_reach(INTEGRATORS[name])
    assert np.degrees(angles[[0, -1]]).tolist() == [90.0, 180.0]
    np.testing.assert_allclose(reach[[-1, 0]], [real, imaginary], atol=0.011)


def test_implicit_methods_reach_any_distance():
    names = ("implicit_midpoint", "variational", "rosenbrock", "rosenbrock_w")
    assert all(stable_reach(INTEGRATORS[name]) is None for name in names)


def test_amplification_is_the_exponential_to_the_order_of_the_method():
    z = 0.01 * np.exp(1j * np.linspace(0, np.pi, 5))
    assert isinstance(RK4, Tableau)
    np.testing.assert_allclose(amplification(RK4, z), np.exp(z), rtol=1e-11)


def test_rates_are_the_roots_of_the_equation_of_motion():
    damped = fastest_motion(slider(damping=500.0), RK)
    assert damped.cause == "the damper at joint 'mass_joint'"
    np.testing.assert_allclose([damped.time, damped.step], [2 / 500, 2.79 * 2 / 500], rtol=1e-3)
    sprung = fastest_motion(slider(stiffness=8e4), RK)
    assert sprung.cause == "the spring at joint 'mass_joint'"
    np.testing.assert_allclose([sprung.time, sprung.step], [1 / 200, 2.83 / 200], rtol=1e-3)
    both = fastest_motion(slider(damping=1000.0, stiffness=8e4), RK)
    np.testing.assert_allclose(1 / both.time, max(abs(np.roots([2.0, 1000.0, 8e4]))), rtol=1e-9)
    assert fastest_motion(slider(), RK) is None
    assert fastest_motion(slider(damping=1.0), RK, step=1e-3) is None


def test_the_worst_start_of_a_batch_counts_and_prescribed_joints_do_not():
    heavy = PENDULUM.replace(dynamics={"shoulder": JointDynamics(damping=10.0)})
    starts = np.array([[0.0, 0.0], [0.0, np.pi]])  # stretched, and folded: less inertia
    alone = [fastest_motion(heavy, RK, q).step for q in starts]
    assert fastest_motion(heavy, RK, starts).step == min(alone)
    assert fastest_motion(heavy, RK, starts[0], free=np.array([0, 1])) is None


def test_couplings_and_loops_count_with_the_inertia_that_moves():
    led = kt.ModelBuilder("gears", gravity=(0, 0, 0))
    wheel = kt.shapes.cylinder(0.1, 0.02, mass=1.0)
    led.body("a", joint=kt.Revolute("z"), inertia=wheel)
    led.body(
        "b", on="base", joint=kt.Revolute("z"), inertia=wheel, dynamics=JointDynamics(damping=3.0)
    )
    led.coupling("gear", joint="b_joint", source="a_joint", coefficients=(0.0, 2.0))
    model = led.build()
    moment = 0.5 * 0.01
    np.testing.assert_allclose(
        1 / fastest_motion(model, RK).time, 4 * 3.0 / (5 * moment), rtol=1e-9
    )
    four = kt.samples.four_bar().replace(dynamics={"crank_joint": JointDynamics(damping=1e3)})
    q = np.array(four.posture("home").q)
    H = np.asarray(kt.mass_matrix(four, q, independent=["crank_joint"]))
    np.testing.assert_allclose(1 / fastest_motion(four, RK, q).time, 1e3 / H[0, 0], rtol=1e-6)


def test_tendons_and_servos_count():
    builder = kt.ModelBuilder("slides", gravity=(0, 0, 0))
    ball = kt.shapes.sphere(0.1, mass=2.0)
    for name in ("a", "b"):
        builder.body(name, on="base", joint=kt.Prismatic("x"), inertia=ball)
    builder.tendon("t", joints={"a_joint": 1.0, "b_joint": -1.0}, damping=500.0)
    builder.actuator("p", joint="a_joint", gear=2.0, kp=8e4)
    builder.actuator(
        "d", joint="b_joint", gain=(0.0, 0.0, -900.0), bias=(0.0, 0.0, 0.0), control=(0.0, 1.5)
    )
    model = builder.build()
    slack = fastest_motion(model, RK)
    assert slack.cause == "the damper at tendon 't'"
    np.testing.assert_allclose(1 / slack.time, 500.0, rtol=1e-9)  # (1 + 1)/2 kg
    driven = fastest_motion(model, RK, servos=True)
    H, K = 2.0 * np.eye(2), np.diag([4 * 8e4, 0.0])
    D = 500.0 * np.array([[1, -1], [-1, 1]]) + np.diag([0.0, 900.0 * 1.5])
    companion = np.block([[np.zeros((2, 2)), np.eye(2)], [-K / 2, -D / 2]])
    assert np.all(np.linalg.eigvalsh(H) > 0)
    np.testing.assert_allclose(
        1 / driven.time, np.max(np.abs(np.linalg.eigvals(companion))), rtol=1e-9
    )
    assert driven.cause == "servo 'd'"


def test_durations_are_said_in_units_that_fit():
    assert [seconds(t) for t in (2.0, 0.0125, 1e-3, 3.4e-5, 2e-9)] == [
        "2 s", "12.5 ms", "1 ms", "34 µs", "2 ns",
    ]  # fmt: skip


# --- integrator="auto" ---------------------------------------------------------------------------


def test_auto_is_implicit_where_dampers_are_stiff_and_the_report_says_why():
    motion = kt.simulate(STIFF, START, duration=0.5, dt=0.01)
    assert motion.report.integrator == "rosenbrock_w"
    why = (
        "the damper at joint 'elbow' acts within 15.6 µs, and 'rk4' is stable in steps up to "
        "43.6 µs; dt is 10 ms"
    )
    assert motion.report.integrator_reason == why
    assert f"integrator       rosenbrock_w: {why}\n" in str(motion.report)
    assert motion.report.trusted
    exact = kt.simulate(STIFF, START, duration=0.5, dt=1e-3, integrator="rosenbrock")
    np.testing.assert_allclose(motion.q[-1], exact.q[-1], atol=1e-7)


def test_auto_stays_explicit_to_the_bit_where_nothing_is_stiff():
    mild = PENDULUM.replace(dynamics={"elbow": JointDynamics(damping=0.1, stiffness=(3.0,))})
    auto = kt.simulate(mild, START, duration=0.1)
    explicit = kt.simulate(mild, START, duration=0.1, integrator="rk4")
    assert auto.report.integrator == "rk4"
    assert auto.report.integrator_reason == ""
    assert np.array_equal(auto.q, explicit.q)


def test_a_damper_that_moves_next_to_no_inertia():
    """A ball on its own axis: 1e-16 kg·m², as point masses of files become by rounding."""
    builder = kt.ModelBuilder("arm")
    builder.body("arm", joint=kt.Revolute("y"), inertia=kt.shapes.box(0.3, 0.1, 0.1, mass=1.0))
    point = kt.Inertia.from_mass_center(1.0, (1e-8, 0.0, 0.0), np.zeros((3, 3)))
    builder.body(
        "point", joint=kt.Revolute("z"), at=(0.3, 0, 0), inertia=point,
        dynamics=JointDynamics(damping=1.0),
    )  # fmt: skip
    model = builder.build()
    motion = kt.simulate(model, [0.3, 0.0], duration=0.2)
    assert motion.report.integrator == "implicit_midpoint"
    assert motion.report.integrator_reason.startswith("the damper at joint 'point_joint' acts wi")
    rigid = kt.edit.lock(model, {"point_joint": 0.0})
    exact = kt.simulate(rigid, [0.3], duration=0.2)
    np.testing.assert_allclose(motion.q[-1], [exact.q[-1, 0], 0.0], atol=1e-6)


def test_rollouts_and_batches_choose_alike():
    starts = np.array([START, [0.1, -0.3]])
    rolled = kt.rollout(STIFF, starts, steps=50, dt=0.01)
    motion = kt.simulate(STIFF, starts, duration=0.5, dt=0.01)
    assert rolled.integrator == motion.report.integrator == "rosenbrock_w"
    np.testing.assert_allclose(rolled.q[-1], motion.q[-1], atol=1e-13)
    assert kt.rollout(PENDULUM, START, steps=1).integrator == "rk4"


def test_gradients_go_through_stiff_rollouts():
    @kt.kernel
    def terminal(model, q):
        return q[0] * q[0]

    gradient = kt.rollout_gradient(STIFF, START, steps=20, dt=0.01, terminal=terminal)
    h = 1e-5
    ends = [
        kt.rollout(STIFF, [START[0] + s, START[1]], steps=20, dt=0.01).q[-1, 0] ** 2
        for s in (h, -h)
    ]
    np.testing.assert_allclose(gradient.q0[0], (ends[0] - ends[1]) / (2 * h), rtol=1e-7)


def test_adaptive_steps_are_implicit_too():
    motion = kt.simulate(STIFF, START, duration=0.5, dt=0.01, rtol=1e-6)
    assert motion.report.integrator == "rosenbrock_w"
    assert motion.report.steps < 2000  # 'dopri5' needs 12,000 to be stable
    exact = kt.simulate(STIFF, START, duration=0.5, dt=1e-3, integrator="rosenbrock")
    np.testing.assert_allclose(motion.q[-1], exact.q[-1], atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"forces": lambda model, t, q, qd: 0.1 * np.sin(q)},  # in Python
        {"prescribed": {"shoulder": kt.kernel(lambda t: (0.5 + 0.1 * t * t, 0.2 * t, 0.2))}},
        {"friction": "exact"},
        {"limits": "rigid"},
        {"contact": TimeStepping(Scene(STIFF, []))},
    ],
    ids=lambda options: next(iter(options)),
)
def test_stiff_dampers_go_with_other_options(options):
    """Compared with itself in steps of a quarter, and with the order of the method."""
    model = STIFF.replace(
        dynamics={
            "elbow": JointDynamics(damping=3e3),
            "shoulder": JointDynamics(friction=1e-3),
        },
        limits={"shoulder": kt.Limits((-3.0,), (3.0,))},
    )
    if "contact" in options:
        smooth = {"friction": "smooth", "limits": "stiff"}  # whose flight is the integrator's
        options = {"contact": TimeStepping(Scene(model, [])), **smooth}
    ends = [
        kt.simulate(model, START, duration=0.2, dt=dt, **options).q[-1]
        for dt in (0.004, 0.002, 0.001)
    ]
    gaps = [np.max(np.abs(b - a)) for a, b in pairwise(ends)]
    assert gaps[0] < 1e-7
    assert gaps[1] < 0.6 * gaps[0]
    motion = kt.simulate(model, START, duration=0.2, dt=0.004, **options)
    assert motion.report.integrator == "rosenbrock_w"


def test_loops_with_stiff_dampers():
    four = kt.samples.four_bar().replace(dynamics={"crank_joint": JointDynamics(damping=100.0)})
    q = np.array(four.posture("home").q)
    ends = []
    for dt in (0.004, 0.002):
        motion = kt.simulate(four, q, duration=0.2, dt=dt)
        assert motion.report.integrator == "rosenbrock_w"
        assert motion.report.loop_error < 1e-12
        ends.append(motion.q[-1])
    in_python = {"forces": lambda model, t, q, qd: 0 * qd}
    two = kt.simulate(four, np.array([q, q]), duration=0.02, dt=0.002, **in_python)
    np.testing.assert_allclose(two.q[-1], [motion.q[10]] * 2, atol=1e-12)
    fine = kt.simulate(four, q, duration=0.2, dt=2e-4, integrator="rk6")
    assert max(np.max(np.abs(end - fine.q[-1])) for end in ends) < 1e-9


def first_warning(**options):
    """Of several: the report has a word to say, too."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert kt.simulate(STIFF, START, **options).report.integrator == "rk4"
    return str(found[0].message)


def test_an_explicit_method_that_is_unstable_warns_before_it_blows_up():
    words = (
        r"^simulate of 'double pendulum': the damper at joint 'elbow' acts within 15.6 µs, and "
        r"'rk4' is stable in steps up to 43.6 µs, while dt is 1 ms: take "
        r"integrator='rosenbrock_w', or a dt below 21.8 µs$"
    )
    assert re.match(words, first_warning(duration=1e-3, integrator="rk4"))
    with pytest.warns(SimulationWarning, match=r"^rollout of 'double pendulum': the damper at"):
        kt.rollout(STIFF, START, steps=1, integrator="rk4")


def test_a_warning_where_no_implicit_method_fits_the_options():
    words = (
        r"stable in steps up to 43.6 µs, while dt is 1 ms: take a dt below 21.8 µs. "
        r"contact=EventDriven cannot be combined with integrator 'rosenbrock_w'"
    )
    assert re.search(words, first_warning(duration=1e-3, contact=EventDriven(Scene(STIFF, []))))
