"""Procedures whose loops over ``lanes`` the threads of a team share, one item a team.

All threads of a team run the same text, each with its own records, and share the arrays that these
point to; where lanes exchange what they have, they wait for each other. Kernels that a procedure
calls for many samples are called by all lanes, which share the samples.
"""

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kinetree.codegen.build import program_key
from kinetree.codegen.cache import open_store
from kinetree.codegen.device.assembly import link
from kinetree.codegen.device.groups import optimise_together, with_ptx_names
from kinetree.codegen.device.interleaved import symbol
from kinetree.codegen.device.library import library_text
from kinetree.codegen.device.running import Gpu, object_code
from kinetree.codegen.device.units import KernelCode, Unit, procedure_units
from kinetree.codegen.machine_code import load
from kinetree.codegen.procedures.language import is_record

LANES = 64
"""Threads of a team."""
TEAMS = 8
"""Teams of a multiprocessor, which registers must allow."""

_LANES = """@numbers_of_lanes = internal addrspace(3) global [{lanes} x double] undef, align 8
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
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

define ptx_kernel void @team(ptr %memory, i64 %size, i64 %lanes_at, i64 %lane_size{more}) {{
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %item = zext i32 %c to i64
  %lane = call i64 @lane_number()
{body}
  ret void
}}

!nvvm.annotations = !{{!0, !1}}
!0 = !{{ptr @team, !"maxntidx", i32 {lanes}}}
!1 = !{{ptr @team, !"minctasm", i32 {teams}}}
"""

_PROCESSOR = """{declared}

define void @team(i64 %count, ptr %memory, i64 %size, i64 %lanes_at, i64 %lane_size{more}) {{
entry:
  br label %head
head:
  %item = phi i64 [0, %entry], [%next, %head]
  %lane = add i64 0, 0
{body}
  %next = add i64 %item, 1
  %some = icmp slt i64 %next, %count
  br i1 %some, label %head, label %end
end:
  ret void
}}
"""

_PLACE = """  %start = mul i64 %item, %size
  %image = getelementptr i64, ptr %memory, i64 %start
  %lanes = getelementptr i64, ptr %image, i64 %lanes_at
  %turn = mul i64 %lane, %lane_size
  %own = getelementptr i64, ptr %lanes, i64 %turn"""


@dataclass(frozen=True)
class TeamProgram:
    """All code that a team reaches.

    Args:
        head: the procedure that teams run; it takes records and whole numbers.
        call: the procedure ``(loop, first, count)`` by which it calls kernels.
        loop: the record of that.
        kernels: what is called, by numbers from one on.
    """

    head: Any
    call: Any
    loop: Any
    kernels: Sequence[KernelCode]

    def texts(self, lanes: int, entry: str) -> list[str]:
        """LLVM's texts of all units, of which one has the ``entry``."""
        units: dict[str, Unit] = {u.name: u for u in procedure_units(self.head, lanes)}
        del units[self.call.request]
        of_kernels = {u.name: u for k in self.kernels for u in k.units}
        texts = [with_ptx_names(u.write()) for u in units.values()]
        texts += [u.write() for u in of_kernels.values()]
        return [entry, library_text(), self._calls(lanes), *texts]

    def entry(self, form: str, **more: Any) -> str:
        """The text of the function ``team``, in one of the two forms above."""
        given, arguments, lines = "", [], [_PLACE]
        for k, (_, kind) in enumerate(self.head.arguments):
            given += f", i64 %a{k}"
            if is_record(kind):
                lines.append(f"  %p{k} = getelementptr i64, ptr %own, i64 %a{k}")
            arguments.append(f"ptr %p{k}" if is_record(kind) else f"i64 %a{k}")
        kinds = ", ".join(x.split()[0] for x in arguments)
        name = symbol(self.head.symbol)
        lines.append(f"  %code = call i64 @{name}({', '.join(arguments)})")
        declared = f"declare i64 @{name}({kinds})"
        return form.format(declared=declared, more=given, body="\n".join(lines), **more)

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
        own = "" if lanes > 1 else _ONE_LANE
        return own + declared + _CALL.format(**given, **at_words(at), cases=cases, calls=calls)


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
    texts = program.texts(LANES, functions + entry)
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    key = program_key(f"team {digest}", f"{LANES} lanes")
    kept = open_store().get(key)
    if kept is None:
        kept = optimise_together(texts, "team").encode()
        open_store().put(key, kept)
    return kept.decode()


def team_launcher(program: TeamProgram, on: Any) -> Callable[..., None]:
    """A function ``(count, memory, size, lanes_at, lane_size, ...)`` that runs ``count`` teams.

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
    code = load([object_code(x) for x in program.texts(1, program.entry(_PROCESSOR))])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (5 + len(program.head.arguments)))(
        code.address("team")
    )

    def turn(count, memory, *numbers):
        run(count, on.address(memory), *numbers)

    turn.code = code  # pyright: ignore[reportFunctionMemberAccess]  stays alive
    return turn
