"""Spanning tree plus constraints: loops in joint space — RBDA §8.1, §8.2, §8.5.

The tree gives ``H qdd + C = tau``; each loop joint adds ``Tᵀ (J_s - J_p) qdd = k``. Constraints may
be redundant, as those of planar loops are. Host-only: the constrained system is solved with NumPy,
ranks by singular values.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import crba, rnea
from kinetree.algorithms.closure import CLOSURE_TOLERANCE, check_loops_closed
from kinetree.algorithms.constrained_system import EquationOfMotion, apply_implicit
from kinetree.algorithms.constraints import Implicit
from kinetree.algorithms.kinematics import base_transforms, body_accelerations
from kinetree.algorithms.loop_constraints import loop_constraints
from kinetree.algorithms.loop_rank import kept_rows, rank_at
from kinetree.algorithms.maximal_joints import expanded, loop_constraint

__all__ = ["JointSpaceConstraint", "Solution", "constraint", "forward_dynamics", "solution"]


class JointSpaceConstraint(NamedTuple):
    """Loops at one instant."""

    implicit: Implicit
    """``K qdd = k``: rows of the loop joints."""
    loops: list
    """What each loop joint asks for: ``maximal_joints.JointConstraint``."""
    scale: float
    """Size of the terms that ``k`` was computed from."""


class Solution(NamedTuple):
    """Motion and constraint forces."""

    qdd: np.ndarray
    """Joint accelerations, (nv,)."""
    lam: np.ndarray
    """Constraint forces of the loop joints along ``T``; the smallest, where they are not unique."""
    tau_c: np.ndarray
    """What they come to in joint space, ``Kᵀ lam``, (nv,); unique."""
    rank: int
    """Number of independent constraints."""
    redundancy: int
    """Number of constraints that say nothing new."""


def constraint(model, q, qd, *, stabilization=None) -> JointSpaceConstraint:
    """``K`` and ``k`` of the loops, with what tells whether the loops are closed.

    Args:
        model: the mechanism.
        q: position variables [m or rad], (nq,).
        qd: velocity variables [m/s or rad/s], (nv,).
        stabilization: time constant [s] with which errors decay; None for none — RBDA (8.22).
    """
    c = loop_constraints(model, q, qd)
    X, v, a = body_accelerations(model, q, qd, model.zero_velocity)  # velocity products alone
    X_0 = base_transforms(model, X)
    in_base = [X_0[i].inv_apply(m) for i, m in enumerate(v)]
    loops = [loop_constraint(loop, X_0, in_base) for loop in model.loops]
    k = c.k if stabilization is None else c.stabilized(stabilization)
    sizes = [loop.scale + _size(a[loop.successor]) + _size(a[loop.predecessor]) for loop in loops]
    scale = float(np.linalg.norm([*sizes, qd @ qd]))  # all of it rounds
    return JointSpaceConstraint(Implicit(c.K, k, error=c.error), loops, scale)


def solution(
    model, q, qd, tau, f_ext=None, *, stabilization=None, rank_tolerance=None,
    closure_tolerance=CLOSURE_TOLERANCE,
) -> Solution:  # fmt: skip
    """Solve the equation of motion of the tree under its loops — RBDA (8.36).

    Args:
        model: the mechanism.
        q: position variables of the tree joints [m or rad], (nq,).
        qd: velocity variables of the tree joints [m/s or rad/s], (nv,).
        tau: joint forces of the tree joints [N or N·m], (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which errors decay; None for none.
        rank_tolerance: relative size below which constraints count as dependent; None for the
            policy of ``loop_rank``.
        closure_tolerance: loop error [rad, or parts of the size of the loop] above which the state
            is refused; infinite to take any state.
    """
    c = constraint(model, q, qd, stabilization=stabilization)
    check_loops_closed(model, c.loops, closure_tolerance)
    H, C = crba.joint_space_inertia(model, q), rnea.bias_force(model, q, qd, f_ext)
    system = EquationOfMotion(H, C, np.asarray(tau, dtype=float))
    if rank_tolerance is not None:
        s = apply_implicit(system, c.implicit, tolerance=rank_tolerance, scale=c.scale)
        return Solution(*s)
    rows, count = kept_rows(model, c.implicit.K), c.implicit.count
    rank = len(rows) if rows is not None else int(rank_at(model, c.implicit.K))
    s = apply_implicit(system, c.implicit.some(rows), rank=rank, scale=c.scale)
    lam = expanded(s.lam, rows, count)
    return Solution(s.qdd, lam, s.tau_c, s.rank, count - s.rank)


def forward_dynamics(model, q, qd, tau, f_ext=None, **options):
    """``qdd`` that the joint forces ``tau`` produce; loops are honoured.

    Options are those of ``solution``.
    """
    return solution(model, q, qd, tau, f_ext, **options).qdd


def _size(m):
    return float(np.linalg.norm(m.to_array().astype(float)))
