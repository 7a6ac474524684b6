"""Hybrid dynamics by articulated bodies — RBDA §9.2, Tables 9.2 and 9.3."""

import numpy as np

from kinetree.algorithms import armature, hybrid
from kinetree.algorithms.coupled import instead
from kinetree.algorithms.kinematics import external_forces
from kinetree.algorithms.propagation import cleared, inverse_joint_inertia, singular_at
from kinetree.spatial import crf, crm, dyadic

__all__ = ["hybrid_dynamics"]


@instead(hybrid.hybrid_dynamics)
def hybrid_dynamics(model, q, qd, tau, qdd, f_ext=None, *, free):
    """All joint forces and all joint accelerations; see ``hybrid.hybrid_dynamics``."""
    lam, NB, X_T, I = model.parent, model.body_count, model.tree_transform, model.inertia
    X, S, v, c, pA, U, D_inv, u, a = ([None] * (NB + 1) for _ in range(9))
    IA = list(I)
    tau = [model.zero_velocity[:0]] + [tau[model.v_slice[i]] for i in range(1, NB + 1)]
    qdd = [model.zero_velocity[:0]] + [qdd[model.v_slice[i]] for i in range(1, NB + 1)]

    v[0] = model.zero_motion
    for i in range(1, NB + 1):
        X_J, S[i], v_J, c_J = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
        c[i] = c_J + crm(v[i], v_J)
        if i not in free:
            c[i] = c[i] + S[i] @ qdd[i]
        pA[i] = crf(v[i], I[i] @ v[i])

    if f_ext is not None:
        fx = external_forces(model, X, f_ext)
        pA[1:] = [pA[i] - fx[i] for i in range(1, NB + 1)]

    for i in range(NB, 0, -1):
        Ia = IA[i]
        if i in free:
            U[i] = IA[i] @ S[i]
            D = armature.joint_inertia(model, i, S[i].T @ U[i])
            D_inv[i] = inverse_joint_inertia(IA[i], S[i], D, singular_at(model, i))
            u[i] = tau[i] - S[i].T @ pA[i]
            Ia = IA[i] - dyadic(U[i], D_inv[i])
            Ia = Ia if armature.is_present(model, i) else cleared(Ia, S[i])
        if lam[i] != 0:
            pa = pA[i] + Ia @ c[i]
            if i in free:
                pa = pa + U[i] @ (D_inv[i] @ u[i])
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
            pA[lam[i]] = pA[lam[i]] + X[i].T @ pa

    a[0] = -model.a_g
    for i in range(1, NB + 1):
        a[i] = X[i] @ a[lam[i]] + c[i]
        if i in free:
            qdd[i] = D_inv[i] @ (u[i] - U[i].T @ a[i])
            a[i] = a[i] + S[i] @ qdd[i]
        else:
            tau[i] = S[i].T @ (IA[i] @ a[i] + pA[i])
            if armature.is_present(model, i):
                tau[i] = tau[i] + model.armature[model.v_slice[i]] * qdd[i]
    return np.stack([np.concatenate(tau), np.concatenate(qdd)])
