"""Prescribed joints, while the others are simulated."""

import re
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import kinetree as kt
from kinetree.algorithms import aba
from kinetree.errors import (
    JointError,
    LoopError,
    ShapeError,
    SimulationError,
    SimulationWarning,
    TraceError,
    UnknownNameError,
)
from kinetree.integration.field import PrescribedField
from kinetree.integration.prescription import PrescribedSteps, Prescription
from kinetree.integration.recorded_motion import RecordedMotion
from kinetree.quantities.hybrid import hybrid_dynamics

g, LENGTH, MASS = 9.81, 0.7, 1.3
AMPLITUDE, OMEGA = 0.1, 9.0
START = ([0.0, 0.4], [AMPLITUDE * OMEGA, 0.1])


def shaking(t):
    s, c = AMPLITUDE * np.sin(OMEGA * t), AMPLITUDE * np.cos(OMEGA * t)
    return s, OMEGA * c, -(OMEGA**2) * s


shake = kt.kernel(shaking)


@cache
def shaken(axis):
    """A particle on a rod without mass whose pivot, without mass too, slides along an axis."""
    bob = kt.Inertia.from_particles([MASS], [(0, 0, -LENGTH)])
    return (
        kt.ModelBuilder(f"pendulum shaken along {axis}")
        .body("pivot", joint=kt.Prismatic(axis), joint_name="pivot")
        .body("rod", on="pivot", joint=kt.Revolute("y"), joint_name="rod", inertia=bob)
        .build()
    )


