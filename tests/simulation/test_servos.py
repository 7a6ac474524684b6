"""Servos in simulations: forces that follow the state while controls are held."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.algorithms import actuators
from kinetree.errors import ModelError, ShapeError, TraceError
from kinetree.spatial import Inertia

BAR = Inertia.from_mass_center(1.0, (0.2, 0.0, 0.0), np.diag([0.01, 0.02, 0.02]))
U = np.array([0.6, -0.8])
START = np.array([0.3, -0.2])


def arm(**more):
    """Two links under gravity with a position servo each."""
    b = kt.ModelBuilder("arm")
    b.body("upper", joint=kt.Revolute("y"), inertia=BAR, joint_name="shoulder")
    b.body("lower", on="upper", at=(0.4, 0, 0), joint=kt.Revolute("y"), inertia=BAR,
           joint_name="elbow")  # fmt: skip
    b.actuator("first", joint="shoulder", kp=50, kv=3, effort=(-30, 30))
    b.actuator("second", joint="elbow", kp=30, kv=2, gear=1.5, control=(-0.7, 0.7), **more)
    b.posture("hold", q={"shoulder": 0.1}, controls={"first": 0.6, "second": -0.8},
              activation={"second": 0.2} if more else None)  # fmt: skip
    return b.build()


def as_force(model, u):
    """The same forces as a function of the user's, called in Python at every stage."""
    return lambda m, t, q, qd: kt.driving_force(model, q, qd, u)


STEPPERS = {
    "explicit": {},
    "dopri5": {"integrator": "dopri5"},
    "exact friction": {"friction": "exact"},
    "rigid limits": {"limits": "rigid"},
    "adaptive": {"rtol": 1e-10},
    "prescribed": {"prescribed": {"shoulder": lambda t: (0.3 + t**3, 3 * t**2, 6 * t)}},
}


@pytest.mark.parametrize("how", STEPPERS)
def test_every_stepper_follows_the_state(how):
    m, options = arm(), STEPPERS[how]
    if how == "rigid limits":
        m = m.replace(limits={"elbow": kt.Limits(lower=-0.3, upper=1.0)})
    if how == "exact friction":
        m = m.replace(dynamics={"elbow": kt.JointDynamics(friction=0.5)})
    found = kt.simulate(m, START, duration=0.2, dt=2e-3, controls=U, **options)
    expected = kt.simulate(m, START, duration=0.2, dt=2e-3, forces=as_force(m, U), **options)
    np.testing.assert_allclose(found.q, expected.q, atol=2e-11)
    np.testing.assert_allclose(found.energy, expected.energy, atol=1e-9)
    free = slice(1, None) if how == "prescribed" else slice(None)
    tau = kt.driving_force(m, found.q, found.qd, U)
    np.testing.assert_allclose(found.tau[:, free], tau[:, free], atol=1e-12)
    np.testing.assert_array_equal(found.controls, np.broadcast_to(U, found.q.shape))
    assert found.activation is None


@pytest.fixture(scope="module")
def exact_end():
    """Of the motion that implicit steps converge to."""
    return kt.simulate(arm(), START, duration=0.2, rtol=1e-12, atol=1e-12, controls=U).q[-1]


@pytest.mark.parametrize("name", ["implicit_midpoint", "rosenbrock", "rosenbrock_w", "variational"])
def test_implicit_steps_converge_to_the_same_motion(name, exact_end):
    m = arm()
    errors = [
        np.abs(
            kt.simulate(m, START, duration=0.2, dt=dt, controls=U, integrator=name).q[-1]
            - exact_end
        ).max()
        for dt in (4e-3, 2e-3)
    ]
    assert errors[1] < errors[0] / 3.4
    assert errors[1] < 1e-4


def test_controls_that_change_are_held_in_between():
    m, times = arm(), 0.01 * np.arange(20)
    values = np.sin(np.outer(times, [30, 20]))
    found = [
        kt.simulate(m, START, duration=0.2, dt=2e-3, controls=controls)
        for controls in (
            kt.Recorded(times, values),
            kt.Sampled(lambda t, q, qd: values[round(t * 100) % 20], 100.0),
            lambda t, q, qd: values[min(int(t * 100 + 1e-6), 19)],
        )
    ]
    for one in found[1:]:
        np.testing.assert_allclose(one.q, found[0].q, atol=1e-12)
    np.testing.assert_array_equal(found[0].controls[5::5][:10], values[1:11])
    rolled = kt.rollout(m, START, controls=np.repeat(values, 5, 0), steps=100, dt=2e-3)
    np.testing.assert_allclose(rolled.q, found[0].q, atol=1e-12)


