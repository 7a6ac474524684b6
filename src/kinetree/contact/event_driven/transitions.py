"""Transitions between phases: which contacts open, stick or slide next — RBDA Table 11.1."""

import numpy as np

from kinetree.contact.contacts import Contacts
from kinetree.contact.event_driven.dynamics import closed_positions, closed_velocities
from kinetree.contact.event_driven.features import Features
from kinetree.contact.event_driven.modes import OPEN, SLIDES, STICKS, TOUCHES, ContactModes, centre
from kinetree.contact.impacts.impact import impact
from kinetree.contact.rigid import friction
from kinetree.contact.rigid.problem import HITTING, TOUCHING, RigidProblem, contact_states
from kinetree.errors import ContactError, SimulationError
from kinetree.integration.events import EventRecord
from kinetree.integration.watcher import mechanical_energy

_SURE = 0.5  # of the tolerance: what opens or slips, once an event has said that something does
_DOUBT = 1e-3  # the same for the contact of which an event has said it


class Transitions:
    """Modes of the contacts, and their changes at events.

    Args:
        settings: ``EventDriven``.
        dynamics: ``PhaseDynamics``, the motion during a phase.

    Attributes:
        mode: of the present phase.
        beyond: which contacts were beyond the borders of their features as the step began, (n,).
        tau: joint forces of the controller for which the mode was found.
        solves: number of contact problems solved to find the next mode.
        loss: energy lost in impacts and where sliding stops [J].
    """

    def __init__(self, settings, dynamics):
        self.settings, self.dynamics, self.model = settings, dynamics, dynamics.model
        self.of = dynamics.scene.candidates
        self.mode = ContactModes.apart(self.of.size)
        self.beyond = np.zeros(self.of.size, dtype=bool)
        self.solves, self.loss = 0, 0.0
        self.tau = None
        self._settled: tuple | None = None
        self._followed: tuple | None = None
        self._lost: tuple[float, set] = (-np.inf, set())  # when, and keys of features
        self._step = 0.0
        self._prepared: tuple | None = None

    # --- the next mode -----------------------------------------------------------------------

    def follow(self, t, h, q, qd):
        """Update the polyhedron features that can meet in a step of ``h`` seconds."""
        scene, key = self.dynamics.scene, (t, q.tobytes(), qd.tobytes())
        if not isinstance(scene, Features) or key == self._followed:
            return
        self._followed, self._step, before = key, h, list(scene.keys)
        lost = self._lost[1] if self._lost[0] == t else ()
        scene.follow(self.dynamics.tree, q, qd, h, self.settings.gap_tolerance, lost)
        self.beyond = scene.outside(self.dynamics.tree, q) > 0
        if scene.keys != before and self.tau is not None:
            self._settled = None
            self.settle(t, q, qd, self.tau)

    def prepare(self, t, h, q, qd, tau):
        """Update contact modes after a jump of joint forces, and sliding directions."""
        if self.tau is None or not np.array_equal(self.tau, tau):
            self.settle(t, q, qd, tau)
        mode = self.mode
        if not np.any(mode.kind == SLIDES) or self._prepared == (t, id(mode)):
            return  # not again, when the same step is taken with another length
        self._prepared = (t, id(mode))
        now = self.dynamics.instant(t, q, qd, tau)
        mode.slip[:] = np.where(
            (mode.kind == SLIDES)[:, None], self.dynamics.slip(now, qd, mode), 0.0
        )
        mode.blur[:] = self.dynamics.blurs(now, mode, h)

    def settle(self, t, q, qd, tau, index=(), suspect=None):
        """Determine the contact modes at a state from a contact problem.

        Args:
            t: time [s].
            q: joint positions.
            qd: joint velocities.
            tau: joint forces of the controller.
            index: of the sample: there is one.
            suspect: number of the contact whose event was located, or None.
        """
        key = (t, q.tobytes(), qd.tobytes(), np.asarray(tau).tobytes())
        if key == self._settled:
            return
        now = self.dynamics.instant(t, q, qd, tau)
        zeta = np.einsum("nav,v->na", now.J, qd)
        states = contact_states(
            now.gap, zeta[:, 0], self.settings.gap_tolerance, self.settings.velocity_tolerance
        )
        current = np.flatnonzero([s == TOUCHING for s in states])
        slow = np.hypot(zeta[:, 1], zeta[:, 2]) <= self.settings.stick_velocity
        zeta[slow, 1:] = 0.0
        mode = ContactModes.apart(self.of.size)
        if len(current):
            problem = self.problem(now, zeta, current)
            lam, w = self.solve(problem, t)
            self.solves += 1
            for c, k in enumerate(current):
                self._decide(mode, k, lam[c], w[c], zeta[k], k == suspect)
            mode.force[:] = centre(self.dynamics, now, qd, mode, mode.force)
        self.mode, self._settled, self.tau = mode, key, np.array(tau)
        if isinstance(self.dynamics.scene, Features):
            self.dynamics.scene.held[:] = mode.kind != OPEN

    def _decide(self, mode, k, lam, w, zeta, suspected):
        """Set contact ``k``'s mode by its force and acceleration: open, sticking or sliding."""
        small = self.settings.acceleration_tolerance * (_DOUBT if suspected else _SURE)
        if w[0] > small:
            return
        mode.force[k] = lam
        if self.of.friction[k] == 0:
            mode.kind[k] = TOUCHES
            return
        speed, begins = np.hypot(*zeta[1:]), np.hypot(*w[1:])
        if speed == 0 and begins <= small:
            mode.kind[k] = STICKS
            return
        mode.kind[k] = SLIDES
        push = np.hypot(*lam[1:])
        if speed > 0:
            mode.slip[k] = zeta[1:] / speed
        else:
            mode.slip[k] = -lam[1:] / push if push > 0 else w[1:] / begins

    def problem(self, now, zeta, which) -> RigidProblem:
        """``RigidProblem`` of numbered contacts at an instant, with loops closed."""
        A, free = now.with_loops()
        names = tuple(self.of.names[k] for k in which)
        mu = self.of.friction[which]
        return RigidProblem(now.J[which], A, free, now.bias[which], zeta[which], mu, names)

    def solve(self, problem, t, thorough=True):
        """Contact forces and accelerations of a contact problem, each (n, 3)."""
        try:
            lam = friction.solve(problem, 0.0, thorough=thorough)
        except ContactError as error:
            error.args = (f"at t = {t:.9g} s: {error.args[0]}", *error.args[1:])
            raise
        w = np.einsum("nav,v->na", problem.J, problem.motion(lam)) + problem.bias
        return lam, w

    # --- events ------------------------------------------------------------------------------

    def velocities(self, q, qd):
        """Relative velocities of all contacts along normal and tangents, (n, 3)."""
        return self.dynamics.scene.candidate_velocities(self.dynamics.tree, q, qd)[1]

    def hit(self, q, qd):
        """State after an impact at all closed contacts, and which contacts stay closed."""
        gap, point, axes = self.dynamics.scene.candidate_positions(self.dynamics.tree, q)
        near = np.flatnonzero(gap <= self.settings.gap_tolerance)
        zeta = self.velocities(q, qd)[near, 0]
        e, slowest = self.of.restitution[near], self.settings.rest_velocity
        e = np.where(e * self._impact_speeds(zeta) >= slowest, e, 0.0)
        contacts = Contacts(
            self.of.predecessor[near],
            self.of.successor[near],
            point[near],
            axes[near, 0],
            np.zeros(len(near)),
            tuple(self.of.names[k] for k in near),
        )
        after = impact(
            self.model,
            q,
            qd,
            contacts,
            law=self.settings.law,
            restitution=e,
            friction=self.of.friction[near],
            order=self.settings.order,
            given=self.dynamics.given,
        )
        stay = near[after.velocity[:, 0] < slowest]
        slip = np.hypot(after.velocity[:, 1], after.velocity[:, 2])
        slow = (slip <= self.settings.stick_velocity)[np.isin(near, stay)]
        sticks = stay[slow & (self.of.friction[stay] > 0)]
        rows = _equations(stay, sticks)
        q = closed_positions(self.dynamics, q, stay)
        qd = closed_velocities(self.dynamics, q, after.qd, rows)
        self.loss -= after.contact_work
        return q, qd, stay

    def _impact_speeds(self, zeta):
        """Approach speeds for restitution; sequential impacts use the fastest for all."""
        speeds = np.abs(zeta)
        sequential = self.settings.order == "sequential"
        return np.full_like(speeds, speeds.max(initial=0.0)) if sequential else speeds

    def arrive(self, k, t, q, qd):
        """State after contact ``k`` has closed, and the name of the event."""
        name = self.of.names[k]
        zeta = self.velocities(q, qd)[k, 0]
        if self.mode.kind[k] != OPEN or zeta >= -self.settings.velocity_tolerance:
            parts = zeta > self.settings.velocity_tolerance  # hit together with another
            return q, qd, f"{name} {'bounces' if parts else 'closes'}"
        q, qd, stay = self.hit(q, qd)
        self.settle(t, q, qd, self.tau)
        if k not in stay:
            return q, qd, f"{name} bounces"
        accumulated = self.of.restitution[k] > 0
        return q, qd, f"{name} {'stops bouncing' if accumulated else 'lands'}"

    def give_way(self, k, t, q, qd):
        """State after contact ``k`` opens or slips, in a new mode, and the event's name."""
        name, before = self.of.names[k], self.mode.kind[k]
        if before != OPEN:
            self._settled = None
            self.settle(t, q, qd, self.tau, suspect=k)
        after = self.mode.kind[k]
        if after == before:
            return q, qd, f"{name} bears a different load"
        return q, qd, f"{name} {'opens' if after == OPEN else 'slips'}"

    def stop(self, k, t, q, qd):
        """State after contact ``k`` has stopped sliding, and the name of the event."""
        name, zeta = self.of.names[k], self.velocities(q, qd)
        slow = np.hypot(zeta[:, 1], zeta[:, 2]) <= self.settings.stick_velocity
        if self.mode.kind[k] == SLIDES and slow[k]:
            sticking = np.flatnonzero(
                (self.mode.kind == STICKS) | ((self.mode.kind == SLIDES) & slow)
            )
            rows = _equations(self.mode.closed, sticking)
            qd = closed_velocities(self.dynamics, q, qd, rows)
        self.settle(t, q, qd, self.tau)
        sliding = "slides back" if slow[k] else "turns"
        what = {STICKS: "sticks", SLIDES: sliding, OPEN: "opens"}
        return q, qd, f"{name} {what[int(self.mode.kind[k])]}"

    def lose(self, k, t, q, qd):
        """State after contact ``k`` leaves its feature's border, and event name (RBDA §11.6)."""
        if self._lost[0] != t:
            self._lost = (t, set())
        self._lost[1].add(self.dynamics.scene.release(k))  # rounding may have it within borders
        self._followed = self._settled = None
        self.mode.kind[k] = OPEN
        self.follow(t, self._step, q, qd)
        return q, qd, f"{self.of.names[k]} slides off"

    def lock(self, k, t, q, qd):
        """State after sliding contact ``k`` loses all resistance (Painlevé), and the event name."""
        self.settle(t, q, qd, self.tau, suspect=k)
        return q, qd, f"{self.of.names[k]} comes to Painlevé's paradox"

    def enter_step(self, t, q, qd, tau):
        """State at the start of a step, after an impact if contacts close, and its record."""
        gap, zeta = self.dynamics.scene.candidate_velocities(self.dynamics.tree, q, qd)
        if self.tau is None and np.any(gap < -self.settings.gap_tolerance):
            k = int(np.argmin(gap))
            raise SimulationError(
                f"the simulation of {self.model.name!r} starts with {self.of.names[k]!r} "
                f"{-gap[k]:.6g} m inside each other, which rigid bodies cannot be: start where "
                f"they touch or are apart"
            )
        states = contact_states(
            gap, zeta[:, 0], self.settings.gap_tolerance, self.settings.velocity_tolerance
        )
        hits = [k for k, s in enumerate(states) if s == HITTING]
        if not hits:
            return q, qd, None
        q1, qd1, _ = self.hit(q, qd)
        energy = mechanical_energy(self.model, q1, qd1) - mechanical_energy(self.model, q, qd)
        names = ", ".join(self.of.names[k] for k in hits)
        self.settle(t, q1, qd1, tau)
        return q1, qd1, EventRecord(float(t), f"{names} hits", q, qd, q1, qd1, float(energy))


def _equations(closed, sticking):
    """Contact and axis of each equation: normals of ``closed``, tangents of ``sticking``, (m,)."""
    contact = np.concatenate([closed, sticking, sticking]).astype(int)
    return contact, np.repeat([0, 1, 2], [len(closed), len(sticking), len(sticking)])
