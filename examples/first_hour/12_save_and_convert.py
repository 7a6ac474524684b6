"""Keep what you have: a world, a motion, the robot in another format."""

import csv
from pathlib import Path

import numpy as np

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")
world = kt.World()
world.add_ground()
world.add(m, name="arm")
world.add(kt.geometry.Box((0.1, 0.1, 0.1)), mass=1.0, name="box", at=(0.6, 0, 0.3))
world.step(50)
world.save("scene.npz")
again = kt.World.load("scene.npz")
world.step(50)
again.step(50)
print("the saved world goes on bit by bit:", np.array_equal(world.q, again.q))

motion = kt.simulate(m, [0, 0.1, 0.2, 0], duration=0.5)
motion.save("motion.csv")
with open("motion.csv", newline="") as file:
    rows = list(csv.reader(line for line in file if not line.startswith("#")))
print(len(rows) - 1, "rows of", ", ".join(rows[0][:5]), "...")

for name in ("arm.xml", "arm.sdf", "arm.toml", "arm_2.urdf"):  # .xml is MJCF
    kt.save(m, name)
    copy = kt.load(name)
    q = np.array([0.1, 0.2, 0.3, 0.4])
    error = np.abs(kt.mass_matrix(copy, q) - kt.mass_matrix(m, q)).max()
    print(f"{name}: mass matrices agree:", error < 1e-12)
