"""As fast as the motors allow.

A robot follows a given path as fast as possible. How short can the motion be before a motor exceeds
its torque or speed limit? One call computes the inverse dynamics for two hundred durations.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.ur5()
most = np.array([limits.effort[0] for limits in m.travel[1:]])
top = np.array([limits.velocity[0] for limits in m.travel[1:]])
print("motors:", most, "N m,", top.round(2), "rad/s")

# A smooth path from rest to rest, from 0 to 1: 10 u³ - 15 u⁴ + 6 u⁵.
home = m.posture("home").q
way = np.array([1.5, 0.6, -0.9, 0.8, -0.7, 1.0])
u = np.linspace(0, 1, 101)
path = 10 * u**3 - 15 * u**4 + 6 * u**5
rate = 30 * u**2 - 60 * u**3 + 30 * u**4
bend = 60 * u - 180 * u**2 + 120 * u**3

# Velocities go with 1/T, accelerations with 1/T². Axes: duration, time, joint.
T = np.geomspace(0.2, 3.0, 200)[:, None, None]
tau = kt.inverse_dynamics(
    m, home + path[:, None] * way, rate[:, None] * way / T, bend[:, None] * way / T**2
)
load = np.max(abs(tau) / most, axis=(1, 2))
speed = np.max(abs(rate[:, None] * way / T) / top, axis=(1, 2))
fastest = np.interp(-1.0, -np.maximum(load, speed), T[:, 0, 0])
print(f"shortest duration: {fastest:.3f} s")

fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
left.loglog(T[:, 0, 0], load, label="torque")
left.loglog(T[:, 0, 0], speed, label="speed")
left.axhline(1, color="0.5", lw=0.8, ls="--")
left.plot(fastest, 1, "o", color="k")
left.legend()
left.set(xlabel="duration [s]", ylabel="largest, relative to the limit")
left.set_xticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
left.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
left.minorticks_off()
k = np.argmin(abs(T[:, 0, 0] - fastest))
right.plot(u * fastest, tau[k] / most, label=m.joint_names)
right.set(xlabel="time [s]", ylabel="torque, relative to the limit", ylim=(-0.25, 0.25))
right.legend(ncols=2, fontsize=7)
