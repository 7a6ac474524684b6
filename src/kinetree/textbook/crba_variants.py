"""Other ways to the joint-space inertia matrix — RBDA §6.1–6.3, Lynch & Park §9.4.

From the definition to ever less work; ``crba`` is where they lead. They serve as oracles for it,
and to read. All are in base coordinates, but for ``along_screws``, whose operations RBDA (10.2)
counts.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import congruent, for_all_joints
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.algorithms.rnea import inertia_product
from kinetree.spatial import Force, Motion


@for_all_joints(congruent)
def from_definition(model, q):
    """Inertia matrix ``H_ij = Σ S_iᵀ I_k S_j`` by its definition — RBDA (6.11)."""
    S, I = _in_base_coordinates(model, q)
    nu, bodies = model.subtree, range(1, model.body_count + 1)
    H = _zeros(model, q)
    for i in bodies:
        for j in bodies:
            for k in set(nu[i]) & set(nu[j]):
                _block(model, H, i, j)[...] += S[i].T @ (I[k] @ S[j])
    return armature.inertia(model, H)


@for_all_joints(congruent)
def from_jacobians(model, q):
    """Inertia matrix ``H = Σ J_kᵀ I_k J_k`` from body Jacobians — Lynch & Park (9.60)."""
    S, I = _in_base_coordinates(model, q)
    H = _zeros(model, q)
    for k in range(1, model.body_count + 1):
        J = Motion(*(np.zeros((3, model.nv), dtype=H.dtype) for _ in range(2)))
        for i in model.support[k]:
            J.angular[:, model.v_slice[i]] = S[i].angular
            J.linear[:, model.v_slice[i]] = S[i].linear
        H = H + J.T @ (I[k] @ J)
    return armature.inertia(model, H)


@for_all_joints(congruent)
def from_base_coordinates(model, q):
    """Inertia matrix by composite rigid bodies in base coordinates — RBDA (6.13), (6.14)."""
    S, IC = _in_base_coordinates(model, q)
    lam, H = model.parent, _zeros(model, q)
    for i in range(model.body_count, 0, -1):
        if lam[i] != 0:
            IC[lam[i]] = IC[lam[i]] + IC[i]
        F = IC[i] @ S[i]
        for j in model.support[i]:
            _block(model, H, i, j)[...] = F.T @ S[j]
            _block(model, H, j, i)[...] = S[j].T @ F
    return armature.inertia(model, H)


def from_unit_accelerations(model, q):
    """Inertia matrix column by column from inverse dynamics (RBDA §6.1, Walker & Orin)."""
    columns = [inertia_product(model, q, delta) for delta in np.eye(model.nv, dtype=int)]
    return np.array(columns).reshape(model.nv, model.nv).T


def along_screws(steps, inertias):
    """Inertia matrix of a hinge chain in Denavit-Hartenberg frames — RBDA §10.3.1, (10.2).

    In link coordinates, where the axes are ``e3``, products with them are entries of the others.
    Takes ``(n - 1)(ra + rx) + n (n - 1)/2 vx``: ``ra`` to add two inertias, ``rx`` and ``vx`` to
    move an inertia and a force vector to the parent, by two axial screws.

    Args:
        steps: transform from each link to the next, ``axial_screw.dh_step(a, alpha, d, q)``; the
            first, from the base, is not used.
        inertias: of the links, in their own coordinates.
    """
    n, I_c = len(steps), list(inertias)
    H = [[None] * n for _ in range(n)]
    for i in reversed(range(n)):
        if i > 0:
            I_c[i - 1] = I_c[i - 1] + steps[i].inv_apply(I_c[i])
        H[i][i] = I_c[i].rotational[2, 2]
        h = I_c[i].first_moment
        F = Force(I_c[i].rotational[:, 2], np.array([-h[1], h[0], 0 * h[2]]))
        for j in reversed(range(i)):
            F = steps[j + 1].inv_apply(F)
            H[i][j] = H[j][i] = F.angular[2]
    return np.array(H)


class Column(NamedTuple):
    """Motions and forces in the tree when one joint variable alone accelerates — RBDA §6.3."""

    tau: np.ndarray
    """Joint forces: a column of ``H``, (nv,)."""
    a: list
    """Body accelerations, in base coordinates."""
    f: list
    """Forces transmitted across the joints, in base coordinates."""


@refuses("couplings", use="crba.joint_space_inertia")
def column(model, q, k):
    """Column ``k`` of the inertia matrix from its physical meaning — RBDA (6.21)–(6.25).

    Everything beyond the joint ``i`` that owns variable ``k`` moves as one rigid body with
    acceleration ``s``, the rest stays; the force for it comes all the way from the base.
    """
    S, IC = _in_base_coordinates(model, q)
    lam, NB = model.parent, model.body_count
    for i in range(NB, 0, -1):
        if lam[i] != 0:
            IC[lam[i]] = IC[lam[i]] + IC[i]

    i = next(i for i in range(1, NB + 1) if k in range(model.nv)[model.v_slice[i]])
    qdd = np.eye(model.nv, dtype=int)[k]
    s = S[i] @ qdd[model.v_slice[i]]
    a = [s if j in model.subtree[i] else model.zero_motion for j in range(NB + 1)]
    f = [Force.zero()] * (NB + 1)
    for j in model.subtree[i]:
        f[j] = IC[j] @ s
    for j in model.support[i]:
        f[j] = f[i]
    tau = np.concatenate([S[j].T @ f[j] for j in range(1, NB + 1)])
    return Column(armature.forces(model, tau, qdd), a, f)


def _in_base_coordinates(model, q):
    """Motion subspaces and inertias of all bodies in base coordinates."""
    X, S = joint_transforms(model, q)
    X_0, bodies = base_transforms(model, X), range(1, model.body_count + 1)
    S = [None, *(X_0[i].inv_apply(S[i]) for i in bodies)]
    return S, [None, *(X_0[i].inv_apply(model.inertia[i]) for i in bodies)]


def _zeros(model, q):
    """Square zero matrix (nv, nv) of the model's number type."""
    return np.zeros((model.nv, model.nv), dtype=model.scalar_type(q))


def _block(model, H, i, j):
    """Block of a matrix that belongs to the variables of joints i and j."""
    return H[model.v_slice[i], model.v_slice[j]]
