"""Attempts and restarts over a batch of targets: the part of the iteration in Python.

An attempt alternates between compiled iterations and a look at the results. Targets that have been
reached drop out. Where the error no longer gets smaller the arm has come to rest in a local
minimum, and leaps out of it: joints that press against a limit go to the other half of their range;
where none does, as in a stretched arm, all joints bend by large fixed angles. Leaps use no random
numbers, and targets are independent: results do not depend on what else is in the batch.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.codegen.progress import reporter
from kinetree.ik import on_arrays
from kinetree.ik.problem import FIRST_DAMPING, STEPS
from kinetree.ik.tasks import limits_of
from kinetree.loops.kinematics import descent
from kinetree.loops.kinematics.loop_joints import limit_distances
from kinetree.loops.kinematics.projection import POSITION_TOLERANCE

_REST = 0.9  # at rest: the error after some iterations, relative to before
_ACROSS = 0.5  # of the way to the opposite limit, from the middle
_AT_ONCE = 64
"""Attempts that run side by side, where few targets are left."""
_MANY = 200  # targets whose search may take so long that a bar shows how far it is
_BEND = 2.0  # size of a bend: radians, or typical lengths
CLOSED = 1e-10
"""Closure error [rad, or fraction of the size of a loop] with which loops count as closed."""
_SLACK_OF_LOOPS = 1e-9  # beyond the limit of a loop joint [m or rad]


class Request(NamedTuple):
    """Tasks with limits, and the effort that their targets are worth.

    Attributes:
        problem: the tasks.
        limits: ``Limits``.
        iterations: number in one attempt.
        tolerance: error at which a target counts as reached.
        wide: whether to use the code for batches, even for one target.
    """

    problem: Any
    limits: Any
    iterations: int
    tolerance: float
    wide: bool


@dataclass(eq=False)
class BestConfigurations:
    """The best configurations so far, one row for each target."""

    q: np.ndarray
    """Configurations, (n, nq)."""
    cost: np.ndarray
    """Squares of the scaled errors, (n,)."""
    error: np.ndarray
    """Norms of the errors [m, rad], (n,); larger than the tolerance while loops are open."""
    iterations: np.ndarray
    """How many there were, (n,)."""
    attempts: np.ndarray
    """Number of the attempt that ``q`` comes from, (n,)."""
    wide: bool
    """Whether to use the code for batches, even for one target."""

    @classmethod
    def nothing(cls, q, wide):
        """Configurations before any iteration, with infinite costs."""
        n = len(q)
        worst, none = np.full(n, np.inf), np.zeros(n, dtype=int)
        return cls(q.copy(), worst, worst.copy(), none, none.copy(), wide)

    def improve(self, rows, q, cost, error, attempt=None):
        """Keep better configurations found in these attempts."""
        better = cost < self.cost[rows]
        rows = rows[better]
        self.q[rows], self.cost[rows], self.error[rows] = q[better], cost[better], error[better]
        if attempt is not None:
            self.attempts[rows] = attempt if np.ndim(attempt) == 0 else attempt[better]


def search(request: Request, q, target, restarts, seed) -> BestConfigurations:
    """Search from ``q``, then from random configurations where that failed.

    Args:
        request: tasks, limits and effort.
        q: first configurations, (n, nq).
        target: numbers of the targets, (n, K).
        restarts: number of further attempts.
        seed: for the random configurations, which are the same for all targets.
    """
    found, rng = BestConfigurations.nothing(q, request.wide), np.random.default_rng(seed)
    rows, problem, tolerance = np.arange(len(q)), request.problem, request.tolerance
    progress, number = None if len(q) > _MANY else False, 0
    with reporter(progress, restarts + 1, 0, f"attempts at {len(q)} targets") as advance:
        while len(rows) and number <= restarts:
            together = _AT_ONCE // len(rows) if number else 1
            count = max(1, min(together, restarts + 1 - number))
            if count > 1:
                drawn = [problem.model.random_configuration(rng) for _ in range(count)]
                _attempts(request, found, rows, q, target, number, drawn)
            else:
                start = q[rows]
                if number:
                    drawn = problem.model.random_configuration(rng)
                    start[:, problem.q_moving] = drawn[problem.q_moving]
                attempt(request, found, rows, start, target, number)
                _discard(problem, found, rows[found.error[rows] < tolerance], request.limits)
            rows = rows[found.error[rows] >= tolerance]
            number += count
            advance(count)
    return found


def _attempts(request, found, rows, q, target, first, drawn):
    """Several attempts at few targets side by side, from ``drawn`` configurations.

    As if one came after the other: of those that succeed the first counts.
    """
    problem, count, n = request.problem, len(drawn), len(rows)
    start = np.repeat(q[rows], count, axis=0)
    start[:, problem.q_moving] = np.tile(np.array(drawn), (n, 1))[:, problem.q_moving]
    each = BestConfigurations.nothing(start, wide=True)
    every = np.arange(n * count)
    attempt(request, each, every, start, np.repeat(target[rows], count, axis=0))
    _discard(problem, each, every[each.error < request.tolerance], request.limits)
    reached = (each.error < request.tolerance).reshape(n, count)
    first_reached = np.argmax(reached, axis=1)
    least = np.argmin(each.cost.reshape(n, count), axis=1)
    best = np.where(reached.any(axis=1), first_reached, least)
    done = np.where(reached.any(axis=1), best + 1, count)
    tried = np.arange(count) < done[:, None]
    found.iterations[rows] += np.sum(each.iterations.reshape(n, count) * tried, axis=1)
    k = np.arange(n) * count + best
    found.improve(rows, each.q[k], each.cost[k], each.error[k], first + best)


def attempt(request: Request, found, rows, q, target, number=0):
    """Iterate from ``q`` for the targets ``rows``, and keep improvements."""
    problem, limits, iterations, tolerance, _ = request
    q, damping = limits.clip(q), np.full(len(rows), FIRST_DAMPING)
    before, leaps = np.full(len(rows), np.inf), np.zeros(len(rows), dtype=int)
    for _ in range(-(-iterations // STEPS)):
        if on_arrays.serve(problem, len(rows)):
            q, state, gradient = on_arrays.descend(
                problem, q, target[rows], limits, damping, wide=found.wide
            )
        else:
            given = q, target[rows], limits.lower, limits.upper, damping
            q, state, gradient = problem.run("descend", *given, wide=found.wide)
        damping, cost, *squares = state.T.copy()
        error = errors(squares, tolerance)
        found.iterations[rows] += STEPS
        found.improve(rows, q, cost, error, number)
        left = error >= tolerance
        if not np.any(left):
            return
        rows, q, damping, cost = rows[left], q[left], damping[left], cost[left]
        gradient, before, leaps = gradient[left], before[left], leaps[left]
        rest = cost > _REST * before
        before = cost
        if np.any(rest):
            q[rest] = _leap(problem, limits, q[rest], gradient[rest], leaps[rest], found.wide)
            damping[rest], before[rest] = FIRST_DAMPING, np.inf
            leaps[rest] += 1


def errors(squares, tolerance) -> np.ndarray:
    """Norms of the task errors, (n,); above the tolerance where a loop is open."""
    task, *gap = squares
    return np.sqrt(np.maximum(task, gap[0] * (tolerance / CLOSED) ** 2) if gap else task)


def _discard(problem, found, rows, limits):
    """Reject solutions whose loop joints are beyond their limits."""
    if not limits.are_of_model or not any(loop.limits is not None for loop in problem.loops):
        return
    beyond = np.zeros(len(rows), dtype=bool)
    for sides in limit_distances(problem.model, found.q[rows]).values():
        beyond |= np.any(np.minimum(*sides) < -_SLACK_OF_LOOPS, axis=-1)
    found.cost[rows[beyond]] = found.error[rows[beyond]] = np.inf


def _leap(problem, limits, q, gradient, leaps, wide) -> np.ndarray:
    """Configurations moved away from a local minimum; varied by the count ``leaps``."""
    held = limits.active(problem, q, gradient)
    across = limits.middle - _ACROSS * (q - limits.middle)
    bent = move(problem, q, _BEND * problem.bends[leaps % len(problem.bends)], wide)
    return limits.clip(np.where(held, across, np.where(held.any(1, keepdims=True), q, bent)))


def move(problem, q, step, wide) -> np.ndarray:
    """Configurations after a scaled step of the moving variables, (n, nq)."""
    k = problem.q_of_v[problem.v_moving]
    if np.any(k < 0):
        return problem.run("shift", q, step, wide=wide)
    q = q.copy()
    q[:, k] += step * problem.v_scale[problem.v_moving]
    return q


# --- Posture: motion in the null space of the tasks ----------------------------------------------

_ROUNDS = 100
_SMALLEST_GAIN = 1e-6
_SETTLED = 1e-9  # progress of the distance, relative to itself


def settle(request: Request, found, target, posture):
    """Move solutions toward the posture, within the tasks' null space.

    Each round glides for some steps, then restores the tasks; it counts if they are fulfilled and
    the posture is nearer, else it is taken again with steps a quarter of the size.
    """
    problem, limits, _, tolerance, _ = request
    rows, wide = np.flatnonzero(found.error < tolerance), found.wide
    if not len(rows):
        return
    idle = problem.q_idle
    found.q[np.ix_(rows, idle)] = limits.clip(posture[rows])[:, idle]
    brief = request._replace(iterations=STEPS)
    gain = np.ones(len(rows))
    before = problem.run("distance", found.q[rows], posture[rows], wide=wide)
    for _ in range(_ROUNDS):
        q, there = found.q[rows], posture[rows]
        q = problem.run(
            "glide", q, target[rows], limits.lower, limits.upper, there, gain, wide=wide
        )
        usable = np.all(np.isfinite(q), axis=1)
        q = np.where(usable[:, None], q, found.q[rows])
        restored = BestConfigurations.nothing(q, wide)
        attempt(brief, restored, np.arange(len(rows)), q, target[rows])
        after = problem.run("distance", restored.q, there, wide=wide)
        better = usable & (restored.error < tolerance) & (after < before)
        found.q[rows[better]] = restored.q[better]
        found.error[rows[better]] = restored.error[better]
        found.iterations[rows] += 2 * STEPS
        settled = better & (before - after <= _SETTLED * before)
        gain = np.where(better, np.minimum(2 * gain, 1), gain / 4)
        before = np.where(better, after, before)
        going = ~settled & (gain > _SMALLEST_GAIN)
        rows, gain, before = rows[going], gain[going], before[going]
        if not len(rows):
            return


# --- Reasons of failure: limits, singular configuration, out of reach ----------------------------
# In Python, for the few targets that failed. It first goes to the bottom of the local minimum in
# which the search ended, by Newton's method with the true curvature of the error: where a target
# is out of reach the error stays large, and the curvature that damped least squares leaves out
# matters.

_NEWTON_STEPS = 60
_STARTS = 20  # configurations from which loops are closed, before they are called open
_SMALL = 1e-8  # radius below which steps are negligible
_AT_REST = 1e-6  # gradient of the error, relative to the error, at which a search is at rest
_GAIN = 1e-4  # part of the error by which a step of 1 rad must reduce it, else it is at rest, too
_LOST = 1e-6  # singular value, relative to the largest, at which a direction is lost
_DOWNWARD = -1e-4  # curvature below which an error gets smaller both ways
_SLACK = 1e-6  # how close to a limit a joint is at it [rad or m]
_FLAT = 1e-6  # curvature, relative to the largest, that steps assume at least
_STEEP = 1e-4  # curvature, relative to the largest, across a valley rather than along it
_SHIFT = 1e-4  # of a joint, for differences of the gradient


def reasons(request: Request, found, rows, target):
    """Reason for every failed target, an array of texts."""
    problem, limits, _, tolerance, wide = request
    target = target[rows]
    closed = _close(problem, found, rows, target, limits)
    inside = np.isfinite(found.error[rows])  # not beyond the limits of a loop joint
    _descend_fully(problem, found, rows[inside], target[inside], limits)
    q = found.q[rows]
    state, _, free = _state(problem, limits, q, target, wide)
    resting = _is_resting(problem, state, free) | _is_resting(problem, state, free, _GAIN)
    curvature = np.linalg.eigvalsh(_curvature(problem, q, target, state, free, wide))[:, 0]
    downward = curvature < _DOWNWARD * np.linalg.norm(state.J, axis=(1, 2)) ** 2
    singular = np.where(resting, downward, _rank_lost(problem, state.J * free[:, None]))
    words = np.where(singular, "singular", np.where(resting, "out of reach", "iterations"))
    held = np.flatnonzero(~np.all(free, axis=1) | np.isinf(found.error[rows]))
    if len(held):
        unlimited = request._replace(limits=limits_of(problem, False))
        without = search(unlimited, q[held], target[held], 2, 0)
        words[held[without.error < tolerance]] = "limits"
    words[~closed] = "open loops"
    words[found.error[rows] < tolerance] = "converged"
    return words


def _close(problem, found, rows, target, limits) -> np.ndarray:
    """Close the loops of found configurations and measure task errors; mask of the closed."""
    closed, rng = np.ones(len(rows), dtype=bool), np.random.default_rng(0)
    if not problem.closing_rows:
        return closed
    for number in range(_STARTS):
        left = np.flatnonzero(~closed) if number else np.arange(len(rows))
        q = found.q[rows[left]]
        if number:
            q[:, problem.q_moving] = problem.model.random_configuration(rng)[problem.q_moving]
        q, closed[left] = _close_loops(problem, q, limits)
        found.q[rows[left[closed[left]]]] = q[closed[left]]
        if np.all(closed):
            break
    e, _, squares = problem.run("equations", found.q[rows], target, wide=found.wide)
    never = np.isinf(found.error[rows]) | ~closed
    found.cost[rows] = np.sum(e[:, : problem.task_rows] ** 2, axis=1)
    found.error[rows] = np.where(never, np.inf, np.sqrt(squares[:, 0]))
    return closed


def _close_loops(problem, q, limits) -> tuple[np.ndarray, np.ndarray]:
    """Configurations near ``q`` with closed loops, and mask of the successes."""
    bounds = descent.DescentBounds(limits.lower, limits.upper, problem.q_of_v)
    free = np.isin(np.arange(problem.model.nv), problem.v_moving)
    ended = descent.descend(
        problem.model,
        limits.clip(q),
        free=free,
        limits=bounds,
        tolerance=POSITION_TOLERANCE,
        iterations=100,
    )
    return ended.q, ended.error <= CLOSED


def _descend_fully(problem, found, rows, target, limits):
    """Converge failed searches to their local minimum, without leaving saddles."""
    wide, radius, floor = found.wide, np.ones(len(rows)), np.full(len(rows), _FLAT)
    for _ in range(_NEWTON_STEPS):
        if not len(rows):
            return
        q = found.q[rows]
        state, held, free = _state(problem, limits, q, target, wide)
        going = ~_is_resting(problem, state, free) & (radius > _SMALL)
        if not np.any(going):
            return
        rows, target, radius, floor = rows[going], target[going], radius[going], floor[going]
        q = q[going]
        state, held, free = _State(*(x[going] for x in state)), held[going], free[going]
        axes = np.linalg.eigh(_curvature(problem, q, target, state, free, wide))
        step = _newton_step(axes, state.gradient * free, radius, floor)
        size = np.linalg.norm(step, axis=1)
        trial = limits.clip(move(problem, q, step, wide))
        if not problem.closing_rows:  # a long step along a valley leaves its bottom: back to it
            e, J, _ = problem.run("equations", trial, target, wide=wide)
            back = _newton_step(axes, np.einsum("nij,ni->nj", J, e) * free, radius, floor, _STEEP)
            trial = limits.clip(move(problem, trial, back, wide))
        trial = np.where(held, limits.nearest(q), trial)
        closed = np.ones(len(rows), dtype=bool)
        if problem.closing_rows:
            trial, closed = _close_loops(problem, trial, limits)
        e_t, _, squares = problem.run("equations", trial, target, wide=wide)
        cost = np.sum(e_t[:, : problem.task_rows] ** 2, axis=1)
        cost = np.where(closed, cost, np.inf)
        better = cost < np.sum(state.e[:, : problem.task_rows] ** 2, axis=1)
        radius = np.where(better, np.minimum(2 * radius, 1), np.minimum(size, radius) / 4)
        floor = np.where(better, floor / 4, _FLAT)
        found.improve(rows, trial, cost, np.sqrt(squares[:, 0]))
        found.iterations[rows] += 1


class _State(NamedTuple):
    """Errors and their derivatives, one row for each target."""

    e: np.ndarray
    """Scaled errors of the tasks, and the multipliers of the loops in place of their errors."""
    J: np.ndarray
    """Jacobian of the tasks and of the loops."""
    gradient: np.ndarray
    """``Jᵀ e``: down the error; with multipliers, along closed loops."""


def _is_resting(problem, state, free, gain=None) -> np.ndarray:
    """Whether the error is stationary with respect to all free motions.

    With ``gain``, whether a step of 1 rad or length reduces the error by less than this part.
    """
    m = problem.task_rows
    error = np.linalg.norm(state.e[:, :m], axis=1)
    least = _AT_REST * np.linalg.norm(state.J[:, :m], axis=(1, 2)) if gain is None else gain * error
    return np.linalg.norm(state.gradient * free, axis=1) <= least * error


def _newton_step(axes, gradient, radius, floor, least=0.0) -> np.ndarray:
    """Newton step with absolute curvature, limited to ``radius`` along each eigenvector.

    ``floor`` is the least curvature that is assumed, relative to the largest; axes
    with less than ``least`` of the largest are left out.
    """
    values, vectors = axes
    size, radius = np.abs(values), radius[:, None]
    largest = size.max(axis=1, keepdims=True)
    along = np.einsum("nij,ni->nj", vectors, gradient)
    along /= np.maximum(size, floor[:, None] * largest + 1e-14)
    along = np.clip(along, -radius, radius) * (size >= least * largest)
    return np.einsum("nij,nj->ni", vectors, along)


def _rank_lost(problem, J) -> np.ndarray:
    """Whether the tasks are linearly dependent along closed loops."""
    m, lost = problem.task_rows, []
    for one in J:
        P, rank = _along_loops(one[m:])
        s = np.linalg.svd(one[:m] @ P, compute_uv=False)[: J.shape[2] - rank]
        lost.append(not len(s) or s[-1] <= _LOST * s[0])
    return np.array(lost)


def _along_loops(K) -> tuple[np.ndarray, int]:
    """Projector onto motions that keep loops closed, and the rank of the loops."""
    _, s, V = np.linalg.svd(K, full_matrices=False)
    V = V[s > _LOST * np.max(s, initial=1.0)]
    return np.eye(K.shape[1]) - V.T @ V, len(V)


def _state(problem, limits, q, target, wide) -> tuple[_State, np.ndarray, np.ndarray]:
    """State of tasks and loops, positions held at limits, and mask of free velocities.

    Multipliers of the loops are those that leave the least of the gradient; what a limit holds
    back has no separate one, so they are found twice.
    """
    e, J, _ = problem.run("equations", q, target, wide=wide)
    m = problem.task_rows
    down, K = np.einsum("nij,ni->nj", J[:, :m], e[:, :m]), J[:, m:]
    held, free = _hold_at_limits(problem, limits, q, down)
    mask = np.ones(down.shape)
    for _ in range(2 if K.shape[1] else 0):
        backwards = np.linalg.pinv(np.swapaxes(K * mask[:, None], 1, 2), rcond=_LOST)
        e[:, m:] = -np.einsum("nij,nj->ni", backwards, down * mask)
        held, free = _hold_at_limits(problem, limits, q, np.einsum("nij,ni->nj", J, e))
        mask = free
    return _State(e, J, np.einsum("nij,ni->nj", J, e)), held, free


def _curvature(problem, q, target, state, free, wide) -> np.ndarray:
    """Hessian of half the squared error along closed loops, over free joints.

    Those of the Lagrangian: of the loops, multiplied by what they hold.
    """
    n, count = free.shape
    m = problem.task_rows
    steps = _SHIFT * np.tile(np.eye(count), (n, 1))
    q, target = np.repeat(q, count, axis=0), np.repeat(target, count, axis=0)
    multipliers, gradients = np.repeat(state.e[:, m:], count, axis=0), []
    for sign in (1, -1):
        e, J, _ = problem.run("equations", move(problem, q, sign * steps, wide), target, wide=wide)
        e[:, m:] = multipliers
        gradients.append(np.einsum("nij,ni->nj", J, e))
    H = ((gradients[1] - gradients[0]) / (2 * _SHIFT)).reshape(n, count, count)  # of -Jᵀ e
    H = (H + np.swapaxes(H, 1, 2)) / 2 * free[:, :, None] * free[:, None, :]
    if not problem.closing_rows:
        return H
    P = np.array([_along_loops(K)[0] for K in state.J[:, m:] * free[:, None]])
    return P @ H @ P


def _hold_at_limits(problem, limits, q, gradient) -> tuple[np.ndarray, np.ndarray]:
    """Positions held at a limit, (n, nq), and mask of free velocities, (n, count).

    What is almost at its limit counts as there, lest steps become as short as what is left.
    """
    full = np.zeros((len(gradient), problem.model.nv))
    full[:, problem.v_moving] = gradient
    held = limits.active(problem, q, full, slack=_SLACK)
    k = problem.q_of_v[problem.v_moving]
    return held, ~(held[:, k] & (k >= 0))
