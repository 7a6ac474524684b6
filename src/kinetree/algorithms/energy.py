"""Energy of a mechanism, its rates, and the joint momenta and forces that belong to them.

Kinetic and potential energy are those of RBDA (2.67), (6.5), Lynch & Park (9.9), (9.10).
``p = ∂T/∂qd = H qd`` are the momenta, ``dH/dt = C + Cᵀ`` for a Coriolis matrix with ``dH/dt - 2C``
skew, and forces ``f_i`` on the bodies amount to ``Q = Σ J_iᵀ f_i`` at the joints, with the same
power for every velocity — RBDA §3.1, Lynch & Park §9.1, tutorial (67).
"""

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.centroidal import momentum
from kinetree.algorithms.closed.forces import loop_joint_motion
from kinetree.algorithms.coriolis import inertia_rate
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
)
from kinetree.algorithms.passive import stretch, tendon_stretch
from kinetree.model.limits import has_dynamics
from kinetree.model.tendon_paths import tendon_motion
from kinetree.model.views import axial_view, condensed_view
from kinetree.spatial import crf


@for_all_joints()
def kinetic_energy(model, q, qd):
    """Kinetic energy ``½ Σ v·Iv`` of the bodies and the armature [J].

    Without prescribed joints it is ``½ qdᵀ H qd``.
    """
    _, v = body_velocities(model, q, qd)
    T = model.total()
    for i in model.outward():
        T.add(armature.power(model, i, v[i].dot(model.inertia[i] @ v[i]), qd, qd))
    return T.value / 2


def potential_energy(model, q):
    """Potential energy of gravity ``-Σ m g·c`` [J]; zero for masses at the base origin."""
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    U = model.total()
    for i in model.outward():
        I = model.inertia[i]
        moment = I.mass * X_0[i].r + X_0[i].E.T @ I.first_moment
        U.add(-(model.gravity @ moment))
    return U.value


@for_all_joints()
def elastic_energy(model, q):
    """Elastic energy of springs, and ``+Σ m g·c`` of gravity-compensated masses [J]."""
    energy = spring_energy(model, q)
    if model.gravity_compensation:
        X_0 = base_transforms(model, joint_transforms(model, q)[0])
        for g in model.gravity_compensation:
            X = X_0[g.body]
            energy = energy + g.mass * (model.gravity @ (X.r + X.E.T @ np.array(g.center)))
    return energy


@for_all_joints()
def spring_energy(model, q):
    """Elastic energy ``½ Δᵀ k Δ`` of springs in joints, loop joints and tendons [J]."""
    energy = 0
    for i, body in enumerate(model.bodies, start=1):
        if has_dynamics(body, "stiffness"):
            energy = energy + _of_spring(body, q[model.q_slice[i]])
    for loop in model.loops:
        if has_dynamics(loop, "stiffness"):
            energy = energy + _of_spring(
                loop, loop_joint_motion(model, q, model.zero_velocity, [loop]).q
            )
    for t in model.tendons:
        if t.has("stiffness"):
            L, _ = tendon_motion(model, t, q)
            energy = energy + t.stiffness * tendon_stretch(t, L) ** 2 / 2
    return energy


def _of_spring(part, q):
    """Elastic energy of a joint's spring [J]."""
    away = stretch(part, q)
    return np.array(part.dynamics.stiffness) @ (away * away) / 2


def total_energy(model, q, qd):
    """Kinetic plus potential energy [J]; its rate is the power ``tau·qd`` of the joint forces."""
    return kinetic_energy(model, q, qd) + potential_energy(model, q)


# --- momenta, rates and forces of the joints -----------------------------------------------------


@for_all_joints(force)
def generalized_momentum(model, q, qd):
    """Generalised momentum ``p = ∂T/∂qd = H qd`` plus prescribed motions, (nv,), in O(n)."""
    lam, I = model.parent, model.inertia
    X, v = body_velocities(model, q, qd)
    _, S = joint_transforms(model, q)
    h, p = model.table(), model.table(model.zero_velocity[:0])
    for i in model.outward():
        h[i] = I[i] @ v[i]
    for i in model.inward():
        p[i] = armature.force(model, i, S[i].T @ h[i], qd)
        if lam[i] != 0:
            h[lam[i]] = h[lam[i]] + X[i].T @ h[i]
    return model.join_rows(p)


def mass_matrix_rate(model, q, qd):
    """``dH/dt`` while the mechanism moves at ``qd``, (nv, nv)."""
    return inertia_rate(model, q, qd)


def mass_matrix_rate_by_axial_turns(model, q, qd):
    """Time derivative ``dH/dt`` of the mass matrix, (nv, nv), with axial rotations factored out."""
    return inertia_rate(axial_view(condensed_view(model)), q, qd)


@for_all_joints()
def kinetic_energy_rate(model, q, qd, qdd):
    """Rate of kinetic energy ``dT/dt = Σ v·(I a + v ×* I v)`` over the bodies [W]."""
    I, T_rate = model.inertia, model.total()
    _, v, a = body_accelerations(model, q, qd, qdd)
    for i in model.outward():
        f = I[i] @ a[i] + crf(v[i], I[i] @ v[i])
        T_rate.add(armature.power(model, i, v[i].dot(f), qd, qdd))
    return T_rate.value


def potential_energy_rate(model, q, qd):
    """Rate of potential energy ``dU/dt = -m g·ċ`` over the bodies [W]."""
    return -(model.gravity @ momentum(model, q, qd).linear)


@for_all_joints(force)
def generalized_force(model, q, f_ext):
    """Generalised force ``Q = Σ J_iᵀ f_i``, (nv,), of forces on bodies in base coordinates."""
    lam = model.parent
    X, S = joint_transforms(model, q)
    X_0 = base_transforms(model, X)
    f, Q = model.copy_table(f_ext), model.table(model.zero_velocity[:0])
    for i in model.inward():
        Q[i] = S[i].T @ (X_0[i].star @ f[i])
        if lam[i] != 0:
            f[lam[i]] = f[lam[i]] + f[i]
    return model.join_rows(Q)
