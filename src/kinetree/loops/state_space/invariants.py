"""Invariants of exact motion, ``g = 0`` and ``G v = 0``, and Newton's method for them.

Spencer §2.1.1, (2.7)–(2.10); §2.3.1. Projections onto them, and drift along them, are texts:
``kinetree.textbook.system_invariants``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import SingularError


def invariants(system, q, v) -> Any:
    """Invariants ``h = (g, G v)`` of a state, (2m,) — Spencer (2.7)."""
    g, G, _ = system.constraint(q, v)
    return np.concatenate([g, G @ v])


def invariant_gradient(system, q, v) -> Any:
    """Gradient ``[[G, 0], [d(G v)/dq, G]]`` of the invariants, (2m, 2n) — Spencer (2.10)."""
    G = system.G(q)
    return np.block([[G, np.zeros_like(G)], [rate_gradient(system, q, v), G]])


def rate_gradient(system, q, v):
    """Derivative ``d(G v)/dq`` of constraint rates by positions, (m, n).

    In a vector space ``Gdot v`` is a quadratic form of ``v`` whose bilinear form is symmetric, so
    that the matrix follows from products, without differences of positions.
    """
    if system.rate_gradient is not None:
        return system.rate_gradient(q, v)
    columns = [(system.Gdot_v(q, v + e) - system.Gdot_v(q, v - e)) / 4 for e in np.eye(system.n)]
    return np.reshape(columns, (system.n, system.m)).T


# --- Newton's method: Spencer §2.3.1 -------------------------------------------------------------


class InvariantSolution(NamedTuple):
    """A solution, and how it was found."""

    x: Any
    """The last iterate."""
    steps: tuple
    """Lengths of the steps."""
    error: float
    """Estimated bound of the distance to the solution."""

    @property
    def iterations(self) -> int:
        """Number of Newton steps that were taken."""
        return len(self.steps)


def newton(
    step: Callable,
    x,
    *,
    move=np.add,
    tolerance=1e-12,
    residual_tolerance=0.0,
    weights: Any = 1.0,
    limit=30,
    what="the equations",
) -> InvariantSolution:
    """Solution by Newton steps until the estimated error, or the residual, is small.

    The error is bounded by ``rho / (1 - rho)`` times the last step, where ``rho`` is the mean rate
    at which steps became shorter: ``(last / first) ** (1 / (j + 1))`` after step j = 0, 1, ... So
    at least two steps are made, unless the first was nothing but rounding. Steps that do not become
    shorter diverge, unless all of them are within the tolerance already.

    Args:
        step: function of ``x`` that returns the step ``dx``, and the weighted norm of the residual
            at ``x``. It may raise SingularError.
        x: the start.
        move: what adds a step to ``x``.
        tolerance: of the error bound, in the units of the steps.
        residual_tolerance: of the weighted norm of the residual.
        weights: inverse sizes of the components of a step, in which its length is measured, so that
            the number of steps does not depend on units.
        limit: of the number of steps.
        what: name of what is solved, for the error.

    Raises:
        SingularError: steps do not become shorter, are not finite, or are too many.
    """
    lengths = []
    while True:
        dx, residual = step(x)
        if residual <= residual_tolerance:
            return InvariantSolution(x, tuple(lengths), lengths[-1] if lengths else 0.0)
        x = move(x, dx)
        lengths.append(float(np.linalg.norm(weights * dx)))
        error = _error_bound(lengths)
        size = np.linalg.norm(weights * x if np.shape(x) == np.shape(dx) else x)
        rounding = 8 * np.finfo(float).eps * max(1.0, float(size))
        stalled = len(lengths) > 1 and lengths[-1] >= lengths[0]
        if error <= tolerance or lengths[-1] <= max(rounding, tolerance * stalled):
            return InvariantSolution(x, tuple(lengths), min(error, max(lengths[-1], rounding)))
        if stalled or not np.isfinite(lengths[-1]):
            raise SingularError(
                f"Newton's method for {what} diverges: step {len(lengths)} has length "
                f"{lengths[-1]:.3g}, the first had {lengths[0]:.3g}; start closer to the solution"
            )
        if len(lengths) == limit:
            raise SingularError(
                f"Newton's method for {what} has not converged in {limit} steps: the last has "
                f"length {lengths[-1]:.3g}, an error of {tolerance:.3g} is required; start "
                f"closer to the solution, or allow a larger error"
            )


def _error_bound(lengths):
    """Bound of the distance to the solution, from the lengths of the steps so far."""
    first, last, j = lengths[0], lengths[-1], len(lengths) - 1
    if first == 0 or last == 0:
        return 0.0
    rho = (last / first) ** (1 / (j + 1))
    return rho / (1 - rho) * last if rho < 1 else np.inf
