"""Friction cones with flat sides: a linear complementarity problem, solved by Lemke's method.

The form of Stewart and Trinkle. Friction is a sum of forces along a few directions around the
contact, ``lam_t = Σ beta_j d_j`` with ``Σ beta_j ≤ mu lam_n``; a multiplier, which comes out as the
speed of sliding, goes with that bound. Loops, limits and dry joint friction join as further
unknowns: a row without bounds is the difference of two, one with two bounds has a multiplier.

Polyhedra have a direction in which friction is largest, and directions of sliding are those of
their corners: use it where a finite method is wanted, or every solution, or a proof; for motion
take true cones. ``kt.contact.complementarity.polyhedral`` is this text.
"""

from typing import NamedTuple

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.contact.complementarity import lcp
from kinetree.contact.complementarity.inputs import mixed_problem
from kinetree.contact.complementarity.pivoting import ForceSolution
from kinetree.contact.complementarity.rows import MixedRows
from kinetree.errors import ShapeError

__all__ = ["PolyhedralSolution", "complementarity_problem", "solve"]


class PolyhedralSolution(NamedTuple):
    """Forces of a mixed problem whose friction cones have flat sides.

    Attributes:
        lam: forces, (n,): (normal, tangent, tangent) of each contact, then the other rows.
        w: the motion ``A lam + b`` that they leave, (n,).
        solved: whether this is a solution.
        problem: solution of the linear complementarity problem, with residuals, and with a
            certificate if it proves that there is none.
    """

    lam: np.ndarray
    w: np.ndarray
    solved: bool
    problem: ForceSolution


def solve(
    A: ArrayLike,
    b: ArrayLike,
    mu: ArrayLike,
    *,
    low: ArrayLike = (),
    high: ArrayLike = (),
    sides: int = 8,
) -> PolyhedralSolution:
    """Contact forces within polyhedral friction cones and bounds, by Lemke's algorithm.

    Args:
        A: inverse inertia that the forces meet, symmetric and positive semidefinite, (n, n).
        b: motion without them, (n,).
        mu: coefficients of friction of the contacts, (c,), which take the first 3 c rows.
        low: lower bounds of the rows that follow, (n - 3 c,), -inf for none.
        high: upper bounds, inf for none.
        sides: number of sides of the cones, 3 or more; one corner is along the first tangent.
    """
    A, b, rows = mixed_problem(A, b, mu, low, high)
    if sides < 3:
        raise ShapeError(f"a friction cone needs 3 sides or more, got {sides}")
    M, d, P, start = complementarity_problem(A, b, rows, sides)
    found = lcp.lemke(M, d)
    lam = start + P @ found.lam[: P.shape[1]]
    return PolyhedralSolution(lam, A @ lam + b, found.solved, found)


def complementarity_problem(
    A: ArrayLike, b: ArrayLike, rows: MixedRows, sides: int
) -> tuple[Array, Array, Array, Array]:
    """LCP matrix and right side of polyhedral friction, and the map to forces.

    For ``lcp.enumerated``, say, to see all solutions of a small problem.
    """
    n, c = rows.size, len(rows.mu)
    columns, start = [], np.zeros(n)  # (row or direction, bound)
    angles = 2 * np.pi * np.arange(sides) / sides
    for i in range(c):
        columns.append(_unit(n, {3 * i: 1.0}))
        for angle in angles:
            columns.append(_unit(n, {3 * i + 1: np.cos(angle), 3 * i + 2: np.sin(angle)}))
    boxes = []
    for k, (low, high) in enumerate(zip(rows.low, rows.high, strict=True), 3 * c):
        if np.isfinite(low):
            start[k] = low
            if np.isfinite(high):
                boxes.append((len(columns), high - low))
            columns.append(_unit(n, {k: 1.0}))
        elif np.isfinite(high):
            start[k] = high
            columns.append(_unit(n, {k: -1.0}))
        else:
            columns += [_unit(n, {k: 1.0}), _unit(n, {k: -1.0})]
    P = np.array(columns).reshape(-1, n).T
    x = P.shape[1]
    bound = np.zeros((c + len(boxes), x))  # bounds on x: room - bound x ≥ 0
    for i, mu in enumerate(rows.mu):
        first = i * (sides + 1)
        bound[i, first], bound[i, first + 1 : first + 1 + sides] = -mu, 1.0
    for i, (column, _) in enumerate(boxes, c):
        bound[i, column] = 1.0
    room = np.array([0.0] * c + [width for _, width in boxes])
    pull = bound.T.copy()
    pull[:, :c] = np.maximum(pull[:, :c], 0.0)  # friction does not push contacts apart
    M = np.block([[P.T @ A @ P, pull], [-bound, np.zeros((len(bound), len(bound)))]])
    return M, np.concatenate([P.T @ (A @ start + b), room]), P, start


def _unit(n, entries):
    """Column vector of length ``n`` with the given nonzero entries."""
    column = np.zeros(n)
    for i, x in entries.items():
        column[i] = x
    return column


guard_module(__name__)
