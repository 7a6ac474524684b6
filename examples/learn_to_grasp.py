"""Learning to grasp: an arm with two fingers lifts objects of random shape and mass.

    python examples/learn_to_grasp.py --worlds 56 --minutes 1       # a try on the CPU
    python examples/learn_to_grasp.py --device cuda                 # thousands of arms on a GPU

Each kind of object is a separate environment of the task in ``grasping.py``, and the policy learns
in all of them at once. Writes grasp.pt, the policy, to go on with, grasp.npz, the same without
torch, and grasp.csv, the curve. Then prints how often it lifts objects that it has not seen, on the
CPU in float64.
"""

import argparse
import csv
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import ppo
import torch
from grasping import EPISODE, HIGH, TRAINED, environment, held_out, lift_of, policy_of, success

HELP = 0.5  # part of the episodes, at first, that begin nearer to the object


class Several:
    """Environments side by side, as one; on a GPU they take steps at the same time."""

    def __init__(self, makers, threads=8):
        with ThreadPoolExecutor(threads) as pool:  # each compiles for some seconds
            self.each = list(pool.map(_compiled, makers))
        self.worlds = sum(e.worlds for e in self.each)
        self.observation_size = self.each[0].observation_size
        self.action_size = self.each[0].action_size
        on_gpu = self.each[0].state["q"].is_cuda
        self.streams = [torch.cuda.Stream() for _ in self.each] if on_gpu else []

    def reset(self, seed=0):
        """First observations of all, each at its own time of an episode."""
        seen = torch.cat([e.reset(seed + k) for k, e in enumerate(self.each)])
        for e in self.each:  # so that not all episodes end in the same step
            steps = e.state["steps"]
            steps[...] = torch.randint(EPISODE, steps.shape, device=steps.device).to(steps)
        return seen

    def step(self, action):
        """A control step of all."""
        parts = action.split([e.worlds for e in self.each])
        found = [self._step_one(k, part) for k, part in enumerate(parts)]
        for stream in self.streams:
            torch.cuda.current_stream().wait_stream(stream)
        *results, infos = zip(*found, strict=True)
        last = torch.cat([info["final_observation"] for info in infos])
        return *map(torch.cat, results), {"final_observation": last}

    def _step_one(self, k, action):
        """A control step of one of them, on its own stream."""
        if not self.streams:
            return self.each[k].step(action)
        self.streams[k].wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.streams[k]):
            return self.each[k].step(action)


def _compiled(make):
    """An environment that has taken a step."""
    env = make()
    env.step(np.zeros((env.worlds, env.action_size)))
    return env


def save(policy, path):
    """Write the actor with its normalization, for ``grasping.policy_of``."""
    layers = [part for part in policy.actor if isinstance(part, torch.nn.Linear)]
    found = {"mean": policy.mean, "spread": policy.deviation}
    for k, layer in enumerate(layers):
        found |= {f"weight{k}": layer.weight, f"bias{k}": layer.bias}
    np.savez(path, **{name: x.detach().cpu().numpy() for name, x in found.items()})


def main(argv=None):
    """Learn, and write what was learned."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", default="cpu")
    options.add_argument("--worlds", type=int)
    options.add_argument("--iterations", type=int, default=100_000)
    options.add_argument("--minutes", type=float, default=6.0, help="of learning")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument(
        "--tries", type=int, default=40, help="objects held out to lift in the end"
    )
    options.add_argument("--start", help="file with a policy to go on with")
    options.add_argument("--out", default="grasp", help="name of the files that are written")
    o = options.parse_args(argv)
    worlds = (o.worlds or (56 if o.device == "cpu" else 8192)) // len(TRAINED)
    env = Several(partial(environment, s, worlds, o.device, o.seed, HELP) for s in TRAINED)
    torch.manual_seed(o.seed)
    policy = ppo.Policy(env.observation_size, env.action_size, (128, 128), spread=0.6)
    with torch.no_grad():  # an untrained critic is 0: its noise would look like rewards
        policy.critic[-1].weight.mul_(0.01)
    if o.start:
        policy.load_state_dict(torch.load(o.start, map_location="cpu"))

    def report(r):
        r["held"] = float(torch.cat([lift_of(e) > HIGH / 2 for e in env.each]).double().mean())
        print(
            f"{r['seconds']:7.1f} s ({r['simulation']:.1f} simulation)  reward {r['reward']:.4f}"
            f"  episode {r['episode']:.2f}  in the air {r['held']:.1%}",
            flush=True,
        )
        torch.save(policy.state_dict(), f"{o.out}.pt")
        part = r["seconds"] / (60 * o.minutes)
        for e in env.each:  # episodes that begin from now on
            e.arguments["help"][...] = max(0.0, HELP * (1 - 1.5 * part))
        return part > 1

    policy, history = ppo.train(
        env, iterations=o.iterations, horizon=16, gamma=0.98, kl=0.02, entropy=0.002, policy=policy,
        seed=o.seed, report=report,
    )  # fmt: skip
    with open(f"{o.out}.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(history[0]))
        table.writeheader()
        table.writerows(history)
    save(policy, f"{o.out}.npz")
    print_success(policy_of(f"{o.out}.npz"), o.tries)
    return history


def print_success(policy, tries):
    """How often a policy lifts objects that were held out, each at 32 places with other masses."""
    rates = []
    for seed, shape in enumerate(held_out(tries)):
        env = environment(shape, 32, arrays="numpy")
        rates.append(success(policy, env, seed).mean())
        print(f"  {shape}: {rates[-1]:.1%}", flush=True)
    if rates:
        print(f"held in the air: {np.mean(rates):.1%} of objects that were held out")


if __name__ == "__main__":
    main()
