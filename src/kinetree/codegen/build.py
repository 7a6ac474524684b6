"""From a kernel to machine code: look in memory and on disk, else trace, render and compile."""

import hashlib
import json
import os
import re
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from kinetree.codegen import machine_code as llvm
from kinetree.codegen import nvrtc
from kinetree.codegen.cache import open_store
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
from kinetree.codegen.runtime.threads import map_on_cores, workers
from kinetree.codegen.schedule import BLOCK_SIZE
from kinetree.codegen.weak_table import WeakTable

# --- Keys of compiled code, as text that is the same in every process ----------------------------
# A *request* names the code wanted: the kernel's key, this version of kinetree's source, the
# versions that tracing depends on. It is known before anything is traced. A *program* is named by a
# digest of its LLVM text, and its machine code by that, the compiler and the processor. The cache
# maps requests to programs and programs to machine code: a warm start needs no tracing, and code
# whose text did not change survives a new version of kinetree.

_IMPORTED = time.time() - 2.0  # [s] files older than this are what this process runs


def request_key(kernel, dtype, lanes, host=None):
    """The text that identifies a kernel's code before it is traced; None when nothing does.

    Args:
        kernel: the requested one.
        dtype: the precision.
        lanes: samples at a time, or another word for the variant of the code.
        host: compiler and processor; LLVM's and this one by default.
    """
    arguments = [[(a.name, a.shape) for a in side] for side in (kernel.inputs, kernel.outputs)]
    key = kernel.key
    return _request("request", key, f"{kernel.name} {key!r}", repr(arguments), dtype, lanes, host)


def _request(kind, key, name, what, dtype, lanes, host):
    """Lines of a request, or None where ``key`` does not say everything."""
    source = source_digest()
    if key is None or source is None or not _is_literal(key):
        return None
    versions = f"{sys.implementation.cache_tag}, numpy {np.__version__}"
    parts = [kind, name, what, f"{dtype} x {lanes}", f"source {source}", versions]
    return "\n".join([*parts, host or llvm.host()])


def _name_of(text):
    """The name of a program: a digest of its text."""
    return hashlib.sha256(text.encode()).hexdigest()


def program_key(program, host=None):
    """The text that identifies the machine code of a program, given the digest of its text."""
    return f"program {program}\n{_recipe()}\n{host or llvm.host()}"


@dataclass
class Kept:
    """Code in the cache that has a name."""

    name: str
    """Of the function; of functions that all code shares, what they do."""
    tier: str
    """``"general"``, ``"specialised"``, or ``"shared"`` by all."""
    level: int | None
    """How much LLVM optimised it; None on a GPU."""
    count: int = 0
    """Number of programs: for different robots, joints, options, precisions and widths."""
    bytes: int = 0
    """Their size."""


def kept_code(store) -> list[Kept]:
    """Code that a store holds, by name, tier and level."""
    sizes, wanted, found = {}, set(), {}
    for entry, key in store.with_keys():
        kind, *rest = key.splitlines()
        if kind.startswith("program "):
            sizes[kind.removeprefix("program "), _level(key)] = entry.size
        elif kind in ("request", "loops", "procedures") and len(rest) > 2:
            tier = "specialised" if kind == "request" else "general"
            level = None if rest[2].endswith("x cuda") else _level(key)
            programs = re.findall(r"\b[0-9a-f]{64}\b", (store.look(key) or b"").decode("latin-1"))
            wanted |= {(named_in(kind, rest[0]), tier, level, program) for program in programs}
    for program, level in sizes:
        if program.startswith("kinetree_"):
            wanted.add((program.split("_")[1], "shared", level, program))
    for name, tier, level, program in wanted:
        size = sizes.get((program, 1 if level is None else level), 0)
        if size:
            kept = found.setdefault((tier, name, level), Kept(name, tier, level))
            kept.count, kept.bytes = kept.count + 1, kept.bytes + size
    return sorted(found.values(), key=lambda k: (k.tier, k.name, k.level or 0))


def _level(key):
    """Level of optimisation that a key names."""
    return 0 if key.endswith(", level 0") else 1


def named_in(kind, text) -> str:
    """The name of the function that a request is for."""
    if kind == "procedures":
        return text
    if kind == "request":
        return text.partition(" (")[0].partition(" '")[0]
    words = re.findall(r"'([^']*)'", text)
    return next((word for word in words if word != "general"), text)


