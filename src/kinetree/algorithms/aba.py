"""Articulated-body algorithm — RBDA §7.3, Table 7.1."""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature, crba
from kinetree.algorithms.coupled import instead
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import base_transforms, external_forces
from kinetree.algorithms.propagation import cleared, inverse_joint_inertia, singular_at
from kinetree.spatial import crf, crm, dyadic


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
    """Body accelerations minus gravity; ``true_accelerations`` adds it back."""
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


@refuses("loops", "couplings", use="implicit.forward_dynamics, which honours both")
def articulated_bodies(model, q, qd, tau, f_ext=None):
    """The three passes of Table 7.1 with their by-products."""
    lam, X_T, I = model.parent, model.tree_transform, model.inertia
    X, S, v, c, pA, U, D_inv, u, a = (model.table() for _ in range(9))
    IA, qdd = model.copied(I), model.table(model.zero_velocity[:0])

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
            Ia = Ia if armature.is_present(model, i) else cleared(Ia, S[i])
            pa = pA[i] + Ia @ c[i] + U[i] @ (D_inv[i] @ u[i])
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
            pA[lam[i]] = pA[lam[i]] + X[i].T @ pa

    a[0] = -model.a_g
    for i in model.outward():
        a_ = X[i] @ a[lam[i]] + c[i]
        qdd[i] = D_inv[i] @ (u[i] - U[i].T @ a_)
        a[i] = a_ + S[i] @ qdd[i]
    joints = ArticulatedJoints(X, S, U, D_inv)
    return ArticulatedBodies(model.joined(qdd), a, IA, pA, X, v, c, joints)


@refuses("loops", use="implicit.forward_dynamics")
@instead(crba.forward_dynamics)
def forward_dynamics(model, q, qd, tau, f_ext=None):
    """``qdd = H⁻¹ (tau - C)``: joint accelerations that the joint forces ``tau`` produce."""
    return articulated_bodies(model, q, qd, tau, f_ext).qdd


def true_accelerations(model, bodies):
    """``a[i]`` of every body with gravity put back, in body coordinates; zero for the base."""
    X_0 = base_transforms(model, bodies.X)
    return [a + X @ model.a_g for a, X in zip(bodies.a, X_0, strict=True)]


def joint_forces(bodies):
    """``f[i]`` transmitted across joint ``i`` from parent to body — RBDA (7.25)."""
    passed_on = zip(bodies.IA[1:], bodies.a[1:], bodies.pA[1:], strict=True)
    return [None] + [IA @ a + pA for IA, a, pA in passed_on]
