"""Standard tasks by name, as environments of kinetree and of Gymnasium.

    env = kt.learning.make("Hopper", 4096)                     # an Environment, on any device
    kt.learning.register()                                     # not needed once it is installed
    one = gymnasium.make("kinetree/Hopper-v0")
    many = gymnasium.make_vec("kinetree/Hopper-v0", num_envs=64)

Mechanisms, observations, rewards and ends of episodes are those of Gymnasium's tasks of the same
names; contact is rigid. Robots of MuJoCo come from the files that Gymnasium brings along.
"""

# pyright: reportInvalidTypeForm=false
# Shapes of the arguments of kernels are annotations.

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kinetree.contact import Scene
from kinetree.errors import UnknownNameError, need
from kinetree.functional.kernel import kernel, select
from kinetree.gymnasium_tasks import EPISODES
from kinetree.joints import Revolute
from kinetree.learning.adapters import gymnasium_env
from kinetree.learning.environment import Environment
from kinetree.model import Model, ModelBuilder, shapes
from kinetree.quantities import pose
from kinetree.samples import cart_pole
from kinetree.spelling import did_you_mean


@dataclass(frozen=True)
class LearningTask:
    """A task: its mechanism, and the options of ``Environment``."""

    model: Any
    options: dict = field(default_factory=dict)
    contact: bool = False


# --- Pendulum: Gymnasium's Pendulum-v1 -----------------------------------------------------------


def _pendulum() -> Model:
    """Model of a 1 m, 1 kg rod pendulum, upright at zero."""
    b = ModelBuilder("pendulum", gravity=(0, 0, -10.0))
    rod = shapes.rod(1.0, mass=1.0, at=(0, 0, 0.5))
    return b.body("rod", joint=Revolute("y"), inertia=rod, joint_name="pivot").build()


def _wrapped(angle):
    """Angle wrapped to the interval from -π to π [rad]."""
    return angle - 2 * np.pi * np.floor((angle + np.pi) / (2 * np.pi))


@kernel
def _pendulum_seen(model, q, qd):
    """Observation of the pendulum: cosine, sine and clipped angular velocity."""
    return np.array([np.cos(q[0]), np.sin(q[0]), _clip(qd[0], 8.0)])


@kernel
def _pendulum_before(model, q, qd):
    """State update before a pendulum step: clipped velocity and cost."""
    speed = _clip(qd[0], 8.0)
    return {"qd": np.array([speed]), "cost": _wrapped(q[0]) ** 2 + 0.1 * speed**2}


@kernel
def _pendulum_reward(model, cost: (), action):
    """Reward of the pendulum: minus the cost of state and torque."""
    return -(cost + 0.001 * action[0] ** 2)


@kernel
def _pendulum_start(model, uniform: (2,)):
    """Random initial state of the pendulum from uniform numbers."""
    spread = 2 * uniform - 1
    return {"q": np.pi * spread[:1], "qd": spread[1:], "cost": 0.0 * spread[0]}


@kernel
def _pendulum_force(model, action: (1,)):
    """Joint force of the pendulum: the action as torque."""
    return action


def _clip(x, most):
    """Number limited to the interval from ``-most`` to ``most``, traceable."""
    return select(x > most, most, select(x < -most, -most, x))


# --- CartPoleSwingUp -----------------------------------------------------------------------------


@kernel
def _swing_seen(model, q, qd):
    """Observation of the cart-pole: position, pole angle (cos, sin) and velocities."""
    return np.array([q[0], np.cos(q[1]), np.sin(q[1]), qd[0], qd[1]])


@kernel
def _swing_reward(model, q, qd, action):
    """Reward of cart-pole swing-up: upright, centred, with little force and speed."""
    upright, centred = (1 - np.cos(q[1])) / 2, 1 / (1 + q[0] ** 2)
    calm, slow = (4 + 1 / (1 + action[0] ** 2)) / 5, (1 + 1 / (1 + 0.04 * qd[1] ** 2)) / 2
    return upright * centred * calm * slow


@kernel
def _swing_start(model, normal: (4,)):
    """Random initial state of the cart-pole near hanging, from normal numbers."""
    return {"q": 0.01 * normal[:2], "qd": 0.01 * normal[2:]}


@kernel
def _swing_force(model, action: (1,)):
    """Joint forces of the cart-pole: the scaled action on the cart alone."""
    return np.array([10 * action[0], 0])


@kernel
def _swing_end(model, q):
    """Whether the cart has left its track of 3 m to either side."""
    return np.abs(q[0]) > 3.0


# --- Reacher: Gymnasium's Reacher-v5 -------------------------------------------------------------


_TARGET = (0.1, -0.1)
"""Where the target is at zero of its joints [m]; Gymnasium's positions are places."""


