"""The Coriolis matrix of ``coriolis`` in the coordinates of root bodies: shorter for short chains.

A child of the base and what hangs on it form a mechanism of their own. In the coordinates of that
child composite bodies are plain sums, and the axes of its joint are constants; in exchange every
entry is a full scalar product. Joints must have constant axes and no prescribed motion, see
``rnea_derivatives.is_applicable``.
"""

import numpy as np

from kinetree.algorithms.coriolis import BodyCoriolis, coupled_coriolis
from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import joint_transforms
from kinetree.spatial import crm

__all__ = ["coriolis_matrix"]


@refuses("prescribed", use="rnea.coriolis_force: prescribed motion is not a product with qd")
@for_all_joints(coupled_coriolis)
def coriolis_matrix(model, q, qd):
    """``C(q, qd)`` with ``dH/dt - 2C`` skew-symmetric, (nv, nv)."""
    lam, NB, at = model.parent, model.body_count, model.v_slice
    X, S = joint_transforms(model, q)
    X_root, J, Jd, IC, BC = ([None] * (NB + 1) for _ in range(5))
    v = [model.zero_motion] * (NB + 1)
    for i in range(1, NB + 1):
        if lam[i] == 0:
            J[i], IC[i] = S[i], model.inertia[i]
        else:
            X_root[i] = X[i] if X_root[lam[i]] is None else X[i] @ X_root[lam[i]]
            J[i], IC[i] = X_root[i].inv_apply(S[i]), X_root[i].inv_apply(model.inertia[i])
        v[i] = v[lam[i]] + J[i] @ qd[at[i]]
        Jd[i] = crm(v[lam[i]] if model.joint[i].nv == 1 else v[i], J[i])  # v_J × J = 0 for one axis
        BC[i] = BodyCoriolis.of(IC[i], v[i])

    C = np.zeros((model.nv, model.nv), dtype=model.scalar_type(q, qd))
    for i in range(NB, 0, -1):
        if lam[i] != 0:
            IC[lam[i]], BC[lam[i]] = IC[lam[i]] + IC[i], BC[lam[i]] + BC[i]
        F, Fd, Ft = IC[i] @ J[i], IC[i] @ Jd[i] + BC[i] @ J[i], BC[i].T @ J[i]
        C[at[i], at[i]] = J[i].T @ Fd
        for j in model.support[i][:-1]:
            C[at[j], at[i]] = J[j].T @ Fd
            C[at[i], at[j]] = F.T @ Jd[j] + Ft.T @ J[j]
    return C
