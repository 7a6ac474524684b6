"""One rigid body on one joint, solved in three ways — RBDA §3.6, Example 3.1.

    f + f_c = I a + p,   a = S qdd + c,   Sᵀ f_c = 0

``p = v ×* I v - f_g`` is the bias force and ``c = Sd qd`` the full derivative of the motion
subspace (``c_J + v × v_J`` of a joint on a fixed base) times the velocity. The three ways
eliminate the constraint force, compute it, or never meet it. Results in M⁶ → F⁶ and back are dense
6×6 matrices. CPU only: NumPy's linear algebra.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.systems import EquationOfMotion
from kinetree.errors import SingularError
from kinetree.spatial.vector import Force, Motion

__all__ = [
    "FromConstraintForces",
    "FromMotionSubspace",
    "apparent_inverse_inertia",
    "equation_of_motion",
    "solve_by_constraint_forces",
    "solve_by_motion_subspace",
    "split_force",
]


class FromMotionSubspace(NamedTuple):
    """Result of the first method: ``a = Phi f + b``."""

    qdd: np.ndarray
    """Joint acceleration, (n_f,)."""
    a: Motion
    """Acceleration of the body."""
    Phi: np.ndarray
    """Apparent inverse inertia, (6, 6): symmetric, positive semidefinite, of rank n_f."""
    b: Motion
    """Bias acceleration: the acceleration without applied force."""


class FromConstraintForces(NamedTuple):
    """Result of the second method."""

    a: Motion
    """Acceleration of the body."""
    lam: np.ndarray
    """Constraint-force variables, (n_c,)."""
    f_c: Force
    """Constraint force ``T lam``."""


def apparent_inverse_inertia(I, S):
    """``Phi = S (Sᵀ I S)⁻¹ Sᵀ``, (6, 6): how the acceleration responds to the force — RBDA (3.54).

    Its range is ``S`` and its null space ``S⊥``; any basis of ``S`` gives the same.
    """
    return S.to_array() @ _solve(S.T @ (I @ S), S.to_array().T)


def split_force(I, S, f):
    """``f_a, f_c``: the part of ``f`` that accelerates the body and the part that is resisted.

    ``f_a`` lies in ``I S`` and ``f_c`` in ``S⊥``; together they are ``f``. The constraint answers
    with ``-f_c`` — RBDA Example 3.1, (3.28).
    """
    f_a = I @ (S @ _solve(S.T @ (I @ S), S.T @ f))
    return f_a, f - f_a


def solve_by_motion_subspace(I, p, S, c, f) -> FromMotionSubspace:
    """Method 1: eliminate the constraint force with ``Sᵀ`` — RBDA (3.45)–(3.55)."""
    Phi = apparent_inverse_inertia(I, S)
    qdd = _solve(S.T @ (I @ S), S.T @ (f - I @ c - p))
    b = c - Motion.from_array(Phi @ (I @ c + p).to_array())
    return FromMotionSubspace(qdd, S @ qdd + c, Phi, b)


def solve_by_constraint_forces(I, p, T, k, f) -> FromConstraintForces:
    """Method 2: compute the constraint force ``T lam`` along — RBDA (3.56)–(3.60).

    The matrix is symmetric and nonsingular, but not positive definite.

    Args:
        I: inertia of the body.
        p: bias force.
        T: constraint forces, columns that span ``S⊥``.
        k: ``-Tdᵀ v``, which is also ``Tᵀ c``, (n_c,).
        f: applied force.
    """
    n_c = len(k)
    T_ = T.to_array()
    A = np.block([[I.to_matrix(), T_], [T_.T, np.zeros((n_c, n_c))]])
    x = np.linalg.solve(A.astype(float), np.concatenate([(f - p).to_array(), k]))
    lam = -x[6:]
    return FromConstraintForces(Motion.from_array(x[:6]), lam, T @ lam)


def equation_of_motion(I, p, S, c, f) -> EquationOfMotion:
    """Method 3: generalized coordinates, ``H qdd + C = tau`` — RBDA (3.61)–(3.64).

    ``tau = Sᵀ f`` forgets part of ``f``: the sum ``f + f_c`` can be recovered from it, the two
    forces cannot.
    """
    return EquationOfMotion(S.T @ (I @ S), S.T @ (I @ c + p), S.T @ f)


def _solve(H, b):
    if np.linalg.matrix_rank(np.asarray(H, dtype=float)) < len(H):
        raise SingularError(
            f"the body has no inertia in some of its {len(H)} freedoms: SᵀIS is singular; give "
            f"it mass away from the joint axis"
        )
    return np.linalg.solve(np.asarray(H, dtype=float), b)
