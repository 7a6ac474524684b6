"""Mechanisms with several features each take the same steps through every door."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.model.geometry import Sphere
from kinetree.spatial import ops

STEPS, DT = 120, 1e-3
LINK = kt.shapes.rod(0.3, mass=0.4, at=(0, 0, -0.15))


@kt.kernel
def push(model, t, q, qd):
    return 0.3 * ops.sin(3 * t) - 0.05 * qd


def arm(**parts):
    """Two links over a ground that the last one touches; parts by the name of a builder's call."""
    b = kt.ModelBuilder("arm")
    b.body("upper", joint=kt.Revolute("y"), inertia=LINK, joint_name="shoulder")
    b.body("lower", on="upper", joint=kt.Revolute("x"), at=(0, 0, -0.3), inertia=LINK,
           joint_name="elbow")  # fmt: skip
    b.geometry(Sphere(0.05), on="lower", at=(0, 0, -0.3))
    if "cam" in parts:
        b.body("cam", on="upper", joint=kt.Revolute("x"), at=(-0.1, 0, 0), joint_name="follower",
               inertia=kt.shapes.rod(0.2, mass=0.2, at=(0, 0, -0.1)))  # fmt: skip
        b.coupling("law", joint="follower", source="elbow", coefficients=(0.0, 0.7, 0.3))
    if "loop" in parts:
        for k, name in enumerate(("near", "far")):
            b.body(name, joint=kt.Revolute("y"), at=(0.2 * k, 0.4, 0), inertia=LINK)
        b.body("bar", on="near", joint=kt.Revolute("y"), at=(0, 0, -0.3),
               inertia=kt.shapes.rod(0.2, mass=0.2, at=(0.1, 0, 0)))  # fmt: skip
        b.loop("pin", joint=kt.Revolute("y"), predecessor="bar", successor="far", at=(0.2, 0, 0),
               successor_at=(0, 0, -0.3))  # fmt: skip
    if "tendon" in parts:
        joints, spring = {"shoulder": 0.8, "elbow": -0.5}, {"stiffness": 20.0, "damping": 0.5}
        more = parts.get("friction", {})
        b.tendon("cable", joints=joints, lower=-0.2, upper=0.2, **spring, **more)
    for name, law in parts.get("actuators", {}).items():
        b.actuator(name, joint="elbow", **law)
    return b.build()


MECHANISMS = {
    "cam, filter, force": arm(
        cam=True, actuators={"f": {"kp": 10.0, "kv": 0.1, "activation": "filter",
                                   "time_constant": 0.05}},
    ),
    "loop, integrator, force": arm(
        loop=True, actuators={"i": {"kp": 10.0, "kv": 0.5, "activation": "integrator"}},
    ),
    "tendon, servos": arm(
        tendon=True, actuators={"s": {"kp": 2000.0, "kv": 2.0}, "v": {"kv": 1.0}},
    ),
    "loop, tendon": arm(loop=True, tendon=True),
    "tendon with friction": arm(tendon=True, friction={"friction": 0.3}),
    "tendon with friction, stiff": arm(tendon=True, friction={"friction": 0.3}),
    "servo at its effort": arm(actuators={"s": {"kp": 5000.0, "kv": 5.0, "effort": (-0.5, 0.5)}}),
}  # fmt: skip


def world_of(name):
    """A world of a mechanism in motion, with its controls and forces for all doors."""
    model = MECHANISMS[name]
    stiff = {"limits": "stiff", "joint_friction": "smooth"} if name.endswith("stiff") else {}
    world = kt.World(timestep=DT, **stiff)
    world.add_ground(height=-0.66)
    world.add(model, name="arm")
    q, qd = world.q, np.zeros(model.nv)
    qd[:2] = 1.0, -0.8
    q[:2] = 0.1, 0.2
    world.set_state(world.state._replace(q=q, qd=qd))
    u = np.full(len(model.actuators), 0.4)
    control = {"control": u} if u.size else {}
    given = {"controls": u} if u.size else {}
    forces = {"forces": push} if name.endswith("force") else {}
    world.step(5, **control)
    return world, control, given, forces


