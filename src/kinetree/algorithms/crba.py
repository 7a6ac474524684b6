"""Composite-rigid-body algorithm — RBDA §6.2, Table 6.2."""

import numpy as np

from kinetree.algorithms import ltl, rnea
from kinetree.algorithms.aba import moves_no_inertia
from kinetree.algorithms.kinematics import joint_transforms

__all__ = ["composite_inertias", "forward_dynamics", "joint_space_inertia"]


def joint_space_inertia(model, q):
    """``H(q)``, the joint-space inertia (mass) matrix, (nv, nv).

    Entries that the branching of the tree makes zero are never touched — RBDA §6.4.
    """
    lam, NB, at = model.parent, model.body_count, model.v_slice
    X, S = joint_transforms(model, q)

    H = np.zeros((model.nv, model.nv), dtype=model.scalar_type(q))
    IC = list(model.inertia)
    for i in range(NB, 0, -1):
        if lam[i] != 0:
            IC[lam[i]] = IC[lam[i]] + X[i].T @ IC[i] @ X[i]
        F = IC[i] @ S[i]
        H[at[i], at[i]] = S[i].T @ F
        j = i
        while lam[j] != 0:
            F = X[j].T @ F
            j = lam[j]
            H[at[i], at[j]] = F.T @ S[j]
            H[at[j], at[i]] = H[at[i], at[j]].T
    return H


def composite_inertias(model, q):
    """``IC[i]``, the inertia of everything beyond joint ``i`` as one rigid body — RBDA (6.17)."""
    lam, NB = model.parent, model.body_count
    X, _ = joint_transforms(model, q)
    IC = list(model.inertia)
    for i in range(NB, 0, -1):
        if lam[i] != 0:
            IC[lam[i]] = IC[lam[i]] + X[i].T @ IC[i] @ X[i]
    return IC


def forward_dynamics(model, q, qd, tau, f_ext=None):
    """``qdd`` from ``H qdd = tau - C``: the inertia-matrix method — RBDA §6.1."""

    def singular(k):
        i = next(i for i, at in enumerate(model.v_slice) if k < at.stop)
        return moves_no_inertia(model, i)

    lam = model.expanded_parent
    L = ltl.ltdl(joint_space_inertia(model, q), lam, singular)
    return ltl.solve_ltdl(L, lam, tau - rnea.bias_force(model, q, qd, f_ext))
