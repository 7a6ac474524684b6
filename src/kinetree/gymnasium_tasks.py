"""Names of the standard tasks, which Gymnasium gets when kinetree is imported after it.

This module imports nothing else, so that nobody waits for what is not used.
"""

import sys

from kinetree.errors import need

EPISODES = {
    "Pendulum": 200,
    "CartPoleSwingUp": 500,
    "Reacher": 50,
    "Hopper": 1000,
    "Walker2d": 1000,
    "HalfCheetah": 1000,
}
"""Control steps of an episode of each task."""
PREFIX, VERSION = "kinetree/", "-v0"


def register() -> tuple[str, ...]:
    """Register kinetree's tasks with Gymnasium; their names, e.g. ``"kinetree/Hopper-v0"``.

    ``import kinetree`` does so where Gymnasium has been imported before.
    """
    registration = need("gymnasium.envs.registration", "register", "learning")
    names = []
    for task, episode in EPISODES.items():
        names.append(f"{PREFIX}{task}{VERSION}")
        if names[-1] not in registration.registry:
            registration.register(
                id=names[-1],
                entry_point="kinetree.learning.tasks:one_world",
                vector_entry_point="kinetree.learning.tasks:many_worlds",
                max_episode_steps=episode,
                kwargs={"task": task},
            )
    return tuple(names)


# Gymnasium has no plugins since 1.0: packages register their tasks when they are imported.
if hasattr(sys.modules.get("gymnasium.envs.registration"), "register_envs"):
    register()
