"""Motions with tendons through space: against MuJoCo, and the same through every door."""

import mujoco
import numpy as np
import pytest
from support.mujoco_mechanisms import loaded
from support.spatial_tendons import random_mjcf, random_muscles

import kinetree as kt
from kinetree.interop import mujoco as M

FINGER = """<mujoco><worldbody>
<site name="hole" pos="0 0 -.02"/>
<body name="near"><joint name="j1" axis="0 1 0" damping=".002"/>
<geom type="capsule" fromto="0 0 0 .1 0 0" size=".01" contype="0" conaffinity="0"/>
<geom name="knuckle" type="cylinder" size=".012 .01" pos=".1 0 0" euler="90 0 0" mass=".01"
contype="0" conaffinity="0"/><site name="below" pos=".1 0 -.03"/>
<body name="far" pos=".1 0 0"><joint name="j2" axis="0 1 0" damping=".002"/>
<geom type="capsule" fromto="0 0 0 .1 0 0" size=".01" contype="0" conaffinity="0"/>
<site name="pin" pos=".05 0 -.015"/></body></body></worldbody>
<tendon><spatial name="flexor" stiffness="30" damping=".1" springlength=".1 .14">
<site site="hole"/><geom geom="knuckle" sidesite="below"/><site site="pin"/></spatial></tendon>
<actuator><motor name="pull" tendon="flexor"/></actuator></mujoco>"""
Q, U, SPAN = np.array([0.3, 0.8]), np.array([-1.0]), 0.2


@pytest.fixture(scope="module")
def finger():
    return loaded(FINGER)


@pytest.fixture(scope="module")
def reference(finger):
    """Where MuJoCo's Runge–Kutta steps lead."""
    mj_model = mujoco.MjModel.from_xml_string(FINGER)
    mj_model.opt.integrator, mj_model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-4
    data = mujoco.MjData(mj_model)
    data.qpos[:], data.ctrl[:] = Q, U
    for _ in range(round(SPAN / 1e-4)):
        mujoco.mj_step(mj_model, data)
    return np.concatenate([data.qpos, data.qvel])


def test_simulated_fingers_move_as_in_mujoco(finger, reference):
    """Where the tendon leaves the knuckle, and where its spring becomes slack, orders end."""
    found = kt.simulate(finger, Q, duration=SPAN, dt=1e-4, integrator="rk4", controls=U)
    end = np.concatenate([found.q[-1], found.qd[-1]])
    np.testing.assert_allclose(end, reference, rtol=0, atol=1e-6)


def test_worlds_move_as_in_mujoco(finger, reference):
    """Steps of worlds are of second order; controls pull, springs are implicit."""
    errors = []
    for h in (1e-3, 5e-4, 2.5e-4):
        world = kt.World(timestep=h)
        robot = world.add(finger, q=Q)
        world.step(round(SPAN / h), control={robot.name: U})
        errors.append(np.abs(np.concatenate([world.q, world.qd]) - reference).max())
    assert errors[0] < 0.05
    assert errors[2] < errors[0] / 8


def test_batches_take_the_same_motions(finger):
    found = kt.simulate(finger, Q, duration=0.02, dt=1e-3, integrator="rk4", controls=U)
    q = np.tile(Q, (3, 1))
    q[1:] += 0.1
    many = kt.rollout(finger, q, controls=U, steps=20, dt=1e-3, integrator="rk4")
    np.testing.assert_allclose(many.q[-1][0], found.q[-1], rtol=0, atol=1e-12)


def cup(**tendon):
    """A ball on a string that hangs from a handle."""
    return (
        kt.ModelBuilder("ball on a string")
        .body("ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.02, mass=0.1))
        .frame("handle", at=(0, 0, 1.0))
        .tendon("string", path=("handle", "ball"), **tendon)
        .build()
    )


def test_a_ball_on_a_string_hangs_and_swings():
    """The string has a largest length: the ball falls, then it swings at that length."""
    world = kt.World(timestep=1e-3)
    ball = world.add(cup(upper=0.4), q=[0.3, 0, 1.0, 1, 0, 0, 0])
    distances, energies = [], []
    for _ in range(800):
        world.step()
        distances.append(np.linalg.norm(ball.q[:3] - [0, 0, 1.0]))
        energies.append(0.1 * 9.81 * ball.q[2] + 0.05 * np.sum(np.square(ball.qd[3:])))
    assert max(distances) == pytest.approx(0.4, abs=1e-5)
    assert distances[300] == pytest.approx(0.4, abs=1e-5)
    assert np.ptp(energies[400:]) < 1e-5


def test_strings_stop_and_rub_without_contact_too(finger):
    """Stiff ends and smooth friction, which simulations in flight have."""
    model = cup(upper=0.4, friction=0.05)
    start = [0.3, 0, 1.0, 1, 0, 0, 0]
    found = kt.simulate(model, start, duration=0.8, dt=1e-3)
    lengths = kt.tendon_lengths(model, found.q)[:, 0]
    assert 0.4 < lengths.max() < 0.42
    with pytest.raises(kt.errors.ModelError, match="tendon 'string'"):
        kt.simulate(model, start, duration=0.1, dt=1e-3, limits="rigid")


def test_sensors_and_springs_see_the_length(finger):
    model = finger.replace(
        sensors=(
            kt.Sensor("length", "tendonpos", "flexor"),
            kt.Sensor("rate", "tendonvel", "flexor"),
        )
    )
    qd = np.array([1.0, -2.0])
    L, J = kt.tendon_lengths(model, Q), kt.tendon_jacobian(model, Q)
    readings = kt.sensor_readings(model, Q, qd)
    np.testing.assert_allclose(readings, [L[0], (J @ qd)[0]], rtol=0, atol=1e-14)
    slack = model.replace(tendons=[kt.Tendon("t", path=model.tendons[0].path)], actuators=())
    pull = kt.passive_force(model, Q, 0 * qd) - kt.passive_force(slack, Q, 0 * qd)
    away = max(L[0] - 0.14, 0.0) + min(L[0] - 0.1, 0.0)
    np.testing.assert_allclose(pull, -30 * away * J[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_models_with_muscles_move_as_in_mujoco(seed):
    """The same integrator in the same steps has the same errors: what differs is rounding."""
    rng = np.random.default_rng(seed)
    spring = 'stiffness="7" damping="0.4" springlength="0.5 0.9"'
    muscles = random_muscles(rng, 3, "general")
    text = random_mjcf(rng, bodies=3, tendons=3, within=False, attributes=spring, actuators=muscles)
    mj_model, model = mujoco.MjModel.from_xml_string(text), loaded(text)
    mj_model.opt.integrator, mj_model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-4
    q, u, data = model.random_configuration(rng), rng.uniform(size=3), mujoco.MjData(mj_model)
    data.qpos[:], data.ctrl[:] = M.to_q(model, mj_model, q), u
    mujoco.mj_step(mj_model, data, 300)
    found = kt.simulate(model, q, duration=0.03, dt=1e-4, integrator="rk4", controls=u)
    theirs = M.from_q(model, mj_model, data.qpos)
    assert np.abs(model.difference(q, theirs)).max() > 1e-3
    np.testing.assert_allclose(model.difference(found.q[-1], theirs), 0, atol=1e-9)
    rates = M.from_v(model, mj_model, data.qpos, data.qvel)
    np.testing.assert_allclose(found.qd[-1], rates, rtol=0, atol=1e-8 * np.abs(rates).max())
