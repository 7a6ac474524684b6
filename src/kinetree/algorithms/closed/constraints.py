"""Loops as equations ``K qdd = k`` on the joint accelerations — RBDA §8.2, Table 8.4.

A loop joint from body ``p`` to body ``s`` contributes ``K_l = Tᵀ (J_s - J_p)`` (8.17), which has
columns for the joints of the loop alone: those above the *loop root*, the nearest common ancestor
of ``p`` and ``s``, carry both bodies alike and cancel (8.18). So does their motion. Hence a loop
can be described as if its root were fixed, in coordinates of the root; this takes fewer operations
than the base coordinates of the book, and loses no digits when the mechanism is far from the base
(§8.7). Scalar-generic, off the constraint manifold too; structural zeros stay exact.

The table is for joints with constant ``T`` that time does not move; ``loop_joint`` has the rest.
Its ``k`` includes the stabilisation; this one does not.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.coupled import for_all_joints
from kinetree.algorithms.dual import Dual, duals, rate_of, value_of
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.spatial import Force, Motion, Plucker, crm
from kinetree.spatial.vector3 import cross


class LoopConstraints(NamedTuple):
    """Constraints at one instant: rows of the loops in order, then user-defined ones."""

    K: np.ndarray
    """Constraint matrix, (nc, nv)."""
    k: np.ndarray
    """``K qdd = k``, from velocity products alone, (nc,)."""
    error: np.ndarray
    """Position error ``δ``, (nc,); its rate of change is ``rate``, up to its own size."""
    rate: np.ndarray
    """Velocity error ``K qd`` less what moves with time, (nc,)."""

    def with_stabilization(self, T):
        """Right-hand side ``k``: errors decay in the time ``T`` [s] — RBDA (8.22), (8.35)."""
        return self.k - (2 / T) * self.rate - self.error / (T * T)


class LoopMotion(NamedTuple):
    """The bodies of a loop relative to its root, and the motion across the loop joint."""

    X_J: Plucker
    """From predecessor to successor frame of the loop joint."""
    v_J: Motion
    """Velocity across it, in successor frame coordinates."""
    X_s: Plucker
    """From the root to the successor frame."""
    a_J: Motion
    """``a_s - a_p - v_s × v_J`` of velocity products, in root coordinates."""
    J: dict
    """Columns ``S_j`` by joint number, in root coordinates, with the sign of (8.18)."""


def loop_constraints(model, q, qd, *, coordinates="loop") -> LoopConstraints:
    """Constraint matrix ``K``, right-hand side ``k`` and errors of all loops and user constraints.

    Args:
        model: the mechanism.
        q: position variables [m or rad], (nq,).
        qd: velocity variables [m/s or rad/s], (nv,).
        coordinates: ``"loop"``, each loop relative to its own root and in its coordinates;
            ``"base"``, all in base coordinates, as in the book.
    """
    parts = [loop_rows(model, loop, q, qd, coordinates) for loop in model.loops]
    return stack_constraints(model, [*parts, *function_rows(model, q, qd)])


def stack_constraints(model, parts) -> LoopConstraints:
    """Stack the constraints of several loops, or of none."""
    none = model.zero_velocity[:0]
    parts = [LoopConstraints(np.zeros((0, model.nv)), none, none, none), *parts]
    return LoopConstraints(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def coupled_rows(rows, at):
    """Constraints in the independent variables of a coupled model: ``K G ydd = k - K g``."""
    return rows._replace(K=rows.K @ at.G, k=rows.k - rows.K @ at.g)


def loop_errors(model, q):
    """Position errors of all loops and constraints, (nc,) — RBDA (8.23), (8.24)."""
    at_rest = model.zero_velocity
    parts = [
        loop.joint.loop_error(loop_motion(model, loop, q, at_rest).X_J) for loop in model.loops
    ]
    return np.concatenate([at_rest[:0], *parts, *function_errors(model, q)])


def closure_errors(model, q):
    """Errors that vanish exactly where the loops are closed [m or rad], (nc,).

    The position errors of RBDA Table 8.1 are made for small errors: those of a hinge vanish, too,
    when its axes point against each other. Here the error of a loop is the logarithm of what is
    between the two frames and the nearest position that the joint allows, ``Tᵀ log(X X_J(q)⁻¹)``.
    It grows with the distance, and on closed loops its derivative is ``K``.
    """
    rest = model.zero_velocity
    errors = [loop.joint.loop_gap(loop_motion(model, loop, q, rest).X_J) for loop in model.loops]
    return np.concatenate([rest[:0], *errors, *function_errors(model, q)])


@for_all_joints(coupled_rows)
def loop_rows(model, loop, q, qd, coordinates="loop"):
    """Constraint rows, right-hand side and errors of one loop."""
    m = loop_motion(model, loop, q, qd, coordinates)
    T, bias, rate = loop_joint(loop.joint, m.X_J, m.v_J)
    T = m.X_s.T @ T
    K = np.zeros((len(rate), model.nv), model.scalar_type(q))
    for j, J in m.J.items():
        K[:, model.v_slice[j]] = T.T @ J
    return LoopConstraints(K, bias - T.T @ m.a_J, loop.joint.loop_error(m.X_J), rate)


@for_all_joints()
def loop_motion(model, loop, q, qd, coordinates="loop") -> LoopMotion:
    """Relative pose, velocity and velocity-product acceleration across a loop joint."""
    p, s = loop.predecessor, loop.successor
    if coordinates not in ("loop", "base"):
        raise UnknownNameError(
            f"coordinates of loop constraints are 'loop' or 'base', got {coordinates!r}"
        )
    epsilon = loop_signs(model, p, s)
    root, above = (loop_root(model, p, s), ()) if coordinates == "loop" else (0, model.support[s])
    zero = model.zero_motion
    X, v, a, J = {root: model.identity_transform}, {root: zero}, {root: zero}, {}
    for i in sorted({*epsilon, *above}):
        lam = model.parent[i]
        X_J, S, v_J, c_J = model.jcalc(i, q, qd)
        X_i = X_J @ model.tree_transform[i]
        X[i] = X_i if lam == root else X_i @ X[lam]
        S, v_J, c_J = (X[i].inv_apply(m) for m in (S, v_J, c_J))
        v[i] = v[lam] + v_J
        a[i] = a[lam] + c_J + crm(v[lam], v_J)  # v_i × v_J, as v_J × v_J = 0
        if i in epsilon:
            J[i] = S * epsilon[i]
    X_p, X_s = loop.predecessor_placement @ X[p], loop.successor_placement @ X[s]
    return LoopMotion(
        X_J=X_s @ X_p.inverse(),
        v_J=X_s @ (v[s] - v[p]),
        X_s=X_s,
        a_J=a[s] - a[p] + crm(v[s], v[p]),
        J=J,
    )


def loop_root(model, p, s):
    """Nearest common ancestor of two bodies."""
    while p != s:
        p, s = (model.parent[p], s) if p > s else (p, model.parent[s])
    return p


def loop_signs(model, p, s):
    """Signs ``ε_lj`` of RBDA (8.18): direction in which each tree joint moves a loop's joint."""
    to_s, to_p = set(model.support[s]), set(model.support[p])
    return {j: 1 if j in to_s else -1 for j in to_s ^ to_p}


