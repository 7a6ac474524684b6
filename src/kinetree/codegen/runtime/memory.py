"""Memory for large results, used again once nobody refers to it.

A fresh page costs more than the numbers written to it: the operating system clears it first. A
program that computes results of one size again and again, and drops the old ones, gets the same
memory back, as long as no array or view of it is alive.
"""

import os
import sys
from math import prod
from threading import Lock

import numpy as np

__all__ = ["KEPT_BYTES", "empty"]

KEPT_BYTES = 256 * 2**20  # at most this much stays with us
_LARGE = 2**16  # bytes; less comes from the allocator's own store
_BLOCKS = 64  # at most so many are looked through
_lock = Lock()
_kept: list[np.ndarray] = []


def empty(shape, dtype):
    """An array of float64 or float32, content arbitrary; no living array shares its memory."""
    size = prod(shape) * (4 if dtype == "float32" else 8)
    if not _LARGE <= size <= KEPT_BYTES or not _counts_references():
        return np.empty(shape, dtype)
    with _lock:
        return _unused(size).view(dtype).reshape(shape)


def _unused(size):
    """Bytes that nobody refers to; the views that arrays are made of refer to them."""
    for k in range(len(_kept)):
        if _kept[k].size == size and sys.getrefcount(_kept[k]) == _ALONE:
            _kept.append(_kept.pop(k))  # the one used last goes last
            return _kept[-1]
    room = KEPT_BYTES - size
    while len(_kept) >= _BLOCKS or sum(block.size for block in _kept) > room:
        del _kept[0]
    _kept.append(np.empty(size, np.uint8))
    return _kept[-1]


def _references_of_one():
    """What the interpreter counts for an object that only a list refers to."""
    one = [np.empty(0)]
    return sys.getrefcount(one[0])


_ALONE = _references_of_one()

if hasattr(os, "register_at_fork"):  # who holds the lock would not be there to release it
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def _counts_references():
    """Whether counts are exact: not without the interpreter lock, nor outside CPython."""
    gil = getattr(sys, "_is_gil_enabled", None)
    return sys.implementation.name == "cpython" and (gil is None or gil())
