"""Sampling control, on a GPU if there is one.

Model predictive path integral control (MPPI): try a thousand plans, weigh them by what they cost,
take their average, and do so forty times a second. All plans are one compiled function.
"""

# %%
# A pole hangs from a cart. To swing it up, the cart must go back and forth; no linear controller
# does that. MPPI needs nothing but a simulation and a cost. The plan of the last moment is
# disturbed at random, every disturbed plan is simulated, and cheap ones count more:
#
# $$ u \leftarrow u + \sum_k w_k\,\epsilon_k, \qquad w_k \propto \exp(-S_k / \lambda). $$

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.cart_pole()
HORIZON, STEP = 40, 0.025  # a plan of one second

# %%
# The cost of one plan from one state, written for one sample. It simulates and adds up: a pole that
# is not up, a cart far out, forces; and speed at the end.


@kt.kernel
def cost(model, q, qd, forces: (HORIZON, 1)):
    total = 0
    for k in range(HORIZON):
        tau = np.array([forces[k, 0], 0])
        qd = qd + STEP * kt.forward_dynamics(model, q, qd, tau)
        q = q + STEP * qd
        total = total + 5 * (1 + np.cos(q[1])) + 0.5 * q[0] ** 2 + 0.001 * tau[0] ** 2
        total = total + 0.02 * qd[0] ** 2 + 0.02 * qd[1] ** 2
    return total + 20 * (1 + np.cos(q[1])) + 0.5 * qd[1] ** 2


# %%
# The controller: so many plans, noise of 8 N, a motor of 20 N. Every plan has a pole of its own
# mass, since we do not know the true one: `parameters=` made the mass an input of the compiled
# cost, and `others=` hands it in. With `arrays="cupy"` the same runs on a GPU, with tens of
# thousands of plans.

SAMPLES = 512
masses = np.random.default_rng(1).uniform(0.08, 0.12, SAMPLES)
plan = kt.control.PathIntegral(
    kt.compile(cost, m, parameters="mass:pole"), horizon=HORIZON, size=1, samples=SAMPLES,
    noise=8.0, lower=-20.0, upper=20.0, others=(masses,), dtype="float32",
)  # fmt: skip

# %%
# Then the loop: ask for a force, apply it for a fortieth of a second, and look again.

q, qd = np.zeros(2), np.zeros(2)
states, forces = [q], []
for _ in range(100):
    force = plan(q, qd)
    motion = kt.rollout(m, q, qd, [force[0], 0.0], steps=5, dt=STEP / 5, store_every=5)
    q, qd = motion.q[-1], motion.qd[-1]
    states.append(q)
    forces.append(float(force[0]))
states = np.array(states)
up = np.degrees(np.abs(np.angle(-np.exp(1j * states[:, 1]))))
print(f"off from upright at the end: {up[-20:].max():.1f}°")

# %%
# What it did: a swing to one side, a swing to the other, up, and hold.

t = STEP * np.arange(len(states))
fig, (above, below) = plt.subplots(2, 1, figsize=(6, 4.2), sharex=True)
above.plot(t, up, label="pole, from upright [°]")
above.plot(t, 100 * states[:, 0], "C1--", label="cart [cm]")
above.legend(loc="upper right")
below.step(t[:-1], forces, where="post", lw=1)
below.set(xlabel="time [s]", ylabel="force [N]")
