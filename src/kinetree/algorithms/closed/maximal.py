"""The whole system at once, in maximal coordinates, loops and all — RBDA §3.7.

Collects the bodies, then applies every joint as a constraint: any connectivity, redundant
constraints included, nothing recursive. It shares no step with the tree algorithms, which makes
it their referee, and a slow one: a dense matrix of about twelve rows a body.
(``MaximalEquations.matrix`` is sparse by blocks, and a sparse factorisation takes it as long as no
constraint is redundant.)
CPU only: dense linear algebra with NumPy, ranks by singular values.

Armature and couplings are about joint variables, and ``qdd = T_aᵀ (Pᵀ a - c)`` for any ``T_a`` with
``T_aᵀ S = 1``. So armature ``A`` adds ``P T_a A T_aᵀ Pᵀ`` to the inertia, and a coupling
``K qdd = k`` is the constraint ``K T_aᵀ Pᵀ a = k + K T_aᵀ c``.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.joint_space import (
    CLOSURE_TOLERANCE,
    check_constraints_hold,
    check_loops_closed,
    constraint,
    expand_forces,
    joint_constraints,
    keep_rows,
    with_own_rows,
)
from kinetree.algorithms.closed.rank import kept_rows_at
from kinetree.algorithms.closed.subspace import RANK_TOLERANCE
from kinetree.algorithms.closed.systems import (
    Implicit,
    SubsystemEquation,
    apply_implicit,
    block_diagonal,
    implicit_equations,
)
from kinetree.algorithms.coupled import CouplingRows, all_joints
from kinetree.algorithms.kinematics import base_velocities
from kinetree.algorithms.propagation import require_regular_variables
from kinetree.spatial import Force, Motion, crf


class MaximalEquations(NamedTuple):
    """The ingredients of (3.74), all in base coordinates, bodies and joints stacked."""

    I: np.ndarray
    """Inertias, block diagonal, (6 N_B, 6 N_B)."""
    v: np.ndarray
    """Body velocities, (6 N_B,)."""
    p: np.ndarray
    """Bias forces: velocity terms minus gravity and external forces, (6 N_B,)."""
    P: np.ndarray
    """Which body a joint leaves (-1) and enters (+1), (6 N_B, 6 N_J)."""
    T: np.ndarray
    """Constraint forces of the joints, block diagonal, (6 N_J, n_c)."""
    T_a: np.ndarray
    """Active forces of the tree joints, block diagonal, (6 N_J, nv)."""
    k: np.ndarray
    """Right-hand side of the constraint, ``-Tdᵀ Pᵀ v`` and stabilisation, (n_c,)."""
    tau: np.ndarray
    """Joint forces, (nv,)."""
    joints: list
    """Constraints of the joints, tree joints first: ``JointConstraint``."""
    armature: np.ndarray
    """Inertia of the joints, (nv,)."""
    couplings: CouplingRows
    """Constraints on the accelerations of all joints: of couplings, then user-defined ones."""

    @property
    def active(self):
        """Matrix ``P T_a`` from joint forces to forces on bodies."""
        return self.P @ self.T_a

    @property
    def bias(self):
        """Velocity-product terms ``T_aᵀ c`` of the tree joints, (nv,)."""
        return self.T_a.T @ _stack([J.c.to_array() for J in self.joints])

    @property
    def system(self) -> SubsystemEquation:
        """Equations of motion of the free bodies under active joint forces and armature."""
        A = self.active * self.armature
        p = self.p - A @ self.bias
        return SubsystemEquation(self.I + A @ self.active.T, p, self.active @ self.tau)

    @property
    def constraint(self) -> Implicit:
        """Constraints ``K a = k`` on body accelerations: joints ``Tᵀ Pᵀ``, then couplings."""
        K, k = self.couplings
        return Implicit(self.T.T @ self.P.T, self.k).stack(
            Implicit(K @ self.active.T, k + K @ self.bias)
        )

    @property
    def matrix(self):
        """Coefficient matrix of RBDA (3.74): symmetric, indefinite, singular if redundant."""
        return implicit_equations(self.system, self.constraint)[0]

    @property
    def right_hand_side(self):
        """Right-hand side of RBDA (3.74); the unknowns are ``(a, -lam)``."""
        return implicit_equations(self.system, self.constraint)[1]


class MaximalSolution(NamedTuple):
    """Motion and forces of the whole system; spatial vectors in base coordinates."""

    qdd: np.ndarray
    """Accelerations of the tree joints, (nv,)."""
    a: list
    """Body accelerations, entry 0 for the base; true ones, gravity not subtracted."""
    f_J: list
    """Forces across the joints, from predecessor to successor: tree joints 1 … N_B in their
    places, then the loop joints; entry 0 is None. Not unique where constraints are redundant."""
    f_c: list
    """The part ``T lam`` of ``f_J`` that the bearings carry; the rest goes along ``T_a``."""
    lam: np.ndarray
    """Constraint-force variables of the joints, then of the couplings and of constraints of one's
    own, (n_c,); the smallest, where they are not unique."""
    rank: int
    """Number of independent constraints."""
    redundancy: int
    """Number of redundant constraints, and dimension of the set of possible ``lam``."""
    loop_error: np.ndarray
    """Position errors of the loop joints, stacked."""
    loop_rate: np.ndarray
    """Velocity errors ``Tᵀ v_J`` of the loop joints, stacked."""


def incidence(model):
    """Incidence matrix ``P``, RBDA (3.69): +1 where a joint enters a body, -1 where it leaves one.

    The base has no row, so a joint on the base has one block in its column.
    """
    NB = model.body_count
    ends = [(model.parent[i], i) for i in range(1, NB + 1)]
    ends += [(loop.predecessor, loop.successor) for loop in model.loops]
    P = np.zeros((NB, len(ends)))
    for j, (p, s) in enumerate(ends):
        for body, sign in ((p, -1), (s, 1)):
            if body != 0:
                P[body - 1, j] = sign
    return np.kron(P, np.eye(6))


def equations(model, q, qd, tau, f_ext=None, *, stabilization=None, rows=None) -> MaximalEquations:
    """Ingredients of RBDA (3.74), the equations in maximal coordinates, for one state.

    Args:
        model: the mechanism.
        q: position variables of the tree joints [m or rad], (nq,).
        qd: velocity variables of the tree joints [m/s or rad/s], (nv,).
        tau: joint forces of the tree joints [N or N·m], (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which loop errors decay, as a hook against drift in
            simulations; None for no stabilisation — RBDA (8.22).
        rows: numbers of the rows of loop joints that count, of all of them; None for all.
    """
    every = all_joints(model, q, qd, tau)
    model, q, qd, tau, couplings = with_own_rows(model, q, qd, every, stabilization)
    NB, a_g = model.body_count, model.a_g
    X_0, v = base_velocities(model, q, qd)
    I = [X_0[i].inv_apply(model.inertia[i]) for i in range(1, NB + 1)]
    p = [crf(v_i, I_i @ v_i) - I_i @ a_g for v_i, I_i in zip(v[1:], I, strict=True)]
    if f_ext is not None:
        p = [p[i - 1] - f_ext[i] for i in range(1, NB + 1)]

    joints = joint_constraints(model, q, qd, X_0, v)
    joints = [*joints[:NB], *keep_rows(joints[NB:], rows)]
    k = [J.T.T @ J.c for J in joints]
    if stabilization is not None:
        for n in range(NB, len(joints)):
            J = joints[n]
            k[n] = k[n] - 2 / stabilization * J.rate - J.error / stabilization**2
    return MaximalEquations(
        I=block_diagonal([I_i.to_matrix() for I_i in I]),
        v=_stack([v_i.to_array() for v_i in v[1:]]),
        p=_stack([p_i.to_array() for p_i in p]),
        P=incidence(model),
        T=block_diagonal([J.T.to_array() for J in joints]),
        T_a=block_diagonal([J.T_a.to_array() for J in joints]),
        k=_stack(k),
        tau=np.asarray(tau, dtype=float),
        joints=joints,
        armature=model.armature,
        couplings=couplings,
    )


def solution(
    model,
    q,
    qd,
    tau,
    f_ext=None,
    *,
    stabilization=None,
    rank_tolerance=None,
    closure_tolerance=CLOSURE_TOLERANCE,
) -> MaximalSolution:
    """Accelerations and constraint forces by RBDA (3.74), in maximal coordinates.

    Args:
        model: the mechanism.
        q: position variables of the tree joints [m or rad], (nq,).
        qd: velocity variables of the tree joints [m/s or rad/s], (nv,).
        tau: joint forces of the tree joints [N or N·m], (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which loop errors decay; None for none.
        rank_tolerance: relative size below which constraints count as dependent; None for the
            policy of ``rank``.
        closure_tolerance: loop error [rad, or fraction of the size of the loop] above which the
            state is rejected as not assembled; infinite to take any state.
    """
    NB = model.body_count
    require_regular_variables(model, q)
    eq = equations(model, q, qd, tau, f_ext, stabilization=stabilization)
    loops, rows = eq.joints[NB:], None
    if model.constraints:
        check_constraints_hold(model, constraint(model, q, qd), closure_tolerance)
    check_loops_closed(model, loops, closure_tolerance)
    if rank_tolerance is None:
        rank_tolerance, rows = RANK_TOLERANCE, kept_rows_at(model, q)
        if rows is not None:
            rows = rows[rows < sum(len(J.rate) for J in loops)]
            eq = equations(model, q, qd, tau, f_ext, stabilization=stabilization, rows=rows)
    size = float(np.linalg.norm([J.scale for J in eq.joints]))
    s = apply_implicit(eq.system, eq.constraint, tolerance=rank_tolerance, scale=size)

    a = [Motion.zero()] + [Motion.from_array(x) for x in s.qdd.reshape(NB, 6)]
    qdd = eq.active.T @ s.qdd - eq.bias  # T_aᵀ S = 1 picks qdd from (3.40)
    lam, lam_coupling = np.split(s.lam, [eq.T.shape[1]])
    active = eq.tau + eq.couplings.K.T @ lam_coupling - eq.armature * qdd
    f_c, f_a = eq.T @ lam, eq.T_a @ active
    of_tree = sum(len(J.rate) for J in eq.joints[:NB])
    count = sum(len(J.rate) for J in loops)
    lam = np.concatenate([lam[:of_tree], expand_forces(lam[of_tree:], rows, count), lam_coupling])
    error, rate = _stack([J.error for J in loops]), _stack([J.rate for J in loops])
    return MaximalSolution(
        qdd=qdd[model.independent_variables[1]] if model.couplings else qdd,
        a=a,
        f_J=_forces(f_a + f_c),
        f_c=_forces(f_c),
        lam=lam,
        rank=s.rank,
        redundancy=len(lam) - s.rank,
        loop_error=error,
        loop_rate=rate,
    )


def forward_dynamics(model, q, qd, tau, f_ext=None, **options):
    """Joint accelerations for ``tau``, (nv,), by maximal coordinates; loops are supported.

    Options are those of ``solution``.
    """
    return solution(model, q, qd, tau, f_ext, **options).qdd


def _forces(x):
    """Forces on all bodies from one stacked vector, entry 0 None."""
    return [None] + [Force.from_array(part) for part in x.reshape(-1, 6)]


def _stack(parts):
    """Concatenation of vectors, empty for none."""
    return np.concatenate([np.zeros(0), *parts])
