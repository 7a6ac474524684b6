"""Articulated-body algorithm — RBDA §7.3, Table 7.1."""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature, crba
from kinetree.algorithms.coupled import instead
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import external_forces
from kinetree.algorithms.propagation import (
    clear_rows,
    inverse_joint_inertia,
    kept_rows,
    singular_at,
)
from kinetree.algorithms.rnea_tensor import limb_by_limb
from kinetree.spatial import Force, crf, crm, dyadic


class ArticulatedJoints(NamedTuple):
    """How joints respond to forces: all that ``H⁻¹`` needs, per body and in body coordinates."""

    X: list
    """Transforms from parent to body."""
    S: list
    """Motion subspaces."""
    U: list
    """``IA S``."""
    D_inv: list
    """``(Sᵀ IA S)⁻¹``, armature included."""


class ArticulatedBodies(NamedTuple):
    """Everything the three passes compute, per body and in body coordinates."""

    qdd: np.ndarray
    """Joint accelerations [m/s² or rad/s²], (nv,)."""
    a: list
    """Body accelerations minus gravity; ``aba_variants.true_accelerations`` adds it back."""
    IA: list
    """Articulated-body inertias: the apparent inertia of body ``i`` with its subtree."""
    pA: list
    """Articulated-body bias forces."""
    X: list
    """Transforms from parent to body."""
    v: list
    """Body velocities."""
    c: list
    """Velocity-product accelerations of the joints, ``c_J + v × v_J``."""
    joints: ArticulatedJoints
    """Response of the joints to forces."""


@refuses("loops", "couplings", use="implicit.forward_dynamics, which supports both")
def articulated_bodies(model, q, qd, tau, f_ext=None):
    """Articulated-body algorithm, RBDA Table 7.1: accelerations and intermediate quantities."""
    lam, X_T, I = model.parent, model.tree_transform, model.inertia
    X, S, v, c, pA, U, D_inv, u, a = (model.table() for _ in range(9))
    IA, qdd = model.copy_table(I), model.table(model.zero_velocity[:0])

    v[0] = model.zero_motion
    for i in model.outward():
        X_J, S[i], v_J, c_J = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
        c[i] = c_J + crm(v[i], v_J)
        pA[i] = crf(v[i], I[i] @ v[i])

    if f_ext is not None:
        fx = external_forces(model, X, f_ext)
        for i in model.outward():
            pA[i] = pA[i] - fx[i]

    for i in model.inward():
        U[i] = IA[i] @ S[i]
        D = armature.joint_inertia(model, i, S[i].T @ U[i])
        D_inv[i] = inverse_joint_inertia(IA[i], S[i], D, singular_at(model, i))
        u[i] = tau[model.v_slice[i]] - S[i].T @ pA[i]
        if lam[i] != 0:
            Ia = IA[i] - dyadic(U[i], D_inv[i])
            Ia = Ia if armature.is_present(model, i) else clear_rows(Ia, S[i])
            pa = pA[i] + Ia @ c[i] + U[i] @ (D_inv[i] @ u[i])
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
            pA[lam[i]] = pA[lam[i]] + X[i].T @ pa

    a[0] = -model.a_g
    for i in model.outward():
        a_ = X[i] @ a[lam[i]] + c[i]
        qdd[i] = D_inv[i] @ (u[i] - U[i].T @ a_)
        a[i] = a_ + S[i] @ qdd[i]
    joints = ArticulatedJoints(X, S, U, D_inv)
    return ArticulatedBodies(model.join_rows(qdd), a, IA, pA, X, v, c, joints)


@refuses("loops", use="implicit.forward_dynamics")
@instead(crba.forward_dynamics)
def forward_dynamics(model, q, qd, tau, f_ext=None):
    """Joint accelerations ``qdd = H⁻¹ (tau - C)`` that the joint forces ``tau`` produce, (nv,)."""
    return articulated_bodies(model, q, qd, tau, f_ext).qdd


def accelerations_at_rest(model, q, tau, forces):
    """Joint accelerations (nv,) of the mechanism at rest under ``tau`` and given body forces.

    Where ``U D⁻¹`` is one (``kept_rows``), a joint passes ``tau`` itself on to its parent, and the
    acceleration of its body comes from ``D⁻¹ (tau - Sᵀ pA)`` and the other rows alone.
    """
    lam, NB, at = model.parent, model.body_count, model.v_slice
    X, S, W, u, a, pA, keep = ([None] * (NB + 1) for _ in range(7))
    IA, qdd = list(model.inertia), [model.zero_velocity[:0]] + [None] * NB
    for i, body in limb_by_limb(forces, lam):
        if body:
            *_, f, n = body
            X_J, S[i], _, _ = model.jcalc(i, q, model.zero_velocity)
            X[i], pA[i] = X_J @ model.tree_transform[i], Force(n, f)
            continue
        U = IA[i] @ S[i]
        D = armature.joint_inertia(model, i, S[i].T @ U)
        D_inv = inverse_joint_inertia(IA[i], S[i], D, singular_at(model, i))
        u[i] = D_inv @ (tau[at[i]] - S[i].T @ pA[i])
        if lam[i] != 0:
            keep[i] = np.ones(6, int) if armature.is_present(model, i) else kept_rows(S[i])
            W[i] = _mask_rows(U @ D_inv, keep[i])
            Ia, pa = IA[i] - dyadic(U, D_inv), _mask_rows(pA[i] + U @ u[i], keep[i])
            if not keep[i].all():
                Ia, pa = clear_rows(Ia, S[i]), pa + Force.from_array(S[i].to_array() @ tau[at[i]])
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
            pA[lam[i]] = pA[lam[i]] + X[i].T @ pa

    for i in range(1, NB + 1):
        if lam[i] == 0:
            qdd[i], a[i] = u[i], S[i] @ u[i]
            continue
        a_ = X[i] @ a[lam[i]]
        given = u[i] - W[i].T @ a_
        qdd[i] = given if keep[i].all() else given - S[i].to_array().T @ a_.to_array()
        a[i] = _mask_rows(a_, keep[i]) + S[i] @ given
    return np.concatenate(qdd)


def _mask_rows(x, keep):
    """Copy of a spatial vector, or of columns, with zeros in the rows where ``keep`` is 0."""
    return type(x)((x.angular.T * keep[:3]).T, (x.linear.T * keep[3:]).T)


def joint_forces(bodies):
    """Spatial force ``f[i]`` transmitted across joint ``i`` from parent to body — RBDA (7.25)."""
    passed_on = zip(bodies.IA[1:], bodies.a[1:], bodies.pA[1:], strict=True)
    return [None] + [IA @ a + pA for IA, a, pA in passed_on]
