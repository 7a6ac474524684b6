"""Steps of ``simulate`` by the engine: single motions, and batches."""

from functools import cached_property
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from kinetree.contact.engine.batch import EngineBatch
from kinetree.contact.engine.engine import Engine, Memory
from kinetree.contact.history import Notes, Residuals, gathered
from kinetree.contact.stepping.inertia import straight_motion
from kinetree.contact.stepping.rows import JointRows, StepConstraints
from kinetree.functional.kernel import kernel
from kinetree.integration.breakdown import NamingTime
from kinetree.integration.integrator import Stepped
from kinetree.integration.step import Stepper
from kinetree.model.geometry import Box, Capsule, Ellipsoid, Plane, Sphere

FLIES = 64
"""Velocity variables up to which the integrator takes the steps in which nothing is near."""

BRIEF = 512
"""Steps up to which forces of joints are computed by NumPy: to compile them takes longer."""


@kernel
def _forces(model, t, q, qd, inputs, *, field):
    """All joint forces."""
    return field.joint_force(model, t, q, qd, inputs)


@kernel
def _resistance(model, t, q, qd, inputs, *, field):
    """Stiffness and damping of servos and stiff limits."""
    K, D = field.resistance(model, t, q, qd, inputs)
    return K, D


class _Held(NamedTuple):
    """Forces of a step: of contacts with their shapes and features, of other rows, of drives."""

    keys: Any
    force: Any
    joints: Any
    drive: Any


class EngineNotes(Notes):
    """Recorder of forces and residuals; contacts get their names when the motion has ended."""

    engine: Engine

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
        self.notes = EngineNotes(self.contact_step, batch, fixed=False)
        self.notes.force = np.empty(batch, dtype=object)
        self.prescription = field.prescription
        rigid = constraints.closes or joints.friction
        self.flies = compiled and not rigid and model.nv <= FLIES
        self.is_plain = is_plain(field)
        self._has_levels = joints.friction and joints.level is not JointRows().level
        free = None if self.prescription is None else self.prescription.others(model)
        native = {}
        plain = not field.forces and field.actuators is None
        self.is_brief = plain and settings.scene.choice.asked <= BRIEF
        if compiled and not (self.is_plain or self.is_brief or model.couplings):
            start = 0.0, model.neutral(), np.zeros(model.nv), field.inputs(model)
            native["forces"] = _forces.compiled(model, *start, field=field)
            if field.resists:
                native["resistance"] = _resistance.compiled(model, *start, field=field)
        self.is_native = self.is_plain or bool(native)
        self._new_engine = lambda: engine_of(
            model, settings, joints, springs=self.is_plain, flying=self.flies, free=free, **native
        )
        self.engine = self._new_engine()
        self.notes.engine = self.engine
        self._resists = self.engine.stiffness, self.engine.damping
        self.memories = np.empty(batch, dtype=object)
        for index in np.ndindex(*batch):
            self.memories[index] = Memory()

    @property
    def _is_steady(self):
        """Whether forces of a step need nothing but what is held."""
        return self.is_native and self.prescription is None and not self._has_levels

    def stepped(self, t, h, q, qd, tau, *, full=False):
        """The end of a step of ``h`` seconds."""
        after: Any = self.steps(t, h, q, qd, tau, 1)
        return Stepped(*after)

    def walk(self, instants, q, qd, tau):
        """States after each of several steps."""
        states = super().walk(instants, q, qd, tau)
        self.notes.behind = len(states)
        return states

    def steps(self, t, h, q, qd, tau, count):
        """``q, qd, work`` after several steps with the same ``tau``."""
        if q.shape[:-1] != self.batch:  # one sample of a batch, to locate an event
            end, _ = self.single(Memory(), t, h, q, qd, tau, count)
            return end[:3]
        simple = not (
            self.flies and (self.method.solves or self.method.closes or self.model.couplings)
        )
        if self.batch and self._is_steady and simple:
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
        return tuple(after)

    @cached_property
    def _many(self):
        return EngineBatch(
            self._new_engine, prod(self.batch), flight=self._one if self.flies else None
        )

    def _together(self, t, h, q, qd, tau, count):
        """``q, qd, work`` of all motions of the batch after several steps, in one call."""
        b, model = self._many, self.model
        n, engine = len(b), b.engine
        b.put(q.reshape(n, model.nq), qd.reshape(n, model.nv))
        b.time[:], held = t, np.ascontiguousarray(tau).reshape(n, -1)
        if not engine.s.forced:
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
        for at in np.ndindex(found.shape[:-1]):
            t, q, qd, tau = arrays["t"][at[0]], *(arrays[n][at] for n in ("q", "qd", "tau"))
            held = self.notes.stored[at[0]][0][at[1:]]
            own = held.drive if isinstance(held, _Held) else 0.0
            found[at] = self.field.driven(self.model, t, q, qd, tau) + own
        return found

    def _applied(self, t, h, q, qd, tau):
        """Joint forces at the start of a step; resistance and prescribed motion are passed on."""
        model, field, engine = self.model, self.field, self.engine
        if self.prescription is not None:
            engine.prescribe(*_prescribed(self.prescription, model, t, h, q, qd))
        if self._has_levels:
            engine.rows.dry_level[:] = [
                self.joints.level(c, qd[i]) for i, c in self.joints.friction
            ]
        if self.is_native:
            return tau
        if self.is_brief or not self.compiled:
            if field.resists:
                engine.resist(self._resists, field.resistance(model, t, q, qd, tau))
            return field.joint_force(model, t, q, qd, tau)
        if field.resists:
            engine.resist(self._resists, _resistance(model, t, q, qd, tau, field=field))
        return _forces(model, t, q, qd, tau, field=field)


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
    """Whether nothing but springs and dampers of the joints acts beside what is held."""
    passive = field.passive
    parts = (
        ()
        if passive is None
        else (passive.friction, passive.limits, passive.loops, passive.tendons)
    )
    others = (field.drive, field.actuators, *parts)
    return not field.forces and all(part is None for part in others)


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
