"""The two quadratic programs of contact — RBDA (11.43), (11.44).

In forces: ``min ½ lamᵀ M lam + dᵀ lam`` over forces within bounds. Its optimality conditions are
the linear complementarity problem, or for bounds of other kinds the mixed one of ``rows``.

In accelerations, Gauss' principle of least constraint: the motion nearest to the free one, in the
metric of the inertia, that the contacts allow. Here a dual method solves it, whose multipliers are
the contact forces. It works with matrices as wide as there are joint variables, and is the better
of the two where contacts outnumber these.
"""

from typing import NamedTuple

import numpy as np

from kinetree.contact.complementarity.certificates import Certificate, certificate_of
from kinetree.contact.complementarity.checks import bounds, matrix_and_vector, numbers
from kinetree.contact.complementarity.pivoting import Dense, Factored, pivot
from kinetree.contact.complementarity.residuals import Residuals, residuals
from kinetree.contact.complementarity.rows import Rows
from kinetree.errors import ShapeError, SingularError
from kinetree.model.arrays import as_numbers, check_finite

__all__ = ["ForceSolution", "MotionSolution", "in_accelerations", "in_forces"]


class ForceSolution(NamedTuple):
    """Solution of a linear complementarity problem or quadratic program in forces.

    Attributes:
        lam: forces, (n,), a basic solution: those of the basis are the only ones not at a bound.
        w: the motion ``M lam + d`` that they leave, (n,); unique, unlike the forces.
        solved: whether this is a solution.
        basis: numbers of the rows that balance freely; their rows of ``M`` are independent.
        certificate: proof that there is no solution, where there is none; else None.
        pivots: number of changes of the basis.
        residuals: by how much the conditions are missed.
    """

    lam: np.ndarray
    w: np.ndarray
    solved: bool
    basis: tuple[int, ...]
    certificate: Certificate | None
    pivots: int
    residuals: Residuals


class MotionSolution(NamedTuple):
    """Solution of the program in accelerations.

    Attributes:
        qdd: accelerations, (nv,), unique.
        forces: the multipliers, with all that belongs to them.
    """

    qdd: np.ndarray
    forces: ForceSolution


def in_forces(M, d, low=0.0, high=np.inf) -> ForceSolution:
    """Forces within bounds that minimise ``½ lamᵀ M lam + dᵀ lam`` — RBDA (11.43).

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
    return _finished(pivot(Dense(M, d), low, high), M, d, low, high)


def in_accelerations(H, free, J, bias, low=0.0, high=np.inf) -> MotionSolution:
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
    forces = _finished(pivot(Factored(G, d), low, high), G @ G.T, d, low, high)
    return MotionSolution(free + np.linalg.solve(L.T, G.T @ forces.lam), forces)


def _finished(found, M, d, low, high):
    certificate = None if found.ray is None else certificate_of(M, d, found.ray)
    return ForceSolution(
        lam=found.lam,
        w=M @ found.lam + d,
        solved=found.ray is None,
        basis=found.basis,
        certificate=certificate,
        pivots=found.pivots,
        residuals=residuals(Rows(np.zeros(0), low, high), M, d, found.lam),
    )
