"""How the constraints of a model are to be eliminated: decided once, for all its configurations.

The choice is made from a handful of configurations in which the loops are closed. Pivots are
compared in units of the mechanism: columns by the inertia of the joints, rows by their size. Of
the pivots that are large enough in all of these configurations, the one that causes the least
work comes first (Markowitz). Host-only: ranks and pivots are decisions.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.loop_constraints import LoopConstraints, stacked
from kinetree.algorithms.loop_rank import counted, scaling
from kinetree.algorithms.point_closures import turned_rows
from kinetree.algorithms.rehearsal import Rehearsal

__all__ = ["Plan", "make_plan", "stacked_rows"]

_POOR = 1e-3  # of the largest, for a pivot that does not suit a configuration
_WORTHY = 0.1  # of the best pivot, for one that causes less work


class Plan(NamedTuple):
    """An order of elimination and what to expect of it."""

    axes: str | None
    """Axes of the rows of closures that hold a point; see ``point_closures.turned_rows``."""
    pivots: tuple
    """Pairs of constraint and variable, in the order of elimination."""
    redundant: tuple
    """Numbers of the constraints that follow from the others."""
    row_size: np.ndarray
    """Typical sizes of the redundant constraints, for unit accelerations."""
    column_size: np.ndarray
    """Typical sizes of the accelerations of the variables."""
    misalignment: float
    """Of the redundant constraints, relative to their sizes; see ``loop_rank``."""
    samples: np.ndarray
    """The configurations that it was made for, those without a singularity, (n, nq)."""

    @property
    def rows(self):
        """Numbers of the constraints that are kept, in ascending order."""
        return tuple(sorted(i for i, _ in self.pivots))


def stacked_rows(model, q, qd, axes) -> LoopConstraints:
    """Constraints of all loops, with turned rows; see ``turned_rows``."""
    return stacked(model, [turned_rows(model, loop, q, qd, axes) for loop in model.loops])


def make_plan(model, axes, samples) -> Plan:
    """Independent constraints and pivots of a model, for rows along the given axes.

    Args:
        model: the mechanism.
        axes: see ``point_closures.turned_rows``.
        samples: configurations, (n, nq), with the loops closed.
    """
    rehearsal = Rehearsal(
        lambda q: (
            stacked_rows(model, q, model.zero_velocity, axes).K,
            np.diagonal(crba.joint_space_inertia(model, q)),
        ),
        q=(model.nq,),
    )
    K, H = rehearsal.values(q=samples)
    units = scaling(model)  # of turned rows as well: they stay with their loop
    pure = units.apply(K)
    sizes = np.linalg.svd(pure, compute_uv=False)
    ranks = counted(sizes, units)

    inertia = np.mean(H, axis=0)
    columns = 1 / np.sqrt(np.where(inertia > 0, inertia, 1))
    scaled = K * units.rows[:, None] * columns
    rows = np.max(np.linalg.norm(scaled, axis=2), axis=0, initial=0)
    # a row that says next to nothing is compared with the others, not with itself
    slight = np.max(np.linalg.norm(pure, axis=2), axis=0, initial=0) <= units.alignment_tolerance
    floor = 1e-6 * np.max(rows, initial=0)
    rows = np.where((rows > floor) & ~slight, rows, np.max(rows, initial=0))
    scaled = scaled / np.where(rows > 0, rows, 1)[:, None]
    scaled = np.where(np.abs(scaled) > 1e-13, scaled, 0)

    generic = ranks == ranks.max()
    pivots = _eliminate(scaled[generic], int(ranks.max()))
    redundant = tuple(i for i in range(len(rows)) if i not in {i for i, _ in pivots})
    misalignment = units.policy.misalignment
    return Plan(
        axes,
        pivots,
        redundant,
        (rows / units.rows)[list(redundant)],
        columns,
        misalignment,
        samples[generic],
    )


def _eliminate(A, rank):
    """Pivots for a stack of matrices, (samples, rows, columns)."""
    pivots = []
    nonzero = np.any(A != 0, axis=0)
    open_rows, open_columns = np.ones(A.shape[1], bool), np.ones(A.shape[2], bool)
    for _ in range(rank):
        size = np.min(np.abs(A), axis=0) * np.outer(open_rows, open_columns)
        if size.max() < _POOR:  # no pivot suits all configurations: one that suits most
            size = np.median(np.abs(A), axis=0) * np.outer(open_rows, open_columns)
        work = np.outer(nonzero[:, open_columns].sum(1) - 1, nonzero[open_rows].sum(0) - 1)
        candidates = size >= _WORTHY * size.max()
        work = np.where(candidates, work, np.inf)
        best = np.where(work == work.min(), size, -1)
        i, j = np.unravel_index(np.argmax(best), best.shape)
        pivots.append((int(i), int(j)))
        pivot = np.abs(A[:, i, j])
        A = A[pivot >= _POOR * pivot.max()]
        open_rows[i] = open_columns[j] = False
        factors = A[:, :, j] / A[:, i, j][:, None] * open_rows
        A = A - factors[:, :, None] * A[:, i, :][:, None, :]
        A[:, open_rows, j] = 0
        touched = np.outer(nonzero[:, j] & open_rows, nonzero[i])
        nonzero = nonzero | touched
        nonzero[open_rows, j] = False
    return tuple(pivots)
