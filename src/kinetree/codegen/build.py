"""From a kernel to machine code: look in memory and on disk, else trace, render and compile."""

import json
from collections import deque
from typing import Any

from kinetree.codegen import machine_code as llvm
from kinetree.codegen.cache import open_store
from kinetree.codegen.keys import program_key, program_name, request_key
from kinetree.codegen.linking import LinkedEntry, called_names, fill
from kinetree.codegen.machine_code import (
    default_lanes,
    is_provided,
    load,
    object_code,
    optimization,
    provide,
)
from kinetree.codegen.program import calls_of
from kinetree.codegen.progress import building
from kinetree.codegen.runtime.threads import map_on_cores
from kinetree.codegen.schedule import BLOCK_SIZE
from kinetree.codegen.weak_table import WeakTable

_loaded = WeakTable()  # machine code in use, by request and by program
_warnings: dict[str, tuple] = {}  # that tracing gave, by request
_recent = deque(maxlen=64)  # some of what was used lately stays when its model goes
_FEW_INPUTS = 32  # numbers: those of an arm, but not of a walking robot
_FEW_NUMBERS = 64  # in and out: its torques, but not their derivatives
_MANY_NUMBERS = 2000  # of calls whose arguments LLVM takes seconds to pack into vectors


def build(kernel, dtype, wide, level=1) -> Any:
    """Compile a kernel to machine code in one precision, for batches (``wide``) or single samples.

    Code of a higher level than the one requested is taken, too: it computes the same bits.
    """
    inputs = sum(argument.size for argument in kernel.inputs)
    small = inputs <= _FEW_INPUTS and kernel.numbers <= _FEW_NUMBERS
    general = kernel.calls_general_code  # which is compiled for this number of lanes
    levels = general, small or general  # level 0 spills so much that one register is faster
    lanes = [default_lanes(dtype, each) if wide else 1 for each in levels]
    if general and kernel.numbers > _MANY_NUMBERS:
        lanes[0] = 1
    return _variant(kernel, dtype, lanes, level)


def build_entry(kernel, dtype, lanes, level=1) -> LinkedEntry:
    """Machine code of a kernel as a subroutine of other compiled code, with sizes of arguments."""
    code = _variant(kernel, dtype, (lanes, lanes), level, called=True)
    sizes = tuple(a.size for a in (*kernel.inputs, *kernel.outputs))
    entry = LinkedEntry.of(code, sizes)
    if not entry.is_bound:
        _entries[code.name, code.level] = entry
    return entry


def _variant(kernel, dtype, lanes, level, *, called=False) -> Any:
    """Compiled code of a kernel in one precision and width, from the cache or built now."""
    level, code, request = optimization(level), None, None
    for better in (1, 0)[: 2 - level]:
        variant = f"{lanes[better]}, called" if called else lanes[better]
        request = request_key(kernel, dtype, variant, llvm.host(better))
        code = _code_of_request(kernel, request, better)
        if code is not None:
            break
    if code is None:
        with open_store().alone(request):
            code = _code_of_request(kernel, request, level)  # another process may have compiled it
            code = code or _compile(kernel, dtype, lanes[level], called, request, level)
    if request:
        _loaded[request] = code
    _recent.append(code)
    return code


def _code_of_request(kernel, request, level):
    """Machine code cached on disk under a kernel's request key, found without tracing; or None."""
    code = _loaded.get(request) if request else None
    if code is None and request:
        kept = open_store().get(request)
        if kept is not None:
            program, _, warnings = kept.decode().partition("\n")
            code = _existing_code(program, level)
            _keep_warnings(request, json.loads(warnings or "[]"))
    if code is not None:
        for warning in _warnings.get(request, ()):
            kernel.warn(warning)
    return code


def _keep_warnings(request, warnings):
    """Cache the warnings of a trace, so that they are given again when its code comes from disk."""
    if warnings:
        _warnings[request] = tuple(map(tuple, warnings))


def _compile(kernel, dtype, lanes, called, request, level):
    """Trace, render and compile a kernel with LLVM, and cache the machine code on disk."""
    from kinetree.codegen.render.llvm import render  # not needed when the code is found

    with building(kernel.name, level) as work:
        program = kernel.program_with_calls
        warnings = program.warnings
        work.operations = len(program.graph.nodes)
        entries = {callee: callee.entry(dtype, lanes, level) for callee in calls_of(program)}
        quick = kernel.calls_general_code or not level  # larger blocks need fewer loads
        size = 4 * BLOCK_SIZE if quick else BLOCK_SIZE
        text = render(program, dtype, lanes, called=called, entries=entries, block_size=size)
        code, program = _code_of(text, level, entries.values())
    if request:
        _keep_warnings(request, warnings)
        kept = [program, *([json.dumps(warnings)] if warnings else [])]
        open_store().put(request, "\n".join(kept).encode())
    return code


