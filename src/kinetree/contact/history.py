"""Contact forces and residuals of a simulation, as arrays with time first."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.complementarity.rows import less
from kinetree.functional.kernel import select

# --- Residuals of time steps ---------------------------------------------------------------------


class Residuals(NamedTuple):
    """Residuals of one step, or of several: then the worst, and sums of energies."""

    velocity: Any
    """By how much the velocity of a row misses the laws [m/s or rad/s]."""
    cone: Any
    """By how much friction exceeds its cone [N·s]."""
    complementarity: Any
    """Energy that a force and the gap or slip beside it have in common [J]."""
    penetration: Any
    """At the end [m or rad]."""
    opening: Any
    """Of loops at the end [m or rad]."""
    contact_work: Any
    """Of all forces that hold, ``lam · w⁺`` [J]."""
    loss: Any
    """Half the impulse of all forces times the change of velocity: what impacts take, and
    first-order steps [J]."""
    taken: Any
    """Energy taken from velocities so that none is created [J]."""
    gain: Any
    """Energy of unknown origin that is left [J]."""
    touching: Any
    """1 for steps in which something held, 0 for flight."""


SUMMED = np.isin(Residuals._fields, ("contact_work", "loss", "taken", "touching"))
"""Residuals that add up over steps; of the others the largest counts."""


def worst_of(totals) -> Residuals:
    """Residuals of a whole simulation from those of each motion, (n, 10 or more)."""
    numbers = totals[0] if len(totals) == 1 else totals.max(axis=0)
    return Residuals(*numbers[: len(Residuals._fields)].tolist())


def accumulate(total, step):
    """Residuals of several steps, (..., 10), combined with those of one more step."""
    return select(SUMMED, total + step, select(less(step, total), total, step))


def gather(steps):
    """Residuals of several steps combined, (..., 10), from the list of each step's."""
    each = np.array(steps)
    return np.where(SUMMED, each.sum(axis=0), each.max(axis=0))


@dataclass(frozen=True)
class ContactHistory:
    """Contact forces of a simulation, forces of stops, dry friction and loops, and residuals."""

    names: tuple[str, ...]
    """Names of the contacts."""
    force: np.ndarray
    """Of each contact in the step that ended at each time, along its normal and tangents [N], (T,
    ..., contacts, 3)."""
    joint_force: np.ndarray
    """Of stops, dry joint friction and loops, in this order, in the same step [N or N·m], (T, ...,
    rows)."""
    residuals: np.ndarray
    """Of all steps since the stored time before, (T, ..., 10): the worst, and sums of energies, in
    the order of ``Residuals``; zero at the first."""

    @property
    def worst(self) -> Residuals:
        """Residuals over the whole simulation, the largest over a batch."""
        numbers = self.residuals.reshape(len(self.residuals), -1, len(Residuals._fields))
        found = np.where(SUMMED, numbers.sum(axis=0), numbers.max(axis=0))
        return Residuals(*found.max(axis=0, initial=-np.inf).tolist())

    def at(self, which):
        """History at some of the times or, given a tuple, of some motions of a batch."""
        arrays = {n: getattr(self, n)[which] for n in ("force", "joint_force", "residuals")}
        return replace(self, **arrays)


