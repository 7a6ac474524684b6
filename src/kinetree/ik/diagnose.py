"""Why a search failed: at rest or not, held by limits or not, in a singular configuration or not.

Host code on the few targets that failed. It first goes to the bottom of the local minimum in which
the search ended, by Newton's method with the true curvature of the error: where a target is out of
reach the error stays large, and the curvature that damped least squares leaves out matters.
"""

import numpy as np

from kinetree.ik.limits import limits_of
from kinetree.ik.search import moved, search

__all__ = ["reasons"]

_NEWTON_STEPS = 60
_SMALL = 1e-8  # radius of steps that are none
_AT_REST = 1e-6  # gradient of the error, relative to the error, at which a search is at rest
_LOST = 1e-6  # singular value, relative to the largest, at which a direction is lost
_DOWNWARD = -1e-4  # curvature below which an error gets smaller both ways
_SLACK = 1e-6  # how close to a limit a joint is at it [rad or m]
_SHIFT = 1e-4  # of a joint, for differences of the gradient


def reasons(problem, found, rows, target, limits, *, iterations, tolerance, wide):
    """The reason for every failed target ``rows``, an array of words."""
    target = target[rows]
    _descend_fully(problem, found, rows, target, limits)
    q = found.q[rows]
    e, J, gradient = _state(problem, q, target, wide)
    _, free = _held(problem, limits, q, gradient)
    resting = _is_resting(e, J, gradient * free)
    curvature = np.linalg.eigvalsh(_curvature(problem, q, target, free, wide))[:, 0]
    downward = curvature < _DOWNWARD * np.linalg.norm(J, axis=(1, 2)) ** 2
    singular = np.where(resting, downward, _rank_lost(J * free[:, None]))
    words = np.where(singular, "singular", np.where(resting, "out of reach", "iterations"))
    held = np.flatnonzero(~np.all(free, axis=1))
    if len(held):
        options = {"iterations": iterations, "tolerance": tolerance, "wide": wide}
        open_ = limits_of(problem, False)
        without = search(problem, q[held], target[held], open_, 2, 0, **options)
        words[held[without.error < tolerance]] = "limits"
    words[found.error[rows] < tolerance] = "converged"
    return words


def _descend_fully(problem, found, rows, target, limits):
    """Improve what was found, within the same local minimum; saddles are not left."""
    wide, radius = found.wide, np.ones(len(rows))
    for _ in range(_NEWTON_STEPS):
        e, J, gradient = _state(problem, found.q[rows], target, wide)
        held, free = _held(problem, limits, found.q[rows], gradient)
        going = ~_is_resting(e, J, gradient * free) & (radius > _SMALL)
        if not np.any(going):
            return
        rows, target, radius = rows[going], target[going], radius[going]
        e, gradient, held, free = e[going], gradient[going], held[going], free[going]
        q = found.q[rows]
        step = _newton_step(_curvature(problem, q, target, free, wide), gradient * free)
        size = np.linalg.norm(step, axis=1)
        step *= np.minimum(1, radius / (size + 1e-300))[:, None]
        trial = limits.clip(moved(problem, q, step, wide))
        trial = np.where(held, limits.nearest(q), trial)
        e_t, _, true = problem.run("equations", trial, target, wide=wide)
        cost = np.einsum("ni,ni->n", e_t, e_t)
        better = cost < np.einsum("ni,ni->n", e, e)
        radius = np.where(better, np.minimum(2 * radius, 1), np.minimum(size, radius) / 4)
        found.improve(rows, trial, cost, np.sqrt(true))
        found.iterations[rows] += 1


def _is_resting(e, J, gradient):
    """Whether the error does not change, to first order, whatever may move."""
    size = np.linalg.norm(J, axis=(1, 2)) * np.linalg.norm(e, axis=1)
    return np.linalg.norm(gradient, axis=1) <= _AT_REST * size


def _newton_step(H, gradient):
    """Down the gradient, by the size of the curvature in every direction."""
    values, vectors = np.linalg.eigh(H)
    size = np.abs(values)
    size = np.maximum(size, 1e-6 * size.max(axis=1, keepdims=True) + 1e-12)
    along = np.einsum("nij,ni->nj", vectors, gradient) / size
    return np.einsum("nij,nj->ni", vectors, along)


def _rank_lost(J):
    """Whether the tasks are not independent, to first order."""
    values = np.linalg.svd(J, compute_uv=False)
    return values[:, -1] <= _LOST * values[:, 0]


def _state(problem, q, target, wide):
    """Scaled errors, Jacobians and gradients."""
    e, J, _ = problem.run("equations", q, target, wide=wide)
    return e, J, np.einsum("nij,ni->nj", J, e)


def _curvature(problem, q, target, free, wide):
    """Second derivatives of half the squared error, over the joints that are free."""
    n, count = free.shape
    steps = _SHIFT * np.tile(np.eye(count), (n, 1))
    q, target = np.repeat(q, count, axis=0), np.repeat(target, count, axis=0)
    ahead, behind = (
        _state(problem, moved(problem, q, sign * steps, wide), target, wide)[2] for sign in (1, -1)
    )
    H = ((behind - ahead) / (2 * _SHIFT)).reshape(n, count, count)  # the derivative is -Jᵀ e
    return (H + np.swapaxes(H, 1, 2)) / 2 * free[:, :, None] * free[:, None, :]


def _held(problem, limits, q, gradient):
    """Which position variables a limit holds back, (n, nq); which velocities may move, (n, count).

    What is almost at its limit counts as there, lest steps become as short as what is left.
    """
    full = np.zeros((len(gradient), problem.model.nv))
    full[:, problem.v_moving] = gradient
    held = limits.holding(problem, q, full, slack=_SLACK)
    k = problem.q_of_v[problem.v_moving]
    return held, ~(held[:, k] & (k >= 0))
