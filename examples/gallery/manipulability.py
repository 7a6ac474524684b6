"""Where an arm is strong, and where it is fast.

The ellipses at the tool show how fast it can move in each direction for a joint velocity of norm
one. Near full reach they become flat: there the arm can carry large forces in one direction but
hardly move along it.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import kinetree as kt

plt.style.use(kt.plot.STYLE)
arm = kt.samples.ur5()

# Shoulder and elbow alone: a fan of postures in the vertical plane.
lift, bend = np.meshgrid(np.linspace(-2.3, -0.5, 6), np.linspace(0.35, 2.3, 5))
q = np.zeros((lift.size, arm.nq))
q[:, 1], q[:, 2], q[:, 3] = lift.ravel(), bend.ravel(), -0.4

tool = kt.pose(arm, q, "tool")[:, :3, 3]
J = kt.jacobian(arm, q, "tool", frame="aligned")[:, 3:, :]  # velocity of the point
both = J @ J.swapaxes(-1, -2)
measure = np.sqrt(np.linalg.det(both))
print(f"manipulability: {measure.min():.3f} to {measure.max():.3f}")

# The arm lies in the plane of x and z; so do the ellipses.
fig, ax = plt.subplots(figsize=(6, 4.6))
colors = plt.cm.viridis(measure / measure.max())
for k, (place, part) in enumerate(zip(tool, both, strict=True)):
    sizes, axes = np.linalg.eigh(part[np.ix_([0, 2], [0, 2])])
    angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    size = 0.2 * np.sqrt(sizes[::-1])
    ax.add_patch(
        Ellipse(place[[0, 2]], *size, angle=angle, fc=colors[k], ec="k", lw=0.5, alpha=0.8)
    )
for k in (2, 14, 27):
    points = np.array([kt.pose(arm, q[k], b)[[0, 2], 3] for b in arm.body_names[1:]])
    ax.plot(*np.vstack([points, tool[k, [0, 2]]]).T, "o-", color="0.45", lw=1.5, ms=3, zorder=0)
shade = plt.cm.ScalarMappable(plt.Normalize(0, measure.max()), "viridis")
fig.colorbar(shade, ax=ax, label="manipulability", shrink=0.8)
ax.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
ax.autoscale_view()
