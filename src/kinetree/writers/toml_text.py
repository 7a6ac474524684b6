"""Values as TOML that reads back exactly: Python writes the shortest digits that do."""

import json

import numpy as np

from kinetree.errors import ModelError

__all__ = ["assignment", "value"]


def assignment(key: str, given, what: str) -> str:
    """A line ``key = value``."""
    return f"{_key(key)} = {value(given, what)}"


def value(given, what: str) -> str:
    """A number, text, list or inline table; ``what`` is named where it cannot be written."""
    if isinstance(given, (np.ndarray, np.generic)):
        given = given.tolist()
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, (int, float)):
        return repr(given)
    if isinstance(given, str):
        return _text(given, what)
    if isinstance(given, (list, tuple)):
        return f"[{', '.join(value(x, what) for x in given)}]"
    if isinstance(given, dict):
        inside = ", ".join(assignment(k, x, what) for k, x in given.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise ModelError(
        f"{what} holds a {type(given).__name__}, which a TOML file cannot express; only models of "
        f"floats can be written"
    )


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _text(name, f"name {name!r}")


def _text(given: str, what: str) -> str:
    """A basic string: everything that TOML does not allow in one is escaped."""
    try:
        given.encode("utf-8")
    except UnicodeEncodeError:
        raise ModelError(
            f"{what} holds {given!r}, half a surrogate pair, which no file can hold"
        ) from None
    # JSON and TOML agree on escapes, except that TOML has the character after ~ escaped too.
    return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
