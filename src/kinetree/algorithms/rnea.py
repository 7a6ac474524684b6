"""Recursive Newton–Euler algorithm — RBDA §5.3, Table 5.1."""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.kinematics import external_forces, joint_transforms
from kinetree.spatial import crf, crm


class NewtonEuler(NamedTuple):
    """Everything the two passes compute, per body and in body coordinates."""

    tau: np.ndarray
    """Joint forces [N or N·m], (nv,)."""
    X: list
    """Transforms from parent to body."""
    v: list
    """Body velocities."""
    a: list
    """Body accelerations minus gravity."""
    f: list
    """Forces transmitted across the joints, from parent to body: bearing loads included."""


@for_all_joints(lambda result, at: result._replace(tau=force(result.tau, at)))
def newton_euler(model, q, qd, qdd, f_ext=None, *, gravity=True):
    """Recursive Newton-Euler algorithm, RBDA Table 5.1: forces with intermediate quantities."""
    lam, X_T, I = model.parent, model.tree_transform, model.inertia
    X, S, v, a, f = (model.table() for _ in range(5))
    tau = model.table(model.zero_velocity[:0])

    v[0] = model.zero_motion
    a[0] = -model.a_g if gravity else model.zero_motion
    for i in model.outward():
        X_J, S[i], v_J, c_J = model.jcalc(i, q, qd)
        X[i] = X_J @ X_T[i]
        v[i] = X[i] @ v[lam[i]] + v_J
        a[i] = X[i] @ a[lam[i]] + S[i] @ qdd[model.v_slice[i]] + c_J + crm(v[i], v_J)
        f[i] = I[i] @ a[i] + crf(v[i], I[i] @ v[i])

    if f_ext is not None:
        fx = external_forces(model, X, f_ext)
        for i in model.outward():
            f[i] = f[i] - fx[i]

    for i in model.inward():
        tau[i] = armature.force(model, i, S[i].T @ f[i], qdd)
        if lam[i] != 0:
            f[lam[i]] = f[lam[i]] + X[i].T @ f[i]
    return NewtonEuler(model.join_rows(tau), X, v, a, f)


def inverse_dynamics(model, q, qd, qdd, f_ext=None):
    """Joint forces ``tau = H(q) qdd + C(q, qd)`` that produce ``qdd``, (nv,)."""
    return newton_euler(model, q, qd, qdd, f_ext).tau


def bias_force(model, q, qd, f_ext=None):
    """Bias force ``C(q, qd)``: joint forces at zero acceleration, with gravity — RBDA (6.2)."""
    return newton_euler(model, q, qd, model.zero_velocity, f_ext).tau


def gravity_force(model, q):
    """Joint forces that hold the mechanism against gravity, (nv,) — RBDA (5.12), (5.13).

    This is ``C(q, 0)``, but for what prescribed joints cause by their motion.
    """
    return _at_rest(model, q, model.zero_velocity, -model.a_g)


def coriolis_force(model, q, qd):
    """Velocity terms of the bias force alone, (nv,): no gravity, no external forces."""
    return newton_euler(model, q, qd, model.zero_velocity, gravity=False).tau


def inertia_product(model, q, qdd):
    """Product ``H(q) qdd``, (nv,), without forming ``H`` — RBDA Table 6.1."""
    return _at_rest(model, q, qdd, model.zero_motion)


@for_all_joints(force)
def _at_rest(model, q, qdd, a_0):
    """Joint forces for ``qdd`` with all velocities zero, linear in ``qdd`` and ``a_0``, (nv,)."""
    lam, I = model.parent, model.inertia
    X, S = joint_transforms(model, q)
    a, f, tau = model.table(a_0), model.table(), model.table(model.zero_velocity[:0])
    for i in model.outward():
        a[i] = X[i] @ a[lam[i]] + S[i] @ qdd[model.v_slice[i]]
        f[i] = I[i] @ a[i]
    for i in model.inward():
        tau[i] = armature.force(model, i, S[i].T @ f[i], qdd)
        if lam[i] != 0:
            f[lam[i]] = f[lam[i]] + X[i].T @ f[i]
    return model.join_rows(tau)
