"""Assemblies close to one, and the ranks of their constraints: what is special, and what is not."""

from typing import Any

import numpy as np

from kinetree.loops.kinematics.assembly import scattered
from kinetree.loops.kinematics.closing import closing
from kinetree.loops.kinematics.descent import descend, smallest_error
from kinetree.loops.kinematics.projection import POSITION_TOLERANCE
from kinetree.loops.kinematics.rank import rank, scaling

__all__ = ["assemblies_nearby", "ranks"]

_COUNT, _SPREAD = 24, 0.1  # rad or lengths of the mechanism
_TOLERANCE = 1e-6  # a singular value this small, relative to the largest, is that of a singularity


def assemblies_nearby(model, q, seed=0):
    """Assemblies about a tenth of a radian from ``q``, in random directions, (count, nq)."""
    if not model.loops:
        return q[None]
    free, rng = np.ones(model.nv, dtype=bool), np.random.default_rng(seed)
    starts = scattered(model, q, _SPREAD, free, None, rng, _COUNT)
    found = descend(model, starts, tolerance=POSITION_TOLERANCE, iterations=100)
    return found.q[found.error <= max(POSITION_TOLERANCE, smallest_error(model))]


def ranks(
    model, q, columns: Any = slice(None), *, tolerance: float | None = _TOLERANCE
) -> np.ndarray:
    """Rank of some columns of ``K`` in every configuration (count, nq), (count,)."""
    if not len(q):
        return np.zeros(0, dtype=int)
    units, K = scaling(model).part(columns=columns), np.asarray(closing(model, q)[1])[..., columns]
    found = np.asarray(rank(units.apply(K), tolerance=tolerance))
    return np.minimum(found, rank(K, units))  # without what is nearly redundant
