"""Types of the fields of parts, by their annotations: data that were read are checked by them.

Constructors take what computes like a number, such as symbols. Files hold numbers, and a null or a
text in their place would only be found where something computes with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Real
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from kinetree.errors import ModelError

_NAMES = {float: "a number", int: "an integer", str: "text", bool: "true or false"}


def check_fields(kind: type, values: Mapping[str, Any], what: str) -> None:
    """Raise ModelError for a value whose type does not fit the field of a dataclass.

    Args:
        kind: the class of a part, a dataclass.
        values: of its fields, by name.
        what: the part, in messages.
    """
    for name, expected in _types(kind).items():
        if name in values and not _fits(values[name], expected):
            raise ModelError(
                f"{name} of {what} must be {_describe(expected)}, got {values[name]!r}"
            )
        inner = values.get(name)
        if is_dataclass(inner) and not isinstance(inner, type):
            given = {f.name: getattr(inner, f.name) for f in fields(inner)}
            check_fields(type(inner), given, f"the {type(inner).__name__} of {what}")


@cache
def _types(kind) -> dict[str, Any]:
    """Expected types of a dataclass's fields, by name."""
    hints = get_type_hints(kind)
    found = {}
    for f in fields(kind):
        hint = hints[f.name]
        found[f.name] = (hint | None if f.default is None else hint) if f.init else Callable
    return found


def _fits(x, expected) -> bool:
    """Whether a value has an expected type, unions and tuples included."""
    if expected is Any:
        return holds_numbers(x)
    if expected in (tuple, list):
        return holds_numbers(x)
    if expected is float:
        return isinstance(x, Real) and not isinstance(x, bool)
    if expected is int:
        return isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    if expected in (str, bool, type(None)):
        return isinstance(x, expected)
    origin, inner = get_origin(expected), get_args(expected)
    if origin in (Union, UnionType):
        return any(_fits(x, one) for one in inner)
    if origin is tuple:
        if not isinstance(x, (tuple, list)):
            return False
        if inner[-1] is Ellipsis:
            return all(_fits(item, inner[0]) for item in x)
        return len(x) == len(inner) and all(map(_fits, x, inner))
    return origin is not None or not isinstance(expected, type) or isinstance(x, expected)


def holds_numbers(x) -> bool:
    """Whether a value is a number, or an array or nested lists of numbers."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "iuf"
    if isinstance(x, (tuple, list)):
        return all(map(holds_numbers, x))
    return isinstance(x, Real) and not isinstance(x, bool)


def _describe(expected) -> str:
    """Expected type of a field in words."""
    inner = [one for one in get_args(expected) if one is not type(None)]
    if get_origin(expected) in (Union, UnionType):
        null = " or null" if len(inner) < len(get_args(expected)) else ""
        return " or ".join(map(_describe, inner)) + null
    if get_origin(expected) is tuple:
        kind = {float: "numbers", int: "integers", str: "texts"}.get(inner[0], "rows of numbers")
        return f"a list of {kind}" if inner[-1] is Ellipsis else f"{len(inner)} {kind}"
    numbers = "a number or a list of numbers"
    return numbers if expected in (Any, tuple) else _NAMES.get(expected, f"a {_name(expected)}")


def _name(expected):
    """Name of an expected type, for messages."""
    return getattr(expected, "__name__", str(expected))
