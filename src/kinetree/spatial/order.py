"""Linear-first coordinates, the order of many other texts — RBDA §1.3, tutorial §3.

kinetree puts the angular part first. The tutorial, Pinocchio and JaxSim put the linear part first.
Swapping the halves is its own inverse, so one function serves both ways.
"""

import numpy as np

from kinetree.errors import ShapeError

__all__ = ["swap_matrix_order", "swap_vector_order"]


def swap_vector_order(x):
    """Swap the halves of a vector (6,), or of the columns of a Jacobian or subspace (6, n)."""
    x = np.asarray(x)
    if x.ndim not in (1, 2) or x.shape[0] != 6:
        raise ShapeError(f"swap_vector_order needs shape (6,) or (6, n), got {x.shape}")
    return np.concatenate([x[3:], x[:3]])


def swap_matrix_order(A):
    """Swap the halves of both rows and columns: transforms, inertias, cross operators (6, 6)."""
    A = np.asarray(A)
    if A.shape != (6, 6):
        raise ShapeError(f"swap_matrix_order needs a 6x6 matrix, got shape {A.shape}")
    return np.block([[A[3:, 3:], A[3:, :3]], [A[:3, 3:], A[:3, :3]]])
