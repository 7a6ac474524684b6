"""Coupler curves of a four-bar.

A linkage swings freely; its loop is closed exactly after every step. Points on its coupler trace
the curves that engineers of the nineteenth century collected in atlases.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
linkage = kt.samples.four_bar()
q = linkage.posture("home").q
print("mobility:", kt.loops.mobility(linkage, q).mobility)

crank = np.array([12.0, 0.0, 0.0])  # rad/s; the others follow
motion = kt.simulate(linkage, q, kt.loops.project_velocity(linkage, q, crank), duration=1.5)

coupler = kt.pose(linkage, motion.q, "coupler")  # (time, 4, 4); it lies along z, 0.5 m long
fig, ax = plt.subplots(figsize=(6.4, 4.4))
for along in (0.0, 0.25, 0.5):
    for aside in (-0.2, 0.0, 0.2):
        x, _, z, _ = (coupler @ np.array([aside, 0.0, along, 1.0])).T
        ax.plot(x, z, lw=1)
bodies = {name: kt.pose(linkage, q, name) for name in ("crank", "coupler", "rocker")}
tip = bodies["coupler"] @ np.array([0.0, 0.0, 0.5, 1.0])
bars = np.array([bodies["crank"][:, 3], bodies["coupler"][:, 3], tip, bodies["rocker"][:, 3]])
ax.plot(bars[:, 0], bars[:, 2], "o-k", lw=2)
ax.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
ax.set_title(f"loop error {motion.report.loop_error:.0e} m")
