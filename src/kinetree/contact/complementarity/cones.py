"""Contacts with friction, loops, limits and dry joint friction, solved together.

The problem is stated in ``rows``. Methods: ``"newton"`` is fast and exact, and turns to
ADMM where it gets stuck; ``"admm"`` is robust, ``"pgs"`` simple.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.complementarity import admm, gauss_seidel, newton
from kinetree.contact.complementarity.certificates import Certificate, cone_certificate
from kinetree.contact.complementarity.checks import mixed, numbers
from kinetree.contact.complementarity.equations import Equations
from kinetree.contact.complementarity.residuals import Residuals, residuals
from kinetree.contact.complementarity.rows import LAWS, scaled
from kinetree.contact.complementarity.traced import in_kernel
from kinetree.errors import ShapeError, UnknownNameError
from kinetree.spelling import did_you_mean

__all__ = ["METHODS", "ConeSolution", "in_kernel", "solve"]

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
    A, b, mu, *, low=(), high=(), warm=None, method="newton", law="coulomb", tolerance=1e-11,
    iterations=None,
) -> ConeSolution:  # fmt: skip
    """Forces within their cones and bounds, with the motion that goes with them.

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
    run = {"newton": newton.solve, "pgs": gauss_seidel.solve, "admm": admm.solve}[method]
    lam, done = run(problem, lam, tolerance, count)
    return _solution(problem, lam, tolerance, done, method)


@dataclass(frozen=True)
class _Problem(Equations):
    """A problem in comparable units, the units, and the problem as it was given beside it."""

    units: Any
    given: tuple

    def refuted(self, lam):
        """Whether forces have grown so much that it is because there is no solution."""
        grown = np.max(np.abs(lam), initial=0.0) > 1e3 * np.max(np.abs(self.b), initial=0.0)
        found = cone_certificate(self.A, self.b, self.rows, lam) if grown else None
        if found is None:
            return False
        friction = self.rows.split(found.forces)[0][:, 1:]
        return self.rows.convex or float(np.max(np.abs(friction), initial=0.0)) < 1e-9


def _problem(A, b, mu, low, high, warm, law):
    if law not in LAWS:
        raise UnknownNameError(f"the friction law must be one of {', '.join(LAWS)}, got {law!r}")
    A, b, rows = mixed(A, b, mu, low, high)
    start = np.zeros(len(b)) if warm is None else numbers(warm, "warm")
    if start.shape != b.shape or not np.all(np.isfinite(start)):
        raise ShapeError(f"warm must be {len(b)} finite numbers, got {start.tolist()}")
    rows = rows._replace(convex=law == "convex")
    inner = scaled(A, b, rows)
    return _Problem(*inner, (A, b, rows)), start / inner[3]


def _solution(problem, lam, tolerance, done, method):
    A, b, rows = problem.given
    tidy = lam - problem.missing(lam)  # exactly within the cones
    if problem.error(tidy) <= max(problem.error(lam), tolerance):
        lam = tidy
    lam = problem.units * lam
    found = residuals(rows, A, b, lam)
    converged = found.scaled <= tolerance
    certificate = None if converged else cone_certificate(A, b, rows, lam)
    return ConeSolution(lam, A @ lam + b, found, converged, done, method, certificate)
