"""Procedures whose loops over ``lanes`` the threads of a team share, one item a team.

All threads of a team run the same text and share its arrays and records but for those that they
write; where lanes exchange what they have, they wait for each other. Kernels that a procedure
calls for many samples are called by all lanes, which share the samples.
"""

import ctypes
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.codegen.build import program_key
from kinetree.codegen.cache import open_store
from kinetree.codegen.device.assembly import link
from kinetree.codegen.device.copies import Copies
from kinetree.codegen.device.groups import optimise_together, with_ptx_names
from kinetree.codegen.device.interleaved import symbol
from kinetree.codegen.device.library import library_text
from kinetree.codegen.device.running import Gpu, object_code
from kinetree.codegen.device.units import KernelCode, Unit, procedure_units
from kinetree.codegen.machine_code import load
from kinetree.codegen.procedures.language import is_record

LANES = 64
"""Threads of a team. Half as many took as long, twice as many longer."""
TEAMS = 8
"""Teams of a multiprocessor, which registers must allow."""

_LANES = """@numbers_of_lanes = internal addrspace(3) global [{lanes} x double] undef, align 8
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()

define i64 @lane_number() alwaysinline nounwind {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = zext i32 %t to i64
  ret i64 %lane
}}

define void @lanes_together() alwaysinline nounwind convergent {{
  call void @llvm.nvvm.barrier0()
  ret void
}}

define internal void @show(double %x) nounwind convergent {{
  call void @llvm.nvvm.barrier0()
  %lane = call i64 @lane_number()
  %own = getelementptr double, ptr addrspace(3) @numbers_of_lanes, i64 %lane
  store double %x, ptr addrspace(3) %own
  call void @llvm.nvvm.barrier0()
  ret void
}}
"""

_OF_ALL = """define double @lane_{name}(double %own) noinline nounwind convergent {{
entry:
  call void @show(double %own)
  %first = load double, ptr addrspace(3) @numbers_of_lanes
  br label %head
head:
  %k = phi i64 [1, %entry], [%next, %head]
  %found = phi double [%first, %entry], [%more, %head]
  %at = getelementptr double, ptr addrspace(3) @numbers_of_lanes, i64 %k
  %x = load double, ptr addrspace(3) %at
  {more}
  %next = add i64 %k, 1
  %some = icmp slt i64 %next, {lanes}
  br i1 %some, label %head, label %end
end:
  ret double %more
}}
"""

_SUM = "%more = fadd double %found, %x"
_MAX = """%less = fcmp olt double %found, %x
  %more = select i1 %less, double %x, double %found"""

_ONE_LANE = """define i64 @lane_number() { ret i64 0 }
define void @lanes_together() { ret void }
"""

_DEVICE = """{declared}
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()

define ptx_kernel void @team({given}) {{
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %item = zext i32 %c to i64
  call void @turn(i64 %item, {passed})
  ret void
}}

!nvvm.annotations = !{{!0, !1}}
!0 = !{{ptr @team, !"maxntidx", i32 {lanes}}}
!1 = !{{ptr @team, !"minctasm", i32 {teams}}}
"""

_PROCESSOR = """{declared}

define void @team(i64 %count, {given}) {{
entry:
  br label %head
head:
  %item = phi i64 [0, %entry], [%next, %head]
  call void @turn(i64 %item, {passed})
  %next = add i64 %item, 1
  %some = icmp slt i64 %next, %count
  br i1 %some, label %head, label %end
end:
  ret void
}}
"""

