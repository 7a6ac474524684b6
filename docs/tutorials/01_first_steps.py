"""First steps.

A robot that ships with the package: what it is made of, the torques of gravity, how it falls,
and how a controller holds it. Every figure on this page was drawn by the code above it.
"""

# %%
# A model contains everything that stays the same: bodies, joints, inertias, frames, limits. It is
# immutable; editing functions return new models.

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)

m = kt.samples.ur5()
print(m.summary())

# %%
# A configuration is an array of `m.nq` numbers, a velocity an array of `m.nv`. For this arm they
# are the six joint angles and their rates. A model can have named postures.

q = m.posture("home").q
print("home:", q)
print("tool at", kt.pose(m, q, "tool")[:3, 3])

# %%
# Which torques hold the arm in this posture? The equation of motion is $\tau = H(q)\,\ddot q + C(q,
# \dot q)$; at rest only gravity remains.

tau = kt.gravity_force(m, q)
print("torques to hold it [N m]:", tau.round(2))
print("with them it stays at rest:", np.allclose(kt.forward_dynamics(m, q, 0 * q, tau), 0))

# %%
# In every function, leading axes are batch axes. Turn the upper arm through a full circle, and
# plot the torques of the first three motors.

angles = np.linspace(-np.pi, np.pi, 400)
turned = np.tile(q, (len(angles), 1))
turned[:, 1] = angles
load = kt.gravity_force(m, turned)

fig, ax = plt.subplots(figsize=(6.4, 3.2))
ax.plot(angles, load[:, :3], label=m.joint_names[:3])
ax.set_xlabel("angle of the upper arm [rad]")
ax.set_ylabel("torque [N m]")
ax.legend(frameon=False)

# %%
# Let the arm fall. The simulation checks itself: without friction the energy must be conserved, and
# the report shows that it is.

fall = kt.simulate(m, q, duration=0.5)
print(fall.report)

# %%
# Now with a controller, which is any function of time and state that returns torques. This one uses
# inverse dynamics to make the joints move like springs with dampers.

goal = q + np.array([0.8, 0.4, -0.5, 0.3, 0.6, 0.0])
hold = kt.control.ComputedTorque(m, goal, kp=40.0)
motion = kt.simulate(m, q, duration=2.0, controller=hold)

fig, ax = plt.subplots(figsize=(6.4, 3.2))
ax.plot(motion.t, motion.q - goal, label=m.joint_names)
ax.set_xlabel("time [s]")
ax.set_ylabel("error [rad]")
ax.legend(frameon=False, ncols=2, fontsize="small")
print(f"error at the end: {abs(motion.q[-1] - goal).max():.0e} rad")

# %%
# How does the tool move when a joint moves? The Jacobian gives the answer. Its singular values are
# the speeds of the tool, fast or slow depending on the direction, for a joint velocity of norm one.

J = kt.jacobian(m, goal, "tool", frame="aligned")
print("singular values:", np.linalg.svd(J)[1].round(3))
