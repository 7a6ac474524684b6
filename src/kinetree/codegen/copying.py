"""Copies of many arrays in one call: NumPy takes longer to begin a copy than to make it."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from kinetree.codegen.build import code_of
from kinetree.errors import ShapeError

_TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @copy(ptr %table, i64 %count) {
entry:
  br label %head
head:
  %k = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %body, label %end
body:
  %at = mul i64 %k, 3
  %row = getelementptr i64, ptr %table, i64 %at
  %to = load ptr, ptr %row
  %from_at = getelementptr i64, ptr %row, i64 1
  %from = load ptr, ptr %from_at
  %size_at = getelementptr i64, ptr %row, i64 2
  %size = load i64, ptr %size_at
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  %next = add i64 %k, 1
  br label %head
end:
  ret void
}
"""


class Copies:
    """Arrays, each to be written with the numbers of another one; they stay in use.

    Args:
        pairs: arrays to write to, and what to write: contiguous, of the same size and type.
    """

    def __init__(self, pairs: Sequence[tuple[np.ndarray, np.ndarray]]):
        for to, source in pairs:
            whole = to.flags.c_contiguous and source.flags.c_contiguous
            if not whole or (to.shape, to.dtype) != (source.shape, source.dtype):
                raise ShapeError(
                    f"arrays to copy must be contiguous and alike, got {to.dtype} {to.shape} and "
                    f"{source.dtype} {source.shape}"
                )
        self._pairs = pairs
        rows = [(to.ctypes.data, source.ctypes.data, to.nbytes) for to, source in pairs]
        self._table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        self._address = self._table.ctypes.data

    def make(self) -> None:
        """Copy the numbers of every source array to its target array, by machine code."""
        _copy()[0](self._address, len(self._table))


@cache
def _copy() -> tuple[Any, Any]:
    """The compiled C function that copies a table of arrays, with the machine code that owns it."""
    code = code_of(_TEXT)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    return kind(code.address("copy")), code
