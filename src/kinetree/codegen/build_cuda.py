"""From a kernel to functions on a GPU: look on disk, else trace, render and compile."""

import json
from dataclasses import asdict, dataclass, replace
from functools import partial

from kinetree.codegen import nvrtc
from kinetree.codegen.cache import open_store
from kinetree.codegen.keys import loop_request, program_key, program_name, request_key
from kinetree.codegen.runtime.threads import workers


@dataclass(frozen=True)
class CudaCode:
    """A program on a device."""

    functions: tuple
    """``nvrtc.Function``s that compute it together, one after the other."""
    shared: tuple
    """For each the bytes of shared memory for each 32 threads of a block; for all ``threads``."""
    ahead: tuple
    """For each whether there should be no more warps than fit."""
    work: int
    """Numbers of a sample in the workspace that they share."""
    threads: int
    """Of a block where there are routines, whose warps share samples; 0 elsewhere."""
    key: str
    """What identifies the code on this device."""


def build_cuda(kernel, dtype, device, layout=None, options=()) -> CudaCode:
    """Compile a kernel to CUDA functions for one precision and device, or read them from disk."""
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
        "threads": max((t.threads for t in texts), default=0),
        "warnings": kernel.program.warnings,
    }
    if request:
        open_store().put(request, json.dumps(entry).encode())
    return _code(codes, entry, host)


def build_cuda_loops(kernel, dtype, device, decide, resident=0, options=()) -> CudaCode:
    """Compile a kernel by loops over bodies, one code for robots of the same joints, for CUDA.

    Args:
        kernel: has ``source.program(kinds)``, and a robot as ``data``.
        dtype: precision.
        device: number of the device.
        decide: takes a ``Layout``; returns the place of numbers as ``render.cuda_loops`` names
            it, bytes of shared memory of a warp, and numbers of a sample in a workspace.
        resident: as in ``render.cuda_loops``.
        options: for the compiler.
    """
    from kinetree.codegen.loops.language import BODIES
    from kinetree.codegen.loops.layout import Layout, layout_of_kinds, name_of
    from kinetree.codegen.loops.recomputed import recompute

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
        layout = Layout(**known["layout"])
    else:
        program = recompute(kernel.source.program(kinds))
        layout = layout_of_kinds(program)
        known = {"layout": asdict(layout), "programs": {}}
    place, shared, work = decide(layout)
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
    entry = {"programs": [name], "shared": [shared], "ahead": [True], "work": work, "threads": 0}
    return _code([code], entry, host)


def _built_all(texts, host, device, options, apart=None):
    """Compile several CUDA texts in parallel; digests that name them, and their machine code."""
    pairs = zip(options, texts, strict=True)
    programs = [program_name(f"{some} {text}") for some, text in pairs]
    with workers(len(texts)) as threads:
        build = partial(_device_code, host=host, device=device)
        all_apart = apart or [0] * len(texts)
        return {"programs": programs}, list(threads.map(build, programs, texts, options, all_apart))


def _device_code(program, text, options, apart, *, host, device):
    """CUDA machine code (cubin) of one text, from the disk cache or compiled by NVRTC."""
    code = open_store().get(program_key(program, host))
    if code is None:
        compiled = partial(nvrtc.compiled_apart, registers=apart) if apart else nvrtc.compile_text
        code = compiled(text, device, options)
        open_store().put(program_key(program, host), code)
    return code


def _code(codes, entry, host):
    """Functions of CUDA machine code, loaded on the current device, with their memory sizes."""
    functions, shared, ahead = map(nvrtc.load_function, codes), entry["shared"], entry["ahead"]
    key = program_key(" ".join(entry["programs"]), host)
    work, threads = entry["work"], entry["threads"]
    return CudaCode(tuple(functions), tuple(shared), tuple(ahead), work, threads, key)
