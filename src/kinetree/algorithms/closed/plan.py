"""Plan of elimination for the constraints of a model, made once for all its configurations.

The choice is made from a handful of configurations in which the loops are closed. Pivots are
compared in units of the mechanism: columns by the inertia of the joints, rows by their size. Of
the pivots that are large enough in all of these configurations, the one that causes the least
work comes first (Markowitz). CPU only: ranks and pivots are decisions.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms import crba
from kinetree.algorithms.closed.constraints import (
    LoopConstraints,
    coupled_rows,
    function_rows,
    is_steady,
    loop_root,
    loop_rows,
    stack_constraints,
)
from kinetree.algorithms.closed.rank import count_values, scaling
from kinetree.algorithms.closed.samples import Rehearsal
from kinetree.algorithms.coupled import for_all_joints
from kinetree.model.views import snap
from kinetree.spatial import Motion, Plucker, crm
from kinetree.spatial.vector3 import cross, identity3

_POOR = 1e-3  # of the largest, for a pivot that does not suit a configuration
_WORTHY = 0.1  # of the best pivot, for one that causes less work
_ROUNDING = 1e-10  # of a pivot that is zero


class EliminationPlan(NamedTuple):
    """An order of elimination and what to expect of it."""

    axes: str | None
    """Axes of the rows of closures that hold a point; see ``turned_rows``."""
    pivots: tuple
    """Pairs of constraint and variable, in the order of elimination."""
    redundant: tuple
    """Numbers of the constraints that follow from the others."""
    row_size: np.ndarray
    """Typical sizes of the redundant constraints, for unit accelerations."""
    column_size: np.ndarray
    """Typical sizes of the accelerations of the variables."""
    misalignment: float
    """Of the redundant constraints, relative to their sizes; see ``rank``."""
    samples: np.ndarray
    """The configurations that it was made for, those without a singularity, (n, nq)."""

    @property
    def rows(self):
        """Numbers of the constraints that the plan keeps, in ascending order."""
        return tuple(sorted(i for i, _ in self.pivots))


def stacked_rows(model, q, qd, axes) -> LoopConstraints:
    """Constraints of all loops, with rows along ``axes``, and user-defined ones, stacked."""
    parts = [turned_rows(model, loop, q, qd, axes) for loop in model.loops]
    return stack_constraints(model, [*parts, *function_rows(model, q, qd)])


def make_plan(model, axes, samples, independent=()) -> EliminationPlan:
    """Elimination plan: independent constraints and pivots of a model, for rows along some axes.

    Args:
        model: the mechanism.
        axes: see ``turned_rows``.
        samples: configurations, (n, nq), with the loops closed.
        independent: numbers of variables that no constraint is solved for.
    """
    rehearsal = Rehearsal(
        lambda q: (
            stacked_rows(model, q, model.zero_velocity, axes).K,
            np.diagonal(crba.joint_space_inertia(model, q)),
        ),
        q=(model.nq,),
    )
    K, H = rehearsal.values(q=samples)
    units = scaling(model)  # of turned rows as well: they stay with their loop
    pure = units.apply(K)
    sizes = np.linalg.svd(pure, compute_uv=False)
    ranks = count_values(sizes, units)

    inertia = np.mean(H, axis=0)
    columns = 1 / np.sqrt(np.where(inertia > 0, inertia, 1))
    scaled = K * units.rows[:, None] * columns
    rows = np.max(np.linalg.norm(scaled, axis=2), axis=0, initial=0)
    # a row that says next to nothing is compared with the others, not with itself
    slight = np.max(np.linalg.norm(pure, axis=2), axis=0, initial=0) <= units.alignment_tolerance
    floor = 1e-6 * np.max(rows, initial=0)
    rows = np.where((rows > floor) & ~slight, rows, np.max(rows, initial=0))
    scaled = scaled / np.where(rows > 0, rows, 1)[:, None]
    scaled = np.where(np.abs(scaled) > 1e-13, scaled, 0)

    generic = ranks == ranks.max()
    pivots = _eliminate(scaled[generic], int(ranks.max()), independent)
    redundant = tuple(i for i in range(len(rows)) if i not in {i for i, _ in pivots})
    misalignment = units.policy.misalignment
    return EliminationPlan(
        axes,
        pivots,
        redundant,
        (rows / units.rows)[list(redundant)],
        columns,
        misalignment,
        samples[generic],
    )


def _eliminate(A, rank, independent=()):
    """Pivots that are large in all sampled matrices (samples, rows, columns), greedily chosen."""
    pivots = []
    nonzero = np.any(A != 0, axis=0)
    open_rows, open_columns = np.ones(A.shape[1], bool), np.ones(A.shape[2], bool)
    open_columns[list(independent)] = False
    for _ in range(rank):
        size = np.min(np.abs(A), axis=0) * np.outer(open_rows, open_columns)
        if size.max() < _POOR:  # no pivot suits all configurations: one that suits most
            size = np.median(np.abs(A), axis=0) * np.outer(open_rows, open_columns)
        if independent and size.max() < _ROUNDING:  # they do not determine the others
            break
        work = np.outer(nonzero[:, open_columns].sum(1) - 1, nonzero[open_rows].sum(0) - 1)
        candidates = size >= _WORTHY * size.max()
        work = np.where(candidates, work, np.inf)
        best = np.where(work == work.min(), size, -1)
        i, j = np.unravel_index(np.argmax(best), best.shape)
        pivots.append((int(i), int(j)))
        pivot = np.abs(A[:, i, j])
        A = A[pivot >= _POOR * pivot.max()]
        open_rows[i] = open_columns[j] = False
        factors = A[:, :, j] / A[:, i, j][:, None] * open_rows
        A = A - factors[:, :, None] * A[:, i, :][:, None, :]
        A[:, open_rows, j] = 0
        touched = np.outer(nonzero[:, j] & open_rows, nonzero[i])
        nonzero = nonzero | touched
        nonzero[open_rows, j] = False
    return tuple(pivots)


# --- rows of loops that hold a point -------------------------------------------------------------
# A spherical, universal, revolute or fixed loop joint holds a point of one body on a point of
# another. In those three of its rows the force triple of ``T`` may be turned: any three
# perpendicular directions say the same. Along the axes of the body at one end, the columns of the
# joints next to it are sparse, often diagonal, and their elimination costs next to nothing. The
# rows are the gap between the points, differentiated twice relative to the loop root,
#
#     E (a_s' - a_p') = 0,    a' = a_linear + ω × v_linear of the point,
#
# the same equation as that of ``constraints`` for a loop that is closed. The rows of the moments
# stay as they are.

AXES = ("root", "predecessor", "successor")
"""Whose axes the rows of a point can be written along."""


class _Tip(NamedTuple):
    """A frame at the end of a chain, in its own coordinates."""

    X: Plucker
    """From the loop root to the frame."""
    v: Motion
    a: Motion
    J: dict
    """Columns of the joints of the chain."""


def holds_a_point(joint):
    """Whether a loop joint's ``T`` is constant: some moments and three perpendicular forces."""
    if not is_steady(joint):
        return False
    T = joint.constraint_subspace(joint.neutral()).to_array()
    moments, forces = np.any(T[:3], axis=0), np.any(T[3:], axis=0)
    F = T[3:, forces]
    if np.any(moments & forces) or F.shape != (3, 3):
        return False
    return bool(np.allclose(F.T @ F, np.eye(3), atol=1e-12, rtol=0))


