"""Steps of event-driven contact, and the events at which contacts change their modes."""

from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.event_driven.dynamics import (
    PhaseDynamics,
    closed_positions,
    closed_velocities,
)
from kinetree.contact.event_driven.features import Features
from kinetree.contact.event_driven.modes import OPEN, SLIDES, STICKS, centre
from kinetree.contact.event_driven.notes import PhaseNotes
from kinetree.contact.event_driven.transitions import Transitions
from kinetree.contact.mobility import drive_forces, free_variables
from kinetree.integration.events import EventRecord, UserEvents
from kinetree.integration.step import Step, Stepper
from kinetree.integration.watcher import Watcher


def event_driven_stepper(settings, effects, method, field, q, events, *, compiled):
    """Stepper and hooks of a simulation with ``EventDriven`` contact."""
    model = effects.model
    tree = model.spanning_tree
    scene = Features(settings.scene) if settings.scene.open_pairs else settings.scene
    transitions = Transitions(settings, PhaseDynamics(model, tree, scene, field))
    stepper = PhaseStepper(method, field, transitions, compiled=compiled)
    groups = [UserEvents(events, model)] if events else []
    watcher = Watcher(
        model, [*groups, ContactEvents(transitions)], q.shape[:-1], transitions.settle
    )
    return stepper, (watcher, stepper.recording_hook)


class PhaseStepper(Stepper):
    """Steps in which closed contacts are equations, and flight in compiled code.

    Args:
        method: the integrator, an explicit Runge–Kutta method.
        field: all joint forces.
        transitions: ``Transitions``, modes of the contacts.
        compiled: whether flight is compiled.
    """

    def __init__(self, method, field, transitions, *, compiled):
        super().__init__(transitions.model, method, field, compiled=compiled)
        self.transitions, self.dynamics = transitions, transitions.dynamics
        self.closes = self.dynamics.tree is not self.model
        self.constraints = "contact"
        self.notes = PhaseNotes(transitions)
        self._entry: tuple = (None, 0.0)  # when a step began with an impact, and its energy

    @property
    def in_flight(self) -> bool:
        """Whether all contacts are open and the model has no loops."""
        return not self.closes and not len(self.transitions.mode.closed)

    def take(self, t, h, q, qd, tau) -> Step:
        """Step of ``h`` seconds with interpolant, after an impact if contacts close."""
        self.transitions.follow(t, h, q, qd)
        q, qd, event = self.transitions.enter_step(t, q, qd, tau)
        if event is not None:
            self._entry = (t, event.energy)
        self.transitions.prepare(t, h, q, qd, tau)
        self.notes.begin(t, q, qd, tau)
        step = super().take(t, h, q, qd, tau)
        if self._entry[0] == t:  # also when the step is taken again, shorter
            step.work = step.work + self._entry[1]
        step.events += [] if event is None else [event]
        return step

    def end_of_step(self, t, h, q, qd, tau, *, full=False):
        """State after a step of ``h`` seconds in the present contact modes."""
        if self.in_flight:
            return super().end_of_step(t, h, q, qd, tau, full=full)
        after = self.method.step(self._motion, self.model, t, h, q, qd, tau)
        end = closed_positions(self.dynamics, after.q, self.transitions.mode.closed)
        return after._replace(
            q=end, qd=closed_velocities(self.dynamics, end, after.qd, self.transitions.mode.rows)
        )

    def accelerations(self, t, q, qd, tau):
        """Accelerations and power of joint and contact forces at one instant."""
        if self.in_flight:
            return super().accelerations(t, q, qd, tau)
        return self._motion(self.model, t, q, qd, tau)

    def _motion(self, model, t, q, qd, tau):
        """Accelerations and power at an instant in the present contact modes."""
        q, qd = self.dynamics.at_time(t, q, qd)
        motion = self.dynamics.motion(
            self.dynamics.instant(t, q, qd, tau), qd, self.transitions.mode
        )
        return motion.qdd, motion.power

    def recording_hook(self, step):
        """Hook at the end of a step that records forces, and opens overloaded contacts.

        Contacts that cannot bear their loads there, though no function crossed zero, as it was
        negative from the start, give way.
        """
        if not len(self.transitions.mode.closed):
            self.notes.take(step, None)
            return step
        found = self._loads(step)
        worst = int(np.argmin(found.margin))
        if found.margin[worst] < 0:
            before = self.transitions.mode.names
            q, qd = step.q1, step.qd1
            _ = step.interpolant  # of the mode that ends
            name = self.transitions.give_way(worst, step.t1, q, qd)[2]
            if before != self.transitions.mode.names:
                step.events.append(EventRecord(float(step.t1), name, q, qd, q, qd))
            found = self._loads(step)
        self.notes.take(step, found.motion)
        return step

    def drive_forces(self, arrays):
        """Joint forces of controller and prescribed drives at all times, (T, nv)."""
        given, found = self.dynamics.given, []
        free = free_variables(self.model, given)
        states = (arrays[name] for name in ("t", "q", "qd", "tau"))
        for t, q, qd, tau, force in zip(*states, self.notes.history().force, strict=True):
            now = self.dynamics.instant(t, q, qd, tau)
            A, unpushed = now.with_loops()
            push = np.einsum("nav,na->v", now.J, force)
            total = drive_forces(self.model, q, qd, now.total, unpushed + A @ push, push, given)
            own = np.where(free, 0.0, total - now.total)
            found.append(self.field.driving_force(self.model, t, q, qd, tau) + own)
        return np.array(found)

    def _loads(self, step):
        """Contact loads at the end of a step; redundant forces are centred in their limits."""
        mode = self.transitions.mode
        now = self.dynamics.instant(step.t1, step.q1, step.qd1, step.tau)
        found = loads(self.transitions, now, step.t1, step.qd1)
        if found.motion.regular or np.any(found.margin < 0):
            return found
        force = np.array(found.motion.force)
        force[mode.closed] = found.shared.get((), force[mode.closed])
        mode.force[:] = centre(self.dynamics, now, step.qd1, mode, force)
        return found._replace(motion=self.dynamics.motion(now, step.qd1, mode))


