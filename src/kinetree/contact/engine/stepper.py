"""Steps of ``simulate`` by the machine: single motions, and batches."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from kinetree.contact.engine.engine import Engine
from kinetree.contact.engine.machine import DivergedError, Machine
from kinetree.contact.engine.making import (
    beside_actuators,
    engine_of,
    has_actuators_in_tables,
    is_plain,
    native_forces,
    without_actuators,
)
from kinetree.contact.engine.prescribed import drives_at, prescribed_motion
from kinetree.contact.engine.renewal import idle_machines
from kinetree.contact.history import RecordedHistory
from kinetree.contact.scheme.constraints import StepConstraints
from kinetree.errors import SimulationError
from kinetree.functional.kernel import kernel
from kinetree.integration.breakdown import check_finite_state
from kinetree.integration.integrator import Stepped
from kinetree.integration.step import Scheme, Stepper
from kinetree.model.gearing import Gearing
from kinetree.model.geometry import Box, Capsule, Ellipsoid, Plane, Sphere

FLIES = 64
"""Velocity variables up to which the integrator takes the steps in which nothing is near."""


@dataclass(frozen=True)
class _Flight:
    """Steps of an integrator in the variables of all joints."""

    model: Any
    method: Any
    field: Any

    def __call__(self, t, h, q, qd, inputs):
        model, scheme = self.model, Scheme(self.method, self.field)
        if not model.couplings:
            return scheme(model, t, h, q, qd, inputs)
        of_q, of_v = model.independent_variables
        held = inputs[of_v] if self.field.actuators is None else inputs
        q, qd, *rest = scheme(model, t, h, q[of_q], qd[of_v], held)
        end = Gearing(model, q, qd)
        return end.q, end.qd, *rest


@kernel
def _flight(full, t, h, q, qd, inputs, *, step):
    """Kernel function of one contact-free step of the smooth integrator."""
    return step(t, h, q, qd, inputs)


class EngineNotes:
    """Forces and residuals of motions, which the machine stores.

    Args:
        machine: that takes the steps.
        constraints: of these.
    """

    def __init__(self, machine, constraints):
        self.machine, self.constraints = machine, constraints

    def keep(self, q):
        """Store the last step's forces, and the residuals since the last stored time.

        Where a hook has moved the bodies to ``q``, how deep they are there counts as well.
        """
        machine, recorder = self.machine, self.machine.recorder
        if recorder.storage.pending < 0:
            recorder.expect()
        residuals, now = recorder.keep(), q.reshape(len(machine), -1)
        moved = np.any(machine.q != now, axis=1) & (recorder.times > 1)
        for k in np.flatnonzero(moved):
            residuals[k, 3] = max(residuals[k, 3], machine.engine.overlap(now[k]))
        machine.motions.total[:, :10] = 0.0
        recorder.expect()

    def history(self) -> RecordedHistory:
        """History of all stored contact forces and residuals."""
        return self.later(self.machine.recorder.summary())()

    def later(self, summary) -> Callable[[], RecordedHistory]:
        """Function that returns the stored history when called, given its ``summary``."""
        return self.machine.recorder.history(columns_in(self.constraints.scene), summary)


def columns_in(scene) -> Callable:
    """Function from an engine and contact keys to names, and the order of columns."""

    def columns(engine, keys):
        names = [engine.name_of(*key) for key in keys]
        return names, known_columns(scene, set(names))

    return columns


def known_columns(scene, found) -> tuple[str, ...]:
    """Ordered contact names: a scene's candidates if numbered, else the found ones."""
    fixed = not (scene.is_large or scene.open_pairs) and all(map(_is_numbered, scene.pairs))
    if fixed and found.issubset(scene.candidates.names):
        return scene.candidates.names
    return tuple(sorted(found))


def _is_numbered(pair):
    """Whether a pair's contacts have fixed numbers: one, two ends, or corners."""
    first, second = pair.first.shape, pair.second.shape
    if not isinstance(first, Plane):
        return isinstance(first, Sphere) or isinstance(second, Sphere)
    return isinstance(second, (Sphere, Capsule, Box, Ellipsoid))


