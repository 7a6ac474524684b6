"""Whether a state closes the loops of its model, up to drift, in units of the loops."""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.loop_rank import rank_policy, scaling
from kinetree.algorithms.loop_scaling import loop_length
from kinetree.errors import ShapeError

__all__ = ["CLOSURE_TOLERANCE", "ClosureErrors", "check_loops_closed", "closure_limit"]

CLOSURE_TOLERANCE = 1e-3
"""Largest error of a loop [rad, or parts of the size of the loop] that is taken for drift; and
rate of it, relative to the speed."""


class ClosureErrors(NamedTuple):
    """By how much states miss the constraints, in pure numbers, each (...)."""

    position: np.ndarray
    """Largest position error [rad, or parts of the size of a loop]."""
    velocity: np.ndarray
    """Largest velocity error [1/s] over the largest that passes for drift."""

    @classmethod
    def of(cls, model, c, qd):
        """From the constraints ``c`` of states with velocities ``qd``, (..., nv)."""
        units = scaling(model)
        far = np.max(np.abs(np.asarray(c.error) * units.rows), axis=-1, initial=0.0)
        rate = np.max(np.abs(np.asarray(c.rate) * units.rows), axis=-1, initial=0.0)
        speed = np.max(np.abs(np.asarray(qd) / units.columns), axis=-1, initial=1.0)
        return cls(far, rate / speed)


def closure_limit(model, far, tolerance=CLOSURE_TOLERANCE):
    """What passes for drift: the tolerance, and the misalignment of nearly redundant constraints.

    Whether there is any is looked for only if errors ``far`` exceed the tolerance.
    """
    if np.all(far <= tolerance) or not model.loops:
        return tolerance
    return tolerance + rank_policy(model).slack


def check_loops_closed(model, loops, tolerance, sample=""):
    """Raise ShapeError for a loop that is open, or about to be.

    Args:
        model: the mechanism.
        loops: its ``maximal_joints.JointConstraint``.
        tolerance: largest error that passes for drift, see ``CLOSURE_TOLERANCE``.
        sample: how a message calls the state, after ``q`` or ``qd``.
    """
    rows, at = scaling(model).rows, 0
    for loop, J in zip(model.loops, loops, strict=True):
        length, of_loop = loop_length(model, loop), rows[at : at + len(J.rate)]
        at += len(J.rate)
        units = np.repeat([1.0, 1 / length], 3)
        gap = float(np.linalg.norm(J.gap * units))
        limit = closure_limit(model, gap, tolerance)
        if not gap <= limit:
            raise ShapeError(
                f"q{sample} does not close loop {loop.name!r}: its position error is "
                f"{_in_words(J.gap, length)}; at most {limit:.3g} rad, or {limit:.3g} of its "
                f"size, passes for drift; assemble the mechanism first"
            )
        rate = float(np.linalg.norm(J.rate * of_loop))
        speed = max(1.0, *(float(np.linalg.norm(v * units)) for v in J.velocities))
        limit = closure_limit(model, rate / speed, tolerance) * speed
        if not rate <= limit:
            raise ShapeError(
                f"qd{sample} tears loop {loop.name!r} apart: its velocity error is {rate:.3g} "
                f"rad/s, or sizes of the loop ({length:.3g} m) per second, at most {limit:.3g} "
                f"passes for drift; project qd onto the velocities that the loop allows"
            )


def _in_words(gap, length):
    """A position error, (6,): in radians, in metres, and in parts of the size of the loop."""
    angle, distance = (float(np.linalg.norm(part)) for part in (gap[:3], gap[3:]))
    return f"{angle:.3g} rad and {distance:.3g} m, {distance / length:.3g} of its size"
