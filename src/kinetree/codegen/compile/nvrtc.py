"""CUDA C to machine code of a GPU, with NVRTC as CuPy brings it; and such code loaded.

NVRTC compiles in this process and needs no other tools. CuPy is imported when first needed.
"""

import os
import tempfile
from functools import cache
from typing import Any

from kinetree.errors import BackendError, MissingPackageError

__all__ = ["OPTIONS", "compiled", "cupy", "host", "loaded"]

OPTIONS = ("--std=c++17", "--disable-warnings")
"""Options for every program, besides the processor: rounding as IEEE says, products fused."""


@cache
def cupy() -> Any:
    """The package CuPy."""
    try:
        import cupy as found
    except ImportError as error:
        raise MissingPackageError(
            f"arrays on a GPU need the package cupy, which cannot be imported ({error}): "
            f"pip install kinetree[gpu]"
        ) from error
    return found


@cache
def _nvrtc() -> Any:
    """CuPy's binding of NVRTC."""
    cupy()
    from cupy_backends.cuda.libs import nvrtc

    return nvrtc


@cache
def host(device: int) -> str:
    """Everything about compiler and processor that machine code depends on."""
    version = ".".join(map(str, _nvrtc().getVersion()))
    return f"NVRTC {version}, sm_{architecture(device)}, {' '.join(OPTIONS)}"


@cache
def architecture(device: int) -> str:
    """Compute capability of a device, such as ``90``."""
    return str(cupy().cuda.Device(device).compute_capability)


def compiled(text: str, device: int, options=()) -> bytes:
    """Machine code of a text for a device."""
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(text, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"-arch=sm_{architecture(device)}", *options))
        return nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        raise BackendError(
            f"NVRTC does not compile a kernel ({error}): {nvrtc.getProgramLog(program)[:2000]}"
        ) from error
    finally:
        nvrtc.destroyProgram(program)


def loaded(code: bytes) -> Any:
    """The function ``run`` of machine code, on the current device."""
    folder = tempfile.mkdtemp(prefix="kinetree-")
    path = os.path.join(folder, "kernel.cubin")
    try:
        with open(path, "wb") as file:
            file.write(code)
        module = cupy().RawModule(path=path)
        function = module.get_function("run")
        _ = function.num_regs  # loads it now, while the file is there
        return function
    finally:
        os.remove(path)
        os.rmdir(folder)
