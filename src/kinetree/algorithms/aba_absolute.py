"""Articulated-body algorithm in base coordinates — RBDA §7.3, (7.26)–(7.42).

The basic version, before coordinates are chosen: every vector in one common frame, so that no
transform stands between neighbours. Body coordinates (``aba``) are cheaper and lose fewer digits
far from the origin; this text is the equations themselves.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature, crba
from kinetree.algorithms.coupled import instead
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import base_transforms
from kinetree.algorithms.propagation import inverse_joint_inertia, singular_at
from kinetree.spatial import crf, crm, dyadic


class InBase(NamedTuple):
    """State of bodies and joints in base coordinates, after pass 1."""

    X_0: list
    """Transforms from base to body."""
    S: list
    """Motion subspaces."""
    v: list
    """Body velocities."""
    c: list
    """Velocity-product accelerations ``c_J + v × v_J``."""
    I: list
    """Rigid-body inertias."""
    p: list
    """Bias forces, less the external forces."""


class ArticulatedBodies(NamedTuple):
    """Results of the three passes, per body and in base coordinates."""

    qdd: np.ndarray
    """Joint accelerations [m/s² or rad/s²], (nv,)."""
    a: list
    """Body accelerations minus gravity."""
    IA: list
    """Articulated-body inertias."""
    pA: list
    """Articulated-body bias forces."""


@refuses("couplings", use="kinematics.base_velocities, or model.uncoupled")
def bodies_in_base(model, q, qd, f_ext=None):
    """Velocities, axes and bias forces in base coordinates — RBDA (7.32)–(7.36)."""
    lam, NB, X_T = model.parent, model.body_count, model.tree_transform
    X, S, v_J, c_J, v, c, I, p = ([None] * (NB + 1) for _ in range(8))
    for i in range(1, NB + 1):
        X_J, S[i], v_J[i], c_J[i] = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]

    X_0 = base_transforms(model, X)
    v[0] = model.zero_motion
    for i in range(1, NB + 1):
        S[i], v_J[i], c_J[i] = (X_0[i].inv_apply(m) for m in (S[i], v_J[i], c_J[i]))
        I[i] = X_0[i].inv_apply(model.inertia[i])
        v[i] = v[lam[i]] + v_J[i]
        c[i] = c_J[i] + crm(v[i], v_J[i])
        p[i] = crf(v[i], I[i] @ v[i])
        if f_ext is not None:
            p[i] = p[i] - f_ext[i]
    return InBase(X_0, S, v, c, I, p)


@refuses("loops", "couplings", use="implicit.forward_dynamics, which supports both")
def articulated_bodies(model, q, qd, tau, f_ext=None):
    """Articulated-body algorithm in base coordinates: accelerations and intermediate quantities."""
    lam, NB, at = model.parent, model.body_count, model.v_slice
    _, S, _, c, I, p = bodies_in_base(model, q, qd, f_ext)
    a, D_inv = [None] * (NB + 1), [None] * (NB + 1)
    IA, pA, qdd = list(I), list(p), [model.zero_velocity[:0]] + [None] * NB

    for j in range(NB, 0, -1):
        D = armature.joint_inertia(model, j, S[j].T @ (IA[j] @ S[j]))
        D_inv[j] = inverse_joint_inertia(IA[j], S[j], D, singular_at(model, j))
        if lam[j] != 0:
            Ia = IA[j] - dyadic(IA[j] @ S[j], D_inv[j])  # (7.39)
            # (7.40) is printed with IA c; (7.24) and (7.48) have Ia c, which is right.
            pa = pA[j] + Ia @ c[j] + IA[j] @ S[j] @ (D_inv[j] @ (tau[at[j]] - S[j].T @ pA[j]))
            IA[lam[j]] = IA[lam[j]] + Ia  # (7.37)
            pA[lam[j]] = pA[lam[j]] + pa  # (7.38)

    a[0] = -model.a_g
    for i in range(1, NB + 1):
        a_ = a[lam[i]] + c[i]
        qdd[i] = D_inv[i] @ (tau[at[i]] - S[i].T @ (IA[i] @ a_) - S[i].T @ pA[i])  # (7.41)
        a[i] = a_ + S[i] @ qdd[i]  # (7.42)
    return ArticulatedBodies(np.concatenate(qdd), a, IA, pA)


@refuses("loops", use="implicit.forward_dynamics")
@instead(crba.forward_dynamics)
def forward_dynamics(model, q, qd, tau, f_ext=None):
    """Joint accelerations (nv,) by the articulated-body algorithm in base coordinates."""
    return articulated_bodies(model, q, qd, tau, f_ext).qdd
