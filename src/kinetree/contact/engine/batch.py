"""Many worlds of one engine in one native call: several steps of each, worlds over threads.

A thread has its own engine, which takes one world after another, see ``many``. So worlds are
the same to the bit whatever the number of threads. One that fails keeps its last state and is
flagged.
"""

from collections.abc import Callable
from itertools import count as counting
from itertools import product
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.loops.language import BODIES, SINGLE
from kinetree.codegen.runtime.interrupts import Interrupt, Pace
from kinetree.codegen.runtime.threads import on_threads, threads
from kinetree.codegen.tied import tied_code
from kinetree.contact.contacts import Contacts
from kinetree.contact.engine.engine import ContactForces, Engine
from kinetree.contact.engine.many import PAUSE, ROOM, Many, Turn, own_numbers, take_turns
from kinetree.contact.engine.parts import NO_INERTIA
from kinetree.model.general.tables import data_of
from kinetree.model.limits import joint_values

LEAST = 4  # worlds that a thread takes at a time, at least


class EngineBatch:
    """Worlds of one model and scene, each with its own state, memory and numbers.

    Args:
        make: makes an engine, one for each thread.
        n: number of worlds.
        flight: kernel of a step of an integrator for what is far from everything, or None;
            engines are then ``flying``.

    Attributes:
        many: rows of all worlds.
        engine: one of the engines, to ask for names.
    """

    def __init__(self, make: Callable[[], Engine], n: int, flight: Any = None):
        self._make, self._flight = make, flight
        self._push: Callable = lambda engine: None
        self._team: list[tuple[Engine, Turn]] = []
        self.engine = self._member(0)[0]
        e, nv, nq = self.engine, self.engine.tree.nv, self.engine.tree.nq
        trees, rows = e.problem.trees, e.rows
        names = {
            "q": nq, "v": nv, "time": 1, "change": nv, "last": nv, "energy": trees,
            "stop_kept": rows.stops, "dry_kept": rows.dry, "loop_kept": rows.loops,
            "loop_ended": rows.loops, "tau": nv,
        }  # fmt: skip
        width, whole = sum(names.values()), 3 + 3 * trees
        self.many = Many(
            worlds=n, width=width, whole=whole, row=np.zeros(n * width),
            number=np.zeros(n * whole, dtype=np.int64), failed=np.zeros(n, dtype=np.int64),
            total=np.zeros((n, 11)), since=np.zeros((n, 12)), overlap=np.full(n, np.inf),
            counts=np.zeros((n, 6), dtype=np.int64), last=np.zeros(n * nv),
            ends=np.zeros((n, 4), dtype=np.int64),
            errors=np.zeros((n, 2)), listed=np.zeros(n, dtype=np.int64),
        )  # fmt: skip
        self._have_room(64)
        ends = np.cumsum([0, *names.values()]).tolist()
        row, number = self.many.row.reshape(n, width), self.many.number.reshape(n, whole)
        self._of = {name: row[:, ends[k] : ends[k + 1]] for k, name in enumerate(names)}
        self._whole = {"follows": number[:, 0], "energy_known": number[:, 1], "known": number[:, 2]}
        for k, name in enumerate(("sleeps", "pile", "calm")):
            self._whole[name] = number[:, 3 + k * trees : 3 + (k + 1) * trees]

    def __len__(self):
        return self.many.worlds

    def _member(self, k):
        """The engine of a thread, and what it is at."""
        while len(self._team) <= k:
            e = self._make()
            length, flown, s = np.zeros(1), np.zeros(1), e.s
            flight = tied_code(self._flight, s.time, length, s.q, s.v, e.held, s.q_e, s.v_e, flown)
            turn = Turn(
                step=-1, flight=flight, flown=flown, length=length,
                **{name: x for name, x in e.numbers.items() if name in Turn.types},
            )  # fmt: skip
            self._team.append((e, turn))
        return self._team[k]

    @property
    def engines(self) -> list[Engine]:
        """Those of all threads."""
        return [engine for engine, _ in self._team]

    def _have_room(self, room):
        """Lists for a number of contacts of every world."""
        b, old = self.many, self.many.room
        for name, (kind, width) in _OF_CONTACTS.items():
            new = np.zeros((b.worlds, room, width), dtype=kind)
            new[:, :old] = getattr(b, name).reshape(b.worlds, old, width)
            setattr(b, name, new.reshape(-1, width))
        b.room = room

    # --- states ------------------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """Positions, (n, nq): a copy."""
        return self._of["q"][:, self.engine.of_q]

    @property
    def qd(self) -> Array:
        """Velocities, (n, nv): a copy."""
        return self._of["v"][:, self.engine.of_v]

    @property
    def time(self) -> Array:
        """Times of all worlds [s], (n,), to read and to write."""
        return self._of["time"][:, 0]

    @property
    def before(self) -> Array:
        """Velocities at the start of the last step, (n, nv)."""
        return self.many.last.reshape(len(self), -1)[:, self.engine.of_v]

    @property
    def failed(self) -> Array:
        """Which worlds have stopped because their steps failed, (n,)."""
        return self.many.failed != 0

    @property
    def joint_forces(self) -> Array:
        """Forces of stops, dry friction and loops in the last step, (n, rows) [N or N·m]."""
        return np.concatenate([self._of[x] for x in ("stop_kept", "dry_kept", "loop_kept")], axis=1)

    def put(self, q: Array, qd: Array) -> None:
        """Set the states, (n, nq) and (n, nv); worlds whose state is the same go on as they were.

        Impulses are kept: solutions start from them.
        """
        new = np.any(self.q != q, axis=1) | np.any(self.qd != qd, axis=1)
        for k in np.flatnonzero(new):
            self._of["q"][k], self._of["v"][k] = self.engine._full(q[k], qd[k])
        for name in ("change", "last"):
            self._of[name][new] = 0.0
        for name in ("follows", "energy_known", "sleeps", "calm"):
            self._whole[name][new] = 0
        self.many.failed[new], self.many.ends[new], self.many.overlap[new] = 0, 0, np.inf

    def saved(self, k: int) -> dict[str, Array]:
        """Memory of world ``k`` after its steps, like ``Engine.saved``."""
        n, first, b = int(self._whole["known"][k]), k * self.many.room, self.many
        found = {name: self._of[name][k].copy() for name in _MEMORY}
        found |= {name: np.array(self._whole[name][k]) for name in _WHOLE}
        found |= {x: getattr(b, x)[first : first + n].copy() for x in _KEPT}
        return found | {"state": np.concatenate([self.q[k], self.qd[k]])}

    def restore(self, k: int, q: Array, qd: Array, arrays: dict[str, Array]) -> None:
        """Put world ``k`` into a state with what ``saved`` returned."""
        b, key = self.many, arrays.get("key", ())
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

    # --- numbers of worlds -------------------------------------------------------------------

    def give_inertias(self, inertia: Array) -> None:
        """Worlds have their own inertias, (n, bodies, 10) as in ``model.general.tables``."""
        self.many.inertia = np.ascontiguousarray(inertia).reshape(-1, 10)
        self.many.bodies = 1

    def give_models(self, models: list) -> None:
        """Worlds have models with other numbers, one each: those of ``functional.parameters``."""
        trees = [model.uncoupled.spanning_tree for model in models]
        data: list[Any] = [data_of(tree) for tree in trees]
        tables = [x.numbers for x in data]
        self.give_inertias(np.array([x[BODIES]["inertia"] for x in tables]))
        names, b, m = ("placement", "armature", "dynamics"), self.many, self.engine.mechanism
        b.body = np.concatenate([np.hstack([x[BODIES][y] for y in names]) for x in tables])
        b.gravity, b.bodies = np.array([x[SINGLE]["gravity"][0] for x in tables]), 2
        old, rest = self.engine.tree, (m.damping, m.stiffness)
        own = [
            y - joint_values(old, x) for x, y in zip(("damping", "stiffness"), rest, strict=True)
        ]
        each = [
            (x.armature, joint_values(x, "damping") + own[0], joint_values(x, "stiffness") + own[1])
            for x in trees
        ]
        b.joint = np.ascontiguousarray(np.array(each).swapaxes(1, 2)).reshape(-1, 3)

    def give_levels(self, levels: Array) -> None:
        """Worlds have their own dry friction, (n, rows of it)."""
        self.many.level, self.many.rough = np.ascontiguousarray(levels, dtype=float).ravel(), 1

    def give_shapes(self, tables: dict[str, Array]) -> None:
        """Worlds have their own numbers of shapes: fields of ``Shapes``, (n, shapes, ...)."""
        shapes, n = self.engine.tables.shapes, len(self)
        parts = [
            np.broadcast_to(
                tables.get(name, getattr(shapes, name)).reshape(-1, shapes.count, width),
                (n, shapes.count, width),
            )
            for name, width in _OF_SHAPES.items()
        ]
        self.many.shape = np.concatenate(parts, axis=2).reshape(-1, 27)
        self.many.shaped = 1

    def give_gains(self, factors: Array) -> None:
        """Worlds have gains of their actuators multiplied by factors, (n, actuators)."""
        both = np.concatenate([self.engine.drives.gain, self.engine.drives.bias], axis=1)
        self.many.gain = (factors[:, :, None] * both).reshape(-1, 6)
        self.many.gains = 1

    def expect(self, names: tuple[str, ...]) -> None:
        """Store the forces of contacts with these names, in this order, with states."""
        b, n, first = self.many, self.engine.tables.shapes.count, {}
        pairs = [name.rpartition(":")[0] for name in names]
        b.columns, b.points = len(names), np.ones(n * n, dtype=np.int64)
        b.column = np.full(n * n, -1, dtype=np.int64)
        for k, pair in enumerate(pairs):
            first.setdefault(pair, k)
        for i, j in product(range(n), range(n)):
            name = self.engine.pair_name(i, j)
            if i != j and name in first:
                b.column[i * n + j], b.points[i * n + j] = first[name], pairs.count(name)

    # --- steps -------------------------------------------------------------------------------

    def push(self, give: Callable, wrenches: Array) -> None:
        """Let external forces act in the next steps.

        Args:
            give: tells an engine on which bodies, and where.
            wrenches: moments and forces, (n, count, 6).
        """
        self._push = give
        self.many.pushed, self.many.push = 1, np.ascontiguousarray(wrenches).reshape(-1, 6)

    def run(
        self, h: float, steps: int, timed: Array | None = None, held: Array | None = None, *,
        driven: bool = False, activation: Array | None = None, every: int = 0,
        out: tuple | None = None,
    ) -> None:  # fmt: skip
        """Take steps in all worlds, on all threads.

        Args:
            h: length of a step [s].
            steps: how many.
            timed: (steps or 1, n or 1, size): controls of the actuators if ``driven``, the first
                inputs of compiled forces, or else joint forces, (nv of all joints).
            held: (n or 1, size): joint forces, or the other inputs.
            driven: whether there are controls.
            activation: of the actuators that have one, (n, m), which follow.
            every: store every n-th state, and the last, in ``out``; 0 for none.
            out: positions, velocities and work, (times, n, ...) each, from the second time on; and
                forces of the contacts that ``expect`` named, zeros.
        """
        b, n = self.many, len(self)
        b.h, b.steps, b.driven, b.every = h, steps, int(driven), every
        b.timed, b.timed_size, b.timed_step, b.timed_world = _source(timed, n)
        b.held, b.held_size, _, b.held_world = _source(None if held is None else held[None], n)
        b.activation = _NONE if activation is None else activation.reshape(-1)
        b.states = 0 if activation is None else activation.shape[-1]
        b.q, b.v, b.work = (x.reshape(-1) for x in (out or (_NONE,) * 3)[:3])
        if b.columns:
            b.force = out[3].reshape(-1, 3) if out else np.zeros((0, 3))
        if not self.engine.tree.nv:
            self.time[:] += steps * h
            return
        many = max(1, min(threads(), n // LEAST))
        team = [self._member(k) for k in range(many)]
        for engine, turn in team:
            self._push(engine)
            turn.world = turn.end = 0
        with Interrupt(steps >= _SLICED) as interrupt:
            before = self._rows() if steps >= _SLICED else None
            try:
                self._take(team, interrupt)
            except BaseException:
                if before is not None:
                    self._put_back(before)
                raise
        max((e for e, _ in team), key=lambda e: e.s.turn).warn_of_turning()

    def _take(self, team, interrupt):
        """All steps in all worlds; Ctrl-C is heard where steps are sliced."""
        b, n, many, pieces = self.many, len(self), len(team), counting()
        size, halted = max(LEAST, -(-n // (8 * many))), []

        def work(k):
            (engine, turn), pace = team[k], Pace(_SLICED)
            turn.left = pace.size
            while not halted:
                if turn.world >= turn.end:
                    first = size * next(pieces)
                    if first >= n:
                        return
                    turn.world, turn.end, turn.step = first, min(first + size, n), -1
                code = take_turns(engine.parts, b, turn)
                if code == ROOM:
                    return
                if code == PAUSE:
                    turn.left = pace.next()
                    if k == 0 and b.steps >= _SLICED:
                        interrupt.look()
                elif code < 0:
                    engine._help(code)

        while True:
            on_threads(work, many, look=interrupt.look, halt=lambda: halted.append(True))
            if all(turn.world >= turn.end for _, turn in team):
                break
            self._have_room(2 * b.room)  # while no thread is at it

    def _rows(self) -> dict[str, Array]:
        """Copies of what steps change, for a call that is interrupted."""
        return {name: getattr(self.many, name).copy() for name in _CHANGED}

    def _put_back(self, before):
        """All worlds as they were before a call."""
        b, n = self.many, len(self)
        for name, old in before.items():
            now = getattr(b, name)
            if name in _OF_CONTACTS:  # which may have got more room
                now, old = (x.reshape(n, -1, x.shape[-1]) for x in (now, old))
                now[:, : old.shape[1]] = old
            else:
                now[...] = old

    # --- what is reported --------------------------------------------------------------------

    def forces(self, k: int) -> ContactForces:
        """Contacts of world ``k`` that had rows in its last step."""
        b, first = self.many, k * self.many.room
        at = slice(first, first + int(b.listed[k]))
        x, which = b.place[at].copy(), b.which[at]
        names = tuple(self.engine.name_of(*key) for key in which[:, :3].tolist())
        ends = which[:, 3].copy(), which[:, 4].copy()
        found = Contacts(*ends, x[:, :3], x[:, 3:6], x[:, 6], names, x[:, 7], x[:, 8])
        return ContactForces(found, x[:, 9:12], x[:, 12:15], x[:, 15:18])

    def keys_and_forces(self, k: int) -> tuple[Array, Array]:
        """Shapes and features (n, 3) of the contacts of world ``k``, and their forces, (n, 3)."""
        at = slice(k * self.many.room, k * self.many.room + int(self.many.listed[k]))
        return self.many.which[at, :3].copy(), self.many.place[at, 9:12].copy()

    def contacts(self, k: int) -> Contacts:
        """Contacts at the state of world ``k``."""
        engine, turn = self._member(0)
        own_numbers(engine.parts, self.many, turn, k)
        return engine.contacts(self._of["q"][k, engine.of_q])

    def find(self, k: int, q: Array | None = None) -> Array:
        """Numbers in ``engine.found`` of the contacts of world ``k`` where it is, or at ``q``."""
        own_numbers(self.engine.parts, self.many, self._team[0][1], k)
        return self.engine.find(self._of["q"][k, self.engine.of_q] if q is None else q)

    def why(self, k: int) -> str:
        """Why world ``k`` stands still."""
        if self.many.failed[k] == NO_INERTIA:
            return "a joint moves no inertia, or does not stay finite"
        return "its state does not stay finite"


_NONE = np.zeros(0)
_SLICED = 8  # steps of a call that can be interrupted; shorter ones end first
_MEMORY = ("change", "last", "energy", "stop_kept", "dry_kept", "loop_kept", "loop_ended", "tau")
_WHOLE = ("follows", "energy_known", "sleeps", "pile", "calm")
_KEPT = ("key", "kept", "ended", "spot", "bent")
_OF_CONTACTS = {
    "key": (np.int64, 3), "kept": (float, 6), "ended": (float, 3), "spot": (float, 3),
    "bent": (float, 3), "place": (float, 18), "which": (np.int64, 5),
}  # fmt: skip
_CHANGED = (
    "row", "number", "failed", "activation", "total", "since", "counts", "overlap", "last", "ends",
    "errors", "listed", *_OF_CONTACTS,
)  # fmt: skip
_OF_SHAPES = {
    "friction": 3, "restitution": 1, "size": 3, "radius": 1, "thin": 1, "box": 6, "place": 12,
}  # fmt: skip


def _source(array, n):
    """Numbers, how many a world has, and how far those of the next step and world are."""
    if array is None:
        return _NONE, 0, 0, 0
    array = np.ascontiguousarray(array, dtype=float)
    steps, worlds, size = array.shape
    return array.reshape(-1), size, size * worlds * (steps > 1), size * (worlds > 1)
