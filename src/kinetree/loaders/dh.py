"""Denavit–Hartenberg tables from TOML or CSV, with units in the heading: ``alpha[deg]``."""

import csv
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from kinetree.errors import KinetreeError, LoadError
from kinetree.loaders.toml.document import Document, decode
from kinetree.loaders.toml.expressions import UNITS, ExpressionError, evaluate
from kinetree.loaders.toml.table import TomlTable, read_parameters
from kinetree.model import Limits, Model
from kinetree.model.dh import DHRow, from_dh
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.spatial import Inertia
from kinetree.spatial.vector3 import symmetric
from kinetree.spelling import did_you_mean

# --- From the entries of a table, as numbers and text, to a chain of links ------------------------


CONVENTIONS = {
    "modified": "modified", "proximal": "modified", "craig": "modified",
    "standard": "standard", "distal": "standard", "classic": "standard",
}  # fmt: skip
MOST_ROWS = 1000
TEXTS = ("joint", "link", "type")
NUMBERS = (
    "a", "alpha", "d", "theta", "offset", "pitch", "mass", "lower", "upper", "velocity", "effort",
)  # fmt: skip
LISTS = ("com", "inertia")  # three numbers; three or six
_TYPES = {
    "revolute": "revolute", "r": "revolute", "prismatic": "prismatic", "p": "prismatic",
    "cylindrical": "cylindrical", "c": "cylindrical", "helical": "helical", "h": "helical",
}  # fmt: skip


@dataclass
class TableRow:
    """One row: values by column, and how to complain about it."""

    values: dict
    error: Callable[[str], LoadError]  # puts file and line before a message

    def to_row(self, i) -> DHRow:
        """Denavit–Hartenberg row number ``i`` in SI units."""
        v, where = self.values, self.error
        kind = _TYPES.get(str(v.get("type") or "revolute").strip().lower())
        if kind is None:
            kinds = ", ".join(sorted(set(_TYPES.values())))
            raise where(f"type must be one of {kinds}, got {v['type']!r}")
        theta, d, offset = v.get("theta", 0), v.get("d", 0), v.get("offset", 0)
        if kind == "prismatic":
            d = d + offset
        else:
            theta = theta + offset
        limits = None
        if any(name in v for name in ("lower", "upper", "velocity", "effort")):
            names = ("lower", "upper", "velocity", "effort")
            if kind == "cylindrical":
                raise where("a cylindrical joint has two variables; limits are for one")
            limits = Limits(**{name: v[name] for name in names if name in v})
        if kind != "helical" and v.get("pitch"):
            raise where(f"pitch is for helical joints; this one is {kind}")
        try:
            return DHRow(
                v.get("a", 0),
                v.get("alpha", 0),
                d,
                theta,
                kind,
                v.get("pitch", 0.0),
                self._inertia(),
                v.get("link") or f"link{i}",
                limits,
            )
        except LoadError:
            raise
        except KinetreeError as error:
            raise where(str(error)) from None

    def _inertia(self):
        """Inertia of the link, or None if the row has no mass."""
        v = self.values
        if "mass" not in v:
            for name in LISTS:
                if name in v:
                    raise self.error(f"{name} needs a mass")
            return None
        moments = tuple(v.get("inertia", (0, 0, 0)))
        if len(moments) not in (3, 6):
            raise self.error(
                f"inertia must be 3 numbers, xx yy zz, or 6, xx yy zz xy xz yz, got {len(moments)}"
            )
        xx, yy, zz, xy, xz, yz = (*moments, 0, 0, 0)[:6]
        center = v.get("com", (0, 0, 0))
        return Inertia.from_mass_center(v["mass"], center, symmetric(xx, xy, yy, xz, yz, zz))


def to_model(entries: list[TableRow], path, *, convention, strict, **arm) -> Model:
    """Model of the chain of links that Denavit–Hartenberg rows describe.

    Args:
        entries: the rows.
        path: for messages.
        convention: ``"modified"`` or ``"standard"``.
        strict: reject physically impossible inertias instead of warning about them.
        **arm: ``name``, ``gravity``, ``base`` and ``tool``, as ``from_dh`` takes them.
    """
    if not entries:
        raise LoadError(f"{path}: the table has no rows")
    rows = [entry.to_row(i) for i, entry in enumerate(entries, start=1)]
    joints = [
        e.values.get("joint") or f"{r.name}_joint" for e, r in zip(entries, rows, strict=True)
    ]
    seen = {}
    for row, joint, entry in zip(rows, joints, entries, strict=True):
        for what, given in (("link", row.name), ("joint", joint)):
            if seen.setdefault((what, given), entry) is not entry:
                raise entry.error(f"{what} name {given!r} is used twice")
    try:
        bare = from_dh([replace(r, inertia=None) for r in rows], convention=convention, **arm)
        bodies = [
            replace(body, joint_name=joint, inertia=_on_axis(row, convention))
            for body, joint, row in zip(bare.bodies, joints, rows, strict=True)
        ]
        kept = {"frames": bare.frames, "gravity": bare.gravity, "name": bare.name}
        return Model(tuple(bodies), **kept, base_name=bare.base_name, strict=strict)
    except KinetreeError as error:
        raise LoadError(f"{path}: {error}") from None