_TURN = """{declared}
declare i64 @lane_number()
declare void @lanes_together() convergent

@words_of_team = internal {space}global [{records} x i64] undef, align 16

define void @turn(i64 %item, {given}) convergent {{
entry:
  %own = alloca [{lane} x i64], align 16
  %team = {to_team}
  %start = mul i64 %item, %size
  %image = getelementptr i64, ptr %memory, i64 %start
  %first = getelementptr i64, ptr %image, i64 %records
  %second = getelementptr i64, ptr %first, i64 {records}
  %lane = call i64 @lane_number()
  br label %take
take:
  %k = phi i64 [%lane, %entry], [%k_next, %take_one]
  %k_more = icmp slt i64 %k, {records}
  br i1 %k_more, label %take_one, label %own_words
take_one:
  %from = getelementptr i64, ptr %first, i64 %k
  %word = load i64, ptr %from
  %to = getelementptr i64, ptr %team, i64 %k
  store i64 %word, ptr %to
  %k_next = add i64 %k, {lanes}
  br label %take
own_words:
  %o = phi i64 [0, %take], [%o_next, %own_words]
  %o_from = getelementptr i64, ptr %second, i64 %o
  %o_word = load i64, ptr %o_from
  %o_to = getelementptr i64, ptr %own, i64 %o
  store i64 %o_word, ptr %o_to
  %o_next = add i64 %o, 1
  %o_more = icmp slt i64 %o_next, {kept}
  br i1 %o_more, label %own_words, label %words_there
words_there:
  call void @lanes_together()
  br label %point
point:
  %p = phi i64 [%lane, %words_there], [%p_next, %point_one]
  %p_more = icmp slt i64 %p, {pointers}
  br i1 %p_more, label %point_one, label %go
point_one:
  %where_at = getelementptr i64, ptr %where, i64 %p
  %place = load i64, ptr %where_at
  %target_at = getelementptr i64, ptr %target, i64 %p
  %code_of_target = load i64, ptr %target_at
  %whose = and i64 %code_of_target, 3
  %away = ashr i64 %code_of_target, 2
  %of_lane = icmp eq i64 %whose, 2
  %of_team = icmp eq i64 %whose, 1
  %one_of_two = select i1 %of_team, ptr %team, ptr %image
  %base = select i1 %of_lane, ptr %own, ptr %one_of_two
  %address = getelementptr i64, ptr %base, i64 %away
  %holder = getelementptr i64, ptr %team, i64 %place
  store ptr %address, ptr %holder
  %p_next = add i64 %p, {lanes}
  br label %point
go:
  call void @lanes_together()
{body}
  call void @lanes_together()
  %leads = icmp eq i64 %lane, 0
  br i1 %leads, label %keep, label %end
keep:
  %i = phi i64 [0, %go], [%i_next, %keep]
  %mine = getelementptr i64, ptr %own, i64 %i
  %found = load i64, ptr %mine
  %back = getelementptr i64, ptr %second, i64 %i
  store i64 %found, ptr %back
  %i_next = add i64 %i, 1
  %i_more = icmp slt i64 %i_next, {kept}
  br i1 %i_more, label %keep, label %end
end:
  ret void
}}
"""
"""A team copies records and lets their addresses lead to where things are.

What lies on the stack has the same address for all lanes of a GPU, and is another place for each.
"""

_ALONE = "", "getelementptr i64, ptr @words_of_team, i64 0"
_GIVEN = "ptr %memory, i64 %size, i64 %records, ptr %where, ptr %target"