def test_steps_that_adapt_end_where_controls_are_called():
    times = []

    def controls(t, q, qd):
        times.append(t)
        return U

    kt.simulate(arm(), START, duration=0.1, dt=0.02, rtol=1e-6, controls=controls)
    np.testing.assert_allclose(times, 0.02 * np.arange(6), atol=1e-15)


def test_a_posture_holds_what_its_controls_say():
    m = arm()
    by_numbers = kt.simulate(m, START, duration=0.1, controls=[0.6, -0.8])
    for posture in ("hold", m.posture("hold")):
        found = kt.simulate(m, START, duration=0.1, controls=posture)
        np.testing.assert_array_equal(found.q, by_numbers.q)
    bare = m.replace(postures=[kt.Posture("bare", [0.0, 0.0])])
    with pytest.raises(ModelError, match="posture 'bare' of model 'arm' has no controls"):
        kt.simulate(bare, START, duration=0.1, controls="bare")


def test_a_batch_and_its_samples():
    m, rng = arm(), np.random.default_rng(3)
    q, u = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    many = kt.simulate(m, q, duration=0.05, controls=u)
    for k in range(3):
        one = kt.simulate(m, q[k], duration=0.05, controls=u[k])
        np.testing.assert_allclose(many.q[:, k], one.q, atol=1e-13)
        np.testing.assert_allclose(many.tau[:, k], one.tau, atol=1e-11)
    with pytest.raises(ShapeError, match=r"controls \(3, 2\) do not fit a batch of shape \(\)"):
        kt.simulate(m, q[0], duration=0.05, controls=u)


def test_without_controls_actuators_exert_nothing():
    m = arm()
    found = kt.simulate(m, START, duration=0.05)
    expected = kt.simulate(m.replace(actuators=()), START, duration=0.05)
    np.testing.assert_array_equal(found.q, expected.q)
    assert found.controls is None


# --- activations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "law"),
    [
        ({"activation": "filter", "time_constant": 0.05}, lambda t: -0.7 + 0.9 * np.exp(-t / 0.05)),
        (
            {"activation": "integrator", "activation_range": (0.15, 1)},
            lambda t: np.maximum(0.2 - 0.7 * t, 0.15),
        ),
    ],
)
def test_activations_are_exact_and_go_into_forces(more, law):
    m = arm(**more)
    found = kt.simulate(m, START, duration=0.2, dt=2e-3, controls="hold")
    np.testing.assert_allclose(found.activation[:, 0], law(found.t), atol=1e-14)
    tau = kt.driving_force(m, found.q, found.qd, found.controls, found.activation)
    np.testing.assert_allclose(found.tau, tau, atol=1e-12)
    exact = kt.simulate(m, START, duration=0.2, rtol=1e-11, controls="hold", max_step=1e-3)
    np.testing.assert_allclose(found.q[-1], exact.q[-1], atol=2e-7)


def test_activations_go_on_where_controls_change():
    m = arm(activation="filter", time_constant=0.05)
    found = kt.simulate(m, START, duration=0.2, dt=2e-3, controls=lambda t, q, qd: [0, t > 0.0999])
    k = found.t > 0.1
    expected = 0.7 * (1 - np.exp(-(found.t[k] - 0.1) / 0.05))
    np.testing.assert_allclose(found.activation[k, 0], expected, atol=1e-12)
    assert not found.activation[~k].any()


def test_an_event_and_a_hook_do_not_disturb_activations():
    m = arm(activation="filter", time_constant=0.05)
    event = kt.Event(lambda t, q, qd: q[..., 0] - 0.4, name="there")
    with_event = kt.simulate(m, START, duration=0.1, dt=2e-3, controls="hold", events=event)
    plain = kt.simulate(m, START, duration=0.1, dt=2e-3, controls="hold")
    assert with_event.events
    np.testing.assert_allclose(with_event.activation, plain.activation, atol=1e-14)
    np.testing.assert_allclose(with_event.q, plain.q, atol=1e-7)


