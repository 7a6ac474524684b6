"""Newton's method with stopping rules that can be trusted — Spencer §2.3.1."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import SingularError

__all__ = ["Solved", "newton"]


class Solved(NamedTuple):
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
    step: Callable, x, *, move=np.add, tolerance=1e-12, residual_tolerance=0.0, limit=30,
    what="the equations",
) -> Solved:  # fmt: skip
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
        limit: of the number of steps.
        what: name of what is solved, for the error.

    Raises:
        SingularError: steps do not become shorter, are not finite, or are too many.
    """
    lengths = []
    while True:
        dx, residual = step(x)
        if residual <= residual_tolerance:
            return Solved(x, tuple(lengths), lengths[-1] if lengths else 0.0)
        x = move(x, dx)
        lengths.append(float(np.linalg.norm(dx)))
        error = _error_bound(lengths)
        rounding = 8 * np.finfo(float).eps * max(1.0, float(np.linalg.norm(x)))
        stalled = len(lengths) > 1 and lengths[-1] >= lengths[0]
        if error <= tolerance or lengths[-1] <= max(rounding, tolerance * stalled):
            return Solved(x, tuple(lengths), min(error, max(lengths[-1], rounding)))
        if stalled or not np.isfinite(lengths[-1]):
            raise SingularError(
                f"Newton's method for {what} diverges: step {len(lengths)} has length "
                f"{lengths[-1]:.3g}, the first had {lengths[0]:.3g}; start closer to the solution"
            )
        if len(lengths) == limit:
            raise SingularError(
                f"Newton's method for {what} has not converged in {limit} steps: the last has "
                f"length {lengths[-1]:.3g}, wanted is an error of {tolerance:.3g}; start closer to "
                f"the solution, or ask for less"
            )


def _error_bound(lengths):
    first, last, j = lengths[0], lengths[-1], len(lengths) - 1
    if first == 0 or last == 0:
        return 0.0
    rho = (last / first) ** (1 / (j + 1))
    return rho / (1 - rho) * last if rho < 1 else np.inf