class RecordedHistory(ContactHistory):
    """Contact forces as compiled code has listed them; names and columns are made when read.

    Args:
        count: contacts of every state, (T, ...).
        key: shapes and feature of every one, (n, 3): all of the first motion, then of the next.
        listed: their forces, (n, 3).
        joint_force: as in ``ContactHistory``.
        residuals: likewise.
        columns: function from the keys of all contacts to their names, and their order.
        totals: residuals of every motion over all times, (n, 10).
    """

    def __init__(self, count, key, listed, joint_force, residuals, columns, totals):
        self.__dict__.update(joint_force=joint_force, residuals=residuals, _totals=totals)
        self.__dict__["_listed"] = count, key, listed, columns

    @property
    def worst(self) -> Residuals:
        """Residuals over the whole simulation, the largest over a batch."""
        return worst_of(self.__dict__["_totals"])

    @cached_property
    def _named(self):
        """Names of the contact columns, and the column of every recorded contact force."""
        _, key, _, columns = self.__dict__["_listed"]
        keys, place = np.unique(key, axis=0, return_inverse=True)
        names, order = columns(list(map(tuple, keys.tolist())))
        column = {name: k for k, name in enumerate(order)}
        at = np.array([column[name] for name in names], dtype=np.int64)
        return tuple(order), at[place.reshape(-1)]

    @property
    def names(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Names of the contacts, in the order of the columns of ``force``."""
        return self._named[0]

    @cached_property
    def force(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Forces of each contact in the step that ended at each time, (T, ..., contacts, 3) [N]."""
        (names, column), (count, _, listed, _) = self._named, self.__dict__["_listed"]
        times, batch = len(count), count.shape[1:]
        each = count.reshape(times, -1).T
        motion, time = np.divmod(np.repeat(np.arange(each.size), each.ravel()), times)
        found = np.zeros((times, len(each), len(names), 3))
        found[time, motion, column] = listed
        return found.reshape(times, *batch, len(names), 3)

    def at(self, which):
        """``ContactHistory`` at some of the stored times."""
        return ContactHistory(*(getattr(self, name) for name in _OF_HISTORY)).at(which)

    def __reduce__(self):
        return ContactHistory, tuple(getattr(self, name) for name in _OF_HISTORY)


_OF_HISTORY = ("names", "force", "joint_force", "residuals")


class Notes:
    """Recorder of forces and residuals while a simulation runs.

    Args:
        step: a ``ContactStep``.
        batch: shape of the batch.

    Attributes:
        rows: number of forces of a step.
        force: those of the last step, (..., rows).
        behind: how many of the last steps have not been stored yet, though they could have been.
        stored: forces and residuals of every stored time.
    """

    def __init__(self, step, batch):
        self.constraints, self.batch, self.behind = step.constraints, batch, 0
        self.rows = self.constraints.count(self.constraints.scene.candidates.size)
        self.force: Any = np.zeros((*batch, self.rows))
        self._steps: list = []
        self.stored: list = []

    def take(self, force, residuals):
        """Add the contact forces and residuals of one step, or of several as one."""
        self.force = force
        self._steps.append((force, residuals))

    def keep(self, q):
        """Store the last step's forces, and the residuals since the last stored time."""
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
            residuals = gather([each for _, each in now])
        self.stored.append((force, residuals))

    def history(self) -> ContactHistory:
        """``ContactHistory`` of all stored forces and residuals."""
        residuals = np.array([r for _, r in self.stored])
        names = self.constraints.scene.candidates.names
        forces, c = np.array([f for f, _ in self.stored]), 3 * len(names)
        contacts = forces[..., :c].reshape(*forces.shape[:-1], len(names), 3)
        return ContactHistory(names, contacts, forces[..., c:], residuals)


# --- Event-driven contact ------------------------------------------------------------------------


class PhaseResiduals(NamedTuple):
    """Residuals of the equations and laws of phases: the worst."""

    velocity: float
    """Of closed contacts along the normal, and of those that stick [m/s]."""
    acceleration: float
    """Of the same, under the forces that were found [m/s²]."""
    cone: float
    """Excess of friction over its cone [N]."""
    pull: float
    """Of a normal force [N]."""
    penetration: float
    """[m]."""
    opening: float
    """Of loops and couplings [m or rad]."""
    loss: float
    """Energy lost in impacts so far [J]."""
    problems: float
    """Contact problems solved so far, to decide what comes next."""


@dataclass(frozen=True)
class PhaseHistory(ContactHistory):
    """Contact forces, modes and residuals, with time first."""

    modes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype="<U7"))
    """What every contact does after each time: ``"apart"``, ``"touches"``, ``"sticks"`` or
    ``"slides"``, (T, contacts)."""
    place: np.ndarray | None = None
    """Points and normals of contacts that have different ones from time to time, those between
    polyhedra, (T, contacts, 2, 3); None where the scene says where they are."""

    @property
    def worst(self):
        """Largest residuals over the whole simulation."""
        return PhaseResiduals(*map(float, self.residuals.max(axis=0, initial=0.0)))

    def at(self, which):
        """``PhaseHistory`` at some of the stored times."""
        place = None if self.place is None else self.place[which]
        return replace(super().at(which), modes=self.modes[which], place=place)
