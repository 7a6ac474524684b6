"""Kinds of constraints and the freedoms that they leave — RBDA §3.4, Fig. 3.1.

A ``kt.ConstraintFunction`` is holonomic or not, and moves with time or not; ``kind`` says which. A
nonholonomic one is the rate of nothing, and takes away velocities only.
"""

from dataclasses import dataclass

import numpy as np

from kinetree.algorithms.closed.constraints import (
    check_functions,
    loop_constraints,
    velocity_rows,
)
from kinetree.algorithms.closed.subspace import Subspace

__all__ = ["Freedoms", "check_functions", "freedoms"]


@dataclass(frozen=True)
class Freedoms:
    """Degrees of freedom of a constrained system.

    Attributes:
        position: dimension of the set of reachable configurations.
        velocity: dimension of the set of allowed velocities; smaller if something rolls.
    """

    position: int
    velocity: int


def freedoms(model, q) -> Freedoms:
    """Freedoms that loops and user-defined constraints leave in the configuration ``q``, (nq,).

    Takes the word of each constraint for being nonholonomic: such rows take away velocities only.
    """
    K = loop_constraints(model, np.asarray(q, dtype=float), model.zero_velocity).K.astype(float)
    of_positions = K.copy()
    of_positions[velocity_rows(model)] = 0
    return Freedoms(*(Subspace.null(rows, "motion").dim for rows in (of_positions, K)))
