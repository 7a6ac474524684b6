"""A mechanism with loops at one instant, and everything its equation of motion is made of."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import crba, rnea
from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.independent import variable_names
from kinetree.algorithms.closed.joint_space import expand_forces
from kinetree.algorithms.closed.rank import RANK_TOLERANCE, kept_rows, scaling
from kinetree.algorithms.closed.scaling import Scaling
from kinetree.algorithms.closed.systems import (
    Explicit,
    SubsystemEquation,
    apply_explicit,
)
from kinetree.errors import ShapeError, SingularError
from kinetree.loops.kinematics.constraint import rank


class Accelerations(NamedTuple):
    """Results of a method."""

    qdd: np.ndarray
    """Accelerations of the tree joints, (nv,)."""
    lam: np.ndarray
    """Constraint forces, (nc,): one of many, where constraints are redundant."""


class Counting(NamedTuple):
    """``K qdd = k`` without constraints that are nearly redundant, and its units."""

    K: np.ndarray
    k: np.ndarray
    units: Any


@dataclass(frozen=True)
class ConstrainedEquations:
    """``H qdd + C = tau + Kᵀ lam`` and ``K qdd = k`` — RBDA (8.36). Computed when needed."""

    model: Any
    """The mechanism."""
    q: np.ndarray
    """Position variables of the tree joints, (nq,)."""
    qd: np.ndarray
    """Velocity variables of the tree joints, (nv,)."""
    tau: np.ndarray
    """Joint forces of the tree joints, (nv,)."""
    f_ext: Any = None
    """Force on each body in base coordinates, those of loop joints included, entry 0 unused; or
    None."""
    stabilization: float | None = None
    """Time constant [s] with which errors decay; None for none."""
    known_rank: int | None = None
    """Number of independent constraints, if the caller knows it better."""
    chosen_rows: Any = None
    """Numbers of the constraints that count, if the caller knows that they imply the others."""

    @cached_property
    def H(self):
        """Joint-space inertia matrix of the spanning tree, (nv, nv)."""
        return np.asarray(crba.joint_space_inertia(self.model, self.q), dtype=float)

    @cached_property
    def force(self):
        """Joint forces minus bias forces, ``tau - C``, with active loop forces, (nv,)."""
        return self.tau - rnea.bias_force(self.model, self.q, self.qd, self.f_ext)

    @property
    def system(self):
        """Equation of motion of the spanning tree as a ``SubsystemEquation``."""
        return SubsystemEquation(self.H, np.zeros_like(self.tau), self.force)

    @cached_property
    def constraint(self):
        """Constraint equations of loops and couplings, with stabilisation."""
        return joint_space.constraint(self.model, self.q, self.qd, stabilization=self.stabilization)

    @property
    def K(self):
        """Constraint matrix of loops and couplings, (nc, nv)."""
        return self.constraint.implicit.K

    @property
    def k(self):
        """Right side ``k + k_stab`` of the constraint equations, (nc,)."""
        return self.constraint.implicit.k

    @cached_property
    def units(self):
        """``Scaling`` that makes the constraint matrix dimensionless."""
        return scaling(self.model)

    @cached_property
    def rank(self):
        """Number of independent constraints."""
        if self.known_rank is not None:
            return self.known_rank
        if self.chosen_rows is None:
            return rank(self.K, self.units)
        return rank(self.K[self.chosen_rows], self.units.part(self.chosen_rows))

    @cached_property
    def rows(self):
        """Numbers of the constraints kept when others are nearly redundant; None for all."""
        if self.chosen_rows is not None:
            return self.chosen_rows
        return kept_rows(self.model, self.K) if self.known_rank is None else None

    @cached_property
    def counting(self) -> "Counting":
        """Constraint equations without the nearly redundant ones."""
        if self.rows is None:
            return Counting(self.K, self.k, self.units)
        return Counting(self.K[self.rows], self.k[self.rows], self.units.part(self.rows))

    def forces(self, lam):
        """Constraint forces (nc,) of all rows from those of the kept rows."""
        return expand_forces(lam, self.rows, len(self.K))


# --- null space: independent accelerations first, RBDA §8.5, method 3, and §8.8 ------------------
# The solutions of ``K qdd = k`` are ``G ydd + g``, where ``y`` are some of the joint variables.
# Both ``G`` and ``g`` come from Gaussian elimination, which is stopped after the last independent
# row: with complete pivoting, which finds the independent variables, or with partial pivoting on
# the columns of the others, if the caller chose them. The rows that are left over are dropped;
# what they miss is reported. Bodies may be massless where others carry them along.


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
    """``K g - k``, (nc,): residual of the dropped rows, if constraints contradict one another."""


def pivots(K, k, rank, units: Scaling, candidates=None) -> Pivots:
    """Pivot rows, columns and eliminated matrix of Gaussian elimination of ``K`` with pivoting.

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
    """``NullSpace`` ``G``, ``g`` of the constraints ``K qdd = k``.

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
    """Numbers of the dependent variables; ShapeError if the independent ones are miscounted."""
    if len(independent) != n - rank:
        raise ShapeError(
            f"{n} variables under {rank} independent constraints have {n - rank} independent ones, "
            f"got {len(independent)}"
        )
    return np.setdiff1d(np.arange(n), independent)


def solve_null_space(instant: ConstrainedEquations, *, independent=None) -> Accelerations:
    """Accelerations by the null-space method ``(GᵀHG) ydd = Gᵀ(tau - C - H g)`` — RBDA (8.46).

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


def smallest_forces(instant: ConstrainedEquations, tau_c):
    """Minimum-norm scaled constraint forces ``lam`` with ``Kᵀ lam = tau_c``."""
    every = Counting(instant.K, instant.k, instant.units)
    K, _, units = every if instant.chosen_rows is None else instant.counting
    U, s, Vt = np.linalg.svd(units.apply(K), full_matrices=False)
    r = instant.rank
    lam = units.rows * (U[:, :r] @ ((Vt[:r] @ (units.columns * tau_c)) / s[:r]))
    return lam if instant.chosen_rows is None else instant.forces(lam)