def effective_gravity(axis, duration):
    """The end of the same motion: a pendulum in the gravity that the pivot feels."""

    def state_rate(t, y):
        up, along = (shaking(t)[2], 0.0) if axis == "z" else (0.0, shaking(t)[2])
        return y[1], (along * np.cos(y[0]) - (g + up) * np.sin(y[0])) / LENGTH

    start = START[0][1], START[1][1]
    return solve_ivp(state_rate, (0, duration), start, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


# --- a pendulum on a shaken pivot ----------------------------------------------------------------


@pytest.mark.covers("RBDA 9.1", by=(kt.simulate, PrescribedField, PrescribedSteps, Prescription))
@pytest.mark.parametrize("axis", ["x", "z"])
def test_a_shaken_pendulum_feels_effective_gravity(axis):
    m, expected = shaken(axis), effective_gravity(axis, 1.0)
    ways = [(shake, {}, 1e-8)]
    if axis == "x":
        adaptive = {"rtol": 1e-10, "atol": 1e-12}
        ways += [
            (shake, adaptive, 1e-9),
            (shake, {"integrator": "rk6"}, 1e-11),
            (shaking, {}, 1e-8),
        ]
    for motion, options, tolerance in ways:
        options = {"dt": 4e-3, "prescribed": {"pivot": motion}} | options
        found = kt.simulate(m, *START, duration=1.0, **options)
        assert np.abs(found.q[-1, 1] - expected[0]) < tolerance
        assert np.abs(found.qd[-1, 1] - expected[1]) < 10 * tolerance
        given = shaking(found.t)
        assert np.max(np.abs(found.q[:, 0] - given[0])) <= 2e-16
        assert np.max(np.abs(found.qd[:, 0] - given[1])) <= 2e-15
        assert found.report.energy_error < 1e-7


def test_forces_are_those_of_inverse_dynamics_and_their_work_is_the_energy():
    # The drive overcomes damping and a spring at the pivot, too; the controller is not called.
    m = shaken("x").replace(dynamics={"pivot": kt.JointDynamics(damping=2.0, stiffness=5.0)})
    found = kt.simulate(
        m, *START, duration=1.0, dt=2e-3, prescribed={"pivot": shake}, integrator="rk6",
        controller=lambda t, q, qd: np.array([7.0, 0.3]),
    )  # fmt: skip
    assert np.all(found.tau[:, 1] == 0.3)
    passive = kt.passive_force(m, found.q, found.qd)
    given = np.stack([shaking(found.t)[2], 0 * found.t], axis=-1)
    tau, qdd = hybrid_dynamics(m, found.q, found.qd, found.tau + passive, given, given=["pivot"])
    assert np.allclose(found.tau + passive, tau, rtol=1e-12, atol=1e-12)
    assert np.allclose(kt.inverse_dynamics(m, found.q, found.qd, qdd), tau, atol=1e-12)
    mechanical = kt.kinetic_energy(m, found.q, found.qd) + kt.potential_energy(m, found.q)
    assert np.max(np.abs(mechanical - mechanical[0] - found.work)) < 1e-11
    assert found.report.energy_error < 1e-12
    assert found.report.smallest_pivot == 1.0  # of the rod: that the pivot has no mass is no matter


@pytest.mark.parametrize(("integrator", "order"), [("auto", 4), ("heun", 2)])
def test_order_of_convergence_is_that_of_the_integrator(integrator, order):
    m, expected = shaken("z"), effective_gravity("z", 1.0)
    errors, balance = [], []
    for dt in (0.04, 0.02, 0.01):
        found = kt.simulate(
            m, *START, duration=1.0, dt=dt, prescribed={"pivot": shake}, integrator=integrator
        )
        errors.append(np.abs([found.q[-1, 1] - expected[0], found.qd[-1, 1] - expected[1]]).max())
        energy = found.energy - found.energy[0] - found.work
        balance.append(np.abs(energy[-1]))
    assert abs(np.log2(errors[1] / errors[2]) - order) < 0.5
    assert np.log2(balance[0] / balance[2]) / 2 > order - 0.7


def test_motions_of_a_batch_are_those_of_its_samples():
    m = shaken("x")
    q0, qd0 = np.array([[0, 0.4], [0, -0.2]]), np.array(START[1])
    options = {"duration": 0.2, "dt": 4e-3, "prescribed": {"pivot": shake}}
    both = kt.simulate(m, q0, qd0, **options)
    each = [kt.simulate(m, q, qd0, **options) for q in q0]
    for name in ("q", "qd", "tau", "work"):
        alone = np.stack([getattr(one, name) for one in each], axis=1)
        assert np.allclose(getattr(both, name), alone, rtol=1e-13, atol=1e-13)


def test_velocities_that_are_not_given_are_those_of_the_motion():
    found = kt.simulate(shaken("x"), START[0], duration=0.0, prescribed={"pivot": shake})
    assert np.allclose(found.qd, [[AMPLITUDE * OMEGA, 0.0]], rtol=1e-15)


# --- servos, other joints ------------------------------------------------------------------------


@pytest.mark.covers("RBDA 9.1", by=kt.simulate)
def test_a_perfect_servo_is_the_limit_of_stiff_control():
    m = kt.samples.double_pendulum()
    shoulder, start = m.joint_names[0], np.array([0.3, 0.5])

    @kt.kernel
    def servo(t):
        return 0.3 + 0.4 * (1 - np.cos(3 * t)), 1.2 * np.sin(3 * t), 3.6 * np.cos(3 * t)

    def stiff(k):
        @kt.kernel
        def force(model, t, q, qd):
            place, speed, _ = servo.function(t)
            pd = k * (place - q[0]) + 2 * np.sqrt(k) * (speed - qd[0])
            return np.array([pd, 0 * pd])

        return force

    perfect = kt.simulate(m, start, duration=0.5, dt=1e-3, prescribed={shoulder: servo})
    off = []
    for k in (4e4, 16e4):
        found = kt.simulate(m, start, duration=0.5, dt=1e-4, store_every=10, forces=stiff(k))
        off.append(np.max(np.abs(found.q - perfect.q)))
        pd = stiff(k).function(m, found.t, found.q.T, found.qd.T)[0]
        size = np.max(np.abs(perfect.tau))
        assert np.max(np.abs(pd[-100:] - perfect.tau[-100:, 0])) < 4e3 / k * size
    assert off[1] < 1e-3
    assert 3 < off[0] / off[1] < 5  # as one over the stiffness


def rolling(t):
    """A turn about z, then about x: orientation, angular velocity, its rate, in body axes."""
    a, b = 1.7, 2.3
    z, x = a * t / 2, b * t / 2
    q = (np.cos(z) * np.cos(x), np.cos(z) * np.sin(x), np.sin(z) * np.sin(x), np.sin(z) * np.cos(x))
    s, c = np.sin(b * t), np.cos(b * t)
    zero = 0 * t
    return np.array(q), np.array([b + zero, a * s, a * c]), np.array([zero, a * b * c, -a * b * s])


def test_a_spherical_joint_moves_as_prescribed_and_a_rheonomic_joint_agrees():
    def model(ball):
        return (
            kt.ModelBuilder("gyro")
            .body("cup", joint=ball, joint_name="ball", inertia=kt.shapes.sphere(0.2, mass=2.0))
            .body("arm", on="cup", at=(0.1, 0.2, 0.3), joint=kt.Revolute("y"), joint_name="arm",
                  inertia=kt.shapes.box(0.1, 0.2, 0.6, mass=1.0))
            .build()
        )  # fmt: skip

    given = model(kt.Spherical())
    q0, qd0 = np.array([1, 0, 0, 0, 0.3]), np.array([2.3, 0, 1.7, -0.2])
    other = model(kt.Prescribed(kt.Spherical(), rolling))

    def state_rate(t, y):
        return y[1], aba.forward_dynamics(other.at(t), y[:1], y[1:], np.zeros(1))[0]

    expected = solve_ivp(state_rate, (0, 0.5), [0.3, -0.2], "DOP853", rtol=1e-9, atol=1e-10).y[
        :, -1
    ]
    found = kt.simulate(
        given, q0, qd0, duration=0.5, dt=5e-3, prescribed={"ball": kt.kernel(rolling)}
    )
    assert np.allclose([found.q[-1, 4], found.qd[-1, 3]], expected, rtol=0, atol=1e-7)
    where = [rolling(t) for t in found.t]
    assert np.allclose(found.q[:, :4], [x[0] for x in where], rtol=0, atol=4e-16)
    assert np.allclose(found.qd[:, :3], [x[1] for x in where], rtol=0, atol=2e-15)
    assert found.report.energy_error < 1e-8
    table = RecordedMotion(found.t, found.q[:, :4])
    with pytest.raises(JointError, match=r"'ball' \(Spherical\), whose velocities are not the"):
        kt.simulate(given, q0, duration=0.1, prescribed={"ball": table})


def test_a_recorded_motion_is_smooth_and_consistent():
    t = np.linspace(0, 1, 201)
    q, qd, qdd = shaking(t)
    exact, splined = RecordedMotion(t, q, qd, qdd), RecordedMotion(t, q)
    for x in (0.0, 0.1234, 0.5, 1.0):
        assert np.allclose(np.ravel(exact(x)), shaking(x), rtol=0, atol=1e-8)
        assert np.allclose(np.ravel(splined(x)), shaking(x), rtol=0, atol=2e-2)
    m = shaken("x")
    found = kt.simulate(m, *START, duration=0.3, dt=5e-3, prescribed={"pivot": exact})
    again = kt.simulate(m, *START, duration=0.3, dt=5e-3, prescribed={"pivot": shake})
    assert np.max(np.abs(found.q - again.q)) < 1e-8
    assert np.max(np.abs(found.tau - again.tau)) < 1e-6
    with pytest.raises(SimulationError, match=r"from t = 0 s to 1 s does not know .* at t = 1.1 s"):
        exact(1.1)
    for arguments, text in (
        ((t[:3], q[:3]), r"four times \(T,\) or more"),
        ((t[::-1], q), "must increase, got 1 and then 0.995"),
        (
            (t, q, qd[1:]),
            r"qd .* must have the shape of q, \(201,\), got \(200,\)",
        ),
        ((t, q, np.full(201, np.inf)), "qd of a RecordedMotion must be finite"),
    ):
        with pytest.raises(ShapeError, match=text):
            RecordedMotion(*arguments)


# --- stops, friction, events, loops, rollouts ----------------------------------------------------


def test_a_ball_leaves_a_shaken_table_when_the_table_falls_faster():
    amplitude, omega = 0.02, 40.0

    @kt.kernel
    def table(t):
        s, c = amplitude * np.sin(omega * t), amplitude * np.cos(omega * t)
        return s, omega * c, -(omega**2) * s

    m = (
        kt.ModelBuilder("table")
        .body("table", joint=kt.Prismatic("z"), joint_name="table")
        .body("ball", on="table", joint=kt.Prismatic("z"), joint_name="ball",
              limits=kt.Limits(lower=0.0), inertia=kt.shapes.sphere(0.1, mass=2.0))
        .build()
    )  # fmt: skip
    found = kt.simulate(
        m, [0.0, 0.0], duration=0.3, dt=1e-3, prescribed={"table": table},
        limits=kt.RigidLimits(restitution=0.5),
    )  # fmt: skip
    leaves, lands = found.events[:2]
    assert leaves.name == "ball breaks away"
    assert abs(leaves.t - np.arcsin(g / (amplitude * omega**2)) / omega) < 1e-9
    height, speed, _ = table.function(leaves.t)
    flight = lands.t - leaves.t
    there = height + speed * flight - g / 2 * flight**2
    assert abs(there - table.function(lands.t)[0]) < 1e-9
    assert np.all(lands.qd[0] == lands.qd_after[0])
    assert np.isclose(lands.qd_after[1], -0.5 * lands.qd[1])
    resting, flying = found.t < leaves.t, (found.t > leaves.t) & (found.t < lands.t)
    weight = 2.0 * (g + table.function(found.t)[2])
    assert np.allclose(found.tau[resting, 0], weight[resting], atol=1e-10)
    assert np.allclose(found.tau[flying, 0], 0, atol=1e-10)
    assert found.report.energy_error < 1e-6


def test_exact_friction_of_a_joint_that_is_prescribed_is_overcome_by_its_drive():
    m = (
        kt.ModelBuilder("sled")
        .body("sled", joint=kt.Prismatic("x"), joint_name="sled",
              dynamics=kt.JointDynamics(friction=3.0))
        .body("load", on="sled", joint=kt.Prismatic("x"), joint_name="load",
              dynamics=kt.JointDynamics(friction=4.0), inertia=kt.shapes.sphere(0.1, mass=2.0))
        .build()
    )  # fmt: skip

    def motion(t):  # accelerations up to 4 m/s²: at 2 m/s² the load begins to slide
        return 2 * t**3 / 3, 2 * t**2, 4 * t

    found = kt.simulate(
        m, [0.0, 0.0], duration=1.0, dt=0.01, prescribed={"sled": motion}, friction="exact"
    )
    (slides,) = found.events
    assert abs(slides.t - 0.5) < 1e-9
    driven = np.where(found.t < 0.5, 2.0 * 4 * found.t, 4.0) + 3.0 * (found.t > 0)
    assert np.allclose(found.tau[1:, 0], driven[1:], atol=1e-9)
    assert np.isclose(found.qd[-1].sum(), 2.0 * 0.5**2 + 2.0 * 0.5)
    assert found.report.energy_error < 1e-9


def test_events_must_leave_joints_alone_that_are_prescribed():
    m = shaken("x")
    crossing = kt.Event(lambda t, q, qd: q[1] - 0.2, name="passes")
    options = {"duration": 0.5, "dt": 5e-3, "prescribed": {"pivot": shake}}
    found = kt.simulate(m, *START, events=crossing, **options)
    assert found.events[0].q[0] == pytest.approx(shaking(found.events[0].t)[0], abs=1e-15)
    wrong = kt.Event(crossing.function, name="stops", action=lambda t, q, qd: (q, 0 * qd))
    with pytest.raises(SimulationError, match=r"'stops' at t = .* joint 'pivot', whose motion is"):
        kt.simulate(m, *START, events=wrong, **options)


@pytest.mark.covers("RBDA 9.1", by=kt.simulate)
@pytest.mark.parametrize("constraints", ["projection", "baumgarte"])
def test_a_crank_that_is_prescribed_drives_a_four_bar(constraints):
    m = kt.samples.four_bar()
    q0, crank = kt.loops.assemble(m, m.neutral()), m.joint_names[0]

    def motion(t):
        return q0[0] + 0.5 * t**2, t, 1 + 0 * t

    found = kt.simulate(
        m, q0, duration=0.5, dt=5e-3, prescribed={crank: kt.kernel(motion)}, constraints=constraints
    )
    assert np.max(np.abs(found.q[:, 0] - motion(found.t)[0])) <= 2e-16
    assert found.report.loop_error < 1e-12
    assert found.report.energy_error < 1e-9
    assert not np.any(found.tau[:, 1:])
    for k in (0, 40, 100):  # the force is the one under which the mechanism moves like this
        state = found.q[k], found.qd[k]
        force = found.tau[k] + kt.passive_force(m, *state)
        assert np.isclose(kt.forward_dynamics(m, *state, force)[0], 1, rtol=1e-9)


def test_what_loops_do_not_allow_is_named():
    m = kt.samples.four_bar()
    q0, names = kt.loops.assemble(m, m.neutral()), m.joint_names
    still = {n: lambda t, x=x: (x, 0.0, 0.0) for n, x in zip(names, q0, strict=True)}
    with pytest.raises(
        LoopError, match="1 of their 2 variables follow from the others; prescribe fewer"
    ):
        kt.simulate(m, q0, duration=0.1, prescribed={n: still[n] for n in names[:2]})
    for way in ("projection+energy", "charts", "generalized_alpha"):
        with pytest.raises(LoopError, match=r"prescribed joints \('crank_joint'\): it changes"):
            kt.simulate(
                m, q0, duration=0.1, constraints=way, prescribed={names[0]: still[names[0]]}
            )


def test_rollouts_and_their_derivatives():
    m, options = shaken("x"), {"prescribed": {"pivot": shake}, "dt": 5e-3}
    found = kt.rollout(m, *START, steps=60, **options)
    expected = kt.simulate(m, *START, duration=0.3, **options)
    for name in ("q", "qd", "work", "tau"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12)

    @kt.kernel
    def end(model, q):
        return q[1]

    gradient = kt.rollout_gradient(m, *START, terminal=end, steps=60, **options)
    q0, e = np.array(START[0]), np.array([0, 1e-5])
    ends = [kt.rollout(m, q0 + s * e, START[1], steps=60, **options).q[-1, 1] for s in (1, -1)]
    assert np.isclose(gradient.q0[1], (ends[0] - ends[1]) / 2e-5, rtol=1e-8)
    assert gradient.q0[0] == 0 == gradient.qd0[0]
    with pytest.raises(TraceError, match=r"\('pivot'\): .* decorate them with @kinetree\.kernel"):
        kt.rollout(m, *START, steps=1, prescribed={"pivot": shaking})


# --- what does not fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ([shaking], TypeError, r"motions by the names of joints, .* got list"),
        ({"pivott": shaking}, UnknownNameError, "did you mean 'pivot'"),
        ({"pivot": 1.0}, TypeError, "motion of joint 'pivot' must be a function of time"),
        ({"pivot": lambda t: 1.0}, JointError, r"must return \(q, qd, qdd\), got 1.0 at t = 0"),
        ({"pivot": lambda t: np.ones((3, 2))}, JointError, r"of lengths \(1, 1, 1\), got shapes"),
        ({"pivot": lambda t: (0.02, 0.9, 0.0)}, JointError, "'pivot' 0.02 m or rad away"),
        ({"pivot": lambda t: (0.0, 0.5, 0.0)}, JointError, "qd0 .* 'pivot' 0.4 m/s or rad/s away"),
        ({"pivot": lambda t: (0.0, 0.9, np.nan)}, ShapeError, "acceleration of the motion at t"),
    ],
)  # fmt: skip
def test_motions_that_do_not_fit_are_named(given, error, text):
    with pytest.raises(error, match=text):
        kt.simulate(shaken("x"), *START, duration=0.1, prescribed=given)


