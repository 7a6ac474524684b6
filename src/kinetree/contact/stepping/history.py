"""Contact forces and residuals of a simulation, as arrays with time first."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.contact.stepping.residuals import SUMMED, Residuals, gathered

__all__ = ["ContactHistory", "Notes"]


@dataclass(frozen=True)
class ContactHistory:
    """What held a mechanism during a simulation.

    Attributes:
        names: of the contacts.
        force: of each contact in the step that ended at each time, along its normal and tangents
            [N], (T, ..., contacts, 3).
        joint_force: of stops, dry joint friction and loops, in this order, in the same
            step [N or N·m], (T, ..., rows).
        residuals: of all steps since the stored time before, (T, ..., 10): the worst, and sums of
            energies, in the order of ``kinetree.contact.Residuals``; zero at the first.
    """

    names: tuple[str, ...]
    force: np.ndarray
    joint_force: np.ndarray
    residuals: np.ndarray

    @property
    def worst(self) -> Residuals:
        """Residuals of the whole simulation; of a batch, the worst, and of sums the largest."""
        numbers = self.residuals.reshape(len(self.residuals), -1, len(Residuals._fields))
        largest, total = (
            f(axis=0).max(axis=0, initial=-np.inf) for f in (numbers.max, numbers.sum)
        )
        return Residuals(
            *(
                float(t if name in SUMMED else m)
                for name, m, t in zip(Residuals._fields, largest, total, strict=True)
            )
        )

    def at(self, which):
        """The same for some of the times, or, with a tuple, of the motions of a batch."""
        arrays = {n: getattr(self, n)[which] for n in ("force", "joint_force", "residuals")}
        return replace(self, **arrays)


class Notes:
    """What is written down while a simulation runs.

    Args:
        step: a ``ContactStep``.
        batch: shape of the batch.

    Attributes:
        rows: number of forces of a step, where it is fixed.
        force: those of the last step, (..., rows).
        behind: how many of the last steps have not been stored yet, though they could have been.
    """

    def __init__(self, step, batch):
        self.holds, self.batch, self.behind = step.holds, batch, 0
        self.fixed = self.holds.compiled
        self.rows = self.holds.count(step.holds.scene.candidates.size) if self.fixed else 0
        self.force: Any = np.zeros((*batch, self.rows))
        self._steps: list = []
        self._stored: list = []

    def take(self, force, residuals):
        """A step, or several as one."""
        self.force = force
        self._steps.append((force, residuals))

    def keep(self):
        """The moment is stored: so is what happened since the one before."""
        last = len(self._steps)
        if self.behind:
            last -= self.behind - 1
            self.behind -= 1
        now, self._steps = self._steps[:last], self._steps[last:]
        if now:
            force, residuals = now[-1]
        else:
            force = np.zeros(np.shape(self.force), dtype=self.force.dtype)
            residuals = np.zeros((*self.batch, len(Residuals._fields)))
        if len(now) > 1:
            residuals = gathered([each for _, each in now])
        self._stored.append((force, residuals))

    def history(self) -> ContactHistory:
        """All that was stored."""
        residuals = np.array([r for _, r in self._stored])
        if self.fixed:
            names = self.holds.scene.candidates.names
            forces = np.array([f for f, _ in self._stored])
        else:
            names, forces = self._gathered()
        c = 3 * len(names)
        contacts = forces[..., :c].reshape(*forces.shape[:-1], len(names), 3)
        return ContactHistory(names, contacts, forces[..., c:], residuals)

    def _gathered(self):
        """Forces of contacts that came and went, in columns by name."""
        each = [f for f, _ in self._stored]
        found = [x for f in each for x in np.ravel(f) if isinstance(x, tuple)]
        names = tuple(sorted({name for of, _ in found for name in of}))
        others = self.holds.count(0)
        forces = np.zeros((len(each), *self.batch, 3 * len(names) + others))
        for k, f in enumerate(each):
            for index in np.ndindex(*self.batch):
                if not isinstance(f[index], tuple):
                    continue
                of, force = f[index]
                for j, name in enumerate(of):
                    at = 3 * names.index(name)
                    forces[(k, *index)][at : at + 3] = force[3 * j : 3 * j + 3]
                forces[(k, *index)][3 * len(names) :] = force[3 * len(of) :]
        return names, forces
