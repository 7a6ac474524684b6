"""The tennis racket that flips over.

A body that spins about its intermediate axis turns over again and again, without any external
torque: Dzhanibekov saw it happen to a wing nut in orbit. Angular momentum is conserved to the last
digit.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)

# A head and a handle about their common mass centre. No gravity: it flies with the camera.
head, handle = (0.26, 0.03, 0.34), (0.03, 0.03, 0.4)
inertia = kt.shapes.box(*head, mass=0.2, at=(0, 0, 0.15))
inertia += kt.shapes.box(*handle, mass=0.15, at=(0, 0, -0.2))
upright = kt.rotx(np.pi / 2) @ kt.xlt(0, 0, 0.15)
racket = (
    kt.ModelBuilder("racket", gravity=(0, 0, 0))
    .body("racket", joint=kt.Free(), inertia=inertia)
    .geometry(kt.geometry.Cylinder(0.15, 0.02), on="racket", at=upright)
    .geometry(kt.geometry.Box(handle), on="racket", at=(0, 0, -0.2), color=(0.9, 0.4, 0.1, 1))
    .build()
)
principal = np.linalg.eigvalsh(inertia.rotational_at_center)
print("principal moments [kg m²]:", principal.round(5))

# Spin about x, the middle axis, and an error of a thousandth.
spin = np.array([9.0, 0.009, 0.0, 0.0, 0.0, 0.0])
motion = kt.simulate(racket, racket.neutral(), spin, duration=8.0, integrator="variational")
momentum = kt.momentum(racket, motion.q, motion.qd)[:, :3]
change = np.abs(momentum - momentum[0]).max() / np.abs(momentum).max()
print(f"relative change of momentum {change:.0e}, of energy {motion.report.energy_error:.0e}")

fig, ax = plt.subplots(figsize=(5.6, 3.2))
ax.plot(motion.t, motion.qd[:, :3], label=["about x, the middle axis", "about y", "about z"])
ax.set(xlabel="time [s]", ylabel="angular velocity in the racket [rad/s]")
ax.legend(loc="upper right", ncols=3)
ax.set_ylim(-12, 15)

# %%
flip = motion.resample(np.linspace(2.0, 4.4, 73))
kt.viewer.record(flip, "flip.gif", size=(220, 200), rate=9)
