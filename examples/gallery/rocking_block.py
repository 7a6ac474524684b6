"""A block that rocks itself to rest.

A tall block is tilted and released. It rotates about one edge, lands, and rotates about the other.
Every landing takes energy, by a law that Housner derived in 1963 to explain which gravestones fall
in an earthquake. Here the law is not an input: it follows from the impact at two edges.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
WIDTH, HEIGHT, TILT, EDGE = 0.2, 0.6, 0.2, 1e-4

# A box to look at; its two lower edges, seen from the side, are what touches the ground.
builder = kt.ModelBuilder("block").body(
    "block", joint=kt.Planar("y"), inertia=kt.shapes.box(WIDTH, 0.2, HEIGHT, mass=5.0)
)
builder.geometry(kt.geometry.Box((WIDTH, 0.2, HEIGHT)), on="block", collision=False)
for name, x in (("left", -WIDTH / 2), ("right", WIDTH / 2)):
    builder.geometry(kt.geometry.Sphere(EDGE), on="block", name=name, at=(x, 0, EDGE - HEIGHT / 2))
bare = builder.build()
block = kt.contact.with_ground(bare)
contact = kt.contact.EventDriven(kt.contact.Scene(block, friction=0.8))

# Pitch, height and place. It stands on its right edge.
half, slim = np.hypot(WIDTH, HEIGHT) / 2, np.arctan2(WIDTH, HEIGHT)
start = np.array([TILT, half * np.cos(slim - TILT), half * np.sin(slim - TILT)])
gap = kt.contact.Scene(block).contacts(start, margin=0.1).gap.min()
start[1] -= gap
motion = kt.simulate(block, start, duration=2.4, dt=0.01, contact=contact)

# Housner: a landing leaves the fraction 1 - 3/2 sin²(slim) of the angular velocity.
law = 1 - 1.5 * np.sin(slim) ** 2
predicted = [TILT]
for _ in range(9):
    lifted = np.cos(slim - predicted[-1]) - np.cos(slim)
    predicted.append(slim - np.arccos(np.cos(slim) + law**2 * lifted))
tilt = abs(motion.q[:, 0])
tops = np.flatnonzero((tilt[1:-1] >= tilt[:-2]) & (tilt[1:-1] > tilt[2:]))[:9] + 1
error = np.max(abs(tilt[tops] - predicted[1 : len(tops) + 1]))
print(f"each landing keeps {law:.3f} of the speed; tops agree with Housner to {error:.0e} rad")

fig, ax = plt.subplots(figsize=(6, 3.2))
ax.plot(motion.t, np.degrees(motion.q[:, 0]), label="simulated")
side = np.sign(motion.q[tops, 0])
ax.plot(motion.t[tops], np.degrees(side * predicted[1 : len(tops) + 1]), "o", ms=4, label="Housner")
ax.set(xlabel="time [s]", ylabel="tilt [°]")
ax.legend()

# %%
t = np.linspace(0, 1.8, 46)
kt.viewer.record(bare, "block.gif", motion.resample(t).q, t=t, size=(180, 210), rate=11)
