# pyright: reportInvalidTypeArguments=false, reportIndexIssue=false
"""Procedures that groups of threads of a GPU compute, one item a group.

A *phase* is a procedure ``(record, item, start, step)`` that does the parts ``start``,
``start + step``, ... of an item. All threads of a group take a phase, each with its own start, and
wait for each other before the next one. Records and arrays lie in the memory of the device as on
the CPU. What several threads change, they change by ``raise_to``, ``lower_to`` and ``next_number``,
each of which is one instruction there.
"""

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kinetree.codegen.cache import open_store
from kinetree.codegen.device.assembly import TRIPLE, link
from kinetree.codegen.device.interleaved import symbol
from kinetree.codegen.device.running import Gpu, object_code
from kinetree.codegen.device.units import Unit, procedure_units
from kinetree.codegen.keys import program_key
from kinetree.codegen.machine_code import compiling, load
from kinetree.codegen.procedures import procedure
from kinetree.codegen.procedures.language import ArrayType, is_record

THREADS = 128
"""Threads of a group."""


@procedure(inline=False)
def raise_to(x: "float[:]", k: int, value: float) -> None:
    """Raise ``x[k]`` to ``value`` if that is larger, atomically on a GPU; both nonnegative."""
    x[k] = max(x[k], value)


@procedure(inline=False)
def lower_to(x: "int[:]", k: int, value: int) -> None:
    """Lower ``x[k]`` to ``value`` if that is smaller, atomically on a GPU; both nonnegative."""
    x[k] = min(x[k], value)


@procedure(inline=False)
def next_number(x: "int[:]", k: int) -> int:
    """Increment the counter ``x[k]``, on a GPU atomically, and return its value before."""
    n = x[k]
    x[k] = n + 1
    return n


_AT_ONCE = {
    raise_to: """void @{name}(ptr %x, i64 %k, double %value) alwaysinline nounwind {{
  %at = getelementptr double, ptr %x, i64 %k
  %bits = bitcast double %value to i64
  %old = atomicrmw umax ptr %at, i64 %bits {scope}monotonic
  ret void
}}""",
    lower_to: """void @{name}(ptr %x, i64 %k, i64 %value) alwaysinline nounwind {{
  %at = getelementptr i64, ptr %x, i64 %k
  %old = atomicrmw min ptr %at, i64 %value {scope}monotonic
  ret void
}}""",
    next_number: """i64 @{name}(ptr %x, i64 %k) alwaysinline nounwind {{
  %at = getelementptr i64, ptr %x, i64 %k
  %old = atomicrmw add ptr %at, i64 1 {scope}monotonic
  ret i64 %old
}}""",
}
"""Procedures as one instruction: bits of numbers that are not negative have their order."""

_GIVEN = "(ptr %record, i64 %item, i64 %start, i64 %step)"

_DEVICE = """declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier0()
{declared}

define ptx_kernel void @groups(ptr %record) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %start = zext i32 %t to i64
  %item = zext i32 %c to i64
  %step = zext i32 %b to i64
{calls}
  ret void
}}
"""

_PROCESSOR = """{declared}

define internal void @turn(ptr %record, i64 %item, i64 %step, ptr %phase) {{
  br label %head
head:
  %start = phi i64 [0, %0], [%next, %head]
  call void %phase{given}
  %next = add i64 %start, 1
  %more = icmp slt i64 %next, %step
  br i1 %more, label %head, label %out
out:
  ret void
}}

define void @groups(i64 %count, i64 %step, ptr %record) {{
  br label %head
head:
  %item = phi i64 [0, %0], [%next, %head]
{calls}
  %next = add i64 %item, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %head, label %out
out:
  ret void
}}
"""


def launcher(phases: Sequence[Any], on: Any) -> Callable[[int, Any], None]:
    """Compile procedures to one launcher ``(count, words)`` that runs them in order, for all items.

    Args:
        phases: procedures ``(record, item, start, step)``.
        on: ``Gpu``, or ``Processor``: then the threads of a group take turns.
    """
    return _of_gpu(phases, on) if isinstance(on, Gpu) else _of_processor(phases, on)


