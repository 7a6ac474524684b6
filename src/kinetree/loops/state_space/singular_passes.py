"""Kinematic singularities met on the way: where, how close, how benign — Spencer §3.1, ch. 5."""

from typing import NamedTuple

import numpy as np

__all__ = ["SingularPass", "SingularityWatch"]


class SingularPass(NamedTuple):
    """A close approach to a configuration at which constraints become dependent.

    The motion may have gone through a bifurcation there: what follows is one of several branches.
    """

    time: float
    """When it was closest [s], between samples."""
    sigma: float
    """The smallest singular value of ``G`` among the samples."""
    kappa: float
    """Its ratio to the largest, inverted."""
    indicator: float
    """``|u_mᵀ Gdot v|`` there; as small as ``sigma`` in a benign pass."""

    def __str__(self):
        return (
            f"near singular at t = {self.time:.4f} s: smallest singular value {self.sigma:.3g}, "
            f"condition {self.kappa:.3g}, indicator {self.indicator:.3g}"
        )


class SingularityWatch:
    """Detects close approaches from one evaluation of the SVD form for each step.

    Attributes:
        limit: condition from which an approach counts.
        passes: what was found so far.
    """

    def __init__(self, limit=100.0):
        self.limit, self.passes = limit, []
        self._recent = []

    def update(self, t, evaluation) -> SingularPass | None:
        """Take note of a step; the pass that it completes, if any.

        A pass is complete one step after the smallest singular value has been smallest; the first
        sample counts as a pass if the motion starts at a singularity.
        """
        sigma = float(evaluation.sigma[-1]) if len(evaluation.sigma) else np.inf
        self._recent = [*self._recent[-2:], (t, sigma, evaluation)]
        values = [s for _, s, _ in self._recent]
        if len(values) == 2 and values[0] < values[1]:
            return self._note(self._recent[0], self._recent[0][0])
        if len(values) == 3 and values[1] <= values[0] and values[1] < values[2]:
            return self._note(self._recent[1], self._lowest())
        return None

    def _note(self, sample, time):
        _, sigma, evaluation = sample
        if not evaluation.kappa >= self.limit:
            return None
        found = SingularPass(time, sigma, evaluation.kappa, evaluation.indicator)
        self.passes.append(found)
        return found

    def _lowest(self):
        """Where the parabola through the squares of three singular values is lowest."""
        t, s = (np.array(x) for x in zip(*((t, s**2) for t, s, _ in self._recent), strict=True))
        left, right = (s[1] - s[0]) / (t[1] - t[0]), (s[2] - s[1]) / (t[2] - t[1])
        curvature = (right - left) / (t[2] - t[0])
        return float((t[0] + t[1]) / 2 - left / (2 * curvature))
