"""Constraint forces first, then accelerations — RBDA §8.5, method 2.

``A lam = b`` with ``A = K H⁻¹ Kᵀ`` (8.37), by a factorisation ``H = Lᵀ L`` that keeps the zeros
which branches make in ``H``. ``A`` has the rank of ``K``; where that is less than its size, the
solutions are ``A⁺ b + (1 - A⁺ A) z`` for any ``z`` (8.41), and all of them move the mechanism
alike. Every body needs inertia: ``H`` is inverted.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.ltl import ltl, solve_lt, solve_ltl
from kinetree.loops.dynamics.instant import Accelerations, Instant

__all__ = ["RangeSpace", "range_space", "solve"]


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
        """``lam``; ``z`` picks one of many, the smallest by default — RBDA (8.41)."""
        lam = self.A_plus @ self.b
        return lam if z is None else lam + z - self.A_plus @ (self.A @ z)


def range_space(instant: Instant) -> RangeSpace:
    """Steps 1 to 4 of the procedure of §8.5: factors, ``Y = L⁻ᵀ Kᵀ``, ``A = Yᵀ Y`` and ``b``."""
    lam, (K, k, units) = instant.model.expanded_parent, instant.counting
    L = ltl(instant.H, lam)
    Y = solve_lt(L, lam, K.T)
    z = solve_lt(L, lam, instant.force)
    A, b = Y.T @ Y, k - Y.T @ z
    return RangeSpace(A, b, _pseudoinverse(A, units.rows, instant.rank), L)


def solve(instant: Instant, *, z=None) -> Accelerations:
    """Steps 5 and 6: ``lam``, then ``H qdd = tau - C + Kᵀ lam`` with the same factors."""
    equation = range_space(instant)
    lam = equation.forces(z)
    parent = instant.model.expanded_parent
    lam = instant.forces(lam)
    return Accelerations(solve_ltl(equation.L, parent, instant.force + instant.K.T @ lam), lam)


def _pseudoinverse(A, rows, rank):
    """Of the part of ``A`` that has the rank of ``K``; the rest of it is rounding error."""
    values, vectors = np.linalg.eigh(rows[:, None] * A * rows)
    first = len(A) - rank
    V = rows[:, None] * vectors[:, first:]
    return (V / values[first:]) @ V.T
