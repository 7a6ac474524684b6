"""IR text to machine code, with LLVM for the CPU of this machine.

Compiling gives object code, which is bytes and can be kept; loading puts it into executable memory
and resolves what it refers to. llvmlite is imported when first needed.
"""

import ctypes
import os
import re
import struct
from contextlib import contextmanager
from functools import cache
from itertools import accumulate, pairwise
from threading import Condition

from kinetree.codegen.engines import MachineCode
from kinetree.codegen.runtime.interrupts import Interrupt
from kinetree.codegen.runtime.threads import map_on_cores
from kinetree.errors import UnknownNameError


@cache
def _binding():
    """The package llvmlite.binding, with LLVM initialised for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _features():
    """Features of this processor (AVX2, FMA, ...) as text for LLVM."""
    return _binding().get_host_cpu_features()


def optimization(wanted=1) -> int:
    """Optimisation level of LLVM, 0 or 1: ``wanted``, unless KINETREE_OPTIMIZATION sets another.

    Code of level 0 compiles in a quarter of the time, runs slower and computes the same bits:
    operations and their order are those of the text at both levels. The environment variable
    KINETREE_OPTIMIZATION, 0 or 1, is the level of everything, of procedures only at first: these
    are optimised in the background.
    """
    text = os.environ.get("KINETREE_OPTIMIZATION", "").strip()
    if text not in ("", "0", "1"):
        raise UnknownNameError(f"KINETREE_OPTIMIZATION must be 0 or 1, got {text!r}")
    return int(text or wanted)


def host(level=None) -> str:
    """Text that identifies LLVM, processor and level: machine code of others is not used."""
    level = optimization() if level is None else level
    return _host() if level else f"{_host()}, level 0"


@cache
def _host():
    """Versions of LLVM, and the processor with its features, as text."""
    import llvmlite

    llvm = _binding()
    version = ".".join(map(str, llvm.llvm_version_info))
    return (
        f"llvmlite {llvmlite.__version__}, LLVM {version}, {llvm.get_default_triple()}, "
        f"{llvm.get_host_cpu_name()}, {_features().flatten()}"
    )


@cache
def _target():
    """Target, and name and features of the processor."""
    llvm = _binding()
    features = _features().flatten()
    return llvm.Target.from_default_triple(), llvm.get_host_cpu_name(), features


def _target_machine(level=0):
    """LLVM's target machine for this processor, at an optimisation level."""
    target, cpu, features = _target()
    return target.create_target_machine(opt=level, cpu=cpu, features=features, jit=True)


def object_code(ir, level=None) -> bytes:
    """Object code of a module given as text; large ones in pieces, on all cores at once."""
    level, texts = optimization() if level is None else level, _pieces(ir)
    with _emitting():
        return _pack(map_on_cores(lambda text: _emit_uninterrupted(text, level), texts))


def branching_code(texts, level, advance=lambda: None) -> list[bytes]:
    """Object code of LLVM IR with loops and memory, several modules compiled on all cores.

    Args:
        texts: of the modules.
        level: 1 for all of LLVM's passes; 0 for none, in a tenth of the time.
        advance: called when the next one is there.
    """
    with _emitting(straight=False):
        return map_on_cores(lambda text: _branching(text, level), texts, advance)


def branching_code_in_background(text) -> bytes:
    """Optimised object code of LLVM IR with loops, compiled only while no other thread compiles."""
    with _emitting(straight=False, patient=True):
        return _branching(text, 1)


def _branching(text, level):
    """Object code of LLVM IR with loops; level 0 runs no optimisation passes."""
    return _emit_uninterrupted(text, 2 if level else 0, passes=bool(level))


_PIECE = 100_000  # letters, about a thousand operations; less is not worth a piece
_BLOCK = "define internal void @block_"


