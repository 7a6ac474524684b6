"""Coupler curve of a four-bar.

A closed loop turned by its crank, once around. The linkage closes exactly at every step; a point of the coupler
draws the curve.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

linkage = kt.samples.four_bar()
q = linkage.posture("home").q
print("mobility:", kt.loops.mobility(linkage, q).mobility)

motion = kt.simulate(linkage, q, kt.loops.project_velocity(linkage, q, np.ones(linkage.nv)), duration=4.0)
fig, ax = plt.subplots(figsize=(6, 4.5))
for name in linkage.body_names[1:]:
    path = kt.pose(linkage, motion.q, name)[:, :3, 3]
    spread = np.ptp(path, axis=0)
    plane = np.argsort(spread)[1:]
    if spread.max() > 1e-9:
        ax.plot(*path[:, np.sort(plane)].T, label=name)
ax.set_aspect("equal")
ax.legend(frameon=False)
ax.set_title(f"loop error {motion.report.loop_error:.0e} m after {motion.t[-1]:.0f} s")
