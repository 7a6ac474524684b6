"""Reinforcement learning on a CPU.

A cart learns to balance a pole of unknown mass while it is pushed, in a few seconds, by trial and
error: an environment of 256 worlds in compiled code, and a learner of twenty lines of NumPy.
"""

# %%
# A task consists of kernels, written for one world: what the agent observes, what its action does,
# the reward, when an episode ends, and how one begins. Here the pole has a different mass,
# `load`, in every episode, and the cart is hit every second.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
cart = kt.samples.cart_pole()


@kt.kernel
def observe(model, q, qd):
    return np.array([q[0], np.sin(q[1] - np.pi), qd[0], qd[1]])


@kt.kernel
def act(model, action: (1,)):
    return np.array([20 * action[0], 0])


@kt.kernel
def reward(model, q, action):
    return 1 - 0.3 * q[0] ** 2 - 0.05 * action[0] ** 2


@kt.kernel
def terminate(model, q):
    return (np.abs(q[1] - np.pi) > 0.5) | (np.abs(q[0]) > 1)


@kt.kernel
def reset(model, uniform: (3,)):
    start = np.array([0.4 * (uniform[0] - 0.5), np.pi + 0.2 * (uniform[1] - 0.5)])
    return {"q": start, "load": 0.05 + 0.25 * uniform[2]}


@kt.kernel
def update(model, qd, steps, uniform: (1,)):
    hit = kt.select(steps - 50 * np.floor(steps / 50) < 0.5, 1.0, 0.0)
    return {"qd": qd + hit * np.array([0.6 * (uniform[0] - 0.5), 0])}


# %%
# All worlds take a control step of 20 ms, two steps of the simulation, in one compiled call.

WORLDS, EPISODE = 256, 250  # and control steps, five seconds
env = kt.learning.Environment(
    cart, WORLDS, observe=observe, act=act, reward=reward, terminate=terminate, reset=reset,
    update=update, parameters={"mass:pole": "load"}, dt=0.01, decimation=2, episode=EPISODE,
)  # fmt: skip


def returns(policies, seed):
    """Rewards of one episode in every world, each with its own policy, (worlds, 4)."""
    seen, total, alive = env.reset(seed=seed), np.zeros(WORLDS), np.ones(WORLDS)
    for _ in range(EPISODE):
        action = np.tanh(np.sum(policies * seen, axis=1, keepdims=True))
        seen, gained, terminated, *_ = env.step(action)
        total += alive * gained
        alive *= ~terminated
    return total


print(f"without a policy: {returns(np.zeros((WORLDS, 4)), 0).mean():.0f} of {EPISODE}")

# %%
# The learner is augmented random search (H. Mania, A. Guy, B. Recht 2018). The policy is linear,
# four numbers. In every iteration 128 pairs of worlds try a random change of them and its opposite;
# the policy moves along the changes, weighted by the difference of their returns.

rng = np.random.default_rng(0)
policy, curve = np.zeros(4), []
for k in range(25):
    change = rng.normal(size=(WORLDS // 2, 4))
    tried = policy + 0.3 * np.concatenate([change, -change])
    found = returns(tried, seed=k)
    better = found[: WORLDS // 2] - found[WORLDS // 2 :]
    policy = policy + 0.3 * better @ change / (WORLDS // 2 * found.std())
    curve.append(returns(np.tile(policy, (WORLDS, 1)), seed=1000 + k))

print("policy:", policy.round(2))
print(
    f"with it: {np.mean(curve[-1]):.0f} of {EPISODE} on average, {np.min(curve[-1]):.0f} at worst"
)
low, middle, high = np.quantile(curve, [0.1, 0.5, 0.9], axis=1)
fig, ax = plt.subplots(figsize=(6, 3))
ax.fill_between(range(1, 26), low, high, alpha=0.2, label="80 % of 256 worlds")
ax.plot(range(1, 26), middle, label="median")
ax.set(xlabel="iteration", ylabel="return")
ax.legend(loc="lower right")

# %%
# A policy is a controller like any other: here it balances the sample's own pole, in an ordinary
# simulation. The same environment has tensors of PyTorch and runs on GPUs: see
# [learning](../learning.md), and `examples/learn_to_walk.py` for a quadruped.


def balance(t, q, qd):
    seen = np.array([q[0], np.sin(q[1] - np.pi), qd[0], qd[1]])
    return np.array([20 * np.tanh(policy @ seen), 0])


motion = kt.simulate(
    cart, [0.3, np.pi - 0.25], duration=5.0, dt=5e-3, controller=kt.Sampled(balance, rate=50)
)
print("at the end:", motion.q[-1].round(3))
kt.viewer.save_html(motion, "balance.html")
