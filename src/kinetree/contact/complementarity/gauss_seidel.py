"""Projected Gauss–Seidel: one contact, or one row, at a time, each solved exactly.

Simple, and never far from a solution; slow where contacts lean on one another, as in stacks.
"""

import numpy as np

from kinetree.contact.complementarity import one_contact

__all__ = ["solve", "sweep"]

_PROXIMAL = 1e-10  # blocks of A may be singular, as in planar mechanisms


def sweep(A, b, rows, lam):
    """Forces after one pass over all contacts and rows, in order."""
    lam, start = lam.copy(), 3 * len(rows.mu)
    for i, mu in enumerate(rows.mu):
        at = slice(3 * i, 3 * i + 3)
        block = A[at, at] + _PROXIMAL * np.eye(3)
        free = A[at] @ lam + b[at] - block @ lam[at]
        lam[at] = one_contact.solve(block, free, mu, rows.convex, near=lam[at])
    for k, (low, high) in enumerate(zip(rows.low, rows.high, strict=True), start):
        step = (A[k] @ lam + b[k]) / (A[k, k] + _PROXIMAL)
        lam[k] = min(max(lam[k] - step, low), high)
    return lam


def solve(problem, lam, tolerance, iterations):
    """Sweeps until the error is small enough: forces, and number of sweeps."""
    for k in range(iterations):
        if problem.error(lam) <= tolerance:
            return lam, k
        lam = sweep(problem.A, problem.b, problem.rows, lam)
    return lam, iterations
