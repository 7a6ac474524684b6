"""Forward dynamics of closed loops by other factorisations than that in use — RBDA §7.5, §8.5.

    kkt           the whole of (8.36)           §8.5, method 1; allows massless bodies
    range_space   H, then K H⁻¹ Kᵀ              §8.5, method 2
    articulated   pairs of articulated bodies   §7.5; no couplings, no armature

``kt.loops.solve(..., method="kkt")`` calls them by name; ``sparse_maximal`` has one more.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.divide_and_conquer import divide_and_conquer
from kinetree.algorithms.closed.systems import Implicit, implicit_equations
from kinetree.algorithms.ltl import ltl, solve_lt, solve_ltl
from kinetree.errors import SingularError
from kinetree.loops.dynamics.methods import Accelerations, ConstrainedEquations, pivots
from kinetree.loops.kinematics.constraint import independent_rows

# --- KKT: accelerations and constraint forces at once, RBDA §8.5, method 1 -----------------------
# The matrix of (8.36) is symmetric and indefinite, and has the rank ``n + rank K``. So it is
# regular as soon as no constraint is redundant: dependent rows are left out, and their forces
# are zero. Any solution of the rows that remain solves the others too, up to what these
# contradict.


def solve_kkt(instant: ConstrainedEquations) -> Accelerations:
    """Accelerations and loop forces by the KKT system without redundant rows — RBDA (8.36).

    With ``chosen_rows``, these and no others: they must be independent in every configuration, and
    which are is rarely known. A mechanism can change its mobility.
    """
    rows = _independent_rows(instant) if instant.chosen_rows is None else instant.chosen_rows
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


def _independent_rows(instant):
    """Numbers of independent constraint rows, by a known rank or computed."""
    if instant.known_rank is None:
        return independent_rows(instant.K, instant.units)  # those of instant.counting, if some are
    return pivots(instant.K, instant.k, instant.rank, instant.units).rows


# --- range space: constraint forces first, RBDA §8.5, method 2 -----------------------------------
# ``A lam = b`` with ``A = K H⁻¹ Kᵀ`` (8.37), by a factorisation ``H = Lᵀ L`` that keeps the zeros
# which branches make in ``H``. ``A`` has the rank of ``K``; where that is less than its size, the
# solutions are ``A⁺ b + (1 - A⁺ A) z`` for any ``z`` (8.41), and all of them move the mechanism
# alike. Every body needs inertia: ``H`` is inverted.


class RangeSpace(NamedTuple):
    """The equation for the constraint forces."""

    A: np.ndarray
    """``K H⁻¹ Kᵀ``, the inverse inertia that the constraints feel, (nc, nc)."""
    b: np.ndarray
    """``k - K H⁻¹ (tau - C)``, (nc,)."""
    A_plus: np.ndarray
    """A generalised inverse of ``A``: its pseudoinverse in pure numbers, (nc, nc)."""
    L: np.ndarray
    """Factor of ``H``."""

    def forces(self, z=None):
        """Constraint forces ``lam``, the smallest by default; ``z`` selects — RBDA (8.41)."""
        lam = self.A_plus @ self.b
        return lam if z is None else lam + z - self.A_plus @ (self.A @ z)


def range_space(instant: ConstrainedEquations) -> RangeSpace:
    """``RangeSpace`` factors ``Y = L⁻ᵀ Kᵀ``, ``A = Yᵀ Y`` and ``b`` (RBDA §8.5, steps 1–4)."""
    lam, (K, k, units) = instant.model.expanded_parent, instant.counting
    L = ltl(instant.H, lam)
    Y = solve_lt(L, lam, K.T)
    z = solve_lt(L, lam, instant.force)
    A, b = Y.T @ Y, k - Y.T @ z
    return RangeSpace(A, b, _pseudoinverse(A, units.rows, instant.rank), L)


def solve_range_space(instant: ConstrainedEquations, *, z=None) -> Accelerations:
    """Accelerations and loop forces by the range-space method (RBDA §8.5)."""
    equation = range_space(instant)
    lam = equation.forces(z)
    parent = instant.model.expanded_parent
    lam = instant.forces(lam)
    return Accelerations(solve_ltl(equation.L, parent, instant.force + instant.K.T @ lam), lam)


def _pseudoinverse(A, rows, rank):
    """Pseudoinverse of ``A`` truncated to the rank of the constraints."""
    values, vectors = np.linalg.eigh(rows[:, None] * A * rows)
    first = len(A) - rank
    V = rows[:, None] * vectors[:, first:]
    return (V / values[first:]) @ V.T


# --- articulated bodies, joined pairwise: RBDA §7.5 ----------------------------------------------
# ``algorithms.closed.divide_and_conquer`` joins two articulated bodies by all joints between them
# at once, so that a loop is closed when its last joint is. Redundant constraints appear as zero
# eigenvalues of the matrix ``Y`` of that step.


def solve_articulated(instant: ConstrainedEquations) -> Accelerations:
    """Accelerations and loop forces by articulated-body divide and conquer."""
    model = instant.model
    found = divide_and_conquer(
        model,
        instant.q,
        instant.qd,
        instant.tau,
        instant.f_ext,
        stabilization=instant.stabilization,
        rows=instant.chosen_rows,
    )
    loops = joint_space.keep_rows(instant.constraint.loops, instant.chosen_rows)
    lam = [
        np.linalg.lstsq(loop.T.to_array().astype(float), f.to_array(), rcond=None)[0]
        for loop, f in zip(loops, found.f_J[model.body_count + 1 :], strict=True)
    ]
    lam = np.concatenate([np.zeros(0), *lam])
    return Accelerations(found.qdd, lam if instant.chosen_rows is None else instant.forces(lam))
