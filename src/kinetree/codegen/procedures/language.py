"""Types of procedures, records, and the functions that only procedures have.

The functions are defined here as Python runs them; the compiler has its own way of writing each.
"""

import builtins
import ctypes
import inspect
import math
import operator
import re
import sys
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from kinetree.errors import ShapeError, TraceError

FLOAT, INT, BOOL = "double", "i64", "i1"
_NUMBERS = {"float": FLOAT, "int": INT, "bool": BOOL}
SPELLED = {FLOAT: "float", INT: "int", BOOL: "bool", None: "None"}
_DTYPES = {FLOAT: np.dtype(np.float64), INT: np.dtype(np.int64)}


@dataclass(frozen=True)
class ArrayType:
    """An array: type of its numbers, and lengths of its axes, of which the first may be None."""

    element: str
    dims: tuple

    def __str__(self):
        return (
            f"{SPELLED[self.element]}[{', '.join(':' if d is None else str(d) for d in self.dims)}]"
        )

    @property
    def dtype(self):
        """NumPy type of the array's numbers."""
        return _DTYPES[self.element]

    @property
    def test(self):
        """Python text of a condition that ``x`` is not an array of this type, shape and layout."""
        tests = ["type(x) is not ndarray", "x.dtype is not dtype:", "not x.flags.c_contiguous"]
        tests.append(f"x.ndim != {len(self.dims)}")
        tests += [f"x.shape[{k}] != {d}" for k, d in enumerate(self.dims) if d is not None]
        return " or ".join(tests)

    def check(self, array: Any, name: str) -> np.ndarray:
        """The array if it has this type, shape and layout; TypeError that names it otherwise."""
        if not (
            isinstance(array, np.ndarray)
            and array.dtype == self.dtype
            and array.flags.c_contiguous
            and array.ndim == len(self.dims)
            and all(d is None or d == n for d, n in zip(self.dims, array.shape, strict=True))
        ):
            got = (
                f"{array.dtype} array of shape {array.shape}"
                + ("" if array.flags.c_contiguous else ", not contiguous")
                if isinstance(array, np.ndarray)
                else type(array).__name__
            )
            raise ShapeError(f"{name} must be a contiguous array {self}, got {got}")
        return array


def spell(kind) -> str:
    """Name of a type of the language of procedures as its users write it."""
    if isinstance(kind, tuple):
        return "(" + ", ".join(map(spell, kind)) + ")"
    return kind.__name__ if isinstance(kind, type) else SPELLED.get(kind) or str(kind)


def type_of(annotation: Any, names) -> Any:
    """The type that an annotation means.

    Args:
        annotation: a class, or text such as ``"float[:, 3]"``.
        names: finds what a name means where it is written.
    """
    if isinstance(annotation, str):
        text = annotation.strip().strip("\"'").strip()
        if text in ("", "None"):
            return None
        if text in _NUMBERS:
            return _NUMBERS[text]
        several = re.fullmatch(r"\((.*)\)|tuple\[(.*)\]", text) or ("," in text and "[" not in text)
        if several:
            inner = (several[1] or several[2]) if isinstance(several, re.Match) else text
            return tuple(type_of(part, names) for part in inner.split(",") if part.strip())
        array = re.fullmatch(r"(int|float)\s*\[(.*)\]", text)
        if array:
            dims = tuple(_length(part.strip(), names) for part in array[2].split(","))
            if None not in dims[1:]:
                return ArrayType(_NUMBERS[array[1]], dims)
        annotation = names(text) if text.isidentifier() else None
    if annotation is None:
        return None
    if getattr(annotation, "__origin__", None) is tuple:
        return tuple(type_of(part, names) for part in annotation.__args__)
    if isinstance(annotation, tuple):
        return tuple(type_of(part, names) for part in annotation)
    kind = (
        _NUMBERS.get(getattr(annotation, "__name__", "")) if isinstance(annotation, type) else None
    )
    if kind or is_record(annotation):
        return kind or annotation
    raise TraceError(
        f"a type in a procedure is int, float, bool, an array such as 'float[:, 3]', "
        f"a record or a tuple of numbers, got {annotation!r}"
    )