@kernel
def _reach_seen(model, q, qd):
    """Observation of the reacher: angles, target, velocities and tip error."""
    error = pose(model, q, "fingertip")[:2, 3] - pose(model, q, "target")[:2, 3]
    angles = [np.cos(q[0]), np.cos(q[1]), np.sin(q[0]), np.sin(q[1])]
    place = [q[2] + _TARGET[0], q[3] + _TARGET[1]]
    return np.array([*angles, *place, qd[0], qd[1], error[0], error[1]])


@kernel
def _reach_reward(model, q, action):
    """Reward of the reacher: minus tip error and squared action."""
    error = pose(model, q, "fingertip")[:3, 3] - pose(model, q, "target")[:3, 3]
    return -np.sqrt(error @ error) - action @ action


@kernel
def _reach_start(model, uniform: (6,)):
    """Random initial state and target of the reacher from uniform numbers."""
    radius, angle = 0.2 * np.sqrt(uniform[2]), 2 * np.pi * uniform[3]
    start, speed = 0.2 * uniform[:2] - 0.1, 0.01 * uniform[4:] - 0.005
    goal = [radius * np.cos(angle) - _TARGET[0], radius * np.sin(angle) - _TARGET[1]]
    return {
        "q": np.array([start[0], start[1], goal[0], goal[1]]),
        "qd": np.array([speed[0], speed[1], 0, 0]),
    }


# --- Hopper, Walker2d, HalfCheetah: Gymnasium's, version 5 ---------------------------------------
# The root slides along x and z and turns about y. Heights of Gymnasium are 1.25 m where the first
# two stand, and positions of kinetree are zero there.

_STANDING = 1.25


@kernel
def _runner_before(model, q):
    """State update before a runner's step: its forward position."""
    return {"before": q[0]}


@kernel
def _legged_seen(model, q, qd):
    """Observation of a legged runner: height, angles and clipped velocities."""
    speeds = [_clip(qd[k], 10.0) for k in range(model.nv)]
    return np.array([q[1] + _STANDING, *(q[k] for k in range(2, model.nq)), *speeds])


@kernel
def _legged_start(model, uniform: (18,)):
    """Random initial state of a legged runner near standing, from uniform numbers."""
    n = model.nq
    spread = 0.01 * uniform - 0.005
    return {"q": spread[:n], "qd": spread[9 : 9 + n], "before": spread[0]}


def _legged_reward(least, most, tilt):
    """Reward kernel of a legged runner (speed, upright bonus), and its end condition."""

    def is_down(model, q, qd):
        z = q[1] + _STANDING
        down = (z < least) | (np.abs(q[2]) > tilt)
        if most < np.inf:
            return down | (z > most)
        for x in (*(q[k] for k in range(2, model.nq)), *(qd[k] for k in range(model.nv))):
            down = down | (np.abs(x) > 100)  # a hopper that flies apart
        return down

    @kernel
    def reward(model, q, qd, action, before: ()):
        alive = select(is_down(model, q, qd), 0.0, 1.0)
        return (q[0] - before) / 0.008 + alive - 1e-3 * action @ action

    @kernel
    def fallen(model, q, qd):
        return is_down(model, q, qd)

    return reward, fallen


@kernel
def _cheetah_seen(model, q, qd):
    """Observation of the half-cheetah: positions without x, and velocities."""
    return np.array([*(q[k] for k in range(1, 9)), *(qd[k] for k in range(9))])


@kernel
def _cheetah_reward(model, q, action, before: ()):
    """Reward of the half-cheetah: forward speed minus control cost."""
    return (q[0] - before) / 0.05 - 0.1 * action @ action


@kernel
def _cheetah_start(model, uniform: (9,), normal: (9,)):
    """Random initial state of the half-cheetah from uniform and normal numbers."""
    spread = 0.2 * uniform - 0.1
    return {"q": spread, "qd": 0.1 * normal, "before": spread[0]}


def _of_gymnasium(name):
    """Function that loads a robot model from Gymnasium's MuJoCo assets."""

    def load() -> Model:
        from kinetree.loaders.load import read

        mujoco = need("gymnasium.envs.mujoco", "a robot of Gymnasium's tasks", "learning")
        return read(Path(str(mujoco.__file__)).parent / "assets" / f"{name}.xml").model

    return load


def _runner(name, reward, end, seen=_legged_seen, start=_legged_start, **steps):
    """``LearningTask`` of a legged robot of Gymnasium that runs forward."""
    options = {"observe": seen, "reward": reward, "terminate": end, "reset": start}
    options |= {"update": _runner_before, "dt": 2e-3, "decimation": 4} | steps
    return LearningTask(_of_gymnasium(name), options, contact=True)