# --- loop joints of every kind: RBDA §8.2, §8.3 --------------------------------------------------
# A loop joint confines the relative velocity of its frames, ``Tᵀ (v_J - σ) = 0``. The derivative,
# with everything in coordinates of its successor frame ``s``, is
#
#     Tᵀ (a_J - v_s × v_J - σ°) + T°ᵀ (v_J - σ) = 0
#
# where ``a_J = a_s - a_p`` and ``°`` is the rate of coordinates. The book drops ``σ`` (8.9) and, in
# (8.47), ``T°``; both matter for prescribed joints, for universal joints and for those that slide
# along a turning axis. The variables of a loop joint are not part of ``q``: ``T`` and ``σ`` are
# functions of the relative pose ``X_J``, and their rates are those along the relative motion, also
# for bodies that are not where, or do not move as, the joint has it.


class LoopJoint(NamedTuple):
    """A loop joint at one instant, in coordinates of its successor frame."""

    T: Force
    """Constraint forces, n_c columns."""
    bias: np.ndarray
    """``Tᵀ σ° - T°ᵀ (v_J - σ)``, (n_c,): zero for a constant ``T`` and a joint that waits."""
    rate: np.ndarray
    """Velocity error ``Tᵀ (v_J - σ)``, (n_c,)."""


