"""From a procedure to machine code that Python calls: from disk, else written and compiled."""

import ast
import ctypes
import hashlib
import inspect
import operator
import os
import re
import textwrap
import time
from functools import cache, cached_property, partial
from threading import RLock
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from kinetree.codegen.cache import open_store
from kinetree.codegen.machine_code import branching_code, load, optimization
from kinetree.codegen.procedures.improving import Job, improve_later
from kinetree.codegen.procedures.language import (
    BOOL,
    FLOAT,
    INT,
    ArrayType,
    address_of,
    builtin,
    has_usual_arrays,
    is_record,
    lanes,
    scope_of,
    spell,
    type_of,
)
from kinetree.codegen.procedures.on_disk import keep_procedures, kept_procedure
from kinetree.codegen.progress import building
from kinetree.errors import TraceError

_LARGE = 2000  # bytes of Python's code
_PLAIN = {FLOAT: ctypes.c_double, INT: ctypes.c_int64, BOOL: ctypes.c_bool}
_lock = RLock()  # of code, and of what calls it
if hasattr(os, "register_at_fork"):  # who holds it would not be there to release it
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


TRIES = 20  # of parsing a text that nothing is wrong with


def _parse(text):
    """Syntax tree of Python text; a lock guards a bug of threads in Python up to 3.11.4."""
    for _ in range(TRIES - 1):
        try:
            return ast.parse(text)
        except SystemError:
            time.sleep(1e-3)
    return ast.parse(text)


