"""Gauss–Seidel sweeps over the mixed problem that can be traced: no decision on a value."""

import numpy as np

from kinetree.functional.choose import select

__all__ = ["Sweeps"]


class Sweeps:
    """Gauss–Seidel, contact by contact; directions of sliding are refined from sweep to sweep.

    Args:
        A: matrix of a scaled problem, (n, n).
        b: motion without forces, (n,).
        rows: what the rows stand for.
        proximal: added to the diagonal, so that blocks can be inverted.
    """

    def __init__(self, A, b, rows, proximal):
        self.A, self.b, self.rows = A, b, rows
        self.blocks = [slice(3 * i, 3 * i + 3) for i in range(len(rows.mu))]
        weighted = [A[at, at] + proximal * np.eye(3, dtype=int) for at in self.blocks]
        self.inverses = [_inverse(block) for block in weighted]

    def after(self, lam):
        """Forces after one sweep from ``lam``, (n,)."""
        lam = np.array(lam, dtype=object if self.A.dtype == object else None)
        for i, at in enumerate(self.blocks):
            w = self.A[at] @ lam + self.b[at]
            lam[at] = self._contact(i, lam[at], w)
        for k, (low, high) in enumerate(
            zip(self.rows.low, self.rows.high, strict=True), 3 * len(self.blocks)
        ):
            to = lam[k] - (self.A[k] @ lam + self.b[k])  # the diagonal of A is 1
            lam[k] = select(to < low, low, select(to > high, high, to))
        return lam

    def _contact(self, i, lam, w):
        at, mu, convex = self.blocks[i], self.rows.mu[i], self.rows.convex
        A = self.A[at, at]
        stick = lam - self.inverses[i] @ w
        free = w - A @ lam
        trial, floor = lam - w, free[0]
        if convex:
            floor = free[0] - mu * np.sqrt(free[1] * free[1] + free[2] * free[2])
        for _ in range(2):
            reach = np.sqrt(trial[1] * trial[1] + trial[2] * trial[2])
            c = trial[1:] / select(reach > 0, reach, 1)
            g = np.array([1, mu * c[0], mu * c[1]], dtype=object if A.dtype == object else None)
            Ag = A @ g
            along, driven = (g @ Ag, g @ free) if convex else (Ag[0], free[0])
            normal = -driven / select(along > 0, along, 1)
            normal = select(normal > 0, normal, 0)
            slide = normal * g
            trial = slide - (normal * Ag + free)
        size = stick[1] * stick[1] + stick[2] * stick[2]
        limit = mu * stick[0]
        sticks = (stick[0] > 0) & (size <= limit * limit)
        return select(floor >= 0, 0 * lam, select(sticks, stick, slide))


def _inverse(B):
    """Inverse of a symmetric 3 by 3 matrix, by cofactors."""
    cofactors = np.array(
        [[B[(i + 1) % 3, (j + 1) % 3] * B[(i + 2) % 3, (j + 2) % 3]
          - B[(i + 1) % 3, (j + 2) % 3] * B[(i + 2) % 3, (j + 1) % 3]
          for j in range(3)] for i in range(3)]
    )  # fmt: skip
    determinant = B[0] @ cofactors[0]
    return cofactors / determinant
