"""The machine of one mechanism and scene: ``n`` motions, and their steps in one native call.

    machine.put(q, qd)                     state
    machine.hold(timed, held)              inputs
    machine.advance(h, steps)              state after steps of ``h`` seconds

A world is a machine with one motion, or with many; ``simulate``, rollouts and environments give
it inputs and storage. A thread has its own engine, which takes one motion after another, see
``advance``: so motions are the same to the bit whatever the number of threads.
"""

from collections.abc import Callable
from itertools import count as counting
from threading import Lock
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.runtime.interrupts import Interrupt, Pace
from kinetree.codegen.runtime.threads import on_threads, threads
from kinetree.codegen.tied import tied_code
from kinetree.contact.contacts import Contacts
from kinetree.contact.engine.advance import LIST_FULL, NOT_FINITE, PAUSE, advance, advance_at_once
from kinetree.contact.engine.carrying import ROOM, carry, own_numbers
from kinetree.contact.engine.engine import ContactForces, Engine
from kinetree.contact.engine.motions import Inputs, Motions, Storage, WorkerState
from kinetree.contact.engine.parts import IN_FLIGHT, NO_INERTIA
from kinetree.contact.engine.recorder import Recorder
from kinetree.contact.engine.renewal import AsMade
from kinetree.contact.engine.samples import OwnNumbers, columns_of
from kinetree.integration.breakdown import NamingTime

LEAST = 4  # motions that a thread takes at a time, at least