TASKS = {
    "Pendulum": LearningTask(
        _pendulum, {
            "observe": _pendulum_seen, "reward": _pendulum_reward, "reset": _pendulum_start,
            "act": _pendulum_force, "update": _pendulum_before, "dt": 0.05,
            "action_limits": (-2.0, 2.0),
        },
    ),
    "CartPoleSwingUp": LearningTask(
        cart_pole, {
            "observe": _swing_seen, "reward": _swing_reward, "reset": _swing_start,
            "act": _swing_force, "terminate": _swing_end, "dt": 0.01, "decimation": 2,
        },
    ),
    "Reacher": LearningTask(
        _of_gymnasium("reacher"), {
            "observe": _reach_seen, "reward": _reach_reward, "reset": _reach_start,
            "dt": 0.01, "decimation": 2, "integrator": "rk4",
        },
    ),
    "Hopper": _runner("hopper", *_legged_reward(0.7, np.inf, 0.2)),
    "Walker2d": _runner("walker2d_v5", *_legged_reward(0.8, 2.0, 1.0)),
    "HalfCheetah": _runner(
        "half_cheetah", _cheetah_reward, None, _cheetah_seen, _cheetah_start,
        dt=0.01, decimation=5,
    ),
}  # fmt: skip
"""The tasks of ``make`` by name."""


@cache
def _model(name) -> Model:
    """Model of a standard task by name."""
    return TASKS[name].model()


def make(name: str, worlds: int, **options: Any) -> Environment:
    """``Environment`` of a standard task by name, with options.

    Args:
        name: ``"Pendulum"``, ``"CartPoleSwingUp"``, ``"Reacher"``, ``"Hopper"``, ``"Walker2d"`` or
            ``"HalfCheetah"``.
        worlds: how many.
        **options: of ``Environment``, such as ``device="cuda"``, ``arrays="torch"``, ``seed`` or
            another ``reward``.
    """
    if name not in TASKS:
        raise UnknownNameError(f"there is no task {name!r}; {did_you_mean(name, TASKS)}")
    task, model = TASKS[name], _model(name)
    contact = {"contact": Scene(model, pairs="base")} if task.contact else {}
    return Environment(
        model, worlds, **{"episode": EPISODES[name], **contact, **task.options, **options}
    )


# --- Gymnasium -----------------------------------------------------------------------------------


def many_worlds(num_envs: int, task: str, render_mode=None, **options: Any) -> Any:
    """Standard task as a ``gymnasium.vector.VectorEnv`` of ``num_envs`` worlds."""
    del render_mode
    steps = options.pop("max_episode_steps", EPISODES[task])
    autoreset = options.pop("autoreset", "same_step")
    return gymnasium_env(make(task, num_envs, **{"episode": steps, **options}), autoreset)


def one_world(task: str, render_mode=None, **options: Any) -> Any:
    """Standard task as a single ``gymnasium.Env``."""
    gymnasium = need("gymnasium", "one_world", "learning")
    if render_mode not in (None, "rgb_array"):
        raise UnknownNameError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
    env = make(task, 1, **{"episode": None, **options})
    low, high = env.program.limits

    class OneWorld(gymnasium.Env):
        """One world of kinetree."""

        metadata = {"render_modes": ["rgb_array"], "render_fps": round(1 / env.step_time)}

        def __init__(self):
            box = gymnasium.spaces.Box
            self.env, self.render_mode = env, render_mode
            self.observation_space = box(-np.inf, np.inf, (env.observation_size,), np.float32)
            self.action_space = box(low, high, (env.action_size,), np.float32)

        def reset(self, *, seed=None, options=None):
            """First observation."""
            super().reset(seed=seed)
            return np.asarray(env.reset(seed))[0], {}

        def step(self, action):
            """A control step; after its end, an episode has to be reset."""
            action = np.asarray(action, dtype=np.float32).reshape(1, env.action_size)
            _, reward, ended, late, info = env.step(action)
            found = np.asarray(info.pop("final_observation"))[0]
            info = {key: np.asarray(x)[0] for key, x in info.items()}
            return found, float(reward[0]), bool(ended[0]), bool(late[0]), info

        def render(self):
            """A picture, where ``render_mode="rgb_array"``."""
            if render_mode is None:
                return None
            return np.asarray(env.render(_eye(env)))[0]

    return OneWorld()


def _eye(env):
    """Camera beside the root of the robot of the first world."""
    from kinetree.model.cameras import camera

    x = float(np.asarray(env.state["q"])[0][0]) if "before" in env.state else 0.0
    return camera((x, -3.0, 1.0), (x, 0.0, 0.7), size=(320, 240))
