"""The linkage that should not move.

By the usual count, a ring of four hinges has too few degrees of freedom to move. Bennett found in
1903 that it moves all the same if the twists and lengths of its links are just right. Mobility is
decided by rank, not by counting.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt

plt.style.use(kt.plot.STYLE)
linkage = kt.samples.bennett()
print(kt.loops.mobility(linkage))

# A full turn of the first hinge; the other three follow.
turn = np.linspace(0, 2 * np.pi, 91)
branch = kt.loops.follow(linkage, linkage.neutral(), {"link1_joint": turn})
print("a whole turn:", branch.end is None)

fig, ax = plt.subplots(figsize=(5.6, 3.2))
for k, name in ((1, "second hinge"), (2, "third hinge")):
    ax.plot(np.degrees(turn), np.degrees(branch.q[:, k]), label=name)
ax.set(xlabel="first hinge [°]", ylabel="follows [°]", xticks=range(0, 361, 60))
ax.legend()

# %%
t = turn[::2] / 4
kt.viewer.record(linkage, "bennett.gif", branch.q[::2], t=t, size=(220, 190), rate=11, zoom=1.7)
