"""Positions, velocities and accelerations of the bodies of a tree — RBDA §4.2, §4.4, §5.2."""

from kinetree.spatial import Plucker, crm

__all__ = [
    "base_transforms",
    "body_accelerations",
    "body_velocities",
    "external_forces",
    "joint_transforms",
]


def joint_transforms(model, q):
    """``X[i]`` from parent to body coordinates and ``S[i]``, for every body."""
    NB, X_T = model.body_count, model.tree_transform
    X, S = [None] * (NB + 1), [None] * (NB + 1)
    for i in range(1, NB + 1):
        X_J, S[i], _, _ = model.jcalc(i, q, model.zero_velocity)
        X[i] = X_J @ X_T[i]
    return X, S


def base_transforms(model, X):
    """``X_0[i]`` from base to body coordinates — RBDA Example 4.3."""
    lam, NB = model.parent, model.body_count
    X_0 = [Plucker.identity()] + [None] * NB
    for i in range(1, NB + 1):
        X_0[i] = X[i] @ X_0[lam[i]] if lam[i] != 0 else X[i]
    return X_0


def body_velocities(model, q, qd):
    """Spatial velocity ``v[i]`` of every body, in body coordinates, and ``X[i]``."""
    lam, NB, X_T = model.parent, model.body_count, model.tree_transform
    X, v = [None] * (NB + 1), [None] * (NB + 1)
    v[0] = model.zero_motion
    for i in range(1, NB + 1):
        X_J, _, v_J, _ = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
    return X, v


def body_accelerations(model, q, qd, qdd, a_0=None):
    """Spatial acceleration ``a[i]`` of every body, in body coordinates, with ``X[i]`` and ``v[i]``.

    ``qdd = 0`` gives the velocity-product accelerations; ``a_0 = -a_g`` the gravity trick.
    """
    lam, NB, X_T = model.parent, model.body_count, model.tree_transform
    X, v, a = [None] * (NB + 1), [None] * (NB + 1), [None] * (NB + 1)
    v[0], a[0] = model.zero_motion, model.zero_motion if a_0 is None else a_0
    for i in range(1, NB + 1):
        X_J, S, v_J, c_J = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
        a[i] = X[i] @ a[lam[i]] + S @ qdd[model.v_slice[i]] + c_J + crm(v[i], v_J)
    return X, v, a


def external_forces(model, X, f_ext):
    """External forces, given in base coordinates, in the coordinates of their bodies — RBDA (5.20)."""
    X_0 = base_transforms(model, X)
    return [None] + [X_0[i].star @ f_ext[i] for i in range(1, model.body_count + 1)]
