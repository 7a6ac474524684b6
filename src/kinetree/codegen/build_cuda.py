"""From a kernel to a function on a GPU: look on disk, else trace, render and compile."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from kinetree.codegen.cache import open_store
from kinetree.codegen.compile import nvrtc
from kinetree.codegen.keys import program_key, request_key

__all__ = ["CudaCode", "build_cuda"]


@dataclass(frozen=True)
class CudaCode:
    """A function on a device.

    Attributes:
        function: what CuPy launches.
        shared: bytes of shared memory for each thread of a block.
        key: what identifies the code on this device.
    """

    function: Any
    shared: int
    key: str


def build_cuda(kernel, dtype, device, layout=None, options=()) -> CudaCode:
    """The function of a kernel for one precision on one device."""
    host = nvrtc.host(device)
    request = None if layout or options else request_key(kernel, dtype, "cuda", host)
    found = open_store().get(request) if request else None
    if found is not None:
        known = json.loads(found)
        code = open_store().get(program_key(known["program"], host))
        if code is not None:
            return _code(code, known["shared"], known["program"], host)
    from kinetree.codegen.render.cuda import render  # not needed when the code is found

    rendered = render(kernel.program, dtype, layout)
    program = hashlib.sha256(f"{options} {rendered.text}".encode()).hexdigest()
    code = open_store().get(program_key(program, host))
    if code is None:
        code = nvrtc.compiled(rendered.text, device, options)
        open_store().put(program_key(program, host), code)
    if request:
        entry = {"program": program, "shared": rendered.shared}
        open_store().put(request, json.dumps(entry).encode())
    return _code(code, rendered.shared, program, host)


def _code(code, shared, program, host):
    return CudaCode(nvrtc.loaded(code), shared, program_key(program, host))
