"""One physics: the same robot at defaults through every door."""

import dataclasses

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Scene, TimeStepping
from kinetree.model import Actuator, JointDynamics, Limits
from kinetree.model.geometry import Sphere
from kinetree.spatial import Inertia

STEPS, DT, CONTROL = 500, 2e-3, 0.6
LINK = Inertia.from_mass_center(1.0, np.array([0.0, 0.0, -0.2]), 0.01 * np.eye(3))


def servo_arm():
    """A servo that wants to go beyond the limit of its joint, which has friction, and an elbow."""
    b = kt.ModelBuilder("arm")
    b.body("upper", joint=kt.Revolute("y"), inertia=LINK, joint_name="shoulder",
           limits=Limits((-0.3,), (0.3,)), dynamics=JointDynamics(friction=(0.05,)))  # fmt: skip
    b.body("lower", on="upper", joint=kt.Revolute("y"), at=(0, 0, -0.4), inertia=LINK,
           joint_name="elbow", dynamics=JointDynamics(damping=(0.3,), friction=(0.1,)))  # fmt: skip
    b.geometry(Sphere(0.05), on="lower", at=(0, 0, -0.4))
    servo = Actuator("servo", 1, gain=(40.0, 0.0, 0.0), bias=(0.0, -40.0, -4.0))
    return b.build().replace(actuators=[servo])


def world(**options):
    found = kt.World(timestep=DT, **options)
    found.add_ground(height=-5.0)
    found.add(servo_arm(), name="arm")
    return found


def touching():
    model = kt.contact.with_ground(servo_arm(), point=(0, 0, -5.0))
    return model, TimeStepping(Scene(model))


def controlled(model, steps=STEPS, **options):
    """The state after so many steps of an environment, whose action is the control."""

    @kt.kernel
    def observe(m, q, qd):
        return np.concatenate([q, qd])

    @kt.kernel
    def reward(m, q):
        return 0 * q[0]

    @kt.kernel
    def reset(m):
        return {"q": np.zeros(2)}

    env = kt.learning.Environment(
        model, 1, observe=observe, reward=reward, reset=reset, dt=DT, episode=None, **options
    )
    for _ in range(steps):
        env.step(np.full((1, 1), CONTROL))
    return env.state["q"][0], env.state["qd"][0]


def of_world():
    found = world()
    found.step(STEPS, np.array([CONTROL]))
    return found.q, found.qd


def of_batch():
    found = world().batch(2)
    found.step(STEPS, np.array([CONTROL]))
    return found.q[1], found.qd[1]


def simulated(model, *start, **options):
    found = kt.simulate(
        model, *start, duration=STEPS * DT, dt=DT, controls=np.array([CONTROL]), **options
    )
    return found.q[-1], found.qd[-1]


def rolled(model, *start, **options):
    found = kt.rollout(model, *start, steps=STEPS, dt=DT, controls=np.array([CONTROL]), **options)
    return found.q[-1], found.qd[-1]


RIGID = {
    "World": of_world,
    "world.batch": of_batch,
    "simulate(world)": lambda: simulated(world()),
    "rollout(world)": lambda: rolled(world()),
    "Environment(world)": lambda: controlled(world()),
    "simulate": lambda: simulated(touching()[0], np.zeros(2), contact=touching()[1]),
    "rollout": lambda: rolled(touching()[0], np.zeros(2), contact=touching()[1]),
    "Environment": lambda: controlled(touching()[0], contact=touching()[1]),
}
SMOOTH = {
    "simulate": lambda: simulated(servo_arm(), np.zeros(2)),
    "rollout": lambda: rolled(servo_arm(), np.zeros(2)),
    "Environment": lambda: controlled(servo_arm(), integrator="rk4"),
}


@pytest.mark.parametrize("door", RIGID)
def test_a_servo_at_its_limit_with_rigid_contact(door):
    (q, qd), (first, _) = RIGID[door](), RIGID["World"]()
    assert q[0] == pytest.approx(0.3, abs=1e-9)
    assert np.abs(q - first).max() < 1e-6
    assert np.abs(qd).max() < 1e-2


@pytest.mark.parametrize("door", SMOOTH)
def test_a_servo_at_its_limit_with_an_integrator(door):
    (q, qd), (first, speed) = SMOOTH[door](), SMOOTH["simulate"]()
    assert 0.3 < q[0] < 0.305
    assert np.abs(q - first).max() < 1e-12
    assert np.abs(qd - speed).max() < 1e-11


