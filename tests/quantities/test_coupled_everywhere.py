"""What is not in the catalogue of quantities honours couplings as well."""

import numpy as np
import pytest
from support.mechanisms import Reduction, geared_robot

import kinetree as kt
from kinetree import control, floating
from kinetree.errors import LoopError, ModelError, ShapeError
from kinetree.functional.layout import positions, velocities
from kinetree.joints import Free, Revolute
from kinetree.model import Actuator, Coupling, ModelBuilder, edit
from kinetree.samples.random_mechanisms import random_inertia
from kinetree.spatial import ops


@pytest.fixture(scope="module")
def robot():
    return geared_robot(np.random.default_rng(8))


@pytest.fixture
def state(robot, rng):
    return robot.random_configuration(rng), *rng.normal(size=(3, robot.nv))


def hand(**fields):
    """A turning palm, two fingers, and a third that is half way between."""
    rng = np.random.default_rng(2)
    b = ModelBuilder("hand", gravity=(0, 0, -9.81))
    b.body("palm", joint=Revolute("z"), inertia=random_inertia(rng), joint_name="palm")
    for name, axis in (("one", "y"), ("two", "x"), ("mid", "y")):
        b.body(name, on="palm", joint=Revolute(axis), at=(0.1, 0.2, 0), joint_name=name,
               inertia=random_inertia(rng))  # fmt: skip
    b.coupling("mean", joint="mid", sources=("one", "two"), weights=(0.5, 0.5))
    b.frame("tip", on="mid", at=(0.3, 0, 0))
    return b.build().replace(**fields)


# --- variables -----------------------------------------------------------------------------------


def test_states_go_to_all_joints_and_back(robot, state, rng):
    q, qd, qdd, _ = state
    r = Reduction(robot, q, qd)
    np.testing.assert_allclose(robot.expand(q), r.q, rtol=1e-13)
    np.testing.assert_allclose(robot.expand_velocity(q, qd), r.qd, rtol=1e-13)
    np.testing.assert_allclose(robot.expand_acceleration(q, qd, qdd), r.G @ qdd + r.g, rtol=1e-12)
    np.testing.assert_array_equal(robot.reduce(robot.expand(q)), q)
    np.testing.assert_array_equal(robot.reduce_velocity(r.qd), qd)
    many = np.stack([q, q + 0.1])
    np.testing.assert_allclose(robot.expand(many)[1], robot.expand(many[1]), rtol=1e-15)
    assert robot.expand_velocity(many, qd).shape == (2, robot.uncoupled.nv)
    off = robot.expand(q)
    off[-2] += 1e-3
    with pytest.raises(ShapeError, match=r"q violates coupling 'cam': joint 'cam_joint' is 0\.001"):
        robot.reduce(off)
    np.testing.assert_array_equal(robot.reduce(off, tolerance=np.inf), q)


def test_a_model_without_couplings_is_its_own(rng):
    model = kt.samples.double_pendulum()
    assert model.uncoupled is model
    assert kt.equivalence.lumped(hand()).couplings


def test_replacing_couplings_keeps_the_postures():
    model = hand(postures=(kt.Posture("up", (0.1, 0.2, 0.4)),))
    free = model.replace(couplings=())
    np.testing.assert_allclose(free.posture("up").q, (0.1, 0.2, 0.4, 0.3))
    again = free.replace(couplings=model.couplings)
    assert again.posture("up").q.tolist() == [0.1, 0.2, 0.4]
    assert again == model


