"""Semismooth Newton on ``lam = obeyed(lam)``, with alternating directions where it gets stuck.

A step solves the linear equations of the contacts that now stick, slide or are open; it is exact
once these are right. Redundant contacts make the equations singular: the smallest step is taken.
"""

import numpy as np

from kinetree.contact.complementarity.admm import Alternation
from kinetree.contact.complementarity.rows import newton_matrix

__all__ = ["newton_steps", "solve"]

_SHORTEST = 2.0**-5
_RANK = 1e-11
_ROUND = 20  # iterations of ADMM between attempts, at first
_PER_STEP = 50  # iterations of ADMM that a step of Newton's may take on average


def solve(problem, lam, tolerance, iterations):
    """Newton steps until the error is small enough: forces, and number of steps.

    ``iterations`` counts steps of Newton's method; ADMM brings it to where they succeed.
    """
    best, steps = newton_steps(problem, lam, tolerance, iterations)
    if problem.error(best) <= tolerance or steps >= iterations:
        return best, steps
    run, length, budget = Alternation(problem, best), _ROUND, _PER_STEP * iterations
    while problem.error(best) > tolerance and min(iterations - steps, budget) > 0:
        run.advance(length)
        lam, more = newton_steps(problem, run.lam, tolerance, iterations - steps)
        best, steps = min(best, run.lam, lam, key=problem.error), steps + more
        if problem.refuted(run.lam):
            break
        budget, length = budget - length, min(2 * length, 500)
    return best, steps


def newton_steps(problem, lam, tolerance, iterations):
    """Steps as long as the errors shrink; one more than it takes, as it is so cheap."""
    merit = problem.merit(lam)
    for k in range(iterations):
        if merit == 0:
            return lam, k
        was_good = problem.error(lam) <= tolerance
        G = newton_matrix(problem.rows, problem.A, lam, problem.A @ lam + problem.b)
        step = np.linalg.lstsq(G, problem.missing(lam), rcond=_RANK)[0]
        length = 1.0
        while (new := problem.merit(lam - length * step)) > (1 - 0.1 * length) * merit:
            length /= 2
            if length < _SHORTEST or was_good:
                return lam, k + 1
        lam, merit = lam - length * step, new
        if was_good:
            return lam, k + 1
    return lam, iterations
