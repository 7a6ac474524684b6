"""Newton's cradle.

One ball comes in, one ball goes out. If rigid balls touched, the outcome would be undetermined. In
the toy they are slightly apart, a tenth of a millimetre here, so the collisions happen one after
the other.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
BALLS, RADIUS, LENGTH, APART = 5, 0.05, 0.5, 1e-4
STEEL = (0.7, 0.72, 0.75, 1)

builder = kt.ModelBuilder("cradle")
for k in range(BALLS):
    place = (0, 0, -LENGTH)
    builder.body(
        f"ball{k}", joint=kt.Revolute("y"), at=((2 * RADIUS + APART) * k, 0, LENGTH + 0.2),
        inertia=kt.shapes.sphere(RADIUS, mass=0.5, at=place),
    )  # fmt: skip
    ball, rod = kt.geometry.Sphere(RADIUS), kt.geometry.Cylinder(0.004, LENGTH)
    builder.geometry(ball, on=f"ball{k}", name=f"ball{k}", at=place, color=STEEL)
    middle = (0, 0, -LENGTH / 2)
    builder.geometry(rod, on=f"ball{k}", at=middle, collision=False)
cradle = builder.build()

# Only neighbours touch, without losses.
pairs = [(f"ball{k}", f"ball{k + 1}") for k in range(BALLS - 1)]
scene = kt.contact.Scene(cradle, pairs=pairs, friction=0.0, restitution=1.0)
contact = kt.contact.EventDriven(scene)

start = np.zeros(BALLS)
start[0] = 0.6
motion = kt.simulate(cradle, start, duration=1.5, dt=0.01, contact=contact)
print("collisions:", len(motion.events), f"  energy error {motion.report.energy_error:.0e}")

fig, ax = plt.subplots(figsize=(6, 3.2))
ax.plot(motion.t, -np.degrees(motion.q) + 3 * np.arange(BALLS), label=cradle.body_names[1:])
ax.set(xlabel="time [s]", ylabel="angle, shifted by 3° a ball [°]")
ax.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, 1.15))

# %%
swing = motion.resample(np.linspace(0, 1.45, 30))
kt.viewer.record(swing, "cradle.gif", size=(220, 200), rate=12, direction=(0.4, -1, 0.15))
