"""From a kernel to functions on a GPU: look on disk, else trace, render and compile."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from kinetree.codegen.cache import open_store
from kinetree.codegen.compile import nvrtc
from kinetree.codegen.keys import program_key, request_key

__all__ = ["CudaCode", "build_cuda"]


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
