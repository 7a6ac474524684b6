"""Steps of ``simulate`` by the engine: single motions, and batches."""

from dataclasses import replace
from functools import cached_property
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.engine.batch import EngineBatch
from kinetree.contact.engine.engine import Engine, Memory
from kinetree.contact.engine.native import Idle, native_forces
from kinetree.contact.engine.recorder import Recorder
from kinetree.contact.engine.renewal import IdleEngines
from kinetree.contact.history import SUMMED, Notes, RecordedHistory, Residuals, gathered
from kinetree.contact.scheme.constraints import StepConstraints
from kinetree.contact.scheme.inertia import straight_motion
from kinetree.functional.kernel import kernel
from kinetree.integration.breakdown import NamingTime, check_finite_state
from kinetree.integration.integrator import Stepped
from kinetree.integration.step import Stepper, step_results
from kinetree.model.geometry import Box, Capsule, Ellipsoid, Plane, Sphere

FLIES = 64
"""Velocity variables up to which the integrator takes the steps in which nothing is near."""


@kernel
def _flight(model, t, h, q, qd, inputs, *, method, field):
    """A step of the integrator, for compiled code to call."""
    return step_results(model, t, h, q, qd, inputs, method=method, field=field)


class _Held(NamedTuple):
    """Forces of a step: of contacts with their shapes and features, of other rows, of drives."""

    keys: Any
    force: Any
    joints: Any
    drive: Any


class EngineNotes:
    """Forces and residuals of one motion, which a ``Recorder`` stores.

    Args:
        stepper: that takes the steps.
    """

    def __init__(self, stepper):
        self.stepper, self.constraints = stepper, stepper.contact_step.constraints

    def keep(self, q):
        """Store the forces of the last step, and residuals since the last stored time.

        Where a hook has moved the bodies to ``q``, how deep they are there counts as well.
        """
        engine, recorder = self.stepper.engine, self.stepper.recorder
        recorder.store()
        row = recorder.recording.rows - 1
        if row and not np.array_equal(engine.s.q[engine.of_q], q):
            residuals = recorder.recording.residuals[row]
            residuals[3] = max(residuals[3], engine.overlap(q))

    def history(self) -> RecordedHistory:
        """All that was stored."""
        x, engine, scene = self.stepper.recorder.arrays(), self.stepper.engine, self.stepper.scene

        def columns(keys):
            names = [engine.name_of(*key) for key in keys]
            return names, known_columns(scene, set(names))

        return RecordedHistory(
            x["first"], x["key"], x["force"], x["joints"], x["residuals"], columns
        )


class BatchNotes(Notes):
    """Forces and residuals of a batch; contacts get their names when the motions have ended."""

    engine: Engine

    def __init__(self, step, batch):
        super().__init__(step, batch, fixed=False)
        self.force = np.empty(batch, dtype=object)
        self._ends: list = []

    def end(self, q):
        """Remember where the step that was taken last has ended, (..., nq)."""
        self._ends.append(q)

    def keep(self, q):
        """The same as of ``EngineNotes``."""
        last = len(self._steps) - max(self.behind - 1, 0)
        ends, self._ends = self._ends[:last], self._ends[last:]
        for index in map(tuple, np.argwhere(np.any(ends[-1] != q, axis=-1)) if ends else ()):
            residuals = self._steps[last - 1][1][index]
            residuals[3] = max(residuals[3], self.engine.overlap(q[index]))
        super().keep(q)

    def _columns(self):
        """Forces of contacts that came and went, in columns by name, and of other rows."""
        found = [
            (k, *index, f[index])
            for k, (f, _) in enumerate(self.stored)
            for index in np.ndindex(*self.batch)
            if isinstance(f[index], _Held)
        ]
        keys = [list(map(tuple, held.keys.tolist())) for *_, held in found]
        names = {key: self.engine.name_of(*key) for of_step in keys for key in of_step}
        columns = known_columns(self.constraints.scene, set(names.values()))
        column = {key: columns.index(name) for key, name in names.items()}
        contacts = np.zeros((len(self.stored), *self.batch, len(columns), 3))
        others = np.zeros((len(self.stored), *self.batch, len(self.engine.joint_forces)))
        for (*at, held), of_step in zip(found, keys, strict=True):
            contacts[(*at, [column[key] for key in of_step])] = held.force
            others[tuple(at)] = held.joints
        flat = contacts.reshape(*contacts.shape[:-2], -1)
        return columns, np.concatenate([flat, others], axis=-1)


