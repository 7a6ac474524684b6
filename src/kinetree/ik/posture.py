"""The null space: moving towards a posture along configurations that fulfil the tasks."""

import numpy as np

from kinetree.ik.problem import STEPS
from kinetree.ik.search import Found, attempt

__all__ = ["settle"]

_ROUNDS = 100
_SMALLEST_GAIN = 1e-6
_SETTLED = 1e-9  # progress of the distance, relative to itself


def settle(problem, found, target, posture, limits, tolerance):
    """Move what was found towards the posture, where that leaves the tasks fulfilled.

    Each round glides for some steps, then restores the tasks; it counts if they are fulfilled and
    the posture is nearer, else it is taken again with steps a quarter of the size.
    """
    rows, wide = np.flatnonzero(found.error < tolerance), found.wide
    if not len(rows):
        return
    gain = np.ones(len(rows))
    before = problem.run("distance", found.q[rows], posture[rows], wide=wide)
    for _ in range(_ROUNDS):
        q, there = found.q[rows], posture[rows]
        q = problem.run(
            "glide", q, target[rows], limits.lower, limits.upper, there, gain, wide=wide
        )
        usable = np.all(np.isfinite(q), axis=1)
        q = np.where(usable[:, None], q, found.q[rows])
        restored = Found.nothing(q, wide)
        attempt(
            problem, restored, np.arange(len(rows)), q, target[rows], limits, STEPS, tolerance, 0
        )
        after = problem.run("distance", restored.q, there, wide=wide)
        better = usable & (restored.error < tolerance) & (after < before)
        found.q[rows[better]], found.error[rows[better]] = (
            restored.q[better],
            restored.error[better],
        )
        found.iterations[rows] += 2 * STEPS
        settled = better & (before - after <= _SETTLED * before)
        gain = np.where(better, np.minimum(2 * gain, 1), gain / 4)
        before = np.where(better, after, before)
        going = ~settled & (gain > _SMALLEST_GAIN)
        rows, gain, before = rows[going], gain[going], before[going]
        if not len(rows):
            return