class EngineStepper(Stepper):
    """Steps with contact, by the machine.

    Args:
        model: the mechanism.
        method: the integrator for flight.
        field: what moves it.
        settings: ``TimeStepping``.
        joints: ends of travel and dry friction.
        batch: shape of the batch.
        compiled: whether all forces can be compiled.

    Attributes:
        machine: all motions.
        notes: forces and residuals of the steps, see ``history``.
        inside: which bodies start inside each other, in words.
    """

    inside = ""
    machine: Machine
    engine: Engine
    _memory: dict = {}
    _has_begun = False

    def __init__(self, model, method, field, settings, joints, batch, *, compiled):
        super().__init__(model, method, field, compiled=compiled)
        self.settings, self.joints, self.batch = settings, joints, batch
        constraints = StepConstraints(model, settings.scene, joints)
        self.constraints = "contact" if constraints.closes else None
        self.scene, self.prescription = settings.scene, field.prescription
        rigid = constraints.closes or joints.friction
        self.flies = compiled and settings.flight and model.nv <= FLIES
        # Servos of robots with couplings are exact as in worlds: implicit, within their efforts.
        served = model.couplings and field.actuators is not None
        self.flies = self.flies and not (rigid or served)
        self._made_of = (model, field), (settings, joints, compiled, prod(batch))
        self._rows = constraints

    def ready(self) -> "EngineStepper":
        """Copy of the stepper for one simulation, with a machine of its pool."""
        new = object.__new__(EngineStepper)
        vars(new).update(vars(self))
        new.machine = idle_machines(new.scene).take(*new._made_of, new._new_machine)
        if new.flies:
            new.machine.flight = lambda: new._flight
        new.notes, new.engine = EngineNotes(new.machine, new._rows), new.machine.engine
        return new

    def _new_machine(self) -> Machine:
        """New machine that records its steps and holds zero inputs (n, ...)."""
        found = Machine(self._new_engine, prod(self.batch))
        found.raise_errors()
        found.record(self.batch)
        found.hold(None, np.zeros((len(found), len(found.engine.held))))
        return found

    @property
    def pace(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Number of steps between checks of Ctrl-C, carried over from the last simulation."""
        return self.machine.pace

    @pace.setter
    def pace(self, steps: int):
        """Set the number of steps between checks of Ctrl-C."""
        self.machine.pace = steps

    def _new_engine(self) -> Engine:
        """New engine for one thread, with its forces compiled where possible."""
        model, field, prescription = self.model, self.field, self.prescription
        native, plain = {}, self.compiled and is_plain(field)  # else they are in what is applied
        if self.compiled and has_actuators_in_tables(field):
            native = {"actuated": True, "reads": True, "inputs": len(field.inputs(model))}
            native["drive"] = field.drive
            plain = is_plain(beside_actuators(field))
            field = without_actuators(field)
        if self.compiled and not plain:
            native |= native_forces(model, field)
        given = model, self.settings, self.joints, field if plain else None
        return engine_of(*given, prescription=prescription, flying=self.flies, **native)

    @property
    def _is_steady(self):
        """Whether a step's forces depend on held inputs alone, without calls to Python."""
        return self.compiled

    @cached_property
    def _flight(self):
        """Compiled kernel of a contact-free step by the smooth integrator."""
        full = self.model.uncoupled
        examples = 0.0, 1.0, full.neutral(), np.zeros(full.nv), np.zeros(len(self.engine.held))
        step = _Flight(self.model, self.method, self.field)
        return _flight.compiled(full, *examples, step=step)

    # --- memory ------------------------------------------------------------------------------

    def release(self) -> None:
        """Return the machine to the scene's pool; contact names stay available."""
        idle_machines(self.scene).give(*self._made_of, self.machine)

    def copy_memory(self):
        """Warm-start memory of the only motion by name; empty for a batch."""
        return {} if self.batch else self.machine.memory_of(0)

    def snapshot(self):
        """Function that returns the present warm-start memory; of a batch an empty dict."""
        return dict if self.batch else self.machine.snapshot(0)

    def restore(self, memory):
        """Set the warm-start memory with which the next simulation begins; batches ignore it."""
        if not self.batch and "state" in memory:
            self._memory = dict(memory)

    def _begin(self, q, qd):
        """Set the machine's motions to initial states, with restored memory if given."""
        model, machine, is_new = self.model, self.machine, not self._has_begun
        self._has_begun = True
        for k, (x, v) in enumerate(
            zip(q.reshape(-1, model.nq), qd.reshape(-1, model.nv), strict=True)
        ):
            if is_new and not self._memory:
                machine.begin(k, x, v)
            else:
                machine.restore(k, x, v, self._memory)

    # --- steps that compiled code takes and stores -------------------------------------------

    @property
    def walks(self) -> bool:
        """Whether several steps may be taken before any is stored: False, forces are stored."""
        return False

    def records(self, q) -> bool:
        """Whether compiled code takes and stores steps by itself, under held forces alone."""
        return self._is_steady and self.model.nv > 0

    def can_call(self, kernel) -> bool:
        """Whether steps can call a compiled controller: no couplings, no batch."""
        return not (self.model.couplings or self.batch)

    def begin(self, q, qd, every, steps, origin, control=None):
        """Start recorded steps from states (..., nq) and (..., nv), with a controller or None."""
        self._begin(q, qd)
        if control is not None:
            self.machine.control(control)
        self.machine.record_steps(every, steps, origin)

    def record(self, t, h, held, last):
        """Take steps of ``h`` seconds, with inputs held, until ``last`` steps are done."""
        b = self.machine.motions
        done = b.done
        if done and h != b.inputs.h:
            b.inputs.start, b.inputs.base = t, done
        self._hold(held)
        self._advance(t, h, last - done)

    def stored_arrays(self, times: int | None = None) -> dict[str, Any]:
        """Stored states, work, energies, and smallest inertia pivot, by name.

        After an error ``times`` is how many states there are.
        """
        recorder = self.machine.recorder
        if times is not None:
            recorder.times = times
        names = {"q": "q", "qd": "v", "work": "work", "kinetic": "kinetic", "gravity": "potential"}
        found: dict[str, Any] = {name: recorder.array(own) for name, own in names.items()}
        found["pivot"], found["summary"] = self.machine.worst[0], recorder.summary()
        found["history"] = self.notes.later(found["summary"])
        return found

    def _hold(self, tau):
        """Set the held inputs or joint forces (..., n) of all motions for the next steps."""
        held = self.machine.motions.inputs.held.reshape(len(self.machine), -1)
        held[:, self._places] = tau.reshape(-1, tau.shape[-1]) if tau.ndim > 2 else tau

    @cached_property
    def _places(self):
        """Indices of held forces among the variables of all joints."""
        plain = self.engine.s.inputs_count or not self.model.couplings
        return slice(None) if plain else self.engine.of_v

    def _advance(self, t, h, count, only=None):
        """Take steps; raises an error with time and place of a state that is not finite."""
        machine = self.machine
        try:
            machine.advance(h, count, only)
        except DivergedError as error:
            when = float(machine.time[error.args[0]])
            check_finite_state(self.model, when, *self.last_state(), h, "contact")
            raise SimulationError(
                f"the simulation of {self.model.name!r} blew up at t = {when:.6g} s: velocities "
                f"are too large for steps of {h:g} s"
            ) from None
        if self.method.solves:
            self._check_defect(t, h, machine.worst[1])

    def last_state(self):
        """Present positions and velocities, (..., nq) and (..., nv): copies."""
        q, qd = self.machine.q, self.machine.qd
        if not self.batch:
            return q[0], qd[0]
        return q.reshape(*self.batch, -1), qd.reshape(*self.batch, -1)

    # --- steps that are taken one by one: beside hooks, under forces in Python ---------------

    def end_of_step(self, t, h, q, qd, tau, *, full=False):
        """State, work and residuals after one step of ``h`` seconds."""
        if q.shape[:-1] != self.batch:  # one sample of a batch, to locate an event
            return self._alone.end_of_step(t, h, q, qd, tau)
        if not self._has_begun:
            self._begin(q, qd)
        machine, model, b = self.machine, self.model, self.machine.motions
        if b.storage.pending < 0:
            machine.recorder.expect()
        machine.put(q.reshape(-1, model.nq), qd.reshape(-1, model.nv))
        b.inputs.clocked, b.inputs.start, b.inputs.base = 1, t, b.done
        b.total[:, 10] = 0.0
        if self._is_steady:
            self._hold(tau)
            self._advance(t, h, 1)
        else:
            self._step_each(t, h, q, qd, tau)
        return Stepped(*self.last_state(), b.total[:, 10].reshape(self.batch)[()])

    @cached_property
    def _alone(self) -> "EngineStepper":
        """Stepper of a single motion, for one sample of a batch."""
        given = self.model, self.method, self.field, self.settings, self.joints, ()
        return EngineStepper(*given, compiled=self.compiled).ready()

    def retaken(self, t, h, q, qd, tau, count):
        """State, work and residuals after repeating steps of one motion without memory."""
        b, work, self._memory = self.machine.motions, 0.0, {}
        self._begin(q, qd)
        b.total[:], b.lists = 0.0, 1
        for _ in range(count):
            q, qd, done = self.end_of_step(t, h, q, qd, tau)[:3]
            t, work = t + h, work + done
        return q, qd, work, b.total[0, :10].copy()

    def _step_each(self, t, h, q, qd, tau):
        """Take one step of every motion, with forces computed in Python."""
        b = self.machine.motions
        for k, at in enumerate(np.ndindex(*self.batch)):
            b.inputs.base = b.done
            self._hold(self._forces_at_start(t, h, q[at], qd[at], tau[at]))
            self._advance(t, h, 1, slice(k, k + 1))

    def drive_forces(self, arrays):
        """Joint forces of controller and prescribed drives at all times, (T, ..., nv).

        Args:
            arrays: what was stored, by name.
        """
        push, found = self.machine.recorder.array("push"), np.empty(arrays["qd"].shape)
        for at in np.ndindex(found.shape[:-1]):
            q, qd, tau = (arrays[name][at] for name in ("q", "qd", "tau"))
            given = self.field, self.model, arrays["t"][at[0]]
            found[at] = drives_at(*given, q, qd, tau, push[at])
        return found

    def _forces_at_start(self, t, h, q, qd, tau):
        """Joint forces at the start of a step; passes resistance and prescriptions on."""
        model, field, engine = self.model, self.field.for_steps, self.engine
        if self.prescription is not None and not self.prescription.traceable:
            engine.prescribe(prescribed_motion(self.prescription, model, t, h, q, qd))
        if self.compiled:
            return tau
        if field.resists:
            own = engine.stiffness, engine.damping
            engine.resist(own, field.resistance(model, t, q, qd, tau))
        return field.joint_force(model, t, q, qd, tau)
