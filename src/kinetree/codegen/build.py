"""From a kernel to machine code: look in memory and on disk, else trace, render and compile."""

import hashlib
import json
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from kinetree.codegen import nvrtc
from kinetree.codegen.cache import open_store
from kinetree.codegen.keys import program_key, request_key
from kinetree.codegen.machine_code import (
    default_lanes,
    is_provided,
    load,
    object_code,
    provide,
)

_loaded = WeakValueDictionary()  # machine code in use, by request and by program
_recent = deque(maxlen=64)  # some of what was used lately stays when its model goes
_FEW_INPUTS = 32  # numbers: those of an arm, but not of a walking robot
_FEW_NUMBERS = 64  # in and out: its torques, but not their derivatives


def build(kernel, dtype, wide) -> Any:
    """Machine code of a kernel for one precision, for batches or for single samples."""
    inputs = sum(argument.size for argument in kernel.inputs)
    small = inputs <= _FEW_INPUTS and kernel.numbers <= _FEW_NUMBERS
    lanes = default_lanes(dtype, small) if wide else 1
    request = request_key(kernel, dtype, lanes)
    code = _requested(request) if request else None
    if code is None:
        code = _compiled(kernel, dtype, lanes, request)
    if request:
        _loaded[request] = code
    _recent.append(code)
    return code


def _requested(request):
    """Code that was compiled for the same request, without tracing it again."""
    code = _loaded.get(request)
    if code is None:
        program = open_store().get(request)
        code = program and _found(program.decode())
    return code


def _compiled(kernel, dtype, lanes, request):
    from kinetree.codegen.render.llvm import render  # not needed when the code is found

    code, program = _code_of(render(kernel.program, dtype, lanes))
    if request:
        open_store().put(request, program.encode())
    return code


def code_of(text) -> Any:
    """Machine code of the text of a program."""
    return _code_of(text)[0]


def _code_of(text):
    """The same, with the name of the program."""
    program = hashlib.sha256(text.encode()).hexdigest()
    code = _found(program)
    if code is None:
        from kinetree.codegen.render.llvm_shared import shared_symbols

        symbols = shared_symbols(text)
        data = object_code(text)
        open_store().put(program_key(program), " ".join(symbols).encode() + b"\n" + data)
        code = _linked(program, symbols, data)
    return code, program


def _found(program):
    """Machine code of a program, from memory or disk, or None."""
    code = _loaded.get(program)
    if code is None:
        kept = open_store().get(program_key(program))
        if kept is not None:
            symbols, _, data = kept.partition(b"\n")
            code = _linked(program, symbols.decode().split(), data)
    return code


def _linked(program, symbols, data):
    """Machine code with the shared functions that it calls, or None where one is not to be had."""
    if not all(map(_provided, symbols)):
        return None
    code = _loaded[program] = load(data)
    return code


def _provided(symbol):
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


# --- From a kernel to functions on a GPU: look on disk, else trace, render and compile -----------


@dataclass(frozen=True)
class CudaCode:
    """A program on a device.

    Attributes:
        functions: ``nvrtc.Function``s that compute it together, one after the other.
        shared: for each the bytes of shared memory for each 32 threads of a block.
        ahead: for each whether there should be no more warps than fit.
        work: numbers of a sample in the workspace that they share.
        key: what identifies the code on this device.
    """

    functions: tuple
    shared: tuple
    ahead: tuple
    work: int
    key: str


def build_cuda(kernel, dtype, device, layout=None, options=()) -> CudaCode:
    """The functions of a kernel for one precision on one device."""
    host = nvrtc.host(device)
    request = None if layout or options else request_key(kernel, dtype, "cuda", host)
    found = open_store().get(request) if request else None
    if found is not None:
        known = json.loads(found)
        codes = [open_store().get(program_key(key, host)) for key in known["programs"]]
        if None not in codes:
            return _code(codes, known, host)
    from kinetree.codegen.render.cuda_pieces import render_pieces  # not needed when code is found

    pieces = render_pieces(kernel.program, dtype, layout)
    texts = pieces.texts
    programs = [hashlib.sha256(f"{options} {t.text}".encode()).hexdigest() for t in texts]
    with ThreadPoolExecutor(len(texts)) as threads:
        build = partial(_built, host=host, device=device, options=options)
        codes = list(threads.map(build, programs, [t.text for t in texts]))
    entry = {
        "programs": programs,
        "shared": [t.shared for t in texts],
        "ahead": [t.ahead for t in texts],
        "work": pieces.work,
    }
    if request:
        open_store().put(request, json.dumps(entry).encode())
    return _code(codes, entry, host)


def _built(program, text, host, device, options):
    """Machine code, from disk if it is there."""
    code = open_store().get(program_key(program, host))
    if code is None:
        code = nvrtc.compiled(text, device, options)
        open_store().put(program_key(program, host), code)
    return code


def _code(codes, entry, host):
    functions, shared, ahead = map(nvrtc.loaded, codes), entry["shared"], entry["ahead"]
    key = program_key(" ".join(entry["programs"]), host)
    return CudaCode(tuple(functions), tuple(shared), tuple(ahead), entry["work"], key)
