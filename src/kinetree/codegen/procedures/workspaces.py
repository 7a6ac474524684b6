"""Workspaces: numbers and small arrays that a procedure has on the stack, given to others as one.

    @workspace
    class Chain:
        count: int
        place: "float[4, 3]"

    @procedure
    def length(start: "float[3]") -> int:
        chain = local(Chain)
        chain.count = 0
        add(chain, start)
        return chain.count

Where a record has addresses of arrays that Python owns, a workspace has the numbers themselves, one
after the other, so that nothing has to be loaded to find them.
"""

import ctypes
import inspect
import math
import sys
from typing import Any

import numpy as np

from kinetree.codegen.procedures.language import (
    BOOL,
    FLOAT,
    INT,
    ArrayType,
    Record,
    field_of_number,
    spell,
    type_of,
    unset_number,
)
from kinetree.errors import TraceError

_WORDS: dict[Any, Any] = {FLOAT: ctypes.c_double, INT: ctypes.c_int64, BOOL: ctypes.c_int64}


class Workspace(Record):
    """One that Python made, as procedures run by Python have them; see ``workspace``."""

    def __init__(self):
        ctypes.Structure.__init__(self)
        self.address = ctypes.addressof(self)
        self.pointer = ctypes.c_void_p(self.address)
        memory: Any = self
        for name, kind in self.types.items():
            if isinstance(kind, ArrayType):
                count, offset = math.prod(kind.dims), self.offsets[name]
                numbers = np.frombuffer(memory, kind.dtype, count, offset).reshape(kind.dims)
                numbers[:] = unset_number(kind.element)
                vars(self)[name] = numbers

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} is work of one call, and is not copied")


def is_workspace(kind) -> bool:
    """Whether a type is a workspace class."""
    return isinstance(kind, type) and issubclass(kind, Workspace)


def workspace(definition: type) -> Any:
    """Class decorator: annotated fields become a workspace on the stack, made by ``local``.

    Fields are ``int``, ``float`` or ``bool``, or arrays of fixed size such as ``"float[4, 3]"``;
    contents are undefined.
    """
    scope = vars(sys.modules[definition.__module__])
    annotations = inspect.get_annotations(definition)
    types = {name: type_of(kind, scope.get) for name, kind in annotations.items()}
    layout = [(f"_{name}", _space(definition, name, kind)) for name, kind in types.items()]
    names = {"__doc__": definition.__doc__, "__module__": definition.__module__}
    made: Any = type(definition.__name__, (Workspace,), {**names, "_fields_": layout})
    made.types, made.defaults = types, {}
    made.offsets = {name: getattr(made, f"_{name}").offset for name in types}
    for name, kind in types.items():
        if not isinstance(kind, ArrayType):
            setattr(made, name, field_of_number(made, name, kind))
    return made


def _space(definition, name, kind):
    """C type of a workspace's field; TraceError unless it is a number or array of fixed size."""
    if isinstance(kind, ArrayType) and None not in kind.dims:
        return _WORDS[kind.element] * math.prod(kind.dims)
    if kind in _WORDS:
        return _WORDS[kind]
    raise TraceError(
        f"{definition.__name__}.{name}: a field of a workspace is int, float, bool or an array of "
        f"fixed size, got {spell(kind)}"
    )
