"""Standard tasks beside Gymnasium's own: the same states, observations and rewards."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import kinetree as kt
from kinetree.gymnasium_tasks import EPISODES


def test_the_pendulum_moves_as_gymnasiums(rng):
    kt.learning.register()
    ours = gymnasium.make("kinetree/Pendulum-v0")
    theirs = gymnasium.make("Pendulum-v1").unwrapped
    assert ours.action_space == theirs.action_space
    theirs.reset(seed=0)
    state = ours.unwrapped.env.state
    ours.reset(seed=3)
    state = ours.unwrapped.env.state
    theirs.state = np.array([state["q"][0, 0], state["qd"][0, 0]])
    for _ in range(60):
        action = rng.uniform(-2, 2, 1).astype(np.float32)
        seen, reward, *_ = ours.step(action)
        expected, their_reward, *_ = theirs.step(action)
        np.testing.assert_allclose(seen, expected, atol=3e-5)
        np.testing.assert_allclose(reward, their_reward, atol=3e-5)


def test_the_reacher_moves_as_gymnasiums(rng):
    env = kt.learning.make("Reacher", 1, seed=2)
    theirs = gymnasium.make("Reacher-v5").unwrapped
    theirs.reset(seed=0)
    q, qd = (np.array(env.state[k][0]) for k in ("q", "qd"))
    theirs.set_state(q + np.array([0, 0, 0.1, -0.1]), qd)
    for _ in range(30):
        action = rng.uniform(-1, 1, (1, 2)).astype(np.float32)
        seen, reward, *_ = env.step(action)
        expected, their_reward, *_ = theirs.step(action[0])
        np.testing.assert_allclose(seen[0], expected, atol=2e-5)
        np.testing.assert_allclose(reward[0], their_reward, atol=2e-5)


@pytest.mark.parametrize("name", ["Hopper", "HalfCheetah", "Walker2d"])
def test_kernels_of_runners_are_gymnasiums(name, rng):
    """Observation, reward and end, on the same states: without a compiled step of contact."""
    task, theirs = kt.learning.TASKS[name], gymnasium.make(f"{name}-v5").unwrapped
    model = task.model()
    theirs.reset(seed=0)
    height = 0.0 if name == "HalfCheetah" else 1.25
    for tilt in (0.0, 0.15, 0.5, 1.5):
        q, qd = 0.1 * rng.standard_normal(model.nq), rng.standard_normal(model.nv)
        q[2], before, action = tilt, 0.3, rng.uniform(-1, 1, len(model.actuators))
        theirs.set_state(q + height * (np.arange(model.nq) == 1), qd)
        seen = task.options["observe"](model, q, qd)
        np.testing.assert_allclose(seen, theirs._get_obs(), rtol=1e-12)
        forward = theirs._get_rew((q[0] - before) / theirs.dt, action)[0]
        sees = {"q": q, "qd": qd, "action": action, "before": before}
        reward = task.options["reward"]
        given = [sees[n] for n in tuple(reward.signature.parameters)[1:]]
        np.testing.assert_allclose(reward(model, *given), forward, rtol=1e-12)
        if task.options["terminate"] is not None:
            fallen = task.options["terminate"].__wrapped__  # a condition is not an array
            assert bool(fallen(model, q, qd)) == (not theirs.is_healthy)
    np.testing.assert_allclose(kt.mass_matrix(model, q), mass_matrix(theirs), atol=1e-9)


def mass_matrix(theirs):
    """Of MuJoCo, in the configuration that was set."""
    mujoco = pytest.importorskip("mujoco")
    found = np.zeros((theirs.model.nv, theirs.model.nv))
    mujoco.mj_forward(theirs.model, theirs.data)
    mujoco.mj_fullM(theirs.model, theirs.data, found)
    return found


def test_many_worlds_begin_again():
    kt.learning.register()
    envs = gymnasium.make_vec("kinetree/CartPoleSwingUp-v0", num_envs=8, max_episode_steps=5)
    seen, _ = envs.reset(seed=1)
    assert seen.shape == (8, 5)
    assert np.abs(seen[:, 1] - 1).max() < 0.01  # hanging
    for k in range(5):
        _, reward, _, late, _ = envs.step(np.zeros((8, 1), np.float32))
        assert late.all() == (k == 4)
        assert np.abs(reward).max() < 0.01
    assert kt.learning.register() == kt.learning.register()
    with pytest.raises(kt.UnknownNameError, match="no task 'Hoper'; did you mean 'Hopper'"):
        kt.learning.make("Hoper", 1)


def test_gymnasium_waits_for_nothing_when_it_registers():
    code = (
        "import sys; from kinetree.gymnasium_tasks import EPISODES, register; register()\n"
        "print(len(EPISODES), sorted(m for m in sys.modules if m.startswith('kinetree')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    light = ["kinetree", "kinetree.errors", "kinetree.gymnasium_tasks", "kinetree.spelling"]
    assert done.stdout.split(maxsplit=1)[1].strip() == str(light)
    assert set(kt.learning.TASKS) == set(EPISODES)


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import gymnasium, kinetree", "kinetree/Pendulum-v0"),
        ("import gymnasium", "kinetree:kinetree/Pendulum-v0"),
        ("import kinetree as kt, gymnasium; kt.learning.TASKS", "kinetree/Pendulum-v0"),
        ("import kinetree, gymnasium; kinetree.learning.register()", "kinetree/Pendulum-v0"),
    ],
)
def test_gymnasium_finds_the_tasks(imports, name):
    code = f"{imports}; print(gymnasium.make({name!r}).spec.id)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "kinetree/Pendulum-v0"


def test_upright_is_worth_one():
    env = kt.learning.make("CartPoleSwingUp", 1)
    env.state["q"][0] = 0, np.pi
    env.state["qd"][0] = 0
    assert env.step(np.zeros((1, 1)))[1][0] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.filterwarnings("ignore::UserWarning")  # observations have no bounds
def test_gymnasium_checks_the_environment():
    from gymnasium.utils.env_checker import check_env

    kt.learning.register()
    check_env(gymnasium.make("kinetree/CartPoleSwingUp-v0").unwrapped, skip_render_check=True)
