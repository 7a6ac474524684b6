"""Attempts and restarts over a batch of targets: the part of the iteration that is host code.

An attempt alternates between compiled iterations and a look at the results. Targets that have been
reached drop out. Where the error no longer gets smaller the arm has come to rest in a local
minimum, and leaps out of it: joints that press against a limit go to the other half of their range;
where none does, as in a stretched arm, all joints bend by large fixed angles. Leaps use no random
numbers, and no target knows of others: results do not depend on what else is in the batch.
"""

from dataclasses import dataclass

import numpy as np

from kinetree.ik.problem import FIRST_DAMPING, STEPS

__all__ = ["Found", "attempt", "search"]

_REST = 0.9  # at rest: the error after some iterations, relative to before
_ACROSS = 0.5  # of the way to the opposite limit, seen from the middle
_BEND = 2.0  # size of a bend: radians, or typical lengths


@dataclass(eq=False)
class Found:
    """The best configurations so far, one row for each target.

    Attributes:
        q: configurations, (n, nq).
        cost: squares of the scaled errors, (n,).
        error: norms of the errors [m, rad], (n,).
        iterations: how many there were, (n,).
        attempts: number of the attempt that ``q`` comes from, (n,).
        wide: whether to use the code for batches, even for one target.
    """

    q: np.ndarray
    cost: np.ndarray
    error: np.ndarray
    iterations: np.ndarray
    attempts: np.ndarray
    wide: bool

    @classmethod
    def nothing(cls, q, wide):
        """The configurations before any iteration."""
        n = len(q)
        worst, none = np.full(n, np.inf), np.zeros(n, dtype=int)
        return cls(q.copy(), worst, worst.copy(), none, none.copy(), wide)

    def improve(self, rows, q, cost, error, attempt=None):
        """Take over what is better, found in this attempt or still in the same."""
        better = cost < self.cost[rows]
        rows = rows[better]
        self.q[rows], self.cost[rows], self.error[rows] = q[better], cost[better], error[better]
        if attempt is not None:
            self.attempts[rows] = attempt


def search(problem, q, target, limits, restarts, seed, *, iterations, tolerance, wide) -> Found:
    """One attempt from ``q``, and further ones from random configurations where it failed.

    Args:
        problem: the tasks.
        q: first configurations, (n, nq).
        target: numbers of the targets, (n, K).
        limits: ``Limits``.
        restarts: number of further attempts.
        seed: for the random configurations, which are the same for all targets.
        iterations: number in one attempt.
        tolerance: error at which a target counts as reached.
        wide: whether to use the code for batches, even for one target.
    """
    found, rng = Found.nothing(q, wide), np.random.default_rng(seed)
    rows = np.arange(len(q))
    for number in range(restarts + 1):
        if not len(rows):
            break
        start = q[rows]
        if number:
            drawn = problem.model.random_configuration(rng)
            start[:, problem.q_moving] = drawn[problem.q_moving]
        attempt(problem, found, rows, start, target, limits, iterations, tolerance, number)
        rows = rows[found.error[rows] >= tolerance]
    return found


def attempt(problem, found, rows, q, target, limits, iterations, tolerance, number=0, leaping=True):
    """Iterate from ``q`` for the targets ``rows``, and improve what has been found."""
    q, damping = limits.clip(q), np.full(len(rows), FIRST_DAMPING)
    before, leaps = np.full(len(rows), np.inf), np.zeros(len(rows), dtype=int)
    for _ in range(-(-iterations // STEPS)):
        q, state, gradient = problem.run(
            "descend", q, target[rows], limits.lower, limits.upper, damping, wide=found.wide
        )
        damping, cost, square = state.T.copy()
        error = np.sqrt(square)
        found.iterations[rows] += STEPS
        found.improve(rows, q, cost, error, number)
        left = error >= tolerance
        if not np.any(left):
            return
        rows, q, damping, cost = rows[left], q[left], damping[left], cost[left]
        gradient, before, leaps = gradient[left], before[left], leaps[left]
        rest = cost > _REST * before
        before = cost
        if leaping and np.any(rest):
            q[rest] = _leap(problem, limits, q[rest], gradient[rest], leaps[rest], found.wide)
            damping[rest], before[rest] = FIRST_DAMPING, np.inf
            leaps[rest] += 1


def _leap(problem, limits, q, gradient, leaps, wide):
    """Configurations away from a local minimum, after so many leaps before."""
    held = limits.holding(problem, q, gradient)
    across = limits.middle - _ACROSS * (q - limits.middle)
    bent = moved(problem, q, _BEND * problem.bends[leaps % len(problem.bends)], wide)
    return limits.clip(np.where(held, across, np.where(held.any(1, keepdims=True), q, bent)))


def moved(problem, q, step, wide):
    """``q`` after the scaled step of what moves, (n, nq)."""
    k = problem.q_of_v[problem.v_moving]
    if np.any(k < 0):
        return problem.run("shift", q, step, wide=wide)
    q = q.copy()
    q[:, k] += step * problem.v_scale[problem.v_moving]
    return q
