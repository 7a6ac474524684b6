"""The equation of motion without multipliers: ``vdot = K z + c`` — Spencer §2.4, (2.41)–(2.43).

``K`` is any matrix of independent columns with ``G K = 0``, and ``c`` any solution of
``G c = -Gdot v``. The accelerations do not depend on the choice, also for states off the manifold.
"""

from typing import NamedTuple

import numpy as np

from kinetree.loops.state_space.multipliers import velocity_products

__all__ = ["NullSpace", "acceleration", "gram_schmidt", "independent_acceleration", "qr", "svd"]


class NullSpace(NamedTuple):
    """The accelerations that a constraint allows, ``K z + c``."""

    K: np.ndarray
    """Independent columns that span the null space of ``G``, (n, p)."""
    c: np.ndarray
    """One acceleration that satisfies the constraint, (n,)."""


def independent_acceleration(system, t, q, v, K, c):
    """``z`` of ``Kᵀ M K z = Kᵀ (F - M c)``, (p,): only a p x p matrix is solved."""
    M = system.M(q)
    return np.linalg.solve(K.T @ M @ K, K.T @ (system.F(t, q, v) - M @ c))


def acceleration(system, t, q, v, K, c):
    """``vdot = K (Kᵀ M K)⁻¹ Kᵀ (F - M c) + c``, (n,) — Spencer (2.43)."""
    return K @ independent_acceleration(system, t, q, v, K, c) + c


def svd(system, q, v, *, stabilization=None) -> NullSpace:
    """Orthonormal ``K``, and the smallest ``c``, by singular values — Spencer (3.2), (3.3)."""
    terms = system.constraint(q, v)
    U, s, Vt = np.linalg.svd(terms.G)
    c = -Vt[: system.m].T @ (U.T @ velocity_products(terms, v, stabilization) / s)
    return NullSpace(Vt[system.m :].T, c)


def qr(system, q, v, *, stabilization=None) -> NullSpace:
    """Orthonormal ``K``, and the smallest ``c``, by a QR factorisation of ``Gᵀ``.

    With ``Gᵀ = Q1 R1`` and ``K = Q2`` the differentiated factorisation is, for columns that do not
    turn within the null space, ``Kdot = -Q1 R1⁻ᵀ Gdot Q2``; so ``Kdot ydot = -Q1 R1⁻ᵀ Gdot v``.
    """
    terms = system.constraint(q, v)
    Q, R = np.linalg.qr(terms.G.T, mode="complete")
    Q1, R1 = Q[:, : system.m], R[: system.m]
    c = -Q1 @ np.linalg.solve(R1.T, velocity_products(terms, v, stabilization))
    return NullSpace(Q[:, system.m :], c)


def gram_schmidt(G, Gdot, completion):
    """Orthonormal ``K`` and its rate, by differentiating the Gram-Schmidt process.

    Args:
        G: constraint matrix of full row rank, (m, n).
        Gdot: its rate, (m, n).
        completion: rows that span the space together with those of ``G``, (p, n), such as the
            transpose of ``K`` from a while ago. While they stay the same, ``K`` is a differentiable
            function of ``G``.

    Returns:
        ``K`` and ``Kdot``, (n, p).
    """
    basis = []
    rows = [*zip(G, Gdot, strict=True), *((row, np.zeros_like(row)) for row in completion)]
    for a, adot in rows:
        for _ in range(2):  # twice is enough, once is not
            for e, edot in basis:
                adot = adot - (a @ e) * edot - (adot @ e + a @ edot) * e
                a = a - (a @ e) * e
        length = np.linalg.norm(a)
        e = a / length
        basis.append((e, (adot - (adot @ e) * e) / length))
    K, Kdot = (np.array(part).T for part in zip(*basis[len(G) :], strict=True))
    return K, Kdot


def qr_rate(G, Gdot):
    """``K`` and ``Kdot`` of the QR factorisation, with columns that do not turn; (n, p) each."""
    m = len(G)
    Q, R = np.linalg.qr(G.T, mode="complete")
    K = Q[:, m:]
    return K, -Q[:, :m] @ np.linalg.solve(R[:m].T, Gdot @ K)
