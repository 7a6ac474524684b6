"""Derivatives of forward dynamics from those of inverse dynamics.

``tau(q, qd, qdd(q, qd, tau)) = tau`` for every ``tau``; differentiating both sides gives

    ∂qdd/∂q = -H⁻¹ ∂tau/∂q      ∂qdd/∂qd = -H⁻¹ ∂tau/∂qd      ∂qdd/∂tau = H⁻¹

with the derivatives of inverse dynamics taken at the true acceleration (J. Carpentier and
N. Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018). Positions, velocities
and composite inertias are shared by all parts; ``H⁻¹`` acts through the sparse factors of ``H``.
The joints must meet the conditions of ``rnea_derivatives``.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature, ltl
from kinetree.algorithms.propagation import moves_no_inertia
from kinetree.algorithms.rnea_derivatives import (
    composite_bodies,
    composite_forces,
    force_derivatives,
    joint_forces,
    joint_space_inertia,
)
from kinetree.spatial import crm

__all__ = ["ForwardDynamicsDerivatives", "forward_dynamics_derivatives"]


class ForwardDynamicsDerivatives(NamedTuple):
    """Derivatives of the joint accelerations, each (nv, nv): row ``i`` for ``qdd_i``."""

    dq: np.ndarray
    """Along the tangent directions of the configuration."""
    dqd: np.ndarray
    """With respect to the velocity variables."""
    dtau: np.ndarray
    """With respect to the joint forces: ``H⁻¹``, symmetric."""


def forward_dynamics_derivatives(model, q, qd, tau, f_ext=None):
    """Derivatives of ``aba.forward_dynamics`` with respect to ``q``, ``qd`` and ``tau``."""

    def singular(k):
        i = next(i for i, at in enumerate(model.v_slice) if k < at.stop)
        return moves_no_inertia(model, i)

    lam = model.expanded_parent
    bodies = composite_bodies(model, q, qd)
    L = ltl.ltdl(joint_space_inertia(model, bodies), lam, singular)
    zero = model.zero_velocity
    C = joint_forces(model, bodies, composite_forces(model, bodies, qd, zero, f_ext), zero)
    qdd = ltl.solve_ltdl(L, lam, tau - C)
    forces = composite_forces(model, bodies, qd, qdd, f_ext)
    dq, dqd = force_derivatives(model, bodies, forces)
    known_q, known_qd = _free_root_columns(model, bodies, forces)
    return ForwardDynamicsDerivatives(
        _solved(L, lam, dq, known_q), _solved(L, lam, dqd, known_qd), _inverse(L, lam)
    )


def _free_root_columns(model, bodies, forces):
    """Columns that a floating base takes upon itself, by variable: its rows and their values.

    When it turns, gravity turns in its coordinates; when its linear velocity changes, it moves
    through them. Both add the same motion ``m`` to the accelerations of all bodies, the forces
    ``IC_i m``, and cancel if the base alone accelerates by ``-m``. External forces, which do not
    turn along, leave only the second.
    """
    known_q, known_qd = {}, {}
    for i in model.children[0]:
        J, at = bodies.J[i], model.v_slice[i]
        if not np.array_equal(J.to_array(), np.eye(6)) or armature.is_present(model, i):
            continue
        turned, moved = forces.Jdd[i].to_array(), crm(bodies.v[i], J).to_array()
        for k in range(6):
            if forces.fx is None:
                known_q[at.start + k] = at, -turned[:, k]
            if k >= 3:
                known_qd[at.start + k] = at, -moved[:, k]
    return known_q, known_qd


def _solved(L, lam, B, known):
    """``-H⁻¹ B`` from the factors of ``H``, but for the columns that are known.

    Column ``j`` of ``B`` is zero but for the variables that support ``j`` or hang on it. So is it
    after the first half of the solution; in the second half the others follow those that they
    share with ``j``, by coefficients that do not depend on the column.
    """
    n = len(lam)
    B = np.array(B)
    B[:, list(known)] = 0
    Y = ltl.solve_lt(L, lam, B, unit=True).reshape(n, n)
    path = [(*reversed(list(ltl.ancestors(lam, k))), k) for k in range(n)]
    minus_D_inv = -1 / np.diagonal(L)
    X, W = np.zeros((n, n), dtype=B.dtype), {}
    for j in range(n):
        for i in range(n):
            shared = [a for a, b in zip(path[i], path[j], strict=False) if a == b]
            if shared and shared[-1] in (i, j):
                X[i, j] = _less(Y[i, j] * minus_D_inv[i], L[i], X[:, j], path[i][:-1])
            elif shared:
                w = _following(L, path, i, len(shared), W)
                X[i, j] = sum(w[a] * X[a, j] for a in shared)
    for k, (rows, values) in known.items():
        X[rows, k] = values
    return X


def _less(x, row, column, indices):
    """``x`` minus a scalar product, term by term."""
    for k in indices:
        x = x - row[k] * column[k]
    return x


def _following(L, path, i, count, W):
    """How variable ``i`` follows the first ``count`` variables of its path, kept in ``W``."""
    if (i, count) not in W:
        between = path[i][count:-1]
        w = {k: _following(L, path, k, count, W) for k in between}
        W[i, count] = {
            a: _less(-L[i, a], L[i], {k: w[k][a] for k in between}, between)
            for a in path[i][:count]
        }
    return W[i, count]


def _inverse(L, lam):
    """``H⁻¹ = A D⁻¹ Aᵀ`` with ``A = L⁻¹``, one triangle and its mirror image."""
    n = len(lam)
    A = ltl.solve_l(L, lam, np.eye(n, dtype=int), unit=True).reshape(n, n)
    AD = A / np.diagonal(L)
    H_inv = np.zeros((n, n), dtype=L.dtype)
    for i in range(n):
        for j in range(i + 1):
            H_inv[i, j] = H_inv[j, i] = AD[i] @ A[j]
    return H_inv
