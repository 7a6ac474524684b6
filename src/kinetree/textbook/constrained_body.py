"""One rigid body, free and on one joint — RBDA §2.12–2.15, §3.4, §3.6, Example 3.1.

On a joint it is solved in three ways:

    f + f_c = I a + p,   a = S qdd + c,   Sᵀ f_c = 0

``p = v ×* I v - f_g`` is the bias force and ``c = Sd qd`` the full derivative of the motion
subspace (``c_J + v × v_J`` of a joint on a fixed base) times the velocity. The three ways
eliminate the constraint force, compute it, or never meet it. Results in M⁶ → F⁶ and back are dense
6×6 matrices. CPU only: NumPy's linear algebra.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.constraints import check_functions, loop_constraints, velocity_rows
from kinetree.algorithms.closed.subspace import Subspace
from kinetree.algorithms.closed.systems import SubsystemEquation
from kinetree.errors import SingularError
from kinetree.spatial.vector import Force, Motion
from kinetree.spatial.vector3 import cross

__all__ = [
    "BodyFreedoms", "FromConstraintForces", "FromMotionSubspace", "apparent_inverse_inertia",
    "bias_force", "check_functions", "equation_of_motion", "force_on_body", "free_acceleration",
    "freedoms", "kinetic_energy", "newton_euler", "solve_by_constraint_forces",
    "solve_by_motion_subspace", "split_force",
]  # fmt: skip

# --- The equation of motion of one rigid body — RBDA §2.12–2.15, Lynch & Park §9.2 ---------------
# In spatial form one line says what Newton's and Euler's equations say about the mass centre; both
# are here, and they agree. ``I @ v`` is the momentum.


def kinetic_energy(I, v):
    """Kinetic energy ``½ v·I v`` of a rigid body [J] — RBDA (2.67)."""
    return (I @ v).dot(v) / 2


def force_on_body(I, v, a):
    """Total force ``I a + v ×* I v`` that gives a body the acceleration ``a`` — RBDA (2.68)."""
    return I @ a + v.cross(I @ v)


def bias_force(I, v, known=None):
    """Bias force ``p`` of a body in ``f = I a + p`` — RBDA (2.69).

    Args:
        I: inertia.
        v: velocity.
        known: forces that act besides ``f``, such as the weight ``I @ a_g``.
    """
    p = v.cross(I @ v)
    return p if known is None else p - known


def free_acceleration(Phi, f, p):
    """Acceleration ``Φ (f - p)`` of an unconstrained body — RBDA (2.72)."""
    return Phi @ (f - p)


def newton_euler(m, I_C, w, wd, a_C):
    """Force and moment about the mass centre of a body — RBDA (1.4), Lynch & Park (9.14)–(9.20).

    Args:
        m: mass [kg].
        I_C: rotational inertia about the mass centre [kg m²], (3, 3).
        w: angular velocity [rad/s], (3,).
        wd: angular acceleration [rad/s²], (3,).
        a_C: acceleration of the mass centre [m/s²], (3,).

    Returns:
        f: force [N], (3,).
        n_C: moment about the mass centre [N m], (3,).
    """
    return m * a_C, I_C @ wd + cross(w, I_C @ w)


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
    """Apparent inverse inertia ``S (Sᵀ I S)⁻¹ Sᵀ`` of a constrained body — RBDA (3.54).

    Its range is ``S`` and its null space ``S⊥``; any basis of ``S`` gives the same.
    """
    return S.to_array() @ _solve(S.T @ (I @ S), S.to_array().T)


def split_force(I, S, f):
    """Active and constrained parts ``f_a, f_c`` of a force on a body (RBDA Example 3.1).

    ``f_a`` lies in ``I S`` and ``f_c`` in ``S⊥``; together they are ``f``. The constraint answers
    with ``-f_c`` — RBDA Example 3.1, (3.28).
    """
    f_a = I @ (S @ _solve(S.T @ (I @ S), S.T @ f))
    return f_a, f - f_a


def solve_by_motion_subspace(I, p, S, c, f) -> FromMotionSubspace:
    """Motion of a constrained body by projection on ``S`` — RBDA (3.45)–(3.55)."""
    Phi = apparent_inverse_inertia(I, S)
    qdd = _solve(S.T @ (I @ S), S.T @ (f - I @ c - p))
    b = c - Motion.from_array(Phi @ (I @ c + p).to_array())
    return FromMotionSubspace(qdd, S @ qdd + c, Phi, b)


def solve_by_constraint_forces(I, p, T, k, f) -> FromConstraintForces:
    """Motion and constraint force of a body by the augmented system — RBDA (3.56)–(3.60).

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


def equation_of_motion(I, p, S, c, f) -> SubsystemEquation:
    """Equation of motion ``H qdd + C = tau`` of a constrained body — RBDA (3.61)–(3.64).

    ``tau = Sᵀ f`` forgets part of ``f``: the sum ``f + f_c`` can be recovered from it, the two
    forces cannot.
    """
    return SubsystemEquation(S.T @ (I @ S), S.T @ (I @ c + p), S.T @ f)


def _solve(H, b):
    """Solution of ``H x = b``; SingularError naming missing inertia."""
    if np.linalg.matrix_rank(np.asarray(H, dtype=float)) < len(H):
        raise SingularError(
            f"the body has no inertia in some of its {len(H)} degrees of freedom: SᵀIS is "
            f"singular; give it mass away from the joint axis"
        )
    return np.linalg.solve(np.asarray(H, dtype=float), b)


# --- Kinds of constraints, and the degrees of freedom that they leave — RBDA §3.4, Fig. 3.1 ------
# A ``kt.ConstraintFunction`` is holonomic or not, and moves with time or not; ``kind`` says which.
# A nonholonomic one is the rate of nothing, and takes away velocities only.


@dataclass(frozen=True)
class BodyFreedoms:
    """Degrees of freedom of a constrained system."""

    position: int
    """Dimension of the set of reachable configurations."""
    velocity: int
    """Dimension of the set of allowed velocities; smaller if something rolls."""


def freedoms(model, q) -> BodyFreedoms:
    """``BodyFreedoms``: position and velocity freedoms that constraints leave at ``q``.

    Takes the word of each constraint for being nonholonomic: such rows take away velocities only.
    """
    K = loop_constraints(model, np.asarray(q, dtype=float), model.zero_velocity).K.astype(float)
    of_positions = K.copy()
    of_positions[velocity_rows(model)] = 0
    return BodyFreedoms(*(Subspace.null(rows, "motion").dim for rows in (of_positions, K)))