# --- Events: functions that cross zero when the mode of a contact changes ------------------------
# All functions are positive as long as nothing happens, and one where nothing can.

_TINY = 1e-15  # [m] stands for the gap of a contact that is about to open
_NOISE = 1e-3  # of the tolerance of velocities: slower sliding back is rounding
_KINDS = ("arrive", "stop", "lose", "give_way", "lock")
_OF_MOTION = 3  # the first of them follow from positions and velocities alone


class _Watch:
    """One contact and one kind of event, as a ``Watcher`` sees it; crossings downward count."""

    direction = -1
    terminal = False
    tolerance = 1e-12
    remedy = (
        "forces that switch with the motion do that; let them change smoothly, call the controller "
        "less often (kinetree.Sampled), or take equal steps (kinetree.contact.TimeStepping)"
    )

    def __init__(self, group, contact, kind):
        self.group, self.contact, self.kind = group, contact, kind
        self.meets, self.ended = kind == "arrive", False
        self.name = f"{group.transitions.of.names[contact]}: {kind}"

    def values(self, t, q, qd, tau, stepper):
        """Event function of one contact, (n,), for times (n,) and states (n, nq), (n, nv)."""
        at = _KINDS.index(self.kind)
        if at < _OF_MOTION:
            return self.group.of_motion(t, q, qd, tau)[at][..., self.contact]
        return self.group.of_forces(t, q, qd, tau)[at - _OF_MOTION][..., self.contact]

    def act(self, t, q, qd):
        """State after the contact event, whose name is stored in ``name``."""
        transitions = self.group.transitions
        q, qd, self.name = getattr(transitions, self.kind)(self.contact, t, q, qd)
        self.ended = self.kind == "stop" and transitions.mode.kind[self.contact] == STICKS
        return q, qd


