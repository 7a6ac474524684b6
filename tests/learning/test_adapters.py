"""Interfaces of other libraries: Gymnasium and Stable-Baselines3 themselves, rsl-rl by a stand-in.

rsl-rl 5.5 and skrl 2.1 were run with the same adapters.
"""

import sys
from types import ModuleType

import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics

import kinetree as kt
from kinetree.errors import MissingPackageError


@pytest.fixture
def rsl_rl(monkeypatch):
    """A stand-in of rsl-rl."""
    for name, names in (
        ("rsl_rl", {}),
        ("rsl_rl.env", {"VecEnv": type("VecEnv", (), {})}),
        ("tensordict", {"TensorDict": lambda values, batch_size: values}),
    ):
        module = ModuleType(name)
        module.__dict__.update(names)
        monkeypatch.setitem(sys.modules, name, module)


def test_gymnasium_with_resets_in_the_same_step(cart_pole):
    env = kt.learning.gymnasium_env(cart_pole(6, episode=4))
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert env.num_envs == 6
    seen, info = env.reset(seed=3)
    assert info == {}
    assert env.observation_space.contains(seen)
    assert env.action_space.shape == (6, 1)
    again, _ = env.reset(seed=3)
    assert np.array_equal(seen, again)
    kept, _ = env.reset(options={"reset_mask": np.arange(6) < 3})
    assert (kept[:3] != seen[:3]).any()
    for k in range(4):
        seen, reward, ended, late, info = env.step(np.zeros((6, 1), "f4"))
        assert env.observation_space.contains(seen)
        assert reward.shape == ended.shape == late.shape == (6,)
        assert late.all() == info["_final_obs"].all() == (k == 3)
    assert (info["final_obs"] != seen).any()


def test_gymnasium_with_resets_in_the_next_step(cart_pole):
    """A step that begins an episode: no reward, nothing ends, and the action does not count."""
    next_step = kt.learning.gymnasium_env(cart_pole(3, episode=4), autoreset="next_step")
    same_step = kt.learning.gymnasium_env(cart_pole(3, episode=4))
    assert next_step.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    ours, theirs = next_step.reset(seed=1)[0], same_step.reset(seed=1)[0]
    for k in range(12):
        action = np.full((3, 1), 0.1 * k, "f4")
        ours, reward, ended, late, _ = next_step.step(action)
        if k % 5 == 4:  # the first observation of a new episode
            assert not reward.any()
            assert not (ended.any())
            assert not (late.any())
            assert np.array_equal(ours, theirs)
            continue
        theirs, expected, _, over, info = same_step.step(action)
        assert np.array_equal(reward, expected)
        assert np.array_equal(late, over)
        assert np.array_equal(ours, info["final_obs"])
    with pytest.raises(ValueError, match="autoreset must be 'same_step' or 'next_step', got 'no'"):
        kt.learning.gymnasium_env(next_step.env, autoreset="no")


def test_wrappers_of_gymnasium(cart_pole):
    env = kt.learning.gymnasium_env(cart_pole(3, episode=4), autoreset="next_step")
    env = RecordEpisodeStatistics(NormalizeObservation(env))
    env.reset(seed=1)
    for _ in range(4):
        *_, info = env.step(env.action_space.sample())
    assert info["episode"]["l"].tolist() == [4, 4, 4]


def test_stable_baselines_learns(cart_pole):
    env = kt.learning.sb3_env(cart_pole(8, episode=32))
    learner = stable_baselines3.PPO("MlpPolicy", env, n_steps=16, batch_size=64, seed=0)
    assert learner.learn(256).num_timesteps == 256
    action, _ = learner.predict(env.reset())
    assert action.shape == (8, 1)


def test_stable_baselines(cart_pole):
    env = kt.learning.sb3_env(cart_pole(5, episode=3, arrays="torch"))
    env.seed(4)
    first = env.reset()
    assert isinstance(first, np.ndarray)
    env.seed(4)
    assert np.array_equal(first, env.reset())
    for _ in range(3):
        seen, reward, over, infos = env.step(np.zeros((5, 1), "f4"))
    assert over.all()
    assert reward.shape == (5,)
    assert all(i["TimeLimit.truncated"] for i in infos)
    assert all((i["terminal_observation"] != x).any() for i, x in zip(infos, seen, strict=True))
    assert env.get_attr("worlds") == [5] * 5
    assert env.env_is_wrapped(object) == [False] * 5
    with pytest.raises(AttributeError, match=r"env\.arguments or env\.state"):
        env.set_attr("mass", 1)
    with pytest.raises(AttributeError, match="no method jump"):
        env.env_method("jump")
    env.close()


def test_rsl_rl(rsl_rl, cart_pole):
    env = kt.learning.rsl_rl_env(cart_pole(5, episode=3, arrays="torch"))
    assert (env.num_envs, env.num_actions, env.max_episode_length) == (5, 1, 3)
    env.episode_length_buf = torch.tensor([0, 1, 2, 0, 1])
    assert env.episode_length_buf.dtype == torch.int64
    seen, reward, over, extras = env.step(torch.zeros(5, 1))
    assert over.tolist() == extras["time_outs"].long().tolist() == [0, 0, 1, 0, 0]
    assert seen["policy"].shape == (5, 5)
    assert env.get_observations()["policy"] is seen["policy"]
    assert reward.shape == (5,)


def test_a_library_that_is_missing_is_named(monkeypatch, cart_pole):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingPackageError, match=r'gymnasium.*pip install "kinetree\[learning\]"'):
        kt.learning.gymnasium_env(cart_pole())
