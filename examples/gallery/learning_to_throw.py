"""An arm learns to throw, by gradients.

An arm with two joints throws a ball, with sixty torques for each joint. One backward pass through
the simulation gives the gradient of the miss with respect to all 120 torques; gradient descent does
the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
arm, G, STEPS, DT = kt.samples.double_pendulum(), 9.81, 60, 0.01
TARGET, FLOOR = 6.0, -2.0  # m


@kt.kernel
def landing(m, q, qd):
    """Where a ball that is let go at the tip comes down."""
    p = kt.pose(m, q, "tip")[:3, 3]
    v = (kt.jacobian(m, q, "tip", frame="aligned") @ qd)[3:]
    time = (v[2] + np.sqrt(v[2] ** 2 + 2 * G * (p[2] - FLOOR))) / G
    return p[0] + v[0] * time


@kt.kernel
def miss(m, q, qd):
    return (landing(m, q, qd) - TARGET) ** 2


@kt.kernel
def effort(m, tau):
    return 2e-5 * (tau @ tau)


start, tau, costs = np.zeros(2), np.tile([-6.0, -1.0], (STEPS, 1)), []
for _ in range(60):
    g = kt.rollout_gradient(
        arm, start, None, tau, steps=STEPS, dt=DT, running=effort, terminal=miss
    )
    costs.append(g.value)
    tau = tau - 0.6 * g.tau / (1 + np.linalg.norm(g.tau))
print(f"cost {costs[0]:.2f} before, {costs[-1]:.3f} after {len(costs)} steps")

motion = kt.rollout(arm, start, None, tau[:, None, :], steps=STEPS, dt=DT).motion(0)
tip = kt.pose(arm, motion.q, "tip")[:, :3, 3]
v = (kt.jacobian(arm, motion.q[-1], "tip", frame="aligned") @ motion.qd[-1])[3:]
print(f"lands at {landing(arm, motion.q[-1], motion.qd[-1]):.3f} m, {TARGET:.1f} m was requested")

fig, ax = plt.subplots(figsize=(7, 2.7))
for k in range(0, STEPS + 1, 6):
    elbow = kt.pose(arm, motion.q[k], "lower")[:3, 3]
    ax.plot([0, elbow[0], tip[k, 0]], [0, elbow[2], tip[k, 2]], color=plt.cm.Blues(0.2 + k / 80))
t = np.linspace(0, 2, 200)
x, z = tip[-1, 0] + v[0] * t, tip[-1, 2] + v[2] * t - G / 2 * t**2
ax.plot(x[z >= FLOOR], z[z >= FLOOR], "C1--", lw=1.2)
ax.plot([-1, 7], [FLOOR, FLOOR], "0.6", lw=1)
ax.plot(TARGET, FLOOR, "C3^", ms=9)
ax.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
