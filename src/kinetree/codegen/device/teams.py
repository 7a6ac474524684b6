"""Procedures whose loops over ``lanes`` the threads of a team share, one item a team.

All threads of a team run the same text and share its arrays and records but for those that they
write; where lanes exchange what they have, they wait for each other. Kernels that a procedure
calls for many samples are called by all lanes, which share the samples.
"""

import ctypes
import hashlib
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
from kinetree.codegen.device.team_texts import (
    CALL,
    ENTRY_ON_DEVICE,
    ENTRY_ON_PROCESSOR,
    LANE_FUNCTIONS,
    MAXIMUM,
    ONE_LANE,
    OVER_LANES,
    PARAMETERS,
    RECORDS_OF_ONE,
    SUM,
    TURN,
    fill_by_words,
)
from kinetree.codegen.device.units import KernelCode, Unit, procedure_units
from kinetree.codegen.machine_code import load
from kinetree.codegen.procedures.language import is_record

LANES = 64
"""Threads of a team. Half as many took as long, twice as many longer."""
TEAMS = 8
"""Teams of a multiprocessor, which registers must allow."""


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
        of_team = ("addrspace(3) ", f"addrspacecast {place}") if lanes > 1 else RECORDS_OF_ONE
        spaces = {"space": of_team[0], "to_team": of_team[1]}
        declared = f"declare i64 @{name}({kinds})"
        given, body = self._parameters(), "\n".join(lines)
        return TURN.format(declared=declared, given=given, body=body, **sizes, **spaces)

    def _parameters(self):
        """Parameters of ``team``, with their types."""
        more = "".join(f", i64 %a{k}" for k, _ in enumerate(self.head.arguments))
        return PARAMETERS + more

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
        return declared + CALL.format(**given, **at_words(at), cases=cases, calls=calls)


def at_words(offsets: dict[str, int]) -> dict[str, int]:
    """Places of fields in words."""
    return {f"{name}_at": at // 8 for name, at in offsets.items()}


def device_text(program: TeamProgram) -> str:
    """LLVM's text of the kernel ``team``, optimised, from disk or written."""
    functions = LANE_FUNCTIONS.format(lanes=LANES)
    for name, more in (("sum", SUM), ("max", MAXIMUM)):
        functions += OVER_LANES.format(name=name, more=more, lanes=LANES)
    entry = program.entry(ENTRY_ON_DEVICE, lanes=LANES, teams=TEAMS)
    texts = program.texts(LANES, functions, entry)
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    key = program_key(f"team {digest}", f"{LANES} lanes")
    kept = open_store().get(key)
    if kept is None:
        kept = fill_by_words(optimise_together(texts, "team")).encode()
        open_store().put(key, kept)
    return kept.decode()


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
    texts = program.texts(1, ONE_LANE, program.entry(ENTRY_ON_PROCESSOR))
    code = load([object_code(x) for x in texts])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * (6 + len(program.head.arguments)))(
        code.address("team")
    )

    def turn(count, memory, *numbers):
        given = (on.address(x) if isinstance(x, np.ndarray) else x for x in numbers)
        run(count, on.address(memory), *given)

    turn.code = code  # pyright: ignore[reportFunctionMemberAccess]  stays alive
    return turn
