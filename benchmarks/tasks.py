"""Standard tasks of ``kt.learning.make`` beside Gymnasium's: returns of random actions, and speed.

    python benchmarks/tasks.py                   # all tasks; --only Hopper

Both take the same number of episodes with uniform random actions. Speeds are control steps for a
second of CPU time of one thread, the largest of several turns: Gymnasium one world at a time, as
it steps them, kinetree 256 at once.
"""

import argparse
import time

import gymnasium
import numpy as np

import kinetree as kt

PEERS = {
    "Pendulum": "Pendulum-v1",
    "Reacher": "Reacher-v5",
    "Hopper": "Hopper-v5",
    "Walker2d": "Walker2d-v5",
    "HalfCheetah": "HalfCheetah-v5",
}
WORLDS, TURNS = 256, 3


def main():
    """Print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=PEERS)
    parser.add_argument("--episodes", type=int, default=100)
    options = parser.parse_args()
    kt.set_threads(1)
    print("task          return, kinetree  return, Gymnasium   steps/s, kinetree  Gymnasium")
    for name in [options.only] if options.only else PEERS:
        ours, theirs = our_returns(name), peer_returns(name, options.episodes)
        speeds = our_speed(name), peer_speed(name)
        means = "  ".join(
            f"{x.mean():8.2f} ± {x.std() / len(x) ** 0.5:5.2f}" for x in (ours, theirs)
        )
        print(f"{name:12s}  {means}  {speeds[0]:15,.0f}  {speeds[1]:9,.0f}", flush=True)


def our_returns(name):
    """Returns of the first episode in every world."""
    env = kt.learning.make(name, WORLDS, seed=1)
    rng, low, high = np.random.default_rng(0), *env.program.limits
    env.reset(seed=1)
    total, running = np.zeros(WORLDS), np.ones(WORLDS, dtype=bool)
    while running.any():
        _, reward, ended, late, _ = env.step(rng.uniform(low, high, (WORLDS, env.action_size)))
        total += np.where(running, reward, 0.0)
        running &= ~(ended | late)
    return total


def peer_returns(name, episodes):
    """Returns of Gymnasium's task."""
    env = gymnasium.make(PEERS[name])
    env.action_space.seed(0)
    found = []
    for k in range(episodes):
        env.reset(seed=k)
        total, over = 0.0, False
        while not over:
            _, reward, ended, late, _ = env.step(env.action_space.sample())
            total, over = total + reward, ended or late
        found.append(total)
    return np.array(found)


def our_speed(name):
    """Control steps a second of CPU time."""
    env = kt.learning.make(name, WORLDS, seed=1)
    rng, low, high = np.random.default_rng(0), *env.program.limits
    actions = rng.uniform(low, high, (20, WORLDS, env.action_size))
    for action in actions:
        env.step(action)
    return max(timed(lambda: [env.step(a) for a in actions]) for _ in range(TURNS)) * 20 * WORLDS


def peer_speed(name):
    """Control steps a second of CPU time, resets included."""
    env = gymnasium.make(PEERS[name]).unwrapped
    rng = np.random.default_rng(0)
    low, high = env.action_space.low, env.action_space.high
    actions = rng.uniform(low, high, (500, *low.shape)).astype(np.float32)
    env.reset(seed=0)

    def steps():
        for action in actions:
            if env.step(action)[2]:
                env.reset()

    return max(timed(steps) for _ in range(TURNS)) * len(actions)


def timed(run):
    """Calls a second of CPU time."""
    start = time.process_time()
    run()
    return 1 / (time.process_time() - start)


if __name__ == "__main__":
    main()
