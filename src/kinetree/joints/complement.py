"""Bases of the forces that do no work, or unit work, on given motions — RBDA (3.35), (3.36).

Written for any kind of number: nothing here looks at a value but to choose a sign.
"""

import numpy as np

from kinetree.spatial.ops import less, select, sqrt

__all__ = ["dual_basis", "orthogonal_complement"]


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
