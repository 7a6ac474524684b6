"""Armature: rotor inertia, reflected through the gears, added to the diagonal of ``H``.

It adds nothing else: no velocity terms, no momentum and no bearing loads. Each algorithm includes
it by one call, which returns its argument unchanged for a joint without armature.
"""

import numpy as np


def is_present(model, i) -> bool:
    """Whether joint ``i`` has armature (reflected rotor inertia)."""
    return i in model.armature_joints


def forces(model, tau, qdd):
    """Joint forces ``tau + A qdd``, which also accelerate the armature ``A``, (nv,)."""
    return tau + model.armature * qdd if model.armature_joints else tau


def force(model, i, tau, qdd):
    """Force of joint ``i``, ``tau + A_i qdd_i``, which also accelerates its armature."""
    at = model.v_slice[i]
    return tau + model.armature[at] * qdd[at] if is_present(model, i) else tau


def inertia(model, H):
    """Inertia matrix ``H + A`` of the bodies plus the armature on its diagonal."""
    if not model.armature_joints:
        return H
    H = H.astype(np.result_type(H, model.armature))
    for i in model.armature_joints:
        at = model.v_slice[i]
        H[at, at] = joint_inertia(model, i, H[at, at])
    return H


def joint_inertia(model, i, D):
    """Joint-space inertia ``D + A_i`` of joint ``i``, its armature included."""
    return D + np.diag(model.armature[model.v_slice[i]]) if is_present(model, i) else D


def power(model, i, P, qd, qdd):
    """Power ``P + qd_iᵀ A_i qdd_i`` on the bodies and on the armature of joint ``i`` [W]."""
    at = model.v_slice[i]
    return P + qd[at] @ (model.armature[at] * qdd[at]) if is_present(model, i) else P
