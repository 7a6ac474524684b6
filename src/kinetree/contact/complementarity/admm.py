"""Alternating directions: the linear system and the cones in turn, with a multiplier between them.

Proximal and over-relaxed; the penalty follows the two residuals. The eigenvectors of ``A`` are
found once, so that a new penalty costs nothing. De Saxcé's correction is renewed in every
iteration. It needs no independence of the contacts and no luck with active sets.
"""

import numpy as np

from kinetree.contact.complementarity.rows import nearest

__all__ = ["Alternation", "solve"]

_RELAXATION = 1.6
_PROXIMAL = 1e-6
_EVERY = 10  # iterations between looks at the residuals
_TINY = 1e-150


class Alternation:
    """The iteration, which can be carried on; ``lam`` holds admissible forces."""

    def __init__(self, problem, lam):
        self.problem, self.rows = problem, problem.rows
        self.values, self.vectors = np.linalg.eigh(problem.A)
        largest = max(self.values[-1], _TINY)
        self.penalty = np.sqrt(largest * max(self.values[0], 1e-6 * largest))
        self.x, self.lam = lam, nearest(self.rows, lam)
        w = problem.A @ self.lam + problem.b
        self.y = w + self._correction(w)

    def advance(self, iterations=_EVERY):
        """Do some iterations, then set the penalty anew."""
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
        penalty, lam, y = self.penalty, self.lam, self.y
        known = y - self.problem.b - self._correction(y) + penalty * lam + _PROXIMAL * self.x
        known = (self.vectors.T @ known) / (self.values + penalty + _PROXIMAL)
        self.x = self.vectors @ known
        relaxed = _RELAXATION * self.x + (1 - _RELAXATION) * lam
        lam = nearest(self.rows, relaxed - y / penalty)
        self.y = y + penalty * (lam - relaxed)
        return lam

    def _correction(self, w):
        """De Saxcé's (mu |w_t|, 0, 0); nothing for the convex law."""
        out, contacts = np.zeros(self.rows.size), self.rows.split(w)[0]
        if not self.rows.convex:
            out[: contacts.size : 3] = self.rows.mu * np.hypot(contacts[:, 1], contacts[:, 2])
        return out


def solve(problem, lam, tolerance, iterations):
    """Iterations until the error is small enough: forces, and number of iterations."""
    run = Alternation(problem, lam)
    for k in range(0, iterations, _EVERY):
        if problem.error(run.lam) <= tolerance or (k % 200 == 190 and problem.refuted(run.lam)):
            return run.lam, k
        run.advance()
    return run.lam, iterations
