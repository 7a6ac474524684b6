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
from math import inf
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.procedures.binding import bind
from kinetree.codegen.runtime.interrupts import Interrupt, Pace
from kinetree.codegen.runtime.threads import on_threads, threads, threads_here
from kinetree.codegen.tied import tied_code, tied_control
from kinetree.contact.engine.advance import (
    ASKS,
    LIST_FULL,
    NOT_FINITE,
    PAUSE,
    Call,
    advance,
    advance_at_once,
    end_motion,
)
from kinetree.contact.engine.carrying import ROOM
from kinetree.contact.engine.choosing import SharingChoice
from kinetree.contact.engine.engine import Engine
from kinetree.contact.engine.messages import (
    first_untrusted_step,
    warn_of_errors,
    warn_of_turning,
)
from kinetree.contact.engine.motions import WorkerState
from kinetree.contact.engine.parts import IN_FLIGHT, NO_TRUST
from kinetree.contact.engine.recorder import Recorder
from kinetree.contact.engine.renewal import AsMade
from kinetree.contact.engine.samples import columns_of
from kinetree.contact.engine.sharing import share
from kinetree.contact.engine.states import MotionStates
from kinetree.errors import SimulationError
from kinetree.integration.breakdown import NamingTime

LEAST = 4  # motions that a thread takes at a time, at least
WIDE = 100  # velocities of several trees, whose islands may be on several threads


