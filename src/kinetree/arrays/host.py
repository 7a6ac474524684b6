"""Functions that compute on the CPU, in Python: foreign arrays are copied there and back."""

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from kinetree.arrays.kinds import common, is_foreign, kind_of, module_of
from kinetree.errors import ArrayKindError, KinetreeError, refuse_formulas
from kinetree.spelling import explain_call

F = TypeVar("F", bound=Callable[..., Any])


def on_host_unless(stays: Callable[[dict], bool]) -> Callable[[F], F]:
    """Decorator ``on_host`` that leaves some arguments, by name, unconverted."""
    return lambda function: on_host(function, stays)


def on_host(function: F, stays: Callable[[dict], bool] | None = None) -> F:
    """Decorator: a function of NumPy arrays takes and returns arrays of other libraries.

    Arrays may be in lists, dicts and dataclasses, too. Their numbers are copied to the CPU, and
    those of arrays in the result to where the arrays were; single numbers stay numbers. Derivatives
    stop here, with an error. Arguments for which ``stays`` holds are left as they are.
    """
    signature = inspect.signature(function)
    name = function.__name__

    def answer(args, options):
        """Value of the function; errors name it, and formulas where it needs numbers."""
        try:
            return function(*args, **options)
        except KinetreeError as error:
            if not name.startswith("_"):
                error.put_name(name)
            raise
        except (TypeError, AttributeError) as error:
            refuse_formulas(name.lstrip("_"), args, error)
            if isinstance(error, TypeError):
                explain_call(function, error)
            raise

    @functools.wraps(function)
    def wrapped(*args, **options) -> Any:
        found = []
        for x in (*args, *options.values()):
            if type(x) is not np.ndarray:
                _collect(x, found)
        if not found:
            return answer(args, options)
        try:
            bound = signature.bind(*args, **options)
        except TypeError:
            return answer(args, options)  # which says what is wrong
        if stays is not None and stays(bound.arguments):
            return answer(args, options)
        kind = _kind(function.__name__.lstrip("_"), bound.arguments)
        for name, x in bound.arguments.items():
            bound.arguments[name] = _map(x, is_foreign, kind.to_numpy)
        result = answer(bound.args, bound.kwargs)
        return _map(result, _is_numeric, lambda x: kind.convert(x, found[0]))

    if stays is None:
        wrapped.is_on_host = True  # pyright: ignore[reportAttributeAccessIssue]
    return wrapped  # pyright: ignore[reportReturnType]


def _kind(function, arguments):
    """Module for the arguments' array library; an error if derivatives of one are recorded."""
    named = {}
    for name, x in arguments.items():
        arrays: list = []
        _collect(x, arrays)
        named.update({f"{name} {k}" if k else name: a for k, a in enumerate(arrays)})
    names = [_Name(n) for n in named]
    kind = module_of(common(function, names, list(named.values())))
    for name, x in named.items():
        if kind.is_followed(x):
            raise ArrayKindError(
                f"{function} computes on the CPU, in Python: it has no derivative, nor can it be "
                f"traced by {kind_of(x)}: detach {name} first, or call it outside the "
                f"transformation"
            )
    return kind


@dataclasses.dataclass(frozen=True)
class _Name:
    """Name and shape of an argument, as ``common`` needs them."""

    name: str
    shape = ()


def _parts(x):
    """Members of a list, dict or dataclass; empty for anything else."""
    if isinstance(x, (list, tuple)):
        return x
    if isinstance(x, dict):
        return x.values()
    if _is_record(x):
        return [getattr(x, f.name) for f in dataclasses.fields(x)]
    return ()


def _is_record(x):
    """Whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(x) and not isinstance(x, type)


def _collect(x, found):
    """Append arrays of other libraries in ``x`` to the list ``found``."""
    if is_foreign(x):
        found.append(x)
        return
    for part in _parts(x):
        _collect(part, found)


def _map(x, wanted, f, records=True):
    """Nested structure with ``f`` applied to all that is ``wanted``, not in nested records."""
    if wanted(x):
        return f(x)
    if _is_record(x) and not records:
        return x
    parts = list(_parts(x))
    mapped = [_map(part, wanted, f, records and not _is_record(x)) for part in parts]
    if all(a is b for a, b in zip(parts, mapped, strict=True)):
        return x
    if isinstance(x, dict):
        return dict(zip(x, mapped, strict=True))
    if isinstance(x, tuple):
        return type(x)(*mapped) if hasattr(x, "_fields") else tuple(mapped)
    if isinstance(x, list):
        return mapped
    changed = copy.copy(x)
    for field, part in zip(dataclasses.fields(x), mapped, strict=True):
        object.__setattr__(changed, field.name, part)
    return changed


def _is_numeric(x):
    """Whether a value is a NumPy array of real numbers."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "fiub"
