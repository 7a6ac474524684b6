"""The equations of all bodies as one matrix equation — Lynch & Park §9.4, (9.62)–(9.84).

The velocities of all bodies, stacked, satisfy ``V = Γ V + A qd``, where ``Γ`` holds the transforms
from parents; ``L = (1 - Γ)⁻¹`` solves the recursion once and for all, and

    H = Aᵀ Lᵀ G L A,    c = Aᵀ Lᵀ (G L (c_J - [ad_Aqd] Γ V) - [ad_V]ᵀ G V),    g = Aᵀ Lᵀ G L V̇_base

in the book's letters: ``A`` are the joint subspaces, ``G`` the inertias. Two printed signs are
corrected, of ``[ad_Aqd]`` in (9.73), (9.78), (9.83) and of the base acceleration, which is
``-g``; and ``c_J`` is added for joints whose axes move in the body. Trees need nothing more than
chains. Dense matrices of size 6 N_B: an oracle, and a form for proofs.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import congruent, for_all_joints, force
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import joint_transforms
from kinetree.spatial import dense

__all__ = [
    "StackedOperators",
    "coriolis_force",
    "gravity_force",
    "joint_space_inertia",
    "stacked_operators",
]


class StackedOperators(NamedTuple):
    """The operators of (9.64)–(9.68) and (9.76), with N = N_B."""

    A: np.ndarray
    """Joint subspaces, block diagonal, (6N, nv)."""
    G: np.ndarray
    """Inertias, block diagonal, (6N, 6N)."""
    Gamma: np.ndarray
    """Transforms from parent to body, nilpotent, (6N, 6N)."""
    L: np.ndarray
    """Transforms from every ancestor, ``(1 - Γ)⁻¹``, (6N, 6N)."""


def stacked_operators(model, q) -> StackedOperators:
    """``A``, ``G``, ``Γ`` and ``L`` at ``q``; ``L`` is built from products, nothing is inverted."""
    lam, NB = model.parent, model.body_count
    X, S = joint_transforms(model, q)
    dtype = model.scalar_type(q)
    A = np.zeros((6 * NB, model.nv), dtype=dtype)
    G, Gamma, L = (np.zeros((6 * NB, 6 * NB), dtype=dtype) for _ in range(3))
    for i in range(1, NB + 1):
        rows = _rows(i)
        A[rows, model.v_slice[i]] = S[i].to_array()
        G[rows, rows] = model.inertia[i].to_matrix()
        L[rows, rows] = np.eye(6, dtype=int)
        if lam[i] != 0:
            X_i = X[i].to_matrix()
            Gamma[rows, _rows(lam[i])] = X_i
            L[rows] = L[rows] + X_i @ L[_rows(lam[i])]
    return StackedOperators(A, G, Gamma, L)


@for_all_joints(congruent)
def joint_space_inertia(model, q):
    """``H = Aᵀ Lᵀ G L A`` — Lynch & Park (9.82)."""
    A, G, _, L = stacked_operators(model, q)
    return armature.inertia(model, A.T @ L.T @ G @ L @ A)


@refuses("couplings", use="rnea.coriolis_force")
def coriolis_force(model, q, qd):
    """The velocity terms, ``Aᵀ Lᵀ (G L (c_J - [ad_Aqd] Γ V) - [ad_V]ᵀ G V)`` — (9.83) corrected."""
    A, G, Gamma, L = stacked_operators(model, q)
    bodies = range(1, model.body_count + 1)
    v_J, c_J = (_stack([model.jcalc(i, q, qd)[k].to_array() for i in bodies]) for k in (2, 3))
    V = L @ v_J  # v_J = A qd, but for prescribed joints
    Vd = L @ (c_J - _ad(v_J) @ (Gamma @ V))
    return A.T @ L.T @ (G @ Vd - _ad(V).T @ (G @ V))


@refuses("prescribed", use="rnea.gravity_force")
@for_all_joints(force)
def gravity_force(model, q):
    """``Aᵀ Lᵀ G L V̇_base`` with the base accelerating at ``-g`` — Lynch & Park (9.84)."""
    A, G, _, L = stacked_operators(model, q)
    X, _ = joint_transforms(model, q)
    base = [
        (X[i] @ -model.a_g if model.parent[i] == 0 else model.zero_motion).to_array()
        for i in range(1, model.body_count + 1)
    ]
    return A.T @ L.T @ G @ L @ _stack(base)


def _rows(i):
    return slice(6 * (i - 1), 6 * i)


def _stack(parts):
    return np.concatenate([np.zeros(0, dtype=int), *parts])


def _ad(V):
    """``[ad_V]``: the cross operators of all bodies, block diagonal."""
    ad = np.zeros((len(V), len(V)), dtype=np.asarray(V).dtype)
    for k in range(0, len(V), 6):
        ad[k : k + 6, k : k + 6] = dense.crm(V[k : k + 6])
    return ad
