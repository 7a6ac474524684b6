"""What is kept of a simulation while it runs."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.integration.breakdown import largest_size

__all__ = ["Record"]


@dataclass
class Record:
    """Stored instants, events, and counts.

    Attributes:
        t, q, qd, tau, work: lists of what was stored.
        events: what happened.
        steps: steps that were taken.
        rejected: steps that were thrown away because of their error.
        largest_step: longest step [s].
        largest_advance: largest displacement of a joint in one step [rad or m].
        notes: what a stepper writes down about contact, or None; told when an instant is stored.
    """

    t: list = field(default_factory=list)
    q: list = field(default_factory=list)
    qd: list = field(default_factory=list)
    tau: list = field(default_factory=list)
    work: list = field(default_factory=list)
    events: list = field(default_factory=list)
    steps: int = 0
    rejected: int = 0
    largest_step: float = 0.0
    largest_advance: float = 0.0
    notes: Any = None

    def keep(self, t, q, qd, tau, work):
        """Store an instant."""
        for name, value in (("t", t), ("q", q), ("qd", qd), ("tau", tau), ("work", work)):
            getattr(self, name).append(value)
        if self.notes is not None:
            self.notes.keep()

    def take(self, step):
        """Count a step, and take down its events."""
        self.count(step.t1 - step.t0, step.qd1)
        self.events += step.events

    def count(self, h, qd, steps=1):
        """Count steps of length ``h`` that end with the velocities ``qd``."""
        self.steps += steps
        self.largest_step = max(self.largest_step, h)
        self.largest_advance = max(self.largest_advance, h * largest_size(qd))

    def arrays(self) -> dict[str, Any]:
        """What was stored, as arrays with time first."""
        return {name: np.array(getattr(self, name)) for name in ("t", "q", "qd", "tau", "work")}
