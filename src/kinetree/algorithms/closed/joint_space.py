"""Spanning tree plus constraints: loops in joint space — RBDA §8.1, §8.2, §8.5.

The tree gives ``H qdd + C = tau``; each loop joint adds ``Tᵀ (J_s - J_p) qdd = k``. Constraints may
be redundant, as those of planar loops are. CPU only: the constrained system is solved with NumPy,
ranks by singular values.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import crba, rnea
from kinetree.algorithms.closed.constraints import (
    function_rows,
    loop_constraints,
    loop_joint,
    stack_constraints,
)
from kinetree.algorithms.closed.rank import kept_rows, rank_at, rank_policy, scaling
from kinetree.algorithms.closed.scaling import loop_length, rows_of
from kinetree.algorithms.closed.systems import Implicit, SubsystemEquation, apply_implicit
from kinetree.algorithms.coupled import AllJoints, CouplingRows
from kinetree.algorithms.kinematics import base_transforms, body_accelerations
from kinetree.algorithms.propagation import require_regular_variables
from kinetree.errors import ShapeError
from kinetree.spatial import Force, Motion, crm, log

CLOSURE_TOLERANCE = 1e-3
"""Largest error of a loop [rad, or fraction of the size of the loop] that is taken for drift; and
rate of it, relative to the speed."""


class JointSpaceConstraint(NamedTuple):
    """Loops, and user-defined constraints, at one instant."""

    implicit: Implicit
    """``K qdd = k``: rows of the loop joints, then user-defined ones."""
    loops: list
    """``JointConstraint`` of each loop joint."""
    scale: float
    """Size of the terms that ``k`` was computed from."""
    rate: np.ndarray
    """Velocity error, (nc,)."""
    qd: np.ndarray
    """Velocity variables, (nv,)."""

    @property
    def own(self) -> slice:
        """Slice of the rows of user-defined constraints."""
        return slice(sum(len(loop.rate) for loop in self.loops), None)


class Solution(NamedTuple):
    """Motion and constraint forces."""

    qdd: np.ndarray
    """Joint accelerations, (nv,)."""
    lam: np.ndarray
    """Constraint forces of the loop joints along ``T``; the smallest, where they are not unique."""
    tau_c: np.ndarray
    """Constraint forces in joint space, ``Kᵀ lam``, (nv,); unique."""
    rank: int
    """Number of independent constraints."""
    redundancy: int
    """Number of redundant constraints."""


def constraint(model, q, qd, *, stabilization=None) -> JointSpaceConstraint:
    """Constraints ``K``, ``k`` of all loops and user functions, with errors and frames.

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
    k = c.k if stabilization is None else c.with_stabilization(stabilization)
    sizes = [loop.scale + _size(a[loop.successor]) + _size(a[loop.predecessor]) for loop in loops]
    own = c.k[sum(len(loop.rate) for loop in loops) :]
    scale = float(np.linalg.norm([*sizes, *own, qd @ qd]))  # all of it rounds
    return JointSpaceConstraint(Implicit(c.K, k, error=c.error), loops, scale, c.rate, qd)


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
) -> Solution:
    """Accelerations and constraint forces of the tree under its loops — RBDA (8.36).

    Args:
        model: the mechanism.
        q: position variables of the tree joints [m or rad], (nq,).
        qd: velocity variables of the tree joints [m/s or rad/s], (nv,).
        tau: joint forces of the tree joints [N or N·m], (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        stabilization: time constant [s] with which errors decay; None for none.
        rank_tolerance: relative size below which constraints count as dependent; None for the
            policy of ``rank``.
        closure_tolerance: loop error [rad, or fraction of the size of the loop] above which the
            state is rejected; infinite to take any state.
    """
    c = constraint(model, q, qd, stabilization=stabilization)
    check_constraints_hold(model, c, closure_tolerance)
    require_regular_variables(model, q)
    H, C = crba.joint_space_inertia(model, q), rnea.bias_force(model, q, qd, f_ext)
    system = SubsystemEquation(H, C, np.asarray(tau, dtype=float))
    if rank_tolerance is not None:
        s = apply_implicit(system, c.implicit, tolerance=rank_tolerance, scale=c.scale)
        return Solution(*s)
    rows, count = kept_rows(model, c.implicit.K), c.implicit.count
    rank = len(rows) if rows is not None else int(rank_at(model, c.implicit.K))
    s = apply_implicit(system, c.implicit.some(rows), rank=rank, scale=c.scale)
    lam = expand_forces(s.lam, rows, count)
    return Solution(s.qdd, lam, s.tau_c, s.rank, count - s.rank)


