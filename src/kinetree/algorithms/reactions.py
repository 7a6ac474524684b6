"""Joint reactions: the spatial force that every joint transmits — RBDA §5.3, §3.5, §8.4.

The Newton–Euler pass needs the force ``f_J`` across each joint, and throws five sixths of it away.
Here it is kept: the force that the predecessor exerts on the successor,

    f_J = T_a tau + T lam        tau = Sᵀ f_J        T lam = f_J - T_a Sᵀ f_J

The first part goes through the drive (actuator, spring, damper, friction, gear), along ``T_a``; the
second is the load of the bearing, which does no work on ``S``. Motion does not depend on ``T_a``,
the bearing load does. Armature accelerates apart from the bodies and loads no bearing.

In a mechanism with loops, the forces of the loop joints act on the bodies of the spanning tree
like external ones. They satisfy ``Kᵀ lam = tau_ID - tau``; where constraints are redundant, many
do, and ``multipliers`` returns the smallest, in units of the mechanism.
"""

from operator import add
from typing import Any

import numpy as np

from kinetree.algorithms import fewest_operations as fewest
from kinetree.algorithms.closed.constraints import is_steady, loop_constraints
from kinetree.algorithms.closed.elimination import positive_solution
from kinetree.algorithms.closed.forces import forces_on_bodies, loop_joint_motion
from kinetree.algorithms.closed.rank import count_values, independent, rank_policy, scaling
from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.algorithms.passive import own_force
from kinetree.algorithms.rnea import newton_euler
from kinetree.errors import IndeterminateWarning, ShapeError, SingularError, warn
from kinetree.model.memo import remember
from kinetree.spatial import Force
from kinetree.spatial.ops import less

PARTS = ("total", "bearing", "drive")
FRAMES = ("joint", "predecessor", "body", "aligned", "world")
_AGREEMENT = 1e-6  # of forces: up to which tau and qdd count as those of one motion
_SMALLEST = 1e-6  # pivot of KᵀK, relative to its usual size


@for_all_joints()
def joint_reactions(
    model, q, qd, qdd, f_ext=None, lam=None, loop_tau=None, *, joints, part="total", frame="joint"
):
    """Forces across joints from predecessor to successor, (n, 6), in the given frames.

    Args:
        model: the mechanism.
        q: position variables [m or rad], (nq,).
        qd: velocity variables [m/s or rad/s], (nv,).
        qdd: accelerations [m/s² or rad/s²], (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.
        lam: constraint forces of the loop joints along ``T``, (nc,); none without loops.
        loop_tau: forces along the loop joints besides their springs, dampers and friction, (nv_L,).
        joints: numbers of the joints, those of the tree from 1 on, then those that close loops;
            None for all of a tree.
        part: one of ``PARTS``.
        frame: one of ``FRAMES``, or a ``Frame``: whose coordinates the result has.
    """
    X, S = joint_transforms(model, q)
    X_0, NB = base_transforms(model, X), None if joints is None else model.body_count
    acting, closing = f_ext, []
    if model.loops:
        acting, closing = with_loop_forces(model, q, qd, X_0, lam, f_ext, loop_tau)
    f = newton_euler(model, q, qd, qdd, acting).f

    def of_tree(n):
        body, f_J = model.bodies[n - 1], f[n]
        if part != "total":
            drive = body.active_subspace(q[model.q_slice[n]]) @ (S[n].T @ f[n])
            f_J = drive if part == "drive" else f[n] - drive
        X_J = X[n] @ model.tree_transform[n].inverse()
        return _express_in_frame(f_J, frame, X_0[n], X_J, model.identity_transform, X_0).to_array()

    def of_loop(n):
        joint, (X_s, drive, bearing) = model.loops[n - NB - 1], closing[n - NB - 1]
        X_J = X_s @ (joint.predecessor_placement @ X_0[joint.predecessor]).inverse()
        f_J = {"total": drive + bearing, "bearing": bearing, "drive": drive}[part]
        return _express_in_frame(f_J, frame, X_s, X_J, joint.successor_placement, X_0).to_array()

    if joints is None:
        rows = model.table()
        for n in model.outward():
            rows[n] = of_tree(n)
        return model.stack_rows(rows, 6)
    rows = [of_tree(n) if n <= NB else of_loop(n) for n in joints]
    return np.array(rows).reshape(len(rows), 6)


def with_loop_forces(model, q, qd, X_0, lam, f_ext=None, loop_tau=None):
    """Forces on each body from outside and from loop joints; also each loop joint's force."""
    closing = _loop_forces(model, q, qd, X_0, lam, loop_tau)
    acting = [Force.zero() for _ in X_0] if f_ext is None else [Force.zero(), *f_ext[1:]]
    for loop, (X_s, drive, bearing) in zip(model.loops, closing, strict=True):
        f, p, s = X_s.T @ (drive + bearing), loop.predecessor, loop.successor
        acting[s], acting[p] = acting[s] + f, acting[p] - f
    return acting, closing


def add_loop_forces(model, q, f_ext, loop_tau):
    """External forces plus forces along loop joints, entry 0 unused; None for none."""
    if loop_tau is None:
        return f_ext
    along = forces_on_bodies(model, q, loop_tau)
    return along if f_ext is None else [None, *map(add, along[1:], f_ext[1:])]


def _express_in_frame(f, frame, X_s, X_J, to_body, X_0):
    """Spatial force given in successor coordinates, in those of ``frame``."""
    if frame == "joint":
        return f
    if frame == "body":
        return to_body.T @ f
    if frame == "aligned":
        return Force(X_s.E.T @ f.angular, X_s.E.T @ f.linear)
    if frame == "predecessor":
        return X_J.T @ f
    if frame == "world":
        return X_s.T @ f
    return (X_s @ (frame.placement @ X_0[frame.body]).inverse()).T @ f


