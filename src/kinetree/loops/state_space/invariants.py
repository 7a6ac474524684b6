"""Invariants of exact motion: ``g = 0`` and ``G v = 0`` — Spencer §2.1.1, (2.7)–(2.10)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import SingularError


def invariants(system, q, v) -> Any:
    """``h = (g, G v)``, (2m,) — Spencer (2.7)."""
    g, G, _ = system.constraint(q, v)
    return np.concatenate([g, G @ v])


def invariant_gradient(system, q, v) -> Any:
    """``H = [[G, 0], [d(G v)/dq, G]]``, (2m, 2n) — Spencer (2.10)."""
    G = system.G(q)
    return np.block([[G, np.zeros_like(G)], [rate_gradient(system, q, v), G]])


def rate_gradient(system, q, v):
    """``d(G v)/dq``, (m, n); on the way of ``v`` that is ``dG/dt``.

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
        """Number of steps."""
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
    """Repeat ``x + dx`` until the error, or the residual, is small enough.

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
    first, last, j = lengths[0], lengths[-1], len(lengths) - 1
    if first == 0 or last == 0:
        return 0.0
    rho = (last / first) ** (1 / (j + 1))
    return rho / (1 - rho) * last if rho < 1 else np.inf


# --- projection onto the invariants: Spencer §3.1.3, (3.10), (3.11) ------------------------------
# Plain norms, so that coordinates of different units count alike;
# ``kt.loops.project_configuration`` and its companions, for models, have others. Two algorithms
# that are not the same: position then velocity, each onto its own constraint, and everything at
# once, perhaps with energy.

RCOND = 1e-12
"""Singular values below this times the largest count as zero."""
_ROUNDING = 1e-13


def project_position(system, q, *, tolerance=1e-12, nearest=False, rcond=RCOND, limit=50):
    """The configuration near ``q`` with ``g(q) = 0``.

    Newton's method with the shortest step at every iterate, ``-pinv(G) g``, ends on the manifold,
    close to the nearest point but not in it.

    Args:
        system: the constrained system.
        q: configuration, (nq,).
        tolerance: weighted norm of ``g`` to reach.
        nearest: go to the nearest point itself, for which ``q + Gᵀ mu`` is the start; from a start
            closer than the radius of curvature of the manifold.
        rcond: singular values of ``G`` below this times the largest count as zero.
        limit: of the number of steps.
    """
    start, space = np.asarray(q, dtype=float), system.space

    def shortest(q):
        g = system.g(q)
        size = _size(system, g)
        if size <= tolerance:
            return np.zeros(system.n), size
        return -np.linalg.pinv(system.G(q), rcond=rcond) @ g, size

    def towards_nearest(q):
        g, G = system.g(q), system.G(q)
        away = space.difference(start, q)
        D = np.linalg.inv(space.difference_gradient(start, q))
        inverse = np.linalg.pinv(G @ D, rcond=rcond)
        return D @ (inverse @ (G @ D @ away - g) - away), np.inf

    options = {"move": space.move, "limit": limit, "what": "a projection onto the constraints"}
    q = newton(shortest, start, residual_tolerance=tolerance, **options).x
    left = _size(system, system.g(q))
    if left > max(tolerance, _ROUNDING * (1 + float(np.linalg.norm(q)))):
        raise SingularError(
            f"a projection onto the constraints stopped where they are violated by {left:.3g}, "
            f"at most {tolerance:.3g} is required: no small step reduces it; start elsewhere"
        )
    if nearest:
        q = _iterate_linearly(towards_nearest, q, space.move)
    return q


def _iterate_linearly(step, q, move, *, limit=500):
    """Linear convergence, the slower the nearer the start is to a centre of curvature."""
    for _ in range(limit):
        dq, _ = step(q)
        q = move(q, dq)
        if np.linalg.norm(dq) <= 1e-14 * (1 + np.linalg.norm(q)):
            return q
    raise SingularError(
        "no nearest configuration was found: the given one is as far from the manifold as that is "
        "curved"
    )


def _size(system, g):
    """Weighted norm of the constraint errors."""
    return float(np.linalg.norm(g if system.weights is None else system.weights * g))