def _pieces(ir):
    """Split a module of LLVM IR into smaller ones along its blocks, to be compiled in parallel.

    The blocks of a program, functions that only ``step`` calls, are compiled independently. How
    they are divided depends on the text alone, and so does the object code.
    """
    if len(ir) < 2 * _PIECE or ir.count(_BLOCK) < 2:
        return [ir]
    groups, rest, declared, size = [], [], [], _PIECE
    for part in ir.split("\n\n"):
        if part.startswith(_BLOCK):
            if size >= _PIECE:
                groups, size = [*groups, []], 0
            groups[-1].append(part.replace("define internal", "define", 1))
            size += len(part)
            head = part[: part.index(")")].removeprefix("define internal ")
            rest.append(f"declare {re.sub(' %[a-z]+', '', head)})")
        else:
            rest.append(part)
            if part.startswith("declare"):
                declared.append(part)
    return ["\n\n".join(parts) for parts in (*([*g, *declared] for g in groups), rest)]


def _emit_uninterrupted(ir, level, *, passes=False):
    """Object code of one module of LLVM IR; Ctrl-C raises KeyboardInterrupt only afterwards.

    In between it could be lost: llvmlite frees modules where Python ignores exceptions.
    """
    with Interrupt():
        return _emit(ir, level, passes)


def _emit(ir, level, passes):
    """Object code of one module of LLVM IR, compiled without llvmlite's global lock if possible.

    llvmlite lets one thread at a time call LLVM. Work on modules of different contexts is safe in
    LLVM itself, so that its functions are called directly where llvmlite still has them as it had.
    """
    llvm = _binding()
    library, context = llvm.ffi.lib, llvm.create_context()
    try:
        machine = _idle[level].pop()
    except IndexError:
        machine = _target_machine(level)
    parse = getattr(library.LLVMPY_ParseAssembly, "_cfn", None)
    emit = getattr(library.LLVMPY_TargetMachineEmitToMemory, "_cfn", None)
    if parse is None or emit is None:
        module = llvm.parse_assembly(ir, context)
        if passes:
            _run_passes(module, machine)
        return machine.emit_object(module)
    with llvm.ffi.OutputString() as error:
        found = parse(context, ir.encode(), error)
        if error:
            raise RuntimeError(f"LLVM cannot read its text: {error}")
        module = llvm.module.ModuleRef(found, context)
        if passes:
            _run_passes(module, machine)
        memory = emit(machine, module, 1, error)
        if not memory:
            raise RuntimeError(str(error))
    try:
        start, size = library.LLVMPY_GetBufferStart(memory), library.LLVMPY_GetBufferSize(memory)
        return ctypes.string_at(start, size)
    finally:
        library.LLVMPY_DisposeMemoryBuffer(memory)
        _idle[level].append(machine)


_idle: dict[int, list] = {0: [], 1: [], 2: []}  # machines by level: LLVM takes 1 ms to prepare one


def _run_passes(module, machine):
    """Run LLVM's optimisation passes on a module: inlining, vectorisation; results keep bits."""
    llvm = _binding()
    module.triple, module.data_layout = llvm.get_default_triple(), str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    run = llvm.ffi.lib.LLVMPY_RunNewModulePassManager
    getattr(run, "_cfn", run)(builder.getModulePassManager(), module, builder)


_SEVERAL = b"PIECES"


def _pack(objects):
    """Concatenate object codes into one, with a header of their number and lengths."""
    if len(objects) == 1:
        return objects[0]
    return (
        _SEVERAL
        + struct.pack(f"<{1 + len(objects)}I", len(objects), *map(len, objects))
        + b"".join(objects)
    )


def _unpack(data):
    """Object codes that ``_pack`` has concatenated."""
    if not data.startswith(_SEVERAL):
        return [data]
    at = len(_SEVERAL)
    (count,) = struct.unpack_from("<I", data, at)
    lengths = struct.unpack_from(f"<{count}I", data, at + 4)
    ends = list(accumulate(lengths, initial=at + 4 + 4 * count))
    return [data[a:b] for a, b in pairwise(ends)]


# Any number of threads compile at once, with the same options; a fork waits for all of them.
_compiling, _inside, _waiting = Condition(), [], []


@contextmanager
def _emitting(*, straight=True, patient=False):
    """Context of one compilation, which sets LLVM's global options for straight-line or other code.

    Where these are options of the whole process, one kind of code waits for the other, even for a
    procedure that a thread of low priority optimises, which busy cores keep from its work.
    ``patient``: after all others, those that come meanwhile included.
    """
    llvm = _binding()
    apart = bool(_options())
    with _compiling:
        if patient:
            _compiling.wait_for(lambda: not _inside and not _waiting)
        else:
            with _first():
                _compiling.wait_for(lambda: not apart or all(each == straight for each in _inside))
        if not _inside:
            _set_options(llvm, wanted=straight)
        _inside.append(straight)
    try:
        yield
    finally:
        with _compiling:
            _inside.remove(straight)
            if not _inside:
                _set_options(llvm, wanted=False)
            _compiling.notify_all()


