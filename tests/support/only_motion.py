"""One motion of an engine of a test's own, by the machine that takes all steps."""

from typing import NamedTuple

import numpy as np

from kinetree.contact.engine.machine import Machine
from kinetree.contact.engine.renewal import LISTS, SCRATCH


class Stepped(NamedTuple):
    """Where steps have led, their work [J] and residuals in the order of ``history.Residuals``."""

    q: np.ndarray
    qd: np.ndarray
    work: float
    residuals: np.ndarray


class OnlyMotion(Machine):
    """A motion that is stepped from given states; ``engine`` takes its steps."""

    def __init__(self, engine):
        super().__init__(lambda: engine, 1)
        self.raise_errors()

    def step(self, q, qd, h, tau=0.0, *, count=1, memory=None) -> Stepped:
        """The state after steps under the same joint forces, with a memory of ``memory_of``."""
        q, qd = np.asarray(q, dtype=float), np.asarray(qd, dtype=float)
        if memory is None:
            self.put(q[None], qd[None])
        else:
            self.restore(0, q, qd, memory)
        held = np.zeros((1, self.engine.tree.nv))
        held[:, self.engine.of_v] = tau
        self.hold(None, held)
        self.run(h, count)
        total = self.motions.total[0]
        return Stepped(self.q[0], self.qd[0], float(total[10]), total[:10].copy())


def spoil(engine):
    """Let all numbers that a renewed engine does not get back be none."""
    for name in SCRATCH:
        for holder in (engine.parts.work, engine.parts.problem):
            if hasattr(holder, name):
                getattr(holder, name)[...] = np.nan
    of = engine.parts
    for holder in (of.found, of.late, of.before, of.rows):
        names = LISTS[type(holder).__name__] or holder.types
        for array in (getattr(holder, name) for name in names if name != "fixed"):
            if isinstance(array, np.ndarray):
                array[...] = np.nan if array.dtype == float else 1