def _length(text, names):
    """Length of an array axis in an annotation, a number or a name; None for ``:``."""
    if text == ":":
        return None
    return int(text) if text.isdigit() else operator.index(names(text))


# --- Records -------------------------------------------------------------------------------------


def is_record(kind) -> bool:
    """Whether a type is a record class."""
    return isinstance(kind, type) and issubclass(kind, Record)


class Record(ctypes.Structure):
    """Numbers and arrays that are given to procedures as one pointer; see ``record``."""

    types: dict[str, Any]
    defaults: dict[str, Any]
    apart = False
    _own: dict[str, Any]
    _unset: bytes
    _empty: dict[str, Any]

    def __init__(self, **values):
        super().__init__()
        if "_unset" not in vars(type(self)):
            self._have_defaults()
        self.address = ctypes.addressof(self)
        self.pointer = ctypes.c_void_p(self.address)  # ready to be given to machine code
        unknown = [name for name in values if name not in self.types]
        if unknown:
            raise TypeError(
                f"{type(self).__name__} has no field {unknown[0]!r}, its fields are "
                + ", ".join(self.types)
            )
        ctypes.memmove(self.address, self._unset, len(self._unset))
        vars(self).update(self._empty)
        for name, kind in self._own.items():
            if name not in values:
                setattr(self, name, np.zeros(kind.dims, kind.dtype))
        for name, value in values.items():
            setattr(self, name, value)

    @classmethod
    def _have_defaults(cls):
        """Set the default values of a record class's fields, and which arrays each instance has."""
        blank: Any = cls.__new__(cls)
        ctypes.Structure.__init__(blank)
        arrays = {name: kind for name, kind in cls.types.items() if isinstance(kind, ArrayType)}
        cls._own = {n: kind for n, kind in arrays.items() if None not in kind.dims}
        cls._own = {n: kind for n, kind in cls._own.items() if n not in cls.defaults}
        for name, kind in arrays.items():
            if name not in cls._own and name not in cls.defaults:
                setattr(blank, name, np.zeros([d or 0 for d in kind.dims], kind.dtype))
        for name, value in cls.defaults.items():
            setattr(blank, name, value)
        cls._unset, cls._empty = bytes(blank), dict(vars(blank))

    def __reduce__(self):
        return _made_again, (type(self), {name: getattr(self, name) for name in self.types})

    def __repr__(self):
        found = (f"{name}={getattr(self, name, None)!r}" for name in self.types)
        return f"{type(self).__name__}({', '.join(found)})"


def _made_again(kind, values):
    """Rebuild a record from its class and fields; for pickling."""
    return kind(**values)


def record(definition: Any = None, *, apart: bool = False) -> Any:
    """Class decorator: annotated fields become a record that procedures read and write.

    Fields are ``int``, ``float`` or ``bool``, which both Python and procedures may assign, arrays
    such as ``"float[:, 3]"``, or other records, which only Python assigns. What is not given to the
    constructor is zero, or an array without rows.

    Args:
        definition: the class.
        apart: its arrays do not overlap, neither one another nor those of other records that are
            apart: what is written to one leaves in registers what was read of the others.
    """
    if definition is None:
        return lambda each: record(each, apart=apart)
    scope = {**vars(sys.modules[definition.__module__])}
    annotations = inspect.get_annotations(definition)
    types = {name: type_of(kind, scope.get) for name, kind in annotations.items()}
    given = {name: definition.__dict__[name] for name in types if name in definition.__dict__}
    # Every field is a word, of which a bool is the first byte: memories of worlds are interleaved
    # word by word on a GPU.
    plain = {FLOAT: ctypes.c_double, INT: ctypes.c_int64, BOOL: ctypes.c_int64}
    layout = [(f"_{name}", plain.get(kind, ctypes.c_void_p)) for name, kind in types.items()]
    others = {
        name: value
        for name, value in definition.__dict__.items()
        if name not in types and name not in ("__dict__", "__weakref__", "__annotations__")
    }
    made: Any = type(definition.__name__, (Record,), {**others, "_fields_": layout})
    made.types, made.defaults, made.apart = types, given, apart
    made.offsets = {name: getattr(made, f"_{name}").offset for name in types}
    for name, kind in types.items():
        setattr(made, name, _field(made, name, kind))
    return made


