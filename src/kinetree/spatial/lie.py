"""Rigid motions as 4×4 matrices: SE(3) and se(3) — Spencer A.1, Lynch & Park ch. 9.

``G = [[R, p], [0, 1]]`` is the pose of frame B in A: it maps B-coordinates of points to A, so ``R``
is the active rotation, the transpose of the book's ``E``. Twists and wrenches are plain arrays of
six, angular part first. In the language of Plücker transforms, with ``X = Plucker.from_pose(G)``
from A to B: ``Ad(G) = X⁻¹``, ``Ad(G)ᵀ = X*``, ``ad(V) = V×`` and ``ad(V)ᵀ = -V×*``.
"""

import numpy as np

from kinetree.errors import ShapeError
from kinetree.spatial import dense, exponential
from kinetree.spatial.transform import Plucker
from kinetree.spatial.vector import Motion
from kinetree.spatial.vector3 import skew, unskew

__all__ = [
    "adjoint",
    "body_velocity",
    "bracket",
    "dual_adjoint",
    "dual_bracket",
    "exp_pose",
    "hat",
    "inverse_pose",
    "log_pose",
    "space_velocity",
    "vee",
]


def hat(x):
    """The matrix of an element of the Lie algebra: (3,) to 3×3 in so(3), (6,) to 4×4 in se(3)."""
    x = np.asarray(x)
    if x.shape == (3,):
        return skew(x)
    if x.shape == (6,):
        top = np.column_stack([skew(x[:3]), x[3:]])
        return np.concatenate([top, np.zeros((1, 4), dtype=int)])
    raise ShapeError(f"hat needs three or six coordinates, got shape {x.shape}")


def vee(x):
    """Coordinates of an element of the Lie algebra; inverse of ``hat``."""
    x = np.asarray(x)
    if x.shape == (3, 3):
        return unskew(x)
    if x.shape == (4, 4):
        return np.concatenate([unskew(x[:3, :3]), x[:3, 3]])
    raise ShapeError(f"vee needs a 3x3 or 4x4 matrix, got shape {x.shape}")


def inverse_pose(G):
    """``G⁻¹`` without inverting; takes a rotation (3×3) as well."""
    return G.T if G.shape == (3, 3) else Plucker.from_pose(G).to_homogeneous()


def adjoint(G):
    """``Ad(G) = [[R, 0], [[p]R, R]]``: twists from B to A coordinates."""
    return Plucker.from_pose(G).inverse().to_matrix()


def dual_adjoint(G):
    """``Ad(G)ᵀ``: wrenches from A to B coordinates."""
    return adjoint(G).T


def bracket(V):
    """``ad(V) = [[[ω], 0], [[v], [ω]]]``, the matrix of the Lie bracket — Lynch & Park (9.29)."""
    return dense.crm(V)


def dual_bracket(V):
    """``ad(V)ᵀ``; note the sign, it is minus the book's ``V×*`` — Lynch & Park (9.31)."""
    return dense.crm(V).T


def exp_pose(V):
    """Pose reached from the identity by the constant twist ``V`` in one second — Spencer A.1.3."""
    return exponential.exp(Motion.from_array(V)).to_pose()


def log_pose(G):
    """Twist ``V`` with ``exp_pose(V) = G``; the rotation is at most 180°."""
    return exponential.log(Plucker.from_pose(G)).to_array()


def body_velocity(G, Gd):
    """``G⁻¹ dG/dt``: velocity of the moving frame in its own coordinates — Spencer A.1.5.

    A rotation ``R`` and its rate give the angular velocity alone.
    """
    return vee(inverse_pose(G) @ Gd)


def space_velocity(G, Gd):
    """``dG/dt G⁻¹``: velocity of the moving frame in the fixed coordinates — Spencer A.1.5."""
    return vee(Gd @ inverse_pose(G))
