"""Positions, velocities and accelerations of the bodies of a tree — RBDA §4.2, §4.4, §5.2.

``X[i]`` goes from parent to body coordinates, ``X_0[i]`` from base to body coordinates. Where an
argument ``bodies`` is offered, it restricts the work to some bodies, parents first, such as
``model.support[i]``; lists keep their full length, and the bodies left out count as at rest.
"""

import numpy as np

from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.dual import derivative_along
from kinetree.spatial import Motion, crm


def _bodies_or_all(model, bodies):
    """The given bodies, or all moving ones for None."""
    return model.outward() if bodies is None else bodies


@for_all_joints()
def joint_transforms(model, q, bodies=None):
    """Transforms ``X[i]`` from parent to body coordinates, and axes ``S[i]``, of every body."""
    X_T = model.tree_transform
    X, S = model.table(), model.table()
    for i in _bodies_or_all(model, bodies):
        X_J, S[i], _, _ = model.jcalc(i, q, model.zero_velocity)
        X[i] = X_J @ X_T[i]
    return X, S


def base_transforms(model, X, bodies=None):
    """Transforms ``X_0[i]`` from base to body coordinates — RBDA Example 4.3."""
    lam, X_0 = model.parent, model.table(model.identity_transform)
    for i in _bodies_or_all(model, bodies):
        X_0[i] = X[i] @ X_0[lam[i]] if lam[i] != 0 else X[i]
    return X_0


@for_all_joints()
def base_velocities(model, q, qd):
    """Transforms ``X_0[i]``, and spatial velocities ``v[i]`` in base coordinates — Example 4.4."""
    lam, X_T = model.parent, model.tree_transform
    X_0, v = model.table(model.identity_transform), model.table(model.zero_motion)
    for i in model.outward():
        X_J, _, v_J, _ = model.jcalc(i, q, qd)
        X = X_J @ X_T[i]
        X_0[i] = X @ X_0[lam[i]] if lam[i] != 0 else X
        v[i] = v[lam[i]] + X_0[i].inv_apply(v_J)
    return X_0, v


@for_all_joints()
def body_velocities(model, q, qd, bodies=None):
    """Spatial velocities ``v[i]`` in body coordinates, and transforms ``X[i]``, of every body."""
    lam, X_T = model.parent, model.tree_transform
    X, v = model.table(), model.fill_table(model.zero_motion)
    for i in _bodies_or_all(model, bodies):
        X_J, _, v_J, _ = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
    return X, v


@for_all_joints()
def body_accelerations(model, q, qd, qdd, a_0=None, bodies=None):
    """Spatial accelerations ``a[i]`` in body coordinates, with ``X[i]``, ``v[i]``, of every body.

    ``qdd = 0`` gives the velocity-product accelerations; ``a_0 = -a_g`` the gravity trick.
    """
    lam, X_T, zero = model.parent, model.tree_transform, model.zero_motion
    X, v, a = model.table(), model.fill_table(zero), model.fill_table(zero)
    a[0] = zero if a_0 is None else a_0
    for i in _bodies_or_all(model, bodies):
        X_J, S, v_J, c_J = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
        a[i] = X[i] @ a[lam[i]] + S @ qdd[model.v_slice[i]] + c_J + crm(v[i], v_J)
    return X, v, a


def external_forces(model, X, f_ext):
    """External forces transformed from base to body coordinates — RBDA (5.20)."""
    X_0, f = base_transforms(model, X), model.table()
    for i in model.outward():
        f[i] = X_0[i].star @ f_ext[i]
    return f


def subspace_rate(model, i, q, qd, v):
    """Rates ``Ṡ = S° + v × S`` of the axes of joint ``i`` on a body with velocity ``v``.

    In body coordinates; ``S°`` is the rate of the coordinates of ``S`` — RBDA §3.5.
    """
    return joint_subspace_rate(model.joint[i], q[model.q_slice[i]], qd[model.v_slice[i]], v)


def joint_subspace_rate(joint, q_i, qd_i, v):
    """Rates ``Ṡ = S° + v × S`` of a joint's axes, given the joint and its variables."""
    S = joint.motion_subspace(q_i)
    if joint.constant_subspace:
        return crm(v, S)
    if joint.rates_are_velocities:
        return _polarised_rate(joint, q_i, qd_i) + crm(v, S)
    S_ring = derivative_along(
        lambda q: joint.motion_subspace(q).to_array(), q_i, joint.configuration_rate(q_i, qd_i)
    )
    return Motion.from_array(S_ring) + crm(v, S)


def _polarised_rate(joint, q, qd):
    """Apparent rate ``S°`` recovered from ``c_J = S° qd``, for joints with ``dq/dt = qd``.

    ``c_J`` is a quadratic form in ``qd``, whose polarisation is the part of ``∂s_j/∂q_k``
    symmetric in j and k. The mixed derivatives of ``X_J`` are equal, which makes the other part
    ``∂s_j/∂q_k - ∂s_k/∂q_j = s_j × s_k``.
    """
    n, e = joint.nv, np.eye(joint.nv, dtype=int)
    _, S, v_J, _ = joint.jcalc(q, qd)
    c = [[joint.jcalc(q, e[j] + e[k])[3].to_array() for k in range(n)] for j in range(n)]
    ring = np.zeros((6, n), dtype=int) - (crm(v_J, S) / 2).to_array()
    for j in range(n):
        for k in range(n):
            symmetric = (c[j][k] - (c[j][j] + c[k][k]) / 4) / 2  # c[j][j] is 4 times c(e_j)
            ring[:, j] = ring[:, j] + symmetric * qd[k]
    return Motion.from_array(ring)