def loop_joint(joint, X_J, v_J) -> LoopJoint:
    """Constraint forces ``T``, their apparent rate and velocity error of a loop joint.

    Args:
        joint: the loop joint, of any kind.
        X_J: transform from its predecessor to its successor frame.
        v_J: velocity of the successor relative to the predecessor, in successor coordinates.
    """
    if is_steady(joint):
        T = joint.constraint_subspace(joint.neutral())
        rate = T.T @ v_J
        return LoopJoint(T, np.zeros(len(rate), dtype=int), rate)

    moving = _moving(X_J, v_J)
    T_and_rate = joint.loop_subspace(moving).to_array()
    T, T_ring = Force.from_array(value_of(T_and_rate)), Force.from_array(rate_of(T_and_rate))
    if not _kind(joint).moves:
        return LoopJoint(T, -(T_ring.T @ v_J), T.T @ v_J)

    at_rest = np.zeros(joint.nv, dtype=int)
    _, _, sigma, drift = joint.jcalc(joint.coordinates(moving), at_rest)
    sigma_ring = Motion.from_array(rate_of(sigma.to_array()) + value_of(drift.to_array()))
    sigma = Motion.from_array(value_of(sigma.to_array()))
    e = v_J - sigma
    return LoopJoint(T, T.T @ sigma_ring - T_ring.T @ e, T.T @ e)


def is_steady(joint) -> bool:
    """Whether a loop joint's ``T`` is constant and time does not move the joint."""
    kind = _kind(joint)
    return kind.is_constant and not kind.moves


def _moving(X, v):
    """Dual transform: ``X`` with its rate of change at velocity ``v``."""
    E_rate, r_rate = -cross(v.angular, X.E), X.E.T @ v.linear
    return Plucker(duals(X.E, E_rate), duals(X.r, r_rate))


class _Kind(NamedTuple):
    is_constant: bool
    """Whether ``T`` is the same in every configuration."""
    moves: bool
    """Whether time itself moves the joint."""


def _kind(joint):
    """Whether a joint's ``T`` is constant and time moves the joint; cached if hashable."""
    try:
        return _kind_of(joint)
    except TypeError:  # not hashable
        return _kind_of.__wrapped__(joint)


@lru_cache(maxsize=256)
def _kind_of(joint):
    """Properties of a joint found at a few random positions; traced values count as variable."""
    rng = np.random.default_rng(1)
    at_rest = np.zeros(joint.nv, dtype=int)
    T, sigma = [], []
    for q in (joint.neutral(), joint.random(rng), joint.random(rng)):
        T.append(joint.constraint_subspace(q).to_array())
        _, _, v_J, c_J = joint.jcalc(q, at_rest)
        sigma += [v_J.to_array(), c_J.to_array()]
    numbers = all(np.asarray(a).dtype != object for a in (*T, *sigma))
    return _Kind(
        is_constant=numbers and all(np.array_equal(T[0], a) for a in T),
        moves=not numbers or any(np.any(s) for s in sigma),
    )


# --- user-defined constraints: RBDA §3.4 ---------------------------------------------------------
# The functions of a ``ConstraintFunction`` are run on dual numbers: ``K`` column by column, along
# unit velocities, and ``k`` along the motion with ``qd`` held, of the rate of a position twice. At
# rates ``φ = K qd + φ_t`` with ``dφ/dt = K qdd - k``, ``k`` has the derivatives by time as well.


def function_rows(model, q, qd) -> list[LoopConstraints]:
    """Constraint rows of each user-defined constraint."""
    tree = _tree(model)
    return [_rows_of_function(tree, c, np.asarray(q), np.asarray(qd)) for c in model.constraints]


