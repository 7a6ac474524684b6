"""The equation of motion without multipliers: ``vdot = K z + c`` — Spencer §2.4, (2.41)–(2.43).

``K`` is any matrix of independent columns with ``G K = 0``, and ``c`` any solution of
``G c = -Gdot v``. The accelerations do not depend on the choice, also for states off the manifold.
"""

from typing import NamedTuple

import numpy as np

from kinetree.errors import SingularError
from kinetree.loops.kinematics.constraint import independent_rows
from kinetree.loops.state_space.multipliers import independent_acceleration, velocity_products


class AllowedAccelerations(NamedTuple):
    """The accelerations that a constraint allows, ``K z + c``."""

    K: np.ndarray
    """Independent columns that span the null space of ``G``, (n, p)."""
    c: np.ndarray
    """One acceleration that satisfies the constraint, (n,)."""


def acceleration(system, t, q, v, K, c):
    """Acceleration ``K (Kᵀ M K)⁻¹ Kᵀ (F - M c) + c``, (n,) — Spencer (2.43)."""
    return K @ independent_acceleration(system, t, q, v, K, c) + c


def svd(system, q, v, *, stabilization=None) -> AllowedAccelerations:
    """``AllowedAccelerations``: orthonormal ``K``, smallest ``c``, by SVD — Spencer (3.2), (3.3).

    Redundant constraints are left out.
    """
    G, products = _independent(system, q, v, stabilization)
    U, s, Vt = np.linalg.svd(G)
    c = -Vt[: len(G)].T @ (U.T @ products / s)
    return AllowedAccelerations(Vt[len(G) :].T, c)


def qr(system, q, v, *, stabilization=None) -> AllowedAccelerations:
    """``AllowedAccelerations``: orthonormal ``K`` and smallest ``c``, by QR of ``Gᵀ``.

    With ``Gᵀ = Q1 R1`` and ``K = Q2`` the differentiated factorisation is, for columns that do not
    turn within the null space, ``Kdot = -Q1 R1⁻ᵀ Gdot Q2``; so ``Kdot ydot = -Q1 R1⁻ᵀ Gdot v``.
    Redundant constraints are left out.
    """
    G, products = _independent(system, q, v, stabilization)
    Q, R = np.linalg.qr(G.T, mode="complete")
    Q1, R1 = Q[:, : len(G)], R[: len(G)]
    c = -Q1 @ np.linalg.solve(R1.T, products)
    return AllowedAccelerations(Q[:, len(G) :], c)


def _independent(system, q, v, stabilization):
    """Constraint matrix and velocity products of independent constraints at a state."""
    terms = system.constraint(q, v)
    rows = independent_rows(terms.G, system.scaling)
    return terms.G[rows], velocity_products(terms, v, stabilization)[rows]


def gram_schmidt(G, Gdot, completion):
    """Orthonormal null-space basis ``K`` and its rate, by differentiated Gram-Schmidt.

    Args:
        G: constraint matrix of full row rank, (m, n).
        Gdot: its rate, (m, n).
        completion: rows that span the space together with those of ``G``, (p, n), such as the
            transpose of ``K`` from a while ago. While they stay the same, ``K`` is a differentiable
            function of ``G``.

    Returns:
        ``K`` and ``Kdot``, (n, p).
    """
    _require_independent(G)
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
    """Null-space basis ``K`` and its rate by QR, columns not rotating, (n, p) each."""
    _require_independent(G)
    m = len(G)
    Q, R = np.linalg.qr(G.T, mode="complete")
    K = Q[:, m:]
    return K, -Q[:, :m] @ np.linalg.solve(R[:m].T, Gdot @ K)


def _require_independent(G):
    """Raise SingularError if the constraint rows are dependent."""
    size = len(independent_rows(G))
    if size < len(G):
        raise SingularError(
            f"a differentiable null space needs independent constraints, and of these {len(G)} "
            f"only {size} are: leave the redundant ones out (system.independent(q)), or keep away "
            f"from the singular configuration"
        )
