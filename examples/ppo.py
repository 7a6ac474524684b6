"""Proximal policy optimization in torch, for environments with torch tensors, on CPU and GPU.

After Schulman et al. (2017) with generalized advantage estimation (2016): an actor and a critic of
two layers, a Gaussian policy, observations normalized by their running mean and variance, and a
learning rate that keeps the change of the policy near ``kl`` (as rsl-rl does).
"""

import itertools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from kinetree.arrays.kinds import Array
from kinetree.learning.environment import Environment


class Policy(nn.Module):
    """Actor and critic: ``policy(observation)`` is the mean of the actions, (..., n).

    Args:
        observations: entries of an observation.
        actions: entries of an action.
        hidden: widths of the layers.
        spread: standard deviation of the actions at first.
    """

    mean: torch.Tensor
    square: torch.Tensor
    count: torch.Tensor

    def __init__(
        self, observations: int, actions: int, hidden: tuple = (64, 64), spread: float = 0.7
    ):
        super().__init__()
        self.actor = _layers(observations, hidden, actions, 0.01)
        self.critic = _layers(observations, hidden, 1, 1.0)
        self.log_spread = nn.Parameter(torch.full((actions,), spread).log())
        for name, start in (("mean", torch.zeros), ("square", torch.ones)):
            self.register_buffer(name, start(observations))
        self.register_buffer("count", torch.tensor(1e-2))

    def forward(self, seen: Array) -> Array:
        """The mean of the actions."""
        return self.actor(self.normalized(seen))

    def normalized(self, seen: Array) -> Array:
        """Observations with mean 0 and variance 1, as far as seen, within ±10."""
        return ((seen - self.mean) / self.deviation).clamp(-10.0, 10.0)

    @property
    def deviation(self) -> Array:
        """Standard deviations of the observations, as far as seen."""
        return (self.square - self.mean**2).clamp_min(1e-4).sqrt()

    def value(self, seen: Array) -> Array:
        """Expected sum of rewards to come, (...)."""
        return self.critic(self.normalized(seen))[..., 0]

    def distribution(self, seen: Array) -> Any:
        """The distribution of the actions."""
        return torch.distributions.Normal(self(seen), self.log_spread.exp(), validate_args=False)

    @torch.no_grad()
    def look(self, seen: Array) -> None:
        """Take observations (..., k) into the running mean and variance."""
        seen = seen.reshape(-1, seen.shape[-1])
        self.count += len(seen)
        weight = len(seen) / self.count
        self.mean += weight * (seen.mean(0) - self.mean)
        self.square += weight * (seen.square().mean(0) - self.square)


def _layers(size, hidden, results, gain):
    sizes, parts = (size, *hidden), []
    for a, b in itertools.pairwise(sizes):
        parts += [nn.Linear(a, b), nn.ELU()]
    last = nn.Linear(sizes[-1], results)
    nn.init.orthogonal_(last.weight, gain)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*parts, last)


