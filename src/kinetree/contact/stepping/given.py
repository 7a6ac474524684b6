"""Joints that move as told, over one step: what they do is known before anything is solved.

Their velocities change by what they are told, whatever acts on them, and the others feel that
through the inertia matrix. Gaps follow positions, which move at the mean velocity of a step, not at
the one at its end.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.stepping.frames import carried

__all__ = ["Given", "given_over"]


class Given(NamedTuple):
    """What joints that move as told do during a step; zero for all others.

    Attributes:
        free: 1 for the variables of all other joints, 0 for theirs, (nv,).
        change: of their velocities, (nv,).
        lag: of their mean velocity behind the one at the end, (nv,).
    """

    free: Any
    change: Any
    lag: Any


def given_over(told, model, t, h, q, qd) -> Given:
    """What is known of a step of ``h`` seconds, along the axes at its start.

    Args:
        told: what knows the motion of these joints: ``at(model, t, q, qd)`` gives the state with
            them in place, ``others(model)`` tells which variables are not theirs; or None.
        model: the mechanism.
        t: time at the start [s].
        h: length of the step [s].
        q: joint positions, (nq,).
        qd: joint velocities, (nv,).
    """
    if told is None:
        nothing = np.zeros(model.nv, dtype=int)
        return Given(nothing + 1, nothing, nothing)
    free = told.others(model)
    mean, end = (
        carried(model, told.at(model, t + part, q, qd)[1], -part)[1] for part in (h / 2, h)
    )
    return Given(free, (end - qd) * (1 - free), (mean - end) * (1 - free))
