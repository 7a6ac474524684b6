"""How a cat lands on its feet.

A body without angular momentum can turn over by bending. The model has two halves, joined by a
spine that bends but cannot twist: when the bend has gone round once, the cat is the other way up.
The motion of the spine is prescribed; hybrid dynamics gives the motion of the whole body.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
ORANGE, WHITE = (0.9, 0.5, 0.15, 1), (0.95, 0.95, 0.92, 1)
trunk = {"axis": "x", "mass": 2.0}
rear = kt.shapes.cylinder(0.08, 0.26, at=(-0.13, 0, 0), **trunk)
front = kt.shapes.cylinder(0.08, 0.26, at=(0.13, 0, 0), **trunk)


def dress(builder, body, way):
    """A trunk with a pair of legs, so that one sees where down is."""
    builder.geometry(
        kt.geometry.Capsule(0.07, 0.18), on=body, at=kt.roty(np.pi / 2) @ kt.xlt(way * 0.13, 0, 0),
        color=ORANGE,
    )  # fmt: skip
    for y in (-0.05, 0.05):
        box = kt.geometry.Box((0.03, 0.03, 0.14))
        builder.geometry(box, on=body, at=(way * 0.2, y, -0.13), color=WHITE)


# Front and rear half; between them two angles, prescribed from start to end.
cat = kt.ModelBuilder("cat", gravity=(0, 0, 0))
cat.body("rear", joint=kt.Free(), inertia=rear)
cat.body("waist", on="rear", joint=kt.Revolute("x"), joint_name="roll")
cat.body("bend", on="waist", joint=kt.Revolute("y"), joint_name="bend")
cat.body("front", on="bend", joint=kt.Revolute("x"), inertia=front, joint_name="unroll")
dress(cat, "rear", -1)
dress(cat, "front", 1)
cat = cat.build()

DURATION = 0.6


@kt.kernel
def roll(t):
    """The plane of the bend goes round once, smoothly."""
    w = 2 * np.pi / DURATION
    return w * t - np.sin(w * t), w - w * np.cos(w * t), w * w * np.sin(w * t)


@kt.kernel
def unroll(t):
    """The front rolls back as much: a spine cannot twist."""
    q, qd, qdd = roll(t)
    return -q, -qd, -qdd


@kt.kernel
def bent(t):
    """Bent, all the time."""
    return 1.405 + 0 * t, 0 * t, 0 * t


q = cat.neutral()
q[-2] = 1.405
prescribed = {"roll": roll, "bend": bent, "unroll": unroll}
motion = kt.simulate(cat, q, duration=DURATION, dt=2e-3, prescribed=prescribed)
momentum = kt.momentum(cat, motion.q, motion.qd)
print(f"largest angular momentum: {abs(momentum[:, :3]).max():.1e} kg m²/s")

turned = kt.pose(cat, motion.q, "rear")
fig, ax = plt.subplots()
ax.plot(motion.t, np.degrees(np.unwrap(np.arctan2(turned[:, 2, 1], turned[:, 2, 2]))))
ax.set(xlabel="time [s]", ylabel="roll of the rear [°]")

# %%
kt.viewer.record(motion, "cat.gif", size=(240, 200), rate=9, speed=0.25)
