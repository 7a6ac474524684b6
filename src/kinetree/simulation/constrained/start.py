"""Whether a simulation can start from a state: are its loops closed, and stay so?"""

import warnings

import numpy as np

from kinetree.algorithms.closure import CLOSURE_TOLERANCE
from kinetree.errors import LoopError, SimulationWarning
from kinetree.loops.kinematics.closing import loop_gaps
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.rank import rows_of

__all__ = ["check_start", "warn_of_singular_start"]


def check_start(model, q, qd):
    """Raise LoopError for a state, of a batch, that is off the constraints by more than drift."""
    if not qd.size:
        return
    c = constraint(model, q, qd)
    far = np.max(np.abs(np.asarray(c.error)), axis=-1, initial=0.0)
    rate = np.max(np.abs(np.asarray(c.rate)), axis=-1, initial=0.0)
    limit = CLOSURE_TOLERANCE * np.maximum(1.0, np.max(np.abs(qd), axis=-1))
    if not np.all(far <= CLOSURE_TOLERANCE):
        index, sample = _worst(far)
        part, gap = max(loop_gaps(model, q[index]).items(), key=lambda item: item[1])
        raise LoopError(
            f"q0{sample} does not close {part} of model {model.name!r}: it is open by {gap:.3g} m "
            f"or rad, at most {CLOSURE_TOLERANCE:g} passes for drift; kinetree.loops.assemble "
            f"finds positions that close"
        )
    if not np.all(rate <= limit):
        index, sample = _worst(rate / limit)
        owner = rows_of(model)[int(np.argmax(np.abs(np.asarray(c.rate)[index])))].owner
        raise LoopError(
            f"qd0{sample} tears {owner} of model {model.name!r} apart, at {rate[index]:.3g} m/s or "
            f"rad/s, at most {limit[index]:.3g} passes for drift; kinetree.loops.project_velocity "
            f"finds velocities that do not"
        )


def _worst(sizes):
    """Index of the largest, and how a message calls it."""
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(sizes)), np.shape(sizes)))
    return index, f" of sample {index}" if index else ""


def warn_of_singular_start(model):
    """Say that the motion from a start is not unique."""
    warnings.warn(
        f"the simulation of {model.name!r} starts in a singular configuration, where its loops "
        f"have more freedoms than next to it: motions on several branches begin here, and which "
        f"one is followed may depend on rounding errors. Start a little away from it to choose",
        SimulationWarning,
        stacklevel=4,
    )