def function_errors(model, q) -> list:
    """Position errors of each user-defined constraint; zero for nonholonomic ones."""
    tree = _tree(model)
    return [_error_of_function(tree, c, np.asarray(q), c.t) for c in model.constraints]


def velocity_rows(model) -> list[int]:
    """Numbers of the rows that constrain velocities only: nonholonomic constraints.

    They are among the last rows.
    """
    holonomic = [c.holonomic for c in model.constraints for _ in range(c.rows)]
    return [k - len(holonomic) for k, x in enumerate(holonomic) if not x]


def _tree(model):
    """Model that user-defined constraint functions receive: the tree without loops."""
    return getattr(model, "model", model).spanning_tree if model.constraints else model


def _error_of_function(model, c, q, t):
    """Values of a constraint function; zeros if it constrains velocities only."""
    if not c.holonomic:
        return np.zeros(c.rows, dtype=int)
    return c.value("position", model=model, q=q, t=t)


def _rate_of_function(model, c, q, qd, t):
    """Rate of a user-defined constraint function at velocity ``qd``."""
    if c.rate is not None:
        return c.value("rate", model=model, q=q, qd=qd, t=t)
    return rate_of(_error_of_function(model, c, duals(q, _flow(model, q, qd)), _advance_time(c, t)))


def _rows_of_function(model, c, q, qd):
    """Jacobian rows ``K`` of a user-defined constraint, by dual numbers along every variable."""
    t, rest, columns = c.t, model.zero_velocity, []
    for e in np.eye(model.nv, dtype=int):
        if c.rate is not None:
            values = c.value("rate", model=model, q=q, qd=duals(rest, e), t=t)
        else:
            values = _error_of_function(model, c, duals(q, _flow(model, q, e)), t)
        columns.append(rate_of(values))
    K = np.column_stack(columns) if columns else np.zeros((c.rows, 0))
    along = duals(q, _flow(model, q, qd))
    return LoopConstraints(
        K,
        -rate_of(_rate_of_function(model, c, along, qd, _advance_time(c, t))),
        _error_of_function(model, c, q, t),
        _rate_of_function(model, c, q, qd, t),
    )


def _advance_time(c, t):
    """Time as a dual number for constraints that depend on it, so that rates include it."""
    return Dual(t, 1) if c.rheonomic else t


def _flow(model, q, qd):
    """Rate of the position variables ``dq/dt``, (nq,) — RBDA (3.7)."""
    joints = range(1, model.body_count + 1)
    parts = [
        model.joint[i].configuration_rate(q[model.q_slice[i]], qd[model.v_slice[i]]) for i in joints
    ]
    return np.concatenate([q[:0], *parts])


def check_functions(model, q, qd, *, tolerance=1e-10):
    """Raise ShapeError unless a constraint's rates are linear in ``qd`` and match its positions.

    Where a function is not defined, nothing is checked.

    Args:
        model: the mechanism, with user-defined constraints.
        q: position variables, (nq,).
        qd: velocity variables, (nv,), none of them zero.
        tolerance: relative error that passes for rounding.
    """
    q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
    given = [c for c in model.constraints if c.holonomic and c.rate is not None]
    derivable = model.replace(constraints=[replace(c, rate=None) for c in given])
    at_rest = function_rows(model, q, 0 * qd)
    for c, now, rest in zip(model.constraints, function_rows(model, q, qd), at_rest, strict=True):
        scale = tolerance * (1 + np.max(np.abs(now.K)) * np.linalg.norm(qd))
        if np.any(np.abs(now.K @ qd + rest.rate - now.rate) > scale):
            raise ShapeError(f"the rate of constraint {c.name!r} must be linear in qd")
    for c, derived in zip(given, function_rows(derivable, q, qd), strict=True):
        value = c.value("rate", model=model.spanning_tree, q=q, qd=qd, t=c.t)
        scale = tolerance * (1 + np.max(np.abs(derived.K)) * np.linalg.norm(qd))
        if np.any(np.abs(derived.rate - value) > scale):
            raise ShapeError(
                f"the rate of constraint {c.name!r} is not the time derivative of its position: "
                f"{np.asarray(value).tolist()} against {derived.rate.tolist()}"
            )
