"""The inverse of the joint-space inertia matrix, ``H⁻¹``.

Column ``k`` of ``H⁻¹`` is the acceleration that a unit force at variable ``k`` causes in the
mechanism at rest without gravity. So the articulated-body algorithm finds all columns in a single
run, with the identity in place of ``tau`` and O(n²) work (Carpentier and Mansard 2018). The sparse
factors of ``H`` (RBDA §6.5) give the same matrix, with fewer operations unless the tree is deep.
General code finds one column after the other, and any other ``H⁻¹ b``.
"""

import numpy as np

from kinetree.algorithms import ltl
from kinetree.algorithms.aba import ArticulatedJoints
from kinetree.algorithms.coupled import instead
from kinetree.algorithms.crba import inertia_factors
from kinetree.algorithms.honours import refuses
from kinetree.algorithms.kinematics import joint_transforms
from kinetree.algorithms.propagation import apparent_inertia, joint_response
from kinetree.spatial import Force, Motion


@refuses("loops", use="implicit.forward_dynamics: loops leave no inverse of H")
def inverse_mass_matrix_by_factors(model, q):
    """Inverse mass matrix ``H⁻¹``, (nv, nv), from the sparse factors of ``H``."""
    return ltl.inverse_ltdl(inertia_factors(model, q), model.expanded_parent)


@refuses("loops", use="implicit.forward_dynamics: loops leave no inverse of H")
@instead(inverse_mass_matrix_by_factors)
def inverse_mass_matrix(model, q):
    """Inverse mass matrix ``H⁻¹``, (nv, nv), by an articulated-body recursion without ``H``."""
    lam, NB, n, at = model.parent, model.body_count, model.nv, model.v_slice
    X, S = joint_transforms(model, q)
    U, D_inv, u, a = ([None] * (NB + 1) for _ in range(4))
    IA = list(model.inertia)
    no_column = np.zeros((3, n), dtype=int)
    pA = [Force(no_column, no_column)] * (NB + 1)
    tau = np.eye(n, dtype=int)

    for i in range(NB, 0, -1):
        U[i], D_inv[i] = joint_response(model, i, IA[i], S[i])
        u[i] = tau[at[i]] - S[i].T @ pA[i]
        if lam[i] != 0:
            Ia = apparent_inertia(model, i, IA[i], S[i], U[i], D_inv[i])
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
            pA[lam[i]] = pA[lam[i]] + X[i].T @ (pA[i] + U[i] @ (D_inv[i] @ u[i]))

    # H⁻¹ is symmetric: row i is computed from its own variables on, and mirrored.
    H_inv = np.zeros((n, n), dtype=model.scalar_type(q))
    a[0] = Motion(no_column, no_column)
    for i in range(1, NB + 1):
        here = slice(at[i].start, n)
        a_ = X[i] @ a[lam[i]][at[i].start - at[lam[i]].start :]
        qdd = D_inv[i] @ (u[i][:, here] - U[i].T @ a_)
        a[i] = a_ + S[i] @ qdd
        H_inv[at[i], here] = qdd
        H_inv[here, at[i]] = qdd.T
    return H_inv


# --- one column after the other ------------------------------------------------------------------


@refuses("loops", use="implicit.forward_dynamics: loops leave no inverse of H")
@instead(inverse_mass_matrix_by_factors)
def inverse_mass_matrix_by_columns(model, q):
    """Inverse mass matrix ``H⁻¹``, (nv, nv), each column by a separate recursion."""
    H_inv = model.matrix(q)
    solve_columns(model, articulated_joints(model, q), inverse=H_inv)
    return H_inv


@refuses("loops", "couplings", use="crba.inertia_factors")
def articulated_joints(model, q):
    """Articulated inertias and joint responses, by the inward pass of RBDA Table 7.1."""
    lam = model.parent
    X, S = joint_transforms(model, q)
    U, D_inv, IA = model.table(), model.table(), model.copy_table(model.inertia)
    for i in model.inward():
        U[i], D_inv[i] = joint_response(model, i, IA[i], S[i])
        if lam[i] != 0:
            Ia = apparent_inertia(model, i, IA[i], S[i], U[i], D_inv[i])
            IA[lam[i]] = IA[lam[i]] + X[i].T @ Ia @ X[i]
    return ArticulatedJoints(X, S, U, D_inv)


def solve_columns(model, joints, *matrices, inverse=None, columns=None):
    """Replace each column ``b`` of matrices by ``-H⁻¹ b``; fill in ``H⁻¹`` itself, too.

    A column is the acceleration that joint forces ``-b``, or a unit force, cause in the mechanism
    at rest, without gravity: two passes over the bodies, side by side for all matrices.

    Args:
        model: the mechanism.
        joints: as ``articulated_joints`` returns them.
        *matrices: (nv, nv) each.
        inverse: zeros, (nv, nv), that become ``H⁻¹``, symmetric to the last digit; or None.
        columns: of the matrices, one after the other, where they are not those of variables.
    """
    lam, at, (X, S, U, D_inv) = model.parent, model.v_slice, joints
    sides = [
        (B, model.table(), model.table(model.zero_motion), model.table())
        for B in (*matrices, *(() if inverse is None else (inverse,)))
    ]
    for *_, pA in sides:
        for i in model.outward():
            pA[i] = Force.zero()
    for k in model.variables() if columns is None else columns:
        e = None if inverse is None else model.unit(k)
        for i in model.inward():
            for B, u, _, pA in sides:
                u[i] = (-B[at[i], k] if e is None or B is not inverse else e[at[i]]) - S[i].T @ pA[
                    i
                ]
                if lam[i] != 0:
                    pA[lam[i]] = pA[lam[i]] + X[i].T @ (pA[i] + U[i] @ (D_inv[i] @ u[i]))
                pA[i] = Force.zero()
        for i in model.outward():
            for B, u, a, _ in sides:
                a_ = X[i] @ a[lam[i]]
                qdd = D_inv[i] @ (u[i] - U[i].T @ a_)
                a[i] = a_ + S[i] @ qdd
                B[at[i], k] = qdd
                if B is inverse:
                    B[k, at[i]] = qdd
