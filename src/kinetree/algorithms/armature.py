"""Armature: inertia that joints drive apart from the bodies, such as rotors behind their gears.

It adds a constant to the diagonal of ``H`` and nothing else: no velocity terms, no momentum of the
mechanism, no load on its bearings. Algorithms add it in one line each, which does nothing for a
joint without armature.
"""

import numpy as np


def is_present(model, i) -> bool:
    """Whether joint ``i`` has armature."""
    return i in model.armature_joints


def forces(model, tau, qdd):
    """``tau + A qdd``: joint forces with those that accelerate the armature."""
    return tau + model.armature * qdd if model.armature_joints else tau


def force(model, i, tau, qdd):
    """``tau + A_i qdd_i``: the force of joint ``i`` with that which accelerates its armature."""
    at = model.v_slice[i]
    return tau + model.armature[at] * qdd[at] if is_present(model, i) else tau


def inertia(model, H):
    """``H + A``: an inertia matrix of the bodies with the armature on its diagonal."""
    if not model.armature_joints:
        return H
    H = H.astype(np.result_type(H, model.armature))
    for i in model.armature_joints:
        at = model.v_slice[i]
        H[at, at] = joint_inertia(model, i, H[at, at])
    return H


def joint_inertia(model, i, D):
    """``D + A_i``: inertia across joint ``i`` with its armature."""
    return D + np.diag(model.armature[model.v_slice[i]]) if is_present(model, i) else D


def power(model, i, P, qd, qdd):
    """``P + qd_iᵀ A_i qdd_i``: a power of bodies with that which armature ``i`` takes."""
    at = model.v_slice[i]
    return P + qd[at] @ (model.armature[at] * qdd[at]) if is_present(model, i) else P
