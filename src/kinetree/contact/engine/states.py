"""States and memories of the motions of a machine, to read, to set and to save."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.contact.contacts import Contacts
from kinetree.contact.engine.carrying import carry, own_numbers
from kinetree.contact.engine.engine import ContactForces, Engine
from kinetree.contact.engine.listing import LATER, list_contacts
from kinetree.contact.engine.motions import Inputs, Motions, Storage, WorkerState
from kinetree.contact.engine.parts import NO_INERTIA
from kinetree.contact.engine.samples import OwnNumbers

_MEMORY = (
    "change",
    "last",
    "energy",
    "stop_kept",
    "stop_was",
    "dry_kept",
    "loop_kept",
    "loop_ended",
    "tau",
)
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
_NO_CONTACTS = {
    name: np.zeros((0, width), dtype=kind)
    for name, (kind, width) in _OF_CONTACTS.items()
    if name in _KEPT
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


class MotionStates:
    """States of ``n`` motions as rows of numbers.

    Args:
        engine: in which an only motion stays.
        worker: its progress.
        n: number of motions.

    Attributes:
        motions: rows of all motions.
        samples: gives motions their own numbers.
    """

    def __init__(self, engine: Engine, worker: WorkerState, n: int):
        self.engine, self._worker, self._n = engine, worker, n
        self.samples = OwnNumbers(self.engine, n)
        nv, nq, trees, rows = engine.tree.nv, engine.tree.nq, engine.problem.trees, engine.rows
        names = {
            "q": nq,
            "v": nv,
            "time": 1,
            "change": nv,
            "last": nv,
            "energy": trees,
            "stop_kept": rows.stops,
            "stop_was": rows.stops,
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
        self._at: dict[str, Any] = {
            name: slice(ends[k], ends[k + 1]) for k, name in enumerate(names)
        }
        self._of = {name: row[:, at] for name, at in self._at.items()}
        places: dict[str, Any] = {"follows": 0, "energy_known": 1, "known": 2}
        for k, name in enumerate(("sleeps", "pile", "calm")):
            places[name] = slice(3 + k * trees, 3 + (k + 1) * trees)
        self._whole = {name: number[:, at] for name, at in places.items()}
        self._at |= places

    def __len__(self):
        return self._n

    @property
    def size(self) -> int:
        """Approximate number of floats that the motions' memory holds."""
        return len(self.motions.row) + len(self) * 41 * self.motions.room

    def _have_room(self, room):
        """Enlarge each motion's contact lists to ``room`` entries, keeping the content."""
        b, old = self.motions, self.motions.room
        for name, (kind, width) in _OF_CONTACTS.items():
            new = np.zeros((b.worlds, room, width), dtype=kind)
            new[:, :old] = getattr(b, name).reshape(b.worlds, old, width)
            setattr(b, name, new.reshape(-1, width))
        b.room = room

    @property
    def q(self) -> Array:
        """Positions of all motions, (n, nq), independent variables only: a copy."""
        q = self._of["q"]
        return q[:, self.engine.of_q] if self.engine.model.couplings else q.copy()

    @property
    def qd(self) -> Array:
        """Velocities of all motions, (n, nv), independent variables only: a copy."""
        v = self._of["v"]
        return v[:, self.engine.of_v] if self.engine.model.couplings else v.copy()

    @property
    def time(self) -> Array:
        """Times of all motions [s], (n,), to read and to write."""
        return self._of["time"][:, 0]

    def view(self, k: int) -> tuple[Array, Array]:
        """Positions and velocities of all joints of motion ``k``: views that steps change."""
        return self._of["q"][k], self._of["v"][k]

    @property
    def before(self) -> Array:
        """Velocities of all motions at the start of the last step, (n, nv)."""
        return self.motions.last.reshape(len(self), -1)[:, self.engine.of_v]

    @property
    def failed(self) -> Array:
        """Mask of the motions that have stopped because their steps failed, (n,)."""
        return self.motions.failed != 0

    @property
    def has_stepped(self) -> bool:
        """Whether any motion has warm-start memory from earlier steps."""
        self._fetch()
        return bool(self._whole["follows"].any() or self._whole["known"].any())

    @property
    def joint_forces(self) -> Array:
        """Forces of stops, dry friction and loops in the last step, (n, rows) [N or N·m]."""
        self._fetch()
        return np.concatenate([self._of[x] for x in ("stop_kept", "dry_kept", "loop_kept")], axis=1)

    def _fetch(self):
        """Save the single motion's memory from the engine to its row."""
        while self._worker.loaded and carry(self.engine.parts, self.motions, 0, True) < 0:
            self._have_room(2 * self.motions.room)

    def _release(self):
        """Save the motion's memory, and mark it to be loaded again before the next step."""
        self._fetch()
        self._worker.loaded = 0

    def put(self, q: Array, qd: Array) -> None:
        """Set states (n, nq) and (n, nv); motions whose state is unchanged keep their memory.

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

    def memory_of(self, k: int) -> dict[str, Array]:
        """Warm-start memory (impulses by name) of motion ``k``, with its state.

        By the names of ``Rows``, ``StepState``, ``Balance`` and ``Sleep``; and the state that it
        belongs to.
        """
        return self.snapshot(k)()

    def snapshot(self, k: int) -> Callable[[], dict[str, Array]]:
        """Function that returns the present ``memory_of`` motion ``k``, callable later."""
        self._fetch()
        b = self.motions
        n, first = int(self._whole["known"][k]), k * b.room
        row = b.row[k * b.width : (k + 1) * b.width].copy()
        number = b.number[k * b.whole : (k + 1) * b.whole].copy()
        lists = _NO_CONTACTS
        if n:
            lists = {name: getattr(b, name)[first : first + n].copy() for name in _KEPT}
        return lambda: self._memory_from(row, number, lists)

    def _memory_from(self, row, number, lists):
        """Warm-start memory by name, from copies of a motion's row and lists."""
        e = self.engine
        found = {name: row[self._at[name]] for name in _MEMORY}
        found |= {name: np.asarray(number[self._at[name]]) for name in _WHOLE}
        found |= {name: x if len(x) else x.copy() for name, x in lists.items()}
        q, v = row[self._at["q"]], row[self._at["v"]]
        if e.model.couplings:  # those that follow are where rows of steps have left them
            found["all"] = np.concatenate([q, v])
        return found | {"state": np.concatenate([q[e.of_q], v[e.of_v]])}

    def forget(self, which: Any) -> None:
        """Clear the warm-start memory of some motions, given by a mask or a number."""
        self._release()
        for name in _MEMORY:
            self._of[name][which] = 0.0
        for name in (*_WHOLE, "known"):
            self._whole[name][which] = 0
        b = self.motions
        b.failed[which], b.ends[which], b.listed[which] = 0, 0, 0
        b.overlap[which] = np.inf  # not known

    def begin(self, k: int, q: Array, qd: Array) -> None:
        """Set the initial state of motion ``k`` in a machine that has no memory yet."""
        self._of["q"][k], self._of["v"][k] = self.engine._full(q, qd)

    def start_from(self, q: Array, qd: Array, memory_of: Callable[[int], dict]) -> None:
        """Set the states (n, ...) of all motions, each with memory from ``memory_of``."""
        for k in range(len(self)):
            self.restore(k, q[k], qd[k], memory_of(k))

    def restore(self, k: int, q: Array, qd: Array, arrays: dict[str, Array]) -> None:
        """Set the state of motion ``k`` with a memory that ``memory_of`` returned."""
        self.forget(k)
        b, key = self.motions, arrays.get("key", ())
        while len(key) > b.room:
            self._have_room(2 * b.room)
        same = np.array_equal(arrays.get("state"), np.concatenate([q, qd]))
        if same and "all" in arrays:
            nq = self.engine.tree.nq
            self._of["q"][k], self._of["v"][k] = arrays["all"][:nq], arrays["all"][nq:]
        else:
            self._of["q"][k], self._of["v"][k] = self.engine._full(q, qd)
        for name in _MEMORY:
            if name in arrays and (same or name.endswith("_kept")):
                self._of[name][k] = arrays[name]
        for name in _WHOLE if same else ():
            self._whole[name][k] = arrays.get(name, int(name == "follows"))
        self._whole["known"][k] = len(key)
        for name in _KEPT if len(key) else ():
            rows = slice(k * b.room, k * b.room + len(key))
            getattr(b, name)[rows] = arrays.get(name, 0.0)  # older files have less

    def _rows(self) -> dict[str, Array]:
        """Copies of all arrays that steps change, to undo an interrupted call."""
        self._fetch()
        found = {name: getattr(self.motions, name).copy() for name in _CHANGED}
        return found | {"activation": self.motions.inputs.activation.copy()}

    def _put_back(self, before):
        """Restore all motions to the copies made before a call."""
        b, n = self.motions, len(self)
        b.inputs.activation[:] = before.pop("activation")
        for name, old in before.items():
            now = getattr(b, name)
            if name in _OF_CONTACTS:  # which may have got more room
                now, old = (x.reshape(n, -1, x.shape[-1]) for x in (now, old))
                now[:, : old.shape[1]] = old
            else:
                now[...] = old

    # --- what is reported --------------------------------------------------------------------

    def _list(self):
        """Write the single motion's contacts to its lists, if not done yet."""
        b = self.motions
        if b.listed[0] == LATER:
            while self.engine.rows.contacts > b.room:
                self._have_room(2 * b.room)
            list_contacts(self.engine.parts, b, 0)

    def listed_contacts(self, k: int) -> tuple[Array, Array]:
        """Arrays ``place`` and ``which`` of motion ``k``'s contacts in its last step."""
        self._list()
        first = k * self.motions.room
        at = slice(first, first + int(self.motions.listed[k]))
        return self.motions.place[at], self.motions.which[at]

    def forces(self, k: int) -> ContactForces:
        """``ContactForces`` of motion ``k`` in its last step."""
        place, which = self.listed_contacts(k)
        x = place.copy()
        names = tuple(self.engine.name_of(*key) for key in which[:, :3].tolist())
        ends = which[:, 3].copy(), which[:, 4].copy()
        found = Contacts(*ends, x[:, :3], x[:, 3:6], x[:, 6], names, x[:, 7], x[:, 8])
        return ContactForces(found, x[:, 9:12], x[:, 12:15], x[:, 15:18])

    def contacts(self, k: int) -> Contacts:
        """``Contacts`` at the present state of motion ``k``."""
        engine = self.engine
        self._list()  # before others are found
        own_numbers(engine.parts, self.samples.record, self._worker, k)
        return engine.contacts(self._of["q"][k, engine.of_q])

    def find(self, k: int, q: Array | None = None) -> Array:
        """Indices in ``engine.found`` of motion ``k``'s contacts, at its state or at ``q``."""
        engine = self.engine
        self._list()  # before others are found
        own_numbers(engine.parts, self.samples.record, self._worker, k)
        return engine.find(self._of["q"][k, engine.of_q] if q is None else q)

    def why(self, k: int) -> str:
        """Reason, as text, why motion ``k`` has stopped."""
        if self.motions.failed[k] == NO_INERTIA:
            return "a joint moves no inertia, or does not stay finite"
        return "its state does not stay finite"
