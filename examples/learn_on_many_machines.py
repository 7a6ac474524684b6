"""Learn on many machines: a swing-up by the cross-entropy method, on a Dask cluster.

    pip install "kinetree[cluster,learning]"
    python examples/learn_on_many_machines.py                     # two processes of this machine
    python examples/learn_on_many_machines.py tcp://head:8786     # the workers of a cluster

Each generation is a sweep: a candidate policy is a run, many of them are rolled out in one compiled
call on whatever worker is free. Workers may die and join while it learns.
"""

import sys

import numpy as np
from distributed import Client, LocalCluster

import kinetree as kt

CANDIDATES, BEST, GENERATIONS, STEPS = 400, 20, 10, 150
SIZE = 6  # numbers of a policy


def returns(model, policy, seed):
    """Sum of rewards of each policy, (runs,); the worlds of all runs are one environment."""
    import kinetree as kt

    del model
    env = kt.learning.make("Pendulum", len(policy), episode=None, seed=1)
    env.state["q"][:], env.state["qd"][:] = np.pi - 0.05, 0.0  # they all begin hanging
    seen = np.tile([-1.0, np.sin(0.05), 0.0], (len(policy), 1))
    total = np.zeros(len(policy))
    for _ in range(STEPS):
        cos, sin, speed = np.array(seen, dtype=float).T
        features = np.array(
            [sin, speed, sin * cos, speed * cos, speed * abs(speed) / 8, speed**3 / 64]
        )
        action = 2 * np.tanh((policy * features.T).sum(1, keepdims=True))
        seen, reward, *_ = env.step(action)
        total += reward
    return {"total": total, "seed": seed}


def learn(client):
    """The best policy, and the mean return of the best candidates of every generation."""
    rng, model = np.random.default_rng(0), kt.samples.pendulum()
    mean, spread, history = np.zeros(SIZE), 1.5 * np.ones(SIZE), []
    for generation in range(GENERATIONS):
        policies = mean + spread * rng.standard_normal((CANDIDATES, SIZE))
        found = kt.sweep(
            model, returns, samples={"policy": policies}, batched=True, client=client,
            chunk=CANDIDATES // 4, progress=False,
        )  # fmt: skip
        order = np.argsort(found["total"])[::-1][:BEST]
        mean, spread = policies[order].mean(0), policies[order].std(0) + 0.1
        history.append(found["total"][order].mean())
        print(f"generation {generation + 1}: mean return of the best {history[-1]:.0f}", flush=True)
    return mean, history


if __name__ == "__main__":
    if sys.argv[1:]:
        with Client(sys.argv[1]) as client:
            learn(client)
    else:
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            learn(client)