def forward_dynamics(model, q, qd, tau, f_ext=None, **options):
    """Joint accelerations that the joint forces ``tau`` produce, (nv,); loops are supported.

    Options are those of ``solution``.
    """
    return solution(model, q, qd, tau, f_ext, **options).qdd


def _size(m):
    """Euclidean norm of the six coordinates of a motion or force."""
    return float(np.linalg.norm(m.to_array().astype(float)))


# --- closure -------------------------------------------------------------------------------------


class ClosureErrors(NamedTuple):
    """Errors of states in the constraints, in pure numbers, each (...)."""

    position: np.ndarray
    """Largest position error [rad, or fraction of the size of a loop]."""
    velocity: np.ndarray
    """Largest velocity error [1/s] over the largest that is allowed as drift."""

    @classmethod
    def of(cls, model, c, qd):
        """Closure errors of states with constraints ``c`` and velocities ``qd``, (..., nv)."""
        units = scaling(model)
        far = np.max(np.abs(np.asarray(c.error) * units.rows), axis=-1, initial=0.0)
        rate = np.max(np.abs(np.asarray(c.rate) * units.rows), axis=-1, initial=0.0)
        speed = np.max(np.abs(np.asarray(qd) / units.columns), axis=-1, initial=1.0)
        return cls(far, rate / speed)


def closure_limit(model, far, tolerance=CLOSURE_TOLERANCE):
    """Largest scaled closure error that is accepted: the tolerance plus the loops' misalignment.

    Whether there is any is looked for only if errors ``far`` exceed the tolerance.
    """
    if np.all(far <= tolerance) or not model.is_constrained:
        return tolerance
    return tolerance + rank_policy(model).slack


def check_constraints_hold(model, c: JointSpaceConstraint, tolerance, sample=""):
    """Raise ShapeError for loops or constraints that are violated in position or velocity.

    Args:
        model: the mechanism.
        c: its constraints.
        tolerance: largest error that is allowed as drift, see ``CLOSURE_TOLERANCE``.
        sample: how a message calls the state, after ``q`` or ``qd``.
    """
    check_loops_closed(model, c.loops, tolerance, sample)
    _check_functions(model, c, tolerance, sample)


def check_loops_closed(model, loops, tolerance, sample=""):
    """Raise ShapeError for loops that are open, each given by its ``JointConstraint``."""
    rows, at = scaling(model).rows, 0
    for loop, J in zip(model.loops, loops, strict=True):
        length, of_loop = loop_length(model, loop), rows[at : at + len(J.rate)]
        at += len(J.rate)
        units = np.repeat([1.0, 1 / length], 3)
        gap = float(np.linalg.norm(J.gap * units))
        limit = closure_limit(model, gap, tolerance)
        if not gap <= limit:
            raise ShapeError(
                f"q{sample} does not close loop {loop.name!r}: its position error is "
                f"{_in_words(J.gap, length)}; at most {limit:.3g} rad, or {limit:.3g} of its "
                f"size, is allowed as drift; assemble the mechanism first"
            )
        rate = float(np.linalg.norm(J.rate * of_loop))
        speed = max(1.0, *(float(np.linalg.norm(v * units)) for v in J.velocities))
        limit = closure_limit(model, rate / speed, tolerance) * speed
        if not rate <= limit:
            raise ShapeError(
                f"qd{sample} tears loop {loop.name!r} apart: its velocity error is {rate:.3g} "
                f"rad/s, or sizes of the loop ({length:.3g} m) per second, at most {limit:.3g} "
                f"is allowed as drift; project qd onto the velocities that the loop allows"
            )


