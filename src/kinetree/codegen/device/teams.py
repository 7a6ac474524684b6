"""Procedures that teams of threads compute, and kernels that threads call, for many items at once.

All threads of a team run the same text, share loops over ``lanes``, and share arrays and records
but for those that they write; where lanes exchange what they have, they wait for each other. A
procedure takes records, and may take the first and the end of its turns: then several teams have
parts of an item, so that all of the device has work. A kernel is called by one thread for each turn
of each item. Both pass over items that wait for something else.
"""

import ast
import ctypes
import hashlib
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.codegen import nvrtc
from kinetree.codegen.cache import open_store
from kinetree.codegen.device.assembly import link
from kinetree.codegen.device.copies import Copies
from kinetree.codegen.device.groups import optimise_together, with_ptx_names
from kinetree.codegen.device.interleaved import symbol
from kinetree.codegen.device.library import library_text
from kinetree.codegen.device.running import Gpu, object_code
from kinetree.codegen.device.team_texts import (
    ASSUME,
    CALL_ALIGNED,
    CALL_ARRAY,
    CALL_PARAMETERS,
    CALLS,
    CALLS_ON_DEVICE,
    CALLS_ON_PROCESSOR,
    ENTRY_ON_DEVICE,
    ENTRY_ON_PROCESSOR,
    LANES_ON_DEVICE,
    LANES_ON_PROCESSOR,
    MAXIMUM,
    OVER_LANES,
    PARAMETERS,
    SUM,
    TURN,
    fill_by_words,
)
from kinetree.codegen.device.units import KernelCode, procedure_units
from kinetree.codegen.keys import program_key
from kinetree.codegen.machine_code import load
from kinetree.codegen.procedures.language import is_record
from kinetree.codegen.runtime.threads import map_on_cores

THREADS = 64
"""Threads of a group that calls kernels."""
REGISTERS, MOST_REGISTERS = 65_536, 255
"""Of a multiprocessor, and of a thread at most."""
LARGEST_SHARED = 8
"""An attribute of functions, as the driver counts them."""
ALWAYS = -1
"""What items wait for that always take part."""


@dataclass(frozen=True)
class Waits:
    """Condition of items that take part: their word ``at`` is ``wanted``."""

    at: int
    wanted: int


