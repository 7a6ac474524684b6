"""Wrong arguments of public functions: the errors that follow are errors of kinetree.

A call that succeeds is not looked at. When an exception that is not one of kinetree's leaves a
public function, its arguments are compared with the annotated signature, and an ``ArgumentError``
is raised that names those that do not fit. It is also the exception that it replaces, so that
``except TypeError`` works as it did. Exceptions of users' own functions, such as controllers, pass
through untouched.
"""

import inspect
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache, wraps
from math import isnan
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from kinetree.errors import ArgumentError, KinetreeError, joined_class
from kinetree.spelling import EXPLAINED, explain_call, from_textbook

F = TypeVar("F", bound=Callable[..., Any])

_KINDS = (
    FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, OSError, KeyError,
    IndexError, LookupError, OverflowError, ZeroDivisionError, FloatingPointError, ArithmeticError,
    NotImplementedError, RecursionError, RuntimeError, AttributeError, TypeError, ValueError,
    AssertionError,
)  # fmt: skip
"""Exceptions that an ``ArgumentError`` can be, too, the special before the general."""
_PASS = (KinetreeError, Warning, StopIteration, StopAsyncIteration, ImportError, MemoryError)
_LIBRARIES = {"kinetree", "numpy", "scipy", "lxml", "mujoco", "pinocchio", "sympy", "matplotlib",
              "imageio", "trimesh", "xarray", "pandas", "pyarrow", "llvmlite", "viser", "PIL",
              "mpmath"}  # fmt: skip
_MARK, _DOOR = "_is_guarded", "_guarded_by"
_SPECIAL = ("__init__", "__call__", "__getitem__")
"""Methods that are public without being called so; operators check their operands themselves."""


def with_guard(function: F) -> F:
    """Decorator: errors from wrong arguments of a public function become kinetree's.

    One that explains wrong arguments still does, without another call in between: a world takes a
    step in microseconds.
    """
    if hasattr(function, _MARK) or inspect.isgeneratorfunction(function):
        return function
    if (known := getattr(function, _DOOR, None)) is not None:  # under another name
        return known
    inside = getattr(function, EXPLAINED, function)

    @wraps(function)
    def door(*args, **named):
        try:
            return inside(*args, **named)
        except _PASS:
            raise
        except Exception as error:
            if not _is_of_libraries(error):
                raise
            found = error if inside is function else _explain(inside, error)
            raise _ours(function, args, named, found) from error

    setattr(door, _MARK, True)
    setattr(function, _DOOR, door)
    return door  # pyright: ignore[reportReturnType]


def _explain(function, error):
    """Error with suggestions for a wrong argument name."""
    try:
        if isinstance(error, TypeError):
            explain_call(function, error)
    except TypeError as better:
        return better
    return error


def guard(found: Any) -> Any:
    """Guard the arguments of a function, or of a class's constructor and public methods."""
    if inspect.isfunction(found):
        return _replace_by_guarded(found)
    if inspect.isclass(found) and not issubclass(found, BaseException):
        for kind in found.__mro__:
            if kind.__module__.startswith("kinetree."):
                _guard_class(kind)
    return found


def text_getter(package: str, texts: Mapping[str, str | tuple[str, ...]]) -> Callable[[str], Any]:
    """Function ``__getattr__`` of a package for public names of ``kinetree.textbook``.

    Args:
        package: its name.
        texts: public names by text; one name alone is that of the text as a whole.
    """
    text_of = {name: text for text, names in texts.items() for name in _names_of(names)}

    def getter(name: str) -> Any:
        if name not in text_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        text = text_of[name]
        found = guard(from_textbook(text, None if texts[text] == name else name))
        setattr(sys.modules[package], name, found)
        return found

    return getter


def _names_of(names):
    """Tuple of one or several names."""
    return (names,) if isinstance(names, str) else names


def missing_guards(found: Any) -> list[str]:
    """Names of a public function, or of a class's methods, that lack a guard."""
    if inspect.isfunction(found):
        return [] if _has_guard(found) else [found.__qualname__]
    if not inspect.isclass(found) or issubclass(found, BaseException):
        return []
    return [
        f"{kind.__qualname__}.{name}"
        for kind in found.__mro__
        if kind.__module__.startswith("kinetree.")
        for name, function in _methods(kind)
        if not _has_guard(function)
    ]


