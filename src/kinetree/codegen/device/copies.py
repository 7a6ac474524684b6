"""Records and arrays of one item as words, of which a device has many copies.

Every address in a record, or in a frame of a kernel, lies in a known array or record: so the whole
can be moved. An item has *own* words, which its lanes share, and words of each *lane*: all records,
and the arrays that are working memory of one lane.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.procedures.language import ArrayType, Record, is_record


@dataclass
class _Region:
    """Bytes that lie together."""

    start: int
    end: int
    data: Array
    of_lane: bool
    at: int = 0


class Copies:
    """Words of an item, and where things are in them.

    Args:
        records: that a procedure takes.
        scratch: arrays, by record and field, that every lane has for itself.
        loops: records of kernels, whose arrays are in ``keeps``.
        numbers: those of kernels, by the records of their loops.

    Attributes:
        own: words that all lanes share;  lane: words of each lane.
    """

    def __init__(
        self,
        records: Sequence[Record],
        scratch: Collection[tuple[type, str]],
        loops: Sequence[Any],
        numbers: Sequence[int],
    ):
        self._regions: list[_Region] = []
        self._records: dict[int, Record] = {}
        self._scratch = frozenset(scratch)
        for record in records:
            self._visit(record)
        for loop in loops:
            for array in loop.keeps:
                if array.size:
                    self._note(array, False)
        self._merge()
        self._lay_out()
        self._move_addresses(loops, numbers)

    # --- what there is ---------------------------------------------------------------------------

    def _visit(self, record):
        if record.address in self._records:
            return
        self._records[record.address] = record
        raw = np.frombuffer(record, dtype=np.uint8)
        self._regions.append(_Region(record.address, record.address + len(raw), raw, True))
        for name, kind in record.types.items():
            value = getattr(record, name)
            if is_record(kind):
                self._visit(value)
            elif isinstance(kind, ArrayType) and value.size:
                self._note(value, (type(record), name) in self._scratch)

    def _note(self, array, of_lane):
        whole = array
        while isinstance(whole.base, np.ndarray) and not whole.flags.c_contiguous:
            whole = whole.base  # rows of which some numbers are left out
        raw = np.ascontiguousarray(whole).reshape(-1).view(np.uint8)
        start = whole.ctypes.data
        self._regions.append(_Region(start, start + whole.nbytes, raw, of_lane))

    def _merge(self):
        """Arrays that overlap lie together; what some call working memory is that for all."""
        self._merged: list[_Region] = []
        for r in sorted(self._regions, key=lambda r: (r.start, -r.end)):
            last = self._merged[-1] if self._merged else None
            if last is not None and r.start < last.end:
                last.of_lane = last.of_lane or r.of_lane
                if r.end > last.end:
                    last.data = np.concatenate([last.data, r.data[last.end - r.start :]])
                    last.end = r.end
            else:
                self._merged.append(_Region(r.start, r.end, r.data, r.of_lane))
        self._starts = [r.start for r in self._merged]

    # --- where it goes ---------------------------------------------------------------------------

    def _lay_out(self):
        sizes = {False: 0, True: 0}
        for region in self._merged:
            region.at = sizes[region.of_lane]
            sizes[region.of_lane] += -(-(region.end - region.start) // 16) * 2
        self.own, self.lane = (np.zeros(sizes[x], dtype=np.int64) for x in (False, True))
        for region in self._merged:
            words = np.zeros(-(-len(region.data) // 8) * 8, dtype=np.uint8)
            words[: len(region.data)] = region.data
            into = self.lane if region.of_lane else self.own
            into[region.at : region.at + len(words) // 8] = words.view(np.int64)
        self._pointers: dict[bool, dict[int, tuple[bool, int]]] = {False: {}, True: {}}

    def place(self, address: int) -> tuple[bool, int]:
        """Whether an address is of a lane, and its word there."""
        k = bisect_right(self._starts, address) - 1
        region = self._merged[k]
        assert k >= 0 and address < region.end, "an address outside of all arrays"
        return region.of_lane, region.at + (address - region.start) // 8

    def _move_addresses(self, loops, numbers):
        for record in self._records.values():
            for name, kind in record.types.items():
                if is_record(kind) or isinstance(kind, ArrayType):
                    value = getattr(record, name)
                    nothing = isinstance(kind, ArrayType) and not value.size
                    found = record if nothing else value
                    address = found.ctypes.data if isinstance(found, np.ndarray) else found.address
                    self._point(record.address + record.offsets[name], address)
        for loop, number in zip(loops, numbers, strict=True):
            start = loop.frame.ctypes.data
            for k, array in enumerate(loop.keeps):
                self._point(start + 8 * k, array.ctypes.data if array.size else start)
            _, at = self.place(loop.address)
            self.lane[at + loop.offsets["code"] // 8] = number

    def _point(self, holder, address):
        of_lane, word = self.place(holder)
        target = self.place(address)
        assert of_lane or not target[0], "what all lanes share leads to what each has for itself"
        self._pointers[of_lane][word] = target

    # --- on a device -----------------------------------------------------------------------------

    def words_on(self, xp: Any, count: int, lanes: int, address: Any) -> Any:
        """Words of ``count`` items with ``lanes`` each on a device, (count, words).

        ``address`` is a function from an array there to its address.
        """
        first, size = len(self.own), len(self.lane)
        row = np.concatenate([self.own, np.tile(self.lane, lanes)])
        places, targets = [], []
        for word, (_, target) in self._pointers[False].items():
            places.append(word)
            targets.append(target)
        for word, (of_lane, target) in self._pointers[True].items():
            for k in range(lanes):
                own = first + k * size
                places.append(own + word)
                targets.append(own + target if of_lane else target)
        row[places] = 8 * np.array(targets, dtype=np.int64)
        words = xp.empty((count, len(row)), dtype="int64")
        words[:] = xp.asarray(row)
        starts = address(words) + 8 * len(row) * xp.arange(count, dtype="int64")
        words[:, xp.asarray(np.array(places))] += starts[:, None]
        return words

    def slice_of(self, record: Record, name: str) -> slice:
        """Own words of an array."""
        array = getattr(record, name)
        if not array.size:
            return slice(0, 0)
        of_lane, at = self.place(array.ctypes.data)
        assert not of_lane
        return slice(at, at + array.size)

    def word_of(self, record: Record, name: str = "") -> int:
        """Word of a record, or of a number of it, among those of a lane."""
        return self.place(record.address)[1] + (record.offsets[name] // 8 if name else 0)
