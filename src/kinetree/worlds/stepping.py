"""Steps of a world: the forces of its actuators, and the engine with its memory."""

from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from kinetree.contact.engine.engine import SLICE, Engine, Memory
from kinetree.contact.engine.making import engine_of, is_plain, native_forces, smooth_laws
from kinetree.contact.history import Residuals
from kinetree.contact.stepping.choice import joint_rows
from kinetree.errors import KinetreeError, SimulationError
from kinetree.integration.breakdown import NamingTime
from kinetree.integration.field import Field
from kinetree.quantities.actuators import driving_force
from kinetree.simulation.setup import effects_of, laws_of
from kinetree.worlds.contacts import Contacts, Labels, contacts_at, listed, of_step, without_forces
from kinetree.worlds.forces import Forces
from kinetree.worlds.inputs import Drives, reader_of
from kinetree.worlds.results import Report, ledger
from kinetree.worlds.starts import Start


class Steps:
    """Takes the steps of a world.

    Args:
        model: the whole world.
        contact: a ``TimeStepping``.
        joints: how limits and dry friction of joints are taken.
        solving: ``tolerance`` of impulses, relative to the largest of an island, and ``sleeping``:
            whether what rests is left alone.
        strict: whether a step that cannot be trusted raises an error.
    """

    def __init__(self, model, contact, joints, solving, strict):
        self.model, self.scene, self.drives = model, contact.scene, Drives(model)
        self.has_states = self.drives.states.size > 0
        friction, limits = laws_of(model, joints["friction"], joints["limits"], rigid=True)
        effects = effects_of(model, friction=friction, limits=limits, rows=True)
        self.start = Start(model, limits == "rigid")
        self.field = Field((), effects.passive)
        self.contact, self.effects = contact, effects
        self.solving, self.strict, self.reported = solving, strict, None
        self.forget()

    @cached_property
    def engine(self) -> Engine:
        """What takes the steps, compiled once for all worlds."""
        new = self.new_engine()
        new.parts.strict, new.warns = int(self.strict), True
        return new

    def new_engine(self, own: bool = False) -> Engine:
        """Another engine, whose code may read its own tables."""
        model, field, native = self.model, self.field, {}
        # Tables of smooth laws are those of all worlds, and the laws follow from inertias.
        plain = is_plain(field) and not (own and smooth_laws(field) != (None, None))
        if model.nv and not plain:
            native = native_forces(model, field, own=own)
        rows = joint_rows(model, self.effects, np.ones(model.nv))
        given = model, self.contact, rows, None if native else field
        actuated = self.drives.count > 0
        return engine_of(*given, own=own, actuated=actuated, **self.solving, **native)

    def forget(self):
        """Start without memory."""
        self.memory, self.end, self.checked = Memory(), None, False
        self.taken, self.plain, self.is_driven = 0, None, None
        self.take: Any = None
        self.inputs: tuple = (np.zeros(self.model.nv), None, None)

    def saved(self) -> dict[str, np.ndarray]:
        """Memory of the solver, for ``State``."""
        if self.end is not None and self.engine._current is self.memory:
            return self.engine.saved()
        return {name: np.array(x) for name, x in self.memory.arrays.items()}

    def restore(self, memory):
        """Go on with a memory that ``saved`` returned."""
        self.forget()
        self.memory = Memory({name: np.array(x) for name, x in memory.items()})

    def check(self, whole):
        """Warn of what is wrong with a start, unless it was checked since it was set."""
        if not self.checked:
            self.checked = True
            q, qd = self.start.closed(self.engine, whole.q, whole.qd)
            if q is not whole.q:
                whole.q, whole.qd = q, qd
            self.start.check(self.engine, q)

    def check_starts(self, q):
        """Warn of what is wrong with positions (..., nq) that are not those of the world."""
        starts = np.asarray(q, dtype=float).reshape(-1, self.model.nq)
        engine = self.new_engine()  # whose search leaves the contacts of the last step alone
        if len(starts) == 1:
            self.start.check(engine, starts[0])
            return
        faults = {k: self.start.faults(engine, engine.find(x), x) for k, x in enumerate(starts)}
        self.start.check_batch(faults, len(starts))

    def advance(self, whole, t, h, n, control, acting, parts):
        """Take ``n`` steps of ``h`` seconds from time ``t``; the state of ``whole`` follows.

        ``acting``: joint forces, and ``Forces``.
        """
        tau, external = acting
        push = reader_of(tau, self.model)
        external.give(self.engine)
        read, held = (None, True) if control is None else self.drives.reader(control, parts)
        together = held and external.held and not callable(tau)
        done = 0
        if not self.model.nv:  # nothing moves
            self.taken = done = n
        if done < n:
            self.check(whole)
        while done < n:
            now = t + done * h
            force = push(now, whole.q, whole.qd)
            force = force + external.joint_forces(now, whole.q, whole.qd)
            self.engine.pushes.wrench[:] = external.wrenches(now)
            u = None if read is None else read(now, whole.q, whole.qd)
            count = n - done if together else 1
            before, self.engine.drives.activation[:] = whole.activation, whole.activation
            found = self._stepped(whole, now, h, force, u, count)
            self.inputs = force, u, before
            whole.activation = self.engine.drives.activation.copy()
            done += found.taken
            self.taken += found.taken
        in_place = tau is None and not external and self.model.nv
        self.plain, self.is_driven = h if in_place else None, None
        self.take = self.engine.take if in_place else None

    def go_on(self, whole, h, n, u) -> bool:
        """Take ``n`` more steps in place, if nothing acts but actuators.

        Args:
            whole: the world, whose state the engine must have.
            h: length of a step, which must be that of the last ones.
            n: how many.
            u: controls, or None.
        """
        if h != self.plain or not (whole.is_ahead or whole.q is self.end):
            return False
        if (u is not None or self.is_driven is not False) and not self._give(u):
            return False
        if n > SLICE or self.has_states:
            return self._go_far(whole, h, n)
        code = self.take(n, False)
        if code != 0 and self.engine.went_on(code, n) != n:
            return False  # controls are not finite
        self.taken, whole.is_ahead = n, True
        if code != 0:
            self._require_finite(whole, h)
        return True

    def _go_far(self, whole, h, n) -> bool:
        """Take steps that Ctrl-C may come between, or that change activations."""
        engine, before = self.engine, whole.activation
        engine.drives.activation[:] = before
        try:
            if engine.go_on(n) != n:
                return False
        except KinetreeError:
            raise
        except BaseException:  # Ctrl-C between two of many steps
            if n > SLICE:
                self._arrive(whole)
            raise
        self.taken, whole.is_ahead = n, True
        if self.has_states:
            whole.activation = engine.drives.activation.copy()
            self.inputs = *self.inputs[:2], before
        self._require_finite(whole, h)
        return True

    def _require_finite(self, whole, h):
        if not self.engine.is_finite:
            self._refuse(whole.qd, h)

    def _give(self, u) -> bool:
        """Give controls, or None, to the engine, if they have the form that it takes."""
        if u is not None:
            if type(u) is not np.ndarray or u.shape != self.drives.shape or u.dtype != float:
                return False
            self.engine.drives.u[:] = u
        if self.is_driven is not (u is not None):
            self._switch(u is not None)
        return True

    def _arrive(self, whole):
        """Let the world be where the engine is, after a call that was interrupted."""
        taken = int(self.engine.parts.taken)
        if taken:
            self.taken += taken
            whole.is_ahead = True
            whole.activation = self.engine.drives.activation.copy()

    def _switch(self, driven):
        """Let actuators act in the engine, or not."""
        engine, self.is_driven = self.engine, driven
        engine.drives.acts, engine.s.held[:], engine.s.inputs[:] = int(driven), 0.0, 0.0
        self.inputs = np.zeros(self.model.nv), engine.drives.u if driven else None, None

    def follow(self, whole, t, h, n, control, parts):
        """Take ``n`` steps with controls that a function of time and state gives before each."""
        read, _ = self.drives.reader(control, parts)
        for k in range(n):
            u = read(t + k * h, whole.q, whole.qd)
            if not self.go_on(whole, h, 1, u):
                self.advance(whole, t + k * h, h, 1, u, (None, Forces(self.model, None)), parts)

    def current(self) -> tuple[np.ndarray, np.ndarray]:
        """The state that the engine has reached."""
        s, e = self.engine.s, self.engine
        if self.model.couplings:
            self.end = s.q[e.of_q]
            return self.end, s.v[e.of_v]
        self.end = s.q.copy()
        return self.end, s.v.copy()

    def report(self, t: float, h: float) -> Report:
        """Accuracy of all steps since the last report, at time ``t``, in steps of ``h`` seconds."""
        if not self.model.nv:
            return Report(self.taken, Residuals(*[0.0] * len(Residuals._fields)), 0, 0, 0.0)
        engine = self.engine
        rows, problem, steps = engine.rows, engine.problem, int(engine.parts.counts[0])
        if self.reported is not None and not steps:
            return self.reported
        since = engine.parts.since.tolist()
        count, first = (int(x) for x in engine.parts.counts[1:3])
        active = int(np.count_nonzero(rows.force[: rows.contacts, 0]))
        self.reported = Report(
            steps, Residuals(*since[:10]), active, int(problem.islands), float(problem.error),
            float(engine.s.near), int(engine.sleep.asleep), count,
            t - (steps - first) * h if count else None,
            ledger(since),
        )  # fmt: skip
        engine.reported()
        return self.reported

    def _stepped(self, whole, t, h, force, control, count):
        self.engine.parts.taken = 0
        try:
            with NamingTime(self.model, t, whole.qd):
                found = self.engine.step(
                    whole.q, whole.qd, h, force, count=count, memory=self.memory, control=control
                )
        except KinetreeError:
            raise
        except BaseException:  # Ctrl-C between two of many steps
            self._arrive(whole)
            raise
        with np.errstate(over="ignore"):
            fine = isfinite(found.q.dot(found.q)) and isfinite(found.qd.dot(found.qd))
        if not fine:
            self._refuse(found.qd, h)
        whole.q, whole.qd, self.end = found.q, found.qd, found.q
        return found

    def _refuse(self, qd, h):
        fastest = int(np.argmax(np.where(np.isfinite(qd), np.abs(qd), np.inf)))
        at = next(i for i, x in enumerate(self.model.v_slice) if x.start <= fastest < x.stop)
        raise SimulationError(
            f"world {self.model.name!r} does not stay finite: forces or velocities are too large "
            f"for steps of {h:g} s, first at joint {self.model.joint_names[at - 1]!r}"
        )

    def _touching(self, whole):
        """Contacts, their forces, moments and velocities along normal and tangents, (n, 3)."""
        if self.model.nv and whole.q is self.end:  # which reading q brings up to date
            return listed(self.engine.forces())
        return without_forces(self.model, whole.q, whole.qd, self.engine.contacts(whole.q))

    def contacts(self, whole) -> Contacts:
        """The contacts of the last step; after a change, those at the state of ``whole``."""
        q = whole.q  # which brings the state up to date
        if self.model.nv and q is self.end:
            return of_step(self.engine, self.labels)
        return contacts_at(self.engine, self.engine.contacts(q), q, whole.qd, self.labels)

    @cached_property
    def labels(self) -> Labels:
        """Names of bodies and shapes, for contacts."""
        return Labels(self.model, self.engine.tables.numbers)

    def readings(self, whole, sensors, t):
        """Readings of sensors, with what the last step did."""
        tau, u, before = self.inputs
        given: dict[str, Any] = {"t": np.asarray(t), "tau": tau}
        if u is not None and whole.q is not self.end:
            states = (whole.activation,) if self.drives.states.size else ()
            given["tau"] = tau + driving_force(self.model, whole.q, whole.qd, u, *states)
        if whole.q is self.end:  # accelerations are those of the last step
            s, at = self.engine.s, self.engine.of_v
            given = {"t": np.asarray(t), "qdd": (s.v[at] - s.began[at]) / s.h}
        if any(s.kind in ("touch", "force", "torque") for s in sensors.values()):
            given["contacts"], given["contact_forces"] = self._touching(whole)[:2]
        if self.drives.count:
            given["controls"] = np.zeros(self.drives.count) if u is None else u
            if self.drives.states.size:
                given["activation"] = whole.activation if before is None else before
        return sensors(whole.q, whole.qd, **given)
