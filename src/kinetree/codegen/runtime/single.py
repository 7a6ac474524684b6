"""The machine code of ``render.llvm_single`` as a Python callable."""

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

from kinetree.codegen.render.llvm_single import (
    CONTIGUOUS_AND_ALIGNED,
    DATA,
    DESCRIPTOR,
    DIMENSIONS,
    FLAGS,
    HOST,
    NDIM,
    TYPE,
)

_ARRAY_TYPE, _RETURN, _NEW_ARRAY = 2, 76, 93  # places in NumPy's API table, fixed since NumPy 1.0
METH_FASTCALL = 0x0080
_METH_FASTCALL_KEYWORDS = METH_FASTCALL | 0x0002
_HAVE_VECTORCALL = 1 << 11  # Py_TPFLAGS_HAVE_VECTORCALL
_VECTORCALL_OFFSET = 56  # of the field tp_vectorcall_offset in a type object


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]  # fmt: skip


@cache
def has_usual_objects() -> bool:
    """Whether CPython objects have the memory layout that the machine code expects.

    Not on other Pythons than CPython, nor on builds without the interpreter lock, whose object
    headers are larger.
    """
    return (
        sys.implementation.name == "cpython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and object.__basicsize__ == 16
        and sys.byteorder == "little"
        and _arrays_are_as_expected()
    )


def _arrays_are_as_expected():
    """Whether NumPy arrays have their fields at the offsets that the machine code uses."""
    array = np.zeros((2, 3), order="F")

    def field(offset, kind: type = ctypes.c_int64) -> int:
        return kind.from_address(id(array) + offset).value

    shape = (ctypes.c_int64 * 2).from_address(field(DIMENSIONS))
    return (
        field(TYPE) == id(np.ndarray)
        and field(DATA) == array.ctypes.data
        and field(NDIM, ctypes.c_int32) == 2
        and tuple(shape) == array.shape
        and field(DESCRIPTOR) == id(array.dtype)
        and field(FLAGS, ctypes.c_int32) & CONTIGUOUS_AND_ALIGNED == CONTIGUOUS_AND_ALIGNED - 1
    )


@cache
def _array_api():
    """NumPy's table of C functions, as an array of addresses."""
    module: Any = getattr(np, "_core", None) or np.core
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(
        get(module._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p)
    )


def _address(function):
    """Address of a C function of ctypes."""
    return ctypes.cast(function, ctypes.c_void_p).value


def _vectorcall(full):
    """Address of the C function that calls ``full`` by the vectorcall protocol (PEP 590).

    Before Python 3.11, ``PyObject_Vectorcall`` is not a symbol of the interpreter but inlined by
    its header. What it does is done here, once: the type says where in the object the function is.
    """
    exported = getattr(ctypes.pythonapi, "PyObject_Vectorcall", None)
    if exported is not None:
        return _address(exported)
    kind = type(full)
    if not kind.__flags__ & _HAVE_VECTORCALL:
        raise TypeError(f"the full path must have a vectorcall, {kind.__name__} has none")
    offset = ctypes.c_ssize_t.from_address(id(kind) + _VECTORCALL_OFFSET).value
    return ctypes.c_void_p.from_address(id(full) + offset).value


class _Module(str):
    """The module of a built-in function, which keeps what the function refers to.

    CPython releases it after it has looked at the function's definition for the last time. The code
    is kept as well: a kernel may have changed to other code while someone calls this.
    """

    method: Any
    keeps: Any


