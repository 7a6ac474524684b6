"""Learning of motions: environments whose whole control step is one compiled call.

    env = kt.learning.Environment(model, worlds=4096, observe=..., reward=..., reset=...)
    observation, reward, terminated, truncated, info = env.step(action)

``gymnasium_env``, ``sb3_env`` and ``rsl_rl_env`` put other libraries' interfaces around it, and
``make`` has standard tasks by name.
"""

from kinetree.arguments import guard_module
from kinetree.gymnasium_tasks import register
from kinetree.learning.adapters import gymnasium_env, rsl_rl_env, sb3_env
from kinetree.learning.environment import Environment
from kinetree.learning.tasks import TASKS, make

__all__ = ["TASKS", "Environment", "gymnasium_env", "make", "register", "rsl_rl_env", "sb3_env"]

guard_module(__name__)
