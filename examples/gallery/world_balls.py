"""Balls: a break at billiards, and fifty into a box.

Sixteen billiard balls with restitution and rolling friction, and fifty balls that fall into an open
box and come to rest there.
"""

import numpy as np

import kinetree as kt
from kinetree.model.geometry import Box, Sphere

R = 0.0286
world = kt.World("billiards", timestep=2e-3, rest_velocity=0.02)
world.add_ground(friction=0.2, color=(0.2, 0.45, 0.3, 1))
for x, y, a, b in (
    (1.1, 0, 0.1, 1.3),
    (-0.6, 0, 0.1, 1.3),
    (0.25, 0.6, 1.8, 0.1),
    (0.25, -0.6, 1.8, 0.1),
):
    world.add(Box((a, b, 0.08)), name="cushion", at=(x, y, 0.04), friction=0.2, restitution=0.7,
              color=(0.35, 0.25, 0.15, 1))  # fmt: skip
ball = {"mass": 0.17, "friction": 0.06, "restitution": 0.93}
for row in range(5):
    places = [(0.4 + 1.7322 * R * row, 2.0002 * R * (k - row / 2), R) for k in range(row + 1)]
    world.add(Sphere(R), name="ball", at=places, **ball)
world.add(Sphere(R), name="cue", at=(-0.3, 0.003, R), velocity=(5, 0, 0), spin=(0, 5 / R, 0),
                color=(0.95, 0.95, 0.9, 1), **ball)  # fmt: skip


def film(world, name, seconds, **look):
    """Simulate a world; a page that plays it, with contact forces, and a picture of its middle."""
    motion = kt.simulate(world, duration=seconds, store_every=20)
    kt.viewer.save_html(motion, f"{name}.html", **look)
    kt.viewer.picture(motion, f"{name}.png", at=seconds / 2, size=(480, 300), **look)
    return motion


motion = film(world, "billiards", 1.2, direction=(0.0, -0.6, 1), zoom=1.3, show="bodies")
speed = np.linalg.norm(motion.qd[-1].reshape(-1, 6)[:, 3:], axis=1)
print(f"after 1.2 s {np.sum(speed > 0.1)} of 16 balls move faster than 0.1 m/s")

# %%
# Fifty balls fall into a box. `world.contacts()` is a table of all contacts, whose forces carry the
# weight.

world = kt.World("balls", timestep=2e-3)
world.add_ground(friction=0.5)
for x, y, a, b in (
    (0.2, 0, 0.02, 0.42),
    (-0.2, 0, 0.02, 0.42),
    (0, 0.2, 0.38, 0.02),
    (0, -0.2, 0.38, 0.02),
):
    wall = {"friction": 0.5, "color": (0.7, 0.8, 0.9, 0.25)}
    world.add(Box((a, b, 0.5)), name="wall", at=(x, y, 0.25), **wall)
rng = np.random.default_rng(0)
places = [(0.11 * (i - 1), 0.11 * (j - 1), 0.1 + 0.12 * k)
          for k in range(6) for i in range(3) for j in range(3)]  # fmt: skip
places = np.array(places)[:50] + rng.uniform(-0.004, 0.004, (50, 3))
world.add(Sphere(0.05), density=800, name="ball", at=places)
film(world, "balls", 0.9, direction=(0.5, -1, 0.5), zoom=1.2)
world.step(450)  # the film left the world where it was
table = world.contacts()
carried = -table.force_on("world")[2] / (world.model.total_mass * 9.81)
print(f"{len(table)} contacts carry {carried:.3f} of the weight; {world.report()}")
