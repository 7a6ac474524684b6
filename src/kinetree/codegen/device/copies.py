"""Records and arrays of one item as words, of which a device has many copies.

Every address in a record lies in a known array or record: so the whole can be moved. Arrays are
words of an *item*. A *team* copies the records, which it only reads, to where it reads fast, next
to its working memory. What each *lane* has for itself lies on its stack: a few records that it
writes, which are the same for all lanes and kept from call to call, and more working memory.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.procedures.language import ArrayType, Record, is_record

ITEM, TEAM, LANE = 0, 1, 2
"""Whose words are meant."""


@dataclass
class _Region:
    """Bytes that lie together."""

    start: int
    end: int
    data: Array
    whose: int
    is_kept: bool
    """Whether its words are copied, not only reserved."""
    order: int = 0
    """When it was found: the places of words do not depend on addresses."""
    at: int = 0


class Copies:
    """Words of an item, and where things are in them.

    Args:
        records: that a procedure takes.
        scratch: whose working memory arrays are, by record and field: of a team, or of a lane.
        written: kinds of records that every lane has for itself, without addresses.
        absent: kinds of records that procedures do not read.
        arrays: more arrays of items.

    Attributes:
        arrays: words of an item;  records: words of a team that it copies;  kept: words of a lane
            that last.
        team, lane: how many words a team and a lane have.
        of_team: arrays that are working memory of teams, by record and field.
        team_ends: how many words a team has up to the end of such an array, by its field.
        where, target: places of addresses among the words of a team; four times the word that they
            lead to, and whose that is.
    """

    def __init__(
        self,
        records: Sequence[Record],
        scratch: Mapping[tuple[type, str], int],
        written: Collection[type],
        absent: Collection[type],
        arrays: Sequence[np.ndarray],
    ):
        self._regions: list[_Region] = []
        self._records: dict[int, Record] = {}
        self._scratch, self._written = scratch, frozenset(written)
        self._absent = frozenset(absent)
        self._arrays: dict[str, np.ndarray] = {}
        self.of_team = frozenset(x for x, whose in scratch.items() if whose == TEAM)
        for record in records:
            self._visit(record)
        for array in arrays:
            if array.size:
                self._note(array, ITEM)
        self._merge()
        self._lay_out()
        self.team_ends = self._find_team_ends()
        self._move_addresses()

    # --- what there is ---------------------------------------------------------------------------

    def _visit(self, record):
        """Register the memory of a record, and of all records and arrays that it refers to."""
        if record.address in self._records:
            return
        self._records[record.address] = record
        raw = np.frombuffer(record, dtype=np.uint8)
        whose = LANE if type(record) in self._written else TEAM
        self._add(_Region(record.address, record.address + len(raw), raw, whose, True))
        for name, kind in record.types.items():
            value = getattr(record, name)
            if is_record(kind):
                if kind not in self._absent:
                    self._visit(value)
            elif isinstance(kind, ArrayType) and value.size:
                whose = self._scratch.get((type(record), name), ITEM)
                self._note(value, whose)
                self._arrays[name] = value

    def _note(self, array, whose):
        """Register the memory of an array, with who has a copy: each item, team or lane."""
        whole = array
        while isinstance(whole.base, np.ndarray) and not whole.flags.c_contiguous:
            whole = whole.base  # rows of which some numbers are left out
        raw = np.ascontiguousarray(whole).reshape(-1).view(np.uint8)
        start = whole.ctypes.data
        self._add(_Region(start, start + whole.nbytes, raw, whose, whose == ITEM))

    def _add(self, region):
        """Append a region of memory to the list of those to be copied."""
        region.order = len(self._regions)
        self._regions.append(region)

    def _merge(self):
        """Merge overlapping regions of memory; a team's or lane's claim wins over an item's."""
        self._merged: list[_Region] = []
        for r in sorted(self._regions, key=lambda r: (r.start, -r.end)):
            last = self._merged[-1] if self._merged else None
            if last is not None and r.start < last.end:
                last.whose, last.is_kept = max(last.whose, r.whose), last.is_kept and r.is_kept
                last.order = min(last.order, r.order)
                if r.end > last.end:
                    last.data = np.concatenate([last.data, r.data[last.end - r.start :]])
                    last.end = r.end
            else:
                self._merged.append(_Region(r.start, r.end, r.data, r.whose, r.is_kept, r.order))
        self._starts = [r.start for r in self._merged]

    # --- where it goes ---------------------------------------------------------------------------

    def _lay_out(self):
        """Assign each region its offset in the words of an item, team or lane; initial values."""
        sizes, kept = [0, 0, 0], [0, 0, 0]
        for region in sorted(self._merged, key=lambda r: (not r.is_kept, r.order)):
            region.at = sizes[region.whose]
            sizes[region.whose] += -(-(region.end - region.start) // 16) * 2
            if region.is_kept:
                kept[region.whose] = sizes[region.whose]
        words = [np.zeros(count, np.int64) for count in kept]
        self.arrays, self.records, self.kept = words
        self.team, self.lane = sizes[TEAM], sizes[LANE]
        for region in self._merged:
            if region.is_kept:
                data = np.zeros(-(-len(region.data) // 8) * 8, dtype=np.uint8)
                data[: len(region.data)] = region.data
                words[region.whose][region.at : region.at + len(data) // 8] = data.view(np.int64)
        self._of_team: dict[int, tuple[int, int]] = {}

    def _find_team_ends(self):
        """End offsets [words] of arrays in a team's memory, by field name."""
        found = {}
        for name, array in self._arrays.items():
            whose, at = self.place(array.ctypes.data)
            if whose == TEAM:
                found[name] = at + array.size
        return found

    def place(self, address: int) -> tuple[int, int]:
        """Owner (ITEM, TEAM or LANE) and word offset of a memory address."""
        k = bisect_right(self._starts, address) - 1
        region = self._merged[k]
        assert address < region.end, "an address outside of all arrays"
        return region.whose, region.at + (address - region.start) // 8

    def _move_addresses(self):
        """Collect all addresses in the records, and which copied words they should point to."""
        for record in self._records.values():
            for name, kind in record.types.items():
                if kind not in self._absent and (is_record(kind) or isinstance(kind, ArrayType)):
                    value = getattr(record, name)
                    nothing = isinstance(kind, ArrayType) and not value.size
                    found = record if nothing else value
                    address = found.ctypes.data if isinstance(found, np.ndarray) else found.address
                    self._point(record.address + record.offsets[name], address)
        self.where = np.array([*self._of_team], dtype=np.int64)
        self.target = np.array([4 * at + whose for whose, at in self._of_team.values()], np.int64)

    def _point(self, holder, address):
        """Note that the word at address ``holder`` should hold the new place of ``address``."""
        (whose, word), found = self.place(holder), self.place(address)
        assert whose == TEAM, "records that lanes write have no addresses"
        self._of_team[word] = found

    # --- on a device -----------------------------------------------------------------------------

    def words_on(self, xp: Any, count: int) -> Any:
        """Array (count, words) on a device with the initial words of every item."""
        row = np.concatenate([self.arrays, self.records, self.kept])
        words = xp.empty((count, len(row)), dtype="int64")
        words[:] = xp.asarray(row)
        return words

    def word_of_array(self, array: np.ndarray) -> int:
        """Offset of an array's first word in the words of an item."""
        whose, at = self.place(array.ctypes.data) if array.size else (ITEM, 0)
        assert whose == ITEM
        return at

    def slice_of(self, record: Record, name: str) -> slice:
        """Range of words that an array field of a record has in the words of an item."""
        array = getattr(record, name)
        if not array.size:
            return slice(0, 0)
        whose, at = self.place(array.ctypes.data)
        assert whose == ITEM
        return slice(at, at + array.size)

    def word_of(self, record: Record, name: str) -> int:
        """Offset of a record's scalar field in an item's words, where records follow arrays."""
        whose, at = self.place(record.address)
        first = len(self.arrays) + (len(self.records) if whose == LANE else 0)
        return first + at + record.offsets[name] // 8

    def team_word(self, record: Record) -> int:
        """Offset of a record in the words of a team."""
        return self.place(record.address)[1]
