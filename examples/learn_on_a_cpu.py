"""Learning on a CPU: a cart balances a pole, and an arm reaches for targets, within a minute.

python examples/learn_on_a_cpu.py
python examples/learn_on_a_cpu.py reach
"""

import sys

import numpy as np
import ppo

import kinetree as kt

# --- A cart balances a pole ----------------------------------------------------------------------


@kt.kernel
def see_pole(model, q, qd):
    return np.array([q[0], np.cos(q[1]), np.sin(q[1]), qd[0], qd[1]])


@kt.kernel
def stay_up(model, q, action):
    return 1 - 0.01 * action[0] * action[0] - 0.1 * q[0] * q[0]


@kt.kernel
def fallen(model, q):
    return (np.abs(q[1] - np.pi) > 0.3) | (np.abs(q[0]) > 2)


@kt.kernel
def near_the_top(model, uniform: (2,), normal: (2,)):
    return {"q": np.array([0, np.pi]) + 0.1 * (uniform - 0.5), "qd": 0.1 * normal}


@kt.kernel
def push(model, action: (1,)):
    return np.array([10 * action[0], 0])


def balance(worlds=64, **options):
    """A cart-pole whose episodes last four seconds, rewards at most 1 a step: 200 in all."""
    return kt.learning.Environment(
        kt.samples.cart_pole(), worlds, observe=see_pole, reward=stay_up, terminate=fallen,
        reset=near_the_top, act=push, dt=0.01, decimation=2, episode=200, arrays="torch", **options,
    )  # fmt: skip


# --- An arm reaches for a target -----------------------------------------------------------------


def tip(model, q):
    """Where the tip is in the plane of the arm, (2,)."""
    return kt.pose(model, q, "tip")[[0, 2], 3]


@kt.kernel
def see_arm(model, q, qd, goal: (2,)):
    off = goal - tip(model, q)
    pull = off @ kt.jacobian(model, q, "tip", frame="aligned")[[3, 5]]
    return np.concatenate([np.sin(q), np.cos(q), 0.2 * qd, off, pull])


@kt.kernel
def come_near(model, q, action, goal: (2,)):
    off = goal - tip(model, q)
    return 1 - np.sqrt(off @ off + 1e-4) - 0.01 * (action @ action)


@kt.kernel
def anywhere(model, uniform: (4,)):
    """Any posture, and a target within reach: that of the tip in another posture."""
    angles = 2 * np.pi * (uniform[2:] - 0.5)
    return {"q": 2 * np.pi * (uniform[:2] - 0.5), "goal": tip(model, angles)}


@kt.kernel
def turn(model, qd, action: (2,)):
    return np.array([6.0, 3.0]) * action - np.array([3.0, 1.5]) * qd


def reach(worlds=64, **options):
    """A two-link arm in a horizontal plane: rewards at most 1 a step, 100 steps of 0.04 s."""
    model = kt.samples.double_pendulum().replace(gravity=(0, 0, 0))
    return kt.learning.Environment(
        model, worlds, observe=see_arm, reward=come_near, reset=anywhere, act=turn, dt=0.02,
        decimation=2, episode=100, arrays="torch", **options,
    )  # fmt: skip


def learn(task, iterations, report=print, **options):
    """A policy for a task, and records of its iterations."""
    return ppo.train(task(), iterations=iterations, gamma=0.95, seed=1, report=report, **options)


if __name__ == "__main__":

    def show(record):
        """One line for an iteration."""
        print("   ".join(f"{name} {value:.3g}" for name, value in record.items()))

    learn({"reach": reach}.get(sys.argv[-1], balance), 60, show)