# --- trajectories --------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".nc"])
def test_files_keep_controls_and_activations(tmp_path, suffix):
    m = arm(activation="filter", time_constant=0.05)
    found = kt.simulate(m, START, duration=0.02, controls="hold")
    again = kt.Trajectory.load(found.save(tmp_path / f"motion{suffix}"))
    np.testing.assert_array_equal(again.controls, found.controls)
    np.testing.assert_array_equal(again.activation, found.activation)
    plain = kt.simulate(m, START, duration=0.02)
    assert kt.Trajectory.load(plain.save(tmp_path / f"plain{suffix}")).controls is None


def test_parts_of_a_trajectory_keep_controls():
    m = arm(activation="filter", time_constant=0.05)
    found = kt.simulate(m, np.array([START, START]), duration=0.02, controls="hold")
    assert found[3:5].controls.shape == (2, 2, 2)
    assert found.motion(0).activation.shape == (21, 1)
    between = found.resample(5e-4)
    np.testing.assert_allclose(between.tau[::2], found.tau, atol=1e-12)
    table = found.to_pandas()
    assert {"controls.first", "controls.second", "activation.second"} <= set(table.columns)


def test_reactions_take_the_forces_of_servos():
    m = arm(activation="filter", time_constant=0.05)
    found = kt.simulate(m, START, duration=0.02, controls="hold")
    qdd = kt.forward_dynamics(m, found.q, found.qd, found.tau)
    expected = kt.joint_reactions(m, found.q, found.qd, qdd=qdd)
    np.testing.assert_allclose(found.reactions(), expected, atol=1e-9)


# --- quantities ----------------------------------------------------------------------------------


@pytest.mark.covers("RBDA 3.5", by=actuators.driving_force)
def test_limits_of_effort_cut_the_sum_of_a_joint():
    m = arm().replace(limits={"shoulder": kt.Limits(effort=4.0)})
    tau = kt.driving_force(m, START, [0.0, 0.0], U)
    f = kt.actuator_forces(m, START, [0.0, 0.0], U)
    assert tau[0] == 4.0 < f[0]
    assert tau[1] == 1.5 * f[1]
    unknown = m.replace(limits={"shoulder": kt.Limits(effort=0.0)})
    assert kt.driving_force(unknown, START, [0.0, 0.0], U)[0] == f[0]


def test_motors_are_cut_to_the_effort_of_their_joint_as_well():
    m = kt.samples.double_pendulum().replace(limits={"shoulder": kt.Limits(effort=4.0)})
    found = kt.simulate(m, [0.1, 0.2], duration=0.01, controls=[9.0, 1.0])
    np.testing.assert_array_equal(found.tau, np.broadcast_to([4.0, 1.0], found.tau.shape))
    np.testing.assert_array_equal(found.controls[0], [9.0, 1.0])


def test_derivatives_of_servo_forces():
    m, qd = arm(), np.array([0.2, -0.4])
    by_q, by_qd = (kt.differentiate(kt.driving_force, wrt=w)(m, START, qd, U) for w in ("q", "qd"))
    np.testing.assert_allclose(by_q, np.diag([-50.0, -30 * 1.5**2]), atol=1e-12)
    np.testing.assert_allclose(by_qd, np.diag([-3.0, -2 * 1.5**2]), atol=1e-12)


def test_the_actuation_matrix_is_joint_force_for_a_unit_of_force():
    m = arm()
    np.testing.assert_array_equal(m.actuation, np.diag([1.0, 1.5]))
    np.testing.assert_array_equal(kt.loops.actuation_matrix(m, START), m.actuation)
    cable = m.replace(
        tendons=[kt.Tendon("cable", (1, 2), (0.5, -2.0))],
        actuators=[kt.Actuator("pull", tendon="cable", gear=(3.0,))],
    )
    np.testing.assert_array_equal(cable.actuation, [[1.5], [-6.0]])
    pushed = m.replace(actuators=[kt.Actuator("push", frame="lower", gear=(0, 0, 0, 0, 0, 1.0))])
    with pytest.raises(kt.LoopError, match="'push' drives frame 'lower': what it comes to"):
        _ = pushed.actuation
    J = kt.jacobian(m, START, "lower", frame="body")
    np.testing.assert_allclose(kt.loops.actuation_matrix(pushed, START)[:, 0], J[5], atol=1e-15)


