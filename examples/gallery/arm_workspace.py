"""The reach of an arm, from a hundred thousand poses.

Where can a Panda put its hand? Draw random joint angles within the limits, compute all poses in one
call, and count them. Dark regions can be reached in many postures.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
m = kt.samples.panda()
rng = np.random.default_rng(0)
q = m.random_configuration(rng, 100_000)
kt.pose(m, q[:8], "grasp")  # compiles

before = time.perf_counter()
hand = kt.pose(m, q, "grasp")[:, :3, 3]
spent = time.perf_counter() - before
print("100,000 poses took less than a second:", spent < 1.0)

reach = np.linalg.norm(hand - [0, 0, 0.333], axis=1)
print(f"farthest from the shoulder: {reach.max():.3f} m")

fig, (side, above) = plt.subplots(1, 2, figsize=(7.4, 3.6))
side.hexbin(np.hypot(hand[:, 0], hand[:, 1]), hand[:, 2], gridsize=60, cmap="Blues", mincnt=1)
side.set(xlabel="distance from the axis [m]", ylabel="height [m]", aspect="equal")
level = abs(hand[:, 2] - 0.4) < 0.1
above.hexbin(hand[level, 0], hand[level, 1], gridsize=45, cmap="Blues", mincnt=1)
above.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="from above, 0.3 to 0.5 m high")
for ax in (side, above):
    ax.plot(0, 0.333 if ax is side else 0, "k^", ms=6)
