"""Controllers request from motors what springs, dampers and friction of joints do not do."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import conditioning, random_state

import kinetree as kt
from kinetree.control.equilibria import holding_forces, motion_under, motor_forces

LINK = kt.shapes.box(0.06, 0.05, 0.4, mass=1.5, at=(0, 0, 0.2))
SPRUNG = kt.JointDynamics(damping=0.4, friction=0.3, stiffness=7.0, rest=0.2)


@pytest.fixture
def model():
    return (
        kt.ModelBuilder("sprung arm")
        .body("upper", joint=kt.Revolute("y"), inertia=LINK, dynamics=SPRUNG)
        .body("fore", on="upper", joint=kt.Revolute("y"), at=(0, 0, 0.4), inertia=LINK,
              dynamics=kt.JointDynamics(stiffness=3.0, armature=0.05))
        .body("tip", on="fore", joint=kt.Spherical(), at=(0, 0, 0.4), inertia=LINK,
              dynamics=kt.JointDynamics(damping=(0.1, 0.2, 0.3)))
        .build()
    )  # fmt: skip


def test_motors_and_joints_together_make_the_motion(model, rng):
    q, qd, qdd = random_state(model, rng)
    tau = motor_forces(model, q, qd, qdd)
    together = tau + kt.passive_force(model, q, qd)
    condition = conditioning(model, q)
    assert_close(together, kt.inverse_dynamics(model, q, qd, qdd))
    assert_close(motion_under(model, q, qd, tau), qdd, condition=condition)
    still = np.zeros(model.nv)
    at_rest = motion_under(model, q, still, holding_forces(model, q))
    scale = np.max(np.abs(kt.inverse_mass_matrix(model, q) @ kt.gravity_force(model, q)))
    assert_close(at_rest, still, scale=scale, condition=condition)


def test_controllers_account_for_what_the_joints_do(model, rng):
    q, qd, qdd = random_state(model, rng)
    reference = lambda t: (q, qd, qdd)  # noqa: E731
    wanted = motor_forces(model, q, qd, qdd)
    assert_close(kt.control.ComputedTorque(model, reference, kp=50.0)(0.0, q, qd), wanted)
    follow = kt.control.PDWithFeedforward(model, reference, kp=5.0, kd=1.0)
    assert_close(follow(0.0, q, qd), wanted)
    hold = kt.control.PDWithFeedforward(model, q, kp=5.0, kd=1.0, feedforward="gravity")
    assert_close(hold(0.0, q, np.zeros(model.nv)), holding_forces(model, q))


def test_linear_model_has_springs_and_dampers(model, rng):
    q, qd, tau = random_state(model, rng)
    A, B = kt.linearize(model, q, qd, tau)
    n, h = model.nv, 1e-6
    for k, e in enumerate(np.eye(n)):
        ahead = motion_under(model, model.integrate(q, h * e), qd, tau)
        behind = motion_under(model, model.integrate(q, -h * e), qd, tau)
        np.testing.assert_allclose(A[n:, k], (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-4)
        ahead = motion_under(model, q, qd + h * e, tau)
        behind = motion_under(model, q, qd - h * e, tau)
        np.testing.assert_allclose(A[n:, n + k], (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-4)
    assert_close(B[n:], kt.inverse_mass_matrix(model, q), condition=conditioning(model, q))


def test_a_damped_pendulum_has_the_poles_of_the_textbook():
    ball = kt.shapes.point(mass=2.0, at=(0, 0, -0.5))
    dynamics = kt.JointDynamics(damping=0.3, stiffness=1.2)
    model = kt.ModelBuilder().body("ball", joint=kt.Revolute("y"), inertia=ball,
                                   dynamics=dynamics).build()  # fmt: skip
    A, _ = kt.linearize(model, [0.0], [0.0], [0.0])
    inertia, stiffness = 2.0 * 0.5**2, 2.0 * 9.81 * 0.5 + 1.2
    assert_close(A, [[0, 1], [-stiffness / inertia, -0.3 / inertia]])
    regulator = kt.control.LQR(model, [0.0], Q=1.0, R=1.0)
    assert np.all(regulator.poles.real < 0)


def test_springs_balance_what_motors_do_not_drive(model):
    tree = kt.ModelBuilder("one spring").body("bar", joint=kt.Revolute("y"), inertia=LINK,
        dynamics=kt.JointDynamics(stiffness=40.0)).build()  # fmt: skip
    q, tau = kt.control.equilibrium(tree, [0.3], actuated=[])
    assert_close(tau, [0.0])
    weight = kt.gravity_force(tree, q)
    assert_close(kt.passive_force(tree, q, [0.0]), weight, scale=40.0)


def test_a_sprung_damped_arm_follows_its_reference_in_simulation():
    model = (
        kt.ModelBuilder("sprung arm")
        .body("upper", joint=kt.Revolute("y"), inertia=LINK,
              dynamics=kt.JointDynamics(damping=0.4, stiffness=7.0, rest=0.2))
        .body("fore", on="upper", joint=kt.Revolute("y"), at=(0, 0, 0.4), inertia=LINK,
              dynamics=kt.JointDynamics(stiffness=3.0, damping=0.1))
        .build()
    )  # fmt: skip
    goal = np.array([0.7, -0.4])
    follow = kt.control.ComputedTorque(model, goal, kp=100.0)
    motion = kt.simulate(model, [0.0, 0.0], duration=2.0, dt=1e-3, controller=follow)
    np.testing.assert_allclose(motion.q[-1], goal, atol=1e-4)
    assert abs(motion.report.energy_error) < 1e-6


@pytest.mark.parametrize(
    "make",
    [
        lambda m, **more: kt.control.ComputedTorque(m, m.neutral(), 1.0, **more),
        lambda m, **more: kt.control.GravityCompensation(m, **more),
        lambda m, **more: kt.control.PDWithFeedforward(m, m.neutral(), 1.0, 1.0, **more),
    ],
)
def test_joints_without_motors_are_not_pushed(make):
    dog = kt.samples.quadruped()
    with pytest.raises(kt.ModelError, match=r"joints 'root' of model 'quadruped' have none"):
        make(dog)
    assert make(dog, actuated=dog.joint_names)(0.0, dog.neutral(), np.zeros(18)).shape == (18,)
    with pytest.raises(kt.ModelError, match="OperationalSpaceControl needs a motor for every"):
        kt.control.OperationalSpaceControl(dog, "trunk", np.eye(4), 1.0)
    legs = kt.control.PDWithFeedforward(dog, dog.neutral(), 1.0, 1.0, feedforward=None)
    tau = legs(0.0, dog.neutral(), np.ones(18))
    assert np.all(tau[:6] == 0)
    assert np.all(tau[6:] == -1)
