"""Equations in closed form: no recursion, only sums — RBDA §5.2, Lynch & Park (9.12).

What recursive algorithms replaced: O(n²) for velocities, O(n³) for accelerations and more for the
equation of motion. They show the structure, and check the recursions. Joints must not depend on
time: a prescribed motion is not a sum over velocity variables.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import rnea
from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.crba import joint_space_inertia
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.spatial import crm


@refuses("prescribed", use="kinematics.body_velocities")
@for_all_joints()
def body_velocities(model, q, qd):
    """Body velocities ``v_i = Σ S_j qd_j`` as sums over supporting joints — RBDA (5.3)."""
    _, _, S = _base_subspaces(model, q)
    v = [model.zero_motion]
    for i in range(1, model.body_count + 1):
        v.append(_sum(S[j] @ qd[model.v_slice[j]] for j in model.support[i]))
    return v


@refuses("prescribed", use="kinematics.body_accelerations")
@for_all_joints()
def body_accelerations(model, q, qd, qdd):
    """Body accelerations as double sums over supporting joints — RBDA (5.5), base frame.

    ``a_i = Σ (S_j qdd_j + c_Jj) + ΣΣ (S_k qd_k) × (S_j qd_j)`` with ``j`` over the joints that
    support body ``i`` and ``k`` over those before ``j``.
    """
    at, kappa = model.v_slice, model.support
    _, X_0, S = _base_subspaces(model, q)
    a = [model.zero_motion]
    for i in range(1, model.body_count + 1):
        a_i = _sum(S[j] @ qdd[at[j]] + X_0[j].inv_apply(model.jcalc(j, q, qd)[3]) for j in kappa[i])
        for j in kappa[i]:
            for k in kappa[j][:-1]:
                a_i = a_i + crm(S[k] @ qd[at[k]], S[j] @ qd[at[j]])
        a.append(a_i)
    return a


class ClosedFormEquation(NamedTuple):
    """``tau_i = Σ_j H_ij qdd_j + Σ_jk C_ijk qd_j qd_k + g_i`` — RBDA (5.6)."""

    H: np.ndarray
    """Inertia coefficients, (nv, nv)."""
    C: np.ndarray
    """Coefficients of the centrifugal and Coriolis forces, symmetric in j and k, (nv, nv, nv)."""
    g: np.ndarray
    """Gravity terms, (nv,)."""

    def inverse_dynamics(self, qd, qdd):
        """Joint forces for velocities and accelerations at the equation's configuration."""
        return self.H @ qdd + (self.C @ qd) @ qd + self.g


@refuses("prescribed", use="rnea.inverse_dynamics")
def equation_of_motion(model, q) -> ClosedFormEquation:
    """``ClosedFormEquation``: all coefficients of the equation of motion at ``q``."""
    return ClosedFormEquation(
        joint_space_inertia(model, q), velocity_coefficients(model, q), rnea.gravity_force(model, q)
    )


@refuses("prescribed", use="rnea.inverse_dynamics")
def velocity_coefficients(model, q):
    """Coriolis coefficients ``C_ijk`` (nv, nv, nv) by polarising the bias force.

    The Coriolis force ``c(qd)`` is a quadratic form; polarising it gives its coefficients
    ``C_ijk = ½ (c_i(e_j + e_k) - c_i(e_j) - c_i(e_k))``. Where ``qd`` is the rate of ``q`` they
    are the Christoffel symbols of the first kind — Lynch & Park (9.13).
    """
    n, e = model.nv, np.eye(model.nv, dtype=int)
    C = np.zeros((n, n, n), dtype=model.scalar_type(q))
    for j in range(n):
        C[:, j, j] = rnea.coriolis_force(model, q, e[j])
    for j in range(n):
        for k in range(j):
            both = rnea.coriolis_force(model, q, e[j] + e[k])
            C[:, j, k] = C[:, k, j] = (both - C[:, j, j] - C[:, k, k]) / 2
    return C


def _base_subspaces(model, q):
    """Joint transforms, base transforms, and motion subspaces in base coordinates."""
    X, S = joint_transforms(model, q)
    X_0 = base_transforms(model, X)
    bodies = range(1, model.body_count + 1)
    return X, X_0, [None, *(X_0[i].inv_apply(S[i]) for i in bodies)]


def _sum(terms):
    """Sum of terms of any type that supports addition."""
    first, *rest = terms
    for term in rest:
        first = first + term
    return first
