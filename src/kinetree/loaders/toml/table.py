"""A table of a TOML file, read key by key, and parameters; unknown keys are an error."""

import math
from typing import Any

from kinetree.errors import KinetreeError, LoadError
from kinetree.loaders.toml.document import Document
from kinetree.loaders.toml.expressions import RESERVED, ExpressionError, names_in, parse
from kinetree.spelling import close_names, did_you_mean

_REQUIRED = object()
_NAMES = {dict: "a table", list: "an array", str: "text", bool: "true or false"}


class TomlTable:
    """Some keys with values, their place in the file, and what to call them in messages."""

    def __init__(self, document: Document, data: dict, path: tuple, label: str):
        self.document, self.data, self.path, self.label = document, data, path, label
        self.known: list[str] = []

    def __contains__(self, key):
        return key in self.data

    def error(self, message, key=None) -> LoadError:
        """LoadError at the line of ``key``, or of the table."""
        path = self.path if key is None else (*self.path, key)
        return self.document.error(path, f"{self.label}: {message}")

    def attempt(self, make, *arguments, key=None, **options):
        """Result of ``make(...)``; its errors get the place of ``key`` in the file."""
        try:
            return make(*arguments, **options)
        except LoadError:
            raise
        except KinetreeError as error:
            raise self.error(str(error), key) from None

    def get(self, key, default=None) -> Any:
        """Value of a key as TOML has it."""
        self.known.append(key)
        value = self.data.get(key, default)
        if value is _REQUIRED:
            close = close_names(key, [k for k in self.data if k not in self.known])
            hint = f"; is that what {close[0]!r} is meant to be?" if close else ""
            raise self.error(f"has no {key!r}, which is needed{hint}")
        return value

    def of_kind(self, key, kind, default) -> Any:
        """Value of a key, which must be of a given TOML type."""
        value = self.get(key, default)
        if value is not default and not isinstance(value, kind):
            raise self.error(f"{key} must be {_NAMES[kind]}, got {_show(value)}", key)
        return value

    def text(self, key, default=_REQUIRED) -> Any:
        """Nonempty text under a key."""
        value = self.of_kind(key, str, default)
        if value == "" and default != "":
            raise self.error(f"{key} must not be empty", key)
        return value

    def texts(self, key, default=_REQUIRED) -> Any:
        """List of texts under a key."""
        values = self.of_kind(key, list, default)
        for value in () if values is default else values:
            if not isinstance(value, str) or not value:
                raise self.error(f"{key} must be a list of texts, got {_show(value)}", key)
        return values if values is default else tuple(values)

    def flag(self, key, default) -> bool:
        """Truth value under a key."""
        return self.of_kind(key, bool, default)

    def number(self, key, default=_REQUIRED, **options) -> Any:
        """Number under a key, or the value of an expression."""
        value = self.get(key, default)
        return value if value is default else self.as_number(value, key, **options)

    def numbers(self, key, size, default=_REQUIRED, **options) -> Any:
        """List of ``size`` numbers under a key; None: any length, or a single number."""
        value = self.get(key, default)
        return value if value is default else self.as_numbers(value, key, size, **options)

    def matrix(self, key, default=_REQUIRED) -> Any:
        """Matrix of three rows of three numbers under a key."""
        rows = self.get(key, default)
        if rows is default:
            return rows
        if not isinstance(rows, list) or len(rows) != 3:
            raise self.error(f"{key} must be 3 rows of 3 numbers, got {_show(rows)}", key)
        return tuple(self.as_numbers(row, key, 3) for row in rows)

    def table(self, key) -> "TomlTable | None":
        """Nested table under a key, or None."""
        value = self.of_kind(key, dict, None)
        return None if value is None else self.inner(value, key)

    def inner(self, value, key) -> "TomlTable":
        """Value of ``key``, or a part of it, as a nested table."""
        return TomlTable(self.document, value, (*self.path, key), f"{self.label}: {key}")

    def tables(self, key) -> "list[TomlTable]":
        """Tables of an array of tables, ``[[key]]``."""
        values: Any = self.of_kind(key, list, [])
        tables = []
        for i, value in enumerate(values):
            if not isinstance(value, dict):
                raise self.error(f"{key} must be tables, [[{key}]], got {_show(value)}", key)
            label = f"{key} {i + 1}"
            if isinstance(value.get("name"), str):
                label = f"{key} {value['name']!r}"
            tables.append(TomlTable(self.document, value, (*self.path, key, i), label))
        return tables

    def choice(self, *keys) -> str | None:
        """The key that is present, of several alternatives; None for none, an error for more."""
        self.known.extend(keys)
        given = [key for key in keys if key in self.data]
        if len(given) > 1:
            raise self.error(f"give only one of {', '.join(given)}", given[1])
        return given[0] if given else None

    def finish(self):
        """Raise LoadError for unknown keys of the table."""
        for key in self.data:
            if key not in self.known:
                hint = did_you_mean(key, dict.fromkeys(self.known))
                raise self.error(f"unknown key {key!r}; {hint}", key)

    def as_number(self, value, key, *, infinite=False):
        """Number from a TOML value or expression."""
        if isinstance(value, str):
            value = self.document.evaluate((*self.path, key), value, f"{self.label}: {key}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"{key} must be a number or an expression, got {_show(value)}", key)
        if isinstance(value, int) and abs(value) > 2**53:
            try:
                value = float(value)
            except OverflowError:
                raise self.error(f"{key} is too large for a number", key) from None
        if math.isnan(value) or (math.isinf(value) and not infinite):
            raise self.error(f"{key} must be finite, got {value}", key)
        return value

    def as_numbers(self, value, key, size, *, infinite=False):
        """List of numbers from a TOML value."""
        if size is None and not isinstance(value, list):
            return (self.as_number(value, key, infinite=infinite),)
        if not isinstance(value, list) or (size is not None and len(value) != size):
            count = "numbers" if size is None else f"{size} numbers"
            raise self.error(f"{key} must be a list of {count}, got {_show(value)}", key)
        return tuple(self.as_number(x, key, infinite=infinite) for x in value)


def _show(value):
    """TOML value as text, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


# --- ``[parameters]`` ----------------------------------------------------------------------------

_MOST = 10_000


def read_parameters(top: TomlTable, given) -> dict[str, float]:
    """Values of all parameters of a file, those in ``given`` overridden.

    A parameter may be an expression of others, in any order, so long as none depends on itself.
    """
    table = top.table("parameters")
    data = {} if table is None else table.data
    for name in given or {}:
        if name not in data:
            hint = did_you_mean(name, data)
            raise LoadError(f"{top.document.path}: the file has no parameter {name!r}; {hint}")
    if table is None:
        return {}
    if len(data) > _MOST:
        raise table.error(f"{len(data)} parameters; at most {_MOST} are read")
    for name in data:
        if not name.isidentifier() or name in RESERVED:
            why = "the name of a unit, function or constant" if name in RESERVED else "no name"
            raise table.error(f"a parameter cannot be called {name!r}, which is {why}", name)
    values = top.document.parameters
    for name, value in (given or {}).items():
        try:
            values[name] = table.as_number(value, name)
        except LoadError as error:
            raise LoadError(f"{error} (given by the caller)") from None
    for name in _order(table, set(values)):
        values[name] = table.as_number(data[name], name)
    return values


def _order(table: TomlTable, known: set[str]):
    """Names of parameters in an order in which each comes after those it needs."""
    new = [name for name in table.data if name not in known]
    needs = {name: _needs(table, name) & set(new) for name in new}
    needed_by: dict[str, list[str]] = {name: [] for name in new}
    for name, others in needs.items():
        for other in others:
            needed_by[other].append(name)
    ready = [name for name in new if not needs[name]]
    for name in ready:  # which grows
        for other in needed_by[name]:
            needs[other].discard(name)
            if not needs[other]:
                ready.append(other)
    if len(ready) < len(new):
        left = {name: others for name, others in needs.items() if others}
        circle = _circle(next(iter(left)), left)
        names = " -> ".join(circle)
        raise table.error(f"parameters depend on each other in a circle: {names}", circle[0])
    return ready


def _needs(table, name):
    """Names of parameters that a parameter's expression uses."""
    value = table.data[name]
    if not isinstance(value, str):
        return set()
    try:
        return names_in(parse(value))
    except ExpressionError as error:
        raise table.error(f"{name}: {error}", name) from None


def _circle(name, needs):
    """Circular chain of parameters that need each other, from ``name`` on."""
    path = []
    while name not in path:
        path.append(name)
        name = min(needs[name])
    return [*path[path.index(name) :], name]
