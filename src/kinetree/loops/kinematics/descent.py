"""Closing loops step by step: damped Gauss–Newton steps on the configuration manifold, batched.

Each step minimises ``|e + J dq|² + mu |dq|²``. The damping is proportional to the error and adapts
to what steps achieve. Near a solution it vanishes fast enough for quadratic convergence, also where
constraints are redundant; where they become dependent, at a singularity, it keeps steps short (see
J. Fan and Y. Yuan, "On the quadratic convergence of the Levenberg–Marquardt method", 2005).
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.rank import counting_part, scaling
from kinetree.loops.kinematics.constraint import closing
from kinetree.loops.kinematics.space import space_of
from kinetree.model.limits import position_index

_FIRST, _LESS, _MORE = 0.1, 0.2, 4.0  # damping, and its factors after a step that succeeds or fails
_LEAST, _MOST = 1e-6, 1e10
_NEAR = 0.1  # error of configurations in which it is decided which constraints count
_ROUNDING = 1e-15  # damping that rounding needs, relative to the squares of the matrix


class Descent(NamedTuple):
    """Where the steps ended, for each of n starts."""

    q: np.ndarray
    """Configurations, (n, nq)."""
    error: np.ndarray
    """Size of the closure error [rad, or fraction of the size of a loop], (n,)."""
    steps: np.ndarray
    """Number of steps that were taken, (n,)."""


class DescentBounds(NamedTuple):
    """Bounds of the position variables, (nq,), and the position variable of each velocity."""

    lower: np.ndarray
    upper: np.ndarray
    q_of_v: np.ndarray
    """-1 where the velocity is not the rate of one variable, (nv,)."""


def smallest_error(model) -> float:
    """Scaled closure error that rounding leaves anywhere [rad, or fraction of a loop's size]."""
    return 64 * np.finfo(float).eps * scaling(model).rounding


def descend(model, q, *, B=None, free=None, limits=None, tolerance, iterations) -> Descent:
    """``Descent`` from configurations (n, nq) to closed loops, by damped Newton steps.

    Constraints that are nearly redundant are left alone (see ``algorithms.closed.rank``): they stay
    open up to their misalignment.

    Args:
        model: the mechanism.
        q: starts, (n, nq).
        B: metric in which steps are short, see ``metric``; None for that of ``scaling``.
        free: which velocity variables may move, (nv,); None for all.
        limits: bounds that no step exceeds; None for none.
        tolerance: error [rad, or fraction of the size of a loop] at which a start is done; one more
            step is then taken.
        iterations: most steps to take.
    """
    scale, n = scaling(model), len(q)
    B = np.diag(scale.columns) if B is None else B
    B = np.broadcast_to(B if free is None else B * np.asarray(free)[:, None], (n, *B.shape[-2:]))
    tolerance = max(tolerance, smallest_error(model))
    found = _descend(model, q, B, limits, tolerance, iterations)
    left = (found.error > tolerance) & (found.error <= scale.alignment_tolerance)
    if np.any(left) and not scale.policy.is_known and scale.policy.misalignment:
        found = _descend(model, q, B, limits, tolerance, iterations)  # now that it is known
    return found


def _descend(model, q, B, limits, tolerance, iterations):
    """``Descent`` by damped Newton steps, without relaxing nearly redundant constraints."""
    n, q, errors = len(q), np.array(q, dtype=float), _Errors(model)
    damping = np.full(n, _FIRST)
    e, J, error = errors.at(q)
    steps = np.zeros(n, dtype=int)
    going, polished = np.arange(n), np.zeros(n, dtype=bool)
    for _ in range(iterations):
        polished |= error <= 0.01 * smallest_error(model)
        smooth = np.all(np.isfinite(J[going]), axis=(1, 2))  # half a turn away it is not
        going = going[~polished[going] & (damping[going] < _MOST) & smooth]
        if not len(going):
            break
        polished[going] = error[going] <= tolerance  # this step is its last
        e_s, J_s, metric = e[going], J[going], B[going]
        if limits is not None:
            downwards = -np.einsum("nij,ni->nj", J_s, e_s)
            metric = metric * _movable(limits, q[going], downwards)[:, :, None]
        dq = np.einsum("nij,nj->ni", metric, _damped_step(J_s @ metric, e_s, damping[going]))
        trial = _move_within(model, q[going], dq, limits)
        e_t, J_t, error_t = errors.at(trial)
        better = np.linalg.norm(e_t, axis=1) < np.linalg.norm(e_s, axis=1)
        damping[going] = np.maximum(damping[going] * np.where(better, _LESS, _MORE), _LEAST)
        steps[going] += 1
        kept = going[better]
        q[kept], e[kept], J[kept] = trial[better], e_t[better], J_t[better]
        error[kept] = error_t[better]
    return Descent(q, error, steps)


class _Errors:
    """Closure errors and their derivatives, in pure numbers, as far as they count."""

    def __init__(self, model):
        self.model, self.units = model, scaling(model)

    def at(self, q):
        """Scaled errors (n, nc), their derivatives (n, nc, nv), and their norms (n,).

        The sizes include what nearly redundant constraints miss beyond their misalignment.
        """
        policy, rows = self.units.policy, self.units.rows
        e, J = (np.array(a, dtype=float) for a in closing(self.model, q))
        e, J = e * rows, J * rows[:, None]
        size = np.linalg.norm(e, axis=1)
        near = (size < _NEAR) & np.all(np.isfinite(J), axis=(1, 2))
        if not np.any(near) or not len(rows) or (policy.is_known and not policy.misalignment):
            return e, J, size
        P = counting_part(J[near] * self.units.columns, self.units)
        if P is None:
            return e, J, size
        counts, gradients = e.copy(), J.copy()
        counts[near], gradients[near] = np.einsum("nij,nj->ni", P, e[near]), P @ J[near]
        rest = np.max(np.abs(e - counts), axis=1, initial=0.0)
        return (
            counts,
            gradients,
            np.linalg.norm(counts, axis=1) + np.maximum(rest - policy.slack, 0),
        )


def limits_of(model) -> DescentBounds | None:
    """``DescentBounds`` of a model's joint positions; None without finite limits."""
    q_of_v = position_index(model)
    counts = np.isin(np.arange(model.nq), q_of_v)
    lower = np.where(counts, model.position_limits.lower, -np.inf)
    upper = np.where(counts, model.position_limits.upper, np.inf)
    none = np.all(np.isinf(lower)) and np.all(np.isinf(upper))
    return None if none else DescentBounds(lower, upper, q_of_v)


def _damped_step(A, e, damping):
    """Levenberg-Marquardt step ``-Aᵀ (A Aᵀ + mu)⁻¹ e`` of many samples."""
    m, k = A.shape[1:]
    At = np.swapaxes(A, 1, 2)
    square = np.einsum("nij,nij->n", A, A) / max(min(m, k), 1)
    mu = square * (damping * np.linalg.norm(e, axis=1) + _ROUNDING) + 1e-300
    mu = mu[:, None, None]
    if m <= k:
        return -(At @ np.linalg.solve(A @ At + mu * np.eye(m), e[:, :, None]))[..., 0]
    return -np.linalg.solve(At @ A + mu * np.eye(k), At @ e[:, :, None])[..., 0]


def _movable(limits, q, direction):
    """Mask (n, nv) of velocities that do not push against a joint limit."""
    k = limits.q_of_v
    at = q[:, k]
    held = ((at <= limits.lower[k]) & (direction < 0)) | ((at >= limits.upper[k]) & (direction > 0))
    return np.where(held & (k >= 0), 0.0, 1.0)


def _move_within(model, q, dq, limits):
    """Configurations after a step ``dq``, clipped to the limits."""
    q = space_of(model).move(q, dq)
    return q if limits is None else np.clip(q, limits.lower, limits.upper)
