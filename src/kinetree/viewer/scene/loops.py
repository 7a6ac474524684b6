"""Where loops close, and how far they are from it."""

import numpy as np

from kinetree.viewer.scene.description import Arrows, Part
from kinetree.viewer.scene.surfaces import ball

__all__ = ["loop_arrows", "loop_ends", "loop_parts"]

_END, _GAP = (0.95, 0.55, 0.1), (0.75, 0.0, 0.1)


def loop_parts(model, size):
    """A ball on either side of every loop joint."""
    for loop in model.loops:
        sides = (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        )
        for body, placement in sides:
            at = np.asarray(placement.r, dtype=float)
            surface = ball(0.014 * size, 14).placed(np.eye(3), at)
            yield Part(f"end of loop {loop.name}", "loops", body, surface, _END)


def loop_ends(model, placed):
    """Where the two sides of each loop joint are, and what is wrong with that.

    Returns:
        Points on the predecessors [m], (T, NL, 3), and gaps from there, (T, NL, 3): less what the
        joint lets slide.
    """
    starts, gaps = np.zeros((2, len(placed.positions), len(model.loops), 3))
    for k, loop in enumerate(model.loops):
        ends = []
        for body, placement in (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        ):
            local = np.asarray(placement.r, dtype=float)
            R = placed.rotations[:, body]
            ends.append((placed.positions[:, body] + R @ local, R @ _rotation(placement)))
        (start, _), (end, axes) = ends
        gap = np.einsum("tji,tj->ti", axes, end - start)  # in the successor's frame
        S = np.asarray(loop.joint.motion_subspace(loop.joint.neutral()).linear, dtype=float)
        slides = S.reshape(3, -1)
        gap = gap - gap @ (slides @ np.linalg.pinv(slides)).T if slides.size else gap
        starts[:, k], gaps[:, k] = start, np.einsum("tij,tj->ti", axes, gap)
    return starts, gaps


def loop_arrows(model, placed):
    """The gaps of the loops, as long as they are."""
    if not model.loops:
        return None
    starts, gaps = loop_ends(model, placed)
    largest = np.linalg.norm(gaps, axis=-1).max(initial=0.0)
    legend = f"loop errors: at most {largest:.2g} m"
    return Arrows("loop errors", "loops", _GAP, starts, gaps, legend)


def _rotation(placement):
    return np.asarray(placement.E, dtype=float).T
