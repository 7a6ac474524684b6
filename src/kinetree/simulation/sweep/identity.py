"""A digest of what a sweep is about, so that only its own results are ever taken up again.

Functions count by what they do: byte code, constants, defaults and what they close over. What they
read from global variables, and what the functions do that they call, no digest covers.
"""

import functools
import hashlib
import types
from dataclasses import fields, is_dataclass

import numpy as np

from kinetree.functional.kernel import UserKernel
from kinetree.model import Model

__all__ = ["digest"]


def digest(*things) -> str:
    """SHA-256 over the content of things, as a hexadecimal string."""
    state = hashlib.sha256()
    for thing in things:
        _describe(thing, state.update, set())
    return state.hexdigest()


def _describe(x, add, seen):
    """Bytes that describe ``x``, each handed to ``add``; what contains itself is met once."""
    if isinstance(x, (str, bytes, int, float, complex, bool, type(None))):
        add(f"{type(x).__name__}:{x!r};".encode())
    elif isinstance(x, np.ndarray) and x.dtype != object:
        add(f"array:{x.dtype.str}{x.shape};".encode() + np.ascontiguousarray(x).tobytes())
    elif isinstance(x, np.generic):
        _describe(np.asarray(x), add, seen)
    elif isinstance(x, Model):
        add(f"model:{x.fingerprint};".encode())
    elif id(x) in seen:
        add(b"again;")
    else:
        _describe_parts(x, add, seen | {id(x)})


def _describe_parts(x, add, seen):
    kind, parts = _parts(x)
    add(f"{kind}{len(parts)}(".encode())
    for part in parts:
        _describe(part, add, seen)
    add(b")")


def _parts(x):
    """The kind of a thing and what it consists of."""
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    if isinstance(x, (list, tuple)):
        return kind, list(x)
    if isinstance(x, np.ndarray):
        return f"{kind}{x.shape}", x.ravel().tolist()
    if isinstance(x, dict):
        return kind, [part for item in x.items() for part in item]
    if isinstance(x, (set, frozenset)):
        return kind, sorted(x, key=repr)
    if isinstance(x, UserKernel):
        return kind, [x.function]
    if isinstance(x, functools.partial):
        return kind, [x.func, x.args, x.keywords]
    if isinstance(x, types.MethodType):
        return kind, [x.__func__, x.__self__]
    if isinstance(x, types.FunctionType):
        inside = [_content(cell) for cell in x.__closure__ or ()]
        return kind, [x.__qualname__, x.__code__, x.__defaults__, x.__kwdefaults__, inside]
    if isinstance(x, types.CodeType):
        return kind, [x.co_code, x.co_names, x.co_consts]
    if isinstance(x, type) or (type(x).__repr__ is not object.__repr__ and not is_dataclass(x)):
        return kind, [repr(x)]
    names = [f.name for f in fields(x)] if is_dataclass(x) else sorted(getattr(x, "__dict__", {}))
    return kind, [part for name in names for part in (name, getattr(x, name))]


def _content(cell):
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return None
