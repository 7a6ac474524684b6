"""From a procedure to machine code that Python calls: from disk, else written and compiled."""

import ast
import ctypes
import hashlib
import inspect
import operator
import re
import textwrap
from functools import cached_property
from threading import RLock
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from kinetree.codegen.build import keep_procedures, kept_procedures
from kinetree.codegen.machine_code import load
from kinetree.codegen.procedures.language import (
    BOOL,
    FLOAT,
    INT,
    ArrayType,
    address_of,
    builtin,
    has_usual_arrays,
    is_record,
    scope_of,
    spelled,
    type_of,
)
from kinetree.codegen.progress import building
from kinetree.errors import TraceError

_lock = RLock()


class Procedure:
    """A function of the language of procedures; see ``procedure``.

    Attributes:
        function: as Python has it.
        name: its name.
        inline: whether it is always or never put in the place of a call; None leaves it to LLVM.
    """

    def __init__(self, function, inline=None):
        self.function, self.name, self.inline = function, function.__name__, inline
        self.__name__, self.__doc__, self.__module__ = (
            self.name,
            function.__doc__,
            function.__module__,
        )
        self.__qualname__, self.__wrapped__ = function.__qualname__, function
        self.find = scope_of(function)
        self.file, self.first_line = function.__code__.co_filename, function.__code__.co_firstlineno

    def __repr__(self):
        return f"<procedure {self.name}>"

    def __get__(self, instance, owner=None):
        return self

    @cached_property
    def python(self) -> Any:
        """The same function run by Python, with all procedures that it calls: its meaning."""
        f = self.function

        def plain(value):
            return value.python if isinstance(value, Procedure) else value

        names = {**f.__globals__}
        names |= {n: plain(names[n]) for n in f.__code__.co_names if n in names}
        cells = tuple(CellType(plain(c.cell_contents)) for c in f.__closure__ or ())
        made = FunctionType(f.__code__, names, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__ = f.__kwdefaults__
        return made

    # --- what its text says ---------------------------------------------------------------------

    @cached_property
    def arguments(self) -> list[tuple[str, Any]]:
        """Names and types of its arguments."""
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
        """The type of what it returns."""
        kind = self._type(self.function.__annotations__.get("return"))
        parts = kind if isinstance(kind, tuple) else (kind,)
        if not all(k in (FLOAT, INT, BOOL, None) for k in parts):
            raise self._error(f"it returns numbers only, not {spelled(kind)}")
        return kind

    def _type(self, annotation):
        try:
            return type_of(annotation, self.find)
        except TraceError as error:
            raise self._error(str(error)) from None

    def _error(self, message):
        return TraceError(f"procedure {self.name}, {self.file}, line {self.first_line}: {message}")

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Values of arguments that need not be given."""
        values = self.function.__defaults__ or ()
        return (
            dict(zip([n for n, _ in self.arguments][-len(values) :], values, strict=True))
            if values
            else {}
        )

    @cached_property
    def tree(self) -> Any:
        """Its syntax."""
        lines, self.first_line = inspect.getsourcelines(self.function)
        return ast.parse(textwrap.dedent("".join(lines))).body[0]

    @cached_property
    def assigned(self) -> set[str]:
        """Names of its arguments and variables."""
        return set(self.function.__code__.co_varnames)

    @cached_property
    def changed(self) -> set[str]:
        """Names of arrays that are changed in place."""
        found = set()
        for node in ast.walk(self.tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AugAssign):
                targets = [node.target]
            for target in targets:
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                for each in parts:
                    is_inside = isinstance(each, ast.Subscript)
                    while isinstance(each, ast.Subscript):
                        each = each.value
                    if isinstance(each, ast.Name) and (
                        is_inside or isinstance(node, ast.AugAssign)
                    ):
                        found.add(each.id)
        return found

    def module(self, name):
        """The module of this name, or None."""
        found = None if name in self.assigned else self.find(name)
        return found if isinstance(found, ModuleType) else None

    @cached_property
    def callees(self) -> list["Procedure"]:
        """Procedures that it calls."""
        code = self.function.__code__
        found = [self.find(n) for n in (*code.co_names, *code.co_freevars)]
        return list(dict.fromkeys(x for x in found if isinstance(x, Procedure)))

    @cached_property
    def reached(self) -> list["Procedure"]:
        """It and all procedures that it reaches, the called before the callers."""
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
    def fingerprint(self) -> str:
        """What its code depends on, apart from procedures that it calls."""
        code = self.function.__code__
        constants = []
        for name in (*code.co_names, *code.co_freevars):
            value = self.find(name)
            if isinstance(value, ModuleType):
                inner = {n: getattr(value, n, None) for n in code.co_names}
                value = {n: x for n, x in inner.items() if isinstance(x, bool | int | float)}
            elif isinstance(value, np.ndarray):
                value = (value.dtype.str, value.shape, value.tobytes())
            elif not isinstance(value, bool | int | float | tuple | np.number):
                value = builtin(value) or (value.name if isinstance(value, Procedure) else None)
            constants.append((name, value))
        kinds = [_layout(kind) for _, kind in self.arguments]
        parts = (self.name, self.inline, code.co_code, code.co_consts, code.co_varnames, constants,
                 kinds, spelled(self.returns), sorted(self.defaults.items()))  # fmt: skip
        return repr(parts)

    # --- machine code ---------------------------------------------------------------------------

    def ir(self) -> str:
        """The text of LLVM for it and all that it reaches."""
        from kinetree.codegen.procedures.module import module_text

        return module_text(self)

    @cached_property
    def code(self) -> Any:
        """Machine code, from disk or compiled."""
        with _lock, building(self.name, 1):
            text = "\n".join(p.fingerprint for p in self.reached)
            request = f"{self.name}\n{hashlib.sha256(text.encode()).hexdigest()}"
            data = kept_procedures(request)
            if data is None:
                data = keep_procedures(request, self.ir())
            return load(data, 1)

    @cached_property
    def _call(self):
        """The function of Python that calls the machine code."""
        self.reached  # noqa: B018  errors of the text come first
        plain = {FLOAT: ctypes.c_double, INT: ctypes.c_int64, BOOL: ctypes.c_bool}
        types = [plain.get(kind, ctypes.c_void_p) for _, kind in self.arguments]
        several = self.returns if isinstance(self.returns, tuple) else ()
        results = None if several else plain.get(self.returns)
        extra = [ctypes.c_void_p] if several else []
        native = ctypes.CFUNCTYPE(results, *types, *extra)(self.code.address("entry"))
        scope: dict[str, Any] = {
            "native": native,
            "index": operator.index,
            "code": self.code,
            "address": address_of,
            "word": lambda x: (ctypes.c_size_t * 3)(0, 0, x),
        }
        head, given, checks = [], [], []
        for n, (name, kind) in enumerate(self.arguments):
            head.append(name)
            if name in self.defaults:
                scope[f"default_{n}"] = self.defaults[name]
                head[-1] += f"=default_{n}"
            if isinstance(kind, ArrayType):
                scope |= {f"kind_{n}": kind, f"dtype_{n}": kind.dtype, "ndarray": np.ndarray}
                test = re.sub(r"\bx\b", name, kind.test).replace("dtype:", f"dtype_{n}")
                checks.append(f"if {test}: kind_{n}.checked({name}, '{self.name}: {name}')")
                given.append(f"id({name})" if has_usual_arrays() else f"word(address({name}))")
            elif is_record(kind):
                scope[f"kind_{n}"], scope["refuse"] = kind, self._refuse
                given.append(f"{name}.address")
                checks.append(
                    f"if type({name}) is not kind_{n}: refuse({name!r}, {name}, kind_{n})"
                )
            else:
                given.append(
                    {FLOAT: f"float({name})", INT: f"index({name})", BOOL: f"bool({name})"}[kind]
                )
        lines = [f"def call({', '.join(head)}):", *(f"  {c}" for c in checks)]
        if several:
            fields = [(f"r{k}", plain[kind]) for k, kind in enumerate(several)]
            layout: Any = type("Results", (ctypes.Structure,), {"_fields_": fields})
            scope |= {"layout": layout, "addressof": ctypes.addressof}
            lines += ["  r = layout()", f"  native({', '.join([*given, 'addressof(r)'])})",
                      "  return " + ", ".join(f"r.r{k}" for k in range(len(several)))]  # fmt: skip
        else:
            lines.append(f"  return native({', '.join(given)})")
        exec("\n".join(lines), scope)
        return scope["call"]

    def _refuse(self, name, value, kind):
        raise TypeError(
            f"{self.name}: {name} must be a {kind.__name__}, got {type(value).__name__}"
        )

    def __call__(self, *arguments, **named) -> Any:
        """Run the machine code."""
        return self._call(*arguments, **named)


def _layout(kind):
    """A type with all that code depends on."""
    if not is_record(kind):
        return spelled(kind)
    return kind.__name__, [(n, _layout(k), kind.offsets[n]) for n, k in kind.types.items()]


def procedure(function: Any = None, *, inline: bool | None = None) -> Any:
    """A function of the language of procedures: run as machine code, compiled when first called.

    Args:
        function: has types for all arguments and for what it returns.
        inline: True to put it always in the place of a call, False never; LLVM decides otherwise.
    """
    if function is None:
        return lambda f: Procedure(f, inline)
    return Procedure(function, inline)