def test_an_explicit_law_holds_for_worlds():
    soft = simulated(world(), limits="stiff", friction="smooth")[0]
    assert 0.3 < soft[0] < 0.305
    assert rolled(world(), limits=None)[0][0] > 0.35


def test_torque_speed_curves_act_in_simulate_and_in_rollouts():
    grounded, contact = touching()
    slow = {"motors": {"servo": kt.TorqueSpeed(stall=2.0, free_speed=1.5)}, "limits": None}
    start, u = np.zeros(2), np.array([CONTROL])
    exact = {"contact": contact, "friction": "exact"}
    for model, own in ((servo_arm(), {"friction": None}), (grounded, exact)):
        given = slow | own
        ours = kt.simulate(model, start, duration=0.1, dt=DT, controls=lambda *_: u, **given)
        rolled = kt.rollout(model, start, steps=50, dt=DT, controls=u, **given)
        free = kt.rollout(model, start, steps=50, dt=DT, controls=u, **given | {"motors": None})
        assert np.abs(rolled.q - ours.q).max() < 1e-12
        assert rolled.qd[-1, 0] < 1.5 < 2.0 < free.qd[-1, 0]


SLOW = {"arm.servo": kt.TorqueSpeed(stall=2.0, free_speed=1.5)}


def driven(door, motors):
    """The state after 50 steps with curves of motors."""
    given = {"controls": np.array([CONTROL])}
    own = world(motors=motors, limits=None)
    if door == "batch":
        own = own.batch(2)
        own.step(50, given["controls"])
        return own.q[1], own.qd[1]
    if door == "simulate":
        end = kt.simulate(own, duration=50 * DT, **given)
        return end.q[-1], end.qd[-1]
    if door == "rollout":
        end = kt.rollout(own, steps=50, **given)
        return end.q[-1], end.qd[-1]
    if door == "Environment":
        return controlled(own, steps=50)
    if door == "with a force":
        end = kt.simulate(
            own, duration=50 * DT, forces=kt.kernel(lambda m, t, q, qd: 0 * q), **given
        )
        return end.q[-1], end.qd[-1]
    own.step(50, given["controls"])
    return own.q, own.qd


@pytest.mark.parametrize("door", ["batch", "simulate", "rollout", "Environment", "with a force"])
def test_torque_speed_curves_of_a_world_act_through_every_door(door):
    (q, qd), (first, speed) = driven(door, SLOW), driven("World", SLOW)
    assert 0.3 < speed[0] < 1.5 < driven("World", None)[1][0]
    assert np.abs(q - first).max() < 1e-12
    assert np.abs(qd - speed).max() < 1e-10


def test_a_flat_curve_is_a_limit_of_effort_and_is_kept(tmp_path):
    flat = kt.TorqueSpeed(speeds=(0.0, 1e3), forces=(4.0, 4.0))
    own, limited = world(motors={"arm.servo": flat}), world()
    servo = limited.model.actuators[0]
    limited = limited.with_model(
        limited.model.replace(actuators=[dataclasses.replace(servo, effort=(-4.0, 4.0))])
    )
    again = kt.World.load(own.save(tmp_path / "world.npz"))
    copied = own.copy()
    for found in (own, copied, again, limited):
        found.step(100, np.array([CONTROL]))
    for found in (copied, again, limited):
        np.testing.assert_array_equal(found.qd, own.qd)


def test_worlds_check_their_motors():
    with pytest.raises(TypeError, match="must be a TorqueSpeed, got float"):
        world(motors={"arm.servo": 3.0})
    with pytest.raises(kt.UnknownNameError, match="has no actuator 'servo'"):
        world(motors={"servo": SLOW["arm.servo"]}).step()


def test_gradients_of_rollouts_see_torque_speed_curves():
    model, slow = servo_arm(), {"servo": kt.TorqueSpeed(stall=2.0, free_speed=1.5)}
    given = {"steps": 3, "dt": DT, "motors": slow, "friction": None, "limits": None}
    cost = kt.kernel(lambda m, qd: qd[0])
    u, start = np.array([0.04]), (np.zeros(2), np.zeros(2))  # which a curve at 2 N·m lets through

    def gradient(u):
        return kt.rollout_gradient(model, *start, controls=u, terminal=cost, **given).controls

    assert abs(gradient(u)[0]) > 0
    assert gradient(np.array([CONTROL]))[0] == 0.0