# --- loops, and joints that follow ---------------------------------------------------------------


@pytest.mark.parametrize(
    "constraints", ["projection", "baumgarte", "charts", "generalized_alpha", "none"]
)
def test_servos_on_a_loop(constraints):
    m = kt.samples.four_bar()
    m = m.replace(actuators=[kt.Actuator("servo", 1, gain=(20,), bias=(0, -20, -1))])
    q = kt.loops.assemble(m)
    u = [q[0] + 0.2]
    found = kt.simulate(m, q, duration=0.1, controls=u, constraints=constraints)
    exact = kt.simulate(m, q, duration=0.1, controls=u, rtol=1e-10)
    tolerance = 2e-5 if constraints in ("generalized_alpha", "baumgarte", "none") else 1e-9
    np.testing.assert_allclose(found.q[-1], exact.q[-1], atol=tolerance)
    np.testing.assert_allclose(found.tau, kt.driving_force(m, found.q, found.qd, u), atol=1e-12)


def test_servos_of_loop_joints_and_of_followers():
    m = kt.samples.four_bar()
    m = m.replace(actuators=[kt.Actuator("servo", loop=1, gain=(20,), bias=(1, -20, -1))])
    q = kt.loops.assemble(m)
    qd = kt.loops.project_velocity(m, q, np.ones(m.nv))
    (at,), (rate,) = (
        kt.loops.loop_positions(m, q).values(),
        kt.loops.loop_velocities(m, q, qd).values(),
    )
    f = 20 * 0.3 + 1 - 20 * at[0] - rate[0]
    np.testing.assert_allclose(kt.actuator_forces(m, q, qd, [0.3]), [f], atol=1e-12)
    B = kt.loops.actuation_matrix(m, q)
    np.testing.assert_allclose(kt.driving_force(m, q, qd, [0.3]), B @ [f], atol=1e-12)
    geared = arm().replace(
        couplings=[kt.Coupling("gear", 2, 1, (0.1, -2.0, 0.3))],
        actuators=[kt.Actuator("servo", 2, (1.5,), gain=(20,), bias=(0, -20, -1))],
    )
    found = kt.simulate(geared, [0.3], duration=0.1, controls=[0.2])
    expected = kt.simulate(geared, [0.3], duration=0.1, forces=as_force(geared, [0.2]))
    np.testing.assert_allclose(found.q, expected.q, atol=1e-12)


# --- contact -------------------------------------------------------------------------------------


def leg():
    """A foot on a slide that a servo pushes against the ground."""
    b = kt.ModelBuilder("leg")
    weight = Inertia.from_mass_center(1.0, (0, 0, 0), 0.01 * np.eye(3))
    b.body("hip", joint=kt.Prismatic("z"), inertia=weight, joint_name="height")
    b.body("foot", on="hip", joint=kt.Prismatic("z"), inertia=weight, joint_name="leg")
    b.geometry(kt.model.geometry.Sphere(0.05), on="foot", name="foot")
    b.geometry(kt.model.geometry.Plane(), name="ground")
    b.actuator("servo", joint="leg", kp=400, kv=30)
    return b.build()


def _hip(t):
    """Height of the hip while the foot is on the ground, carried by spring and damper."""
    rate, turn, sag = 15.0, np.sqrt(400.0 - 15.0**2), 9.81 / 400
    return (
        0.45 - sag + sag * np.exp(-rate * t) * (np.cos(turn * t) + rate / turn * np.sin(turn * t))
    )


@pytest.mark.parametrize(
    ("kind", "tolerance"), [("TimeStepping", 5e-4), ("EventDriven", 1e-8), ("SoftContact", 4e-3)]
)
def test_servos_push_against_the_ground(kind, tolerance):
    m = leg()
    hardness = {"stiffness": 2e5, "damping": 2.0} if kind == "SoftContact" else {}
    contact = getattr(kt.contact, kind)(kt.contact.Scene(m), **hardness)
    options = {"duration": 0.1, "dt": 2e-3, "controls": [-0.4], "contact": contact}
    found = kt.simulate(m, [0.45, -0.4], **options)
    np.testing.assert_allclose(found.q[:, 0], _hip(found.t), atol=tolerance)
    tau = kt.driving_force(m, found.q, found.qd, [-0.4])
    np.testing.assert_allclose(found.tau, tau, atol=1e-12)


