"""Whether a simulation can start from a state: are its loops closed, and stay so?"""

import warnings

import numpy as np

from kinetree.algorithms.closure import ClosureErrors, closure_limit
from kinetree.errors import LoopError, SimulationWarning
from kinetree.loops.kinematics.closing import loop_gaps
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.rank import rows_of, scaling

__all__ = ["check_start", "warn_of_singular_start"]


def check_start(model, q, qd):
    """Raise LoopError for a state, of a batch, that is off the constraints by more than drift."""
    if not qd.size:
        return
    c = constraint(model, q, qd)
    far, rate = ClosureErrors.of(model, c, qd)
    limit = closure_limit(model, far)
    if not np.all(far <= limit):
        index, sample = _worst(far)
        part, gap = max(loop_gaps(model, q[index]).items(), key=lambda item: item[1])
        raise LoopError(
            f"q0{sample} does not close {part} of model {model.name!r}: it is open by {gap:.3g} m "
            f"or rad, {far[index]:.3g} of its size; at most {limit:.3g} passes for drift; "
            f"kinetree.loops.assemble finds positions that close"
        )
    limit = closure_limit(model, rate)
    if not np.all(rate <= limit):
        index, sample = _worst(rate)
        k = int(np.argmax(np.abs(np.asarray(c.rate)[index] * scaling(model).rows)))
        row, torn = rows_of(model)[k], float(np.abs(np.asarray(c.rate)[index][k]))
        raise LoopError(
            f"qd0{sample} tears {row.owner} of model {model.name!r} apart, at {torn:.3g} "
            f"{row.unit}/s, {rate[index]:.3g} of its size and speed; at most {limit:.3g} passes "
            f"for drift; kinetree.loops.project_velocity finds velocities that do not"
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