def test_locking_what_leads_locks_what_follows():
    model = hand()
    partly = edit.lock(model, {"one": 0.2})
    assert partly.nv == 2
    q = np.array([0.3, 0.2, 0.4])
    np.testing.assert_allclose(
        kt.pose(partly, q[[0, 2]], "tip"), kt.pose(model, q, "tip"), atol=1e-15
    )
    bent = hand(couplings=(Coupling("cam", 4, sources=(2, 3), function=lambda a, b: a * b),))
    partly = edit.lock(bent, {"two": 0.4})
    np.testing.assert_allclose(kt.pose(partly, q[:2], "tip"), kt.pose(bent, q, "tip"), atol=1e-15)
    still = edit.lock(model, {"one": 0.2, "two": 0.4})
    assert still.nv == 1
    assert not still.couplings
    np.testing.assert_allclose(kt.pose(still, q[:1], "tip"), kt.pose(model, q, "tip"), atol=1e-15)
    with pytest.raises(ModelError, match="follows 'one' and 'two' by coupling 'mean'"):
        edit.lock(model, {"mid": 0.1})


# --- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["toml", "urdf", "xml"])
def test_differentials_go_through_files(ending, tmp_path):
    model = hand()
    kt.save(model, tmp_path / f"hand.{ending}")
    again = kt.load(tmp_path / f"hand.{ending}")
    (c,) = again.couplings
    assert (c.leaders, c.shares, c.coefficients) == ((2, 3), (0.5, 0.5), (0.0, 1.0))
    assert kt.Model.from_dict(model.to_dict()) == model
    q = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(kt.mass_matrix(again, q), kt.mass_matrix(model, q), rtol=1e-12)


def test_functions_are_not_written(tmp_path):
    model = hand(couplings=(Coupling("cam", 4, sources=(2,), function=lambda x: ops.sin(x)),))
    for write in (model.to_dict, lambda: kt.save(model, tmp_path / "x.toml"),
                  lambda: kt.save(model, tmp_path / "x.urdf")):  # fmt: skip
        with pytest.raises(ModelError, match="coupling 'cam' follows a function of Python, which"):
            write()
    with pytest.raises(
        kt.errors.InteropError, match="coupling 'cam' follows a function; an equality"
    ):
        kt.save(model, tmp_path / "x.xml")


def test_couplings_are_described_in_words():
    text = hand().summary()
    assert "coupling mean: mid = 0.5 one + 0.5 two" in text
    model = hand(couplings=(Coupling("cam", 4, sources=(2, 3), function=ops.atan2),))
    assert "coupling cam: mid = atan2(one, two)" in model.summary()


def test_what_a_coupling_rejects():
    with pytest.raises(ModelError, match="'c' has a source and sources; give the one or"):
        Coupling("c", 1, 2, sources=(3,))
    with pytest.raises(ModelError, match="'c' has 2 sources and 1 weights; it needs one for each"):
        Coupling("c", 1, sources=(2, 3), weights=(1.0,))
    with pytest.raises(ModelError, match="'c': a function takes the positions of its sources as"):
        Coupling("c", 1, function=ops.sin)
    with pytest.raises(ModelError, match="couplings lead in a circle: 'mid' -> 'two' -> 'mid'"):
        hand(couplings=(Coupling("a", 4, sources=(2, 3)), Coupling("b", 3, 4)))


# --- bodies and forces ---------------------------------------------------------------------------


def test_velocities_of_bodies_tell_those_of_the_joints_that_lead(robot, state):
    q, qd, *_ = state
    V = kt.jacobians(robot, q, frame="world") @ qd
    for method in ("least_squares", "joints"):
        found = kt.generalized_velocity(robot, q, V, frame="world", method=method)
        np.testing.assert_allclose(found.qd, qd, rtol=1e-9)
        assert found.rank == robot.nv


def test_torques_on_joints_are_worth_the_forces(rng):
    model = hand()
    q, tau = rng.normal(size=(2, 3))
    torques = kt.joint_torques(model, q, tau)
    forces = kt.forces_of_joint_torques(model, q, torques)
    np.testing.assert_allclose(kt.generalized_force(model, q, forces), tau, rtol=1e-9, atol=1e-12)