def public_methods(kind: type) -> list[str]:
    """Names of a class's constructor and public methods, inherited ones included."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("kinetree.")]
    return sorted({name for base in bases for name, _ in _methods(base)})


def guard_module(name: str) -> None:
    """Guard everything in a public module's ``__all__``; called at the module's end."""
    module = sys.modules[name]
    for name in vars(module).get("__all__", ()):
        found = vars(module).get(name)
        if str(getattr(found, "__module__", "")).startswith("kinetree."):
            setattr(module, name, guard(found))


def _has_guard(function):
    """Whether a function's arguments are guarded."""
    return hasattr(function, _MARK) or hasattr(function, "definition")


def _replace_by_guarded(function):
    """Guarded function that replaces the original, also for pickle."""
    if _has_guard(function):
        return function
    door, home = with_guard(function), sys.modules.get(function.__module__)
    if home is not None and vars(home).get(function.__name__) is function:
        setattr(home, function.__name__, door)
    return door


def _guard_class(kind):
    """Guard the methods of a class and its bases, once."""
    if _MARK in vars(kind):
        return
    setattr(kind, _MARK, True)
    for name, function in _methods(kind):
        member, door = vars(kind)[name], with_guard(function)
        is_bound = isinstance(member, (classmethod, staticmethod))
        setattr(kind, name, type(member)(door) if is_bound else door)
    for name, member in list(vars(kind).items()):
        if isinstance(member, property) and member.fset is not None and name[0] != "_":
            setattr(kind, name, member.setter(with_guard(member.fset)))


def _methods(kind):
    """Names and functions of a class's constructor and public methods."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        if not inspect.isfunction(member) or inspect.isgeneratorfunction(member):
            continue
        yield name, member


# --- errors --------------------------------------------------------------------------------------


def _ours(function, args, named, error):
    """Kinetree error that replaces an exception from wrong arguments."""
    theirs = next((kind for kind in _KINDS if isinstance(error, kind)), ValueError)
    name = _name(function)
    text = str(error) or type(error).__name__
    text = text if name.rpartition(".")[2] in text else f"{name}: {text}"
    explained = "it is called as" in text or "has no argument" in text
    more = "" if explained else f"; {_complaint(function, args, named)}"
    return joined_class(ArgumentError, theirs)(text + more)


def _name(function):
    """Name of a function in messages."""
    name = function.__qualname__.removesuffix(".__init__")
    return name.rpartition("<locals>.")[2]


def _is_of_libraries(error):
    """Whether an exception comes from kinetree or its libraries, not from user code."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        written = trace.tb_frame.f_code.co_filename.startswith("<")
        if not written and module not in _LIBRARIES and module not in sys.stdlib_module_names:
            return False
        trace = trace.tb_next
    return True


def _complaint(function, args, named):
    """Text about arguments that do not fit their annotations; or about all arguments."""
    try:
        given = inspect.signature(function).bind(*args, **named).arguments
    except TypeError:
        return f"it is called as {_name(function)}{_signature_text(function)}"
    hints, wrong = _hints(inspect.unwrap(function)), []
    given = {n: x for n, x in given.items() if n not in ("self", "cls")}
    for name, value in given.items():
        if name in hints and not fits(value, hints[name]):
            wrong.append(f"{name} must be {_spell(hints[name])}, got {_short(value)}")
    if wrong:
        return "; ".join(wrong)
    return "it was given " + ", ".join(f"{n}={_short(x)}" for n, x in given.items())


def _signature_text(function):
    """Signature of a function as text, ``(...)`` where it is long."""
    text = str(inspect.signature(function))
    return text if len(text) < 200 else "(...)"


@cache
def _hints(function):
    """Annotations of a function's parameters that can be evaluated."""
    try:
        return typing.get_type_hints(function)
    except Exception:  # a name that is not there at run time
        return {n: x for n, x in function.__annotations__.items() if not isinstance(x, str)}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value fits an annotation; True where that cannot be told."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inside)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inside)
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool) and not isnan(value)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    kind = origin or hint
    if kind is Callable:
        return callable(value)
    if inspect.isclass(kind) and kind is not object:
        try:
            return isinstance(value, kind)
        except TypeError:  # a protocol
            return True
    return True


def _spell(hint):
    """Annotation as users write it."""
    if inspect.isclass(hint) and not get_args(hint):
        return "None" if hint is type(None) else hint.__name__
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(map(_spell, get_args(hint)))
    return str(hint).replace("typing.", "").replace("collections.abc.", "")


_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = 40


def _short(value):
    """Value as short text; arrays by their shapes."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    try:
        text = _SHORT.repr(value)
    except Exception:  # objects of strangers may not even have that
        text = ""
    return text if 0 < len(text) < 60 and not text.startswith("<") else f"a {type(value).__name__}"