def _on_axis(row, convention):
    """Inertia of a link in the frame of its body, whose z axis is the joint's."""
    if row.inertia is None:
        return Inertia.zero()
    if convention == "modified":
        return row.inertia
    return row.inertia.inverse_transformed(row.along_x)


# --- Tables in TOML and CSV -----------------------------------------------------------------------


_LIMITS = ("lower", "upper", "velocity", "effort")


def read_dh(source, report, folders, options) -> Model:
    """Model of a CSV or TOML file of Denavit–Hartenberg parameters."""
    text = decode(source, report.path)
    if report.path.lower().endswith(".toml") or _is_toml(text):
        return read_dh_document(Document(text, report.path), report, options)
    return read_sheet(text, report, options)


def _is_toml(text):
    """Whether text is TOML: its first line with content is an assignment or a table header."""
    for line in text.split("\n"):
        line = line.strip()
        if line and not line.startswith("#"):
            return line.startswith("[") or ("=" in line and "," not in line.split("=")[0])
    return False


def read_dh_document(document: Document, report, options) -> Model:
    """Model of a TOML file with ``dh = "modified"`` or ``dh = "standard"``."""
    top = TomlTable(document, document.data, (), "file")
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
    """Lengths and angles of the base or tool of a Denavit–Hartenberg table."""
    inner = top.table(key)
    if inner is None:
        return (0,) * len(names)
    values = tuple(inner.number(name, 0) for name in names)
    inner.finish()
    return values


def _entry(table: TomlTable, i):
    """Row of a Denavit–Hartenberg table from a TOML table."""
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
    return TableRow(values, table.error)


# --- CSV -----------------------------------------------------------------------------------------
# Lines that begin with ``#`` say what a table cannot: ``# convention: standard``, ``# name: ur5``,
# ``# gravity: 0 0 -9.81``, ``# base: theta d``, ``# tool: a alpha d theta``. Any other such line is
# a comment.

_COLUMNS = (*TEXTS, *NUMBERS, *LISTS)
_SETTING = re.compile(r"#\s*(convention|name|gravity|base|tool)\s*:\s*(.*)", re.I)
_HEADING = re.compile(r"\s*([^\s\[\]()]+)\s*(?:[\[(]\s*([^\])]*?)\s*[\])])?\s*")
_VARIABLE = re.compile(r"(?:\*|-|(?:q|theta|θ|d)_?\d*\*?)")  # how papers mark the variable
_UNIT = re.compile(rf"(?<![A-Za-z_])(?:{'|'.join(UNITS)})(?!\w)")
_UNITS = UNITS | {
    "m": 1.0,
    "kg": 1.0,
    "g": 1e-3,
    "m/rad": 1.0,
    "mm/rad": 1e-3,
    "kgm2": 1.0,
    "kg*m^2": 1.0,
    "rad/s": 1.0,
    "deg/s": UNITS["deg"],
    "m/s": 1.0,
    "N": 1.0,
    "Nm": 1.0,
    "N*m": 1.0,
}
_LONGEST_LINE = 10_000


def read_sheet(text: str, report, options) -> Model:
    """Model of a CSV text of Denavit–Hartenberg parameters."""
    sheet = _Sheet(text, report.path)
    parameters = dict(options.parameters)
    if parameters:
        raise LoadError(f"{report.path}: a CSV table has no parameters; a TOML table may have")
    convention = sheet.settings.get("convention", "").lower()
    if convention not in CONVENTIONS:
        found = f"got {convention!r}" if convention else "nothing does"
        raise LoadError(
            f"{report.path}:1: a line '# convention: standard' or '# convention: modified' must "
            f"say which convention the table follows; {found}"
        )
    return to_model(
        sheet.entries(),
        report.path,
        convention=CONVENTIONS[convention],
        strict=options.strict,
        name=sheet.settings.get("name", "arm"),
        gravity=sheet.setting("gravity", 3, STANDARD_GRAVITY),
        base=sheet.setting("base", 2, (0, 0)),
        tool=sheet.setting("tool", 4, (0, 0, 0, 0)),
    )