def test_floating_bases_carry_geared_joints(rng):
    palm = geared_robot(np.random.default_rng(5), root=Free(), dynamics=False)
    base = floating.of(palm)
    q, (qd, tau) = palm.random_configuration(rng), rng.normal(size=(2, palm.nv))
    tau[:6] = 0
    qdd = kt.forward_dynamics(palm, q, qd, tau)
    inner = floating.base_state(palm, q, qd)
    a_0, joints = floating.forward_dynamics(base, *inner[:3], tau[6:], inner[3])
    np.testing.assert_allclose(joints, qdd[6:], rtol=1e-8)
    _, forces = floating.inverse_dynamics(base, *inner[:3], joints, inner[3])
    np.testing.assert_allclose(forces, tau[6:], rtol=1e-8, atol=1e-9)
    assert a_0.shape == (6,)


# --- analysis and control ------------------------------------------------------------------------


def test_equations_of_motion_are_those_of_the_leaders(rng):
    model = hand()
    equations = kt.equations_of_motion(model)
    q, qd = rng.normal(size=(2, 3))
    values = dict(zip((*equations.q, *equations.qd), (*q, *qd), strict=True))
    H = np.array(equations.H.subs(values), dtype=float)
    np.testing.assert_allclose(H, kt.mass_matrix(model, q), rtol=1e-9)
    bias = np.array((equations.C + equations.g).subs(values), dtype=float).ravel()
    np.testing.assert_allclose(bias, kt.bias_force(model, q, qd), rtol=1e-8)


