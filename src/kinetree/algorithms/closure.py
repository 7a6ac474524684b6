"""Whether a state closes the loops of its model, up to drift."""

import numpy as np

from kinetree.errors import ShapeError

__all__ = ["CLOSURE_TOLERANCE", "check_loops_closed"]

CLOSURE_TOLERANCE = 1e-3
"""Largest loop error [m or rad], and rate of it relative to the speed, taken for drift."""


def check_loops_closed(model, loops, tolerance):
    """Raise ShapeError for a loop that is open, or about to be; ``loops`` are its constraints."""
    for loop, J in zip(model.loops, loops, strict=True):
        if J.gap > tolerance:
            raise ShapeError(
                f"q does not close loop {loop.name!r}: its position error is {J.gap:.3g} m or "
                f"rad, at most {tolerance:.3g} passes for drift; assemble the mechanism first"
            )
        rate, limit = float(np.linalg.norm(J.rate)), tolerance * max(J.speed, 1.0)
        if rate > limit:
            raise ShapeError(
                f"qd tears loop {loop.name!r} apart: its velocity error is {rate:.3g} m/s or "
                f"rad/s, at most {limit:.3g} passes for drift; project qd onto the velocities "
                f"that the loop allows"
            )
