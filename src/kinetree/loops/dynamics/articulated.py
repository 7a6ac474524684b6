"""Articulated bodies with several handles, joined pairwise — RBDA §7.5, §8 (the third way).

``algorithms.divide_and_conquer`` joins two articulated bodies by all joints between them at once,
so that a loop is closed when its last joint is. Redundant constraints appear as zero eigenvalues of
the matrix ``Y`` of that step.
"""

import numpy as np

from kinetree.algorithms.divide_and_conquer import divide_and_conquer
from kinetree.loops.dynamics.instant import Accelerations, Instant

__all__ = ["solve"]


def solve(instant: Instant) -> Accelerations:
    """Joint accelerations, and the forces of the loop joints."""
    model = instant.model
    found = divide_and_conquer(
        model,
        instant.q,
        instant.qd,
        instant.tau,
        instant.f_ext,
        stabilization=instant.stabilization,
    )
    lam = [
        np.linalg.lstsq(loop.T.to_array().astype(float), f.to_array(), rcond=None)[0]
        for loop, f in zip(instant.constraint.loops, found.f_J[model.body_count + 1 :], strict=True)
    ]
    return Accelerations(found.qdd, np.concatenate([np.zeros(0), *lam]))