def _field(made, name, kind):
    """Property of a record's field, which checks and converts assigned values."""
    raw = getattr(made, f"_{name}")
    if kind in (FLOAT, INT, BOOL):
        return field_of_number(made, name, kind)
    label = f"{made.__name__}.{name}"
    if isinstance(kind, ArrayType):
        test = kind.test.replace("dtype:", "dtype")
        scope = {"kind": kind, "dtype": kind.dtype, "ndarray": np.ndarray, "put": raw.__set__}
        scope |= {"address": address_of}
        exec(
            f"def put_array(self, x):\n  if {test}: kind.check(x, {label!r})\n"
            f"  put(self, address(x))\n  own = self.__dict__\n  own[{name!r}] = x\n"
            f"  own['has_changed'] = True",
            scope,
        )
        return property(lambda self: self.__dict__[name], scope["put_array"])

    def put(self, value):
        if type(value) is not kind:
            raise TypeError(f"{label} must be a {kind.__name__}, got {type(value).__name__}")
        raw.__set__(self, value.address)
        self.__dict__[name] = value
        self.__dict__["has_changed"] = True

    return property(lambda self: self.__dict__[name], put)


def field_of_number(made: type, name: str, kind: str) -> property:
    """Property of a record's scalar field, which converts assigned values to its type."""
    raw = getattr(made, f"_{name}")
    convert = {FLOAT: float, INT: operator.index, BOOL: bool}[kind]
    get = (lambda self: bool(raw.__get__(self))) if kind == BOOL else raw.__get__
    return property(get, lambda self, value: raw.__set__(self, convert(value)))


DATA = 16  # where CPython's NumPy has the address of the numbers of an array


@cache
def has_usual_arrays() -> bool:
    """Whether NumPy arrays have their data address where the machine code expects it."""
    array = np.zeros(3)
    usual = sys.implementation.name == "cpython" and object.__basicsize__ == DATA
    return usual and ctypes.c_size_t.from_address(id(array) + DATA).value == array.ctypes.data


def address_of(array: np.ndarray, at: Any = ctypes.c_size_t.from_address) -> int:
    """Address of an array's data; faster than ``array.ctypes``."""
    return at(id(array) + DATA).value if has_usual_arrays() else array.ctypes.data


# --- Functions of procedures, as Python runs them ------------------------------------------------


def unset_number(element: str) -> float:
    """Marker of memory that was not written yet: NaN for floats, -2⁶² for ints."""
    return math.nan if element == FLOAT else -(2**62)


class Rounding(float):
    """A constant that stands for rounding errors: ``Rounding(1e-9, single=1e-6)``.

    Procedures in single precision have the other number in its place.
    """

    single: float

    def __new__(cls, double: float, *, single: float):
        """The number in double precision, with the one in single precision."""
        found = super().__new__(cls, double)
        found.single = single
        return found


def local(element: Any, *dims: int) -> Any:
    """Uninitialised array on the stack of a procedure; ``element`` is ``"float"`` or ``"int"``.

    ``low, high = local("float", 2, 3)`` makes two arrays of three numbers, ``local(Chain)`` a
    workspace of that class.
    """
    if isinstance(element, type):
        return element()
    kind = _NUMBERS[element]
    return np.full(dims, unset_number(kind), _DTYPES[kind])


def view(x: np.ndarray, start: int, *dims: int) -> np.ndarray:
    """The array from row ``start`` on; with ``dims``, its numbers seen in that shape."""
    rest = x[start:]
    return rest.reshape(-1)[: math.prod(dims)].reshape(dims) if dims else rest