def _of_gpu(phases, gpu):
    """Launcher of the compiled phases on a GPU, a block of threads for each item."""
    module = gpu.xp.cuda.function.Module()
    module.load(link({"groups": device_text(phases)}, gpu.device))
    kernel = module.get_function("groups")

    def start(count, words):
        if count:
            kernel((count,), (THREADS,), (words,))

    return start


def _of_processor(phases, on):
    """Launcher of the compiled phases on the CPU, where threads of a block run one by one."""
    names = _symbols(phases)
    turns = "call void @turn(ptr %record, i64 %item, i64 %step, ptr @{})"
    calls = "\n".join("  " + turns.format(name) for name in names)
    entry = _PROCESSOR.format(declared=_declarations(names), given=_GIVEN, calls=calls)
    code = load([object_code(text) for text in [entry, *_texts(phases, "")]])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(code.address("groups"))

    def start(count, words):
        if count:
            run(count, THREADS, on.address(words))

    start.code = code  # pyright: ignore[reportFunctionMemberAccess]  stays alive
    return start


def device_text(phases: Sequence[Any]) -> str:
    """Optimised LLVM IR of a GPU kernel with all phases and barriers between them; cached."""
    names = _symbols(phases)
    wait = "  call void @llvm.nvvm.barrier0()\n"
    calls = wait.join(f"  call void @{name}{_GIVEN}\n" for name in names)
    texts = [_DEVICE.format(declared=_declarations(names), calls=calls)]
    texts += _texts(phases, 'syncscope("device") ')
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    key = program_key(f"groups {digest}", "threads side by side")
    kept = open_store().get(key)
    if kept is None:
        kept = optimise_together(texts, "groups").encode()
        open_store().put(key, kept)
    return kept.decode()


def optimise_together(texts: Sequence[str], kernel: str) -> str:
    """Link LLVM modules into one and optimise it; all functions but the kernel become internal."""
    with compiling() as llvm:
        target = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu="sm_70", opt=3)
        context, whole = llvm.create_context(), None
        for text in texts:
            module = llvm.parse_assembly(text, context)
            module.triple, module.data_layout = TRIPLE, str(target.target_data)
            if whole is None:
                whole = module
            else:
                whole.link_in(module)
        assert whole is not None
        for function in whole.functions:
            if not function.is_declaration and function.name != kernel:
                function.linkage = "internal"
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = False
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(whole, builder)
        return str(whole)


def _symbols(phases):
    """Names in PTX of the functions of some phases."""
    return [symbol(p.symbol) for p in phases]


def _declarations(names):
    """LLVM declarations of phase functions."""
    return "\n".join(f"declare void @{name}(ptr, i64, i64, i64)" for name in names)


def _texts(phases, scope):
    """LLVM IR of all functions that phases reach, with atomic operations of a memory scope."""
    units: dict[str, Unit] = {u.name: u for p in phases for u in procedure_units(p)}
    once = {p.request: p for p in _AT_ONCE}
    texts = [with_ptx_names(unit.write()) for name, unit in units.items() if name not in once]
    for name, p in once.items():
        if name in units:
            text = _AT_ONCE[p].format(name=symbol(p.symbol), scope=scope)
            texts.append(f"define {text}\n")
    return texts


def with_ptx_names(text: str) -> str:
    """LLVM IR with quoted function names replaced by names that PTX allows."""
    parts = text.split('@"')
    named = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition('"')
        named.append(f"@{symbol(name)}{rest}")
    return "".join(named)


def record_words(record: Any, on: Any, arrays: Mapping[str, Any] | None = None) -> tuple[Any, list]:
    """Words of a record with pointers to its arrays on a device, and these arrays, to be kept.

    Args:
        record: of procedures.
        on: ``Gpu`` or ``Processor``.
        arrays: on the device, by names of fields, instead of those of the record.
    """
    words = np.frombuffer(bytes(record), dtype=np.int64).copy()
    kept: list[Any] = []
    for name, kind in record.types.items():
        given = (arrays or {}).get(name)
        if isinstance(kind, ArrayType):
            array = on.xp.asarray(getattr(record, name)) if given is None else given
        elif is_record(kind):
            array, more = record_words(getattr(record, name), on) if given is None else given
            kept += more
        else:
            continue
        words[record.offsets[name] // 8] = on.address(array)
        kept.append(array)
    return on.xp.asarray(words), kept
