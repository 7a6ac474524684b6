"""Environments: control steps, episodes, random numbers, parameters."""

import sys

import numpy as np
import torch
from support import fake_cupy
from support.backends import cuda_on_cpu
from support.closeness import assert_close

import kinetree as kt


def test_a_control_step_is_that_many_steps_of_a_rollout(cart_pole):
    env = cart_pole(5)
    q, qd = env.state["q"].copy(), env.state["qd"].copy()
    action = np.linspace(-1.5, 1.5, 5)[:, None]
    seen, reward, ended, late, info = env.step(action)
    clipped = np.clip(action, -1, 1)
    tau = np.concatenate([10 * clipped, 0 * clipped], axis=1)[None]
    given = {"steps": 2, "dt": 0.01, "integrator": "semi_implicit_euler", "limits": None}
    motion = kt.rollout(env.model, q, qd, tau, **given)
    assert_close(env.state["q"], motion.q[-1], ulps=50)
    assert_close(env.state["qd"], motion.qd[-1], ulps=50)
    x = motion.q[-1]
    expected = np.stack([x[:, 0], np.cos(x[:, 1]), np.sin(x[:, 1]), *motion.qd[-1].T], axis=1)
    assert seen.dtype == np.float32
    assert np.allclose(seen, expected, rtol=1e-6, atol=1e-6)
    assert np.allclose(reward, 1 - 0.01 * clipped[:, 0] ** 2 - 0.1 * x[:, 0] ** 2, rtol=1e-6)
    assert not (ended.any())
    assert not (late.any())
    assert not (info["failed"].any())
    assert np.array_equal(env.state["action"], clipped)


def test_actuators_take_actions_where_there_is_no_act_kernel(cart_pole):
    by_force, by_motor = cart_pole(3), cart_pole(3, act=None, action_limits=(-20, 20))
    action = np.array([[0.3], [-0.7], [1.0]])
    by_force.step(action)
    by_motor.step(10 * action)
    assert_close(by_motor.state["qd"], by_force.state["qd"], ulps=20)


def test_seeds_reproduce_whatever_the_arrays_and_the_number_of_worlds(cart_pole):
    def run(env, steps=30):
        action = np.sin(np.arange(env.worlds))[:, None]
        info = [env.step(action)[0] for _ in range(steps)]
        return np.array([np.asarray(x) for x in info])

    few, many, tensors = cart_pole(3, seed=7), cart_pole(9, seed=7), cart_pole(3, arrays="torch")
    first = run(few)
    assert np.array_equal(first, run(many)[:, :3])
    tensors.reset(seed=7)
    assert np.array_equal(first, run(tensors))
    few.reset(seed=7)
    assert np.array_equal(first, run(few))
    assert not np.array_equal(first, run(few))
    few.reset(seed=8)
    assert not np.array_equal(first, run(few))


def test_tensors_share_memory_with_compiled_code(cart_pole):
    env = cart_pole(4, arrays="torch")
    action = torch.zeros(4, 1, dtype=torch.float64, requires_grad=True)
    seen, reward, ended, late, _told = env.step(action)
    assert [x.dtype for x in (seen, reward, ended, late)] == [torch.float32] * 2 + [torch.bool] * 2
    assert not seen.requires_grad
    held = env.state["q"]
    held[:] = torch.tensor([0.5, np.pi])  # changed in place: the next step begins there
    env.step(action)
    assert torch.all((env.state["q"][:, 0] - 0.5).abs() < 0.1)


def test_episodes_begin_as_reset_says(cart_pole):
    env = cart_pole(4096)
    q, qd = env.state["q"] - [0, np.pi], env.state["qd"]
    assert np.abs(q).max() <= 0.05
    assert np.abs(q.mean(axis=0)).max() < 4 * 0.1 / np.sqrt(12 * 4096)
    assert np.abs(q.std(axis=0) - 0.1 / np.sqrt(12)).max() < 0.002
    assert np.abs(qd.std(axis=0) - 0.1).max() < 0.005
    before = env.state["q"].copy()
    which = np.arange(4096) % 3 == 0
    env.reset(worlds=which)
    changed = (env.state["q"] != before).any(axis=1)
    assert np.array_equal(changed, which)


