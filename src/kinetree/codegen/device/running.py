"""Where worlds are computed: a GPU, or the CPU by the same text and in the same memory."""

import ctypes
import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from kinetree.codegen import nvrtc
from kinetree.codegen.cache import open_store
from kinetree.codegen.device.assembly import link
from kinetree.codegen.device.interleaved import LANES
from kinetree.codegen.device.linking import WORD, Program, device_entry, processor_entry
from kinetree.codegen.keys import program_key
from kinetree.codegen.machine_code import branching_code, load
from kinetree.errors import DeviceError, DeviceMemoryError


def worlds_abreast(count: int, processors: int) -> int:
    """How many of ``count`` worlds share a warp of a GPU with some multiprocessors: a power of two.

    Few where there are few worlds, so that there are warps enough; but as many as share a sector.
    """
    each = max(count // (_WARPS * processors), 1)
    return min(max(1 << (each.bit_length() - 1), _SECTOR), LANES)


_WARPS = 16  # of a multiprocessor, which registers allow
_SECTOR = 4  # words


class Gpu:
    """A GPU, by CuPy.

    Attributes:
        device: its number.
        abreast: worlds that share a warp; 0: by their number.
    """

    device = abreast = 0

    @property
    def processors(self) -> int:
        """Number of multiprocessors of the GPU."""
        return self.xp.cuda.Device(self.device).attributes["MultiProcessorCount"]

    @cached_property
    def xp(self) -> Any:
        """The module ``cupy``, whose arrays lie on the GPU."""
        return nvrtc.cupy()

    @property
    def devices(self) -> int:
        """Number of CUDA devices; DeviceError if the driver finds none."""
        try:
            return self.xp.cuda.runtime.getDeviceCount()
        except self.xp.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(f"CuPy finds no CUDA device: {error}") from error

    def use(self, device: int) -> None:
        """Make a GPU the current device of this object and of CuPy."""
        self.device = device
        self.xp.cuda.Device(device).use()

    def have_room(self, size: int, what: str) -> None:
        """Raise DeviceMemoryError if ``size`` bytes for ``what`` exceed the GPU's free memory."""
        pool = self.xp.get_default_memory_pool()
        free = self.xp.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
        if size > free:
            pool.free_all_blocks()
            raise DeviceMemoryError(
                f"{what} take {size / 1e9:.3g} GB, and {free / 1e9:.3g} GB of device "
                f"{self.device} are free: batch fewer worlds"
            )

    def address(self, array: Any) -> int:
        """Device address of a CuPy array."""
        return array.data.ptr

    def load(self, program: Program, shared: Any) -> Any:
        """Link a program for the GPU; returns its launcher ``(count, images, *places)``."""
        texts = {"main": program.main_text(device_entry(program.entry)), **program.texts}
        module = self.xp.cuda.function.Module()
        module.load(link(texts, self.device))
        where = module.get_global_var("shared_memory")
        address = np.array([self.address(shared)], dtype=np.int64)
        self.xp.cuda.runtime.memcpy(where, address.ctypes.data, 8, 1)  # from the host
        kernel = module.get_function("worlds")

        def start(count, images, *places):
            abreast = self.abreast or worlds_abreast(count, self.processors)
            given = (np.int64(count), np.int64(abreast), images, *map(np.int64, places))
            kernel((-(-count // abreast),), (32,), given)

        return start


class Processor:
    """The CPU, one world after the other: to check text and memories without a GPU."""

    xp: Any = np

    def have_room(self, size: int, what: str) -> None:
        """No check: the CPU counts as having enough memory for ``size`` bytes."""

    def address(self, array: np.ndarray) -> int:
        """Memory address of a NumPy array."""
        return array.ctypes.data

    def load(self, program: Program, shared: np.ndarray) -> Any:
        """Compile a program for the CPU; returns its launcher ``(count, images, *places)``."""
        texts = [program.main_text(processor_entry(program.entry)), *program.texts.values()]
        code = load([object_code(text) for text in texts])
        at = ctypes.c_int64.from_address(code.global_address("shared_memory"))
        at.value = self.address(shared)
        run = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(code.address("worlds"))

        def start(count, images, *places):
            run(count, 1, self.address(images), *places)

        start.code = code  # pyright: ignore[reportFunctionMemberAccess]  stays alive
        return start


def object_code(text: str) -> bytes:
    """Object code of LLVM IR for the CPU, from the disk cache or compiled."""
    key = program_key(f"interleaved {hashlib.sha256(text.encode()).hexdigest()}")
    found = open_store().get(key)
    if found is None:
        (found,) = branching_code([text], 0)
        open_store().put(key, found)
    return found


__all__ = ["LANES", "WORD", "Gpu", "Processor", "object_code"]