def _check_functions(model, c, tolerance, sample):
    """Raise ShapeError for user-defined constraints that are violated."""
    units, start = scaling(model), c.own.start
    speed = np.max(np.abs(c.qd / units.columns), initial=1.0)
    for own in model.constraints:
        rows = slice(start, start + own.rows)
        start += own.rows
        far, rate = (
            float(np.max(np.abs(x[rows] * units.rows[rows]))) for x in (c.implicit.error, c.rate)
        )
        limit = closure_limit(model, max(far, rate / speed), tolerance)
        at = f" at t = {own.t:g} s" if own.rheonomic else ""
        if not far <= limit:
            raise ShapeError(
                f"q{sample} does not satisfy constraint {own.name!r}{at}: its position error is "
                f"{_largest(c.implicit.error[rows], own)}, {far:.3g} in motions of joints, of "
                f"which {limit:.3g} is allowed as drift; "
                f"kinetree.loops.assemble finds positions that do"
            )
        if not rate <= limit * speed:
            raise ShapeError(
                f"qd{sample} does not satisfy constraint {own.name!r}{at}: its velocity error is "
                f"{_largest(c.rate[rows], own)}/s, {rate:.3g} in motions of joints, of which "
                f"{limit * speed:.3g} is allowed as drift; "
                f"kinetree.loops.project_velocity finds velocities that do"
            )


def _largest(errors, own):
    """Largest error as text with its unit."""
    k = int(np.argmax(np.abs(errors)))
    return f"{abs(float(errors[k])):.3g} {own.units[k]}"


def _in_words(gap, length):
    """Position error (6,) as text: in radians, in metres, and relative to the loop's size."""
    angle, distance = (float(np.linalg.norm(part)) for part in (gap[:3], gap[3:]))
    return f"{angle:.3g} rad and {distance:.3g} m, {distance / length:.3g} of its size"


# --- constraints of each joint on its two bodies: RBDA §3.5, §4.4 --------------------------------
# A joint confines ``v_J = v_s - v_p`` to ``S qd + sigma``, so ``Tᵀ a_J = Tᵀ (c_J + v_s × v_J)``
# with ``c_J = S° qd + sigma°`` (3.44). This is the equation ``Tᵀ a_J = -Tdᵀ v_J`` of (3.71) without
# a derivative of ``T``: as ``Tᵀ S = 0`` in every configuration, ``T°ᵀ S = -Tᵀ S°``, hence
# ``-Tdᵀ v_J = -(T° + v_s ×* T)ᵀ v_J = Tᵀ (c_J + v_s × v_J)`` for ``v_J = S qd``.
#
# The variables of a loop joint are not part of ``q``: ``loop_constraint`` measures them.


class JointConstraint(NamedTuple):
    """One joint at one instant, in base coordinates."""

    predecessor: int
    successor: int
    T: Force
    """Constraint forces, n_c columns."""
    T_a: Force
    """Active forces, one column for each variable of a tree joint; none for a loop joint."""
    c: Motion
    """Acceleration ``c_J + v_s × v_J`` across the joint when its ``qdd`` is zero."""
    error: np.ndarray
    """Position error, (n_c,), as stabilisation needs it; zero for a tree joint."""
    gap: np.ndarray
    """Motion from the nearest position that the joint allows [rad, m], (6,), however large."""
    rate: np.ndarray
    """Velocity error ``Tᵀ (v_J - sigma)``, (n_c,); zero for a tree joint."""
    velocities: tuple
    """Velocities of the two bodies, (6,) each."""
    scale: float
    """Size of the terms that the right-hand side ``Tᵀ c`` is computed from."""


def joint_constraints(model, q, qd, X_0, v):
    """Constraint of every joint in base coordinates: tree joints, then loop joints.

    Args:
        model: the mechanism.
        q: position variables of the tree joints, (nq,).
        qd: velocity variables of the tree joints, (nv,).
        X_0: transforms from base to body coordinates, entry 0 for the base.
        v: body velocities in base coordinates.
    """
    joints = []
    for i in range(1, model.body_count + 1):
        joint, q_i = model.joint[i], q[model.q_slice[i]]
        _, _, v_J, c_J = model.jcalc(i, q, qd)
        T, T_a = joint.constraint_subspace(q_i), model.bodies[i - 1].active_subspace(q_i)
        joints.append(_in_base(model.parent[i], i, X_0[i], v, T, T_a, v_J, c_J))
    return joints + [loop_constraint(loop, X_0, v) for loop in model.loops]