def test_episodes_end_and_begin_within_a_step(cart_pole):
    env = cart_pole(2, episode=3)
    env.state["q"][1] = [1.999, np.pi]
    env.state["qd"][1] = [5.0, 0.0]
    seen, _, ended, late, info = env.step(np.zeros((2, 1)))
    assert ended.tolist() == [False, True]
    assert not late.any()
    assert info["final_observation"][1, 0] > 2 > 0.1 > abs(seen[1, 0])  # before, and after
    assert np.array_equal(info["final_observation"][0], seen[0])
    assert env.state["steps"].tolist() == [1, 0]
    env.step(np.ones((2, 1)))
    seen, _, ended, late, info = env.step(np.ones((2, 1)))
    assert late.tolist() == [True, False]  # its own count
    assert not ended.any()
    assert env.state["steps"].tolist() == [0, 2]
    assert env.state["action"].tolist() == [[0.0], [1.0]]


def test_a_world_that_fails_begins_anew_and_leaves_the_others_alone(cart_pole):
    @kt.kernel
    def strong(m, action: (1,), gain: ()):
        return np.array([gain * action[0], 0])

    gain = np.array([1.0, 1e300, 1.0])
    env = cart_pole(3, act=strong, arguments={"gain": gain})
    alone = cart_pole(3, act=strong, arguments={"gain": np.ones(3)})
    for _ in range(3):
        seen, reward, ended, _, info = env.step(np.ones((3, 1)))
        expected = alone.step(np.ones((3, 1)))[0]
        assert info["failed"].tolist() == ended.tolist() == [False, True, False]
        assert reward[1] == 0
        assert np.isfinite(seen).all()
        assert np.isfinite(info["final_observation"]).all()
        assert np.array_equal(seen[[0, 2]], expected[[0, 2]])


def test_actions_arrive_late(mass):
    """With forces 1, 0, 0 ... a mass gains 0.1 m/s in every step in which the 1 arrives."""
    for delay in range(5):
        env, gained = mass(1, delay=delay), []
        for k in range(4):
            before = env.state["qd"][0, 0]
            env.step([[1.0 if k == 0 else 0.0]])
            gained.append(round((env.state["qd"][0, 0] - before) / 0.1))
        arrival = [int(delay <= k < delay + 2) for k in range(8)]
        assert gained == [sum(arrival[k : k + 2]) for k in range(0, 8, 2)]


def test_delays_are_drawn_for_every_episode(mass):
    env = mass(2000, delay=(1, 3))
    assert sorted(set(env.state["delay"])) == [1, 2, 3]
    env.step(np.ones((2000, 1)))
    late = env.state["delay"]
    assert np.array_equal(env.state["qd"][:, 0], np.where(late == 1, 0.1, 0.0))


@kt.kernel
def weighed(m, uniform: (2,), heaviest: ()):
    return {"q": np.zeros(1), "weight": 1 + (heaviest - 1) * uniform[0], "kick": uniform[1]}


@kt.kernel
def kicked(m, qd, steps, kick: ()):
    return {"qd": kt.select(steps == 2, np.array([kick]), qd), "kick": kick + 1}


def test_parameters_pushes_and_curricula(mass):
    env = mass(
        50, reset=weighed, update=kicked, parameters={"mass:mass": "weight"},
        arguments={"heaviest": 1.0}, dt=0.1, decimation=1,
    )  # fmt: skip
    assert np.all(env.state["weight"] == 1)
    env.arguments["heaviest"][...] = 3.0  # harder from now on
    env.reset()
    weight, kick = env.state["weight"].copy(), env.state["kick"].copy()
    assert 1 < weight.min() < 1.2
    assert 2.8 < weight.max() < 3
    env.step(np.ones((50, 1)))
    assert_close(env.state["qd"][:, 0], 0.1 / weight, ulps=4)
    env.step(np.ones((50, 1)))
    env.step(np.zeros((50, 1)))
    assert_close(env.state["qd"][:, 0], kick + 2, ulps=4)  # the value after two updates
    assert np.array_equal(env.state["weight"], weight)