@dataclass(frozen=True)
class TeamProgram:
    """A procedure that teams run.

    Args:
        head: the procedure; it takes records, and integers ``first`` and ``end``.
        roots: those records.
        copies: of the records and arrays.
        lanes: threads of a team.
        teams: of a multiprocessor, which registers must allow.
        constants: numbers of records that the code has, by class and field.
    """

    head: Any
    roots: Sequence[Any]
    copies: Copies
    lanes: int
    teams: int
    constants: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def registers(self) -> int:
        """Registers that a thread may use so that ``teams`` teams fit on a multiprocessor."""
        return min(MOST_REGISTERS, REGISTERS // (self.lanes * self.teams) // 8 * 8)

    @property
    def team_words(self) -> int:
        """Words of shared memory of a team: records, and working arrays that the procedure uses."""
        named = {
            n.attr
            for p in self.head.reached
            for n in ast.walk(p.tree)
            if isinstance(n, ast.Attribute)
        }
        ends = [end for name, end in self.copies.team_ends.items() if name in named]
        return max([len(self.copies.records), *ends])

    def texts(self, *more: str, lanes: int, on_processor: bool = False) -> list[str]:
        """LLVM IR of all units for teams of ``lanes`` threads; ``more`` texts come first."""
        units = procedure_units(self.head, lanes, self.constants)
        texts = [with_ptx_names(u.write()) for u in units]
        texts = [x.replace(", !invariant.load !0", "") for x in texts]  # ``turn`` writes addresses
        over = (("sum", SUM), ("max", MAXIMUM))
        sums = [OVER_LANES.format(name=name, more=text, lanes=lanes) for name, text in over]
        turn = self._turn(1 if on_processor else lanes)
        return [*more, *sums, library_text(), turn, *texts]

    def _turn(self, copying):
        """LLVM IR of a lane's function: it copies the team's records and calls the procedure."""
        c, arguments, lines = self.copies, [], []
        by_kind = {type(x): x for x in self.roots}
        for k, (name, kind) in enumerate(self.head.arguments):
            if is_record(kind):
                at = c.team_word(by_kind[kind])
                lines.append(f"  %p{k} = getelementptr i64, ptr %team, i64 {at}")
                arguments.append(f"ptr %p{k}")
            else:
                arguments.append(f"i64 %{name}_turn")
        name = symbol(self.head.symbol)
        sizes = {"records": len(c.records), "kept": len(c.kept)}
        sizes |= {"lane": c.lane, "pointers": len(c.where), "copying": copying}
        kinds = ", ".join(x.split()[0] for x in arguments)
        passed = ", ".join(arguments)
        text = TURN.format(name=name, kinds=kinds, given=PARAMETERS, passed=passed, **sizes)
        return text.replace("go:\n", "\n".join(["go:", *lines, ""]), 1)

    def device_texts(self) -> list[str]:
        """LLVM IR of all units with the entry point of a GPU kernel."""
        entry = ENTRY_ON_DEVICE.format(
            **_parameter_texts(PARAMETERS), lanes=self.lanes, teams=self.teams
        )
        return self.texts(LANES_ON_DEVICE.format(lanes=self.lanes), entry, lanes=self.lanes)

    def start_on_gpu(self, kernel: Any) -> Callable[..., None]:
        """Launcher of a loaded GPU kernel, which starts one block per item and chunk of indices.

        It takes ``(count, words, records, places, waits, begin, chunk, stop)``.
        """
        size = 8 * self.team_words
        nvrtc.driver().funcSetAttribute(kernel.ptr, LARGEST_SHARED, size)

        def start(count, words, records, places, waits, begin=0, chunk=0, stop=0):
            parts = -(-(stop - begin) // chunk) if stop else 1
            numbers = words.shape[1], records, *places, waits.at, waits.wanted, begin, chunk, stop
            kernel((count * parts,), (self.lanes,), (parts, words, *numbers), shared_mem=size)

        return start

    def start_on_processor(self, on: Any) -> Callable[..., None]:
        """Launcher of the procedure on the CPU; each lane is a thread with its copy of the code."""
        lanes = getattr(on, "lanes", 1)
        entry = ENTRY_ON_PROCESSOR.format(**_parameter_texts(PARAMETERS))
        texts = self.texts(LANES_ON_PROCESSOR, entry, lanes=lanes, on_processor=True)
        objects = [object_code(x) for x in texts]
        codes = [load(objects) for _ in range(lanes)]
        memory = np.zeros((lanes + 1, self.copies.team), np.int64)
        values, barrier, c = np.zeros(lanes), np.zeros(64, np.int64), ctypes.CDLL(None)
        places = {"words_of_team": _address(memory[0]), "values_of_lanes": _address(values)}
        if lanes > 1:
            c.pthread_barrier_init(ctypes.c_void_p(_address(barrier)), None, lanes)
            wait = ctypes.cast(c.pthread_barrier_wait, ctypes.c_void_p).value
            places |= {"wait": wait, "barrier": _address(barrier)}
        for k, code in enumerate(codes):
            own = {"records_of_lane": _address(memory[k + 1]), "lane_of_thread": k}
            for name, x in {**places, **own}.items():
                ctypes.c_int64.from_address(code.global_address(name)).value = x
        runs = [ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 12)(x.address("team")) for x in codes]

        def start(count, words, records, places, waits, begin=0, chunk=0, stop=0):
            parts = -(-(stop - begin) // chunk) if stop else 1
            table = [on.address(x) for x in places]
            numbers = words.shape[1], records, *table, waits.at, waits.wanted, begin, chunk, stop
            given = (count, parts, on.address(words), *numbers)
            threads = [threading.Thread(target=run, args=given) for run in runs[1:]]
            for each in threads:
                each.start()
            runs[0](*given)
            for each in threads:
                each.join()

        start.keeps = codes, memory, values, barrier  # pyright: ignore[reportFunctionMemberAccess]
        return start


@dataclass(frozen=True)
class CallProgram:
    """Kernels that do not wait for each other; a thread calls each for one turn of an item.

    Args:
        kernels: their code.
        aligned: for each array of each kernel, whether it begins at a multiple of 16 bytes in every
            turn.
    """

    kernels: tuple[KernelCode, ...]
    aligned: tuple[bool, ...]
    registers = MOST_REGISTERS

    def texts(self, entry: str, **more: Any) -> list[str]:
        """LLVM IR of all kernels with an entry point ``entry`` that calls them by number."""
        own, at, units = [], 0, {}
        for n, k in enumerate(self.kernels):
            places = range(at, at + 2 * k.arguments, 2)
            frame = [
                CALL_ARRAY.format(k=a, first=p, second=p + 1)
                + CALL_ALIGNED.format(k=a) * self.aligned[p // 2]
                for a, p in enumerate(places)
            ]
            sizes = {"arrays": k.arguments, "room": k.workspace + 1, "frame": "".join(frame)}
            own.append(CALLS.format(n=n, kernel=k.symbol, given=CALL_PARAMETERS, **sizes))
            at += 2 * k.arguments
            units |= {u.name: u for u in k.units}
        count = len(self.kernels)
        calls = [
            f"kernel{n}:\n  call void @call_{n}(i64 %number, {CALL_PARAMETERS})\n  br label "
            for n in range(count)
        ]
        ends = more.pop("ends", ["%end"] * count)
        joined = "\n".join(f"{x}{end}" for x, end in zip(calls, ends, strict=True))
        entry = entry.format(given=CALL_PARAMETERS, calls=joined, **more)
        texts = [u.write().replace(", !invariant.load !0", "") for u in units.values()]
        return ["\n".join([ASSUME, *own, entry]), library_text(), *(_inline(x) for x in texts)]

    def device_texts(self) -> list[str]:
        """LLVM IR of all kernels with the entry point of a GPU kernel."""
        cases = " ".join(f"i32 {n}, label %kernel{n}" for n in range(len(self.kernels)))
        return self.texts(CALLS_ON_DEVICE, cases=cases, threads=THREADS)

    def start_on_gpu(self, kernel: Any) -> Callable[..., None]:
        """Launcher of a loaded GPU kernel: every kernel, for ``count * turns`` samples."""

        def start(count, words, table, waits, begin, turns):
            numbers = words.shape[1], table, waits.at, waits.wanted, begin, turns
            groups = -(-count * turns // THREADS)
            kernel((groups, len(self.kernels)), (THREADS,), (count * turns, words, *numbers))

        return start

    def start_on_processor(self, on: Any) -> Callable[..., None]:
        """Launcher on the CPU, which calls every kernel for one sample after the other."""
        ends = [*(f"%kernel{n}" for n in range(1, len(self.kernels))), "%end"]
        texts = self.texts(CALLS_ON_PROCESSOR, ends=ends)
        code = load([object_code(x) for x in texts])
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 8)(code.address("team"))

        def start(count, words, table, waits, begin, turns):
            numbers = words.shape[1], on.address(table), waits.at, waits.wanted, begin, turns
            run(count * turns, on.address(words), *numbers)

        start.keeps = code  # pyright: ignore[reportFunctionMemberAccess]
        return start


def _inline(text):
    """LLVM IR with functions marked to be inlined, so that values stay in registers."""
    text = text.replace(" noinline {", " alwaysinline {")
    return re.sub(r"(define void @step_\w+\([^)]*\))", r"\1 alwaysinline", text)


def _parameter_texts(parameters):
    """Parameters of an LLVM function with and without their names, as fields of a template."""
    kinds = ", ".join(x.split()[0] for x in parameters.split(", "))
    return {"given": parameters, "kinds": kinds}


def _address(array):
    """Memory address of a NumPy array."""
    return array.ctypes.data


def device_text(program: Any) -> str:
    """Optimised LLVM IR of the GPU kernel ``team`` of a program; kept in the disk cache."""
    texts = program.device_texts()
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    key = program_key(f"team {digest}", "teams")
    kept = open_store().get(key)
    if kept is None:
        kept = fill_by_words(optimise_together(texts, "team")).encode()
        open_store().put(key, kept)
    return kept.decode()


def record(on: Any, launch: Callable[[], None]) -> Callable[[], None]:
    """Capture GPU launches in a CUDA graph; returns a function that replays them all at once."""
    if not isinstance(on, Gpu):
        return launch
    with on.xp.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        launch()
        return stream.end_capture().launch


def launchers(programs: Sequence[Any], on: Any) -> list[Callable[..., None]]:
    """Compile programs on all cores, and return their launchers, on the GPU or CPU.

    Args:
        programs: ``TeamProgram``s and ``CallProgram``s.
        on: ``Gpu``, or ``Processor``.
    """
    if not isinstance(on, Gpu):
        return map_on_cores(lambda p: p.start_on_processor(on), [*programs])

    def machine_code(program):
        with on.xp.cuda.Device(on.device):
            return link({"team": device_text(program)}, on.device, program.registers)

    found = []
    for program, code in zip(programs, map_on_cores(machine_code, [*programs]), strict=True):
        module = on.xp.cuda.function.Module()
        module.load(code)
        found.append(program.start_on_gpu(module.get_function("team")))
    return found
