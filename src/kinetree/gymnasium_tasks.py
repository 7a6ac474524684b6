"""Names of the standard tasks, which Gymnasium registers when it is imported.

This module imports nothing else, so that a program that uses Gymnasium without kinetree does not
wait for it.
"""

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
    """Register the tasks with Gymnasium; returns their names, such as ``"kinetree/Hopper-v0"``.

    Where kinetree is installed, Gymnasium calls this by itself.
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
