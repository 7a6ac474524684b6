"""Steps of a world: what acts in them, and the machine of one motion that takes them."""

from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.codegen.runtime.interrupts import Interrupt, Pace
from kinetree.contact.engine.engine import Engine
from kinetree.contact.engine.machine import DivergedError, Machine
from kinetree.contact.engine.making import engine_of, is_plain, native_forces, smooth_laws
from kinetree.contact.engine.parts import NO_CONTROL
from kinetree.contact.history import Residuals
from kinetree.contact.stepping.choice import joint_rows
from kinetree.errors import SimulationError
from kinetree.integration.field import Field
from kinetree.quantities.actuators import driving_force
from kinetree.simulation.setup import effects_of, laws_of
from kinetree.worlds.contacts import (
    Contacts,
    Labels,
    contact_rows,
    contacts_at,
    of_stored,
    without_forces,
)
from kinetree.worlds.controllers import control_of
from kinetree.worlds.forces import WorldForces
from kinetree.worlds.inputs import ActuatorInputs, hold, reader_of
from kinetree.worlds.results import Report, report_of
from kinetree.worlds.starts import StartCheck

SLICE = 64
"""Steps that are taken without hearing Ctrl-C, at first: then as many as take a short time."""


class WorldSteps:
    """Takes the steps of a world.

    Args:
        model: the whole world.
        contact: a ``TimeStepping``.
        joints: how limits and dry friction of joints are taken, and torque–speed curves.
        solving: ``tolerance`` of impulses, relative to the largest of an island, and ``sleeping``:
            whether what rests is left alone.
        strict: whether a step that cannot be trusted raises an error.
    """

    def __init__(self, model, contact, joints, solving, strict):
        self.model, self.scene, self.drives = model, contact.scene, ActuatorInputs(model)
        self.has_states = self.drives.states.size > 0
        friction, limits = laws_of(model, joints["friction"], joints["limits"], rigid=True)
        motors = joints["motors"]
        effects = effects_of(model, friction=friction, limits=limits, motors=motors, rows=True)
        self.start = StartCheck(model, limits == "rigid")
        self.field = Field((), effects.passive)
        self.contact, self.effects = contact, effects
        self.solving, self.strict, self.reported = solving, strict, None
        self.forget()

    @cached_property
    def machine(self) -> Machine:
        """``Machine`` of a single motion that takes the world's steps."""
        new = Machine(self.new_engine, 1)
        new.raise_errors()
        new.engine.parts.strict, new.engine.parts.warned = int(self.strict), 0
        return new

    @property
    def engine(self) -> Engine:
        """``Engine`` of the world's machine."""
        return self.machine.engine

    def new_engine(self, own: bool = False) -> Engine:
        """New engine for the world; with ``own``, code that reads its parameters from tables."""
        model, field, native = self.model, self.field, {}
        # Tables of smooth laws are those of all worlds, and the laws follow from inertias.
        plain = is_plain(field) and not (own and smooth_laws(field) != (None, None))
        if model.nv and not plain:
            native = native_forces(model, field, own=own)
        rows = joint_rows(self.effects)
        given = model, self.contact, rows, None if native else field
        native |= {"actuated": self.drives.count > 0, "drive": self.effects.drive}
        return engine_of(*given, own=own, **self.solving, **native)

    def forget(self):
        """Clear the solver's warm-start memory."""
        self.restore({})

    def copy_memory(self) -> dict[str, np.ndarray]:
        """Copy of the solver's warm-start memory, for ``State``."""
        if self.memory is None:
            return self.machine.memory_of(0)
        return {name: np.array(x) for name, x in self.memory.items()}

    def restore(self, memory: dict[str, np.ndarray]):
        """Set the solver's memory for the next step to one of ``copy_memory``."""
        self.memory: dict[str, np.ndarray] | None = memory
        self.end, self.checked = None, False
        self.taken, self.plain, self.is_driven = 0, None, None
        self.inputs: tuple = (np.zeros(self.model.nv), None, None)
        self.controller: tuple = (None, None)

    def check(self, whole):
        """Check a newly set state: close loops, and warn of overlaps and exceeded limits."""
        if not self.checked:
            self.checked = True
            q, qd = self.start.close_loops(self.engine, whole.q, whole.qd)
            if q is not whole.q:
                whole.q, whole.qd = q, qd
            self.start.check(self.engine, q)

    def check_starts(self, q):
        """Warn of overlaps and exceeded limits at positions (..., nq) of a rollout."""
        starts = np.asarray(q, dtype=float).reshape(-1, self.model.nq)
        find, engine = self.machine.find, self.engine
        faults = {k: self.start.faults(engine, find(0, x), x) for k, x in enumerate(starts)}
        if len(starts) == 1:
            self.start.warn_of(faults[0])
            return
        self.start.check_batch(faults, len(starts))

    def advance(self, whole, t, h, n, control, acting, parts):
        """Take ``n`` steps of ``h`` seconds from ``t`` with inputs, updating ``whole``'s state.

        ``acting``: joint forces, and ``WorldForces``.
        """
        tau, external = acting
        if control is None and not external and self._advance_compiled(whole, t, h, n, tau):
            return
        push = reader_of(tau, self.model)
        read, held = (None, True) if control is None else self.drives.reader(control, parts)
        together = held and external.held and not callable(tau)
        done = 0
        if not self.model.nv:  # nothing moves
            self.taken = done = n
        if done < n:
            self.check(whole)
        while done < n:
            now = t + done * h
            state = now, whole.q, whole.qd
            force = push(*state) + external.joint_forces(*state)
            u = None if read is None else read(*state)
            self._load(whole, now)
            self.machine.push(external.give, external.wrenches(now))
            hold(self.machine, None if u is None else u[None], force[None], self._activation)
            self.inputs = force, u, whole.activation
            count = n - done if together else 1
            self._take(whole, h, count)
            done += count
        in_place = tau is None and not external and self.model.nv
        self.plain, self.is_driven = h if in_place else None, None

    def _advance_compiled(self, whole, t, h, n, tau) -> bool:
        """Take ``n`` steps in one call under a compiled controller; False if it is none."""
        if not callable(tau) or not self.model.nv or not n or self.has_states:
            return False
        before = self.controller[0]
        is_same = tau is before or (hasattr(tau, "is_same") and tau.is_same(before))
        if not is_same:  # the last one stays tied
            self.controller = tau, control_of(self.model, tau)
        made = self.controller[1]
        if made is None or self.engine.s.inputs_count:
            return False
        self.check(whole)
        self._load(whole, t)
        self.machine.push(WorldForces(self.model, None).give, np.zeros((1, 0, 6)))
        hold(self.machine, None, np.zeros((1, self.model.nv)), self._activation)
        self.machine.control(made)
        try:
            self._take(whole, h, n)
        finally:
            self.inputs = self.engine.held[self.engine.of_v].copy(), None, whole.activation
            self.machine.control(None)
        if hasattr(made, "tell"):
            made.tell()
        self.plain = self.is_driven = None
        return True

    def load(self, whole):
        """Write a world's positions, velocities and solver memory to the machine."""
        if self.memory is not None:
            self.machine.restore(0, whole.q, whole.qd, self.memory)
            self.memory = None
        else:
            self.machine.put(whole.q[None], whole.qd[None])

    def _load(self, whole, t):
        """Write a world's state, time and activations to the machine."""
        self.load(whole)
        self.machine.time[0], self._activation[0] = t, whole.activation

    @cached_property
    def _activation(self):
        """Activations of the actuators, (1, m), shared with the machine."""
        return np.zeros((1, self.drives.states.size))

    def go_on(self, whole, h, n, u) -> bool:
        """Take ``n`` more steps in place with actuators alone; False if other inputs act.

        Args:
            whole: the world, whose state the machine must have.
            h: length of a step, which must be that of the last ones.
            n: how many.
            u: controls, or None.
        """
        if h != self.plain or not (whole.is_ahead or whole.q is self.end):
            return False
        if (u is not None or self.is_driven is not False) and not self._give(u):
            return False
        if n > self._slice or self.has_states:
            return self._go_far(whole, h, n)
        code = self._at_once(n, 0, 1)
        if code != 0:
            if code == NO_CONTROL:
                return False
            with self._arriving(whole, h):
                self.machine.resume(code)
        self.taken, whole.is_ahead = n, True
        return True

    @cached_property
    def _at_once(self):
        """Compiled function that takes several steps with constant inputs."""
        return self.machine.at_once

    @cached_property
    def _slice(self):
        """Number of steps before the first check for Ctrl-C: 1 for worlds of many bodies."""
        return 1 if self.machine.is_wide else SLICE

    def _go_far(self, whole, h, n) -> bool:
        """Take many interruptible steps, or steps with activations; False if invalid."""
        if self.is_driven and not np.isfinite(self._u).all():
            return False
        self._activation[0] = before = whole.activation
        self._take(whole, h, n)
        self.inputs = *self.inputs[:2], before
        return True

    def _take(self, whole, h, n):
        """Take ``n`` steps in slices, between which Ctrl-C is handled."""
        pace = Pace(self._slice)
        count = pace.size
        with Interrupt(n > count) as interrupt:
            while n > 0:
                count = min(count, n)
                with self._arriving(whole, h):
                    self.machine.advance(h, count)
                n -= count
                count = pace.next()
                interrupt.look()

    @contextmanager
    def _arriving(self, whole, h):
        """Context in which the machine steps, and after which the world's state is updated."""
        ends = self.machine.motions.ends
        ends[0, 3] = 0
        try:
            yield
        except DivergedError:
            self._refuse(self.machine.qd[0], h)
        finally:
            self.taken += int(ends[0, 3])
            whole.is_ahead = True
            if self.has_states:
                whole.activation = self._activation[0].copy()

    def _give(self, u) -> bool:
        """Set the next steps' controls, or None; False if their form differs from before."""
        if u is not None:
            if type(u) is not np.ndarray or u.shape != self.drives.shape or u.dtype != float:
                return False
            self._u[:] = u
        if self.is_driven is not (u is not None):
            self._switch(u is not None)
        return True

    @cached_property
    def _u(self):
        """Controls held during steps, (count,), shared with the machine."""
        return np.zeros(self.drives.count)

    def _switch(self, driven):
        """Enable or disable the actuators for the next steps."""
        self.is_driven, u = driven, self._u if driven else None
        hold(self.machine, None if u is None else u[None], None, self._activation)
        self.inputs = np.zeros(self.model.nv), u, None

    def follow(self, whole, t, h, n, control, parts):
        """Take ``n`` steps with controls from a function of time and state before each."""
        read, _ = self.drives.reader(control, parts)
        for k in range(n):
            u = read(t + k * h, whole.q, whole.qd)
            if not self.go_on(whole, h, 1, u):
                self.advance(
                    whole, t + k * h, h, 1, u, (None, WorldForces(self.model, None)), parts
                )

    def current(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities that the machine has reached: copies."""
        q, qd = self.machine.view(0)
        if self.model.couplings:
            self.end = q[self.engine.of_q]
            return self.end, qd[self.engine.of_v]
        self.end = q.copy()
        return self.end, qd.copy()

    def report(self, t: float, h: float) -> Report:
        """``Report`` on all steps since the last one, at time ``t`` with steps of ``h`` seconds."""
        if not self.model.nv:
            return Report(self.taken, Residuals(*[0.0] * len(Residuals._fields)), 0, 0, 0.0)
        b = self.machine.motions
        if self.reported is None or b.counts[0, 0]:
            self.reported = report_of(b, 0, t, h)
            b.since[:], b.counts[:] = 0.0, 0
        return self.reported

    def _refuse(self, qd, h):
        """Raise SimulationError for a step whose result is not finite, naming a joint."""
        fastest = int(np.argmax(np.where(np.isfinite(qd), np.abs(qd), np.inf)))
        at = next(i for i, x in enumerate(self.model.v_slice) if x.start <= fastest < x.stop)
        raise SimulationError(
            f"world {self.model.name!r} does not stay finite: forces or velocities are too large "
            f"for steps of {h:g} s, first at joint {self.model.joint_names[at - 1]!r}"
        )

    def _touching(self, whole):
        """Contacts of the world with forces, moments and velocities, (n, 3) each."""
        if self.model.nv and whole.q is self.end:  # which reading q brings up to date
            return contact_rows(self.machine.forces(0))
        return without_forces(self.model, whole.q, whole.qd, self.engine.contacts(whole.q))

    def contacts(self, whole) -> Contacts:
        """``Contacts`` of the last step, or at the present state if that was changed."""
        q = whole.q  # which brings the state up to date
        if self.model.nv and q is self.end:
            return of_stored(*self.machine.listed_contacts(0), self.labels)
        return contacts_at(self.engine, self.engine.contacts(q), q, whole.qd, self.labels)

    @cached_property
    def labels(self) -> Labels:
        """``Labels`` with the names of bodies and shapes, for contacts."""
        return Labels(self.model, self.engine.tables.numbers)

    def readings(self, whole, sensors, t):
        """Sensor readings at time ``t``, with forces and accelerations of the last step."""
        tau, u, before = self.inputs
        given: dict[str, Any] = {"t": np.asarray(t), "tau": tau}
        if u is not None and whole.q is not self.end:
            states = (whole.activation,) if self.drives.states.size else ()
            own = driving_force(self.model, whole.q, whole.qd, u, *states)
            drive = self.effects.drive
            given["tau"] = tau + (own if drive is None else drive(self.model, whole.qd, own))
        if whole.q is self.end:  # accelerations are those of the last step
            change = whole.qd - self.machine.before[0]
            given = {"t": np.asarray(t), "qdd": change / self.machine.motions.inputs.h}
        if any(s.kind in ("touch", "force", "torque") for s in sensors.values()):
            given["contacts"], given["contact_forces"] = self._touching(whole)[:2]
        if self.drives.count:
            given["controls"] = np.zeros(self.drives.count) if u is None else u
            if self.drives.states.size:
                given["activation"] = whole.activation if before is None else before
        return sensors(whole.q, whole.qd, **given)
