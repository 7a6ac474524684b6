"""The inverse of the joint-space inertia matrix, ``H⁻¹``.

Column ``k`` of ``H⁻¹`` is the acceleration that a unit force at variable ``k`` causes in the
mechanism at rest without gravity. So the articulated-body algorithm finds all of them in one go,
with the identity in place of ``tau`` and O(n²) work (Carpentier and Mansard 2018). The way
through the sparse factors of ``H`` (RBDA §6.5) gives the same matrix, with fewer operations unless
the tree is deep.
"""

import numpy as np

from kinetree.algorithms import armature, ltl
from kinetree.algorithms.coupled import instead
from kinetree.algorithms.crba import inertia_factors
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import joint_transforms
from kinetree.algorithms.propagation import cleared, inverse_joint_inertia, singular_at
from kinetree.spatial import Force, Motion, dyadic

__all__ = ["inverse_mass_matrix", "inverse_mass_matrix_by_factors"]


@refuses("loops", use="implicit.forward_dynamics: loops leave no inverse of H")
def inverse_mass_matrix_by_factors(model, q):
    """``H⁻¹`` (nv, nv) from the sparse factors of ``H``."""
    return ltl.inverse_ltdl(inertia_factors(model, q), model.expanded_parent)


@refuses("loops", use="implicit.forward_dynamics: loops leave no inverse of H")
@instead(inverse_mass_matrix_by_factors)
def inverse_mass_matrix(model, q):
    """``H⁻¹`` (nv, nv) by an articulated-body recursion, ``H`` never formed."""
    lam, NB, n, at = model.parent, model.body_count, model.nv, model.v_slice
    X, S = joint_transforms(model, q)
    U, D_inv, u, a = ([None] * (NB + 1) for _ in range(4))
    IA = list(model.inertia)
    no_column = np.zeros((3, n), dtype=int)
    pA = [Force(no_column, no_column)] * (NB + 1)
    tau = np.eye(n, dtype=int)

    for i in range(NB, 0, -1):
        U[i] = IA[i] @ S[i]
        D = armature.joint_inertia(model, i, S[i].T @ U[i])
        D_inv[i] = inverse_joint_inertia(IA[i], S[i], D, singular_at(model, i))
        u[i] = tau[at[i]] - S[i].T @ pA[i]
        if lam[i] != 0:
            Ia = IA[i] - dyadic(U[i], D_inv[i])
            Ia = Ia if armature.is_present(model, i) else cleared(Ia, S[i])
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
            pA[lam[i]] = pA[lam[i]] + X[i].T @ (pA[i] + U[i] @ (D_inv[i] @ u[i]))

    # H⁻¹ is symmetric: row i is computed from its own variables on, and mirrored.
    H_inv = np.zeros((n, n), dtype=model.scalar_type(q))
    a[0] = Motion(no_column, no_column)
    for i in range(1, NB + 1):
        here = slice(at[i].start, n)
        a_ = X[i] @ a[lam[i]][at[i].start - at[lam[i]].start :]
        qdd = D_inv[i] @ (u[i][:, here] - U[i].T @ a_)
        a[i] = a_ + S[i] @ qdd
        H_inv[at[i], here] = qdd
        H_inv[here, at[i]] = qdd.T
    return H_inv
