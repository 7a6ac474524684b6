"""Contacts with friction, loops, limits and dry joint friction, solved together.

The problem is stated in ``rows``. Methods: ``"newton"`` is fast and exact, and turns to
ADMM where it gets stuck; ``"admm"`` is robust, ``"pgs"`` simple (``sweeps``).
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.contact.complementarity.inputs import mixed_problem, numbers
from kinetree.contact.complementarity.residuals import (
    Certificate,
    MixedEquations,
    Residuals,
    certificate_of,
    cone_certificate,
    residuals,
)
from kinetree.contact.complementarity.rows import LAWS, nearest, newton_matrix, scale
from kinetree.contact.complementarity.sweeps import projected_gauss_seidel
from kinetree.contact.complementarity.traced import in_kernel
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.spelling import did_you_mean

__all__ = ["METHODS", "ConeSolution", "in_kernel", "newton_steps", "solve"]

METHODS = {"newton": 100, "pgs": 2000, "admm": 5000}
"""Names of the methods, and how many iterations each may take by default."""


class ConeSolution(NamedTuple):
    """Forces of a mixed problem, and how good they are.

    Attributes:
        lam: forces, (n,): (normal, tangent, tangent) of each contact, then the other rows.
        w: the motion ``A lam + b`` that they leave, (n,).
        residuals: by how much the laws are missed.
        converged: whether ``residuals.scaled`` is within the tolerance.
        iterations: number of iterations of the method that ended.
        method: name of the method that ended.
        certificate: forces that move nothing while everything moves against them, if there are
            any and no solution was found. They prove that there is none under the convex law; under
            Coulomb's if they have no friction; with friction the contacts jam, and a solution,
            if there is one, slides.
    """

    lam: np.ndarray
    w: np.ndarray
    residuals: Residuals
    converged: bool
    iterations: int
    method: str
    certificate: Certificate | None


def solve(
    A: ArrayLike,
    b: ArrayLike,
    mu: ArrayLike,
    *,
    low: ArrayLike = (),
    high: ArrayLike = (),
    warm: ArrayLike | None = None,
    method: Literal["newton", "pgs", "admm"] = "newton",
    law: Literal["coulomb", "convex"] = "coulomb",
    tolerance: float = 1e-11,
    iterations: int | None = None,
) -> ConeSolution:
    """Contact forces within friction cones and bounds, with the resulting motion ``A lam + b``.

    Args:
        A: inverse inertia that the forces meet, symmetric and positive semidefinite, (n, n).
        b: motion without them, (n,).
        mu: coefficients of friction of the contacts, (c,), which take the first 3 c rows.
        low: lower bounds of the rows that follow, (n - 3 c,), -inf for none.
        high: upper bounds, inf for none.
        warm: forces to start from, such as those of the last step, (n,); zero by default.
        method: one of ``METHODS``.
        law: ``"coulomb"``, or ``"convex"``, whose sliding contacts rise by ``mu |w_t|``.
        tolerance: the largest ``residuals.scaled`` that counts as solved.
        iterations: how many the method may take; those of ``METHODS`` by default.
    """
    problem, lam = _problem(A, b, mu, low, high, warm, law)
    if method not in METHODS:
        raise UnknownNameError(
            f"cones.solve has no method {method!r}; "
            + did_you_mean(method, METHODS, f"there are {', '.join(METHODS)}")
        )
    count = METHODS[method] if iterations is None else iterations
    run = {
        "newton": newton_with_admm,
        "pgs": projected_gauss_seidel,
        "admm": alternating_directions,
    }[method]
    lam, done = run(problem, lam, tolerance, count)
    return _solution(problem, lam, tolerance, done, method)


@dataclass(frozen=True)
class _Problem(MixedEquations):
    """A problem in comparable units, the units, and the problem as it was given beside it."""

    units: Any
    given: tuple

    def is_refuted(self, lam):
        """Whether forces have diverged and a certificate proves that there is no solution."""
        grown = np.max(np.abs(lam), initial=0.0) > 1e3 * np.max(np.abs(self.b), initial=0.0)
        found = cone_certificate(self.A, self.b, self.rows) if grown else None
        if found is None:
            return False
        friction = self.rows.split(found.forces)[0][:, 1:]
        return self.rows.convex or float(np.max(np.abs(friction), initial=0.0)) < 1e-9


def _problem(A, b, mu, low, high, warm, law):
    """Scaled problem of forces in cones and bounds, and the initial forces."""
    if law not in LAWS:
        raise UnknownNameError(f"the friction law must be one of {', '.join(LAWS)}, got {law!r}")
    A, b, rows = mixed_problem(A, b, mu, low, high)
    start = np.zeros(len(b)) if warm is None else numbers(warm, "warm")
    if start.shape != b.shape or not np.all(np.isfinite(start)):
        raise ShapeError(f"warm must be {len(b)} finite numbers, got {start.tolist()}")
    rows = rows._replace(convex=law == "convex")
    inner = scale(A, b, rows)
    return _Problem(*inner, (A, b, rows)), start / inner[3]


def _solution(problem, lam, tolerance, done, method):
    """Solution record of forces with residuals; a certificate if infeasible."""
    A, b, rows = problem.given
    tidy = lam - problem.missing(lam)  # exactly within the cones
    if problem.error(tidy) <= max(problem.error(lam), tolerance):
        lam = tidy
    found = residuals(rows, A, b, problem.units * lam)
    converged, certificate = found.scaled <= tolerance, None
    if not converged:
        proof = cone_certificate(problem.A, problem.b, problem.rows)
        certificate = proof and certificate_of(A, b, problem.units * proof.forces)
    lam = problem.units * lam
    return ConeSolution(lam, A @ lam + b, found, converged, done, method, certificate)


# --- Semismooth Newton, with ADMM where it gets stuck --------------------------------------------
# A step solves the linear equations of the contacts that now stick, slide or are open; it is
# exact once these are right. Redundant contacts make the equations singular: the smallest step is
# taken.

_SHORTEST = 2.0**-5
_RANK = 1e-11
_ROUND = 20  # iterations of ADMM between attempts, at first
_PER_STEP = 50  # iterations of ADMM that a step of Newton's may take on average


def newton_with_admm(problem, lam, tolerance, iterations):
    """Solve by Newton steps, with ADMM where they stall; forces and number of Newton steps.

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
        if problem.is_refuted(run.lam):
            break
        budget, length = budget - length, min(2 * length, 500)
    return best, steps