class Procedure:
    """A function of the language of procedures; see ``procedure``.

    Attributes:
        function: as Python has it.
        name: its name.
        inline: whether it is always or never put in place of a call; None leaves it to LLVM.
    """

    def __init__(self, function, inline=None):
        self.function, self.name, self.inline = function, function.__name__, inline
        self.__name__, self.__qualname__ = self.name, function.__qualname__
        self.__doc__, self.__module__ = function.__doc__, function.__module__
        self.__wrapped__ = function
        self.find, self._before = scope_of(function), []
        self._code: Any = None
        self._place: Any = None
        self._scope: Any = None  # names of the function of Python that calls the machine code
        self.file, self.first_line = function.__code__.co_filename, function.__code__.co_firstlineno

    def __repr__(self):
        return f"<procedure {self.name}>"

    def __get__(self, instance, owner=None):
        return self

    @cached_property
    def python(self) -> Any:
        """The procedure as plain Python, with all procedures it calls: its reference meaning."""
        f = self.function

        def plain(value):
            return value.python if isinstance(value, Procedure | ProcedureTable) else value

        names = {**f.__globals__}
        names |= {n: plain(names[n]) for n in f.__code__.co_names if n in names}
        cells = tuple(CellType(plain(c.cell_contents)) for c in f.__closure__ or ())
        made = FunctionType(f.__code__, names, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__ = f.__kwdefaults__
        return made

    # --- what its text says ---------------------------------------------------------------------

    @cached_property
    def arguments(self) -> list[tuple[str, Any]]:
        """Names and types of a procedure's arguments."""
        code, given = self.function.__code__, self.function.__annotations__
        names = code.co_varnames[: code.co_argcount]
        if code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            raise self._error("arguments are positional")
        missing = [n for n in names if n not in given]
        if missing:
            raise self._error(f"argument {missing[0]} has no type")
        return [(n, self._type(given[n])) for n in names]

    @cached_property
    def returns(self) -> Any:
        """Type of a procedure's return value."""
        kind = self._type(self.function.__annotations__.get("return"))
        parts = kind if isinstance(kind, tuple) else (kind,)
        if not all(k in (FLOAT, INT, BOOL, None) for k in parts):
            raise self._error(f"it returns numbers only, not {spell(kind)}")
        return kind

    def _type(self, annotation):
        """Type that an annotation means; an error that names procedure and line."""
        try:
            return type_of(annotation, self.find)
        except TraceError as error:
            raise self._error(str(error)) from None

    def _error(self, message):
        """TraceError that names procedure, file and line."""
        return TraceError(f"procedure {self.name}, {self.file}, line {self.first_line}: {message}")

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Default values of a procedure's arguments, by name."""
        values = self.function.__defaults__ or ()
        return (
            dict(zip([n for n, _ in self.arguments][-len(values) :], values, strict=True))
            if values
            else {}
        )

    @cached_property
    def tree(self) -> Any:
        """Syntax tree of the procedure's Python function."""
        lines, self.first_line = inspect.getsourcelines(self.function)
        return _parse(textwrap.dedent("".join(lines))).body[0]

    @cached_property
    def assigned(self) -> set[str]:
        """Names of a procedure's arguments and local variables."""
        return set(self.function.__code__.co_varnames)

    @cached_property
    def changed(self) -> set[str]:
        """Names of arrays that a procedure writes to, itself or by its calls."""
        return self.changed_in(self.tree)

    def changed_in(self, tree) -> set[str]:
        """Names of arrays that a statement writes to, those behind local views included."""
        found: set[str] = set()
        views: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AugAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    parts = target.elts if isinstance(target, ast.Tuple) else [target]
                    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                    for part in parts:
                        if isinstance(part, ast.Subscript) or isinstance(node, ast.AugAssign):
                            found |= _memory_of(part)
                        else:
                            seen = set().union(*map(_memory_of, values))
                            views.setdefault(getattr(part, "id", ""), set()).update(seen)
            elif isinstance(node, ast.Call):
                for callee in self.called_by(node):
                    for (name, _), e in zip(callee.arguments, node.args, strict=False):
                        found |= _memory_of(e) if name in callee.changed else set()
                        fields = [x.partition(".") for x in callee.changed]
                        own = [field for of, _, field in fields if of == name and field]
                        found |= {f"{e.id}.{x}" for x in own if isinstance(e, ast.Name)}
        while True:
            more = set().union(*(views.get(name, set()) for name in found)) - found
            if not more:
                return found
            found |= more

    def called_by(self, call) -> list["Procedure"]:
        """Procedures that a call expression may mean: one, several for a table, none for others."""
        by_number = isinstance(call.func, ast.Subscript)
        name = getattr(call.func.value if by_number else call.func, "id", "")
        found = self.find(name) if name else None
        if isinstance(found, ProcedureTable) and by_number:
            return found.procedures
        return [found] if isinstance(found, Procedure) and not by_number else []

    def module(self, name):
        """The Python module that a name in the procedure means, or None."""
        found = None if name in self.assigned else self.find(name)
        return found if isinstance(found, ModuleType) else None

    @cached_property
    def callees(self) -> list["Procedure"]:
        """Procedures that this one calls directly."""
        code = self.function.__code__
        found = []
        for name in (*code.co_names, *code.co_freevars):
            value = self.find(name)
            found += value.procedures if isinstance(value, ProcedureTable) else [value]
        return list(dict.fromkeys(x for x in found if isinstance(x, Procedure)))

    @cached_property
    def reached(self) -> list["Procedure"]:
        """This procedure and all it calls, directly or not, callees first; no recursion."""
        found: dict[Procedure, None] = {}

        def visit(p, above):
            if p in above:
                cycle = " calls ".join(x.name for x in (*above[above.index(p) :], p))
                raise self._error(f"procedures do not call themselves: {cycle}")
            if p not in found:
                for each in p.callees:
                    visit(each, (*above, p))
                found[p] = None

        visit(self, ())
        return list(found)

    @cached_property
    def uses_lanes(self) -> bool:
        """Whether this procedure, or one it calls, loops over the lanes of a warp."""
        own = any(self.find(n) is lanes for n in self.function.__code__.co_names)
        return own or any(p.uses_lanes for p in self.callees)

    # A large procedure is compiled by itself, together with the smaller ones that it calls.

    @cached_property
    def is_large(self) -> bool:
        """Whether a procedure is compiled as its own module, and not within its callers."""
        size = sum(len(p.function.__code__.co_code) for p in self.members)
        return self.inline is False or (size > _LARGE and self.inline is None)

    @cached_property
    def members(self) -> list["Procedure"]:
        """This procedure and those that are compiled in the same module."""
        found: dict[Procedure, None] = {}

        def visit(p):
            if p not in found:
                for each in p.callees:
                    if not each.is_large:
                        visit(each)
                found[p] = None

        visit(self)
        return list(found)

    @property
    def symbol(self) -> str:
        """Name of the procedure's function in LLVM IR."""
        return f"{self.__module__}.{self.__qualname__}"

    @property
    def entry(self) -> str:
        """Name of the LLVM function that Python calls, with C's calling convention."""
        return f"{self.symbol} from Python"

    @cached_property
    def interface(self) -> str:
        """Digest of what callers' code depends on: name, types, defaults."""
        kinds = [(n, _layout(kind)) for n, kind in self.arguments]
        returns, defaults = spell(self.returns), sorted(self.defaults.items())
        return _digest((self.symbol, self.inline, self.is_large, kinds, returns, defaults))

    @cached_property
    def fingerprint(self) -> str:
        """Digest of all that the procedure's code depends on: bytecode, constants, callees."""
        code = self.function.__code__
        constants = []
        for name in (*code.co_names, *code.co_freevars):
            value = self.find(name)
            if isinstance(value, ModuleType):
                inner = {n: getattr(value, n, None) for n in code.co_names}
                value = {n: x for n, x in inner.items() if isinstance(x, bool | int | float)}
            elif isinstance(value, ProcedureTable):
                value = [(key, p.interface) for key, p in value.all.items()]
            elif isinstance(value, np.ndarray):
                value = (value.dtype.str, value.shape, value.tobytes())
            elif not isinstance(value, bool | int | float | tuple | np.number):
                is_called = isinstance(value, Procedure)
                value = value.interface if is_called else builtin(value)
            constants.append((name, value))
        words = code.co_code, code.co_consts, code.co_varnames
        return _digest((*words, constants, self.interface))

    # --- machine code ---------------------------------------------------------------------------

    def ir(self) -> str:
        """LLVM IR of the module with this procedure and the small ones it calls."""
        from kinetree.codegen.procedures.writer import module_text

        return module_text(self)

    @property
    def title(self) -> str:
        """Name of the procedure in progress messages."""
        package = ".".join(self.function.__module__.split(".")[:2])
        return f"code of {package} ({self.name.strip('_').replace('_', ' ')}), once on this machine"

    # The background brings better code at any time, even while this code is on its way to the first
    # call, so that who reads or replaces code holds the lock: what calls an address is replaced
    # with it, and code that somebody may be in is never let go.

    @property
    def code(self) -> Any:
        """Loaded machine code; compiled without optimisation at first if none is cached."""
        with _lock:
            if self._code is None:
                self._code = self._first_code()
            return self._code

    def _first_code(self):
        """Object code of all parts: the best that is cached, the rest compiled quickly."""
        with building(self.title, 0) as work:
            parts = {p.request: p for p in self.reached if p.is_large or p is self}
            best = {name: kept_procedure(name, 1) for name in parts}
            missing = [name for name, data in best.items() if data is None]
            level = optimization(0)  # 1 where everything is to be optimised at once
            if missing:
                with open_store().alone("procedures"):  # which share parts: one process at a time
                    found = {name: kept_procedure(name, level) for name in missing}
                    new = [name for name, data in found.items() if data is None]
                    work.parts = len(new)
                    texts = {name: parts[name].ir() for name in new}
                    found |= keep_procedures(
                        texts, level, partial(branching_code, advance=work.advance)
                    )
                if not level:
                    improve_later(Job(self, parts, best))
                best |= found
            return load(list(best.values()), 1)

    def use(self, code) -> None:
        """Replace the machine code that runs from the next call on by another of equal results."""
        with _lock:
            self._before.append(self.code)  # which another thread may be in
            self._code = code
            if self._place is not None:
                self._place[0] = code.address(self.entry)
            if self._scope is not None:
                self._scope |= {"__native": self._native(code), "__code": code}

    @property
    def place(self) -> np.ndarray:
        """Array (1,) with the address of the current machine code, which ``bind`` reads."""
        with _lock:
            if self._place is None:
                self._place = np.array([self.code.address(self.entry)], dtype=np.int64)
            return self._place

    @cached_property
    def request(self) -> str:
        """Cache key of the module's object code."""
        text = "\n".join(p.fingerprint for p in self.members)
        return f"{self.name}\n{hashlib.sha256(text.encode()).hexdigest()}"

    @cached_property
    def _call(self):
        """Python function that checks arguments, calls the machine code and returns its results."""
        self.reached  # noqa: B018  errors of the text come first
        several = self.returns if isinstance(self.returns, tuple) else ()
        scope: dict[str, Any] = {
            "__index": operator.index,
            "__address": address_of,
            "__word": lambda x: (ctypes.c_size_t * 3)(0, 0, x),
        }
        head, given, checks = [], [], []
        for n, (name, kind) in enumerate(self.arguments):
            head.append(name)
            if name in self.defaults:
                scope[f"__default_{n}"] = self.defaults[name]
                head[-1] += f"=__default_{n}"
            if isinstance(kind, ArrayType):
                scope |= {f"__kind_{n}": kind, f"__dtype_{n}": kind.dtype, "__ndarray": np.ndarray}
                test = re.sub(r"\bx\b", name, kind.test.replace("ndarray", "__ndarray")).replace(
                    "dtype:", f"__dtype_{n}"
                )
                checks.append(f"if {test}: __kind_{n}.check({name}, '{self.name}: {name}')")
                given.append(f"id({name})" if has_usual_arrays() else f"__word(__address({name}))")
            elif is_record(kind):
                scope[f"__kind_{n}"], scope["__refuse"] = kind, self._refuse
                given.append(f"{name}.pointer")
                checks.append(
                    f"if type({name}) is not __kind_{n}: __refuse({name!r}, {name}, __kind_{n})"
                )
            else:
                given.append(
                    {FLOAT: f"float({name})", INT: f"__index({name})", BOOL: f"bool({name})"}[kind]
                )
        lines = [f"def call({', '.join(head)}):", *(f"  {c}" for c in checks)]
        if several:
            fields = [(f"r{k}", _PLAIN[kind]) for k, kind in enumerate(several)]
            layout: Any = type("Results", (ctypes.Structure,), {"_fields_": fields})
            scope |= {"__layout": layout, "__addressof": ctypes.addressof}
            lines.append("  __r = __layout()")
            lines.append(f"  __native({', '.join([*given, '__addressof(__r)'])})")
            lines.append("  return " + ", ".join(f"__r.r{k}" for k in range(len(several))))
        else:
            lines.append(f"  return __native({', '.join(given)})")
        exec("\n".join(lines), scope)
        with _lock:
            scope |= {"__native": self._native(self.code), "__code": self.code}
            self._scope = scope
        return scope["call"]

    def _native(self, code):
        """The machine code as a ctypes function."""
        types = [_PLAIN.get(kind, ctypes.c_void_p) for _, kind in self.arguments]
        several = isinstance(self.returns, tuple)
        results = None if several else _PLAIN.get(str(self.returns))
        extra = [ctypes.c_void_p] if several else []
        return ctypes.CFUNCTYPE(results, *types, *extra)(code.address(self.entry))

    def _refuse(self, name, value, kind):
        """Raise TypeError for an argument of the wrong type, with the expected one."""
        raise TypeError(
            f"{self.name}: {name} must be a {kind.__name__}, got {type(value).__name__}"
        )

    def __call__(self, *arguments, **named) -> Any:
        """Run the machine code."""
        call = self._call
        # From now on calls go straight to the machine code: this method takes as long as it does.
        direct: Any = type("Procedure", (Procedure,), {"__call__": staticmethod(call)})
        self.__class__ = direct
        return call(*arguments, **named)

    def __reduce__(self):
        return self.__qualname__


class ProcedureTable:
    """Procedures with the same arguments and results, chosen by a number, or by several.

    A procedure calls ``CHOICE[k](...)`` or ``CHOICE[j, k](...)``; compiled, that is a switch.

    Args:
        cases: procedures by number, or by tuple of numbers below ``WORD``.
        otherwise: for all other numbers.
    """

    WORD = 1 << 16

    def __init__(self, cases, otherwise):
        self.cases, self.otherwise = dict(cases), otherwise

    def __getitem__(self, key) -> Any:
        return self.cases.get(key, self.otherwise)

    @property
    def all(self) -> dict[Any, Any]:
        """Procedures of the table by number; key None has the one for all other numbers."""
        return {**self.cases, None: self.otherwise}

    @property
    def procedures(self) -> list[Procedure]:
        """Procedures of the table, each once."""
        return list(dict.fromkeys(self.all.values()))

    @property
    def python(self) -> "ProcedureTable":
        """Table with the procedures as plain Python functions."""
        return ProcedureTable(
            {key: p.python for key, p in self.cases.items()}, self.otherwise.python
        )

    @cached_property
    def numbers(self) -> dict[Procedure, list[int]]:
        """Numbers that select each procedure; several numbers are packed into one word."""
        found: dict[Procedure, list[int]] = {p: [] for p in self.procedures}
        for key, p in self.cases.items():
            number = 0
            for part in key if isinstance(key, tuple) else (key,):
                number = number * self.WORD + part
            if p is not self.otherwise:
                found[p].append(number)
        return found

    def mismatch(self) -> str:
        """Difference between the signatures of the table's procedures, in words; empty if none."""

        def signature(p):
            kinds = ", ".join(spell(kind) for _, kind in p.arguments)
            return f"({kinds}) -> {spell(p.returns)}"

        for p in self.procedures:
            if signature(p) != signature(self.otherwise):
                return (
                    f"{p.name} is {signature(p)}, but {self.otherwise.name} is "
                    f"{signature(self.otherwise)}"
                )
        return ""


def _memory_of(e) -> set[str]:
    """Names of the arrays that an expression may alias, as ``record.field`` where it is a field."""
    if isinstance(e, ast.Name):
        return {e.id}
    if isinstance(e, ast.Attribute) and e.attr != "T" and isinstance(e.value, ast.Name):
        return {f"{e.value.id}.{e.attr}"}
    if isinstance(e, ast.Subscript) or (isinstance(e, ast.Attribute) and e.attr == "T"):
        return _memory_of(e.value)
    if isinstance(e, ast.IfExp):
        return _memory_of(e.body) | _memory_of(e.orelse)
    if isinstance(e, ast.Call) and getattr(e.func, "id", "") == "view":
        return _memory_of(e.args[0])
    return set()


@cache
def _layout(kind):
    """Text of a type, for records with offsets and types of all fields."""
    if not is_record(kind):
        return spell(kind)
    fields = [(n, _layout(k), kind.offsets[n]) for n, k in kind.types.items()]
    return f"{kind.__name__} {_digest((fields, kind.apart))}"


def _digest(parts):
    """Hexadecimal SHA-256 digest of ``repr(parts)``."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def procedure(function: Any = None, *, inline: bool | None = None) -> Any:
    """Decorator: compile a function of the procedure language to machine code on its first call.

    Args:
        function: has types for all arguments and for what it returns.
        inline: True to put it always in place of a call, False never; LLVM decides otherwise.
    """
    if function is None:
        return lambda f: Procedure(f, inline)
    return Procedure(function, inline)
