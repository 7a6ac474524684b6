"""Energy seen through the joints: momenta, rates, forces — RBDA §3.1, Lynch & Park §9.1.

``p = ∂T/∂qd = H qd`` are the momenta, ``dH/dt = C + Cᵀ`` for a Coriolis matrix with
``dH/dt - 2C`` skew, and forces ``f_i`` on the bodies are worth ``Q = Σ J_iᵀ f_i`` at the joints,
the same power for every velocity — tutorial (67).
"""

import numpy as np

from kinetree.algorithms import armature
from kinetree.algorithms.coriolis import half_inertia_rate
from kinetree.algorithms.coupled import for_all_joints, force
from kinetree.algorithms.kinematics import (
    base_transforms,
    body_accelerations,
    body_velocities,
    joint_transforms,
)
from kinetree.algorithms.momentum import momentum
from kinetree.model.equivalence import condensed
from kinetree.model.views import axial_view
from kinetree.spatial import Force, crf

__all__ = [
    "generalized_force",
    "generalized_momentum",
    "kinetic_energy_rate",
    "mass_matrix_rate",
    "mass_matrix_rate_by_axial_turns",
    "potential_energy_rate",
]


@for_all_joints(force)
def generalized_momentum(model, q, qd):
    """``p = H qd``, with what prescribed joints move, in O(n): ``∂T/∂qd``, (nv,)."""
    lam, NB, I = model.parent, model.body_count, model.inertia
    X, v = body_velocities(model, q, qd)
    _, S = joint_transforms(model, q)
    h = [Force.zero(), *(I[i] @ v[i] for i in range(1, NB + 1))]
    p = [model.zero_velocity[:0]] + [None] * NB
    for i in range(NB, 0, -1):
        p[i] = S[i].T @ h[i]
        h[lam[i]] = h[lam[i]] + X[i].T @ h[i]
    return armature.forces(model, np.concatenate(p), qd)


def mass_matrix_rate(model, q, qd):
    """``dH/dt`` while the mechanism moves at ``qd``, (nv, nv)."""
    C = half_inertia_rate(model, q, qd)
    return C + C.T


def mass_matrix_rate_by_axial_turns(model, q, qd):
    """``dH/dt`` in fewer operations."""
    C = half_inertia_rate(axial_view(condensed(model)), q, qd)
    return C + C.T


@for_all_joints()
def kinetic_energy_rate(model, q, qd, qdd):
    """``dT/dt = Σ v·(I a + v ×* I v)`` over the bodies [W]."""
    I = model.inertia
    _, v, a = body_accelerations(model, q, qd, qdd)
    forces = (I[i] @ a[i] + crf(v[i], I[i] @ v[i]) for i in range(1, model.body_count + 1))
    return sum(v[i].dot(f) for i, f in enumerate(forces, start=1)) + armature.power(model, qd, qdd)


def potential_energy_rate(model, q, qd):
    """``dU/dt = -m g·ċ`` over the bodies [W]."""
    return -(model.gravity @ momentum(model, q, qd).linear)


@for_all_joints(force)
def generalized_force(model, q, f_ext):
    """``Q = Σ J_iᵀ f_i``, (nv,), of forces on the bodies in base coordinates; entry 0 unused."""
    lam, NB = model.parent, model.body_count
    X, S = joint_transforms(model, q)
    X_0 = base_transforms(model, X)
    f = [Force.zero(), *f_ext[1:]]
    Q = [model.zero_velocity[:0]] + [None] * NB
    for i in range(NB, 0, -1):
        Q[i] = S[i].T @ (X_0[i].star @ f[i])
        f[lam[i]] = f[lam[i]] + f[i]
    return np.concatenate(Q)
