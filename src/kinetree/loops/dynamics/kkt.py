"""Accelerations and constraint forces at once — RBDA §8.5, method 1.

The matrix of (8.36) is symmetric and indefinite, and has the rank ``n + rank K``. So it is regular
as soon as no constraint repeats others: dependent rows are left out, and their forces are zero.
Any solution of the rows that remain solves the others too, up to what these contradict.
"""

import numpy as np

from kinetree.algorithms.constrained_system import implicit_equations
from kinetree.algorithms.constraints import Implicit
from kinetree.errors import SingularError
from kinetree.loops.dynamics.instant import Accelerations, Instant
from kinetree.loops.dynamics.null_space import pivots
from kinetree.loops.kinematics.rank import independent_rows

__all__ = ["solve"]


def solve(instant: Instant, *, rows=None) -> Accelerations:
    """The solution of (8.36) without the rows that say nothing new.

    Args:
        instant: the equations.
        rows: numbers of the rows to keep, if it is known which are independent in every
            configuration — it rarely is: a mechanism can change its mobility.
    """
    rows = _independent(instant) if rows is None else rows
    rows = np.asarray(rows, dtype=int)
    A, b = implicit_equations(instant.system, Implicit(instant.K[rows], instant.k[rows]))
    size = np.sqrt(np.maximum(np.abs(A).max(axis=1, initial=0.0), np.finfo(float).tiny))
    try:
        x = np.linalg.solve(A / np.outer(size, size), b / size) / size
    except np.linalg.LinAlgError:
        raise SingularError(
            f"the constraint rows {rows.tolist()} of model {instant.model.name!r} depend on one "
            f"another here, or some motion that they allow moves no inertia; leave the choice of "
            f"rows to the method, or give mass to the bodies"
        ) from None
    n = instant.model.nv
    lam = np.zeros(len(instant.K))
    lam[rows] = -x[n:]  # the unknown is minus lambda
    return Accelerations(x[:n], lam)


def _independent(instant):
    if instant.known_rank is None:
        return independent_rows(instant.K, instant.units)  # those of instant.counting, if some are
    return pivots(instant.K, instant.k, instant.rank, instant.units).rows
