"""Noticing where a mechanism comes close to a singular configuration, and how close."""

from dataclasses import dataclass, field

import numpy as np

from kinetree.simulation.events.event import EventRecord

__all__ = ["Passes", "SingularPass"]

_NEAR = 1e-3  # of the best health seen: steps whose neighbourhood is looked at
_CLOSE = 1e-4  # of the best health seen, at the closest point: what counts as a pass


@dataclass(frozen=True)
class SingularPass(EventRecord):
    """The moment at which a mechanism was closest to a singular configuration.

    Attributes:
        sine: of the angle between constraints there, in the metric of the inertia matrix, relative
            to the largest in the simulation: zero right in the singular configuration.
    """

    sine: float = field(default=0.0)


class Passes:
    """Minima of the health of the constraint equations, as steps go by.

    Args:
        model: the mechanism.
    """

    def __init__(self, model):
        self.model, self.found = model, []
        self._seen: list = []  # time, positions and health at the ends of the last steps

    def is_near(self, checks, judge):
        """Which samples are so close to a singular configuration that steps count one by one."""
        return checks.health < _NEAR * judge.health

    def look(self, t, q, health, best):
        """Look at the end of a step; one that was taken before and is now shorter counts anew."""
        self._seen = [seen for seen in self._seen if seen[0] < t][-2:]
        if len(self._seen) == 2:
            (t0, _, h0), (t1, q1, h1) = self._seen
            low = (h1 <= h0) & (h1 < health) & (h1 < _NEAR * best)
            for index in map(tuple, np.argwhere(low)):
                at, least = _vertex((t0, h0[index]), (t1, h1[index]), (t, health[index]))
                ratio = max(least, 0.0) / best[index]
                if ratio < _CLOSE:
                    self._note(at, q1[index], np.sqrt(ratio), index)
        self._seen.append((t, np.array(q), np.array(health)))

    def _note(self, t, q, sine, index):
        qd = np.full(self.model.nv, np.nan)
        sample = tuple(int(i) for i in index)
        self.found.append(
            SingularPass(float(t), "singular configuration", q, qd, q, qd, 0.0, sample, float(sine))
        )


def _vertex(a, b, c):
    """The lowest point of a parabola through three points."""
    (x0, y0), (x1, y1), (x2, y2) = a, b, c
    s01, s12 = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    bend = (s12 - s01) / (x2 - x0)
    if not bend > 0 or not 0.5 < (x2 - x1) / (x1 - x0) < 2:  # others lie between
        return x1, y1
    x = (x0 + x1) / 2 - s01 / (2 * bend)
    x = min(max(x, x0), x2)
    return x, y0 + (x - x0) * (s01 + bend * (x - x1))
