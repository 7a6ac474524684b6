"""What is written down about event-driven contact."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from kinetree.contact.event_driven.mode import STICKS
from kinetree.contact.stepping.history import ContactHistory
from kinetree.loops.kinematics.constraint import error

__all__ = ["PhaseHistory", "PhaseNotes", "PhaseResiduals"]


class PhaseResiduals(NamedTuple):
    """By how much phases miss their equations and laws: the worst.

    Attributes:
        velocity: of closed contacts along the normal, and of those that stick [m/s].
        acceleration: of the same, under the forces that were found [m/s²].
        cone: excess of friction over its cone [N].
        pull: of a normal force [N].
        penetration: [m].
        opening: of loops and couplings [m or rad].
        loss: energy lost in impacts so far [J].
        problems: contact problems solved so far, to decide what comes next.
    """

    velocity: float
    acceleration: float
    cone: float
    pull: float
    penetration: float
    opening: float
    loss: float
    problems: float


@dataclass(frozen=True)
class PhaseHistory(ContactHistory):
    """Contact forces, modes and residuals, with time first.

    Attributes:
        modes: what every contact does after each time: ``"apart"``, ``"touches"``, ``"sticks"`` or
            ``"slides"``, (T, contacts).
    """

    modes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype="<U7"))

    @property
    def worst(self):
        """Residuals of the whole simulation."""
        return PhaseResiduals(*map(float, self.residuals.max(axis=0, initial=0.0)))

    def at(self, which):
        """The same for some of the times."""
        return replace(super().at(which), modes=self.modes[which])


class PhaseNotes:
    """What is written down while a simulation runs.

    Args:
        machine: what contacts do.
    """

    def __init__(self, machine):
        self.machine, n = machine, machine.of.size
        self._last = np.zeros((n, 3)), ("apart",) * n
        self._worst = np.zeros(len(PhaseResiduals._fields))
        self._stored: list = []
        self._begun = False

    def begin(self, t, q, qd, tau):
        """A step begins; the first one tells the forces at the start."""
        if self._begun:
            return
        self._begun = True
        held, mode = self.machine.held, self.machine.mode
        self._last = held.answer(held.instant(t, q, qd, tau), qd, mode).force, mode.names
        if self._stored:
            self._stored[0] = (*self._last, self._stored[0][2])

    def take(self, step, answer):
        """A step has ended, with an ``Answer``, or None in flight."""
        machine, mode = self.machine, self.machine.mode
        force = np.zeros(mode.force.shape) if answer is None else answer.force
        contact, axis = mode.rows
        held = machine.held
        gap, zeta = held.scene.candidate_velocities(held.tree, step.q1, step.qd1)
        model = machine.model
        opening = np.zeros(1) if held.tree is model else np.abs(np.asarray(error(model, step.q1)))
        sticks = mode.kind == STICKS
        excess = np.hypot(force[:, 1], force[:, 2]) - machine.of.friction * force[:, 0]
        found = PhaseResiduals(
            velocity=np.max(np.abs(zeta[contact, axis]), initial=0.0),
            acceleration=0.0 if answer is None else answer.missing,
            cone=np.max(excess[sticks], initial=0.0),
            pull=np.max(-force[:, 0], initial=0.0),
            penetration=np.max(-gap, initial=0.0),
            opening=np.max(opening),
            loss=machine.loss,
            problems=machine.solves,
        )
        self._worst = np.maximum(self._worst, found)
        self._last = force, mode.names

    def keep(self):
        """The moment is stored: so is what happened since the one before."""
        self._stored.append((*self._last, self._worst))
        self._worst = np.zeros(len(PhaseResiduals._fields))

    def history(self) -> PhaseHistory:
        """All that was stored."""
        names, times = self.machine.of.names, len(self._stored)
        force = np.array([f for f, _, _ in self._stored]).reshape(times, len(names), 3)
        modes = np.array([m for _, m, _ in self._stored]).reshape(times, len(names))
        residuals = np.array([r for _, _, r in self._stored])
        return PhaseHistory(names, force, np.zeros((times, 0)), residuals, modes)
