"""A procedure with its record given, as a built-in function of Python.

A call through ctypes takes a microsecond, a tenth of a step of a few bodies. Here machine code
reads numbers from Python's arguments itself, and lets other threads run meanwhile, as ctypes does.
"""

import ctypes
from functools import cache, partial
from typing import Any

import numpy as np

from kinetree.codegen.build import code_of
from kinetree.codegen.procedures.language import BOOL, DATA, INT
from kinetree.codegen.procedures.native import Procedure
from kinetree.codegen.procedures.text import text_of
from kinetree.codegen.runtime.single import METH_FASTCALL, built_in, has_usual_objects

_HOST = {
    "integer": "PyLong_AsLongLong",
    "failed": "PyErr_Occurred",
    "refuse": "PyErr_BadArgument",
    "leave": "PyEval_SaveThread",
    "enter": "PyEval_RestoreThread",
    "result": "PyLong_FromLongLong",
}
"""Functions of the interpreter, by what the machine code calls them."""


def bind(procedure: Procedure, record: Any) -> Any:
    """Bind a procedure to its record: a fast Python function of the remaining integer arguments.

    Args:
        procedure: takes a record first, and returns an integer.
        record: given in every call; the function keeps it.
    """
    if not has_usual_objects():
        return partial(procedure, record)
    if type(record) is not procedure.arguments[0][1]:
        procedure._refuse(procedure.arguments[0][0], record, procedure.arguments[0][1])
    kinds = tuple(kind for _, kind in procedure.arguments[1:])
    if procedure.returns != INT or not {*kinds} <= {INT, BOOL}:
        raise TypeError(f"{procedure!r} cannot be bound: it takes or returns other than integers")
    host = [_address(name) for name in _HOST.values()]
    given = np.array([procedure.place.ctypes.data, record.address, *host], dtype=np.int64)
    code = _code(kinds)
    keeps = procedure, record, code
    return built_in(procedure.name, code.address("call"), METH_FASTCALL, given, keeps)


def _address(name):
    """Address of a function of CPython's C API."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def _code(kinds):
    """Machine code of the Python function that takes arguments of these kinds."""
    return code_of(_text(kinds))


def _text(kinds) -> str:
    """LLVM IR of the Python function that a bound procedure is, by PEP 590's vectorcall."""
    names = ["place", "record", *_HOST]
    lines = [
        "define ptr @call(ptr %self, ptr %args, i64 %count) {",
        f"  %data = getelementptr i8, ptr %self, i64 {DATA}",
        "  %given = load ptr, ptr %data",
    ]
    for k, name in enumerate(names):
        lines += [
            f"  %{name}_at = getelementptr ptr, ptr %given, i64 {k}",
            f"  %{name} = load ptr, ptr %{name}_at",
        ]
    lines += [
        f"  %fits = icmp eq i64 %count, {len(kinds)}",
        "  br i1 %fits, label %read, label %refused",
        "refused:",
        "  %ignored = call i32 %refuse()",
        "  ret ptr null",
        "read:",
    ]
    passed = ["ptr %record"]
    for k, kind in enumerate(kinds):
        lines += [
            f"  %a{k}_at = getelementptr ptr, ptr %args, i64 {k}",
            f"  %a{k} = load ptr, ptr %a{k}_at",
            f"  %n{k} = call i64 %integer(ptr %a{k})",
        ]
        if kind == BOOL:
            lines.append(f"  %x{k} = icmp ne i64 %n{k}, 0")
            passed.append(f"i1 zeroext %x{k}")
        else:
            passed.append(f"{text_of(kind)} %n{k}")
    lines += [
        "  %error = call ptr %failed()",
        "  %fine = icmp eq ptr %error, null",
        "  br i1 %fine, label %run, label %wrong",
        "wrong:",
        "  ret ptr null",
        "run:",
        "  %code = load ptr, ptr %place",
        "  %thread = call ptr %leave()",
        f"  %found = call i64 %code({', '.join(passed)})",
        "  call void %enter(ptr %thread)",
        "  %answer = call ptr %result(i64 %found)",
        "  ret ptr %answer",
        "}",
    ]
    return "\n".join(lines) + "\n"
