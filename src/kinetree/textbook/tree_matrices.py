"""Trees as matrices, and trees of bodies that move together.

RBDA (4.5) and Fig. 9.1, tutorial (62).
"""

import numpy as np

from kinetree.model.tree import supports


def support_matrix(parent):
    """Support matrix ε (N_B, N_B): 1 where joint ``j`` supports body ``i`` — RBDA (4.5)."""
    epsilon = np.zeros((len(parent) - 1,) * 2, dtype=int)
    for i, kappa in enumerate(supports(parent)):
        for j in kappa:
            epsilon[i - 1, j - 1] = 1
    return epsilon


def connectivity_matrix(parent):
    """Connectivity matrix D (N_B, N_B), the inverse of ε: 1 on the diagonal, -1 at parents.

    Body velocities times D are joint velocities; joint velocities times ε are body velocities.
    """
    D = np.eye(len(parent) - 1, dtype=int)
    for i, p in enumerate(parent[1:], start=1):
        if p != 0:
            D[i - 1, p - 1] = -1
    return D


def reduced_parent(model, free):
    """Parent array of the tree with jointly moving bodies merged, and each body's node.

    RBDA Fig. 9.1. Bodies joined by a prescribed joint are one node.
    """
    lam, nodes, parent = model.parent, [0], [0]
    for i in range(1, model.body_count + 1):
        if i in free:
            parent.append(nodes[lam[i]])
            nodes.append(len(parent) - 1)
        else:
            nodes.append(nodes[lam[i]])
    return parent, nodes