def known_columns(scene, found) -> tuple[str, ...]:
    """Names of contacts in order: all of a scene whose points are numbered, else those found."""
    fixed = not (scene.is_large or scene.open_pairs) and all(map(_is_numbered, scene.pairs))
    if fixed and found.issubset(scene.candidates.names):
        return scene.candidates.names
    return tuple(sorted(found))


def _is_numbered(pair):
    """Whether narrow phase and closed form have the same points: one, ends, or corners."""
    first, second = pair.first.shape, pair.second.shape
    if not isinstance(first, Plane):
        return isinstance(first, Sphere) or isinstance(second, Sphere)
    return isinstance(second, (Sphere, Capsule, Box, Ellipsoid))


class EngineStepper(Stepper):
    """Steps with contact, by the engine.

    Args:
        model: the mechanism.
        method: the integrator for flight.
        field: what moves it.
        settings: ``TimeStepping``.
        joints: ends of travel and dry friction.
        batch: shape of the batch.
        compiled: whether all forces can be compiled.

    Attributes:
        notes: forces and residuals of the steps, see ``history``.
        inside: which bodies start inside each other, in words.
    """

    inside = ""

    def __init__(self, model, method, field, settings, joints, batch, *, compiled):
        super().__init__(model, method, field, compiled=compiled)
        self.settings, self.joints, self.batch = settings, joints, batch
        constraints = StepConstraints(model, settings.scene, joints)
        self.contact_step = SimpleNamespace(constraints=constraints, settings=settings)
        self.constraints = "contact" if constraints.closes else None
        self.scene, self.prescription = settings.scene, field.prescription
        rigid = constraints.closes or joints.friction
        self.flies = compiled and settings.flight and model.nv <= FLIES
        self.flies = self.flies and not (rigid or model.couplings)
        self.is_plain = is_plain(field)
        self.is_native = compiled
        self._idle: IdleEngines = self.scene.memo.setdefault("engines", IdleEngines())
        self._made_of = (model, field), (settings, joints, compiled)
        self.engine: Engine = self._idle.take(*self._made_of, self._new_engine)
        self.notes: Any = EngineNotes(self)
        if batch:
            self.notes = BatchNotes(self.contact_step, batch)
            self.notes.engine = self.engine
        self._resists = self.engine.stiffness, self.engine.damping
        self.memories = np.empty(batch, dtype=object)
        for index in np.ndindex(*batch):
            self.memories[index] = Memory()

    def _new_engine(self) -> Engine:
        """Another engine, for a thread or for a motion."""
        model, field, prescription = self.model, self.field, self.prescription
        native, plain = {}, self.is_native and self.is_plain  # else they are in what is applied
        tabled = field.actuators is not None and field.drive is None and prescription is None
        if self.is_native and tabled:
            native = {"actuated": True, "reads": True, "inputs": len(field.inputs(model))}
            plain = is_plain(replace(field, actuators=None))
            field = replace(field, actuators=Idle(field.actuators))
        if self.is_native and not plain:
            native |= native_forces(model, field)
        return engine_of(
            model,
            self.settings,
            self.joints,
            springs=plain,
            flying=self.flies,
            free=None if prescription is None else prescription.others(model),
            smooth=smooth_laws(field) if plain else (None, None),
            **native,
        )

    def release(self) -> None:
        """Leave the engine to the next simulation; names of contacts remain."""
        self._idle.give(*self._made_of, self.engine)

    @property
    def _is_steady(self):
        """Whether forces of a step need nothing but what is held."""
        return self.is_native and self.prescription is None

    def stepped(self, t, h, q, qd, tau, *, full=False):
        """The end of a step of ``h`` seconds."""
        after: Any = self.steps(t, h, q, qd, tau, 1)
        return Stepped(*after)

    @property
    def walks(self) -> bool:
        """See ``Stepper``; forces of a single motion are stored after every step."""
        return self.compiled and bool(self.batch)

    def walk(self, instants, q, qd, tau, dt):
        """States after each of several steps."""
        states = super().walk(instants, q, qd, tau, dt)
        self.notes.behind = len(states)
        return states

    def saved(self):
        """See ``Stepper``; motions of a batch have none."""
        return {} if self.batch else self.engine.saved()

    def restore(self, memory):
        """See ``Stepper``."""
        if not self.batch and "state" in memory:
            self.memories[()] = Memory({name: np.array(x) for name, x in memory.items()})

    @cached_property
    def recorder(self) -> Recorder:
        """Takes and stores the steps of a single motion."""
        found = self.engine.recorder
        if found is None:
            found = self.engine.recorder = Recorder(self.engine)
        else:
            found.renew()
        found.flight = lambda: self._flight
        return found

    @cached_property
    def _flight(self):
        return self._kernel(_flight)

    def records(self, q) -> bool:
        """Whether compiled code takes and stores steps: those of one motion, held forces alone."""
        return not self.batch and self._is_steady and self.model.nv > 0

    def can_call(self, kernel) -> bool:
        """See ``Stepper``; the engine has the variables of all joints."""
        return not self.model.couplings

    def begin(self, q, qd, every, rows, origin, control=None):
        """See ``Stepper``."""
        if control is not None:
            self.recorder.control(control)
        self.recorder.begin(q, qd, self.memories[()], every, rows, origin)

    def record(self, t, h, held, last):
        """The state after steps of ``h`` seconds until ``last`` were taken, the next at ``t``."""
        recorder, time = self.recorder, self.engine.s.time
        with NamingTime(self.model, t, self.engine.s.v, h, "contact"):
            finite = recorder.take(held, h, t, last)
        if not finite:
            check_finite_state(self.model, float(time[0]), *recorder.state, h, "contact")
        if self.method.solves and recorder.recording.flies:
            self._check_defect(t, h, recorder.recording.defect)
        return recorder.state

    def recorded(self) -> dict[str, Any]:
        """What was stored: states, work, energies and the smallest pivot of the inertia matrix."""
        self.recorder.finish()
        x = self.recorder.arrays()
        names = {"q": "q", "qd": "v", "work": "work", "kinetic": "kinetic", "gravity": "potential"}
        found = {name: x[own] for name, own in names.items()}
        return found | {"pivot": self.recorder.recording.pivot}

    def steps(self, t, h, q, qd, tau, count):
        """``q, qd, work`` after several steps with the same ``tau``."""
        if q.shape[:-1] != self.batch:  # one sample of a batch, to locate an event
            end, _ = self.single(Memory(), t, h, q, qd, tau, count)
            return end[:3]
        if not self.batch:
            end, held = self.single(self.memories[()], t, h, q, qd, tau, count)
            self.recorder.add(end[3], summed=SUMMED, bare=held is None)
            return end[:3]
        simple = not (self.flies and (self.method.solves or self.method.closes))
        if self._is_steady and simple:
            return self._together(t, h, q, qd, tau, count)
        after = [np.empty_like(q), np.empty_like(qd), np.empty(self.batch)]
        held = np.empty(self.batch, dtype=object)
        residuals = np.empty((*self.batch, len(Residuals._fields)))
        for index in np.ndindex(*self.batch):
            memory = self.memories[index]
            end, held[index] = self.single(memory, t, h, q[index], qd[index], tau[index], count)
            for place, value in zip((*after, residuals), end, strict=True):
                place[index] = value
        self.notes.take(held, residuals)
        self.notes.end(after[0])
        return tuple(after)

    @cached_property
    def _many(self):
        return EngineBatch(
            self._new_engine, prod(self.batch), flight=self._flight if self.flies else None
        )

    def _together(self, t, h, q, qd, tau, count):
        """``q, qd, work`` of all motions of the batch after several steps, in one call."""
        b, model = self._many, self.model
        n, engine = len(b), b.engine
        b.put(q.reshape(n, model.nq), qd.reshape(n, model.nv))
        b.time[:], held = t, np.ascontiguousarray(tau).reshape(n, -1)
        if not engine.s.inputs_count:
            held = np.zeros((n, engine.tree.nv))
            held[:, engine.of_v] = np.reshape(tau, (n, -1))
        b.run(h, count, None, held)
        joints, zero, listed = b.joint_forces, np.zeros(model.nv), np.empty(n, dtype=object)
        for k in np.flatnonzero(b.many.ends[:, 1]):
            keys, force = b.keys_and_forces(k)
            listed[k] = _Held(keys, force, joints[k], zero)
        ends = [b.q, b.qd, b.many.total[:, 10].copy(), b.many.total[:, :10].copy()]
        for k in np.flatnonzero(b.failed):  # once more, for the error to say when and where
            alone = [x.reshape(n, -1)[k] for x in (q, qd, tau)]
            end, listed[k] = self.single(Memory(), t, h, alone[0], alone[1], alone[2], count)
            for place, value in zip(ends, end, strict=True):
                place[k] = value
        after = [x.reshape(*self.batch, *x.shape[1:]) for x in ends]
        self.notes.take(listed.reshape(self.batch), after.pop())
        self.notes.end(after[0])
        return tuple(after)

    def single(self, memory, t, h, q, qd, tau, count):
        """The same of one motion: state, work and residuals, and the forces of the last step."""
        work, all_residuals, held = 0.0, [], None
        while count:
            many = count if self._is_steady else 1
            with NamingTime(self.model, t, qd, h, "contact"):
                applied = self._applied(t, h, q, qd, tau)
                end = self.engine.step(q, qd, h, applied, count=many, memory=memory, t=t)
            q, qd, work = end.q, end.qd, work + end.work
            t, count = t + end.taken * h, count - end.taken
            if end.taken:
                all_residuals.append(end.residuals)
                held = _Held(*self.engine.keys_and_forces(), self.engine.drive)
                if self.prescription is not None:
                    q, qd, _ = self.prescription.at(self.model, t, q, qd)
            if end.taken < many:
                q, qd, done = super().stepped(t, h, q, qd, tau)[:3]
                t, count, work, held = t + h, count - 1, work + done, None
        residuals = gathered(all_residuals) if all_residuals else np.zeros(len(Residuals._fields))
        return (q, qd, work, residuals), held

    def drive_forces(self, arrays):
        """Joint forces of the controller, and of the drives of prescribed joints, (T, ..., nv).

        Args:
            arrays: what was stored, by name.
        """
        found = np.empty(arrays["qd"].shape)
        drives = None if self.batch else self.recorder.arrays()["drive"]
        for at in np.ndindex(found.shape[:-1]):
            t, q, qd, tau = arrays["t"][at[0]], *(arrays[n][at] for n in ("q", "qd", "tau"))
            if drives is not None:
                own = drives[at]
            else:
                held = self.notes.stored[at[0]][0][at[1:]]
                own = held.drive if isinstance(held, _Held) else 0.0
            found[at] = self.field.driven(self.model, t, q, qd, tau) + own
        return found

    def _applied(self, t, h, q, qd, tau):
        """Joint forces at the start of a step; resistance and prescribed motion are passed on."""
        model, field, engine = self.model, self.field.for_steps, self.engine
        if self.prescription is not None:
            engine.prescribe(*_prescribed(self.prescription, model, t, h, q, qd))
        if self.is_native:
            return tau
        if field.resists:
            engine.resist(self._resists, field.resistance(model, t, q, qd, tau))
        return field.joint_force(model, t, q, qd, tau)