def train(
    env: Environment, *, iterations: int, horizon: int = 24, epochs: int = 5, batches: int = 4,
    gamma: float = 0.99, smoothing: float = 0.95, clip: float = 0.2, kl: float = 0.01,
    rate: float = 1e-3, entropy: float = 0.0, hidden: tuple = (64, 64), spread: float = 0.7,
    seed: int = 0, policy: Policy | None = None, report: Callable[[dict], Any] | None = None,
) -> tuple[Policy, list[dict]]:  # fmt: skip
    """Learn a policy by proximal policy optimization.

    Args:
        env: with torch tensors; every iteration takes ``horizon`` control steps of all its worlds.
        iterations: how many.
        horizon: control steps of an iteration.
        epochs: passes over what an iteration has seen.
        batches: parts of it, each for one step of the optimizer.
        gamma: discount of a control step.
        smoothing: of advantages, the lambda of generalized advantage estimation.
        clip: how far the probability of an action may change in an iteration.
        kl: change of the policy in an iteration that the learning rate aims at.
        rate: learning rate at first.
        entropy: weight of the policy's entropy.
        hidden: widths of layers of a new policy.
        spread: standard deviation of actions of a new policy.
        seed: of weights and actions.
        policy: to go on with; it is changed in place.
        report: called after every iteration with its record; training ends when it returns True.

    Returns:
        The policy, and records of the iterations: ``reward``, mean of a control step; ``episode``,
        mean sum of rewards of the episodes that ended, NaN for none; ``seconds`` so far, of them
        ``simulation``.
    """
    torch.manual_seed(seed)
    seen, n = env.reset(seed), env.worlds
    device = seen.device
    made = policy or Policy(env.observation_size, env.action_size, hidden, spread)
    policy = made.to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=rate, eps=1e-5)
    total, history, simulation, start = torch.zeros(n, device=device), [], 0.0, time.perf_counter()
    with torch.no_grad():
        policy.look(seen)
    for _ in range(iterations):
        found, finished = [], []
        begun = time.perf_counter()
        with torch.no_grad():
            for _ in range(horizon):
                actions = policy.distribution(seen)
                action = actions.sample()
                after, reward, ended, late, info = env.step(action)
                keep = torch.logical_or(ended, late).float()
                # what is cut short goes on in expectation
                rest = policy.value(info["final_observation"]) * late.float()
                found.append((seen, action, actions.log_prob(action).sum(-1), policy.value(seen),
                              reward + gamma * rest, keep, actions.mean))  # fmt: skip
                total = total + reward
                finished.append(torch.stack([(total * keep).sum(), keep.sum(), reward.mean()]))
                total, seen = total * (1 - keep), after
            last = policy.value(seen)
        s, a, logp, value, reward, over, mean = (torch.stack(x) for x in zip(*found, strict=True))
        ends = torch.stack(finished).sum(0).tolist()  # waits for the device
        simulation += time.perf_counter() - begun
        gain = _advantages(reward, value, over, last, gamma, smoothing)
        goal = gain + value
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        flat = [x.flatten(0, 1) for x in (s, a, logp, gain, goal, mean)]
        before = policy.log_spread.detach().clone()
        for _ in range(epochs):
            for part in torch.randperm(horizon * n, device=device).chunk(batches):
                one = [x[part] for x in flat]
                change = _improve(policy, optimizer, one, before, clip, entropy)
                _adapt(optimizer, change, kl)
        policy.look(s)
        record = {
            "reward": ends[2] / horizon, "episode": ends[0] / ends[1] if ends[1] else float("nan"),
            "seconds": time.perf_counter() - start, "simulation": simulation,
        }  # fmt: skip
        history.append(record)
        if report is not None and report(record):
            break
    return policy, history


def _advantages(reward, value, over, last, gamma, smoothing):
    """Advantages of actions, (horizon, worlds), by generalized advantage estimation."""
    gain, found = torch.zeros_like(last), []
    for k in reversed(range(len(reward))):
        goes_on = 1 - over[k]
        error = reward[k] + gamma * goes_on * last - value[k]
        gain = error + gamma * smoothing * goes_on * gain
        found.append(gain)
        last = value[k]
    return torch.stack(found[::-1])


def _improve(policy, optimizer, part, before, clip, entropy):
    """One step of the optimizer; how far the policy is from where the iteration began (KL)."""
    s, a, logp, gain, goal, mean = part
    actions = policy.distribution(s)
    ratio = (actions.log_prob(a).sum(-1) - logp).exp()
    surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain)
    loss = -surrogate.mean() + 0.5 * (policy.value(s) - goal).square().mean()
    if entropy:
        loss = loss - entropy * actions.entropy().sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    with torch.no_grad():
        old, new = before.exp(), policy.log_spread.exp()
        away = (old.square() + (actions.mean - mean).square()) / (2 * new.square())
        return (policy.log_spread - before + away - 0.5).sum(-1).mean()


def _adapt(optimizer, change, kl):
    """Learn more slowly where the policy changes too much, and faster where it hardly does."""
    change = float(change)
    for group in optimizer.param_groups:
        factor = 1 / 1.5 if change > 2 * kl else 1.5 if 0 < change < kl / 2 else 1.0
        group["lr"] = min(max(group["lr"] * factor, 1e-5), 1e-2)
