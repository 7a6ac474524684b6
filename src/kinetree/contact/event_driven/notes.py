"""Forces, modes and residuals of event-driven contact while a simulation runs."""

import numpy as np

from kinetree.contact.event_driven.modes import STICKS
from kinetree.contact.history import PhaseHistory, PhaseResiduals
from kinetree.contact.scene import Scene
from kinetree.loops.kinematics.constraint import error


class PhaseNotes:
    """Recorder of forces, modes and residuals while a simulation runs.

    Args:
        transitions: what contacts do.
    """

    def __init__(self, transitions):
        self.transitions, n = transitions, transitions.of.size
        self._last = np.zeros((n, 3)), ("apart",) * n, None
        self._worst = np.zeros(len(PhaseResiduals._fields))
        self.stored: list = []
        self._begun = False

    def begin(self, t, q, qd, tau):
        """Record the contact forces at the start of the simulation, at its first step."""
        if self._begun:
            return
        self._begun = True
        dynamics, mode = self.transitions.dynamics, self.transitions.mode
        force = dynamics.motion(dynamics.instant(t, q, qd, tau), qd, mode).force
        self._last = force, mode.names, self._place(q)
        if self.stored:
            self.stored[0] = (*self._last, self.stored[0][-1])

    def take(self, step, motion):
        """Record forces and residuals at the end of a step; ``motion`` None means no contact."""
        transitions, mode = self.transitions, self.transitions.mode
        force = np.zeros(mode.force.shape) if motion is None else motion.force
        contact, axis = mode.rows
        dynamics = transitions.dynamics
        gap, zeta = dynamics.scene.candidate_velocities(dynamics.tree, step.q1, step.qd1)
        model = transitions.model
        opening = (
            np.zeros(1) if dynamics.tree is model else np.abs(np.asarray(error(model, step.q1)))
        )
        sticks = mode.kind == STICKS
        excess = np.hypot(force[:, 1], force[:, 2]) - transitions.of.friction * force[:, 0]
        found = PhaseResiduals(
            velocity=np.max(np.abs(zeta[contact, axis]), initial=0.0),
            acceleration=0.0 if motion is None else motion.missing,
            cone=np.max(excess[sticks], initial=0.0),
            pull=np.max(-force[:, 0], initial=0.0),
            penetration=np.max(-gap, initial=0.0),
            opening=np.max(opening),
            loss=transitions.loss,
            problems=transitions.solves,
        )
        self._worst = np.maximum(self._worst, found)
        self._last = force, mode.names, self._place(step.q1)

    def _place(self, q):
        """Contact points and normals, (contacts, 2, 3); None if ``q`` determines them."""
        dynamics = self.transitions.dynamics
        if isinstance(dynamics.scene, Scene):
            return None
        _, point, axes = dynamics.scene.candidate_positions(dynamics.tree, q)
        return np.stack([point, axes[:, 0]], axis=1)

    def keep(self, q):
        """Store the last step's forces, and the residuals since the last stored time."""
        self.stored.append((*self._last, self._worst))
        self._worst = np.zeros(len(PhaseResiduals._fields))

    def history(self) -> PhaseHistory:
        """``PhaseHistory`` of all stored forces, modes and residuals."""
        names, times = self.transitions.of.names, len(self.stored)
        forces, modes, places, residuals = zip(*self.stored, strict=True)
        force = np.array(forces).reshape(times, len(names), 3)
        modes = np.array(modes).reshape(times, len(names))
        none = np.zeros((len(names), 2, 3))
        place = np.array([none if p is None else p for p in places])
        fixed = isinstance(self.transitions.dynamics.scene, Scene)
        return PhaseHistory(
            names, force, np.zeros((times, 0)), np.array(residuals), modes, None if fixed else place
        )
