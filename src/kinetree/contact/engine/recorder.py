"""Recorder: the steps of one motion that ``simulate`` takes and stores in compiled code."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.tied import tied_code
from kinetree.contact.engine.engine import Engine, Memory
from kinetree.contact.engine.parts import IN_FLIGHT
from kinetree.contact.engine.recording import NOT_FINITE, ROOM, Recording, record_steps, store
from kinetree.contact.engine.renewal import AsMade

CONTACTS = 1024
"""Contacts that there is room for at first."""

_WIDTHS = ("q", "v", "joints", "drive", "work", "kinetic", "potential")


class Recorder:
    """Takes and stores steps of one motion.

    Args:
        engine: takes the steps.

    Attributes:
        recording: what is stored.
        flight: makes the kernel of a step of an integrator, ``(t, h, q, qd, inputs)``, once it is
            needed: where nothing is near, and the engine is ``flying``.
    """

    flight: Callable[[], Any]

    def __init__(self, engine: Engine):
        self.engine, rows = engine, engine.rows
        self.recording = Recording(
            every=1, total=np.zeros(10), pivot=1.0, bare=1, nj=rows.stops + rows.dry + rows.loops,
            flight=tied_code(None), control=tied_code(None),
            length=np.zeros(1), flown=np.zeros(1), correction=np.zeros(1),
        )  # fmt: skip
        nq, nv = engine.tree.nq, engine.tree.nv
        self._width = dict(zip(_WIDTHS, (nq, nv, self.recording.nj, nv, 1, 1, 1), strict=True))
        self._as_made = AsMade(self.recording)
        self._have_room(2, CONTACTS)

    def renew(self) -> None:
        """Forget what was stored; arrays that were handed out stay as they are."""
        self._as_made.again()
        self._have_room(2, CONTACTS)

    def _have_room(self, rows, contacts):
        """Lists for numbers of states and contacts; what is stored stays."""
        r = self.recording
        sizes: dict[str, tuple] = {}
        if rows > r.room:
            sizes = {name: ((rows * wide,), float) for name, wide in self._width.items()}
            sizes |= {"residuals": ((rows, 10), float), "first": ((rows + 1,), np.int64)}
        if contacts > r.most:
            sizes |= {"key": ((contacts, 3), np.int64), "force": ((contacts, 3), float)}
        for name, (shape, kind) in sizes.items():
            old, new = getattr(r, name), np.empty(shape, kind)
            new[: len(old)] = old
            setattr(r, name, new)
        r.room, r.most = max(rows, r.room), max(contacts, r.most)
        r.first[0] = 0

    def _grow(self):
        """More room for what is full."""
        r = self.recording
        self._have_room(2 * r.room if r.rows == r.room else r.room, 2 * r.most)

    def _learn_to_fly(self):
        """Have the code of the integrator."""
        s, r, kernel = self.engine.s, self.recording, self.flight()
        inputs = s.time, r.length, s.q, s.v, self.engine.held
        outputs = (s.q_e, s.v_e, r.flown, r.correction)[: len(kernel.outputs)]
        r.flight, r.flies = tied_code(kernel, *inputs, *outputs), 1

    def control(self, kernel: Any) -> None:
        """Let a kernel ``(t, q, qd)`` give what is held at the start of every step."""
        s, r = self.engine.s, self.recording
        r.control, r.controlled = tied_code(kernel, s.time, s.q, s.v, self.engine.held), 1

    def begin(
        self, q: Array, qd: Array, memory: Memory, every: int, rows: int,
        origin: tuple[float, int],
    ) -> None:  # fmt: skip
        """Start from a state, and store it.

        Args:
            q: positions, (nq,).
            qd: velocities, (nv,).
            memory: of the motion.
            every: steps between stored states.
            rows: how many there will be.
            origin: a time [s], and the number of the step that begins then.
        """
        self.engine._load(memory, q, qd)
        self._have_room(rows, CONTACTS)
        r = self.recording
        r.every, r.due, (r.start, r.base) = every, 1, origin

    def take(self, held: Array, h: float, start: float, last: int) -> bool:
        """Take steps until ``last`` have been taken; False where the state did not stay finite.

        Args:
            held: joint forces, or inputs of forces.
            h: length of a step [s].
            start: time at which the first of them begins [s].
            last: number of steps, from the first on.
        """
        engine, r = self.engine, self.recording
        if not r.step:
            engine.s.h = h
        elif h != engine.s.h:
            r.base, r.start, engine.s.h = r.step, start, h
        engine.hold(held)
        r.last = last
        while True:
            code = record_steps(engine.parts, r)
            if code == ROOM:
                self._grow()
            elif code == NOT_FINITE:
                return False
            elif code == IN_FLIGHT:
                self._learn_to_fly()
            elif code < 0:
                engine._help(code)
            else:
                if code:
                    engine.warn_of_turning()
                return True

    def add(self, residuals: Array, *, summed: Array, bare: bool) -> None:
        """Take account of steps that were not taken here; ``bare``: nothing held in the last."""
        r = self.recording
        r.total[:] = np.where(summed, r.total + residuals, np.maximum(r.total, residuals))
        r.bare = int(bare)

    def store(self) -> None:
        """Store the present state of the engine, and the forces of its last step."""
        r = self.recording
        while store(self.engine.parts, r) == ROOM:
            self._grow()

    def finish(self) -> None:
        """Store the last state, if it is not."""
        if self.recording.since:
            self.recording.since = 0
            self.store()

    @property
    def state(self) -> tuple[Array, Array]:
        """Positions and velocities now: copies."""
        e = self.engine
        return e.s.q[e.of_q], e.s.v[e.of_v]

    def arrays(self) -> dict[str, Array]:
        """What is stored: a row for each state, by name."""
        r, e = self.recording, self.engine
        n = r.rows
        found = {
            name: getattr(r, name)[: n * wide].reshape((n, wide) if name in _WIDTHS[:4] else (n,))
            for name, wide in self._width.items()
        }
        if self.engine.model.couplings:
            found["q"] = found["q"][:, e.of_q]
            found |= {name: found[name][:, e.of_v] for name in ("v", "drive")}
        found["residuals"] = r.residuals[:n]
        found |= {"first": r.first[: n + 1], "key": r.key[: r.first[n]]}
        return found | {"force": r.force[: r.first[n]]}