def assert_same(ends, world):
    for door, end in ends.items():
        for x, y in zip(end, (world.q, world.qd), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-10, err_msg=door)


@pytest.mark.parametrize("name", MECHANISMS)
def test_steps_from_the_state_of_a_world_are_the_same_through_all_doors(name):
    world, control, given, forces = world_of(name)
    own, many, qd = world.copy(), world.copy().batch(2), world.qd
    own.step(STEPS, **control, **forces)
    assert np.abs(own.qd - qd).max() > 0.1
    given = {"store_every": STEPS, **given, **forces}
    trajectory = kt.simulate(world, duration=STEPS * DT, **given)
    one, several = (kt.rollout(x, steps=STEPS, **given) for x in (world, many))
    many.step(STEPS, **control, **forces)
    ends = {"batch": (many.q[1], many.qd[1])}
    ends["simulate"] = trajectory.q[-1], trajectory.qd[-1]
    ends["rollout"] = one.q[-1], one.qd[-1]
    ends["rollout of a batch"] = several.q[-1, 1], several.qd[-1, 1]
    assert_same(ends, own)


@pytest.mark.parametrize(
    "name", ["tendon, servos", "loop, tendon", "tendon with friction, stiff", "servo at its effort"]
)
def test_steps_from_states_are_the_same_through_all_doors(name):
    world, control, given, _ = world_of(name)
    q, qd = world.q, world.qd
    world.set_state(world.state._replace(memory={}))
    starts = np.tile(q, (3, 1)), np.tile(qd, (3, 1))
    rolled = kt.rollout(world, *starts, steps=STEPS, store_every=STEPS, **given)
    moved = kt.simulate(world, *starts, duration=STEPS * DT, store_every=STEPS, **given)
    ends = {"rollouts": (rolled.q[-1, 1], rolled.qd[-1, 1])}
    ends["simulate"] = moved.q[-1, 1], moved.qd[-1, 1]
    ends["environment"] = by_environment(world, q, qd, given.get("controls"))
    world.step(STEPS, **control)
    assert_same(ends, world)


def by_environment(world, q0, qd0, u):
    """The end of an environment's motion, whose small scene could be unrolled but for its parts."""

    @kt.kernel
    def observe(model, q):
        return q

    @kt.kernel
    def reward(model, q):
        return 0 * q[0]

    @kt.kernel
    def reset(model):
        return {"q": q0 + 0.0, "qd": qd0 + 0.0}

    env = kt.learning.Environment(
        world, 2, observe=observe, reward=reward, reset=reset, episode=None, dt=DT,
        decimation=STEPS,
    )  # fmt: skip
    env.reset(seed=0)
    env.step(np.zeros((2, world.model.nv)) if u is None else np.tile(u, (2, 1)))
    return env.state["q"][1], env.state["qd"][1]


@pytest.mark.parametrize("name", ["cam, filter, force", "loop, tendon"])
def test_motions_go_on_to_the_bit(name):
    world, control, given, _ = world_of(name)
    whole = world.copy()
    whole.step(STEPS, **control)
    first = world.copy()
    first.step(STEPS // 2, **control)
    second = world.copy()
    second.set_state(first.state)
    second.step(STEPS // 2, **control)
    np.testing.assert_array_equal(second.q, whole.q)
    np.testing.assert_array_equal(second.qd, whole.qd)
    together = kt.simulate(world, duration=STEPS * DT, **given)
    half = kt.simulate(world, duration=STEPS // 2 * DT, **given)
    rest = kt.simulate(world, half.state, duration=STEPS // 2 * DT, **given)
    np.testing.assert_array_equal(rest.q[-1], together.q[-1])
    np.testing.assert_array_equal(rest.qd[-1], together.qd[-1])