def _is_literal(x):
    """Whether ``repr`` says everything about ``x``, and the same in every process."""
    if type(x) is tuple:
        return all(map(_is_literal, x))
    return type(x) in (str, bytes, bool, int, float, type(None))


@cache
def source_digest():
    """A digest of the source of kinetree: what another version of it compiled is not used.

    None when a file changed since it was imported, so that it does not say what this process runs.
    The cache has it under the sizes and times of all files, so that a process need not read them.
    """
    files = sorted(_source_files(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    status = hashlib.sha256(sys.modules["kinetree"].__version__.encode())
    for path in files:
        with suppress(OSError):
            found = os.stat(path)
            if found.st_mtime > _IMPORTED:
                return None
            times = f"{found.st_mtime_ns} {found.st_ctime_ns}"  # the latter cannot be set
            status.update(f"{path} {found.st_size} {times}\n".encode())
    key = f"source files {status.hexdigest()}"
    known = open_store().get(key)
    if known is not None:
        return known.decode()
    digest = _digest(files)
    if digest is not None:
        open_store().put(key, digest.encode())
    return digest


@cache
def _recipe():
    """A digest of how text is compiled; one of a kind when that is not sure."""
    return _digest([llvm.__file__, nvrtc.__file__]) or os.urandom(16).hex()


def _digest(paths):
    """Digest of source files and the version; None if one was edited after the start."""
    digest = hashlib.sha256(sys.modules["kinetree"].__version__.encode())
    for path in sorted(paths):
        try:
            with open(path, "rb") as file:
                edited = os.fstat(file.fileno()).st_mtime
                content = file.read()
        except OSError:  # installed without source: then the version has to do
            continue
        if edited > _IMPORTED:
            return None
        digest.update(f"{os.path.basename(path)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _source_files(folder):
    """Paths of all Python and CUDA files in a folder and those below it."""
    found = []
    try:
        with os.scandir(folder) as items:
            for item in items:
                if item.name.endswith((".py", ".cuh")):
                    found.append(item.path)
                elif item.is_dir() and item.name != "__pycache__":
                    found += _source_files(item.path)
    except OSError:
        pass
    return found


_loaded = WeakTable()  # machine code in use, by request and by program
_warnings: dict[str, tuple] = {}  # that tracing gave, by request
_recent = deque(maxlen=64)  # some of what was used lately stays when its model goes
_FEW_INPUTS = 32  # numbers: those of an arm, but not of a walking robot
_FEW_NUMBERS = 64  # in and out: its torques, but not their derivatives
_MANY_NUMBERS = 2000  # of calls whose arguments LLVM takes seconds to pack into vectors


def build(kernel, dtype, wide, level=1) -> Any:
    """Machine code of a kernel for one precision, for batches or for single samples.

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
    """Machine code of a kernel for other code to call."""
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
    """Code that was compiled for the same request, without tracing it again."""
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
    """Keep warnings given while a request was traced, for those who find its code later."""
    if warnings:
        _warnings[request] = tuple(map(tuple, warnings))


def _compile(kernel, dtype, lanes, called, request, level):
    """Render and compile a kernel, and keep it in the cache."""
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
    """Machine code of the text of a program."""
    return _code_of(text, optimization(level))[0]


def _code_of(text, level, entries=()):
    """The same, with the name of the program; ``entries`` are what it calls."""
    program = _name_of(text)
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
    """Names of what object code on disk calls, and the code; None where there is none."""
    symbols, _, data = (open_store().get(key) or b"").partition(b"\n")
    return (symbols.decode().split(), data) if data else None


def _existing_code(program, level, robot=()):
    """Machine code of a program, from memory or disk, or None; ``robot`` as in ``_link``."""
    key = program_key(program, llvm.host(level))
    code = None if robot else _loaded.get(key)
    if code is None and (kept := _object_on_disk(key)) is not None:
        code = _link(program, *kept, level, robot)
    return code


def _link(program, symbols, data, level, robot=()):
    """Machine code with the functions that it calls, or None where one is missing.

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
    """The entry of code that a kept program calls; None where it is missing."""
    levels = (1, 0)[: 2 - level]  # code of a higher level computes the same
    found = [e for e in (_entries.get((name, k)) for k in levels) if e is not None]
    for k in levels if not found else ():
        code = _existing_code(name, k)
        if code is not None:
            found.append(_entries.setdefault((name, k), LinkedEntry.of(code, ())))
    return found[0] if found else None


def _provide_shared(symbol):
    """Whether a shared function is there; compiles it when it is not."""
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


def loop_request(key, dtype, lanes, *what, host=None) -> str | None:
    """The text that identifies code for every robot before it is recorded, or None.

    Args:
        key: what identifies the source, or None.
        dtype: the precision.
        lanes: samples at a time, or another word for the variant of the code.
        what: which part of the code.
        host: compiler and processor; LLVM's and this one by default.
    """
    return _request("loops", key, repr(key), repr(what), dtype, lanes, host)


def program_of(text) -> tuple[str, str]:
    """The name of a program, and its text with functions whose names no other program has."""
    program = _name_of(text)
    return program, re.sub(r"@(step|case_\d+)\(", rf"@\1_{program}(", text)


def kept_program(program) -> Any:
    """Machine code in memory, or else object code on disk, of a program; None where it is neither.

    Shared functions that it calls are there afterwards.
    """
    code = _loaded.get(program_key(program))
    if code is not None:
        return code
    symbols, data = _object_on_disk(program_key(program)) or ((), None)
    return data if all(map(_provide_shared, symbols)) else None


def compiled_programs(texts) -> dict[str, bytes]:
    """Object code of programs given by name, compiled on all cores and kept on disk."""
    from kinetree.codegen.render.llvm_shared import shared_symbols

    found = dict(zip(texts, map_on_cores(object_code, [*texts.values()]), strict=True))
    for program, data in found.items():
        symbols = shared_symbols(texts[program])
        open_store().put(program_key(program), " ".join(symbols).encode() + b"\n" + data)
        for symbol in symbols:
            _provide_shared(symbol)
    return found


def loaded_programs(found) -> dict[str, Any]:
    """Machine code of programs, given for each name its machine code, object code or text."""
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


# --- Procedures: integer algorithms, compiled once for every robot ------------------------------


@cache
def _writer():
    """A digest of how procedures are written as text, or None when that is not sure."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "procedures")
    return _digest(_source_files(folder))


def _procedures_request(name, level):
    """The text that identifies the code of a procedure before it is written, or None."""
    if _writer() is None:
        return None
    versions = f"{sys.implementation.cache_tag}, writer {_writer()}"
    return "\n".join(["procedures", name, versions, _recipe(), llvm.host(level)])


def kept_procedure(name, level, store=None) -> bytes | None:
    """Object code of a procedure, from disk; ``name`` says all that it depends on."""
    store = store or open_store()
    request = _procedures_request(name, level)
    program = store.get(request) if request else None
    return program and store.get(program_key(program.decode(), llvm.host(level)))


def keep_procedures(texts, level, compiled=llvm.branching_code, store=None) -> dict[str, bytes]:
    """Object code by name of procedures given as texts by name, compiled where a text is new.

    Args:
        texts: by name.
        level: how much LLVM optimises.
        compiled: function of texts and the level that returns their object code.
        store: where it is kept; the usual one by default.
    """
    store = store or open_store()
    programs = {name: _name_of(text) for name, text in texts.items()}
    keys = {name: program_key(program, llvm.host(level)) for name, program in programs.items()}
    found: dict[str, Any] = {name: store.get(key) for name, key in keys.items()}
    new = [name for name, data in found.items() if data is None]
    for name, data in zip(new, compiled([texts[n] for n in new], level), strict=True):
        found[name] = data
        store.put(keys[name], data)
    for name, program in programs.items():
        request = _procedures_request(name, level)
        if request:
            store.put(request, program.encode())
    return found


# --- From a kernel to functions on a GPU: look on disk, else trace, render and compile -----------


@dataclass(frozen=True)
class CudaCode:
    """A program on a device."""

    functions: tuple
    """``nvrtc.Function``s that compute it together, one after the other."""
    shared: tuple
    """For each the bytes of shared memory for each 32 threads of a block."""
    ahead: tuple
    """For each whether there should be no more warps than fit."""
    work: int
    """Numbers of a sample in the workspace that they share."""
    key: str
    """What identifies the code on this device."""


def build_cuda(kernel, dtype, device, layout=None, options=()) -> CudaCode:
    """The functions of a kernel for one precision on one device."""
    host = nvrtc.host(device)
    request = None if layout or options else request_key(kernel, dtype, "cuda", host)
    found = open_store().get(request) if request else None
    if found is not None:
        known = json.loads(found)
        codes = [open_store().get(program_key(key, host)) for key in known["programs"]]
        if None not in codes:
            for warning in known["warnings"]:
                kernel.warn(tuple(warning))
            return _code(codes, known, host)
    from kinetree.codegen.render.cuda_pieces import Layout, render_pieces  # where code is not found

    layout = replace(layout or Layout(), large=nvrtc.is_large(device))
    pieces = render_pieces(kernel.program, dtype, layout)
    texts = pieces.texts
    each = [options or (nvrtc.LIGHT if t.light else ()) for t in texts]
    entry, codes = _built_all([t.text for t in texts], host, device, each, [t.apart for t in texts])
    entry |= {
        "shared": [t.shared for t in texts],
        "ahead": [t.ahead for t in texts],
        "work": pieces.work,
        "warnings": kernel.program.warnings,
    }
    if request:
        open_store().put(request, json.dumps(entry).encode())
    return _code(codes, entry, host)


def build_cuda_loops(kernel, dtype, device, decide, resident=0, options=()) -> CudaCode:
    """The function of a kernel whose code is for every robot; one text for each set of kinds.

    Args:
        kernel: has ``source.program(kinds)``, and a robot as ``data``.
        dtype: precision.
        device: number of the device.
        decide: takes a ``TablePlan``; returns the place of numbers as ``render.cuda_loops`` names
            it, bytes of shared memory of a warp, and numbers of a sample in a workspace.
        resident: as in ``render.cuda_loops``.
        options: for the compiler.
    """
    from kinetree.codegen.loops.language import BODIES
    from kinetree.codegen.loops.recomputed import recompute
    from kinetree.codegen.render.loop_tables import TablePlan, name_of, table_plan

    host, program = nvrtc.host(device), None
    rows = kernel.data.domains.get(BODIES)
    kinds = tuple(sorted(rows.kinds, key=name_of)) if rows else ()
    names = [kind if isinstance(kind, str) else kind.key for kind in kinds]
    request = None
    if not (resident or options or None in names):
        request = loop_request(kernel.key, dtype, "cuda", *names, host=host)
    found = open_store().get(request) if request else None
    if found is not None:
        known = json.loads(found)
        plan = TablePlan(**known["plan"])
    else:
        program = recompute(kernel.source.program(kinds))
        plan = table_plan(program)
        known = {"plan": asdict(plan), "programs": {}}
    place, shared, work = decide(plan)
    name = known["programs"].get(place)
    code = open_store().get(program_key(name, host)) if name else None
    if code is None:
        from kinetree.codegen.render.cuda_loops import render

        program = program or recompute(kernel.source.program(kinds))
        text = render(program, dtype, place, resident)
        entry, (code,) = _built_all([text], host, device, [options])
        (name,) = entry["programs"]
        known["programs"][place] = name
        if request:
            open_store().put(request, json.dumps(known).encode())
    entry = {"programs": [name], "shared": [shared], "ahead": [True], "work": work}
    return _code([code], entry, host)


def _built_all(texts, host, device, options, apart=None):
    """Names of programs, and their machine code; each has its own options."""
    pairs = zip(options, texts, strict=True)
    programs = [_name_of(f"{some} {text}") for some, text in pairs]
    with workers(len(texts)) as threads:
        build = partial(_device_code, host=host, device=device)
        all_apart = apart or [0] * len(texts)
        return {"programs": programs}, list(threads.map(build, programs, texts, options, all_apart))


def _device_code(program, text, options, apart, *, host, device):
    """Machine code, from disk if it is there."""
    code = open_store().get(program_key(program, host))
    if code is None:
        compiled = partial(nvrtc.compiled_apart, registers=apart) if apart else nvrtc.compile_text
        code = compiled(text, device, options)
        open_store().put(program_key(program, host), code)
    return code


def _code(codes, entry, host):
    """CUDA code of an entry of the cache, loaded."""
    functions, shared, ahead = map(nvrtc.load_function, codes), entry["shared"], entry["ahead"]
    key = program_key(" ".join(entry["programs"]), host)
    return CudaCode(tuple(functions), tuple(shared), tuple(ahead), entry["work"], key)
