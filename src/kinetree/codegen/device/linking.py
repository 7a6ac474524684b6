"""Units linked to one program: functions called by number, constant arrays, and the entry."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kinetree.codegen.device.interleaved import LANES, POINTER, chosen_head
from kinetree.codegen.device.library import library_text
from kinetree.codegen.device.units import (
    STEP,
    KernelCode,
    Unit,
    Written,
    procedure_units,
    write_unit,
)

WORD = 8 * LANES
"""Bytes from a word of a world to its next one."""


_CASE = re.compile(r"^define (\w+) @(case_[^(]*)(\(.*)", re.MULTILINE)


@dataclass
class Program:
    """All code that steps of one scene reach.

    Args:
        head: the procedure that takes steps: ``(call, steps)``, an integer.
        kernels: what it calls.
    """

    head: Any
    kernels: list[KernelCode]
    units: dict[str, Written] = field(default_factory=dict)

    def __post_init__(self):
        wanted: dict[str, Unit] = {u.name: u for u in procedure_units(self.head)}
        for kernel in self.kernels:
            wanted |= {u.name: u for u in kernel.units}
        self.units = {name: write_unit(unit) for name, unit in wanted.items()}

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Numbers, from 1 on, of the functions that are called indirectly, by name."""
        names = [k.symbol for k in self.kernels]
        names += [name for k in self.kernels for name in k.cases.values()]
        return {name: n for n, name in enumerate(dict.fromkeys(names), start=1)}

    @cached_property
    def constants(self) -> dict[str, list]:
        """Words of all constant arrays of the units, by the arrays' digests."""
        return {d: words for u in self.units.values() for d, words in u.constants.items()}

    @cached_property
    def entry(self) -> str:
        """Name of the function that takes simulation steps."""
        from kinetree.codegen.device.interleaved import symbol

        return symbol(self.head.symbol)

    @cached_property
    def _signatures(self):
        """Signatures of all indirect calls in the units, sorted."""
        return sorted({s for u in self.units.values() for s in u.code.chosen})

    def _alike(self, signature):
        """Names of the functions that an indirect call of this signature may reach."""
        family = signature.split()[0]
        if family == STEP:
            return sorted({k.symbol for k in self.kernels})
        kind, *kinds = signature.split()[1:]
        wanted = (kind, len(kinds) + 1)
        return sorted({name for name, has in self._cases if has == wanted and name in self.numbers})

    @cached_property
    def _cases(self):
        """Names of functions of cases, with return types and numbers of pointer parameters."""
        return [
            (name, (kind, rest.count(POINTER)))
            for unit in self.units.values()
            for kind, name, rest in _CASE.findall(unit.code.text)
        ]

    @cached_property
    def stack(self) -> int:
        """Words of stack memory that the deepest chain of calls takes."""
        from kinetree.codegen.device.interleaved import chosen_name

        frames, calls = {}, {}
        for unit in self.units.values():
            frames |= unit.code.frames
            calls |= unit.code.calls
        for signature in self._signatures:
            calls[chosen_name(signature)] = self._alike(signature)
        known: dict[str, int] = {}

        def depth(name):
            if name not in known:
                known[name] = frames.get(name, 0) + max(map(depth, calls.get(name, ())), default=0)
            return known[name]

        return depth(self.entry)

    def main_text(self, entry: str) -> str:
        """LLVM IR of the main unit: dispatchers, constant arrays, and ``entry`` for worlds."""
        parts = [entry, _WORDS]
        for signature in self._signatures:
            parts.append(self._dispatch(signature))
        first = 0
        for digest, words in sorted(self.constants.items()):
            parts.append(_constant(digest, first))
            first += len(words)
        declared = {x for s in self._signatures for x in self._declarations(s)}
        return "\n\n".join([*parts, *sorted(declared)]) + "\n"

    def _declarations(self, signature):
        """LLVM declarations of all functions that an indirect call of this signature may reach."""
        kind, *kinds = signature.split()[1:]
        given = ", ".join([*kinds, "ptr"]).replace("ptr", POINTER)
        return [f"declare {kind} @{name}({given})" for name in self._alike(signature)]

    def _dispatch(self, signature):
        """LLVM IR of the function that switches on a function's number and calls it."""
        kind, *kinds = signature.split()[1:]
        names = self._alike(signature)
        given = ", ".join(f"{x} %a{k}" for k, x in enumerate([*kinds, "ptr"], start=1))
        given = given.replace("ptr", POINTER)
        cases = " ".join(f"i64 {self.numbers[n]}, label %to_{n}" for n in names)
        lines = [
            f"{chosen_head('define', signature)} {{",
            f"  %number = ptrtoint {POINTER} %a0 to i64",
            f"  switch i64 %number, label %none [ {cases} ]",
        ]
        for name in names:
            result = "" if kind == "void" else "%r_" + name + " = "
            back = "ret void" if kind == "void" else f"ret {kind} %r_{name}"
            lines += [f"to_{name}:", f"  {result}call {kind} @{name}({given})", f"  {back}"]
        end = "ret void" if kind == "void" else f"ret {kind} false"
        return "\n".join([*lines, "none:", f"  {end}", "}"])

    @property
    def texts(self) -> dict[str, str]:
        """LLVM IR of all units but the main one, by name."""
        return {"library": library_text()} | {n: u.code.text for n, u in self.units.items()}


def _constant(digest, first):
    """LLVM IR of the function that returns the address of a constant array in shared words."""
    return f"""define {POINTER} @constants_of_{digest}() {{
  %base = load i64, {POINTER} @shared_memory
  %lane = call i64 @lane_of_world()
  %own = mul i64 %lane, 8
  %here = add i64 %base, %own
  %at = add i64 %here, {first * WORD}
  %p = inttoptr i64 %at to {POINTER}
  ret {POINTER} %p
}}"""


