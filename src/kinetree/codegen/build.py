"""From a kernel to machine code: look in memory and on disk, else trace, render and compile."""

import hashlib
from collections import deque
from typing import Any
from weakref import WeakValueDictionary

from kinetree.codegen.cache import open_store
from kinetree.codegen.compile.llvm import default_lanes, load, object_code
from kinetree.codegen.keys import program_key, request_key

__all__ = ["build"]

_loaded = WeakValueDictionary()  # machine code in use, by request and by program
_recent = deque(maxlen=64)  # some of what was used lately stays when its model goes
_SMALL = 32  # numbers that go in: an arm, but not a walking robot


def build(kernel, dtype, wide) -> Any:
    """Machine code of a kernel for one precision, for batches or for single samples."""
    small = sum(argument.size for argument in kernel.inputs) <= _SMALL
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

    text = render(kernel.program, dtype, lanes)
    program = hashlib.sha256(text.encode()).hexdigest()
    code = _found(program)
    if code is None:
        data = object_code(text)
        open_store().put(program_key(program), data)
        code = _keep(program, load(data))
    if request:
        open_store().put(request, program.encode())
    return code


def _found(program):
    """Machine code of a program, from memory or disk, or None."""
    code = _loaded.get(program)
    if code is None:
        data = open_store().get(program_key(program))
        code = data and _keep(program, load(data))
    return code


def _keep(program, code):
    _loaded[program] = code
    return code