def test_stiff_servos_are_implicit_in_steps_with_contact():
    m, kp, kv = leg(), 4e4, 4e3
    m = m.replace(actuators=[kt.Actuator("stiff", 2, gain=(kp,), bias=(0, -kp, -kv))])
    contact = kt.contact.TimeStepping(kt.contact.Scene(m))  # explicit steps diverge above 0.5 ms
    found = kt.simulate(m, [0.5, -0.4], duration=0.5, dt=5e-3, controls=[-0.4], contact=contact)
    assert found.q[-1, 1] == pytest.approx(-0.4 + 9.81 / kp, abs=1e-5)
    law = (m, found.q[-1], found.qd[-1], np.array([-0.4]))
    slopes = [kt.differentiate(kt.driving_force, wrt=x)(*law) for x in ("q", "qd")]
    np.testing.assert_allclose(actuators.resistance(*law), [-np.diag(x) for x in slopes])
    weak = m.replace(actuators=[kt.Actuator("weak", 2, (1.0,), effort=(-1, 1), bias=(9, -9, -9))])
    assert not actuators.resistance(weak, *law[1:]).any()


# --- rollouts ------------------------------------------------------------------------------------


@kt.kernel
def _running(model, q, tau, controls):
    return (q * q).sum() + 0.1 * (tau * tau).sum() + (controls * controls).sum()


@kt.kernel
def _terminal(model, q, qd):
    return (q * q).sum() + 0.1 * (qd * qd).sum()


@kt.kernel
def _feedback(model, q, qd):
    return -q


@pytest.mark.parametrize("more", [{}, {"activation": "filter", "time_constant": 0.05}])
def test_rollouts_and_their_gradients(more):
    m, rng = arm(**more), np.random.default_rng(1)
    q, u = rng.normal(size=(3, 2)), 0.5 * rng.normal(size=(20, 3, 2))
    times = 2e-3 * np.arange(20)
    one = kt.simulate(m, q, duration=0.04, dt=2e-3, controls=kt.Recorded(times, u))
    rolled = kt.rollout(m, q, controls=u, steps=20, dt=2e-3)
    np.testing.assert_allclose(rolled.q, one.q, atol=1e-13)
    np.testing.assert_allclose(rolled.tau[:-1], one.tau[:-1], atol=1e-11)
    options = {"steps": 20, "dt": 2e-3, "running": _running, "terminal": _terminal}
    for controls in (u, u[:1], u[0, 0]):
        g = kt.rollout_gradient(m, q, controls=controls, **options)
        d = rng.normal(size=controls.shape)
        ahead, behind = (
            kt.rollout_gradient(m, q, controls=controls + s * d, **options).value
            for s in (1e-6, -1e-6)
        )
        product = (g.controls * d).sum(-1)
        product = product.sum(0) if controls.ndim == 3 else product
        np.testing.assert_allclose(product, (ahead - behind) / 2e-6, rtol=2e-6)


def test_rollouts_with_controls_by_a_kernel():
    m = arm()
    rolled = kt.rollout(m, START, controls=_feedback, steps=50, dt=2e-3)
    found = kt.simulate(m, START, duration=0.1, dt=2e-3, controls=lambda t, q, qd: -q)
    np.testing.assert_allclose(rolled.q, found.q, atol=1e-13)
    with pytest.raises(TraceError, match="follow from controls that are known beforehand"):
        kt.rollout(arm(activation="integrator"), START, controls=_feedback, steps=5)
    with pytest.raises(ModelError, match=r"joint forces .* or the controls of actuators"):
        kt.rollout(m, START, START, START, controls=U, steps=5)
    with pytest.raises(ModelError, match="model 'arm' has no actuators to control"):
        kt.rollout(m.replace(actuators=(), postures=()), START, controls=U, steps=5)
