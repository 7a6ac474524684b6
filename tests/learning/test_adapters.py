"""Interfaces of other libraries, against stand-ins of them where they are not installed.

The libraries themselves (gymnasium 1.4, stable-baselines3 2.9, rsl-rl 5.5, skrl 2.1) were run with
the same adapters.
"""

import enum
import sys
from types import ModuleType

import numpy as np
import pytest
import torch

import kinetree as kt
from kinetree.errors import MissingPackageError


class Box:
    """A space of arrays."""

    def __init__(self, low, high, shape, dtype):
        self.low, self.high, self.shape, self.dtype = low, high, shape, np.dtype(dtype)

    def contains(self, x):
        """Whether an array is in the space."""
        fits = x.shape == self.shape and x.dtype == self.dtype
        return bool(fits and np.all(x >= self.low) and np.all(x <= self.high))


def _batch(space, n):
    return Box(space.low, space.high, (n, *space.shape), space.dtype)


class Mode(enum.Enum):
    """As gymnasium.vector.AutoresetMode."""

    NEXT_STEP = "NextStep"
    SAME_STEP = "SameStep"
    DISABLED = "Disabled"


class VecEnv:
    """As that of Stable-Baselines3, in what it does for its subclasses."""

    def __init__(self, num_envs, observation_space, action_space):
        self.num_envs = num_envs
        self.observation_space, self.action_space = observation_space, action_space
        self._seeds = [None] * num_envs

    def seed(self, seed):
        """Seeds for the next reset."""
        self._seeds = [seed + k for k in range(self.num_envs)]

    def _reset_seeds(self):
        self._seeds = [None] * self.num_envs

    def _get_indices(self, indices):
        return range(self.num_envs) if indices is None else indices

    def step(self, actions):
        """As VecEnv.step."""
        self.step_async(actions)
        return self.step_wait()


def _module(name, **names):
    module = ModuleType(name)
    module.__dict__.update(names)
    return module


@pytest.fixture
def libraries(monkeypatch):
    """Stand-ins of the libraries."""
    utils = _module("gymnasium.vector.utils", batch_space=_batch)
    plain = type("VectorEnv", (), {})
    vector = _module("gymnasium.vector", VectorEnv=plain, AutoresetMode=Mode, utils=utils)
    spaces = _module("gymnasium.spaces", Box=Box)
    found = [
        _module("gymnasium", vector=vector, spaces=spaces), vector, spaces, utils,
        _module("stable_baselines3"), _module("stable_baselines3.common"),
        _module("stable_baselines3.common.vec_env", VecEnv=VecEnv),
        _module("rsl_rl"), _module("rsl_rl.env", VecEnv=type("VecEnv", (), {})),
        _module("tensordict", TensorDict=lambda values, batch_size: values),
    ]  # fmt: skip
    for module in found:
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_gymnasium_with_resets_in_the_same_step(libraries, cart_pole):
    env = kt.learning.gymnasium_env(cart_pole(6, episode=4))
    assert env.metadata["autoreset_mode"] is Mode.SAME_STEP
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


def test_gymnasium_with_resets_in_the_next_step(libraries, cart_pole):
    """A step that begins an episode: no reward, nothing ends, and the action does not count."""
    next_step = kt.learning.gymnasium_env(cart_pole(3, episode=4), autoreset="next_step")
    same_step = kt.learning.gymnasium_env(cart_pole(3, episode=4))
    assert next_step.metadata["autoreset_mode"] is Mode.NEXT_STEP
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


def test_stable_baselines(libraries, cart_pole):
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


def test_rsl_rl(libraries, cart_pole):
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
