"""The memory of an engine and its only motion as words, to be copied for many worlds.

Every address in records lies in a known array or record: so the whole can be moved. What worlds
only read is one *shared* list of words; everything else is their own.
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.device.linking import Program
from kinetree.codegen.device.units import TiedCodeError, kernel_code
from kinetree.codegen.procedures.language import ArrayType, Record, is_record
from kinetree.codegen.tied import Code
from kinetree.contact.engine.device.turns import take_turn
from kinetree.integration.refusals import DEVICE_CALLS

NOWHERE, OWN, SHARED = 0, 1, 2
"""Where a word points to: it is a number, or an address in the world's words or in the others."""

_LEAST = 1 << 20  # of addresses


@dataclass
class _Region:
    """Bytes that lie together."""

    start: int
    end: int
    data: Array
    shared: bool
    at: int = 0


class Image:
    """The words of a world, and where things are in them.

    Args:
        call: the record ``advance.Call`` of an engine with one motion.

    Attributes:
        program: the code that its steps reach.
        words: of a world, addresses left out;  shared: those that all worlds read.
        space, target: for each word what it points to, and the word there;  shared_space,
            shared_target: likewise.
        call_at, stack_at, turn_at: places of the record, of the stack, and of the steps to take
            with the code that came of them.
    """

    def __init__(self, call: Record):
        self._regions: list[_Region] = []
        self._records: dict[int, Record] = {}
        self._codes: list[Code] = []
        self._visit(call)
        self._kernels()
        self._lay_out(call)

    # --- what there is ---------------------------------------------------------------------------

    def _visit(self, record):
        """Collect a record and, recursively, all memory that its fields point to."""
        if record.address in self._records:
            return
        self._records[record.address] = record
        self._note(record.address, np.frombuffer(record, dtype=np.uint8), False)
        if isinstance(record, Code):
            self._codes.append(record)
        for name, kind in record.types.items():
            value = getattr(record, name)
            if is_record(kind):
                self._visit(value)
            elif isinstance(kind, ArrayType) and value.size:
                self._note(value.ctypes.data, value, False)

    def _note(self, start, array, shared):
        """Register an array's memory as a region to copy to the device, shared or per world."""
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._regions.append(_Region(start, start + array.nbytes, raw, shared))

    def _kernels(self):
        """Code of all kernels in the image with their tables, each compiled once."""
        found: dict[int, Any] = {}
        self._code_of: dict[int, Any] = {}
        for code in self._codes:
            if code.loop:
                variant, arrays, kernel = code.keeps
                if id(variant) not in found:
                    try:
                        found[id(variant)] = kernel_code(variant, kernel)
                    except TiedCodeError as error:
                        raise DEVICE_CALLS.of("worlds on a GPU", str(error)) from None
                self._code_of[code.address] = found[id(variant)]
                for array in arrays:
                    self._note(array.ctypes.data, array, False)
        kernels = list(found.values())
        self.program = Program(take_turn, kernels)
        self._workspace = np.zeros(max((k.workspace for k in kernels), default=0) + 1)
        self._note(self._workspace.ctypes.data, self._workspace, False)
        self._raw: list[Array] = [x.frame for x in self._codes]
        for kernel in kernels:
            if kernel.tables is not None:
                kept = [kernel.tables.words, *kernel.tables.kept]
                for array in kept:
                    if array.size:
                        self._note(array.ctypes.data, array, True)
                self._raw += [x for x in kept if x.dtype == np.int64]
        self._keep = kernels
        self._turn = np.zeros(2, dtype=np.int64)
        self._note(self._turn.ctypes.data, self._turn, False)

    # --- where it goes ---------------------------------------------------------------------------

    def _lay_out(self, call):
        """Assign every memory region its offset, in shared memory or in each world's memory."""
        self._merge()
        words = sum(map(len, self.program.constants.values())) + 1
        sizes = {False: 1, True: words}
        for region in self._merged:
            region.at = sizes[region.shared]
            sizes[region.shared] += -(-(region.end - region.start) // 8)
        self.stack_at = sizes[False]
        self.count = sizes[False] + self.program.stack
        self.words, self.shared = np.zeros(sizes[False], np.int64), np.zeros(sizes[True], np.int64)
        self.space, self.target = np.zeros((2, sizes[False]), dtype=np.int64)
        self.shared_space, self.shared_target = np.zeros((2, sizes[True]), dtype=np.int64)
        first = 0
        self._constant_at = {}
        for digest, numbers in sorted(self.program.constants.items()):
            self.shared[first : first + len(numbers)] = numbers
            self._constant_at[digest] = first
            first += len(numbers)
        for region in self._merged:
            data = np.zeros(-(-len(region.data) // 8) * 8, dtype=np.uint8)
            data[: len(region.data)] = region.data
            into = self.shared if region.shared else self.words
            into[region.at : region.at + len(data) // 8] = data.view(np.int64)
        self._move_addresses()
        self.call_at = self.place(call.address)[1]
        self.turn_at = self.place(self._turn.ctypes.data)[1]

    def _merge(self):
        """Merge overlapping memory regions; shared with a per-world one becomes per-world."""
        self._merged: list[_Region] = []
        for r in sorted(self._regions, key=lambda r: (r.start, -r.end)):
            last = self._merged[-1] if self._merged else None
            if last is not None and r.start < last.end:
                last.shared = last.shared and r.shared
                if r.end > last.end:
                    last.data = np.concatenate([last.data, r.data[last.end - r.start :]])
                    last.end = r.end
            else:
                self._merged.append(_Region(r.start, r.end, r.data, r.shared))
        self._starts = [r.start for r in self._merged]
        changed = True
        while changed:  # what leads to a world's own words is its own
            changed = False
            for array in self._raw:
                region = self._region(array.ctypes.data)
                leads = region.shared and any(
                    x > _LEAST and (r := self._region(x)) is not None and not r.shared
                    for x in array.reshape(-1).tolist()
                )
                if leads:
                    region.shared, changed = False, True

    def _region(self, address) -> Any:
        """Merged memory region that contains an address, or None."""
        k = bisect_right(self._starts, address) - 1
        return None if k < 0 or address >= self._merged[k].end else self._merged[k]

    def place(self, address: int) -> tuple[int, int]:
        """Memory space and word offset on the device of an address; ``NOWHERE`` if outside."""
        region = self._region(address)
        if region is None:
            return NOWHERE, 0
        return (SHARED if region.shared else OWN), region.at + (address - region.start) // 8

    def _point(self, at, address, number=None):
        """Write a pointer at a device word: the place of ``address``, or a kernel's number."""
        space, word = at
        where, target = self.place(address)
        spaces, targets, words = (
            (self.shared_space, self.shared_target, self.shared)
            if space == SHARED
            else (self.space, self.target, self.words)
        )
        if number is not None:
            where, target, words[word] = NOWHERE, 0, number
        elif where != NOWHERE:
            words[word] = 0
        spaces[word], targets[word] = where, target

    def _move_addresses(self):
        """Replace all CPU addresses in records by places in device memory."""
        for record in self._records.values():
            start, at = self.place(record.address)
            for name, kind in record.types.items():
                if is_record(kind) or isinstance(kind, ArrayType):
                    value = getattr(record, name)
                    address = value.address if is_record(kind) else value.ctypes.data
                    place = start, at + record.offsets[name] // 8
                    if isinstance(kind, ArrayType) and not value.size:
                        self._point(place, record.address)
                    else:
                        self._point(place, address)
        numbers = self.program.numbers
        cases = {a: numbers[n] for k in self._keep for a, n in k.cases.items()}
        for array in self._raw:
            start, at = self.place(array.ctypes.data)
            for k, x in enumerate(array.reshape(-1).tolist()):
                if x in cases:
                    self._point((start, at + k), 0, cases[x])
                elif x > _LEAST and self.place(x)[0]:
                    self._point((start, at + k), x)
        for address, kernel in self._code_of.items():
            self._tie(self._records[address], kernel, numbers[kernel.symbol])

    def _tie(self, code, kernel, number):
        """Set the pointers of a kernel's code record to its workspace and constants."""
        start, at = self.place(code.address)
        offset = {name: at + code.offsets[name] // 8 for name in code.types}
        self._point((start, offset["loop"]), 0, number)
        self._point((start, offset["count"]), self._workspace.ctypes.data)
        if kernel.tables is not None:
            self._point((start, offset["steps"]), kernel.tables.words.ctypes.data)

    def words_of(self, record: Record, name: str) -> slice:
        """Slice of words in which the device image stores a record's field."""
        kind = record.types[name]
        if isinstance(kind, ArrayType):
            value = getattr(record, name)
            _, at = self.place(value.ctypes.data)
            return slice(at, at + value.size)
        _, at = self.place(record.address)
        at += record.offsets[name] // 8
        return slice(at, at + 1)