def vector(*numbers: float) -> np.ndarray:
    """Small array of some numbers, in registers of a procedure."""
    return np.array(numbers, float)


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The scalar product of two small arrays."""
    return float(a @ b)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The vector product of two arrays of three numbers."""
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def sqrt(x: float) -> float:
    """The square root; NaN of a negative number."""
    return math.sqrt(x) if x >= 0 else math.nan


def lanes(count: int, *more: int) -> Any:
    """Numbers below ``count``, in a loop whose turns may be taken in any order, or at once.

    ``for i, j in lanes(n, m)`` goes over pairs: of those that lanes take at the same time, ``j``
    follow one another.

    On a GPU, where lanes of a warp compute a procedure, they share them. All lanes do the same
    outside of such loops; there they may read numbers of arrays, and write those that none of them
    reads before the next such loop. In turns of a loop, variables are those of a lane: what they
    add up to, ``lane_sum`` and ``lane_max`` find afterwards.
    """
    return product(range(count), *map(range, more)) if more else range(count)


def unroll(*bounds: int) -> range:
    """``range`` whose turns follow each other in the code of a GPU, if their number is a constant.

    Numbers of local arrays, whose places are constants then, are in registers.
    """
    return range(*bounds)


def lane_count() -> int:
    """How many lanes share loops over ``lanes``: 1 on a CPU. A constant of the code."""
    return 1


def lane_sum(x: float) -> float:
    """The sum over all lanes of what each has added up in a loop over ``lanes``."""
    return x


def lane_max(x: float) -> float:
    """The largest of what each lane has found in a loop over ``lanes``."""
    return x


def worlds_max(x: int) -> int:
    """The largest of the numbers of all worlds that run in lockstep: the bound of loops.

    On a GPU the lanes of a warp may have several worlds. Loops and branches in which lanes exchange
    or wait must be the same for all of these: a world that has ended, or has fewer turns, goes
    along and writes nothing.
    """
    return x


def invoke(address: int, *arrays: np.ndarray) -> None:
    """Call machine code that takes the addresses of arrays and returns nothing."""
    code = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(address)
    code(*(a.ctypes.data for a in arrays))


def isfinite(x: float) -> bool:
    """Whether a number is neither infinite nor NaN."""
    return math.isfinite(x)


_BUILTINS: dict[Any, str] = {
    sqrt: "sqrt", math.sqrt: "sqrt", np.sqrt: "sqrt", cross: "cross", np.cross: "cross",
    dot: "dot", np.dot: "dot", invoke: "invoke", local: "local", view: "view", vector: "vector",
    isfinite: "isfinite", math.isfinite: "isfinite", np.isfinite: "isfinite",
    math.isnan: "isnan", np.isnan: "isnan",
    lanes: "lanes", lane_count: "lane_count", lane_sum: "lane_sum", lane_max: "lane_max",
    worlds_max: "worlds_max", unroll: "unroll",
    abs: "abs", min: "min", max: "max", float: "float", int: "int", bool: "bool", len: "len",
    math.fabs: "abs", math.floor: "floor", math.ceil: "ceil", math.copysign: "copysign",
    math.sin: "sin", math.cos: "cos", math.tan: "tan", math.atan2: "atan2", math.asin: "asin",
    math.acos: "acos", math.atan: "atan", math.exp: "exp", math.log: "log", math.hypot: "hypot",
    np.sin: "sin", np.cos: "cos", np.arctan2: "atan2",
}  # fmt: skip


def builtin(value: Any) -> str | None:
    """Name that the compiler has for a function of Python, or None."""
    try:
        return _BUILTINS.get(value)
    except TypeError:
        return None


def scope_of(function) -> Any:
    """Lookup of names as a function sees them: closure, module, built-ins."""
    code = function.__code__
    cells: Any = function.__closure__

    def find(name, default=None):
        if name in code.co_freevars:
            return cells[code.co_freevars.index(name)].cell_contents
        return function.__globals__.get(name, getattr(builtins, name, default))

    return find
