"""Arrays between two pages that nobody may touch: code that reads or writes beyond them crashes."""

import ctypes
import mmap
import sys

import numpy as np

HAS_PAGES = sys.platform == "linux"
"""Whether pages can be locked here."""


def guarded(shape, dtype, *, at_end=True) -> np.ndarray:
    """An array of zeros that ends, or begins, where a locked page begins, or ends."""
    size, page = int(np.prod(shape)) * np.dtype(dtype).itemsize, mmap.PAGESIZE
    pages = -(-max(size, 1) // page)
    memory = mmap.mmap(-1, (pages + 2) * page)
    first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for locked in (first, first + (pages + 1) * page):
        assert protect(locked, page, 0) == 0
    offset = (pages + 1) * page - size if at_end else page
    return np.frombuffer(memory, dtype, int(np.prod(shape)), offset).reshape(shape)