def test_integrators_that_solve_for_all_joints_are_rejected():
    with pytest.raises(UnknownNameError, match=r"'rosenbrock' .*'pivot'.: it solves .* use 'rk4'"):
        kt.simulate(
            shaken("x"), *START, duration=0.1, prescribed={"pivot": shake}, integrator="rosenbrock"
        )


@pytest.mark.parametrize("k", [1, 2])
def test_a_motion_that_contradicts_itself_is_warned_of(k):
    def wrong(t):
        values = [0.02 * np.sin(3 * t), 0.06 * np.cos(3 * t), -0.18 * np.sin(3 * t)]
        values[k] = values[k] + 0.02 * t
        return tuple(values)

    def right(t):
        return 0.02 * np.sin(3 * t), 0.06 * np.cos(3 * t), -0.18 * np.sin(3 * t)

    options = {"duration": 0.5, "dt": 0.05}
    text = rf"'pivot' contradicts itself: .* its {['q', 'qd', 'qdd'][k]} is"
    with pytest.warns(SimulationWarning) as caught:
        kt.simulate(shaken("x"), START[0], prescribed={"pivot": wrong}, **options)
    assert any(re.search(text, str(w.message)) for w in caught)
    kt.simulate(shaken("x"), START[0], prescribed={"pivot": right}, **options)
