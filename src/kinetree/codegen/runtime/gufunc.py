"""Compiled loops as real NumPy generalised ufuncs.

NumPy creates ufuncs from C function pointers through its C API; the table of that API is reachable
from Python, so a loop compiled a moment ago becomes a ufunc without any C of ours. Broadcasting,
``out=``, and releasing the interpreter lock come with it.
"""

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

__all__ = ["gufunc", "signature"]

_TYPE_NUMBERS = {"float32": 11, "float64": 12}
_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31  # its place in the API table, fixed since NumPy 1.0


@cache
def _constructor():
    module: Any = getattr(np, "_core", None) or np.core
    capsule = module._multiarray_umath._UFUNC_API
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    p, i, s = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, p, p, p, i, i, i, i, s, s, i, s)
    return prototype(table[_FROM_FUNC_AND_DATA_AND_SIGNATURE])


def signature(program) -> str:
    """Core shapes in NumPy's notation, such as ``(7),(6)->(6,6)``."""

    def shapes(arguments):
        return ",".join("(" + ",".join(map(str, a.shape)) + ")" for a in arguments)

    return f"{shapes(program.inputs)}->{shapes(program.outputs)}"


_TYPES, _OBJECT = 48, 72  # in a ufunc, after what all objects begin with; the same in all versions
_kept = []  # what ufuncs refer to that are not laid out so


def _keep(ufunc, types, memory):
    """Let a ufunc own the memory that it refers to.

    It has a place for an object of its own, which it releases when it goes; only NumPy's
    ``frompyfunc`` uses it otherwise.
    """

    def at(offset):
        return ctypes.c_void_p.from_address(id(ufunc) + object.__basicsize__ + offset)

    is_usual = sys.implementation.name == "cpython" and ctypes.sizeof(ctypes.c_void_p) == 8
    if is_usual and at(_TYPES).value == ctypes.addressof(types) and at(_OBJECT).value is None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
        at(_OBJECT).value = id(memory)
    else:
        _kept.append(memory)


def gufunc(program, dtype, address, status):
    """A ufunc around the loop at ``address``; failed checks are counted at ``status``."""
    count = len(program.inputs) + len(program.outputs)
    functions = (ctypes.c_void_p * 1)(address)
    types = (ctypes.c_char * count)(*[_TYPE_NUMBERS[dtype]] * count)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(status))
    name, doc = program.name.encode(), b"Compiled by kinetree."
    shapes = signature(program).encode()
    ufunc = _constructor()(
        ctypes.addressof(functions), ctypes.addressof(data), ctypes.addressof(types), 1,
        len(program.inputs), len(program.outputs), -1, name, doc, 0, shapes,
    )  # fmt: skip
    _keep(ufunc, types, (functions, types, data, name, doc, shapes, status))
    return ufunc