def built_in(name: str, address: int, flags: int, own: Any, keeps: tuple) -> Any:
    """Built-in Python function from the address of machine code.

    Args:
        name: of the function.
        address: of its machine code.
        flags: how that takes its arguments.
        own: its ``self``.
        keeps: what must stay as long as the function does.
    """
    method = _MethodDef(name.encode(), address, flags, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    module = _Module(__name__)
    module.method, module.keeps = method, keeps
    return new(ctypes.addressof(method), own, module)


ANY_NUMBER = 2**62


def single_call(name, dtype, full, alone=None, wide=None, most=0):
    """Python callable by machine code for plain arrays, which falls back to ``full``.

    Args:
        name: of the kernel, for Python.
        dtype: type of its arrays.
        full: the full path.
        alone: machine code for single samples, if there is some yet.
        wide: machine code for batches, if there is some yet.
        most: samples in a batch that still goes the lean path.
    """
    if not has_usual_objects():
        return full
    code: Any = alone or wide
    python, descriptor = ctypes.pythonapi, np.dtype(dtype)
    values = {
        "array_type": _array_api()[_ARRAY_TYPE],
        "descriptor": id(descriptor),
        "new_array": _array_api()[_NEW_ARRAY],
        "vectorcall": _vectorcall(full),
        "new_tuple": _address(python.PyTuple_New),
        "set_item": _address(python.PyTuple_SetItem),
        "release": _address(python.Py_DecRef),
        "as_scalar": _array_api()[_RETURN],
        "type_number": descriptor.num,
        "alone": None if alone is None else 1,
        "loop": None if wide is None else wide.address("loop"),
        "most": most,
        "left": ANY_NUMBER,
    }
    host = (ctypes.c_void_p * len(HOST)).from_address(code.global_address("host"))
    for k, key in enumerate(HOST):
        if key != "loop" or wide is not None:  # others may share the code, and its loop
            host[k] = values[key]
    code.keeps(wide)
    keeps = descriptor, alone, wide
    return built_in(name, code.address("single"), _METH_FASTCALL_KEYWORDS, full, keeps)


def left_of(alone, wide):
    """C integer in machine code: samples that may still run before ``full`` is called."""
    address = (alone or wide).global_address("host") + 8 * HOST.index("left")
    return ctypes.c_int64.from_address(address)


# --- Compiled loops as real NumPy generalised ufuncs ---------------------------------------------
# NumPy creates ufuncs from C function pointers through its C API; the table of that API is
# reachable from Python, so a loop compiled a moment ago becomes a ufunc without any C code.
# Broadcasting, ``out=``, and releasing the interpreter lock come with it.

_TYPE_NUMBERS = {"float32": 11, "float64": 12}
_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31  # its place in the API table, fixed since NumPy 1.0


@cache
def _constructor():
    """NumPy's C function that makes universal functions."""
    module: Any = getattr(np, "_core", None) or np.core
    capsule = module._multiarray_umath._UFUNC_API
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    p, i, s = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, p, p, p, i, i, i, i, s, s, i, s)
    return prototype(table[_FROM_FUNC_AND_DATA_AND_SIGNATURE])


def signature(program) -> str:
    """NumPy signature of the core shapes, e.g. ``(7),(6)->(6,6)``."""

    def shapes(arguments):
        return ",".join("(" + ",".join(map(str, a.shape)) + ")" for a in arguments)

    return f"{shapes(program.inputs)}->{shapes(program.outputs)}"


_TYPES, _OBJECT = 48, 72  # in a ufunc, after what all objects begin with; the same in all versions
_kept = []  # what ufuncs refer to that are not laid out so


def _keep(ufunc, types, memory):
    """Let a ufunc own memory that it refers to, so that both are freed together.

    It has a place for its own object, which it releases when it goes; only NumPy's
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
    """Universal function around machine code at ``address``; failures count at ``status``."""
    count = len(program.inputs) + len(program.outputs)
    functions = (ctypes.c_void_p * 1)(address)
    types = (ctypes.c_char * count)(*[_TYPE_NUMBERS[dtype]] * count)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(status))
    name, doc = program.name.encode(), b"Compiled by kinetree."
    shapes = signature(program).encode()
    ufunc = _constructor()(
        ctypes.addressof(functions),
        ctypes.addressof(data),
        ctypes.addressof(types),
        1,
        len(program.inputs),
        len(program.outputs),
        -1,
        name,
        doc,
        0,
        shapes,
    )
    _keep(ufunc, types, (functions, types, data, name, doc, shapes, status))
    return ufunc
