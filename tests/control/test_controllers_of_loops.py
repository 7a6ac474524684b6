"""Controllers of mechanisms with loops: the independent coordinates do what is wanted of them."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.control.equilibria import motor_forces

FIVE_BAR = kt.samples.five_bar()
CRANKS = ["link1_joint", "link4_joint"]
STEWART = kt.samples.stewart()


def closed_state(model, seed=0, spread=0.2):
    """A state that the loops allow, and joint accelerations of any kind."""
    rng = np.random.default_rng(seed)
    step = spread * rng.standard_normal(model.nv)
    q = kt.loops.assemble(model, model.integrate(model.neutral(), step))
    qd = kt.loops.project_velocity(model, q, spread * rng.standard_normal(model.nv))
    return q, qd, rng.standard_normal(model.nv)


def accelerations(model, q, qd, tau):
    return kt.forward_dynamics(model, q, qd, tau + kt.passive_force(model, q, qd))


@pytest.mark.parametrize("independent", [None, ["link1_joint", "link2_joint"], CRANKS])
def test_errors_of_independent_coordinates_decay_as_those_of_a_unit_mass(independent):
    q, qd, qdd_r = closed_state(FIVE_BAR)
    q_r, qd_r = closed_state(FIVE_BAR, seed=1)[:2]
    follow = kt.control.ComputedTorque(
        FIVE_BAR, lambda t: (q_r, qd_r, qdd_r), kp=30.0, kd=7.0, independent=independent
    )
    qdd = accelerations(FIVE_BAR, q, qd, follow(0.0, q, qd))
    names = kt.loops.independent(FIVE_BAR) if independent is None else independent
    at = [FIVE_BAR.joint_names.index(name) for name in names]
    wanted = qdd_r + 7.0 * (qd_r - qd) + 30.0 * (q_r - q)
    np.testing.assert_allclose(qdd[at], wanted[at], rtol=1e-9)


def test_motors_alone_exert_forces_and_a_simulation_arrives():
    """Two cranks are driven; the error decays as (1 + ωt) exp(-ωt)."""
    model = FIVE_BAR.replace(
        actuators=[kt.Actuator(name, FIVE_BAR.joint_index(name)) for name in CRANKS[:1]]
        + [kt.Actuator("elbow", FIVE_BAR.joint_index("link2_joint"))]
    )
    driven = ["link1_joint", "link2_joint"]
    goal = kt.loops.assemble(model, np.array([0.2, -0.1, 0.0, 0.0]), hold=driven)
    start = model.neutral()
    go = kt.control.ComputedTorque(model, goal, kp=9.0, independent=driven)
    tau = go(0.0, start, np.zeros(4))
    assert np.all(tau[2:] == 0)
    assert np.all(tau[:2] != 0)
    motion = kt.simulate(model, start, duration=0.5, dt=2e-3, controller=go)
    left = (1 + 1.5) * np.exp(-1.5)
    np.testing.assert_allclose((motion.q[-1] - goal)[:2], left * (start - goal)[:2], rtol=0.02)
    assert np.abs(kt.loops.closure_error(model, motion.q[-1])).max() < 1e-9


def test_batches_and_samples_agree():
    states = [closed_state(FIVE_BAR, seed)[:2] for seed in range(3)]
    q, qd = (np.array(part) for part in zip(*states, strict=True))
    for control in (
        kt.control.ComputedTorque(FIVE_BAR, FIVE_BAR.neutral(), kp=10.0),
        kt.control.GravityCompensation(FIVE_BAR, damping=0.3),
        kt.control.PDWithFeedforward(FIVE_BAR, FIVE_BAR.neutral(), 10.0, 1.0),
    ):
        many = control(0.0, q, qd)
        for k in range(3):
            np.testing.assert_allclose(many[k], control(0.0, q[k], qd[k]), atol=1e-10)


def test_weight_is_carried_by_the_driven_joints_alone():
    """The motor of a crank carries it; a spring at the rocker goes on pushing."""
    model = kt.samples.four_bar().replace(
        dynamics={"rocker_joint": kt.JointDynamics(stiffness=5.0, rest=0.3)}
    )
    q, still = closed_state(model)[0], np.zeros(3)
    tau = kt.control.GravityCompensation(model)(0.0, q, still)
    assert np.all(tau[1:] == 0)
    assert np.abs(kt.forward_dynamics(model, q, still, tau)).max() < 1e-9
    damped = kt.control.GravityCompensation(model, damping=2.0)(0.0, q, still + 1.0)
    np.testing.assert_allclose(damped, tau - [2.0, 0.0, 0.0])


def test_springs_at_the_cranks_bring_a_linkage_to_rest():
    goal = kt.loops.assemble(FIVE_BAR, np.array([0.3, -0.2, 0.1, 0.0]), hold=["link1_joint"])
    hold = kt.control.PDWithFeedforward(FIVE_BAR, goal, 60.0, 25.0, feedforward="gravity")
    still = np.zeros(4)
    assert np.abs(kt.forward_dynamics(FIVE_BAR, goal, still, hold(0.0, goal, still))).max() < 1e-9
    motion = kt.simulate(FIVE_BAR, FIVE_BAR.neutral(), duration=3.0, dt=1e-2, controller=hold)
    assert np.abs(motion.q[-1] - goal).max() < 0.1 * np.abs(goal).max()
    ahead = kt.control.PDWithFeedforward(FIVE_BAR, lambda t: (*state, qdd), 60.0, 25.0)
    q, qd, qdd = closed_state(FIVE_BAR)
    state = (q, qd)
    motion = kt.loops.null_space(FIVE_BAR, q, qd)
    at = [FIVE_BAR.joint_names.index(name) for name in motion.coordinates]
    wanted = motion.G @ qdd[at] + motion.g
    np.testing.assert_allclose(
        kt.forward_dynamics(FIVE_BAR, q, qd, ahead(0.0, q, qd)), wanted, rtol=1e-8
    )


def test_a_platform_follows_a_pose():
    q, qd, _ = closed_state(STEWART, spread=0.03)
    goal = kt.pose(STEWART, STEWART.neutral(), "platform")
    goal[:3, 3] += 0.03, -0.02, 0.05
    reach = kt.control.OperationalSpaceControl(STEWART, "platform", goal, kp=40.0, kd=5.0)
    tau = reach(0.0, q, qd)
    qdd = accelerations(STEWART, q, qd, tau)
    J = kt.jacobian(STEWART, q, "platform", frame="aligned")
    a = J @ qdd + kt.jacobian_rate(STEWART, q, qd, "platform", frame="aligned") @ qd
    wanted = 40.0 * (goal[:3, 3] - kt.pose(STEWART, q, "platform")[:3, 3]) - 5.0 * (J @ qd)[3:]
    np.testing.assert_allclose(a[3:], wanted, rtol=1e-8, atol=1e-8)
    legs = [STEWART.v_slice[STEWART.joint_index(f"leg{i}_stroke")].start for i in range(1, 7)]
    assert np.all(np.delete(tau, legs) == 0)


def test_what_a_frame_leaves_free_follows_a_posture():
    """The middle pin of a five-bar takes both freedoms; along y, where it cannot move, none."""
    q, qd, _ = closed_state(FIVE_BAR)
    posture = closed_state(FIVE_BAR, seed=2)[0]
    point = kt.pose(FIVE_BAR, q, "link3")[:3, 3] + [0.1, 0.0, 0.05]
    reach = kt.control.OperationalSpaceControl(
        FIVE_BAR, "link3", point, kp=20.0, task="position", posture=posture, independent=CRANKS
    )
    qdd = accelerations(FIVE_BAR, q, qd, reach(0.0, q, qd))
    J = kt.jacobian(FIVE_BAR, q, "link3", frame="aligned")[3:]
    a = J @ qdd + kt.jacobian_rate(FIVE_BAR, q, qd, "link3", frame="aligned")[3:] @ qd
    wanted = 20.0 * (point - kt.pose(FIVE_BAR, q, "link3")[:3, 3]) - 2 * np.sqrt(20.0) * (J @ qd)
    np.testing.assert_allclose(a[[0, 2]], wanted[[0, 2]], rtol=1e-6)


def test_coordinates_are_rejected_where_they_make_no_sense():
    with pytest.raises(kt.LoopError, match="has no loops"):
        kt.control.ComputedTorque(kt.samples.arm(), np.zeros(6), 1.0, independent=["upper_joint"])
    with pytest.raises(kt.LoopError, match="2 degrees of freedom"):
        kt.control.ComputedTorque(FIVE_BAR, np.zeros(4), 1.0, independent=["link1_joint"])


@pytest.mark.parametrize("model", [FIVE_BAR, STEWART], ids=lambda m: m.name)
def test_forces_by_small_products_are_those_of_inverse_dynamics(model, rng):
    """The quick way to the smallest forces of the motors, and the one that decides ranks."""
    q = kt.loops.assemble(model, model.neutral())
    along = kt.loops.null_space(model, q, np.zeros(model.nv))
    qd = along.G @ (0.1 * rng.standard_normal(along.G.shape[1]))
    control = kt.control.ComputedTorque(model, q, kp=10.0)
    wanted = -2 * np.sqrt(10.0) * qd
    exact = motor_forces(model, q, qd, control.freedoms.allowed_acceleration(q, qd, wanted))
    assert np.abs(control(0.0, q, qd) - exact).max() < 1e-9 * np.abs(exact).max()