def engine_of(model, settings, joints, *, free=None, **options) -> Engine:
    """An engine with the settings of a ``TimeStepping``; other options as of ``Engine``."""
    return Engine(
        model, settings.scene, joints=joints, tolerance=engine_tolerance(settings.tolerance),
        rest_velocity=settings.rest_velocity, correction_speed=settings.correction_speed,
        conserving=settings.conserving and free is None, stiffness=settings.stiffness,
        damping=settings.damping, free=free, **options,
    )  # fmt: skip


def engine_tolerance(tolerance) -> float:
    """Relative error of impulses at which velocities are as exact as ``tolerance`` asks for."""
    return float(np.clip(1e3 * tolerance, 1e-12, 1e-3))


def is_plain(field) -> bool:
    """Whether tables have all that acts beside what is held.

    Springs and dampers of the joints, their smooth friction and stiff limits.
    """
    passive = field.passive
    parts = () if passive is None else (passive.loops, passive.tendons)
    others = (field.drive, field.actuators, *parts)
    return not field.forces and all(part is None for part in others)


def smooth_laws(field) -> tuple:
    """Smooth friction and stiff limits of a plain field, or None for each."""
    return (None, None) if field.passive is None else (field.passive.friction, field.passive.limits)


def _prescribed(prescription, model, t, h, q, qd):
    """What ``Engine.prescribe`` takes, for a step of ``h`` seconds from time ``t`` on."""
    fixed = 1 - prescription.others(model)
    places, speeds = zip(
        *(prescription.at(model, t + part, q, qd)[:2] for part in (0.0, h)), strict=True
    )
    middle, first = straight_motion(model, places[0], speeds[0], h / 2)
    end = straight_motion(model, places[1], speeds[1], -h / 2)[1]
    move = model.difference(middle, places[1]) / (h / 2)
    return (end - first) / h * fixed, end * fixed, move * fixed
