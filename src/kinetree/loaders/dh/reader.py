"""Denavit–Hartenberg tables from TOML or CSV text."""

from kinetree.errors import LoadError
from kinetree.loaders.dh.rows import (
    CONVENTIONS,
    LISTS,
    MOST_ROWS,
    NUMBERS,
    TEXTS,
    Entry,
    to_model,
)
from kinetree.loaders.dh.sheet import read_sheet
from kinetree.loaders.toml.document import Document, decoded
from kinetree.loaders.toml.parameters import read_parameters
from kinetree.loaders.toml.table import Table
from kinetree.model import Model
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.spelling import did_you_mean

__all__ = ["read_dh", "read_dh_document"]

_LIMITS = ("lower", "upper", "velocity", "effort")


def read_dh(source, report, folders, options) -> Model:
    """The arm of a CSV or TOML file of Denavit–Hartenberg parameters."""
    text = decoded(source, report.path)
    if report.path.lower().endswith(".toml") or _is_toml(text):
        return read_dh_document(Document(text, report.path), report, options)
    return read_sheet(text, report, options)


def _is_toml(text):
    """Whether the first line that says something is an assignment or a header."""
    for line in text.split("\n"):
        line = line.strip()
        if line and not line.startswith("#"):
            return line.startswith("[") or ("=" in line and "," not in line.split("=")[0])
    return False


def read_dh_document(document: Document, report, options) -> Model:
    """The arm of a TOML file with ``dh = "modified"`` or ``dh = "standard"``."""
    top = Table(document, document.data, (), "file")
    convention = top.text("dh")
    if convention not in CONVENTIONS:
        hint = did_you_mean(convention, ("modified", "standard"))
        raise top.error(f"dh must be 'modified' or 'standard', got {convention!r}; {hint}", "dh")
    read_parameters(top, options.parameters)
    tables = top.tables("joint")
    if len(tables) > MOST_ROWS:
        raise top.error(f"{len(tables)} joints; at most {MOST_ROWS} are read", "joint")
    arm = {
        "name": top.text("name", "arm"),
        "gravity": top.numbers("gravity", 3, STANDARD_GRAVITY),
        "base": _steps(top, "base", ("theta", "d")),
        "tool": _steps(top, "tool", ("a", "alpha", "d", "theta")),
    }
    entries = [_entry(table, i) for i, table in enumerate(tables, start=1)]
    top.finish()
    if not entries:
        raise LoadError(f"{document.path}: the table has no rows; each joint is a [[joint]]")
    arm |= {"convention": CONVENTIONS[convention], "strict": options.strict}
    return to_model(entries, document.path, **arm)


def _steps(top, key, names):
    inner = top.table(key)
    if inner is None:
        return (0,) * len(names)
    values = tuple(inner.number(name, 0) for name in names)
    inner.finish()
    return values


def _entry(table: Table, i):
    table.label = f"row {i}"
    values = {}
    for name in TEXTS:
        # The name of the joint is its name here as everywhere else.
        value = table.text("name" if name == "joint" else name, None)
        if value is not None:
            values[name] = value
    for name in NUMBERS:
        value = table.number(name, None, infinite=name in _LIMITS)
        if value is not None:
            values[name] = value
    for name in LISTS:
        value = table.numbers(name, 3 if name == "com" else None, None)
        if value is not None:
            values[name] = value
    table.finish()
    return Entry(values, table.error)
