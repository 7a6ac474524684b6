"""Bases of the forces that do no work, or unit work, on given motions — RBDA (3.35), (3.36).

Written for any kind of number: nothing here looks at a value but to choose a sign.
"""

import numpy as np

from kinetree.errors import ShapeError, SingularError
from kinetree.spatial import Force
from kinetree.spatial.ops import less, select, sqrt


def orthogonal_complement(S):
    """Orthonormal columns perpendicular to the independent columns of ``S``, by reflections."""
    rows, n = S.shape
    A, Q = np.array(S), np.eye(rows, dtype=int)
    for k in range(n):
        x = A[k:, k]
        length = sqrt(x @ x)
        v = np.array([x[0] + select(less(x[0], 0), -length, length), *x[1:]])
        v_scaled = v * (2 / (v @ v))
        A = np.concatenate([A[:k], A[k:] - np.outer(v_scaled, v @ A[k:])])
        Q = np.concatenate([Q[:, :k], Q[:, k:] - np.outer(Q[:, k:] @ v, v_scaled)], axis=1)
    return Q[:, n:]


def dual_basis(S):
    """``T_a`` in the span of the independent columns of ``S`` with ``T_aᵀ S = 1``.

    Each of its columns is what a column of ``S`` has not in common with the others.
    """
    columns = []
    for k in range(S.shape[1]):
        others = np.delete(S, k, axis=1)
        rest = S[:, k]
        for e in _orthonormal(others):
            rest = rest - e * (e @ rest)
        columns.append(rest / (rest @ rest))
    return np.column_stack(columns)


def _orthonormal(S):
    """An orthonormal basis of the columns of ``S`` — Gram and Schmidt."""
    basis = []
    for s in S.T:
        for e in basis:
            s = s - e * (e @ s)
        basis.append(s / sqrt(s @ s))
    return basis


# --- Where an actuator pushes: active forces from its wrench — RBDA §3.5, Example 3.2 ------------


def active_subspace_from_wrench(joint, q, wrench):
    """``T_a`` along the wrench that the actuator really exerts, scaled to ``T_aᵀ S = 1``.

    Motion does not depend on it; the bearing loads do.

    Args:
        joint: the joint.
        q: its position variables, (nq,).
        wrench: a ``Force`` on the successor in its coordinates, of any size; for a joint of n
            freedoms n independent ones as columns, (6, n).
    """
    F = wrench.to_array().reshape(6, -1)
    if F.shape != (6, joint.nv):
        raise ShapeError(
            f"{type(joint).__name__} has {joint.nv} freedoms and needs as many actuator "
            f"wrenches, got {F.shape[1]}"
        )
    S = joint.motion_subspace(q)
    power = S.T @ Force.from_array(F)
    if power.dtype.kind not in "fi":  # traced or exact numbers
        return Force.from_array(F @ dual_basis(power).T)
    if joint.nv == 1:
        scale = float(np.max(np.abs(S.to_array())) * np.max(np.abs(F)))
        independent = abs(power[0, 0]) > 64 * np.finfo(float).eps * scale
        coefficients = 1 / power if independent else power
    else:
        independent = np.linalg.cond(power) < 1 / (64 * np.finfo(float).eps)
        coefficients = np.linalg.inv(power) if independent else power
    if not independent:
        raise SingularError(
            f"the actuator wrench does no work on the freedom of this {type(joint).__name__} "
            f"joint (S^T f = {power.tolist()}): it loads the bearings only"
        )
    return Force.from_array(F @ coefficients)
