"""How many constraints of a mechanism are independent, and which — RBDA §8.8, §8.10.

Ranks are decided in units of the loops (``algorithms.loop_scaling``) and by one policy for all of
kinetree (``algorithms.loop_rank``), which tells rounding errors, misalignment and singular
configurations apart. Host-only: ranks are decisions.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kinetree.algorithms.loop_rank import (
    RANK_TOLERANCE,
    RankPolicy,
    counted,
    independent,
    rank_policy,
    scaling,
)
from kinetree.algorithms.loop_scaling import Row, Scaling, rows_of, typical_length
from kinetree.arrays.functions import on_host
from kinetree.errors import ModelError, ShapeError
from kinetree.model.arrays import as_model

__all__ = [
    "RANK_TOLERANCE", "RankPolicy", "Row", "Scaling", "dependencies", "independent_rows", "rank",
    "rank_policy", "rows_of", "scaling", "typical_length", "with_misalignment",
]  # fmt: skip


@on_host
def rank(K, scaling: Scaling | None = None, *, tolerance: float | None = None) -> Any:
    """Number of independent rows of ``K``: a number, or an array for a batch (..., nc, nv).

    Args:
        K: constraint matrix, or matrices.
        scaling: units from ``scaling(model)``; None if ``K`` consists of pure numbers. With it,
            constraints that are nearly redundant do not count, see ``rank_policy``.
        tolerance: singular values below this times the largest count as zero, whatever the
            policy. With a scaling, the largest counts as no less than 1, so that rounding errors
            alone have rank 0. None for the policy, or 1e-10 without a scaling.
    """
    s = np.linalg.svd(_scaled(K, scaling), compute_uv=False)
    found = np.asarray(counted(s, scaling, tolerance))
    return int(found) if found.ndim == 0 else found


@on_host
def independent_rows(
    K, scaling: Scaling | None = None, *, tolerance: float | None = None
) -> np.ndarray:
    """Numbers of rows that say all that ``K`` says, as far from dependent as a greedy choice gets.

    The row that is farthest from the span of those already chosen comes next, the first of
    several; in ascending order.
    """
    return independent(_scaled(K, scaling), rank(K, scaling, tolerance=tolerance))


@on_host
def dependencies(
    K, scaling: Scaling | None = None, *, tolerance: float | None = None
) -> np.ndarray:
    """Which combinations of rows vanish: orthonormal rows ``c`` with ``c K = 0`` in pure numbers.

    A row of ``K`` whose entries are all zero here is needed; any other may be left out instead of
    the ones that ``independent_rows`` leaves out.
    """
    U, s, _ = np.linalg.svd(_scaled(K, scaling))
    return U[:, int(counted(s, scaling, tolerance)) :].T


def with_misalignment(model, misalignment: float | None):
    """The model with another limit of misalignment for all of its loops.

    Args:
        model: the mechanism.
        misalignment: up to which constraints that repeat others in all configurations count as
            redundant [rad, or parts of the size of the loop]; 0 to make every constraint count,
            None for the default of 1e-3.
    """
    model = as_model(model)
    return model.replace(loops=[replace(loop, misalignment=misalignment) for loop in model.loops])


def _scaled(K, units):
    if hasattr(K, "bodies"):
        raise ModelError(
            "ranks are those of a constraint matrix, got a model: give "
            "loops.constraint(model, q, qd).K and loops.scaling(model), or ask "
            "loops.mobility(model, q) for the rank and what it means"
        )
    K = np.asarray(K, dtype=float)
    if K.ndim < 2:
        raise ShapeError(f"a constraint matrix has shape (..., nc, nv), got {K.shape}")
    if units is None:
        return K
    if not isinstance(units, Scaling):
        raise ShapeError(
            f"the units of a constraint matrix are those of loops.scaling(model), got "
            f"{type(units).__name__}"
        )
    return units.apply(K)