def _loop_forces(model, q, qd, X_0, lam, loop_tau):
    """Frame ``X_s``, active force ``T_a tau`` and constraint force ``T lam`` of each loop joint."""
    found, row, column = [], 0, 0
    for loop in model.loops:
        joint = loop.joint
        X_p = loop.predecessor_placement @ X_0[loop.predecessor]
        X_s = loop.successor_placement @ X_0[loop.successor]
        q_k, qd_k, _ = loop_joint_motion(model, q, qd, [loop])
        if is_steady(joint):
            T = joint.constraint_subspace(joint.neutral())
        else:
            T = joint.loop_subspace(X_s @ X_p.inverse())
        tau = own_force(loop, q_k, qd_k)
        if loop_tau is not None:
            tau = tau + loop_tau[column : column + joint.nv]
        bearing = T @ lam[row : row + 6 - joint.nv]
        found.append((X_s, loop.active_subspace(q_k) @ tau, bearing))
        row, column = row + 6 - joint.nv, column + joint.nv
    return found


# --- constraint forces of the loop joints: RBDA (8.36), (8.62) -----------------------------------
# In pure numbers, the smallest of all ``lam`` is a combination of columns of ``K``, and as many
# independent ones as its rank will do: ``lam = K_J z``, ``K_Jᵀ K_J z = (tau_ID - tau)_J``. Which
# ones is decided once for a model; samples that they do not suit are solved one by one.


def multipliers(model, q, qd, qdd, tau, f_ext=None):
    """Constraint forces of the loop joints, (nc,), of least norm where they are not unique.

    Args:
        model: the mechanism, with loops.
        q: position variables, (nq,), that close the loops.
        qd: velocity variables, (nv,).
        qdd: accelerations, (nv,).
        tau: joint forces that produce them, (nv,).
        f_ext: external force on each body in base coordinates, entry 0 unused.

    Raises:
        ShapeError: ``tau`` does not produce ``qdd``.
    """
    units, K = scaling(model), loop_constraints(model, q, qd).K
    total = fewest.inverse_dynamics(model, q, qd, qdd, f_ext)
    K, b = K * units.rows[:, None] * units.columns, (total - tau) * units.columns
    if np.asarray(b).dtype.kind == np.asarray(K).dtype.kind == "f":
        size = max(float(np.linalg.norm(units.columns * f)) for f in (total, np.asarray(tau)))
        return units.rows * _smallest(
            model, K, b, size, max(_AGREEMENT, 1e4 * np.finfo(tau.dtype).eps)
        )
    columns, usual = _columns(model.numeric)
    A = K[:, columns]
    z, pivots = positive_solution(A.T @ A, b[columns])
    lam = A @ np.array(z)
    for pivot, size in zip(pivots, usual, strict=True):
        _require(less(_SMALLEST * size, pivot))
    rest, sizes = A.T @ lam - b[columns], (total * units.columns, tau * units.columns)
    others = [j for j in range(len(b)) if j not in set(columns)]
    rest = np.concatenate([rest, K[:, others].T @ lam - b[others]])
    size = sum((x @ x for x in sizes), start=0)
    _require(less(rest @ rest, _AGREEMENT**2 * size + np.finfo(float).tiny))
    return units.rows * lam


def _smallest(model, K, b, size, agreement):
    """Least-norm ``lam`` with ``Kᵀ lam = b`` for numeric matrices; ShapeError if none fits."""
    units = scaling(model)
    U, s, Vt = np.linalg.svd(np.asarray(K, dtype=float))
    r, generic = int(count_values(s, units)), units.generic_rank()
    lam = U[:, :r] @ ((Vt[:r] @ b) / s[:r])
    missing = float(np.linalg.norm(K.T @ lam - b))
    if missing > (agreement + 10 * rank_policy(model).misalignment) * size:
        raise ShapeError(
            f"tau does not produce the acceleration qdd of model {model.name!r}: the loops leave "
            f"{missing:.3g} N·m of difference. Leave out qdd, or tau"
        )
    if r < (len(K) if generic is None else generic):  # the others are known to be redundant
        warn(
            f"the reactions of model {model.name!r} are not unique in this configuration, in which "
            f"{r} of its {len(K)} constraints are independent: the smallest constraint forces are "
            f"returned; kinetree.unique_reactions(model, q) tells which components are unique",
            IndeterminateWarning,
        )
    return lam


def _require(condition):
    """Raise the error of a condition that does not hold, or trace a check of it."""
    if hasattr(condition, "require"):
        condition.require()


def _least(A):
    """Median over matrices of their smallest singular value."""
    return np.median(np.min(np.linalg.svd(A, compute_uv=False), axis=-1, initial=np.inf))


def _columns(model) -> Any:
    """Independent columns of ``K`` that suit most configurations, and their usual pivots."""

    def make():
        policy: Any = rank_policy(model)
        K, r = policy.manifold.matrices, policy.generic_rank()
        if r is None:
            raise SingularError(
                f"the loops of model {model.name!r} could not be closed, so that no columns of its "
                f"constraints can be chosen beforehand"
            )
        choices = sorted({tuple(independent(x.T, r)) for x in K})
        best = max(choices, key=lambda c: _least(K[:, :, list(c)]))
        A = K[:, :, list(best)]
        pivots = np.array([positive_solution(x.T @ x, np.zeros(r))[1] for x in A])
        return list(map(int, best)), np.median(pivots.reshape(len(A), r), axis=0)

    return remember(model, "columns of loop constraints", make)
