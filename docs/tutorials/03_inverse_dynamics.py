"""Inverse dynamics of an arm.

From a motion to motor torques: what they consist of, which motor is too weak, what a load at the
tool adds, and how to compute thousands of motions at once.
"""

# %%
# Inverse dynamics answers the question of every robot designer: which joint torques produce *this*
# motion? The equation of motion
#
# $$\tau = H(q)\,\ddot q + C(q, \dot q) + g(q)$$
#
# is evaluated from right to left, and no equations have to be solved. Our arm is a UR5.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.ur5()
kt.viewer.picture(m, "ur5.png", size=(520, 400))
print(m.joint_names)

# %%
# First we need a motion: from rest to rest in one second, along a polynomial whose velocity and
# acceleration are zero at both ends. Time is the first axis of all three arrays; leading axes are
# batch axes.

start = m.posture("home").q
way = np.array([1.2, -0.5, 0.8, 0.4, -0.9, 0.6])
T, u = 1.0, np.linspace(0, 1, 201)[:, None]
q = start + way * (10 * u**3 - 15 * u**4 + 6 * u**5)
qd = way / T * (30 * u**2 - 60 * u**3 + 30 * u**4)
qdd = way / T**2 * (60 * u - 180 * u**2 + 120 * u**3)
tau = kt.inverse_dynamics(m, q, qd, qdd)
print("torques:", tau.shape)

# %%
# What causes these torques? Gravity has its own function. Without acceleration and gravity, the
# Coriolis and centrifugal terms remain. The inertia matrix gives the rest. The parts add up to the
# whole, to rounding error.

gravity = kt.gravity_force(m, q)
velocity = kt.inverse_dynamics(m, q, qd, 0 * qdd) - gravity
inertia = np.einsum("tij,tj->ti", kt.mass_matrix(m, q), qdd)
print(f"largest difference: {abs(gravity + velocity + inertia - tau).max():.0e} N m")

fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), sharex=True)
for ax, j in zip(axes, (1, 2), strict=True):
    for name, part in (("gravity", gravity), ("velocities", velocity), ("inertia", inertia)):
        ax.plot(u * T, part[:, j], lw=1.2, label=name)
    ax.plot(u * T, tau[:, j], "k", label="all")
    ax.set(xlabel="time [s]", ylabel="torque [N m]", title=m.joint_names[j])
axes[0].legend(ncols=2)

# %%
# Which motor works hardest? Limits are part of the model; `m.travel` lists them by joint, the base
# first. Power is torque times speed.

most = np.array([limits.effort[0] for limits in m.travel[1:]])
share = abs(tau).max(axis=0) / most
for name, part in zip(m.joint_names, share, strict=True):
    print(f"{name:18s} {part:5.0%} of its torque")
print(f"largest power: {abs(tau * qd).max():.0f} W")

# %%
# A load at the tool: 3 kg in the gripper is a body on a fixed joint, or simply an inertia that is
# added to the last body. Models do not change; `replace` returns another one.

last = m.body_names[-1]
heavy = m.replace(inertia={last: m.inertia[-1] + kt.shapes.sphere(0.05, mass=3.0, at=(0, 0, 0.1))})
loaded = kt.inverse_dynamics(heavy, q, qd, qdd)
print("share of the torque limits with a load:", (abs(loaded).max(axis=0) / most).round(2))

# %%
# A force $f$ at the tool, from grinding for example, acts on the joints as $J^T f$, where $J$ is
# the Jacobian of the tool: three rows for its angular velocity, three for the velocity of its
# origin. The motors have to compensate for a push of 20 N along -x:

J = kt.jacobian(m, q, "tool", frame="aligned")
grinding = tau - J[:, 3:].swapaxes(-1, -2) @ np.array([-20.0, 0, 0])
print("additional torques, at most [N m]:", abs(grinding - tau).max(axis=0).round(2))

# %%
# Does it work? Forward dynamics converts the torques back to accelerations, and a simulation that
# applies them step by step ends where it should. (This is open loop: small errors stay small only
# for a short time.)

back = kt.forward_dynamics(m, q, qd, tau)
print("forward dynamics returns the accelerations:", np.allclose(back, qdd))
motion = kt.simulate(m, start, duration=T, dt=5e-3, controller=kt.Recorded(u[:, 0] * T, tau))
print("error at the end of the simulation [rad]:", abs(motion.q[-1] - q[-1]).max().round(4))

# %%
# Thousands of motions take one call. What is the shortest possible duration? Here is the same path
# with 300 durations; velocities are proportional to $1/T$ and accelerations to $1/T^2$. (The last
# joint carries nothing and is left out of the figure.)

durations = np.linspace(0.15, 1.5, 300)[:, None, None]
many = kt.inverse_dynamics(m, q, qd * T / durations, qdd * (T / durations) ** 2)
worst = np.max(abs(many) / most, axis=1)
print("shortest duration [s]:", durations[np.all(worst <= 1, axis=1)].min().round(2))

fig, ax = plt.subplots(figsize=(5.6, 3.2))
ax.semilogy(durations[:, 0, 0], worst[:, :-1], label=m.joint_names[:-1])
ax.axhline(1, color="k", lw=0.8, ls="--")
ax.set(xlabel="duration [s]", ylabel="largest torque, relative to the limit", ylim=(3e-3, 30))
ax.legend(ncols=2)
