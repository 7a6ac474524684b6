"""A tail that follows.

An animator moves the hip, and the tail follows by itself. Prescribed joints and joints that obey
springs, dampers and gravity are simulated together; animators call the result secondary motion.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
LINKS, LENGTH = 5, 0.12
FUR = (0.55, 0.35, 0.2, 1)

builder = kt.ModelBuilder("tail").body("hip", joint=kt.Revolute("z"), joint_name="hip")
on = "hip"
for k in range(LINKS):
    radius, name = 0.03 - 0.003 * k, f"tail{k}"
    stiffness, place = 2.5 - 0.45 * k, (LENGTH / 2, 0, 0)
    along = kt.roty(np.pi / 2) @ kt.xlt(LENGTH / 2, 0, 0)
    builder.body(
        name, on=on, joint=kt.Universal("zy"), at=(0.1 if k == 0 else LENGTH, 0, 0),
        inertia=kt.shapes.cylinder(radius, LENGTH, mass=2 * radius, axis="x", at=place),
        dynamics=kt.JointDynamics(stiffness=[stiffness] * 2, damping=[0.01] * 2),
    )  # fmt: skip
    builder.geometry(kt.geometry.Capsule(radius, LENGTH), on=name, at=along, color=FUR)
    on = name
tail = builder.geometry(kt.geometry.Sphere(0.09), on="hip", color=FUR).build()


@kt.kernel
def wag(t):
    """The hip turns, faster and faster: angle, velocity, acceleration."""
    phase, rate, gain = 4 * t + 2 * t**2, 4 + 4 * t, 0.5
    s, c = gain * np.sin(phase), gain * np.cos(phase)
    return s, rate * c, 4 * c - rate**2 * s


motion = kt.simulate(tail, tail.neutral(), duration=3.0, dt=2e-3, prescribed={"hip": wag})
print(f"work of the hip: {motion.work[-1]:.3f} J, energy error {motion.report.energy_error:.0e}")

tips = [kt.pose(tail, motion.q, f"tail{k}")[:, 1, 3] for k in (1, 2, 4)]
fig, ax = plt.subplots(figsize=(6, 3))
ax.plot(motion.t, motion.q[:, 0] / 4, "k", lw=1, label="hip, as an angle")
ax.plot(motion.t, np.transpose(tips), label=["near", "middle", "tip"])
ax.set(xlabel="time [s]", ylabel="sideways [m]", ylim=(-0.6, 0.75))
ax.legend(ncols=4, loc="upper left")

# %%
last = motion.resample(np.linspace(1.0, 3.0, 61))
kt.viewer.record(last, "tail.gif", size=(240, 180), rate=10, direction=(0.3, -0.8, 0.9), zoom=1.9)
