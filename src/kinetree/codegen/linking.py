"""Code that calls other code: what it has to know of it, and where in the workspace they meet.

A caller keeps the addresses of what it calls in its table ``@callees``, which is filled when the
code is loaded: compiled code holds no address and can be kept on disk. The names of what it calls
are digests of their texts, so that it never meets other code than that for which it was compiled.
"""

import ctypes
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any


@dataclass(frozen=True)
class LinkedEntry:
    """Machine code for other code to call: ``step(frame, workspace, constants, status)``."""

    name: str
    """What identifies the code, in every process."""
    step: int
    """Address of the function."""
    constants: int
    """Address of what it reads."""
    workspace: int
    """Bytes that it needs."""
    sizes: tuple[int, ...]
    """How many numbers each argument has, the inputs before the results."""
    has_frame: bool = False
    """Whether it takes a pointer for every argument and lane, as the loop over samples gives it;
    otherwise all arguments are vectors in one array."""
    is_bound: bool = False
    """Whether it is tied to one robot, or calls what is."""
    code: Any = None
    """What keeps it alive."""

    @classmethod
    def of(cls, code, sizes):
        """Address, workspace and argument sizes of compiled code that other code may call."""
        table = code.global_address("kernel")
        step, _, constants = (ctypes.c_void_p * 3).from_address(table)
        workspace = ctypes.c_int64.from_address(table + 5 * 8).value
        return cls(code.name, step, constants, workspace, sizes, is_bound=code.is_bound, code=code)

    @cached_property
    def _first(self):
        """Offset of each argument in the concatenated arguments of one sample."""
        return tuple(accumulate(self.sizes, initial=0))

    def lane_places(self, n, lanes):
        """Place of scalar ``n`` of the concatenated arguments for every lane, in packed memory."""
        k = max(k for k, first in enumerate(self._first[:-1]) if first <= n and self.sizes[k])
        return [
            self._first[k] * lanes + lane * self.sizes[k] + n - self._first[k]
            for lane in range(lanes)
        ]

    def frame(self, lanes):
        """Offset of every argument for every lane, in packed memory."""
        return [
            first * lanes + lane * size
            for first, size in zip(self._first, self.sizes, strict=False)
            for lane in range(lanes)
        ]


class Linked:
    """Code that a program calls, and where in its workspace they meet.

    All calls use the same places, behind the slots of the caller's schedule: the address of
    ``@callees``, an array for arguments and results, a frame where one is wanted, and the workspace
    of what is called.
    """

    def __init__(self, entries, v, slots):
        self.entries, self._numbers = entries, {k: n for n, k in enumerate(entries)}
        found, bytes_of = entries.values(), v.size * v.lanes
        self.home = _lines(max(slots, 1) * bytes_of)
        self.array = self.home + 64
        self.frame = self.array + _lines(max((sum(e.sizes) for e in found), default=0) * bytes_of)
        framed = [len(e.sizes) for e in found if e.has_frame]
        self.space = self.frame + _lines(8 * v.lanes * max(framed, default=0))
        end = self.space + _lines(max((e.workspace for e in found), default=0))
        self.more = end - self.home if entries else 0

    def number(self, kernel):
        """Number of a called kernel in the table ``@callees``, and its entry."""
        return self._numbers[kernel], self.entries[kernel]

    def text(self):
        """LLVM IR that declares the table ``@callees`` of addresses; empty without calls."""
        if not self.entries:
            return []
        names = " ".join(e.name for e in self.entries.values())
        size = 2 * len(self.entries)
        return [f"; calls {names}\n@callees = global [{size} x ptr] zeroinitializer"]

    def first(self):
        """LLVM lines that store the address of ``@callees`` in the workspace, if any."""
        if not self.entries:
            return []
        return [
            f"  %callees_at = getelementptr i8, ptr %workspace, i64 {self.home}",
            "  store ptr @callees, ptr %callees_at",
        ]


def _lines(size):
    """Bytes rounded up to whole cache lines of 64."""
    return -(-size // 64) * 64


def called_names(text) -> list[str]:
    """Names of programs that LLVM IR calls, in the order of its table ``@callees``."""
    line = next((line for line in text.splitlines() if line.startswith("; calls ")), "")
    return line.split()[2:]


def fill(code, entries) -> None:
    """Write the addresses of called functions into the table ``@callees`` of loaded code."""
    if entries:
        table = (ctypes.c_void_p * (2 * len(entries))).from_address(code.global_address("callees"))
        table[:] = [address for e in entries for address in (e.step, e.constants)]
        code.is_bound = any(e.is_bound for e in entries)
        for entry in entries:
            code.keeps(entry)
