r"""Sampling control, on a GPU if there is one.

Model predictive path integral control (MPPI) from first principles: try five hundred plans, weight
them by their cost, take the average, and do so forty times a second.
"""

# %%
# A pole hangs from a cart. To swing it up, the cart must go back and forth; no linear controller
# does that. MPPI needs nothing but a simulation and a cost. The last plan is perturbed at random,
# every perturbed plan is simulated, and the cheaper a plan, the larger its weight:
#
# $$ u \leftarrow u + \sum_k w_k\,\epsilon_k, \qquad w_k \propto \exp(-S_k / \lambda). $$

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
xp = np  # `import cupy as xp` instead, and all that follows runs on a GPU
m = kt.samples.cart_pole()
HORIZON, STEP, PLANS = 40, 0.025, 512  # plans of one second

# %%
# The cost of a plan's motion, for all plans at once: `q` and `qd` have the shape (time, plans, 2).
# A pole that is not upright, a cart far from the middle and speed cost something, and cost more at
# the end.


def cost(q, qd):
    height = 1 + xp.cos(q[..., 1])
    running = 5 * height + 2 * q[..., 0] ** 2 + 0.02 * (qd**2).sum(-1)
    return running[1:].sum(0) + 20 * height[-1] + 0.5 * qd[-1, :, 1] ** 2


# %%
# One decision. A [rollout](../rollouts.md) simulates all plans together: time is the first axis of
# `tau`, plans are the second. The pole of every plan has a different mass, since we do not know the
# true one; parameters of the model are arrays like any others. The stops of the rail are left out:
# they are stiff, and steps of 25 ms too long for them; the cost keeps the cart away from them.

rng = xp.random.default_rng(0)
masses = xp.asarray(np.random.default_rng(1).uniform(0.08, 0.12, PLANS))


def improved(plan, q, qd):
    tried = xp.clip(plan[:, None] + 8 * rng.standard_normal((HORIZON, PLANS)), -20, 20)
    tried[:, 0] = plan  # what was good is not lost
    tau = xp.stack([tried, 0 * tried], axis=-1)  # the motor drives the cart alone
    motion = kt.rollout(
        m, xp.asarray(q), xp.asarray(qd), tau, steps=HORIZON, dt=STEP,
        integrator="semi_implicit_euler", limits=None, parameters={"mass:pole": masses},
    )  # fmt: skip
    total = cost(motion.q, motion.qd) + 0.001 * (tried**2).sum(0)
    weight = xp.exp((total.min() - total) / (0.1 * total.std()))  # lambda: a tenth of the spread
    return (tried * weight).sum(1) / weight.sum()


# %%
# Then the control loop: improve the plan, apply its first force for a fortieth of a second, and
# repeat. The rest of the plan is the starting point of the next search.

q, qd = np.zeros(2), np.zeros(2)
plan, states, forces = xp.zeros(HORIZON), [q], []
for _ in range(140):
    plan = improved(plan, q, qd)
    forces.append(float(plan[0]))
    motion = kt.rollout(m, q, qd, [forces[-1], 0.0], steps=5, dt=STEP / 5, store_every=5)
    q, qd = motion.q[-1], motion.qd[-1]
    states.append(q)
    plan = xp.concatenate([plan[1:], plan[-1:]])
states = np.array(states)
up = np.degrees(np.abs(np.angle(-np.exp(1j * states[:, 1]))))
print(f"deviation from upright at the end: {up[-20:].max():.1f}°")

# %%
# The result: a swing to one side, a swing to the other, up, and hold.

t = STEP * np.arange(len(states))
fig, (above, below) = plt.subplots(2, 1, figsize=(6, 4.2), sharex=True)
above.plot(t, up, label="pole, from upright [°]")
above.plot(t, 100 * states[:, 0], "C1--", label="cart [cm]")
above.legend(loc="upper right")
below.step(t[:-1], forces, where="post", lw=1)
below.set(xlabel="time [s]", ylabel="force [N]")

# %%
# A rollout returns to Python whenever the forces change. If simulation and cost are written as one
# [kernel](../kernels.md), a whole plan is computed in compiled code:
# `kt.control.PathIntegral` takes such a cost, and `examples/11_sampling_control.py` runs it with a
# thousand plans on a CPU, or 65,536 on a GPU, and counts decisions per second.