@for_all_joints(coupled_rows)
def turned_rows(model, loop, q, qd, axes):
    """Constraints of one loop, with the rows that hold a point written along other axes.

    Args:
        model: the mechanism.
        loop: one of its loops.
        q: position variables, (nq,).
        qd: velocity variables, (nv,).
        axes: one of ``AXES``, or None to leave the rows as they are.
    """
    if axes is None or not holds_a_point(loop.joint):
        return loop_rows(model, loop, q, qd)
    root = loop_root(model, loop.predecessor, loop.successor)
    p = _tip(model, root, loop.predecessor, loop.predecessor_placement, q, qd)
    s = _tip(model, root, loop.successor, loop.successor_placement, q, qd)
    E_J, one = s.X.E @ p.X.E.T, identity3()
    to_axes = {  # from the root, the predecessor and the successor
        "root": (one, p.X.E.T, s.X.E.T),
        "predecessor": (p.X.E, one, E_J.T),
        "successor": (s.X.E, E_J, one),
    }
    R, R_p, R_s = to_axes[axes]
    about, M = _moments(loop.joint)
    n = len(about)

    K = np.zeros((n + 3, model.nv), model.scalar_type(q))
    for tip, E, R_tip, sign in ((p, E_J, R_p, -1), (s, one, R_s, 1)):
        for j, J in tip.J.items():
            K[:, model.v_slice[j]] = np.vstack([M @ (E @ J.angular), R_tip @ J.linear]) * sign
    w_p, w_s = E_J @ p.v.angular, s.v.angular
    turning = s.a.angular - E_J @ p.a.angular + cross(w_s, w_p)
    moving = R_s @ _point_acceleration(s) - R_p @ _point_acceleration(p)
    return LoopConstraints(
        K,
        -np.concatenate([M @ turning, moving]),
        np.concatenate([loop.joint.loop_error(s.X @ p.X.inverse())[about], R @ (s.X.r - p.X.r)]),
        np.concatenate([M @ (w_s - w_p), R_s @ s.v.linear - R_p @ p.v.linear]),
    )


@for_all_joints()
def closure_error(model, loop, q):
    """Closure errors of a loop, and a number that is positive where the joint is nearly closed.

    They come without further operations where the constraints themselves are computed.
    """
    root = loop_root(model, loop.predecessor, loop.successor)
    p = _tip(model, root, loop.predecessor, loop.predecessor_placement, q, model.zero_velocity)
    s = _tip(model, root, loop.successor, loop.successor_placement, q, model.zero_velocity)
    X_J = s.X @ p.X.inverse()
    error, alignment = loop.joint.loop_error(X_J), loop.joint.loop_alignment(X_J)
    if not holds_a_point(loop.joint):
        return error, alignment
    return np.concatenate([error[_moments(loop.joint)[0]], s.X.r - p.X.r]), alignment


def _moments(joint):
    """Rows of a joint's ``T`` that are moments, and their directions, (n, 3)."""
    T = joint.constraint_subspace(joint.neutral()).angular.T
    about = [k for k, direction in enumerate(T) if np.any(direction)]
    return about, T[about]


def _tip(model, root, body, placement, q, qd):
    """Transform, velocity, acceleration and columns of a frame, relative to body ``root``."""
    X, v, a, J = model.identity_transform, model.zero_motion, model.zero_motion, {}
    for i in (i for i in model.support[body] if i not in model.support[root]):
        X_J, S, v_J, c_J = model.jcalc(i, q, qd)
        X_i = X_J @ model.tree_transform[i]
        v = X_i @ v + v_J
        a = X_i @ a + c_J + crm(v, v_J)
        J = {j: X_i @ column for j, column in J.items()} | {i: S}
        X = X_i @ X
    to = snap(placement)
    return _Tip(to @ X, to @ v, to @ a, {j: to @ column for j, column in J.items()})


def _point_acceleration(tip):
    """Classical acceleration of the point at the origin of a frame."""
    return tip.a.linear + cross(tip.v.angular, tip.v.linear)