def with_own_rows(model, q, qd, joints: AllJoints, stabilization=None, rows=None) -> AllJoints:
    """All joint constraints with user-defined constraint rows appended after the couplings.

    Args:
        model: the mechanism.
        q: position variables, (nq,).
        qd: velocity variables, (nv,).
        joints: what ``all_joints`` gives for it.
        stabilization: time constant [s] with which errors decay; None for none.
        rows: numbers of the constraints that count, loops first; None for all.
    """
    if not model.constraints:
        return joints
    own = stack_constraints(model, function_rows(model, q, qd))
    k = own.k if stabilization is None else own.with_stabilization(stabilization)
    K = np.zeros((len(k), joints.model.nv), np.asarray(own.K).dtype)
    K[:, model.independent_variables[1] if model.couplings else slice(None)] = own.K
    if rows is not None:
        first = len(rows_of(model)) - len(k)
        kept = [int(row) - first for row in rows if row >= first]
        K, k = K[kept], k[kept]
    pairs = zip(joints.rows, (K, k), strict=True)
    return joints._replace(rows=CouplingRows(*(np.concatenate(pair) for pair in pairs)))


def keep_rows(loops, rows):
    """Constraints of loop joints with only some of their rows; all for None.

    Args:
        loops: ``JointConstraint`` of every loop joint.
        rows: numbers of the rows that are kept, among those of all loops.
    """
    if rows is None:
        return loops
    found, at = [], 0
    for J in loops:
        kept = [int(row) - at for row in rows if at <= row < at + len(J.rate)]
        at += len(J.rate)
        T = Force(J.T.angular[:, kept], J.T.linear[:, kept])
        found.append(J._replace(T=T, error=J.error[kept], rate=J.rate[kept]))
    return found


def expand_forces(lam, rows, count):
    """Constraint forces (count,) from those of kept rows, zero elsewhere; unchanged for None."""
    if rows is None:
        return lam
    every = np.zeros(count)
    every[rows] = lam
    return every


def loop_constraint(loop, X_0, v):
    """Constraint of one loop joint in base coordinates."""
    joint, p, s = loop.joint, loop.predecessor, loop.successor
    X_p, X_s = loop.predecessor_placement @ X_0[p], loop.successor_placement @ X_0[s]
    X_J = X_s @ X_p.inverse()
    v_J = X_s @ (v[s] - v[p])

    J = loop_joint(joint, X_J, v_J)
    # Any acceleration with Tᵀ c = bias will do; this is the smallest.
    c_J = Motion.from_array(np.linalg.lstsq(J.T.to_array().T, J.bias)[0])
    T_a = Force(np.zeros((3, 0)), np.zeros((3, 0)))
    nearest = joint.transform(joint.coordinates(X_J))
    return _in_base(p, s, X_s, v, J.T, T_a, v_J, c_J)._replace(
        error=joint.loop_error(X_J),
        gap=log(X_J @ nearest.inverse()).to_array().astype(float),
        rate=J.rate,
    )


def _in_base(p, s, X_s, v, T, T_a, v_J, c_J):
    """Joint constraint in base coordinates, from quantities in successor coordinates."""
    v_J, c_J = X_s.inv_apply(v_J), X_s.inv_apply(c_J)
    velocities = tuple(v[b].to_array().astype(float) for b in (p, s))
    speed = max(float(np.linalg.norm(x)) for x in velocities)
    none = np.zeros(T.angular.shape[1])
    return JointConstraint(
        predecessor=p,
        successor=s,
        T=X_s.T @ T,
        T_a=X_s.T @ T_a,
        c=c_J + crm(v[s], v_J),
        error=none,
        gap=np.zeros(6),
        rate=none,
        velocities=velocities,
        scale=_size(c_J) + speed * _size(v_J),
    )