class Machine(MotionStates):
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
        is_wide: whether one motion may have enough islands for several threads.
        choice: whether they are shared, ``SharingChoice``; None: always.
        recorder: what is stored of them, see ``record``.
        pace: steps that take a short time, as far as is known.
        at_once: ``advance_at_once`` as a function of its further arguments: inputs and lengths of
            steps stay; what it returns, unless it is 0, goes to ``resume``.
    """

    recorder: Any = None
    pace = 0
    _is_paced = False
    _each = inf  # how long a step of one motion took in the last long call [s]

    def __init__(self, make: Callable[[], Engine], n: int, flight: Callable[[], Any] | None = None):
        self._make, self.flight, self._lock = make, flight, Lock()
        self._push: Callable = lambda engine: None
        self._control: Any = None
        self._as_made: AsMade | None = None
        self._team: list[tuple[Engine, WorkerState]] = []
        self._member(0)
        engine, worker = self._team[0]
        super().__init__(engine, worker, n)
        self._moves = engine.tree.nv > 0
        call = Call(parts=engine.parts, motions=self.motions, worker=worker)
        self.at_once = self._alone_at_once = bind(advance_at_once, call)
        self.is_wide = engine.problem.trees > 1 and engine.problem.nv >= WIDE
        self.choice = SharingChoice()
        if self.is_wide:
            self.at_once = self._together_at_once

    def _together_at_once(self, steps, first, end):
        """``advance_at_once`` with islands on several threads, if that is quicker; its code."""
        begin = self._share(True)
        code = self._alone_at_once(steps, first, end)
        if code == 0:
            self._note_time(begin, steps * (end - first))
        return code

    def _share(self, alone):
        """Set how many threads solve the first engine's islands; several only if ``alone``.

        Returns the time, or 0 where that of the next steps says nothing: helpers were made.
        """
        threads, engine = threads_here() if alone else 1, self.engine
        if threads > 1 and self.choice is not None and not self.choice.next():
            threads = 1
        made = share(engine.s.sharing, engine.problem, engine.work, threads)
        return perf_counter() if alone and not made else 0.0

    def _note_time(self, begin, steps):
        """Report the time per step since ``begin`` to the choice of one or several threads."""
        if begin and steps and self.choice is not None and threads_here() > 1:
            self.choice.note((perf_counter() - begin) / steps)

    def _member(self, k):
        """Engine and progress record of thread ``k``, made when first needed."""
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

    def keep_as_made(self) -> "Machine":
        """Save all numbers of a new machine, so that ``renew`` can restore them."""
        for engine, _ in self._team:
            engine.keep_as_made()
        self._as_made = AsMade(self.motions)
        return self

    def renew(self) -> None:
        """Reset the machine to its initial state; arrays handed out before stay unchanged."""
        as_made: Any = self._as_made
        as_made.again()
        self._control, self._push = None, lambda engine: None
        if self.recorder is not None:
            self.recorder.renew()
        for engine, worker in self._team:
            engine.renew()
            worker.loaded = worker.flies = worker.answered = 0
            worker.step, worker.pivot, worker.defect = -1, 1.0, 0.0

    # --- inputs ------------------------------------------------------------------------------

    def hold(
        self,
        timed: Array | None = None,
        held: Array | None = None,
        *,
        driven: bool = False,
        activation: Array | None = None,
    ) -> None:
        """Set the inputs of the next steps: joint forces, or controls of the actuators.

        Args:
            timed: (steps or 1, n or 1, size): controls of the actuators if ``driven``, the first
                inputs of compiled forces, or else joint forces, of the model or of all joints.
            held: (n or 1, size): joint forces, or the other inputs.
            driven: whether there are controls.
            activation: of the actuators that have one, (n, m), which follow.
        """
        x, n = self.motions.inputs, len(self)
        x.driven = int(driven)
        timed = timed if driven else self._in_all_joints(timed)
        held = self._in_all_joints(held)
        x.timed, x.timed_size, x.timed_step, x.timed_world = _source(timed, n)
        x.held, x.held_size, _, x.held_world = _source(None if held is None else held[None], n)
        x.activation = _NONE if activation is None else activation.reshape(-1)
        x.states = 0 if activation is None else activation.shape[-1]

    def _in_all_joints(self, forces):
        """Joint forces (..., nv) spread to the variables of all joints; inputs unchanged."""
        e, nv = self.engine, self.engine.model.nv
        if forces is None or e.s.inputs_count or nv == e.tree.nv or forces.shape[-1] != nv:
            return forces
        found = np.zeros((*forces.shape[:-1], e.tree.nv))
        found[..., e.of_v] = forces
        return found

    def push(self, give: Callable, wrenches: Array) -> None:
        """Set external wrenches (n, count, 6) that act on bodies in the next steps.

        Args:
            give: tells an engine on which bodies, and where.
            wrenches: moments and forces, (n, count, 6).
        """
        self._push, x = give, self.motions.inputs
        x.pushed, x.push = 1, np.ascontiguousarray(wrenches).reshape(-1, 6)

    def control(self, kernel: Any) -> None:
        """Set a controller kernel ``(t, q, qd)`` that computes the held inputs of each step.

        Or another controller in compiled code, see ``codegen.tied``; None for none.
        """
        self.motions.inputs.controlled = int(kernel is not None)
        if kernel is None or kernel is self._control:  # which stays tied
            return
        self._control = kernel
        for engine, worker in self._team:
            self._tie_control(engine, worker)

    def _tie_control(self, engine, worker):
        """Bind the compiled controller to the state of a thread's engine."""
        s = engine.s
        worker.control = tied_control(self._control, s.time, s.q, s.v, engine.held)

    # --- storage -----------------------------------------------------------------------------

    def store(self, every: int, q: Array, v: Array, work: Array) -> None:
        """Store positions, velocities and work of the next call every ``every`` steps.

        Args:
            every: steps between them; the last is stored, too.
            q: positions, (times, n, nq), which are written from the second time on.
            v: velocities, (times, n, nv).
            work: (times, n).
        """
        x = self.motions.storage
        x.every, self.motions.done = every, 0
        x.q, x.v, x.work = (array.reshape(-1) for array in (q, v, work))

    def store_columns(self, names: tuple[str, ...], force: Array) -> None:
        """Store the forces of named contacts in ``force``, (times, n, names, 3)."""
        x = self.motions.storage
        if x.columns != len(names):
            for field, value in columns_of(self.engine, names).items():
                setattr(x, field, value)
        x.dense = force.reshape(-1, 3)

    def raise_errors(self) -> None:
        """Make failed steps raise an error instead of stopping their motion.

        The caller lets calls take a short time each, so that Ctrl-C is heard between them.
        """
        self.motions.raises, self.motions.lists, self._is_paced = 1, 0, True

    def record(self, batch: tuple[int, ...]) -> Recorder:
        """Start full records of all motions; returns the ``Recorder``."""
        self.motions.total[:] = 0.0
        self.recorder = Recorder(self.engine, self.motions.storage, batch)
        return self.recorder

    def record_steps(self, every: int, last: int, origin: tuple[float, int] | None = None) -> None:
        """Set which of the next steps are recorded, and how their times are counted.

        Args:
            every: steps between stored states.
            last: number of steps in all, after which the state is stored, too.
            origin: a time [s], and the number of the step that begins then; or times add up.
        """
        x, inputs = self.motions.storage, self.motions.inputs
        x.every, x.last, x.pending = every, last, -1
        self.recorder.times = 1 + -(-last // every)
        self.recorder.have_room(self.recorder.times)
        self.motions.done = 0
        if origin is not None:
            inputs.clocked, (inputs.start, inputs.base) = 1, origin

    # --- steps -------------------------------------------------------------------------------

    def run(self, h: float, steps: int) -> None:
        """Take ``steps`` steps of ``h`` seconds in all motions, with fresh residuals and work."""
        self.forget_counts()
        self.motions.storage.last = steps
        self.advance(h, steps)

    def forget_counts(self) -> None:
        """Reset the residuals, work and counts of reports to zero."""
        b = self.motions
        b.total[:], b.since[:], b.counts[:] = 0.0, 0.0, 0

    def advance(self, h: float, steps: int, only: slice | None = None) -> None:
        """Take ``steps`` steps of ``h`` seconds in all motions, or in the slice ``only``."""
        first, end = (0, self._n) if only is None else (only.start, only.stop)
        inputs = self.motions.inputs
        if h != inputs.h:
            inputs.h = h
        if not self._moves:
            self.time[:] += steps * h
        elif (end - first) * steps <= _SHORT or self._is_paced:
            self._advance(steps, first, end, False)
        else:
            begin, count = perf_counter(), (end - first) * steps
            self._advance(steps, first, end, count * self._each > _BRIEF)
            self._each = (perf_counter() - begin) / max(count, 1)

    def _advance(self, steps, first, end, sliced):
        """Take steps in a range of motions; ``sliced`` lets Ctrl-C interrupt between slices."""
        many = 1 if end - first < 2 * LEAST else max(1, min(threads(), (end - first) // LEAST))
        many = 1 if self.is_wide and end - first < threads() else many
        engine, worker = self._team[0]
        self._push(engine)
        if many == 1 and not sliced:
            code = self.at_once(steps, first, end)
            if code != 0:
                self.resume(code, first, end)
        else:
            self.motions.steps, worker.world, worker.end = steps, 0, 0
            self._take_all(many, first, end, sliced)

    def resume(self, code: int, first: int = 0, end: int = 1) -> None:
        """Continue a call after an error code: enlarge tables, warn, or raise the error."""
        if code > 0:
            self._tell([self.engine])
        else:
            self._take_all(1, first, end, False, code)

    def _tell(self, engines):
        """Warn of unreliable steps, and of bodies that rotate too far in one step."""
        warn_of_turning(max(engines, key=lambda e: e.s.turn))
        for engine in engines:
            warn_of_errors(engine)

    def _take_all(self, many, first, end, sliced, code=0):
        """Take all steps of a call on several threads, enlarging tables when they overflow.

        Where they are ``sliced``, Ctrl-C leaves all motions as they were before.
        """
        b, steps = self.motions, self.motions.steps
        team = [self._member(k) for k in range(many)]
        for engine, worker in team[1:]:
            self._push(engine)
            worker.world = worker.end = 0
        with Interrupt(sliced) as interrupt:
            before = self._rows() if sliced else None
            try:
                if code not in (0, ROOM, LIST_FULL):
                    self._help(*team[0], code)
                self._take(team, interrupt, first, end)
            except BaseException:
                self._settle(before)
                raise
        b.done += steps
        self._tell([engine for engine, _ in team])

    def _settle(self, before):
        """Restore the states before an interrupted call; a single motion stays where it is."""
        engine, worker = self._team[0]
        if before is None and len(self) == 1:
            end_motion(engine.parts, self.motions, worker)
            return
        worker.loaded = 0
        if before is not None:
            self._put_back(before)

    def _take(self, team, interrupt, first, end):
        """Let a team of threads take all steps of a range of motions; stops on Ctrl-C."""
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
                code = self._go_on(engine, worker, many == 1)
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

    def _go_on(self, engine, worker, alone):
        """Result code of a worker's steps; ``alone``: several threads may solve its islands."""
        if not self.is_wide:
            return advance(engine.parts, self.motions, worker)
        before, begin = worker.left, self._share(alone)
        code = advance(engine.parts, self.motions, worker)
        if code in (0, PAUSE):
            self._note_time(begin, before - worker.left)
        return code

    def _help(self, engine, worker, code):
        """Fix what stopped a worker: compile a kernel, or enlarge tables; or raise the error."""
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
        elif code == ASKS:
            worker.control.status[0] = 0
            with self._lock:
                engine.held[:] = self._control.call(float(s.time[0]), s.q.copy(), s.v.copy())
            worker.answered = 1
        elif code == NO_TRUST:
            raise SimulationError(
                f"{first_untrusted_step(engine)}. Take shorter steps, or strict=False"
            )
        else:
            with NamingTime(engine.model, s.time[0], s.v[engine.of_v], s.h, "contact"):
                engine._help(code)

    @property
    def worst(self) -> tuple[float, float]:
        """Smallest inertia pivot and largest flight defect over all steps so far."""
        workers = [worker for _, worker in self._team]
        return min(w.pivot for w in workers), max(w.defect for w in workers)


class DivergedError(ArithmeticError):
    """A motion has not stayed finite, number ``args[0]``: its row has the state."""


_NONE = np.zeros(0)
_SHORT = 64  # steps of all motions that are taken at once, without hearing Ctrl-C
_SLICED = 8  # steps of the first slice of a call that can be interrupted
_BRIEF = 0.02  # how long calls of more steps may take that are taken at once, all the same [s]


def _source(array, n):
    """Array (steps, worlds, size) flattened, its size, and strides by step and by motion."""
    if array is None:
        return _NONE, 0, 0, 0
    array = np.ascontiguousarray(array, dtype=float)
    steps, worlds, size = array.shape
    return array.reshape(-1), size, size * worlds * (steps > 1), size * (worlds > 1)
