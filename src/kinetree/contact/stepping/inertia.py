"""The inertia matrix of a step, factorised: sparse in a trace, dense on floats."""

import numpy as np

from kinetree.algorithms import ltl
from kinetree.quantities import dynamics

__all__ = ["Inertia"]


class Inertia:
    """``M = H(q) + diag(extra)`` of a tree, ready to be divided by.

    Args:
        model: the mechanism.
        q: configuration, (nq,).
        extra: what an implicit treatment of springs and dampers adds to the diagonal, (nv,).
        free: 1 for variables that forces change, 0 for those that are given, (nv,): of these, what
            ``solve`` is told is what it returns, and the others do not feel it.
    """

    def __init__(self, model, q, extra, free):
        self.H = dynamics.mass_matrix(model, q)
        self.lam, self.free = model.expanded_parent, free
        M = (self.H + np.diag(extra)) * free * free[:, None] + np.diag(1 - free)
        self.traced = M.dtype == object
        self.L = self._factor(model, M)

    def _factor(self, model, M):
        def message(k):
            i = next(i for i, at in enumerate(model.v_slice) if i and at.start <= k < at.stop)
            return (
                f"TimeStepping divides by the inertia that joints move with loops open, and joint "
                f"{model.joint_names[i - 1]!r} moves none: give body {model.body_names[i]!r}, or a "
                f"body beyond it, mass away from the joint axis, or the joint armature"
            )

        if not self.traced:
            try:
                return np.linalg.cholesky(M)
            except np.linalg.LinAlgError:
                pass  # the sparse way says which joint it is
        return ltl.ltdl(M, self.lam, message)

    def solve(self, b):
        """``M⁻¹ b``."""
        if self.traced:
            return ltl.solve_ltdl(self.L, self.lam, b)
        return self._back(np.linalg.solve(self.L, b))

    def halves(self, G):
        """``Y`` with ``G M⁻¹ Gᵀ = Y Yᵀ``-like product: see ``mobility``; G is (m, nv)."""
        G = G * self.free
        if self.traced:
            return [ltl.solve_lt(self.L, self.lam, row, unit=True) for row in G]
        return np.linalg.solve(self.L, G.T).T

    def mobility(self, Y):
        """``G M⁻¹ Gᵀ``, (m, m), from ``halves(G)``."""
        if not self.traced:
            return Y @ Y.T
        n, D = len(Y), np.diagonal(self.L)
        A = np.zeros((n, n), dtype=object)
        for i, row in enumerate(Y):
            weighted = [0 if _is_zero(x) else x / d for x, d in zip(row, D, strict=True)]
            for j in range(i + 1):
                A[i, j] = A[j, i] = sum(
                    x * y for x, y in zip(weighted, Y[j], strict=True)
                    if not (_is_zero(x) or _is_zero(y))
                )  # fmt: skip
        return A

    def response(self, Y, forces):
        """``M⁻¹ Gᵀ forces``, (nv,), from ``halves(G)``."""
        if not self.traced:
            return self._back(np.asarray(forces) @ Y)
        total = sum(f * y for f, y in zip(forces, Y, strict=True))
        return ltl.solve_l(self.L, self.lam, total / np.diagonal(self.L), unit=True)

    def _back(self, y):
        return np.linalg.solve(self.L.T, y)


def _is_zero(x):
    return isinstance(x, (int, float)) and x == 0
