"""Floating bases with their own algorithms — RBDA §9.3–§9.5.

Body 0 of the model, with inertia ``I_0``, is no longer fixed: it moves freely at velocity ``v_0``.
Everything here is in its coordinates, gravity ``a_g`` and the external forces included, so that
nobody needs to know where it is. The same mechanism on a free joint is ``edit.floating``.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import congruent, for_all_joints, force, instead
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import base_transforms
from kinetree.algorithms.ltl import dense, ltdl, solve_ltdl
from kinetree.algorithms.propagation import apparent_inertia, joint_response
from kinetree.spatial import Motion, crf, crm


class FloatingMotion(NamedTuple):
    """Accelerations and forces of a mechanism whose joints are pushed, or moved."""

    a_0: Motion
    """Spatial acceleration of the base."""
    joints: np.ndarray
    """Accelerations of the joints (forward), or forces (inverse), (nv,)."""


class BaseEquation(NamedTuple):
    """``[[I0c, F], [Fᵀ, H]] [a_0; qdd] + [p0c; C] = [0; tau]`` — RBDA (9.13)."""

    I0c: Any
    """Inertia of the whole mechanism, frozen."""
    F: np.ndarray
    """Forces at the base for unit joint accelerations, (6, nv)."""
    H: np.ndarray
    """Inertia of the joints with the base held, (nv, nv)."""
    p0c: np.ndarray
    """Force that keeps the base from accelerating while the joints do not either, (6,)."""
    C: np.ndarray
    """Joint forces at zero acceleration, (nv,)."""


def _couple(equation, at):
    """Coefficients of the floating-base equation in the independent joint variables."""
    I0c, F, H, p0c, C = equation
    return BaseEquation(I0c, F @ at.G, congruent(H, at), p0c + F @ at.g, at.G.T @ (C + H @ at.g))


@for_all_joints(_couple)
def equation_of_motion(model, I_0, q, v_0, qd, a_g, f_ext=None) -> BaseEquation:
    """Coefficients of the floating-base equation of motion — RBDA Table 9.5.

    Gravity enters as an acceleration of the base, and comes out in ``a_0``.
    """
    lam, NB, at = model.parent, model.body_count, model.v_slice
    X, S, _, c, p = _velocity_terms(model, I_0, q, v_0, qd, f_ext)
    IC = [I_0, *model.inertia[1:]]
    a = [-a_g] + [None] * NB
    f = [IC[0] @ a[0] + p[0]] + [None] * NB
    for i in range(1, NB + 1):
        a[i] = X[i] @ a[lam[i]] + c[i]
        f[i] = IC[i] @ a[i] + p[i]
    C = [model.zero_velocity[:0]] + [None] * NB
    for i in range(NB, 0, -1):
        C[i] = S[i].T @ f[i]
        f[lam[i]] = f[lam[i]] + X[i].T @ f[i]

    dtype = model.scalar_type(q)
    H, F = np.zeros((model.nv, model.nv), dtype), np.zeros((6, model.nv), dtype)
    for i in range(NB, 0, -1):
        IC[lam[i]] = IC[lam[i]] + X[i].T @ IC[i] @ X[i]
        F_i, j = IC[i] @ S[i], i
        H[at[i], at[i]] = S[i].T @ F_i
        while lam[j] != 0:
            F_i, j = X[j].T @ F_i, lam[j]
            H[at[i], at[j]] = F_i.T @ S[j]
            H[at[j], at[i]] = H[at[i], at[j]].T
        F[:, at[i]] = (X[j].T @ F_i).to_array()
    H = armature.inertia(model, H)
    return BaseEquation(IC[0], F, H, f[0].to_array(), np.concatenate(C))


@refuses("loops", use="kinetree.floating.forward_dynamics")
def forward_dynamics_by_equation(model, I_0, q, v_0, qd, tau, a_g, f_ext=None) -> FloatingMotion:
    """Accelerations of base and joints, from the coefficients of their equation of motion."""
    equation = equation_of_motion(model, I_0, q, v_0, qd, a_g, f_ext)
    H, C = reduced_equation(equation)
    lam = dense(model.nv)
    qdd = solve_ltdl(ltdl(H, lam), lam, tau - C)
    a_0 = _solver(equation.I0c)(-equation.p0c - equation.F @ qdd)
    return FloatingMotion(Motion.from_array(a_0), qdd)


@refuses("loops", use="kinetree.floating.forward_dynamics")
@instead(forward_dynamics_by_equation)
def forward_dynamics(model, I_0, q, v_0, qd, tau, a_g, f_ext=None) -> FloatingMotion:
    """Accelerations of base and joints — RBDA Table 9.4.

    Args:
        model: the mechanism beyond its base.
        I_0: inertia of the base.
        q: position variables, (nq,).
        v_0: velocity of the base, a Motion.
        qd: velocity variables, (nv,).
        tau: joint forces, (nv,).
        a_g: acceleration of gravity, a Motion.
        f_ext: external forces on the bodies; entry 0 is that on the base.
    """
    lam, NB = model.parent, model.body_count
    X, S, _v, c, pA = _velocity_terms(model, I_0, q, v_0, qd, f_ext)
    IA = [I_0, *model.inertia[1:]]
    U, D_inv, u, a = ([None] * (NB + 1) for _ in range(4))
    qdd = [model.zero_velocity[:0]] + [None] * NB

    for i in range(NB, 0, -1):
        U[i], D_inv[i] = joint_response(model, i, IA[i], S[i])
        u[i] = tau[model.v_slice[i]] - S[i].T @ pA[i]
        Ia = apparent_inertia(model, i, IA[i], S[i], U[i], D_inv[i])
        pa = pA[i] + Ia @ c[i] + U[i] @ (D_inv[i] @ u[i])
        IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
        pA[lam[i]] = pA[lam[i]] + X[i].T @ pa

    a[0] = _accelerate(IA[0], -pA[0])
    for i in range(1, NB + 1):
        a_ = X[i] @ a[lam[i]] + c[i]
        qdd[i] = D_inv[i] @ (u[i] - U[i].T @ a_)
        a[i] = a_ + S[i] @ qdd[i]
    return FloatingMotion(a[0] + a_g, np.concatenate(qdd))  # falling together: no joint notices


@for_all_joints(lambda result, at: result._replace(joints=force(result.joints, at)))
def inverse_dynamics(model, I_0, q, v_0, qd, qdd, a_g, f_ext=None) -> FloatingMotion:
    """Acceleration of the base and joint forces, from accelerations of the joints — Table 9.6."""
    lam, NB = model.parent, model.body_count
    X, S, _, c, p = _velocity_terms(model, I_0, q, v_0, qd, f_ext)
    IC, pC = [I_0, *model.inertia[1:]], list(p)
    a = [-a_g] + [None] * NB  # relative to the acceleration of the base, a^r
    pC[0] = IC[0] @ a[0] + p[0]
    for i in range(1, NB + 1):
        a[i] = X[i] @ a[lam[i]] + c[i] + S[i] @ qdd[model.v_slice[i]]
        pC[i] = IC[i] @ a[i] + p[i]
    for i in range(NB, 0, -1):
        IC[lam[i]] = IC[lam[i]] + X[i].T @ IC[i] @ X[i]
        pC[lam[i]] = pC[lam[i]] + X[i].T @ pC[i]

    a_0 = _accelerate(IC[0], -pC[0])
    X_0 = base_transforms(model, X)
    tau = [S[i].T @ (IC[i] @ (X_0[i] @ a_0) + pC[i]) for i in range(1, NB + 1)]
    tau = np.concatenate([model.zero_velocity[:0], *tau])
    return FloatingMotion(a_0, armature.forces(model, tau, qdd))


def reduced_equation(equation):
    """Joint equation ``H_fl qdd + C_fl = tau`` with the base eliminated — RBDA (9.14)–(9.16).

    ``H_fl`` is dense: through the base every joint feels every other.
    """
    I0c, F, H, p0c, C = equation
    by_force = _solver(I0c)
    return H - F.T @ by_force(F), C - F.T @ by_force(p0c)


def in_coordinates(equation, G, g):
    """Floating-base equation in independent joint coordinates, ``qdd = G ydd + g``.

    Loops between the bodies, the base among them, leave its six motions as free as they were.
    """
    _, F, H, p0c, C = equation
    H_G = H @ G
    return equation._replace(F=F @ G, H=G.T @ H_G, p0c=p0c + F @ g, C=G.T @ (C + H @ g))


def momentum(equation, v_0, qd):
    """Momentum of the whole mechanism, ``I0c v_0 + F qd``, (6,) — RBDA Example 9.3."""
    return (equation.I0c @ v_0).to_array() + equation.F @ qd


def jacobian_correction(equation):
    """Base velocity per joint velocity at zero momentum, ``-I0c⁻¹ F``, (6, nv).

    Added to the Jacobian of a body, in base coordinates, it gives the generalised Jacobian, by
    which internal forces and impulses act — RBDA Example 9.4.
    """
    return -_solver(equation.I0c)(equation.F)


# --- parts ---------------------------------------------------------------------------------------


def _velocity_terms(model, I_0, q, v_0, qd, f_ext):
    """Transforms, axes, velocities, velocity products, bias forces of all bodies; 0: base."""
    lam, NB, X_T, I = model.parent, model.body_count, model.tree_transform, model.inertia
    X, S, c = ([None] * (NB + 1) for _ in range(3))
    v, p = [v_0] + [None] * NB, [crf(v_0, I_0 @ v_0)] + [None] * NB
    for i in range(1, NB + 1):
        X_J, S[i], v_J, c_J = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
        c[i] = c_J + crm(v[i], v_J)
        p[i] = crf(v[i], I[i] @ v[i])
    if f_ext is not None:
        X_0 = base_transforms(model, X)
        p = [p[i] - X_0[i].star @ f_ext[i] for i in range(NB + 1)]
    return X, S, v, c, p


def _solver(I):
    """Function from a spatial force array to ``I⁻¹ f``, for an inertia ``I``."""
    lam = dense(6)
    L = ltdl(I.to_matrix(), lam)
    return lambda f: solve_ltdl(L, lam, f)


def _accelerate(I, f):
    """Acceleration ``I⁻¹ f`` of a body with inertia ``I`` under a force."""
    return Motion.from_array(_solver(I)(f.to_array()))
