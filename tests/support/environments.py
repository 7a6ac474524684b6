"""Environments that are doors to a motion: what they observe and reward does not matter."""

import numpy as np

import kinetree as kt


def state_in_environment(model, q, controls=None, **options):
    """State of a single world after one control step of an environment, which starts at ``q``."""

    @kt.kernel
    def observe(m, q, qd):
        return q

    @kt.kernel
    def reward(m):
        return 0.0

    @kt.kernel
    def reset(m):
        return {"q": q + 0.0}

    env = kt.learning.Environment(
        model, 1, observe=observe, reward=reward, reset=reset, episode=None, **options
    )
    env.step(np.zeros((1, env.action_size)) if controls is None else controls[None])
    return {name: value[0] for name, value in env.state.items()}
