"""Zeros in the inertia matrix of a branched robot.

In the inertia matrix of a humanoid, legs and arms are coupled only through the trunk. The positions
of the zeros follow from the tree, and the factors of the matrix have the same zeros.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinetree as kt
from kinetree.algorithms import ltl, sparsity

plt.style.use(kt.plot.STYLE)
humanoid = kt.samples.humanoid()
H = kt.mass_matrix(humanoid, humanoid.random_configuration(np.random.default_rng(0)))
L = ltl.ltdl(H, humanoid.expanded_parent)

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2))
shown = {"H": H, "its factors $L$": L, "Cholesky's $L$": np.linalg.cholesky(H)}
for ax, (title, matrix) in zip(axes, shown.items(), strict=True):
    ax.spy(abs(matrix) > 1e-12 * abs(H).max(), markersize=3)
    ax.set_title(f"{title}: {np.count_nonzero(abs(matrix) > 1e-12 * abs(H).max())} entries")
    ax.grid(visible=False)
    ax.set_xticks([])
    ax.set_yticks([])
print("operations to factorise:", sparsity.sparsity(humanoid.expanded_parent).D2)
