"""An arm with a coupled gripper picks up a box and holds it: the same motion through every door."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Scene, TimeStepping
from kinetree.model.geometry import Box

STEP, PHASES = 2e-3, (100, 300, 1500)
DOWN = np.array([0.6, -1.2, 0.6])  # the hand points down


def arm() -> str:
    """MJCF of three links with stiff servos in a plane, and two fingers that follow each other."""
    links = "".join(
        f'<body name="l{k}" pos="0 0 {-0.25 * (k > 0)}"><joint name="j{k}" axis="0 1 0" '
        f'armature="0.05"/>'
        f'<geom type="capsule" size="0.02" fromto="0 0 -0.03 0 0 -0.22" mass="{2 - 0.5 * k}" '
        f'contype="0" conaffinity="0"/>'
        for k in range(3)
    )
    fingers = "".join(
        f'<body pos="0 0 -0.27"><joint name="{name}" type="slide" axis="0 {sign} 0" '
        f'range="0 0.04"/><geom type="box" mass="0.03" size="0.012 0.006 0.03" '
        f'pos="0 {0.006 * sign} 0"/></body>'
        for name, sign in (("left", 1), ("right", -1))
    )
    servos = "".join(f'<position joint="j{k}" kp="3000" kv="300"/>' for k in range(3))
    return (
        '<mujoco model="arm"><compiler autolimits="true" angle="radian"/><worldbody>'
        f'<body pos="0 0 0.75">{links}{fingers}{"</body>" * 4}</worldbody>'
        '<equality><joint joint1="right" joint2="left"/></equality>'
        f'<actuator>{servos}<position joint="left" kp="800" kv="16"/></actuator></mujoco>'
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "arm.xml"
    path.write_text(arm())
    found = kt.World(timestep=STEP)
    found.add_ground()
    found.add(kt.load(path), name="arm", q=[*DOWN, 0.03])
    wrist = found["arm.l2"].pose
    x, y, z = wrist[:3, 3] - 0.27 * wrist[:3, 2]  # between the fingers
    found.add(Box((0.04, 0.04, z)), mass=0.1, at=(x, y, z / 2), name="box")
    return found


def controls():
    """Controls of all steps: the gripper waits, closes, and is lifted."""
    u = np.tile([*DOWN, 0.03], (sum(PHASES), 1))
    u[PHASES[0] :, 3] = 0.0
    u[PHASES[0] + PHASES[1] :, :3] += (0.15, -0.3, 0.15)
    return u


def at(t, q, qd):
    """The controls of the step that begins now."""
    return controls()[min(round(t / STEP), sum(PHASES) - 1)]


def of_world(world):
    own, first = world.copy(), 0
    for n in PHASES:
        own.step(n, control=controls()[first])
        first += n
    return own.q, own.qd


def of_batch(world):
    worlds, first = world.batch(2), 0
    for n in PHASES:
        worlds.step(n, control=controls()[first])
        first += n
    return worlds.q[1], worlds.qd[1]


def simulated(world, model=None, **options):
    end = kt.simulate(
        model or world, *options.pop("start", ()), duration=sum(PHASES) * STEP, dt=STEP,
        controls=at, store_every=sum(PHASES), **options,
    )  # fmt: skip
    return end.q[-1], end.qd[-1]


def rolled(world, model=None, count=None, **options):
    q = options.pop("start", (world.q,))[0]
    end = kt.rollout(
        model or world, q if count is None else np.tile(q, (count, 1)), steps=sum(PHASES), dt=STEP,
        controls=controls() if count is None else np.tile(controls()[:, None], (1, count, 1)),
        store_every=sum(PHASES), **options,
    )  # fmt: skip
    return (end.q[-1], end.qd[-1]) if count is None else (end.q[-1, -1], end.qd[-1, -1])


def by_environment(world):
    q0 = world.q

    @kt.kernel
    def observe(model, q):
        return q

    @kt.kernel
    def reward(model, q):
        return 0 * q[0]

    @kt.kernel
    def reset(model):
        return {"q": q0}

    env = kt.learning.Environment(
        world, 2, observe=observe, reward=reward, reset=reset, episode=None, dt=STEP,
        decimation=100, action_limits=(-3.0, 3.0),
    )  # fmt: skip
    for u in controls()[::100]:
        env.step(np.tile(u, (2, 1)))
    return env.state["q"][1], env.state["qd"][1]


def bare(world):
    """A model and its contact, without a world."""
    model = world.model
    return {"model": model, "start": (world.q,), "contact": TimeStepping(Scene(model))}


DOORS = {
    "world": of_world,
    "batch": of_batch,
    "simulate(world)": simulated,
    "simulate": lambda world: simulated(world, **bare(world)),
    "rollout(world)": rolled,
    "rollout": lambda world: rolled(world, **bare(world)),
    "rollout of many": lambda world: rolled(world, count=5),
    "environment": by_environment,
}


@pytest.mark.parametrize("door", DOORS)
def test_an_arm_picks_up_a_box_and_holds_it(world, door):
    q, qd = DOORS[door](world)
    start, first = world.q, DOORS["world"](world)
    at_box = world["box"].q_indices
    assert q[at_box][2] > start[at_box][2] + 0.03  # lifted
    assert np.abs(qd).max() < 1e-6  # held, at rest
    np.testing.assert_allclose(q, first[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(qd, first[1], rtol=0, atol=1e-10)