def test_linearization_is_the_derivative_of_the_dynamics(rng):
    model = hand()
    q, qd, tau = rng.normal(size=(3, 3))
    A, B = kt.linearize(model, q, qd, tau)[:2]
    h = 1e-6
    moved = [kt.forward_dynamics(model, q + s * e, qd, tau) for e in np.eye(3) for s in (h, -h)]
    derivatives = np.array(
        [(a - b) / (2 * h) for a, b in zip(moved[::2], moved[1::2], strict=True)]
    ).T
    np.testing.assert_allclose(A[3:, :3], derivatives, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(B[3:], kt.inverse_mass_matrix(model, q), rtol=1e-9)


def test_inverse_kinematics_moves_what_leads(rng):
    model = hand()
    q = np.array([0.3, 0.4, -0.2])
    found = kt.inverse_kinematics(model, "tip", kt.pose(model, q, "tip"), q0=q + 0.1)
    np.testing.assert_allclose(kt.pose(model, found.q, "tip"), kt.pose(model, q, "tip"), atol=1e-6)


def test_identification_finds_what_the_leaders_feel(rng):
    model = hand()
    q, qd, qdd = rng.normal(size=(3, 60, 3))
    tau = kt.inverse_dynamics(model, q, qd, qdd)
    base = kt.base_parameters(model)
    found = kt.identify(model, q, qd, qdd, tau)
    np.testing.assert_allclose(base.regressor(q, qd, qdd) @ found.values, tau, atol=1e-8)


def test_computed_torque_tracks_with_geared_joints():
    model = hand()
    law = control.ComputedTorque(
        model, lambda t: (np.full(3, 0.3), np.zeros(3), np.zeros(3)), kp=100.0
    )
    motion = kt.simulate(model, np.zeros(3), duration=1.5, controller=law)
    np.testing.assert_allclose(motion.q[-1], 0.3, atol=1e-3)


def test_rollouts_and_their_gradients_know_no_followers(rng):
    model = hand()
    q, qd = rng.normal(size=(2, 3)) * 0.1
    motion = kt.simulate(model, q, qd0=qd, duration=0.01, integrator="rk4", dt=1e-3)
    rolled = kt.rollout(model, q, qd, steps=10, dt=1e-3, integrator="rk4")
    np.testing.assert_allclose(np.asarray(rolled.q)[..., -1, :], motion.q[-1], atol=1e-12)


def test_the_motion_of_a_follower_can_be_requested(rng):
    model = hand()
    motion = kt.simulate(model, rng.normal(size=3), duration=0.05, dt=1e-2)
    mid = motion["mid"]
    np.testing.assert_allclose(mid.q, (motion.q[:, 1] + motion.q[:, 2]) / 2)
    np.testing.assert_allclose(mid.qd, (motion.qd[:, 1] + motion.qd[:, 2]) / 2)
    assert not mid.tau.any()
    assert len(velocities(model)) == len(positions(model)) == 3


def test_an_actuator_of_a_cam_depends_on_the_configuration():
    cam = Coupling("cam", 4, sources=(2, 3), function=lambda a, b: ops.sin(a) * b)
    model = hand(couplings=(cam,), actuators=(Actuator("m", 4, (2.0,)),))
    with pytest.raises(LoopError, match="which follows others by a ratio that varies"):
        _ = model.actuation
    from kinetree.loops.kinematics.loop_joints import actuation_matrix

    q = np.array([0.1, 0.4, 0.5])
    expected = [[0], [2 * np.cos(0.4) * 0.5], [2 * np.sin(0.4)]]
    np.testing.assert_allclose(actuation_matrix(model, q), expected)
    motion = kt.simulate(model, q, duration=0.01, controls=[1.0])
    np.testing.assert_allclose(motion.tau[0], np.ravel(expected), rtol=1e-9)


def test_compiled_and_exported_code_counts_the_leaders(tmp_path):
    model, q = hand(), np.array([0.1, 0.2, 0.3])
    found = kt.compile(kt.gravity_force, model)(q)
    np.testing.assert_allclose(found, kt.gravity_force(model, q), atol=1e-12)
    assert kt.operation_counts(model)
    text = kt.listing(kt.gravity_force, model)
    assert "gravity_force" in text


def test_health_and_doctor_take_geared_robots(robot, state):
    q, qd, *_ = state
    assert str(kt.health(robot, q, qd))
    assert isinstance(kt.check(robot), tuple)


# --- names of followers --------------------------------------------------------------------------


def _still(t):
    return 0.0, 0.0, 0.0


TOUCH = kt.contact.Contacts(np.zeros(1, int), np.ones(1, int), np.ones((1, 3)),
                            np.array([[0.0, 0.0, 1.0]]), np.zeros(1))  # fmt: skip
FOLLOWERS_BY_NAME = {
    "hybrid_dynamics": lambda m, x, name: kt.hybrid_dynamics(m, x, x, x, x, given=[name]),
    "hybrid_response": lambda m, x, name: kt.hybrid_response(m, x, given=name),
    "contact.forward_dynamics": lambda m, x, name: kt.contact.forward_dynamics(
        m, x, x, x, TOUCH, given=[name], qdd=x
    ),
    "contact.impact": lambda m, x, name: kt.contact.impact(m, x, x, TOUCH, given=[name]),
    "simulate": lambda m, x, name: kt.simulate(m, x, duration=0.01, prescribed={name: _still}),
    "rollout": lambda m, x, name: kt.rollout(
        m, x, x, steps=1, dt=0.01, prescribed={name: _still}
    ),
    "assemble": lambda m, x, name: kt.loops.assemble(m, x, hold=[name]),
    "lqr": lambda m, x, name: control.LQR(m, x, Q=1.0, R=1.0, actuated=[name]),
}  # fmt: skip


@pytest.mark.parametrize("call", FOLLOWERS_BY_NAME.values(), ids=FOLLOWERS_BY_NAME)
def test_naming_a_follower_as_variable_raises_an_error_that_names_its_leader(call):
    message = (
        "joint 'mid' of model 'hand' follows 'one' and 'two' by coupling 'mean', so it has no "
        "independent variables and cannot .*: name 'one' and 'two' in its place"
    )
    with pytest.raises(ModelError, match=message):
        call(hand(), np.zeros(3), "mid")


def test_a_joint_that_is_held_is_rejected():
    model = hand(couplings=(Coupling("stop", 4, 0, (0.3,)),))
    with pytest.raises(
        ModelError, match=r"'mid' of model 'hand' is held by coupling 'stop'.*leave"
    ):
        kt.hybrid_response(model, np.zeros(3), given=["mid"])
