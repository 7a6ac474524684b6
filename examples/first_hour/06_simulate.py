"""Simulate the arm while it falls, and plot it."""

from pathlib import Path

import numpy as np

import kinetree as kt

m = kt.load(Path(__file__).parent / "arm.urdf")
motion = kt.simulate(m, [0.0, 0.1, 0.2, 0.0], [1.0, 0, 0, 0], duration=1.0, limits="rigid")
print(motion.report)  # how accurate the result is
print("positions", motion.q.shape, "at times up to", motion.t[-1], "s")
print("joints stay within their limits:", np.all(motion.q[:, 1] < 2.0 + 1e-6))

motion.plot().savefig("fall.png")  # positions, velocities, forces, energy
print("see fall.png:", Path("fall.png").stat().st_size > 10_000)