def code_of(text, level=1) -> Any:
    """Compile LLVM IR to loaded machine code, or load it from the cache on disk."""
    return _code_of(text, optimization(level))[0]


def _code_of(text, level, entries=()):
    """Machine code of LLVM IR that calls ``entries``, and the program's name, its digest."""
    program = program_name(text)
    robot = entries if any(e.is_bound for e in entries) else ()
    code = _existing_code(program, level, robot)
    if code is None:
        from kinetree.codegen.render.llvm_shared import shared_symbols

        symbols = [*shared_symbols(text), *(f"{_CALLS}{name}" for name in called_names(text))]
        data = object_code(text, level)
        key = program_key(program, llvm.host(level))
        open_store().put(key, " ".join(symbols).encode() + b"\n" + data)
        code = _link(program, symbols, data, level, robot)
    return code, program


def _object_on_disk(key):
    """Names of functions that cached object code calls, and the code; None if not on disk."""
    symbols, _, data = (open_store().get(key) or b"").partition(b"\n")
    return (symbols.decode().split(), data) if data else None


def _existing_code(program, level, robot=()):
    """Machine code of a program that was compiled before, from memory or disk; None otherwise."""
    key = program_key(program, llvm.host(level))
    code = None if robot else _loaded.get(key)
    if code is None and (kept := _object_on_disk(key)) is not None:
        code = _link(program, *kept, level, robot)
    return code


def _link(program, symbols, data, level, robot=()):
    """Load object code and bind it to the functions that it calls; None where one is missing.

    ``robot`` are the entries of code that is tied to a robot: what calls it is loaded for each.
    """
    names = [s.removeprefix(_CALLS) for s in symbols if s.startswith(_CALLS)]
    entries = list(robot) or [_entry(name, level) for name in names]
    shared = [s for s in symbols if not s.startswith(_CALLS)]
    if None in entries or not all(map(_provide_shared, shared)):
        return None
    code = load(data, level)
    if not robot:
        _loaded[program_key(program, llvm.host(level))] = code
    code.name = program
    fill(code, entries)
    return code


_CALLS = "calls:"  # before the name of code that other code calls
_entries = WeakTable()  # of loaded code, by name and level; what calls it keeps it


def _entry(name, level):
    """Machine code of a cached program, as a subroutine for other code; None where not on disk."""
    levels = (1, 0)[: 2 - level]  # code of a higher level computes the same
    found = [e for e in (_entries.get((name, k)) for k in levels) if e is not None]
    for k in levels if not found else ():
        code = _existing_code(name, k)
        if code is not None:
            found.append(_entries.setdefault((name, k), LinkedEntry.of(code, ())))
    return found[0] if found else None


def _provide_shared(symbol):
    """Make a shared math function available to loaded code; False if there is none of this name."""
    if is_provided(symbol):
        return True
    data = open_store().get(program_key(symbol))
    if data is None:
        from kinetree.codegen.render.llvm_shared import shared_text

        text = shared_text(symbol)
        if text is None:
            return False
        data = object_code(text)
        open_store().put(program_key(symbol), data)
    provide(symbol, data)
    return True


# --- Code for every robot: a program's loops, and the cases of each kind of row ------------------


def kept_program(program) -> Any:
    """Loaded machine code of a program, else its cached object code; None if in neither place.

    Shared functions that it calls are there afterwards.
    """
    code = _loaded.get(program_key(program))
    if code is not None:
        return code
    symbols, data = _object_on_disk(program_key(program)) or ((), None)
    return data if all(map(_provide_shared, symbols)) else None


def compiled_programs(texts) -> dict[str, bytes]:
    """Compile LLVM IR of several programs on all cores, and cache the object code on disk."""
    from kinetree.codegen.render.llvm_shared import shared_symbols

    found = dict(zip(texts, map_on_cores(object_code, [*texts.values()]), strict=True))
    for program, data in found.items():
        symbols = shared_symbols(texts[program])
        open_store().put(program_key(program), " ".join(symbols).encode() + b"\n" + data)
        for symbol in symbols:
            _provide_shared(symbol)
    return found


def loaded_programs(found) -> dict[str, Any]:
    """Load programs given by name as machine code, object code or LLVM IR, compiling the last."""
    codes = {name: x for name, x in found.items() if isinstance(x, llvm.MachineCode)}
    objects = {name: x for name, x in found.items() if isinstance(x, bytes)}
    texts = {name: x for name, x in found.items() if isinstance(x, str)}
    if texts:
        objects |= compiled_programs(texts)
    if objects:
        code = load(list(objects.values()))
        for name in objects:
            codes[name] = _loaded[program_key(name)] = code
    return codes
