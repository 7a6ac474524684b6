"""Exponential and logarithm of rigid motions, and SE(3) and se(3) as 4×4 matrices.

See Spencer A.1 and Lynch & Park ch. 9.

``G = [[R, p], [0, 1]]`` is the pose of frame B in A: it maps B-coordinates of points to A, so ``R``
is the active rotation, the transpose of the book's ``E``. Twists and wrenches are plain arrays of
six, angular part first. In the language of Plücker transforms, with ``X = Plucker.from_pose(G)``
from A to B: ``Ad(G) = X⁻¹``, ``Ad(G)ᵀ = X*``, ``ad(V) = V×`` and ``ad(V)ᵀ = -V×*``.
"""

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.spatial import dense
from kinetree.spatial.ops import stumpff
from kinetree.spatial.rotation import rotation_exp, rotation_log
from kinetree.spatial.transform import Plucker
from kinetree.spatial.vector import Motion
from kinetree.spatial.vector3 import identity3, skew, unskew

__all__ = [
    "adjoint", "body_velocity", "bracket", "displacement_velocity", "dual_adjoint", "dual_bracket",
    "exp", "exp_pose", "hat", "inverse_pose", "left_jacobian", "left_jacobian_inverse", "log",
    "log_pose", "space_velocity", "vee",
]  # fmt: skip

# --- Exponential and logarithm of rigid motions — Spencer A.1.3, Lynch & Park ch. 9 --------------
# Also the book's small-displacement function ``XtoV`` (RBDA Table A.2), which is not a logarithm:
# its angular part is ``sin θ`` times the axis and vanishes at 180°.


def exp(v: Motion) -> Plucker:
    """Transform to the frame reached at the constant velocity ``v`` after unit time."""
    if not isinstance(v, Motion):
        raise SpatialTypeError(f"exp takes a Motion, got {type(v).__name__}")
    return Plucker(rotation_exp(v.angular), left_jacobian(v.angular) @ v.linear)


def log(X: Plucker) -> Motion:
    """Velocity that carries frame A to frame B in unit time; rotation of at most 180°."""
    if not isinstance(X, Plucker):
        raise SpatialTypeError(f"log takes a Plucker transform, got {type(X).__name__}")
    phi = rotation_log(X.E)
    return Motion(phi, left_jacobian_inverse(phi) @ X.r)


def left_jacobian(phi: ArrayLike) -> Array:
    """Left Jacobian of a rotation vector, ``1 + c₂ φ× + c₃ φ×²`` — tutorial (54).

    Takes the rate of the rotation vector ``phi`` to the angular velocity in the parent frame; its
    transpose takes it to the child frame.
    """
    c, u = stumpff(phi @ phi), skew(phi)
    return identity3() + c[2] * u + c[3] * (u @ u)


def left_jacobian_inverse(phi: ArrayLike) -> Array:
    """Inverse of ``left_jacobian``; exists for rotations below 360°."""
    c, u = stumpff(phi @ phi), skew(phi)
    k = (c[3] - 2 * c[4]) / (2 * c[2])  # (1 - c₁ / 2c₂) / θ² without cancellation
    return identity3() - u / 2 + k * (u @ u)


def displacement_velocity(X: Plucker) -> Motion:
    """Velocity from A to B for a small displacement ``X``: RBDA's ``XtoV``, Table A.2.

    Exact for translations, off by the cube of the angle otherwise, and invariant: ``X v = v``.
    Its angular part vanishes at 180°; use ``log`` for displacements that are not small.
    """
    M = X.to_matrix()
    return Motion(
        np.array([M[1, 2] - M[2, 1], M[2, 0] - M[0, 2], M[0, 1] - M[1, 0]]) / 2,
        np.array([M[4, 2] - M[5, 1], M[5, 0] - M[3, 2], M[3, 1] - M[4, 0]]) / 2,
    )


def hat(x: ArrayLike) -> Array:
    """Matrix of a Lie algebra element: (3,) to 3×3 in so(3), (6,) to 4×4 in se(3)."""
    x = np.asarray(x)
    if x.shape == (3,):
        return skew(x)
    if x.shape == (6,):
        top = np.column_stack([skew(x[:3]), x[3:]])
        return np.concatenate([top, np.zeros((1, 4), dtype=int)])
    raise ShapeError(f"hat needs three or six coordinates, got shape {x.shape}")


def vee(x: ArrayLike) -> Array:
    """Coordinates of a Lie algebra element from its matrix; inverse of ``hat``."""
    x = np.asarray(x)
    if x.shape == (3, 3):
        return unskew(x)
    if x.shape == (4, 4):
        return np.concatenate([unskew(x[:3, :3]), x[:3, 3]])
    raise ShapeError(f"vee needs a 3x3 or 4x4 matrix, got shape {x.shape}")


def inverse_pose(G: ArrayLike) -> Array:
    """Inverse ``G⁻¹`` of a pose (4, 4), or of a rotation (3, 3), by transposition."""
    return G.T if G.shape == (3, 3) else Plucker.from_pose(G).to_homogeneous()


def adjoint(G: ArrayLike) -> Array:
    """Adjoint ``Ad(G) = [[R, 0], [[p]R, R]]``: twists from B to A coordinates."""
    return Plucker.from_pose(G).inverse().to_matrix()


def dual_adjoint(G: ArrayLike) -> Array:
    """Transposed adjoint ``Ad(G)ᵀ``: wrenches from A to B coordinates."""
    return adjoint(G).T


def bracket(V: ArrayLike) -> Array:
    """Matrix ``ad(V) = [[[ω], 0], [[v], [ω]]]`` of the Lie bracket — Lynch & Park (9.29)."""
    return dense.crm(V)


def dual_bracket(V: ArrayLike) -> Array:
    """Transposed bracket ``ad(V)ᵀ``; minus the ``V×*`` of RBDA — Lynch & Park (9.31)."""
    return dense.crm(V).T


def exp_pose(V: ArrayLike) -> Array:
    """Pose reached from the identity at the constant twist ``V`` after unit time."""
    return exp(Motion.from_array(V)).to_pose()


def log_pose(G: ArrayLike) -> Array:
    """Twist ``V`` with ``exp_pose(V) = G``; the rotation is at most 180°."""
    return log(Plucker.from_pose(G)).to_array()


def body_velocity(G: ArrayLike, Gd: ArrayLike) -> Array:
    """Body velocity ``G⁻¹ dG/dt`` of a pose, in the moving frame — Spencer A.1.5.

    A rotation ``R`` and its rate give the angular velocity alone.
    """
    return vee(inverse_pose(G) @ Gd)


def space_velocity(G: ArrayLike, Gd: ArrayLike) -> Array:
    """Spatial velocity ``dG/dt G⁻¹`` of a pose, in fixed coordinates — Spencer A.1.5."""
    return vee(Gd @ inverse_pose(G))


guard_module(__name__)
