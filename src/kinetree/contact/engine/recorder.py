"""Room for what steps store, and the record of a simulation made of it."""

from collections.abc import Callable
from functools import cached_property, partial
from math import prod

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.contact.engine.engine import Engine
from kinetree.contact.engine.motions import Storage
from kinetree.contact.engine.summary import WIDE, summarise
from kinetree.contact.history import RecordedHistory

CONTACTS = 1024
"""Contacts of all states of a motion that there is room for at first."""


class Recorder:
    """Full record of motions: states, energies, residuals and forces.

    Args:
        engine: one of the machine.
        storage: what steps write.
        batch: shape of the batch.

    Attributes:
        times: of states that are kept.
    """

    def __init__(self, engine: Engine, storage: Storage, batch: tuple[int, ...]):
        self.engine, self.storage, self.batch = engine, storage, batch
        self.n, self.times, rows = prod(batch), 0, engine.rows
        nq, nv, nj = engine.tree.nq, engine.tree.nv, rows.stops + rows.dry + rows.loops
        storage.full, storage.nj, storage.pending = 1, nj, -1
        self._widths = {"q": nq, "v": nv, "joints": nj, "push": nv * engine.mechanism.prescribed}
        self._room = 0
        self.have_lists(max(CONTACTS // self.n, 64))

    def renew(self) -> None:
        """Reset the recorder to no stored times; arrays handed out stay unchanged."""
        self.times = self._room = 0

    def have_room(self, times: int) -> None:
        """Enlarge the storage arrays to ``times`` stored times, keeping the content."""
        n, storage = self.n, self.storage
        new: dict[str, Array] = {name: np.empty(times * n * w) for name, w in self._widths.items()}
        new |= {name: np.empty(times * n) for name in ("work", "kinetic", "potential")}
        new["residuals"] = np.empty((times * n, 10))
        new["first"] = np.zeros((times + 1) * n, dtype=np.int64)
        for name, array in new.items():
            if self._room:
                old = getattr(storage, name)
                array[: len(old)] = old
            setattr(storage, name, array)
        self._room = times

    def lengthen(self) -> None:
        """Enlarge the contact lists, extrapolating the contacts stored so far."""
        x = self.storage
        stored = max(np.count_nonzero(x.first) // self.n, 1)
        self.have_lists(max(2 * x.most, 1 + 9 * x.most * self.times // (8 * stored)))

    def have_lists(self, most: int) -> None:
        """Enlarge each motion's contact lists to ``most`` entries, keeping the content."""
        x, old = self.storage, self.storage.most
        for name, kind in (("key", np.int64), ("force", float)):
            new = np.empty((self.n * most, 3), dtype=kind)
            if old:
                of_each = new.reshape(self.n, most, 3)
                of_each[:, :old] = getattr(x, name).reshape(self.n, old, 3)
            setattr(x, name, new)
        x.most = most

    # --- steps that are kept one by one ------------------------------------------------------

    def expect(self) -> None:
        """Prepare the next storage time, at which every step is stored until ``keep``."""
        x, n, k = self.storage, self.n, self.times
        if k >= self._room:
            self.have_room(2 * k + 2)
        x.pending, at = k, slice(k * n, (k + 1) * n)
        x.residuals[at] = 0.0
        for name in ("joints", "push"):
            wide = self._widths[name]
            getattr(x, name)[k * n * wide : (k + 1) * n * wide] = 0.0
        x.first[(k + 1) * n : (k + 2) * n] = x.first[at]

    def keep(self) -> Array:
        """Finish the pending storage time; returns its residuals, (n, 10), to be written."""
        found = self.storage.residuals[self.times * self.n : (self.times + 1) * self.n]
        self.times += 1
        return found

    # --- results -----------------------------------------------------------------------------

    def summary(self) -> Array:
        """Largest values and sums over all stored times, (n, 16), see ``summarise``."""
        found, nv = np.zeros((self.n, WIDE)), self._widths["v"]
        if self.times:
            some = self._of_v
            summarise(self.storage, self.times, self.n, nv, some, len(some), found)
        return found

    @cached_property
    def _of_v(self):
        """Indices of the independent velocity variables among all."""
        return np.ascontiguousarray(np.arange(self._widths["v"])[self.engine.of_v])

    def array(self, name: str) -> Array:
        """Stored array of a quantity by name, (times, ..., width)."""
        values, wide = getattr(self.storage, name), self._widths.get(name)
        shape, rows = (self.times, *self.batch), self.times * self.n
        if wide is None:
            if len(values) != rows:
                values = values[:rows]
            return values.reshape(shape + values.shape[1:])
        if len(values) != rows * wide:
            values = values[: rows * wide]
        values = values.reshape(*shape, wide)
        if name in ("joints", "push") or not self.engine.model.couplings:
            return values
        of = self.engine.of_q if name == "q" else self.engine.of_v
        return values.take(of, axis=-1)  # contiguous, which an index is not

    def history(self, columns: Callable, summary: Array) -> Callable[[], RecordedHistory]:
        """Function that returns the stored contact forces and residuals, callable later.

        Args:
            columns: as of ``RecordedHistory``, with an engine first.
            summary: what ``summary`` returned.
        """
        x, n = self.storage, self.n
        first = x.first[: (self.times + 1) * n].reshape(self.times + 1, n)
        if n == 1:  # lists go on to be used; other arrays are new ones for every record
            end = int(first[-1, 0])
            key, force = x.key[:end].copy(), x.force[:end].copy()
        else:
            lists = [y.reshape(n, x.most, 3) for y in (x.key, x.force)]
            key, force = (np.concatenate([y[k, : first[-1, k]] for k in range(n)]) for y in lists)
        of_joints, residuals = self.array("joints"), self.array("residuals")
        shape, named = (self.times, *self.batch), partial(columns, self.engine)

        def collect():
            counts, totals = np.diff(first, axis=0).reshape(shape), summary[:, :10]
            return RecordedHistory(counts, key, force, of_joints, residuals, named, totals)

        return collect