def test_parameters_may_be_arguments(mass):
    weight = np.array([1.0, 2.0, 4.0])
    env = mass(3, parameters={"mass:mass": "weight"}, arguments={"weight": weight}, decimation=1)
    env.step(np.ones((3, 1)))
    assert_close(env.state["qd"][:, 0], 0.1 / weight, ulps=4)


def test_observations_may_be_noisy(mass):
    @kt.kernel
    def noisy(m, q, normal: (1,)):
        return q + 0.1 * normal

    env = mass(4000, observe=noisy)
    seen = np.array([env.step(np.zeros((4000, 1)))[0][:, 0] for _ in range(4)])
    assert np.abs(seen.std(axis=1) - 0.1).max() < 0.005
    assert np.abs(np.corrcoef(seen) - np.eye(4)).max() < 4 / np.sqrt(4000)


# --- rigid contact -------------------------------------------------------------------------------


def _ball():
    ball = kt.ModelBuilder("ball").body(
        "ball", joint=kt.Free(), inertia=kt.shapes.sphere(0.1, mass=1.0)
    )
    shape = kt.geometry.Geometry(1, kt.geometry.Sphere(0.1), name="ball")
    return kt.contact.with_ground(ball.build().replace(geometry=[shape]))


@kt.kernel
def height_and_force(m, q, qd, contact_force: (1, 3)):
    return np.array([q[2], np.sqrt(qd[3:] @ qd[3:]), contact_force[0, 0]])


@kt.kernel
def sliding(m, uniform: (1,)):
    return {
        "q": np.array([0, 0, 0.1, 1, 0, 0, 0]),
        "qd": np.array([0, 0, 0, 1.0, 0, 0]),
        "grip": uniform[0],
    }


@kt.kernel
def nothing(m, action: (1,)):
    return np.zeros(6)


def test_friction_of_every_world_slows_its_ball():
    """A ball that slides loses ``mu g`` until it rolls, at 5/7 of its speed."""
    model = _ball()
    scene = kt.contact.Scene(model, friction=0.4)
    env = kt.learning.Environment(
        model, 40, observe=height_and_force, reward=no_reward, reset=sliding, act=nothing,
        contact=scene, dt=0.005, decimation=4, parameters={"friction": "grip"},
    )  # fmt: skip
    for _ in range(2):
        seen, _, _, _, info = env.step(np.zeros((40, 1)))
    speed = np.maximum(1 - 0.4 * env.state["grip"] * 9.81 * 0.04, 5 / 7)
    assert np.allclose(seen[:, 1], speed, atol=1e-6)
    assert np.allclose(seen[:, 2], 9.81, rtol=1e-6)
    assert np.abs(seen[:, 0] - 0.1).max() < 1e-7
    assert info["error"].max() <= 1e-8 * 2
    assert speed.min() < 0.9 < 0.99 < speed.max()


@kt.kernel
def no_reward(m, q):
    return 0 * q[0]


@kt.kernel
def position(m, q):
    return q


def test_rigid_steps_are_those_of_the_engine():
    """The environment has the step unrolled, ``simulate`` of a few samples takes the engine."""
    model = _ball()
    contact = kt.contact.TimeStepping(kt.contact.Scene(model, friction=0.4))
    env = kt.learning.Environment(
        model, 3, observe=position, reward=no_reward, reset=sliding, act=nothing, contact=contact,
        dt=0.002, decimation=5, episode=None,
    )  # fmt: skip
    env.state["qd"][:, 1] = 0.0, 2.0, -3.0  # spins
    start = env.state["q"].copy(), env.state["qd"].copy()
    for _ in range(8):
        env.step(np.zeros((3, 1)))
    motion = kt.simulate(model, *start, duration=0.08, dt=0.002, contact=contact)
    assert np.allclose(env.state["q"], motion.q[-1], atol=1e-10)
    assert np.allclose(env.state["qd"], motion.qd[-1], atol=1e-9)
    assert np.abs(env.state["force"][:, 1:3]).max() > 1