class ContactEvents:
    """All events of the contacts, for a ``Watcher``.

    Args:
        transitions: ``Transitions``, whose methods handle the events.
    """

    def __init__(self, transitions):
        self.transitions = transitions
        self.watches = [
            _Watch(self, k, kind) for kind in _KINDS for k in range(transitions.of.size)
        ]

    def values(self, t, q, qd, tau, stepper):
        """Event functions of all contacts, (n, 5 contacts), for times (n,) and states."""
        parts = *self.of_motion(t, q, qd, tau), *self.of_forces(t, q, qd, tau)
        return np.concatenate(parts, axis=-1)

    def of_motion(self, t, q, qd, tau):
        """Gaps, sliding speeds ahead, and border distances of all contacts, (n, contacts) each.

        Each (n, contacts). A contact that is closed and about to open counts as open. Features of
        polyhedra that come within their borders where bodies touch already are closed at once.
        """
        transitions = self.transitions
        dynamics, mode, settings = transitions.dynamics, transitions.mode, transitions.settings
        q, qd = dynamics.at_time(t, q, qd)
        gap, zeta = dynamics.scene.candidate_velocities(dynamics.tree, q, qd)
        opening = (gap <= 0) & (zeta[..., 0] >= -settings.velocity_tolerance)
        arrive = np.where(opening, _TINY, gap)
        inside = np.ones(gap.shape)
        if isinstance(dynamics.scene, Features):
            inside = -dynamics.scene.outside(dynamics.tree, q)
            beside = (np.abs(gap) <= settings.gap_tolerance) & (inside >= 0)
            beside &= np.abs(zeta[..., 0]) <= settings.velocity_tolerance
            arrive = np.where(beside & transitions.beyond, -_TINY, arrive)
        arrive = np.where(mode.kind == OPEN, arrive, 1.0)
        along = np.einsum("...ni,ni->...n", zeta[..., 1:], mode.slip)
        along = along + _NOISE * settings.velocity_tolerance
        slides, closed = mode.kind == SLIDES, mode.kind != OPEN
        return arrive, np.where(slides, along, 1.0), np.where(closed, inside, 1.0)

    def of_forces(self, t, q, qd, tau):
        """Load margins of closed contacts, and resistances of sliding ones, (n, contacts)."""
        dynamics, mode = self.transitions.dynamics, self.transitions.mode
        if not len(mode.closed):
            return tuple(np.ones((2, len(qd), len(mode.kind))))
        q, qd = dynamics.at_time(t, q, qd)
        now = dynamics.instant(np.asarray(t, dtype=float), q, qd, tau)
        return loads(self.transitions, now, t, qd).margin, dynamics.resistance(now, qd, mode)


class Loads(NamedTuple):
    """Loads of closed contacts, and their margins."""

    motion: Any
    """Motion and forces in the present mode."""
    margin: Any
    """With which acceleration contacts would have to be driven before they give way [m/s²], (...,
    n); one for open ones."""
    shared: dict
    """Of forces that are not unique, where those nearest to the last are not admissible, others
    that are: by index, (closed contacts, 3)."""


def loads(transitions, now, t, qd) -> Loads:
    """Contact loads and their margins at one ``ContactInstant``, or at many.

    Where forces are not unique, and those nearest to the last are not admissible, a contact problem
    says whether others are.
    """
    dynamics, mode = transitions.dynamics, transitions.mode
    tolerance = transitions.settings.acceleration_tolerance
    motion = dynamics.motion(now, qd, mode)
    contact, axis = mode.rows
    first, second = np.flatnonzero(axis == 0), np.flatnonzero(axis == 1)
    margin = np.ones(motion.force.shape[:-1])
    force, soft = motion.force, motion.softness
    margin[..., contact[first]] = force[..., contact[first], 0] * soft[..., first]
    at = contact[second]
    excess = dynamics.mu[at] * force[..., at, 0] - np.hypot(force[..., at, 1], force[..., at, 2])
    compliance = np.minimum(soft[..., second], soft[..., second + 1])
    margin[..., at] = np.minimum(margin[..., at], excess * compliance)
    margin[..., mode.closed] += tolerance
    shared = {}
    for index in map(tuple, np.argwhere(~motion.regular & np.any(margin <= 0, axis=-1))):
        one = type(now)(*(x[index] for x in now))
        time = float(np.asarray(t)[index] if np.ndim(t) else t)
        shared[index], margin[index] = _shared_out(transitions, one, time, qd[index])
    return Loads(motion, margin, shared)


def _shared_out(transitions, now, t, qd):
    """Forces of redundant closed contacts by a contact problem, and their margins (n,)."""
    mode, closed = transitions.mode, transitions.mode.closed
    zeta = np.zeros((len(mode.kind), 3))
    zeta[:, 1:] = np.where(
        (mode.kind == SLIDES)[:, None], transitions.dynamics.slip(now, qd, mode), 0.0
    )
    lam, w = transitions.solve(transitions.problem(now, zeta, closed), t, thorough=False)
    margin, tolerance = np.ones(len(mode.kind)), transitions.settings.acceleration_tolerance
    sideways = np.where(mode.kind[closed] == STICKS, np.hypot(w[:, 1], w[:, 2]), 0.0)
    rest = tolerance - np.maximum(w[:, 0], sideways)
    margin[closed] = np.where(rest > tolerance / 2, 1.0, rest)
    return lam, margin
