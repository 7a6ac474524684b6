"""Drawing a figure of eight, with and without a model.

Two controllers with the same gains move the tip of a two-link arm along a curve. One is a plain
spring and damper at each joint; the other adds the torques that inverse dynamics computes.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
arm = kt.samples.double_pendulum()


# The curve, the joint angles on it, and a smooth motion through them.
def curve(t):
    s = np.pi / 2 * t
    return np.stack([0.9 + 0.35 * np.sin(s), 0 * s, -0.7 + 0.3 * np.sin(2 * s)], axis=-1)


t = np.linspace(0, 4, 161)
solved = kt.inverse_kinematics(arm, kt.ik.PositionTask("tip", curve(t)), q0=[-0.2, -1.6])
assert solved.success.all()
reference = kt.RecordedMotion(t, solved.q)

kp, kd = 60.0, 8.0
inertia = np.diag(kt.mass_matrix(arm, solved.q[0]))
controllers = {
    "springs and dampers": kt.control.PDWithFeedforward(
        arm, reference, kp * inertia, kd * inertia, feedforward="gravity"
    ),
    "computed torque": kt.control.ComputedTorque(arm, reference, kp, kd),
}

fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4))
left.plot(*curve(t)[:, ::2].T, "0.75", lw=4, label="requested")
for (name, controller), style in zip(controllers.items(), ("C1", "C0"), strict=True):
    motion = kt.simulate(arm, solved.q[0], duration=4.0, dt=5e-3, controller=controller)
    tip = kt.pose(arm, motion.q, "tip")[:, :3, 3]
    error = np.linalg.norm(tip - curve(motion.t), axis=-1)
    left.plot(tip[:, 0], tip[:, 2], style, lw=1.2, label=name)
    right.semilogy(motion.t, 1e3 * error, style)
    print(f"{name}: {1e3 * error[400:].max():.1f} mm off at most, after the start")
left.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
left.legend(loc="upper center", bbox_to_anchor=(0.5, 1.32))
right.set(xlabel="time [s]", ylabel="error of the tip [mm]", ylim=(0.1, None))
