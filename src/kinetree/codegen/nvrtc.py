"""CUDA C to machine code of a GPU, with NVRTC as CuPy brings it; and such code loaded.

NVRTC compiles in this process and needs no other tools. CuPy is imported when first needed.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from kinetree.codegen.runtime.threads import workers
from kinetree.errors import BackendError, need

OPTIONS = ("--std=c++17", "--disable-warnings")
"""Options for every program, besides the processor: rounding as IEEE says, products fused."""

LIGHT = ("--ptxas-options=-O1",)
"""For programs that memory limits: half of the time, and they run as fast."""

QUICKLY = ("--Ofast-compile=min", *LIGHT)
"""For long programs: half of the time, and fewer registers spilled."""

COMPACT = ("--Ofast-compile=min", "--prec-div=false", "--prec-sqrt=false", "--ftz=true")
"""For programs with routines: long traced text is compiled quickly, while routines are optimized
(``compiled_apart``); quotients and roots within 2 ulp of single precision need no branches."""

_APART = "--relocatable-device-code=true"
_LARGE = 227 * 1024  # bytes
_CUBIN = 0  # a kind of what is linked, as the driver counts them
_LOCAL, _REGISTERS, _LARGEST_SHARED, _SHARED_PART = (
    3,
    4,
    8,
    9,
)  # attributes of functions, as the driver counts them


@dataclass(frozen=True)
class Function:
    """A function in the memory of a device."""

    module: int
    """What it is part of, as the driver knows it."""
    address: int
    """Itself, as the driver knows it."""

    @property
    def registers(self):
        """Registers of a thread."""
        return driver().funcGetAttribute(_REGISTERS, self.address)

    @property
    def local(self):
        """Bytes of a thread that did not fit into registers."""
        return driver().funcGetAttribute(_LOCAL, self.address)

    def allow_shared(self, size):
        """Set the largest dynamic shared memory that a block of this function may use [bytes]."""
        driver().funcSetAttribute(self.address, _LARGEST_SHARED, size)

    def prefer_shared(self, percent):
        """Set how much of the memory of a multiprocessor is shared; the rest is a cache."""
        driver().funcSetAttribute(self.address, _SHARED_PART, percent)


@cache
def cupy() -> Any:
    """The package CuPy, imported; an error with advice where it is missing."""
    return need("cupy", "computing with arrays on a GPU", "gpu")


@cache
def driver() -> Any:
    """CuPy's binding of the CUDA driver."""
    cupy()
    from cupy_backends.cuda.api import driver as found  # pyright: ignore[reportMissingImports]

    return found


@cache
def _nvrtc() -> Any:
    """CuPy's binding of NVRTC."""
    cupy()
    from cupy_backends.cuda.libs import nvrtc  # pyright: ignore[reportMissingImports]

    return nvrtc


@cache
def host(device: int) -> str:
    """Text that identifies compiler, driver and GPU: machine code of others is not used."""
    version = ".".join(map(str, _nvrtc().getVersion()))
    return f"NVRTC {version}, sm_{architecture(device)}, {' '.join(OPTIONS)}"


@cache
def architecture(device: int) -> str:
    """Compute capability of a device, such as ``90``."""
    return str(cupy().cuda.Device(device).compute_capability)


@cache
def is_large(device: int) -> bool:
    """Whether a device is like Hopper: large shared memory, and tile copies by hardware."""
    attributes = cupy().cuda.Device(device).attributes
    return int(architecture(device)) >= 90 and attributes["MaxSharedMemoryPerBlockOptin"] >= _LARGE


def compile_text(text: str, device: int, options=()) -> bytes:
    """CUDA machine code (cubin) of a text for a device, compiled by NVRTC."""
    nvrtc = _nvrtc()
    program = nvrtc.createProgram(text, "kernel.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"-arch=sm_{architecture(device)}", *options))
        return nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        if {*QUICKLY, *COMPACT} & set(
            options
        ):  # an older NVRTC, or what is wrong is said without it
            return compile_text(
                text, device, tuple(x for x in options if x not in (*QUICKLY, *COMPACT))
            )
        raise BackendError(
            f"NVRTC does not compile a kernel ({error}): {nvrtc.getProgramLog(program)[:2000]}"
        ) from error
    finally:
        nvrtc.destroyProgram(program)


def compiled_apart(text: str, device: int, options=(), registers=128) -> bytes:
    """Machine code of a program and its routines, which are compiled apart with more optimisation.

    Its pieces are compiled at the same time, and linked.
    """
    limit = f"--maxrregcount={registers}"
    best = tuple(x for x in options if x not in (*QUICKLY, COMPACT[0]))
    count = int(text.partition("#define PIECES ")[2].partition("\n")[0])
    each = [(*options, _APART, "-DPROGRAM_ALONE"), (*best, _APART, limit, "-DROUTINES_ALONE")]
    each += [(*options, _APART, limit, f"-DPIECE_ALONE={n + 1}") for n in range(count)]
    with workers(len(each)) as threads:
        codes = list(threads.map(lambda some: compile_text(text, device, some), each))
    cupy().cuda.runtime.free(0)  # makes a context where there is none
    state = driver().linkCreate()
    try:
        for n, code in enumerate(codes):
            driver().linkAddData(state, _CUBIN, code, f"part {n}")
        return driver().linkComplete(state)
    finally:
        driver().linkDestroy(state)


def load_function(code: bytes) -> Function:
    """The function ``run`` of CUDA machine code, loaded on the current device and kept."""
    cupy().cuda.runtime.free(0)  # makes a context where there is none
    module = driver().moduleLoadData(code)
    return Function(module, driver().moduleGetFunction(module, "run"))
