"""State: what a motion goes on from."""

from typing import Any, NamedTuple

import numpy as np


class State(NamedTuple):
    """The complete state of a motion, from which it continues with bit-identical results.

    Attributes:
        time: [s].
        q: positions, (nq,).
        qd: velocities, (nv,).
        activation: of the actuators that have one, (m,).
        memory: of what takes the steps: contact forces of the last one, with which the solution of
            the next one starts, states of forces, and when controls were set.
    """

    time: float
    q: np.ndarray
    qd: np.ndarray
    activation: np.ndarray
    memory: Any
