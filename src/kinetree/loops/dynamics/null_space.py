"""Independent accelerations first — RBDA §8.5, method 3, and §8.8.

The solutions of ``K qdd = k`` are ``G ydd + g``, where ``y`` are some of the joint variables. Both
``G`` and ``g`` come from Gaussian elimination, which is stopped after the last independent row:
with complete pivoting, which finds the independent variables, or with partial pivoting on the
columns of the others, if the caller chose them. The rows that are left over are dropped; what they
miss is reported. Bodies may be massless where others carry them along.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.constrained_system import apply_explicit
from kinetree.algorithms.constraints import Explicit
from kinetree.errors import ShapeError, SingularError
from kinetree.loops.dynamics.instant import Accelerations, Instant
from kinetree.loops.kinematics.names import variable_names
from kinetree.loops.kinematics.rank import RANK_TOLERANCE, Scaling

__all__ = ["NullSpace", "Pivots", "null_space", "pivots", "smallest_forces", "solve"]


class Pivots(NamedTuple):
    """Elimination of ``[K k]``, in pure numbers."""

    rows: np.ndarray
    """Rows that were used, in order of use, (r,)."""
    columns: np.ndarray
    """Their variables, which the others determine, (r,)."""
    U: np.ndarray
    """What is left of the rows that were used, (r, nv + 1): upper triangular in ``columns``."""


class NullSpace(NamedTuple):
    """``qdd = G ydd + g`` with ``K G = 0`` and ``K g = k`` — RBDA (8.42), (8.51)."""

    G: np.ndarray
    """(nv, nv - r), with rows of the unit matrix at the independent variables."""
    g: np.ndarray
    """(nv,), zero at the independent variables."""
    independent: np.ndarray
    """Numbers of the velocity variables that are ``yd``, ascending."""
    rank: int
    """Number of independent constraints, r."""
    residual: np.ndarray
    """``K g - k``, (nc,): what the dropped rows miss, if constraints contradict one another."""


def pivots(K, k, rank, units: Scaling, candidates=None) -> Pivots:
    """Eliminate ``rank`` variables; zero columns, those of joints in no loop, are not touched.

    Args:
        K: constraint matrix, (nc, nv).
        k: right-hand side, (nc,).
        rank: number of pivots.
        units: in which ``K`` consists of pure numbers.
        candidates: variables to eliminate, in this order, for partial pivoting; None for complete
            pivoting over all that are in a loop.
    """
    A = np.column_stack([units.apply(K), units.rows * k])
    inner = np.flatnonzero(np.any(K, axis=0))
    rows, columns, left = [], [], np.arange(len(K))
    smallest = RANK_TOLERANCE * np.max(np.abs(A[:, :-1]), initial=1.0)
    for step in range(rank):
        among = inner if candidates is None else candidates[step : step + 1]
        size = np.abs(A[np.ix_(left, among)])
        i, j = np.unravel_index(int(np.argmax(size)), size.shape)
        row, column = left[i], among[j]
        if size[i, j] <= smallest:
            raise SingularError(f"variable {column} follows from those that were eliminated before")
        left = np.delete(left, i)
        A[left] -= np.outer(A[left, column] / A[row, column], A[row])
        A[left, column] = 0
        rows.append(row)
        columns.append(column)
        inner = inner[inner != column]
    return Pivots(np.array(rows, dtype=int), np.array(columns, dtype=int), A[rows])


def null_space(K, k, rank, units: Scaling, independent=None) -> NullSpace:
    """``G`` and ``g`` of the constraints ``K qdd = k``.

    Args:
        K: constraint matrix, (nc, nv).
        k: right-hand side, (nc,).
        rank: number of independent rows.
        units: in which ``K`` consists of pure numbers.
        independent: numbers of the variables ``y``; chosen by complete pivoting for None.
    """
    n = K.shape[1]
    chosen = None if independent is None else _others(n, rank, independent)
    _, dependent, U = pivots(K, k, rank, units, chosen)
    free = np.setdiff1d(np.arange(n), dependent)
    solved = np.linalg.solve(U[:, dependent], U[:, [*free, n]])  # triangular
    scale = units.columns
    G, g = np.zeros((n, n - rank)), np.zeros(n)
    G[free, range(n - rank)] = 1
    G[dependent] = -scale[dependent, None] * solved[:, :-1] / scale[free]
    g[dependent] = scale[dependent] * solved[:, -1]
    return NullSpace(G, g, free, rank, K @ g - k)


def _others(n, rank, independent):
    if len(independent) != n - rank:
        raise ShapeError(
            f"{n} variables under {rank} independent constraints have {n - rank} independent ones, "
            f"got {len(independent)}"
        )
    return np.setdiff1d(np.arange(n), independent)


def solve(instant: Instant, *, independent=None) -> Accelerations:
    """``ydd = (GᵀHG)⁻¹ Gᵀ(tau - C - H g)`` and ``qdd = G ydd + g`` — RBDA (8.46).

    Args:
        instant: the equations.
        independent: numbers of the velocity variables that are ``yd``; found by pivoting for None.
    """
    try:
        K, k, units = instant.counting
        found = null_space(K, k, instant.rank, units, independent)
    except SingularError:
        names = variable_names(instant.model)
        chosen = "" if independent is None else f" {', '.join(names[i] for i in independent)}"
        raise SingularError(
            f"the variables{chosen} do not determine the motion of model {instant.model.name!r} "
            f"here, where {instant.rank} constraints are taken for independent; choose others, or "
            f"leave the choice to the method"
        ) from None
    moved = apply_explicit(instant.system, Explicit(found.G, found.g))
    return Accelerations(moved.qdd, smallest_forces(instant, moved.tau_c))


def smallest_forces(instant: Instant, tau_c):
    """The smallest ``lam`` with ``Kᵀ lam = tau_c``, moments and forces times length alike."""
    rows, columns = instant.units.rows, instant.units.columns
    U, s, Vt = np.linalg.svd(instant.units.apply(instant.K), full_matrices=False)
    r = instant.rank
    return rows * (U[:, :r] @ ((Vt[:r] @ (columns * tau_c)) / s[:r]))