def newton_steps(
    problem: MixedEquations, lam: ArrayLike, tolerance: float, iterations: int
) -> tuple[Array, int]:
    """Newton steps while errors shrink, plus one after convergence; forces and step count."""
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


# --- Alternating direction method of multipliers (ADMM) ------------------------------------------
# Proximal and over-relaxed; the penalty follows the two residuals. The eigenvectors of ``A`` are
# found once, so that a new penalty costs nothing. De Saxcé's correction is renewed in every
# iteration. It needs no independence of the contacts and no luck with active sets.

_RELAXATION = 1.6
_PROXIMAL = 1e-6
_EVERY = 10  # iterations between looks at the residuals
_TINY = 1e-150


class Alternation:
    """State of the iteration; ``lam`` holds admissible forces."""

    def __init__(self, problem, lam):
        self.problem, self.rows = problem, problem.rows
        self.values, self.vectors = np.linalg.eigh(problem.A)
        largest = max(self.values[-1], _TINY)
        self.penalty = np.sqrt(largest * max(self.values[0], 1e-6 * largest))
        self.x, self.lam = lam, nearest(self.rows, lam)
        w = problem.A @ self.lam + problem.b
        self.y = w + self._correction(w)

    def advance(self, iterations=_EVERY):
        """Run some ADMM iterations, then adapt the penalty to the residuals."""
        before = self.lam
        for _ in range(iterations):
            before, self.lam = self.lam, self._next()
        primal = np.max(np.abs(self.x - self.lam)) / max(np.max(np.abs(self.lam)), _TINY)
        dual = self.penalty * np.max(np.abs(self.lam - before))
        dual = dual / max(np.max(np.abs(self.y)), _TINY)
        ratio = np.sqrt(max(primal, _TINY) / max(dual, _TINY))
        if not 0.2 < ratio < 5 and max(primal, dual) > 1e-15:
            self.penalty *= min(max(ratio, 0.1), 10.0)

    def _next(self):
        """Forces after one iteration of the alternating direction method of multipliers."""
        penalty, lam, y = self.penalty, self.lam, self.y
        known = y - self.problem.b - self._correction(y) + penalty * lam + _PROXIMAL * self.x
        known = (self.vectors.T @ known) / (self.values + penalty + _PROXIMAL)
        self.x = self.vectors @ known
        relaxed = _RELAXATION * self.x + (1 - _RELAXATION) * lam
        lam = nearest(self.rows, relaxed - y / penalty)
        self.y = y + penalty * (lam - relaxed)
        return lam

    def _correction(self, w):
        """De Saxcé correction (mu |w_t|, 0, 0) of every contact; zero for the convex law."""
        out, contacts = np.zeros(self.rows.size), self.rows.split(w)[0]
        if not self.rows.convex:
            out[: contacts.size : 3] = self.rows.mu * np.hypot(contacts[:, 1], contacts[:, 2])
        return out


def alternating_directions(problem, lam, tolerance, iterations):
    """Solve a contact problem by ADMM alone; forces and number of iterations."""
    run = Alternation(problem, lam)
    for k in range(0, iterations, _EVERY):
        if problem.error(run.lam) <= tolerance or (k % 200 == 190 and problem.is_refuted(run.lam)):
            return run.lam, k
        run.advance()
    return run.lam, iterations


guard_module(__name__)
