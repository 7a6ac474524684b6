"""Spatial algebra as plain 6×6 matrices: the definitions — RBDA ch. 2, Tables 2.2, A.1, A.2.

These are the oracle for the compact types, and a convenient form for ad-hoc linear algebra.
Arrays of three coordinates are taken as planar vectors (RBDA §2.16) where that makes sense.
"""

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError
from kinetree.spatial.vector3 import skew

__all__ = [
    "crf",
    "crm",
    "force_transform",
    "mcI",
    "rot",
    "swap_matrix_order",
    "swap_vector_order",
    "xlt",
]


def rot(E):
    """Motion transform of a pure rotation with coordinate rotation ``E`` — RBDA (2.19)."""
    O = np.zeros((3, 3), dtype=int)
    return np.block([[E, O], [O, E]])


def xlt(r):
    """Motion transform of a shift of the origin by ``r`` (in old coordinates) — RBDA (2.21)."""
    O, one = np.zeros((3, 3), dtype=int), np.eye(3, dtype=int)
    return np.block([[one, O], [-skew(r), one]])


def crm(v):
    """Cross operator matrix ``v×`` of motions — RBDA (2.31), planar (2.76)."""
    v = np.asarray(v)
    if v.shape == (6,):
        O = np.zeros((3, 3), dtype=int)
        return np.block([[skew(v[:3]), O], [skew(v[3:]), skew(v[:3])]])
    if v.shape == (3,):
        w, vx, vy = v
        return np.array([[0, 0, 0], [vy, 0, -w], [-vx, w, 0]])
    raise ShapeError(f"crm needs a spatial (6,) or planar (3,) vector, got shape {v.shape}")


def crf(v):
    """Cross operator matrix ``v×*`` of forces, ``-crm(v).T`` — RBDA (2.32)."""
    return -crm(v).T


def force_transform(X):
    """Force transform ``X* = X⁻ᵀ`` of a dense 6×6 motion transform — RBDA (2.25)."""
    E, B = X[:3, :3], X[3:, :3]
    return np.block([[E, B], [np.zeros((3, 3), dtype=int), E]])


def mcI(m, c, I_C):
    """Rigid-body inertia matrix from mass, mass centre and inertia about it — RBDA (2.63)."""
    C = skew(c)
    return np.block([[I_C + m * C @ C.T, m * C], [m * C.T, m * np.eye(3, dtype=int)]])


# --- Linear-first coordinates, the order of many other texts — RBDA §1.3, tutorial §3 ------------
# kinetree puts the angular part first. The tutorial, Pinocchio and JaxSim put the linear part
# first. Swapping the halves is its own inverse, so one function serves both ways.


def swap_vector_order(x: ArrayLike) -> Array:
    """Swap the halves of a vector (6,), or of the columns of a Jacobian or subspace (6, n)."""
    x = np.asarray(x)
    if x.ndim not in (1, 2) or x.shape[0] != 6:
        raise ShapeError(f"swap_vector_order needs shape (6,) or (6, n), got {x.shape}")
    return np.concatenate([x[3:], x[:3]])


def swap_matrix_order(A: ArrayLike) -> Array:
    """Swap the halves of both rows and columns: transforms, inertias, cross operators (6, 6)."""
    A = np.asarray(A)
    if A.shape != (6, 6):
        raise ShapeError(f"swap_matrix_order needs a 6x6 matrix, got shape {A.shape}")
    return np.block([[A[3:, 3:], A[3:, :3]], [A[:3, 3:], A[:3, :3]]])


guard_module(__name__)
