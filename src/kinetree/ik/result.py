"""What inverse kinematics found, and how sure one can be of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.arrays.kinds import on_host
from kinetree.errors import UnreachableError

__all__ = ["REASONS", "InverseKinematics"]

REASONS = {
    "converged": "the error is below the tolerance",
    "out of reach": "every attempt came to rest short of the target, and no smaller error was "
    "found nearby; q is the closest that was found",
    "limits": "the target can be reached, but not within the joint limits, as far as was found",
    "singular": "the search ended in a singular configuration, where no small step of the joints "
    "helps although larger ones might; try other starts, or more restarts",
    "iterations": "the error was still getting smaller when the iterations ran out",
}
"""Why a search ended, in words."""


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Joint positions for targets, one for each sample of the batch.

    Attributes:
        q: configurations, (..., nq); where ``success`` is False, the closest that were found.
        success: whether the error is below the tolerance, (...).
        error: norm of all errors of the tasks, radians and metres in one, (...).
        iterations: number of iterations, in all attempts, (...).
        restarts: number of restarts before ``q`` was found, (...).
        reason: why the search ended, a key of ``REASONS``, (...).
        tolerance: the error at which a target counts as reached.
    """

    q: Any
    success: Any
    error: Any
    iterations: Any
    restarts: Any
    reason: Any
    tolerance: float

    def require(self):
        """``q``, if every target was reached; else UnreachableError, which names the first."""
        success = on_host(self.success)
        if np.all(success):
            return self.q
        sample = tuple(int(k) for k in np.argwhere(~success)[0])
        reason = str(on_host(self.reason)[sample])
        error, count = on_host(self.error)[sample], int(np.sum(~success))
        many = f"{count} of {success.size} targets were not reached; the first, target {sample}"
        raise UnreachableError(
            f"{many if sample else 'the target was not reached'}: {reason}. {REASONS[reason]}. "
            f"Its error is {error:.3g}, the tolerance {self.tolerance:.3g}"
        )

    def __repr__(self):
        success = on_host(self.success)
        if success.ndim == 0:
            return f"<inverse kinematics: {self.reason}, error {self.error:.3g}>"
        reasons, counts = np.unique(on_host(self.reason), return_counts=True)
        found = ", ".join(f"{n} {reason}" for reason, n in zip(reasons, counts, strict=True))
        return f"<inverse kinematics of {success.size} targets: {found}>"
