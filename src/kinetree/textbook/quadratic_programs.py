"""The two quadratic programs of contact — RBDA (11.43), (11.44).

In forces: ``min ½ lamᵀ M lam + dᵀ lam`` over forces within bounds. Its optimality conditions are
the linear complementarity problem, ``lcp.pivoting``, or for bounds of other kinds the mixed one of
``contact.complementarity.rows``.

In accelerations, Gauss' principle of least constraint: the motion nearest to the free one, in the
metric of the inertia, that the contacts allow. Here a dual method solves it, whose multipliers are
the contact forces. It works with matrices as wide as there are joint variables, and is the better
of the two where contacts outnumber these.

``kt.contact.complementarity.quadratic`` is this text; ``kt.contact.forward_dynamics`` takes its
programs by name.
"""

from typing import NamedTuple

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.complementarity.inputs import bounds, matrix_and_vector, numbers
from kinetree.contact.complementarity.pivoting import (
    Dense,
    ForceSolution,
    pivot,
    positive_sizes,
    solution_of,
)
from kinetree.errors import ShapeError, SingularError
from kinetree.model.arrays import as_numbers, check_finite

__all__ = ["ForceSolution", "MotionSolution", "in_accelerations", "in_forces"]


class MotionSolution(NamedTuple):
    """Solution of the program in accelerations.

    Attributes:
        qdd: accelerations, (nv,), unique.
        forces: the multipliers, with all that belongs to them.
    """

    qdd: np.ndarray
    forces: ForceSolution


def in_forces(
    M: ArrayLike, d: ArrayLike, low: ArrayLike = 0.0, high: ArrayLike = np.inf
) -> ForceSolution:
    """Bounded forces that minimise ``½ lamᵀ M lam + dᵀ lam`` — RBDA (11.43).

    Args:
        M: inverse inertia that the forces meet, symmetric and positive semidefinite, (n, n).
        d: motion without them, (n,).
        low: lower bounds, a number or (n,); 0 for contacts and limits, -inf for loops.
        high: upper bounds.

    Returns:
        The solution; or, where the program has no lower bound, the proof that there is none.
    """
    M, d = matrix_and_vector(M, d)
    low, high = bounds(low, high, len(d))
    return solution_of(pivot(Dense(M, d), low, high), M, d, low, high)


def in_accelerations(
    H: ArrayLike,
    free: ArrayLike,
    J: ArrayLike,
    bias: ArrayLike,
    low: ArrayLike = 0.0,
    high: ArrayLike = np.inf,
) -> MotionSolution:
    """Accelerations nearest to the free ones with ``J qdd + bias ≥ 0`` — RBDA (11.44).

    Args:
        H: joint-space inertia, symmetric and positive definite, (nv, nv).
        free: accelerations without contact, (nv,).
        J: rows along which forces act, (n, nv).
        bias: velocity-product part of the accelerations along them, (n,).
        low: lower bounds of the forces, a number or (n,); 0 for contacts, -inf for loops.
        high: upper bounds.

    Returns:
        Accelerations and forces; where the constraints contradict one another the proof of it, and
        accelerations that obey some of them.
    """
    H, free = matrix_and_vector(H, free, "H", "free")
    J, bias = check_finite(as_numbers(J, "J"), "J", core=2), numbers(bias, "bias")
    if J.shape != (len(bias), len(free)):
        raise ShapeError(f"J must have shape {(len(bias), len(free))}, got {J.shape}")
    low, high = bounds(low, high, len(bias))
    try:
        L = np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        raise SingularError(
            "H must be positive definite for the program in accelerations; give massless joints "
            "an inertia, or use the program in forces"
        ) from None
    G, d = np.linalg.solve(L, J.T).T, J @ free + bias
    forces = solution_of(pivot(Factored(G, d), low, high), G @ G.T, d, low, high)
    return MotionSolution(free + np.linalg.solve(L.T, G.T @ forces.lam), forces)


class Factored:
    """A problem given by ``G`` and ``d``, with ``M = G Gᵀ``."""

    def __init__(self, G, d):
        self.G, self.d = G, d
        self.sizes = positive_sizes(np.linalg.norm(G, axis=1))

    def motion(self, lam):
        """Motion ``G Gᵀ lam + d`` under the forces ``lam``, (n,)."""
        return self.G @ (self.G.T @ lam) + self.d

    def terms(self, lam):
        """Sums of absolute terms of ``motion``, (n,), the scale of its rounding errors."""
        return np.abs(self.G) @ (np.abs(self.G.T) @ np.abs(lam)) + np.abs(self.d)

    def response(self, basis, row):
        """Basis forces that hold the basis still as force ``row`` grows by 1, and row's motion."""
        G = self.G
        y = -np.linalg.lstsq(G[basis].T, G[row], rcond=None)[0]
        left = G[row] + y @ G[basis]
        return y, left @ left, G[row] @ G[row]

    def balance(self, basis, lam):
        """Copy of ``lam`` whose basis forces make the motion of the basis zero."""
        others = lam.copy()
        others[basis] = 0
        R = np.linalg.qr(self.G[basis].T)[1]
        right = np.linalg.solve(R.T, -self.motion(others)[basis])
        others[basis] = np.linalg.solve(R, right)
        return others


guard_module(__name__)
