"""Steps of event-driven contact, and what is written down about them."""

import numpy as np

from kinetree.contact.event_driven.closing import closed_positions, closed_velocities
from kinetree.contact.event_driven.held import Held
from kinetree.contact.event_driven.history import PhaseNotes
from kinetree.contact.event_driven.machine import Machine
from kinetree.contact.event_driven.sharing import centred
from kinetree.contact.event_driven.watches import Touches, loads
from kinetree.contact.mobility import drive_forces, free_variables
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.integration.events import EventRecord, UserEvents
from kinetree.integration.step import Step, Stepper
from kinetree.integration.watcher import Watcher

__all__ = ["PhaseStepper", "event_driven_stepper"]


def event_driven_stepper(settings, acting, method, field, q, events, *, compiled):
    """What takes steps, and hooks that look at them, for ``EventDriven``."""
    model = acting.model
    _check(acting, method, field, q)
    tree = model.replace(loops=()) if model.loops else model
    machine = Machine(settings, Held(model, tree, settings.scene, field))
    stepper = PhaseStepper(method, field, machine, compiled=compiled)
    groups = [UserEvents(events, model)] if events else []
    watcher = Watcher(model, [*groups, Touches(machine)], q.shape[:-1], machine.settle)
    return stepper, (watcher, stepper.noted)


def _check(acting, method, field, q):
    if q.ndim != 1:
        raise ShapeError(
            f"event-driven contact takes one motion at a time, whose events are its own; q0 has "
            f"shape {q.shape}. Use kinetree.sweep for many, or TimeStepping"
        )
    if method.differentiates or not hasattr(getattr(method, "inner", method), "tableau"):
        raise UnknownNameError(
            f"integrator {method.name!r} cannot take steps in which contacts are equations: use "
            f"'rk4', 'dopri5' or another explicit Runge–Kutta method with EventDriven"
        )
    stateful = any(getattr(force, "state_size", 0) for force in field.forces)
    for what, name, instead in (
        (acting.limits, "rigid limits", "limits='stiff'"),
        (acting.friction, "exact joint friction", "friction='smooth'"),
        (stateful, "soft contact with a memory", "law='hunt_crossley'"),
    ):
        if what:
            raise ModelError(
                f"event-driven contact does not go together with {name}, whose events know nothing "
                f"of contacts: use {instead}, or TimeStepping"
            )


class PhaseStepper(Stepper):
    """Steps in which closed contacts are equations, and flight in compiled code.

    Args:
        method: the integrator, an explicit Runge–Kutta method.
        field: all joint forces.
        machine: what contacts do.
        compiled: whether flight is compiled.
    """

    def __init__(self, method, field, machine, *, compiled):
        super().__init__(machine.model, method, field, compiled=compiled)
        self.machine, self.held = machine, machine.held
        self.closes = self.held.tree is not self.model
        self.constraints = "contact"
        self.notes = PhaseNotes(machine)
        self._entry: tuple = (None, 0.0)  # when a step began with an impact, and its energy

    @property
    def in_flight(self) -> bool:
        """Whether no equation holds anything."""
        return not self.closes and not len(self.machine.mode.closed)

    def take(self, t, h, q, qd, tau) -> Step:
        """A step of ``h`` seconds, after an impact if contacts are closing."""
        q, qd, event = self.machine.entered(t, q, qd, tau)
        if event is not None:
            self._entry = (t, event.energy)
        self.machine.prepare(t, h, q, qd, tau)
        self.notes.begin(t, q, qd, tau)
        step = super().take(t, h, q, qd, tau)
        if self._entry[0] == t:  # also when the step is taken again, shorter
            step.work = step.work + self._entry[1]
        step.events += [] if event is None else [event]
        return step

    def stepped(self, t, h, q, qd, tau, *, full=False):
        """The end of a step of ``h`` seconds in the present mode."""
        if self.in_flight:
            return super().stepped(t, h, q, qd, tau, full=full)
        after = self.method.step(self._motion, self.model, t, h, q, qd, tau)
        end = closed_positions(self.held, after.q, self.machine.mode.closed)
        return after._replace(
            q=end, qd=closed_velocities(self.held, end, after.qd, self.machine.mode.rows)
        )

    def accelerations(self, t, q, qd, tau):
        """Accelerations, and the power of joint and contact forces."""
        if self.in_flight:
            return super().accelerations(t, q, qd, tau)
        return self._motion(self.model, t, q, qd, tau)

    def _motion(self, model, t, q, qd, tau):
        q, qd = self.held.placed(t, q, qd)
        answer = self.held.answer(self.held.instant(t, q, qd, tau), qd, self.machine.mode)
        return answer.qdd, answer.power

    def noted(self, step):
        """A hook: forces and residuals at the end of a step are written down.

        Contacts that cannot bear their loads there, though no function crossed zero, as it was
        negative from the start, give way.
        """
        if not len(self.machine.mode.closed):
            self.notes.take(step, None)
            return step
        found = self._loads(step)
        worst = int(np.argmin(found.margin))
        if found.margin[worst] < 0:
            before = self.machine.mode.names
            q, qd = step.q1, step.qd1
            _ = step.interpolant  # of the mode that ends
            name = self.machine.give_way(worst, step.t1, q, qd)[2]
            if before != self.machine.mode.names:
                step.events.append(EventRecord(float(step.t1), name, q, qd, q, qd))
            found = self._loads(step)
        self.notes.take(step, found.answer)
        return step

    def drive_forces(self, arrays):
        """Joint forces of the controller, and of the drives where it has no say, (T, nv)."""
        given, found = self.held.given, []
        free = free_variables(self.model, given)
        states = (arrays[name] for name in ("t", "q", "qd", "tau"))
        for t, q, qd, tau, force in zip(*states, self.notes.history().force, strict=True):
            now = self.held.instant(t, q, qd, tau)
            A, unpushed = now.with_loops()
            push = np.einsum("nav,na->v", now.J, force)
            total = drive_forces(self.model, q, qd, now.total, unpushed + A @ push, push, given)
            found.append(np.where(free, tau, total - now.total))
        return np.array(found)

    def _loads(self, step):
        """Loads at the end of a step, shared out such that contacts can bear them and more."""
        mode = self.machine.mode
        now = self.held.instant(step.t1, step.q1, step.qd1, step.tau)
        found = loads(self.machine, now, step.t1, step.qd1)
        if found.answer.regular or np.any(found.margin < 0):
            return found
        force = np.array(found.answer.force)
        force[mode.closed] = found.shared.get((), force[mode.closed])
        mode.force[:] = centred(self.held, now, step.qd1, mode, force)
        return found._replace(answer=self.held.answer(now, step.qd1, mode))