_LOOP = """define void @words_{name}({given}, i64 %bytes, {pointer} %stack) {{
  %count = udiv i64 %bytes, 8
  {before}
  br label %head
head:
  %k = phi i64 [0, %0], [%next, %body]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %body, label %end
body:
  {number}
  {body}
  %next = add i64 %k, 1
  br label %head
end:
  ret void
}}"""

_COPY = """%from = getelementptr [{lanes} x i64], {pointer} %b, i64 %i
  %x = load i64, {pointer} %from
  %to = getelementptr [{lanes} x i64], {pointer} %a, i64 %i
  store i64 %x, {pointer} %to"""


def _words():
    """LLVM IR of functions that copy and fill arrays in interleaved memory, word by word."""
    both = f"{POINTER} %a, {POINTER} %b"
    copy = _COPY.format(lanes=LANES, pointer=POINTER)
    set_ = f"""%to = getelementptr [{LANES} x i64], {POINTER} %a, i64 %i
  store i64 %word, {POINTER} %to"""
    forward = "%i = add i64 %k, 0"
    either = """%left = sub i64 %count, %k
  %last = sub i64 %left, 1
  %i = select i1 %up, i64 %k, i64 %last"""
    above = f"%up = icmp ult {POINTER} %a, %b"
    eight = "%wide = zext i8 %b to i64\n  %word = mul i64 %wide, 72340172838076673"
    same = {"given": both, "pointer": POINTER, "body": copy}
    fill = {"given": f"{POINTER} %a, i8 %b", "pointer": POINTER, "body": set_}
    return "\n\n".join(
        [
            _LOOP.format(name="memcpy", before="", number=forward, **same),
            _LOOP.format(name="memmove", before=above, number=either, **same),
            _LOOP.format(name="memset", before=eight, number=forward, **fill),
        ]
    )


_WORDS = _words()

_GIVEN = f"{POINTER} %base, i64 %call_at, i64 %stack_at, i64 %turn_at"


def _world(entry):
    """LLVM IR of a function that takes the steps of one world, whose count is in its memory."""
    return f"""@shared_memory = addrspace(1) global i64 0

declare i64 @{entry}({POINTER}, i64, {POINTER})

define internal void @take_turn({_GIVEN}) {{
  %turn = getelementptr i8, {POINTER} %base, i64 %turn_at
  %steps = load i64, {POINTER} %turn
  %some = icmp sgt i64 %steps, 0
  br i1 %some, label %go, label %end
go:
  %call = getelementptr i8, {POINTER} %base, i64 %call_at
  %stack = getelementptr i8, {POINTER} %base, i64 %stack_at
  %code = call i64 @{entry}({POINTER} %call, i64 %steps, {POINTER} %stack)
  %result = getelementptr i8, {POINTER} %turn, i64 {WORD}
  store i64 %code, {POINTER} %result
  br label %end
end:
  ret void
}}"""


def device_entry(entry: str) -> str:
    """The kernel of a GPU: a thread for each world, ``abreast`` of them in a warp.

    Worlds in a warp wait for each other, and few warps wait for memory: with fewer worlds in each,
    numbers still lie side by side, so that a warp of four reads whole sectors of 32 bytes.
    """
    return f"""{_world(entry)}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()

define i64 @lane_of_world() {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %l = and i32 %t, {LANES - 1}
  %lane = zext i32 %l to i64
  ret i64 %lane
}}

define ptx_kernel void @worlds(i64 %count, i64 %abreast, {_PLACES}) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %cb = mul i32 %c, %b
  %thread32 = add i32 %cb, %t
  %thread = zext i32 %thread32 to i64
  %warp = lshr i64 %thread, 5
  %place = and i64 %thread, 31
  %works = icmp ult i64 %place, %abreast
  %first_of_warp = mul i64 %warp, %abreast
  %w = add i64 %first_of_warp, %place
  %there = icmp slt i64 %w, %count
  %in = and i1 %works, %there
  br i1 %in, label %go, label %out
go:
{_PLACE}
  call void @take_turn({POINTER} %base, i64 %call_at, i64 %stack_at, i64 %turn_at)
  br label %out
out:
  ret void
}}"""


_PLACES = f"{POINTER} %images, i64 %size, i64 %call_at, i64 %stack_at, i64 %turn_at"
_PLACE = f"""  %group = udiv i64 %w, {LANES}
  %lane = urem i64 %w, {LANES}
  %first = mul i64 %group, %size
  %own = mul i64 %lane, 8
  %at = add i64 %first, %own
  %base = getelementptr i8, {POINTER} %images, i64 %at"""


def processor_entry(entry: str) -> str:
    """Entry point for the CPU: one world after the other, to check the text and the memories."""
    return f"""{_world(entry)}

@lane_now = internal global i64 0

define i64 @lane_of_world() {{
  %lane = load i64, ptr @lane_now
  ret i64 %lane
}}

define void @worlds(i64 %count, i64 %abreast, {_PLACES}) {{
  br label %head
head:
  %w = phi i64 [0, %0], [%next, %go]
  %in = icmp slt i64 %w, %count
  br i1 %in, label %go, label %out
go:
{_PLACE}
  store i64 %lane, ptr @lane_now
  call void @take_turn({POINTER} %base, i64 %call_at, i64 %stack_at, i64 %turn_at)
  %next = add i64 %w, 1
  br label %head
out:
  ret void
}}"""