@contextmanager
def compiling():
    """Context of compiling for GPUs and other processors; yields llvmlite's binding."""
    if not _all_targets.cache_info().currsize:
        with _compiling, _first():
            _compiling.wait_for(lambda: not _inside)
            _all_targets()
    with _emitting(straight=False):
        yield _all_targets()


@cache
def _all_targets():
    """Binding of llvmlite, with the targets of all processors initialised."""
    llvm = _binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@contextmanager
def _first():
    """Context of waiting for other compilations, ahead of those in the background."""
    _waiting.append(True)
    try:
        yield
    finally:
        _waiting.pop()


def _set_options(llvm, wanted):
    """Set LLVM's global options for straight-line code, or back to their defaults.

    On Arm the passes left out are half of the time to compile; reordering before registers are
    assigned even spills more of them than our order does: see benchmarks/results.md.
    """
    for name, ours in _options().items():
        llvm.set_option("kinetree", f"-{name}={str(ours == wanted).lower()}")


@cache
def _options():
    """LLVM options for straight-line code on this processor, with their values."""
    is_arm = _binding().get_default_triple().startswith(("aarch64", "arm64"))
    return _OPTIONS if is_arm else {}


_OPTIONS = {
    "enable-misched": False,  # instructions stay in our order,
    "enable-post-misched": False,  # also once registers are assigned
    "disable-cgp": True,  # of use across basic blocks, and ours is one
    "disable-lsr": True,  # of use in short loops
    "aarch64-use-aa": False,  # what may overlap: the code comes out the same to the last bit
}


def _before_fork():
    """Wait until no thread compiles, so that a forked child finds no lock held."""
    _compiling.acquire()
    with _first():
        _compiling.wait_for(lambda: not _inside)


if hasattr(os, "register_at_fork"):  # who compiles would not be there to finish
    os.register_at_fork(
        before=_before_fork, after_in_parent=_compiling.release, after_in_child=_compiling.release
    )


def load(data, level=1) -> MachineCode:
    """Load object code, from this process or a trusted one, as machine code ready to run.

    ``data`` is object code, or a list of it: an engine for each would take half a millisecond.
    """
    llvm = _binding()
    with Interrupt(), _compiling:  # as in _emit_uninterrupted
        # An engine owns its target machine, so that each needs its own; and it would compile the
        # empty module, for longer than all else takes.
        module = llvm.parse_assembly("")
        engine = llvm.create_mcjit_compiler(module, _target_machine())
        engine.remove_module(module)
        for each in data if isinstance(data, list) else [data]:
            for piece in _unpack(each):
                engine.add_object_file(llvm.ObjectFileRef.from_data(piece))
        engine.finalize_object()
        return MachineCode(engine, level)


def is_provided(symbol) -> bool:
    """Whether code that is loaded from now on may call this symbol."""
    return symbol in _provided


def provide(symbol, data) -> None:
    """Load object code, and register its function ``shared`` as ``symbol`` in this process."""
    code = load(data)
    _kept.append(code)
    _binding().add_symbol(symbol, code.address("shared"))
    _provided.add(symbol)


_provided, _kept = set(), []


def default_lanes(dtype, small=False):
    """Samples per vector of batch code: as many as one register of this CPU holds.

    Small programs take two registers' worth: there is room for them, and more independent work
    keeps the processor busy. For large ones that compiles twice as long and is no faster: see
    benchmarks/results.md. Where everything is of level 0, time to compile is all that counts.
    """
    features = _features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    registers = 2 if small and bits < 512 and optimization() else 1
    return registers * bits // {"float64": 64, "float32": 32}[dtype]


@cache
def has_many_registers() -> bool:
    """Whether there are 32 registers for vectors, and not 16 as in processors before AVX-512."""
    return bool(_features().get("avx512f") or not _features().get("sse2"))