class Machine:
    """Motions of one model and scene, each with its own state, memory and numbers.

    Args:
        make: makes an engine, one for each thread.
        n: number of motions.
        flight: makes the kernel of a step of an integrator, ``(t, h, q, qd, inputs)``, once it is
            needed: for engines that are ``flying``, where nothing is near.

    Attributes:
        motions: rows of all motions.
        engine: one of the engines, to ask for names.
        samples: gives motions their own numbers.
        recorder: what is stored of them, see ``record``.
    """

    recorder: Recorder
    _is_paced = False

    def __init__(self, make: Callable[[], Engine], n: int, flight: Callable[[], Any] | None = None):
        self._make, self.flight, self._lock, self._n = make, flight, Lock(), n
        self._push: Callable = lambda engine: None
        self._control: Any = None
        self._as_made: AsMade | None = None
        self._team: list[tuple[Engine, WorkerState]] = []
        self.engine = self._member(0)[0]
        self.samples = OwnNumbers(self.engine, n)
        e, nv, nq = self.engine, self.engine.tree.nv, self.engine.tree.nq
        self._moves = nv > 0
        trees, rows = e.problem.trees, e.rows
        names = {
            "q": nq,
            "v": nv,
            "time": 1,
            "change": nv,
            "last": nv,
            "energy": trees,
            "stop_kept": rows.stops,
            "dry_kept": rows.dry,
            "loop_kept": rows.loops,
            "loop_ended": rows.loops,
            "tau": nv,
        }
        width, whole = sum(names.values()), 3 + 3 * trees
        self.motions = Motions(
            worlds=n,
            width=width,
            whole=whole,
            row=np.zeros(n * width),
            number=np.zeros(n * whole, dtype=np.int64),
            failed=np.zeros(n, dtype=np.int64),
            total=np.zeros((n, 11)),
            since=np.zeros((n, 12)),
            overlap=np.full(n, np.inf),
            counts=np.zeros((n, 6), dtype=np.int64),
            last=np.zeros(n * nv),
            bare=np.ones(n, dtype=np.int64),
            ends=np.zeros((n, 4), dtype=np.int64),
            errors=np.zeros((n, 2)),
            listed=np.zeros(n, dtype=np.int64),
            lists=1,
            inputs=Inputs(),
            samples=self.samples.record,
            storage=Storage(pending=-1),
        )
        self._have_room(64)
        ends = np.cumsum([0, *names.values()]).tolist()
        row, number = self.motions.row.reshape(n, width), self.motions.number.reshape(n, whole)
        self._of = {name: row[:, ends[k] : ends[k + 1]] for k, name in enumerate(names)}
        self._whole = {"follows": number[:, 0], "energy_known": number[:, 1], "known": number[:, 2]}
        for k, name in enumerate(("sleeps", "pile", "calm")):
            self._whole[name] = number[:, 3 + k * trees : 3 + (k + 1) * trees]

    def __len__(self):
        return self._n

    def _member(self, k):
        """The engine of a thread, and its progress."""
        while len(self._team) <= k:
            e = self._make() if self._as_made is None else self._make().keep_as_made()
            worker = WorkerState(
                step=-1,
                pivot=1.0,
                flight=tied_code(None),
                control=tied_code(None),
                flown=np.zeros(1),
                length=np.zeros(1),
                correction=np.zeros(1),
                **{name: x for name, x in e.numbers.items() if name in WorkerState.types},
            )
            if self._control is not None:
                self._tie_control(e, worker)
            self._team.append((e, worker))
        return self._team[k]

    @property
    def engines(self) -> list[Engine]:
        """Those of all threads."""
        return [engine for engine, _ in self._team]

    def keep_as_made(self) -> "Machine":
        """Remember all numbers of a new machine, for ``renew``."""
        for engine in self.engines:
            engine.keep_as_made()
        self._as_made = AsMade(self.motions)
        return self

    def renew(self) -> None:
        """Forget all motions: steps are those of a new machine; arrays handed out stay as is."""
        as_made: Any = self._as_made
        as_made.again()
        self._control, self._push = None, lambda engine: None
        for engine, worker in self._team:
            engine.renew()
            worker.loaded = worker.flies = 0
            worker.step, worker.pivot, worker.defect = -1, 1.0, 0.0

    @property
    def size(self) -> int:
        """About how many numbers its motions have."""
        return len(self.motions.row) + len(self) * 41 * self.motions.room

    def _have_room(self, room):
        """Lists for a number of contacts of every motion."""
        b, old = self.motions, self.motions.room
        for name, (kind, width) in _OF_CONTACTS.items():
            new = np.zeros((b.worlds, room, width), dtype=kind)
            new[:, :old] = getattr(b, name).reshape(b.worlds, old, width)
            setattr(b, name, new.reshape(-1, width))
        b.room = room

    # --- states ------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Positions, (n, nq): a copy."""
        q = self._of["q"]
        return q[:, self.engine.of_q] if self.engine.model.couplings else q.copy()

    @property
    def qd(self) -> Array:
        """Velocities, (n, nv): a copy."""
        v = self._of["v"]
        return v[:, self.engine.of_v] if self.engine.model.couplings else v.copy()

    @property
    def time(self) -> Array:
        """Times of all motions [s], (n,), to read and to write."""
        return self._of["time"][:, 0]

    @property
    def before(self) -> Array:
        """Velocities at the start of the last step, (n, nv)."""
        return self.motions.last.reshape(len(self), -1)[:, self.engine.of_v]

    @property
    def failed(self) -> Array:
        """Which motions have stopped because their steps failed, (n,)."""
        return self.motions.failed != 0

    @property
    def joint_forces(self) -> Array:
        """Forces of stops, dry friction and loops in the last step, (n, rows) [N or N·m]."""
        self._fetch()
        return np.concatenate([self._of[x] for x in ("stop_kept", "dry_kept", "loop_kept")], axis=1)

    def _fetch(self):
        """Have the memory of an only motion in its row."""
        engine, worker = self._team[0]
        while worker.loaded and carry(engine.parts, self.motions, 0, True) < 0:
            self._have_room(2 * self.motions.room)

    def _release(self):
        """Have rows read again, which change."""
        self._fetch()
        self._team[0][1].loaded = 0

    def put(self, q: Array, qd: Array) -> None:
        """Set the states, (n, nq) and (n, nv); motions whose state is the same go on as they were.

        Impulses are kept: solutions start from them.
        """
        new = np.any(self.q != q, axis=1) | np.any(self.qd != qd, axis=1)
        if not new.any():
            return
        self._release()
        for k in np.flatnonzero(new):
            self._of["q"][k], self._of["v"][k] = self.engine._full(q[k], qd[k])
        for name in ("change", "last"):
            self._of[name][new] = 0.0
        for name in ("follows", "energy_known", "sleeps", "calm"):
            self._whole[name][new] = 0
        b = self.motions
        b.failed[new], b.ends[new], b.overlap[new] = 0, 0, np.inf

    def saved(self, k: int) -> dict[str, Array]:
        """Memory of motion ``k`` after its steps, like ``Engine.saved``."""
        self._fetch()
        n, first, b = int(self._whole["known"][k]), k * self.motions.room, self.motions
        found = {name: self._of[name][k].copy() for name in _MEMORY}
        found |= {name: np.array(self._whole[name][k]) for name in _WHOLE}
        found |= {x: getattr(b, x)[first : first + n].copy() for x in _KEPT}
        return found | {"state": np.concatenate([self.q[k], self.qd[k]])}

    def restore(self, k: int, q: Array, qd: Array, arrays: dict[str, Array]) -> None:
        """Put motion ``k`` into a state with what ``saved`` returned."""
        self._release()
        b, key = self.motions, arrays.get("key", ())
        while len(key) > b.room:
            self._have_room(2 * b.room)
        self._of["q"][k], self._of["v"][k] = self.engine._full(q, qd)
        same = np.array_equal(arrays.get("state"), np.concatenate([q, qd]))
        for name in _MEMORY:
            keeps = same or name.endswith("_kept")
            self._of[name][k] = arrays.get(name, 0.0) if keeps else 0.0
        for name in _WHOLE:
            self._whole[name][k] = arrays.get(name, int(name == "follows")) if same else 0
        self._whole["known"][k], b.failed[k], b.ends[k], b.listed[k] = len(key), 0, 0, 0
        b.overlap[k] = np.inf  # not known
        for name in _KEPT if len(key) else ():
            rows = slice(k * b.room, k * b.room + len(key))
            getattr(b, name)[rows] = arrays.get(name, 0.0)  # older files have less

    # --- inputs ------------------------------------------------------------------------------

    def hold(
        self,
        timed: Array | None = None,
        held: Array | None = None,
        *,
        driven: bool = False,
        activation: Array | None = None,
    ) -> None:
        """Let inputs act in the next steps.

        Args:
            timed: (steps or 1, n or 1, size): controls of the actuators if ``driven``, the first
                inputs of compiled forces, or else joint forces, (nv of all joints).
            held: (n or 1, size): joint forces, or the other inputs.
            driven: whether there are controls.
            activation: of the actuators that have one, (n, m), which follow.
        """
        x, n = self.motions.inputs, len(self)
        x.driven = int(driven)
        x.timed, x.timed_size, x.timed_step, x.timed_world = _source(timed, n)
        x.held, x.held_size, _, x.held_world = _source(None if held is None else held[None], n)
        x.activation = _NONE if activation is None else activation.reshape(-1)
        x.states = 0 if activation is None else activation.shape[-1]

    def push(self, give: Callable, wrenches: Array) -> None:
        """Let external forces act in the next steps.

        Args:
            give: tells an engine on which bodies, and where.
            wrenches: moments and forces, (n, count, 6).
        """
        self._push, x = give, self.motions.inputs
        x.pushed, x.push = 1, np.ascontiguousarray(wrenches).reshape(-1, 6)

    def control(self, kernel: Any) -> None:
        """Let a kernel ``(t, q, qd)`` give what is held at the start of every step."""
        self._control, self.motions.inputs.controlled = kernel, 1
        for engine, worker in self._team:
            self._tie_control(engine, worker)

    def _tie_control(self, engine, worker):
        s = engine.s
        worker.control = tied_code(self._control, s.time, s.q, s.v, engine.held)

    # --- storage -----------------------------------------------------------------------------

    def store(self, every: int, out: tuple, names: tuple[str, ...] = ()) -> None:
        """Store states of the next call.

        Args:
            every: steps between them; the last is stored, too.
            out: positions, velocities and work, (times, n, ...) each, from the second time on; and
                forces of the contacts that are named, zeros.
            names: of contacts.
        """
        x = self.motions.storage
        x.every, self.motions.done = every, 0
        x.q, x.v, x.work = (array.reshape(-1) for array in out[:3])
        if names:
            if x.columns != len(names):
                for field, value in columns_of(self.engine, names).items():
                    setattr(x, field, value)
            x.dense = out[3].reshape(-1, 3)

    def record(self, batch: tuple[int, ...]) -> Recorder:
        """Keep full records of motions from here on; steps that fail raise an error.

        The caller lets calls take a short time each, so that Ctrl-C is heard between them.
        """
        b = self.motions
        b.raises, b.lists, b.total[:], self._is_paced = 1, 0, 0.0, True
        self.recorder = Recorder(self.engine, b.storage, batch)
        return self.recorder

    def record_steps(self, every: int, last: int, origin: tuple[float, int]) -> None:
        """Let steps be recorded in one loop.

        Args:
            every: steps between stored states.
            last: number of steps in all, after which the state is stored, too.
            origin: a time [s], and the number of the step that begins then.
        """
        x, inputs = self.motions.storage, self.motions.inputs
        x.every, x.last, x.pending = every, last, -1
        self.recorder.times = 1 + -(-last // every)
        self.recorder.have_room(self.recorder.times)
        inputs.clocked, self.motions.done, (inputs.start, inputs.base) = 1, 0, origin

    # --- steps -------------------------------------------------------------------------------

    def run(self, h: float, steps: int) -> None:
        """Take steps in all motions; residuals and work are those of this call."""
        self.motions.total[:], self.motions.storage.last = 0.0, steps
        self.advance(h, steps)

    def advance(self, h: float, steps: int, only: slice | None = None) -> None:
        """Take steps of ``h`` seconds in all motions, or in some; states and storage follow."""
        b, n = self.motions, self._n
        first, end = (0, n) if only is None else (only.start, only.stop)
        engine, worker = self._team[0]
        if not self._moves:
            self.time[:] += steps * h
            return
        many = 1 if end - first < 2 * LEAST else max(1, min(threads(), (end - first) // LEAST))
        self._push(engine)
        if many == 1 and (steps < _SLICED or self._is_paced):
            code = advance_at_once(engine.parts, b, worker, h, steps, first, end)
            if code > 0:
                engine.warn_of_turning()
            if code >= 0:
                return
            if code not in (ROOM, LIST_FULL):
                self._help(engine, worker, code)
        else:
            b.inputs.h, b.steps, worker.world, worker.end = h, steps, 0, 0
        self._take_all(many, first, end)

    def _take_all(self, many, first, end):
        """All steps of a call, on several threads; what was begun goes on."""
        b, steps = self.motions, self.motions.steps
        team = [self._member(k) for k in range(many)]
        for engine, worker in team[1:]:
            self._push(engine)
            worker.world = worker.end = 0
        sliced = steps >= _SLICED and not self._is_paced
        with Interrupt(sliced) as interrupt:
            before = self._rows() if sliced else None
            try:
                self._take(team, interrupt, first, end)
            except BaseException:
                team[0][1].loaded = 0
                if before is not None:
                    self._put_back(before)
                raise
        b.done += steps
        max((e for e, _ in team), key=lambda e: e.s.turn).warn_of_turning()

    def _take(self, team, interrupt, first, end):
        """All steps in some motions; Ctrl-C is heard where steps are sliced."""
        b, many, pieces = self.motions, len(team), counting()
        first = max(first, team[0][1].end)  # what it has begun it ends
        size, halted, codes = max(LEAST, -(-(end - first) // (8 * many))), [], [0] * many

        def work(k):
            (engine, worker), pace = team[k], Pace(_SLICED)
            worker.left, codes[k] = pace.size, 0
            while not halted:
                if worker.world >= worker.end:
                    at = first + size * next(pieces)
                    if at >= end:
                        return
                    worker.world, worker.end, worker.step = at, min(at + size, end), -1
                code = advance(engine.parts, b, worker)
                if code in (ROOM, LIST_FULL):
                    codes[k] = code
                    return
                if code == PAUSE:
                    worker.left = pace.next()
                    if k == 0:
                        interrupt.look()
                elif code < 0:
                    self._help(engine, worker, code)

        while True:
            on_threads(work, many, look=interrupt.look, halt=lambda: halted.append(True))
            if not any(codes):
                break
            if ROOM in codes:  # while no thread is at it
                self._have_room(2 * b.room)
            if LIST_FULL in codes:
                self.recorder.lengthen()

    def _help(self, engine, worker, code):
        """Let a worker go on: with code of an integrator, or with more room; or raise an error."""
        s, k = engine.s, worker.world
        if code == IN_FLIGHT:
            with self._lock:
                kernel: Any = self.flight and self.flight()
            inputs = s.time, worker.length, s.q, s.v, engine.held
            outputs = (s.q_e, s.v_e, worker.flown, worker.correction)[: len(kernel.outputs)]
            worker.flight, worker.flies = tied_code(kernel, *inputs, *outputs), 1
        elif code == NOT_FINITE:
            self._of["q"][k], self._of["v"][k], self._of["time"][k] = s.q, s.v, s.time
            raise DivergedError(k)
        else:
            with NamingTime(engine.model, s.time[0], s.v[engine.of_v], s.h, "contact"):
                engine._help(code)

    def _rows(self) -> dict[str, Array]:
        """Copies of what steps change, for a call that is interrupted."""
        self._fetch()
        found = {name: getattr(self.motions, name).copy() for name in _CHANGED}
        return found | {"activation": self.motions.inputs.activation.copy()}

    def _put_back(self, before):
        """All motions as they were before a call."""
        b, n = self.motions, len(self)
        b.inputs.activation[:] = before.pop("activation")
        for name, old in before.items():
            now = getattr(b, name)
            if name in _OF_CONTACTS:  # which may have got more room
                now, old = (x.reshape(n, -1, x.shape[-1]) for x in (now, old))
                now[:, : old.shape[1]] = old
            else:
                now[...] = old

    @property
    def worst(self) -> tuple[float, float]:
        """Smallest pivot of the inertia matrix, and largest defect of flight, of all steps."""
        workers = [worker for _, worker in self._team]
        return min(w.pivot for w in workers), max(w.defect for w in workers)

    # --- what is reported --------------------------------------------------------------------

    def forces(self, k: int) -> ContactForces:
        """Contacts of motion ``k`` that had rows in its last step."""
        b, first = self.motions, k * self.motions.room
        at = slice(first, first + int(b.listed[k]))
        x, which = b.place[at].copy(), b.which[at]
        names = tuple(self.engine.name_of(*key) for key in which[:, :3].tolist())
        ends = which[:, 3].copy(), which[:, 4].copy()
        found = Contacts(*ends, x[:, :3], x[:, 3:6], x[:, 6], names, x[:, 7], x[:, 8])
        return ContactForces(found, x[:, 9:12], x[:, 12:15], x[:, 15:18])

    def contacts(self, k: int) -> Contacts:
        """Contacts at the state of motion ``k``."""
        engine, worker = self._team[0]
        own_numbers(engine.parts, self.samples.record, worker, k)
        return engine.contacts(self._of["q"][k, engine.of_q])

    def find(self, k: int, q: Array | None = None) -> Array:
        """Numbers in ``engine.found`` of the contacts of motion ``k`` where it is, or at ``q``."""
        engine, worker = self._team[0]
        own_numbers(engine.parts, self.samples.record, worker, k)
        return engine.find(self._of["q"][k, engine.of_q] if q is None else q)

    def why(self, k: int) -> str:
        """Why motion ``k`` stands still."""
        if self.motions.failed[k] == NO_INERTIA:
            return "a joint moves no inertia, or does not stay finite"
        return "its state does not stay finite"


class DivergedError(ArithmeticError):
    """A motion has not stayed finite, number ``args[0]``: its row has the state."""


_NONE = np.zeros(0)
_SLICED = 8  # steps of a call that can be interrupted; shorter ones end first
_MEMORY = ("change", "last", "energy", "stop_kept", "dry_kept", "loop_kept", "loop_ended", "tau")
_WHOLE = ("follows", "energy_known", "sleeps", "pile", "calm")
_KEPT = ("key", "kept", "ended", "spot", "bent")
_OF_CONTACTS = {
    "key": (np.int64, 3),
    "kept": (float, 6),
    "ended": (float, 3),
    "spot": (float, 3),
    "bent": (float, 3),
    "place": (float, 18),
    "which": (np.int64, 5),
}
_CHANGED = (
    "row",
    "number",
    "failed",
    "total",
    "since",
    "counts",
    "overlap",
    "last",
    "bare",
    "ends",
    "errors",
    "listed",
    *_OF_CONTACTS,
)


def _source(array, n):
    """Numbers, how many a motion has, and how far those of the next step and motion are."""
    if array is None:
        return _NONE, 0, 0, 0
    array = np.ascontiguousarray(array, dtype=float)
    steps, worlds, size = array.shape
    return array.reshape(-1), size, size * worlds * (steps > 1), size * (worlds > 1)
