"""What every contact does during a phase."""

from dataclasses import dataclass

import numpy as np

__all__ = ["MODES", "OPEN", "SLIDES", "STICKS", "TOUCHES", "Mode"]

OPEN, TOUCHES, STICKS, SLIDES = range(4)
MODES = ("apart", "touches", "sticks", "slides")
"""Names of the modes; contacts that touch have no friction."""


@dataclass
class Mode:
    """What contacts do.

    Attributes:
        kind: one of the numbers above, (n,).
        slip: directions along the tangents in which contacts slide, unit vectors or zero, (n, 2).
        force: contact forces at the start of the phase, which tell how those that are not unique
            are shared out, (n, 3).
        blur: speeds of sliding up to which a step is too long to follow how its direction turns
            [m/s], (n,).
    """

    kind: np.ndarray
    slip: np.ndarray
    force: np.ndarray
    blur: np.ndarray

    @classmethod
    def apart(cls, n):
        """Nothing touches."""
        return cls(np.zeros(n, dtype=int), np.zeros((n, 2)), np.zeros((n, 3)), np.zeros(n))

    @property
    def closed(self):
        """Numbers of the contacts that are equations."""
        return np.flatnonzero(self.kind != OPEN)

    @property
    def rows(self):
        """Contact and axis (0 normal, 1 and 2 tangents) of every equation, each (m,)."""
        pairs = [(k, a) for k in self.closed for a in range(3 if self.kind[k] == STICKS else 1)]
        return tuple(np.array(pairs, dtype=int).reshape(-1, 2).T)

    @property
    def names(self):
        """What every contact does, as words."""
        return tuple(MODES[k] for k in self.kind)
