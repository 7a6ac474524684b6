"""The equation of motion that does not fail at kinematic singularities — Spencer ch. 3, (3.5).

    vdot = V2 (V2ᵀ M V2)⁻¹ V2ᵀ (F + M pinv(G) Gdot v) - pinv(G) Gdot v

with ``G = U [diag(sigma) 0] [V1 V2]ᵀ``. Where ``G`` loses rank the pseudoinverse leaves the lost
direction alone. The form says how near a singularity is, and whether the pass is benign; it does
not resolve the singularity. At the singular point itself ``V2`` is an arbitrary part of a larger
null space, so that the branch on which the motion goes on is decided by rounding.
"""

from typing import NamedTuple

import numpy as np

from kinetree.loops.kinematics.rank import rank as rank_of
from kinetree.loops.state_space.multipliers import Stabilization, velocity_products

__all__ = ["SVDEvaluation", "SVDForm"]

THRESHOLD = 1e-12
"""Singular values below this times the largest count as zero."""


class SVDEvaluation(NamedTuple):
    """Accelerations at one state, and the numbers that say whether to believe them."""

    vdot: np.ndarray
    """Accelerations, (n,)."""
    sigma: np.ndarray
    """Singular values of ``G``, descending, (rank,)."""
    kappa: float
    """Their ratio, largest to smallest: 1 at best, infinite at a singularity — §3.1."""
    indicator: float
    """``|v_m u_mᵀ Gdot v|``: vanishes like the smallest singular value in a benign pass — (3.7)."""
    K: np.ndarray
    """``V2``, orthonormal basis of the null space, (n, p)."""
    c: np.ndarray
    """``Kdot ydot = -pinv(G) Gdot v``, (n,)."""
    rank: int
    """Singular values that count: fewer than there should be at a singularity."""


class SVDForm:
    """Accelerations of a constrained system by singular values.

    Attributes:
        system: the constrained system; redundant constraints are welcome.
        rank: number of independent constraints away from singularities.
        threshold: singular values below this times the largest count as zero. Larger ones, from
            1e-3 or so, soften the constraints near singularities: stable, but not accurate.
        damping: ``mu`` of the damped inverse ``Gᵀ (G Gᵀ + mu² 1)⁻¹``, whose norm is at most
            ``1 / (2 mu)``; softens as well. Zero for none.
        stabilization: ``Stabilization(alpha, beta)``, or None.
    """

    def __init__(
        self, system, *, q=None, rank=None, threshold=THRESHOLD, damping=0.0,
        stabilization: Stabilization | None = None,
    ):  # fmt: skip
        """Choose how the inverse is made.

        Args:
            system: the constrained system.
            q: a configuration away from singularities at which independent constraints are
                counted; by default all are taken to be independent.
            rank: their number, if known.
            threshold: see above.
            damping: see above.
            stabilization: see above.
        """
        if rank is None:
            rank = system.m if q is None else rank_of(system.G(q), system.scaling)
        self.system, self.rank, self.stabilization = system, rank, stabilization
        self.threshold, self.damping = threshold, damping

    def acceleration(self, t, q, v):
        """``vdot``, (n,)."""
        return self.evaluate(t, q, v).vdot

    def evaluate(self, t, q, v) -> SVDEvaluation:
        """``vdot`` with its diagnostics."""
        system, r = self.system, self.rank
        terms = system.constraint(q, v)
        products = velocity_products(terms, v, self.stabilization)
        U, s, Vt = np.linalg.svd(terms.G)
        U, sigma, V1, V2 = U[:, :r], s[:r], Vt[:r].T, Vt[r:].T
        along = U.T @ products
        c = -V1 @ (self.inverse_values(sigma) * along)
        M = system.M(q)
        z = np.linalg.solve(V2.T @ M @ V2, V2.T @ (system.F(t, q, v) - M @ c))
        kappa = sigma[0] / sigma[-1] if r and sigma[-1] > 0 else (np.inf if r else 1.0)
        indicator = abs(float(U[:, -1] @ terms.Gdot_v)) if r else 0.0
        count = int(np.sum(sigma > self.threshold * sigma[0])) if r else 0
        return SVDEvaluation(V2 @ z + c, sigma, float(kappa), indicator, V2, c, count)

    def pseudo_inverse(self, q):
        """``pinv(G)`` as this form has it, (n, m) — Spencer (3.4)."""
        U, s, Vt = np.linalg.svd(self.system.G(q))
        r = self.rank
        return (Vt[:r].T * self.inverse_values(s[:r])) @ U[:, :r].T

    def inverse_values(self, sigma):
        """``1 / sigma``, damped, or zero where ``sigma`` counts as zero."""
        if len(sigma) == 0:
            return sigma
        counts = sigma > self.threshold * sigma[0]
        if self.damping:
            inverse = sigma / (sigma**2 + self.damping**2)
        else:
            inverse = 1 / np.where(counts, sigma, 1.0)
        return np.where(counts, inverse, 0.0)
