"""Dominoes and a stack of boxes.

Twenty slabs fall one after the other, and a ball runs into a pyramid of boxes. Everything is rigid:
slabs that lie on each other do not penetrate, and boxes at rest do not creep.
"""

import numpy as np

import kinetree as kt
from kinetree.model.geometry import Box, Sphere

world = kt.World("dominoes", timestep=2e-3)
world.add_ground(friction=0.5)
slab = Box((0.02, 0.1, 0.2))
lean = kt.xlt([0, 0, 0.1]) @ kt.roty(np.radians(14)) @ kt.xlt([-0.025, 0, 0.0025])
world.add(slab, density=1000, name="slab", at=lean)
world.add(slab, density=1000, name="slab", at=[(0.06 * k, 0, 0.1) for k in range(1, 20)])


def film(world, name, seconds, **look):
    """Simulate a world; a page that plays it, with contact forces, and a picture of its middle."""
    motion = kt.simulate(world, duration=seconds, store_every=20)
    kt.viewer.save_html(motion, f"{name}.html", **look)
    kt.viewer.picture(motion, f"{name}.png", at=seconds / 2, size=(480, 300), **look)
    return motion


motion = film(world, "dominoes", 1.6, direction=(0.3, -1, 0.35), zoom=1.6)
print(world)
print(motion.report)

# %%
# A pyramid of 15 boxes, and a heavy ball at 6 m/s. Before it arrives nothing moves; afterwards
# the heap comes to rest.

world = kt.World("pyramid", timestep=2e-3)
world.add_ground(friction=0.6)
for row in range(5):
    places = [(0, 0.21 * (k - (4 - row) / 2), 0.1 + 0.2 * row) for k in range(5 - row)]
    world.add(Box((0.2, 0.2, 0.2)), density=300, name="box", at=places)
start = world.q
world.step(200)
print(f"in 0.4 s the pyramid moved by {np.abs(world.q - start).max():.0e} m")
world.add(Sphere(0.12), density=3000, name="ball", at=(-2.0, 0.03, 0.3), velocity=(6, 0, 1.5))
motion = film(world, "pyramid", 1.6, direction=(-0.6, -1, 0.4), zoom=1.8)
energy = kt.kinetic_energy(world.model, motion.q, motion.qd)
print(f"kinetic energy: {energy[0]:.0f} J at the start, {energy[-1]:.2g} J at the end")