@dataclass(frozen=True)
class TeamProgram:
    """All code that a team reaches.

    Args:
        head: the procedure that teams run; it takes records and integers.
        call: the procedure ``(loop, first, count)`` by which it calls kernels.
        loop: the record of that.
        kernels: what is called, by numbers from one on.
        copies: of the records and arrays.
    """

    head: Any
    call: Any
    loop: Any
    kernels: Sequence[KernelCode]
    copies: Copies

    def texts(self, lanes: int, *more: str) -> list[str]:
        """LLVM's texts of all units, and ``more``."""
        units: dict[str, Unit] = {u.name: u for u in procedure_units(self.head, lanes)}
        del units[self.call.request]
        of_kernels = {u.name: u for k in self.kernels for u in k.units}
        texts = [with_ptx_names(u.write()) for u in units.values()]
        texts += [u.write() for u in of_kernels.values()]
        texts = [x.replace(", !invariant.load !0", "") for x in texts]  # ``turn`` writes addresses
        return [*more, library_text(), self.turn(lanes), self._calls(lanes), *texts]

    def entry(self, form: str, **more: Any) -> str:
        """The text of the function ``team``, in one of the two forms above."""
        given = passed = self._parameters()
        kinds = ", ".join(x.split()[0] for x in given.split(", "))
        declared = f"declare void @turn(i64, {kinds})"
        return form.format(declared=declared, given=given, passed=passed, **more)

    def turn(self, lanes: int) -> str:
        """The text of the function that a lane runs for its item."""
        arguments, lines = [], []
        for k, (_, kind) in enumerate(self.head.arguments):
            if is_record(kind):
                lines.append(f"  %p{k} = getelementptr i64, ptr %team, i64 %a{k}")
            arguments.append(f"ptr %p{k}" if is_record(kind) else f"i64 %a{k}")
        kinds = ", ".join(x.split()[0] for x in arguments)
        name = symbol(self.head.symbol)
        lines.append(f"  %code = call i64 @{name}({', '.join(arguments)})")
        c = self.copies
        sizes = {"lane": c.lane, "kept": len(c.kept), "lanes": lanes}
        sizes |= {"records": len(c.records), "pointers": len(c.where)}
        place = "ptr addrspace(3) @words_of_team to ptr"
        of_team = ("addrspace(3) ", f"addrspacecast {place}") if lanes > 1 else _ALONE
        spaces = {"space": of_team[0], "to_team": of_team[1]}
        declared = f"declare i64 @{name}({kinds})"
        given, body = self._parameters(), "\n".join(lines)
        return _TURN.format(declared=declared, given=given, body=body, **sizes, **spaces)

    def _parameters(self):
        """Parameters of ``team``, with their types."""
        more = "".join(f", i64 %a{k}" for k, _ in enumerate(self.head.arguments))
        return _GIVEN + more

    def _calls(self, lanes):
        """The procedure ``call``, whose samples lanes share, and which knows kernels by numbers."""
        at = self.loop.offsets
        widest = max((k.arguments for k in self.kernels), default=1)
        room = max((k.workspace for k in self.kernels), default=0) + 1
        names = {n: k.symbol for n, k in enumerate(self.kernels, start=1)}
        cases = " ".join(f"i64 {n}, label %kernel{n}" for n in names)
        calls = "".join(
            f"kernel{n}:\n  call void @{name}(ptr %frame, ptr %room, ptr null, ptr %status)\n"
            "  br label %again\n"
            for n, name in names.items()
        )
        declared = "".join(f"declare void @{name}(ptr, ptr, ptr, ptr)\n" for name in names.values())
        given = {"name": symbol(self.call.symbol), "widest": widest, "room": room, "lanes": lanes}
        return declared + _CALL.format(**given, **at_words(at), cases=cases, calls=calls)


