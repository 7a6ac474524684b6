"""Environments under the interfaces of other libraries, as thin as these allow.

    gymnasium_env(env)   a ``gymnasium.vector.VectorEnv``, which skrl and CleanRL take as it is
    sb3_env(env)         a ``VecEnv`` of Stable-Baselines3
    rsl_rl_env(env)      a ``VecEnv`` of rsl-rl

Episodes end and begin within one step (Gymnasium's ``AutoresetMode.SAME_STEP``): observations are
those of the new episode, and the last one of the old is in the information of the step. With
``NEXT_STEP`` it is the last one that is returned, and the next step of this world only begins the
new episode, whatever the action.
"""

from typing import Any

import numpy as np

from kinetree.arrays.kinds import namespace
from kinetree.errors import need
from kinetree.learning.environment import Environment


def _numpy(x):
    """NumPy array of an array of NumPy, CuPy or torch."""
    return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)


def _where(which, a, b):
    """Elementwise choice by world: ``a`` in the worlds of mask ``which``, else ``b``."""
    return namespace(b).where(which.reshape(-1, *[1] * (b.ndim - 1)), a, b)


def _boxes(env, spaces):
    """Gymnasium spaces of one world: observations, and actions within their limits."""
    low, high = env.program.limits
    seen = spaces.Box(-np.inf, np.inf, (env.observation_size,), np.float32)
    return seen, spaces.Box(low, high, (env.action_size,), np.float32)


def gymnasium_env(env: Environment, autoreset: str = "same_step") -> Any:
    """The environment as a ``gymnasium.vector.VectorEnv``; arrays keep their type.

    Args:
        env: the environment.
        autoreset: ``"same_step"``, or ``"next_step"``, which some wrappers of Gymnasium need.
    """
    if autoreset not in ("same_step", "next_step"):
        raise ValueError(f"autoreset must be 'same_step' or 'next_step', got {autoreset!r}")
    gymnasium = need("gymnasium", "gymnasium_env", "learning")
    vector = need("gymnasium.vector", "gymnasium_env", "learning")

    class GymnasiumEnv(vector.VectorEnv):
        """Many worlds of kinetree."""

        metadata = {"autoreset_mode": vector.AutoresetMode[autoreset.upper()], "render_modes": []}

        def __init__(self):
            self.env, self.num_envs, self.waiting = env, env.worlds, None
            boxes = _boxes(env, gymnasium.spaces)
            self.single_observation_space, self.single_action_space = boxes
            self.observation_space, self.action_space = (
                vector.utils.batch_space(b, env.worlds) for b in boxes
            )

        def reset(self, *, seed=None, options=None):
            """First observations; ``options={"reset_mask": ...}`` chooses worlds."""
            self.waiting = None
            return env.reset(seed, worlds=(options or {}).get("reset_mask")), {}

        def step(self, actions):
            """Results of ``Environment.step``."""
            before = env.state
            seen, reward, ended, late, info = env.step(actions)
            final, failed = info["final_observation"], info["failed"]
            if autoreset == "same_step":
                over = ended | late
                info = {"final_obs": final, "_final_obs": over}
                return seen, reward, ended, late, info | {"failed": failed, "_failed": over}
            first, seen = seen, final
            if self.waiting is not None:
                which, begun = self.waiting
                env.state = {n: _where(which, before[n], x) for n, x in env.state.items()}
                first, seen = (_where(which, begun, x) for x in (first, seen))
                ended, late, failed = (x & ~which for x in (ended, late, failed))
                reward = reward * ~which
            self.waiting = ended | late, first
            return seen, reward, ended, late, {"failed": failed, "_failed": ended | late}

    return GymnasiumEnv()


def sb3_env(env: Environment) -> Any:
    """The environment as a ``VecEnv`` of Stable-Baselines3, which takes NumPy arrays."""
    spaces = need("gymnasium.spaces", "sb3_env", "sb3")
    vec_env = need("stable_baselines3.common.vec_env", "sb3_env", "sb3")

    class SB3Env(vec_env.VecEnv):
        """Many worlds of kinetree."""

        def __init__(self):
            super().__init__(env.worlds, *_boxes(env, spaces))
            self.env, self.actions = env, None

        def reset(self):
            """First observations."""
            seeds = [s for s in self._seeds if s is not None]
            self._reset_seeds()
            return _numpy(env.reset(seeds[0] if seeds else None))

        def step_async(self, actions):
            """Keep the actions."""
            self.actions = actions

        def step_wait(self):
            """A control step with the actions that were kept."""
            *results, info = env.step(self.actions)
            seen, reward, ended, late = map(_numpy, results)
            final = _numpy(info["final_observation"])
            infos: list[dict] = [{} for _ in range(env.worlds)]
            for k in np.flatnonzero(ended | late):
                infos[k]["terminal_observation"] = final[k]
                infos[k]["TimeLimit.truncated"] = bool(late[k])
            return seen, reward, ended | late, infos

        def close(self):
            """Nothing to do."""

        def get_attr(self, attr_name, indices=None):
            """One attribute for all worlds."""
            return [getattr(env, attr_name, None) for _ in self._get_indices(indices)]

        def set_attr(self, attr_name, value, indices=None):
            """Rejected: change arrays of ``env.arguments`` or ``env.state`` instead."""
            raise AttributeError(f"set {attr_name} in env.arguments or env.state instead")

        def env_method(self, method_name, *args, indices=None, **kwargs):
            """Rejected: worlds have no separate methods."""
            raise AttributeError(f"worlds of an Environment have no method {method_name}")

        def env_is_wrapped(self, wrapper_class, indices=None):
            """No world is."""
            return [False for _ in self._get_indices(indices)]

    return SB3Env()


def rsl_rl_env(env: Environment) -> Any:
    """The environment as a ``VecEnv`` of rsl-rl (3 and later), with one group of observations.

    It takes an environment with ``arrays="torch"``.
    """
    tensordict = need("tensordict", "rsl_rl_env", "rsl-rl")
    torch = need("torch", "rsl_rl_env", "rsl-rl")
    rsl_rl = need("rsl_rl.env", "rsl_rl_env", "rsl-rl")

    class RslRlEnv(rsl_rl.VecEnv):
        """Many worlds of kinetree."""

        def __init__(self):
            self.env, self.num_envs, self.num_actions = env, env.worlds, env.action_size
            self.max_episode_length, self.cfg = env.episode, {}
            self.seen = env.reset()
            self.device = self.seen.device

        @property
        def episode_length_buf(self):
            """Control steps since each episode began, (worlds,)."""
            return env.state["steps"].long()

        @episode_length_buf.setter
        def episode_length_buf(self, steps):
            env.state["steps"][:] = steps.to(env.state["steps"].dtype)

        def get_observations(self):
            """The last observations."""
            return tensordict.TensorDict({"policy": self.seen}, batch_size=[env.worlds])

        def step(self, actions):
            """Observations, rewards, whether episodes are over, and which for their length."""
            self.seen, reward, ended, late, _ = env.step(actions)
            over = torch.logical_or(ended, late).long()
            return self.get_observations(), reward, over, {"time_outs": late}

    return RslRlEnv()
