"""A coin that rolls, and the loops that it draws.

Rolling is not a joint but two constraints: the rim touches the table, a constraint on positions,
and the point of contact does not move, a constraint on velocities alone. Each is a function of a
few lines. The coin wobbles between two angles without slipping, and its energy is conserved.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)

r = 0.1
TABLE = np.array([0, 0, 1])


def arm(model, q):
    """From the centre of the coin to the lowest point of its rim."""
    n = kt.pose(model, q, "coin")[:3, 2]
    return -r * (TABLE - n[2] * n) / np.sqrt(1 - n[2] ** 2)


def height(model, q):
    return kt.pose(model, q, "coin")[2, 3] + arm(model, q)[2]


def slip(model, q, qd):
    v = kt.velocity(model, q, qd, "coin", frame="aligned")
    return (v[3:] + np.cross(v[:3], arm(model, q)))[:2]


coin = (
    kt.ModelBuilder("coin")
    .body("coin", joint=kt.Free(), inertia=kt.shapes.cylinder(r, 0.005, mass=0.05))
    .geometry(kt.geometry.Cylinder(r, 0.005), on="coin", color=(0.9, 0.7, 0.2, 1))
    .constraint("touch", position=height)
    .constraint("roll", rate=slip, rows=2)
    .build()
)
# It could roll in a circle: at this lean, going round at 4 rad/s, it would have to spin at w.
lean, around = 1.2, 4.0
s, c = np.sin(lean), np.cos(lean)
w = (around**2 * s * c / 4 - 9.81 / r * c) / (1.5 * around * s)
q = kt.loops.assemble(coin, coin.integrate(coin.neutral(), np.array([lean, 0, 0, 0, 0, r])))
qd = kt.loops.project_velocity(coin, q, np.array([2.0, around * s, w, 0, 0, 0]))  # and a push
print(kt.loops.mobility(coin, q))

motion = kt.simulate(coin, q, qd, duration=6.0, dt=0.005)
slipped = np.abs(kt.loops.constraint(coin, motion.q, motion.qd).rate).max()
print(f"it slips at {slipped:.0e} m/s, energy changed by {np.ptp(motion.energy):.0e} J")

poses = kt.pose(coin, motion.q, "coin")
touched = poses[:, :3, 3] + np.array([arm(coin, sample) for sample in motion.q])
fig, ax = plt.subplots(figsize=(5.6, 4.2))
ax.plot(*touched[:, :2].T, label="where it touches")
ax.plot(*poses[:, :2, 3].T, lw=0.8, label="its centre")
ax.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
ax.legend()

# %%
kt.viewer.record(motion.resample(np.linspace(0.0, 3.0, 73)), "coin.gif", size=(220, 160), rate=9)