def at_words(offsets: dict[str, int]) -> dict[str, int]:
    """Places of fields in words."""
    return {f"{name}_at": at // 8 for name, at in offsets.items()}


_CALL = """declare i64 @lane_number()
declare void @lanes_together() convergent

define void @{name}(ptr %loop, i64 %first, i64 %count) noinline nounwind convergent {{
entry:
  %frame = alloca [{widest} x ptr]
  %room = alloca [{room} x double], align 16
  %code_at = getelementptr i64, ptr %loop, i64 {code_at}
  %code = load i64, ptr %code_at
  %arrays_at = getelementptr i64, ptr %loop, i64 {arrays_at}
  %arrays = load i64, ptr %arrays_at
  %frames_at = getelementptr i64, ptr %loop, i64 {frame_at}
  %frames = load ptr, ptr %frames_at
  %steps_at = getelementptr i64, ptr %loop, i64 {steps_at}
  %steps = load ptr, ptr %steps_at
  %status_at = getelementptr i64, ptr %loop, i64 {status_at}
  %status = load ptr, ptr %status_at
  %lane = call i64 @lane_number()
  %begin = add i64 %first, %lane
  %end = add i64 %first, %count
  call void @lanes_together()
  br label %head
head:
  %i = phi i64 [%begin, %entry], [%i_next, %again]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %fill, label %done
fill:
  %a = phi i64 [0, %head], [%a_next, %fill]
  %from = getelementptr ptr, ptr %frames, i64 %a
  %base = load ptr, ptr %from
  %step_at = getelementptr i64, ptr %steps, i64 %a
  %step = load i64, ptr %step_at
  %away = mul i64 %step, %i
  %sample = getelementptr i8, ptr %base, i64 %away
  %to = getelementptr ptr, ptr %frame, i64 %a
  store ptr %sample, ptr %to
  %a_next = add i64 %a, 1
  %a_more = icmp slt i64 %a_next, %arrays
  br i1 %a_more, label %fill, label %go
go:
  switch i64 %code, label %again [ {cases} ]
{calls}again:
  %i_next = add i64 %i, {lanes}
  br label %head
done:
  call void @lanes_together()
  ret void
}}
"""


def device_text(program: TeamProgram) -> str:
    """LLVM's text of the kernel ``team``, optimised, from disk or written."""
    functions = _LANES.format(lanes=LANES)
    for name, more in (("sum", _SUM), ("max", _MAX)):
        functions += _OF_ALL.format(name=name, more=more, lanes=LANES)
    entry = program.entry(_DEVICE, lanes=LANES, teams=TEAMS)
    texts = program.texts(LANES, functions, entry)
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    key = program_key(f"team {digest}", f"{LANES} lanes")
    kept = open_store().get(key)
    if kept is None:
        kept = _fill_by_words(optimise_together(texts, "team")).encode()
        open_store().put(key, kept)
    return kept.decode()


_MEMSET = re.compile(
    r"call void @llvm\.memset\.p0\.i64\(ptr [^%]*(%[\w.]+), i8 0, i64 ([%\w.]+), i1 false\)"
)
_ZEROS = """
define internal void @fill_with_zeros(ptr %x, i64 %bytes) noinline nounwind {
entry:
  %count = lshr i64 %bytes, 3
  %some = icmp ne i64 %count, 0
  br i1 %some, label %head, label %end
head:
  %k = phi i64 [0, %entry], [%next, %head]
  %at = getelementptr i64, ptr %x, i64 %k
  store i64 0, ptr %at
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %head, label %end
end:
  ret void
}
"""


def _fill_by_words(text):
    """A text that fills with zeros word by word: the target does it byte by byte."""
    return _MEMSET.sub(r"call void @fill_with_zeros(ptr \1, i64 \2)", text) + _ZEROS


def team_launcher(program: TeamProgram, on: Any) -> Callable[..., None]:
    """A function ``(count, memory, size, records, where, target, ...)`` that runs ``count`` teams.

    Args:
        program: what teams run.
        on: ``Gpu``, or ``Processor``, whose teams have one lane.
    """
    if isinstance(on, Gpu):
        module = on.xp.cuda.function.Module()
        module.load(link({"team": device_text(program)}, on.device))
        kernel = module.get_function("team")

        def start(count, memory, *numbers):
            kernel((count,), (LANES,), (memory, *numbers))

        return start
    texts = program.texts(1, _ONE_LANE, program.entry(_PROCESSOR))
    code = load([object_code(x) for x in texts])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (6 + len(program.head.arguments)))(
        code.address("team")
    )

    def turn(count, memory, *numbers):
        given = (on.address(x) if isinstance(x, np.ndarray) else x for x in numbers)
        run(count, on.address(memory), *given)

    turn.code = code  # pyright: ignore[reportFunctionMemberAccess]  stays alive
    return turn