class _Sheet:
    """The lines of a table, sorted into settings, heading and rows."""

    def __init__(self, text, path):
        self.path = path
        self.settings: dict[str, str] = {}
        self.setting_lines: dict[str, int] = {}
        self.lines: list[tuple[int, str]] = []
        for number, line in enumerate(text.split("\n"), start=1):
            if len(line) > _LONGEST_LINE:
                raise self.error(
                    number, f"a line of {len(line)} characters; at most {_LONGEST_LINE}"
                )
            found = _SETTING.fullmatch(line.strip())
            if found:
                self.settings[found[1].lower()] = found[2].strip()
                self.setting_lines[found[1].lower()] = number
            elif line.strip() and not line.lstrip().startswith("#"):
                self.lines.append((number, line))
            if len(self.lines) > MOST_ROWS + 1:
                raise self.error(number, f"more than {MOST_ROWS} rows; an arm has fewer")

    def error(self, line, message):
        """LoadError that begins with file and line."""
        return LoadError(f"{self.path}:{line}: {message}")

    def setting(self, name, size, default):
        """Numbers of a setting in the CSV file, (size,)."""
        if name not in self.settings:
            return default
        words = self.settings[name].replace(",", " ").split()
        line = self.setting_lines[name]
        if len(words) != size:
            raise self.error(line, f"{name} must be {size} numbers, got {len(words)}")
        return tuple(self._number(word, "", line, name) for word in words)

    def entries(self) -> list[TableRow]:
        """Rows of the CSV file, read by the columns that its heading names."""
        if not self.lines:
            raise self.error(1, "the table is empty")
        line, heading = self.lines[0]
        delimiter = next((d for d in "\t;," if d in heading), ",")
        columns = self._columns(line, self._cells(line, heading, delimiter))
        entries = []
        for i, (line, text) in enumerate(self.lines[1:], start=1):
            cells = self._cells(line, text, delimiter)
            if len(cells) > len(columns) and not any(c.strip() for c in cells[len(columns) :]):
                cells = cells[: len(columns)]
            if len(cells) != len(columns):
                raise self.error(
                    line, f"row {i} has {len(cells)} cells, the heading has {len(columns)}"
                )
            entries.append(self._entry(line, i, columns, cells))
        return entries

    def _cells(self, line, text, delimiter):
        """Cells of a line of CSV."""
        try:
            return next(csv.reader([text], delimiter=delimiter, strict=True, skipinitialspace=True))
        except csv.Error as error:
            raise self.error(line, f"not CSV: {error}") from None

    def _columns(self, line, cells):
        """Names and units of the columns of a CSV heading."""
        columns = []
        for cell in cells:
            found = _HEADING.fullmatch(cell)
            name, unit = (found[1].lower(), found[2]) if found else (cell.strip(), None)
            if name not in _COLUMNS:
                raise self.error(line, f"unknown column {name!r}; {did_you_mean(name, _COLUMNS)}")
            if name in (c for c, _ in columns):
                raise self.error(line, f"column {name!r} is there twice")
            if unit and unit not in _UNITS:
                known = ", ".join(_UNITS)
                raise self.error(line, f"column {name!r}: unknown unit {unit!r}; known: {known}")
            columns.append((name, unit or ""))
        return columns

    def _entry(self, line, i, columns, cells):
        """Row of Denavit–Hartenberg parameters from the cells of a CSV line."""
        values = {}
        for (name, unit), cell in zip(columns, cells, strict=True):
            cell = cell.strip()
            what = f"row {i}, column {name!r}"
            if not cell:
                continue
            if name in TEXTS:
                values[name] = cell
            elif name in LISTS:
                values[name] = tuple(self._number(word, unit, line, what) for word in cell.split())
                if name == "com" and len(values[name]) != 3:
                    raise self.error(line, f"{what}: expected 3 numbers, got {cell!r}")
            elif name in ("theta", "d") and _VARIABLE.fullmatch(cell):
                values[name] = 0
            else:
                infinite = name in ("lower", "upper", "velocity", "effort")
                values[name] = self._number(cell, unit, line, what, infinite=infinite)
        return TableRow(values, partial(self._row_error, line, i))

    def _row_error(self, line, i, message):
        """LoadError about row ``i``, with its line in the file."""
        return self.error(line, f"row {i}: {message}")

    def _number(self, text, unit, line, what, *, infinite=False):
        """Number in a CSV cell, converted to SI units."""
        if unit and _UNIT.search(text):
            raise self.error(line, f"{what}: {text!r} has a unit, and so has the heading: [{unit}]")
        try:
            value = evaluate(text, {}) * _UNITS.get(unit, 1.0)
        except ExpressionError as error:
            raise self.error(line, f"{what}: {error}") from None
        if not (infinite or math.isfinite(value)):
            raise self.error(line, f"{what} must be finite, got {text!r}")
        return value
