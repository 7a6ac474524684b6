"""Environments of mechanisms and scenes that unrolled code does not take: as rollouts of them."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Scene, TimeStepping
from kinetree.learning.engine_steps import EnginePhysics
from kinetree.model import Actuator
from kinetree.model.geometry import Box, HeightField, Plane, Sphere, Surface
from kinetree.spatial import Inertia

LINK = Inertia.from_mass_center(1.0, np.array([0.0, 0.0, -0.2]), 0.01 * np.eye(3))
BALL = Inertia.from_mass_center(0.5, np.zeros(3), 1e-3 * np.eye(3))


@kt.kernel
def state(m, q, qd):
    return np.concatenate([q, qd])


@kt.kernel
def nothing(m, q):
    return 0 * q[0]


def environment(model, q, worlds=3, **options):
    start = np.asarray(q, dtype=float)

    @kt.kernel
    def begin(m):
        return {"q": start}

    task = {"observe": state, "reward": nothing, "reset": begin, "dt": 2e-3, "episode": None}
    return kt.learning.Environment(model, worlds, **{**task, **options})


def taken(env, steps, action=None):
    """Positions and velocities after so many control steps, (worlds, nq) and (worlds, nv)."""
    action = np.zeros((env.worlds, env.action_size)) if action is None else action
    for _ in range(steps):
        env.step(action)
    return np.asarray(env.state["q"]), np.asarray(env.state["qd"])


def pendulum(*shapes, constraint=False):
    b = kt.ModelBuilder("pendulum")
    b.body("upper", joint=kt.Revolute("y"), inertia=LINK, joint_name="shoulder")
    b.body("lower", on="upper", joint=kt.Revolute("y"), at=(0, 0, -0.4), inertia=LINK,
           joint_name="elbow")  # fmt: skip
    if constraint:
        b.constraint("mirror", position=lambda model, q: np.array([q[0] + q[1]]), unit="rad")
    for shape, on, at, *more in shapes:
        b.geometry(shape, on=on, at=at, **(more[0] if more else {}))
    return b.build()


def ball(ground, surface=None):
    b = kt.ModelBuilder("ball").body("ball", joint=kt.Free(), inertia=BALL)
    b.geometry(Sphere(0.1), on="ball")
    b.geometry(ground, surface=surface)
    return b.build()


def test_a_world_in_which_nothing_can_touch():
    model = pendulum((Sphere(0.05), "lower", (0, 0, -0.4)))
    contact = TimeStepping(Scene(model, pairs=[]))
    q, qd = taken(environment(model, [0.3, 0.2], contact=contact), 50)
    expected = kt.rollout(model, [0.3, 0.2], steps=50, dt=2e-3, contact=contact)
    assert np.abs(q - expected.q[-1]).max() < 1e-5
    assert np.abs(qd - expected.qd[-1]).max() < 1e-5


@pytest.mark.parametrize("kind", ["loop", "own constraint"])
def test_loops_and_constraints(kind):
    if kind == "loop":
        model = kt.samples.four_bar()
        q0 = kt.loops.assemble(model, model.neutral())
    else:
        model, q0 = pendulum(constraint=True), np.array([0.3, -0.3])
    q0 = np.asarray(getattr(q0, "q", q0))
    options = {"steps": 60, "dt": 2e-3, "integrator": "semi_implicit_euler", "limits": None}
    env = environment(model, q0, decimation=3, limits=None)
    q, qd = taken(env, 20)
    expected = kt.rollout(model, q0, **options)
    assert np.abs(q - expected.q[-1]).max() < 1e-12
    assert np.abs(qd - expected.qd[-1]).max() < 1e-11
    assert np.abs(q - q0).max() > 1e-2


def test_a_loop_above_the_ground():
    model = kt.samples.four_bar()
    q0 = kt.loops.assemble(model, model.neutral())
    q0 = np.asarray(getattr(q0, "q", q0))
    model = kt.contact.with_ground(model, point=(0, 0, -2.0))
    contact = TimeStepping(Scene(model))
    q, _ = taken(environment(model, q0, contact=contact), 40)
    expected = kt.rollout(model, q0, steps=40, dt=2e-3, contact=contact)
    assert np.abs(q - expected.q[-1]).max() < 1e-6


def test_moving_surfaces_and_height_fields():
    belt = ball(Plane(), Surface(friction=0.5, velocity=(0.4, 0.0, 0.0)))
    hills = ball(HeightField(0.05 * np.random.default_rng(0).random((6, 6)), (1.0, 1.0)))
    for model, height in ((belt, 0.1), (hills, 0.2)):
        contact, q0 = TimeStepping(Scene(model)), model.neutral()
        q0[2] = height
        env = environment(model, q0, contact=contact, decimation=4)
        assert isinstance(env.program.physics, EnginePhysics)
        q, qd = taken(env, 50)
        expected = kt.rollout(model, q0, steps=200, dt=2e-3, contact=contact)
        assert np.abs(q - expected.q[-1]).max() < 1e-9, model.name
        assert np.abs(qd - expected.qd[-1]).max() < 1e-8
    assert np.abs(expected.qd[-1]).max() > 1e-4


@kt.kernel
def pulled(m, q, qd, action: (2,), gain: ()):
    return gain * (action - q) - 0.1 * qd


def boxes_on_a_table():
    """Too many rows to be unrolled: two boxes on the base, and one on a pendulum."""
    table = (Box((2.0, 2.0, 0.1)), None, (0, 0, -0.92))
    return pendulum(table, (Box((0.1, 0.1, 0.1)), "lower", (0, 0, -0.4)))


def test_the_engine_takes_actions_delays_parameters_and_friction():
    model = boxes_on_a_table()
    contact = TimeStepping(Scene(model))
    gain = np.array([1.0, 5.0, 20.0])
    given = {
        "act": pulled, "arguments": {"gain": gain, "load": np.array([1.0, 2.0, 3.0]), "grip": 1.0},
        "parameters": {"mass:lower": "load", "friction": "grip"}, "delay": 3, "decimation": 2,
        "contact": contact,
    }  # fmt: skip
    env = environment(model, [0.3, 0.2], **given)
    assert isinstance(env.program.physics, EnginePhysics)
    action = np.tile([0.5, -0.5], (3, 1))
    q, qd = taken(env, 10, action)
    goals = np.zeros((20, 1, 2))
    goals[3:] = action[0]

    @kt.kernel
    def law(m, q, qd, goal: (2,), gain: ()):
        return gain * (goal - q) - 0.1 * qd

    expected = kt.rollout(
        model, [0.3, 0.2], steps=20, dt=2e-3, contact=contact, controller=law,
        inputs={"goal": np.broadcast_to(goals, (20, 3, 2))}, arguments={"gain": gain},
        parameters={"mass:lower": np.array([1.0, 2.0, 3.0])}, limits=None,
    )  # fmt: skip
    assert np.abs(q - expected.q[-1]).max() < 1e-12
    assert np.abs(qd - expected.qd[-1]).max() < 1e-11


def test_friction_of_each_world_in_the_engine():
    model = ball(Plane(), Surface(friction=1.0, velocity=(4.0, 0.0, 0.0)))
    q0, grip = model.neutral(), np.array([0.0, 0.5, 1.0])
    q0[2] = 0.1
    env = environment(
        model, q0, contact=TimeStepping(Scene(model)), arguments={"grip": grip},
        parameters={"friction": "grip"},
    )  # fmt: skip
    _, qd = taken(env, 5)
    assert np.abs(qd[0]).max() < 1e-9
    g, t = 9.81, 5 * 2e-3
    assert qd[1, 3] == pytest.approx(0.5 * g * t, rel=1e-3)  # along axes that turn
    assert qd[2, 3] == pytest.approx(1.0 * g * t, rel=1e-3)


@pytest.mark.parametrize("touching", [False, True], ids=["smooth", "engine"])
def test_actuators_with_activations(touching):
    model = boxes_on_a_table() if touching else pendulum()
    servo = Actuator("muscle", 2, gear=(3.0,), activation="filter", time_constant=0.05)
    model = model.replace(actuators=[servo])
    contact = TimeStepping(Scene(model)) if touching else None
    more = {} if touching else {"integrator": "semi_implicit_euler"}
    env = environment(model, [0.3, 0.2], contact=contact, decimation=2, limits=None)
    q, qd = taken(env, 15, np.full((3, 1), 0.7))
    expected = kt.rollout(
        model, [0.3, 0.2], steps=30, dt=2e-3, contact=contact, controls=np.array([0.7]),
        limits=None, **more,
    )  # fmt: skip
    assert np.abs(q - expected.q[-1]).max() < 1e-11
    assert np.abs(qd - expected.qd[-1]).max() < 1e-10
    assert np.asarray(env.state["activation"])[0, 0] == pytest.approx(
        0.7 * (1 - np.exp(-30 * 2e-3 / 0.05)), rel=1e-12
    )


@kt.kernel
def felt(m, q, tau, contact_force):
    return np.concatenate([tau, contact_force[0]])


def test_forces_that_kernels_see_by_the_engine():
    model = ball(Plane(), Surface(friction=0.5, velocity=(0.4, 0.0, 0.0)))
    q0 = model.neutral()
    q0[2] = 0.1
    env = environment(model, q0, contact=TimeStepping(Scene(model)), observe=felt)
    action = np.zeros((3, model.nv))
    action[:, 5] = -0.25
    seen, *_, info = env.step(action)
    assert seen[0, :6] == pytest.approx(action[0])
    assert seen[0, 6] == pytest.approx(0.5 * 9.81 + 0.25, rel=1e-6)
    assert np.all(info["error"] < 1e-6)


def test_episodes_do_not_depend_on_those_before():
    """Impulses of the episode before led to other last digits, 1e-14 to 5e-13."""
    world = kt.World(timestep=2e-3)
    world.add_ground()
    for k in range(2):
        world.add(Box((0.2, 0.2, 0.1)), mass=1.0, at=(0.01 * k, 0, 0.05 + 0.1 * k))

    @kt.kernel
    def push(m, action: (12,)):
        return action

    given = {"act": push, "action_limits": (-1.0, 1.0), "decimation": 30}
    env = environment(world, world.q, worlds=2, **given)
    episodes = []
    for _ in range(2):
        env.reset(seed=0)
        episodes.append(taken(env, 2))
    world.step(60)
    for q, qd in episodes:
        np.testing.assert_array_equal(q[1], world.q)
        np.testing.assert_array_equal(qd[1], world.qd)


def test_motors_have_the_curves_that_are_given():
    """As in a simulation with the same steps."""
    drum = kt.Inertia.from_mass_center(2.0, np.zeros(3), 0.09 * np.eye(3))
    model = (
        kt.ModelBuilder("winch")
        .body("drum", joint=kt.Revolute("z"), inertia=drum)
        .actuator("motor", joint="drum_joint", gear=10.0, effort=(-2.0, 2.0))
        .build()
    )
    motors = {"motor": kt.TorqueSpeed(stall=1.0, free_speed=100.0)}
    winches = environment(model, [0.0], motors=motors, dt=2e-3, decimation=20, integrator="rk4")
    winches.step(np.ones((3, 1)))
    winches.step(np.ones((3, 1)))
    common = {"dt": 2e-3, "integrator": "rk4", "duration": 0.08}
    motion = kt.simulate(model, [0.0], controls=[1.0], motors=motors, **common)
    np.testing.assert_allclose(winches.state["qd"][0], motion.qd[-1], rtol=1e-12)
    free = kt.simulate(model, [0.0], controls=[1.0], **common)
    assert motion.qd[-1, 0] < 0.95 * free.qd[-1, 0]
    with pytest.raises(TypeError, match=r"motors\['motor'\] must be a TorqueSpeed, got float"):
        environment(model, [0.0], motors={"motor": 1.0})