@kt.kernel
def falling(m, uniform: (1,)):
    return {"q": np.array([0, 0, 0.12 + 0.1 * uniform[0], 1, 0, 0, 0])}


def test_soft_contact_is_that_of_a_rollout():
    model = _ball()
    soft = kt.contact.SoftContact(kt.contact.Scene(model), stiffness=1e4, damping=0.3)
    env = kt.learning.Environment(
        model, 3, observe=position, reward=no_reward, reset=falling, act=nothing, contact=soft,
        dt=0.001, decimation=50, episode=None, integrator="rk4",
    )  # fmt: skip
    start = env.state["q"].copy()
    for _ in range(4):
        env.step(np.zeros((3, 1)))
    motion = kt.rollout(model, start, steps=200, dt=0.001, contact=soft, integrator="rk4")
    assert np.allclose(env.state["q"], motion.q[-1], atol=1e-12)
    assert np.ptp(motion.qd[:, :, 5], axis=0).min() > 0.5  # it has touched


def test_a_world_brings_its_contact():
    world = kt.World()
    world.add_ground()
    world.add(kt.geometry.Sphere(0.1), name="ball", mass=1.0, at=(0, 0, 0.1))

    @kt.kernel
    def resting(m):
        return {"q": np.array(m.neutral()) + 0.1 * np.eye(m.nq)[2]}

    env = kt.learning.Environment(
        world, 2, observe=position, reward=no_reward, reset=resting, act=nothing, episode=None
    )
    for _ in range(20):
        env.step(np.zeros((2, 1)))
    assert np.allclose(env.state["q"][:, 2], 0.1, atol=1e-9)
    assert np.allclose(env.state["force"][:, 0], 9.81, rtol=1e-9)


def test_cuda_code_takes_the_same_steps_in_one_launch(monkeypatch, tmp_path):
    """The text for GPUs, compiled for the CPU, under an interface like CuPy's."""
    launches = []
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy.module())
    runtime = fake_cupy.runtime(launches, cuda_on_cpu(tmp_path))
    monkeypatch.setitem(sys.modules, "kinetree.codegen.runtime.cuda", runtime)
    monkeypatch.delitem(sys.modules, "kinetree.arrays.cupy_kind", raising=False)
    model, ours = _ball(), {}
    for device in ("cpu", "cuda"):
        env = ours[device] = kt.learning.Environment(
            model, 4, observe=height_and_force, reward=no_reward, reset=sliding, act=nothing,
            contact=kt.contact.Scene(model, friction=0.4), dt=0.005, decimation=4, episode=3,
            parameters={"friction": "grip"}, device=device, dtype="float32",
            arrays=None if device == "cpu" else "cupy",
        )  # fmt: skip
        launches.clear()
        for k in range(5):  # a new episode among them, and an action that is not a number
            *_, info = env.step(np.array([[0.0], [0], [np.nan if k == 1 else 0], [0]]))
            assert np.asarray(info["failed"]).tolist() == [False, False, k == 1, False]
        assert [name for name, *_ in launches] == ["Environment.step"] * 5 * (device == "cuda")
        assert np.asarray(info["error"]).max() < 1e-5
    here, there = ours.values()
    assert type(there.state["q"]) is fake_cupy.ndarray
    for name in ("tick", "steps", "grip"):  # random numbers: the same bits
        assert np.array_equal(here.state[name], there.state[name])
    for name in ("q", "qd", "force"):
        assert np.allclose(here.state[name], there.state[name], rtol=1e-5, atol=1e-4)
    sys.modules.pop("kinetree.arrays.cupy_kind", None)
