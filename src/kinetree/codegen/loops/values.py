"""Values per row, as a text sees them while it is recorded: rows, tables, totals and arrays.

A value is an array or number, or consists of some: then it has methods ``arrays()`` and
``like(arrays)``, as spatial vectors, transforms and inertias do. What a case stores of constants
(motion subspaces, zeros) comes back as constants in later walks, from no memory.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.codegen.loops.stores import ANY
from kinetree.errors import TraceError
from kinetree.expr.node import Expr


@dataclass(eq=False)
class LoopRow:
    """A row that is known when the code runs: of a loop's variable, or named by columns."""

    recorder: Any
    domain: str
    path: str
    kind: Any
    loop: Any = None

    def __eq__(self, other) -> Any:
        return isinstance(other, LoopRow) and other.path == self.path and other.loop is self.loop

    def __hash__(self):
        return hash(self.path)

    def column(self, name: str) -> "LoopRow":
        """Row that a column of this row refers to, such as its parent."""
        domain = self.recorder.domains[self.domain].columns[name]
        return LoopRow(self.recorder, domain, f"{self.path}.{name}", ANY, self.loop)

    def span(self, column: str, size: int, single: bool = False) -> "Span":
        """Entries of an array's axis that belong to this row: ``size`` of them, from ``column``."""
        return Span(self, column, size, single)

    def __sub__(self, n: int) -> "Span":
        """``i - 1``: the entry of body ``i`` along an axis that counts bodies from 0."""
        assert n == 1
        return Span(self, "b", 1, single=True)


@dataclass(frozen=True)
class Span:
    """Entries along an axis, from the first one of a row on."""

    row: LoopRow
    column: str
    size: int
    single: bool = False

    @property
    def path(self) -> str:
        """Path of the number with the span's offset: that of the row, then the column."""
        return f"{self.row.path}.{self.column}"


def arrays_of(value: Any) -> list:
    """Arrays that a spatial value consists of: its ``arrays()``, or itself as one array."""
    return value.arrays() if hasattr(value, "arrays") else [np.asarray(value)]


def value_like(value: Any, arrays: list) -> Any:
    """Value of the same type with other arrays."""
    if hasattr(value, "arrays"):
        return value.like(arrays)
    return arrays[0] if arrays[0].shape else arrays[0][()]


def _convert(value, like):
    """Value converted to the type of ``like``, e.g. a rigid to a general inertia."""
    if like is None or type(value) is type(like) or not hasattr(like, "arrays"):
        return value
    return like.like([np.zeros(np.shape(a), dtype=int) for a in like.arrays()]) + value


class Table:
    """A value per row of a domain; ``base`` is that of row 0 of a text, which has none here."""

    def __init__(self, recorder, name, domain, base=None):
        self.recorder, self.name, self.domain, self.base = recorder, name, domain, base
        self.latest = {}  # value stored last, by kind; ANY for a row that a column names

    def __getitem__(self, row) -> Any:
        if not isinstance(row, LoopRow):
            return self.base
        values, key = self.recorder.block_at(row).values, (self.name, row.path)
        if key not in values:
            values[key] = self._load(row)
        return values[key]

    def __setitem__(self, row, value):
        if not isinstance(row, LoopRow):
            self.base = value
            return
        block, key = self.recorder.block_at(row), (self.name, row.path)
        value = _convert(value, self.recorder.outline.like.get(self.name))
        block.values[key] = block.stored[key] = value
        self.latest[row.kind] = value
        if block.scope:
            over = block.scope[0].parameters.get("over")
            self.recorder.stored.setdefault(self.name, {})[self.recorder.walks] = over

    def _load(self, row):
        """Load the value of a row from the table, in the form in which it was last stored."""
        outline = self.recorder.outline
        mine = self.latest.get(row.kind) if row.kind is not ANY else None
        like = mine if mine is not None else outline.like.get(self.name)
        if like is None:
            like = next(iter(self.latest.values()), self.base)
        if like is None:
            raise TraceError(
                f"row {row.path} of table {self.name} is read before it is set: set it in an "
                f"earlier walk, or say what it is for the base, model.table(base)"
            )
        folds = mine is not None and self.name not in outline.varied
        if folds and len(self.recorder.rows) > 1 and row.path != self.recorder.rows[0].path:
            self.recorder.folded.add((self.name, self.recorder.walks))
        found, k, place = [], 0, f"{self.name}@{row.path}"
        for array in arrays_of(like):
            found.append(self._numbers(array, place, k, folds))
            k += array.size
        return value_like(like, found)

    def _numbers(self, array, place, k, folds):
        """Array of traced loads; if ``folds``, entries constant for this kind stay numbers."""
        if folds and array.dtype != object:
            return array
        new = np.empty(array.shape, dtype=object)
        for n, x in enumerate(array.ravel()):
            constant = folds and not isinstance(x, Expr)
            new.ravel()[n] = x if constant else self.recorder.leaf(place, (k + n,))
        return new


class Sums(Table):
    """A table in which walks add to other rows, and to row 0 of a text, which is a total."""

    def __init__(self, recorder, name, domain, total):
        super().__init__(recorder, name, domain)
        self._total = total

    def __getitem__(self, row):
        return super().__getitem__(row) if isinstance(row, LoopRow) else self._total.value

    def __setitem__(self, row, value):
        if isinstance(row, LoopRow):
            super().__setitem__(row, value)
        else:
            self._total.value = value


class Total:
    """A sum over rows, which starts at zero: a table with a single row."""

    def __init__(self, table, row):
        self._table, self._row = table, row

    def add(self, value: Any) -> None:
        """Add a traced value to the total."""
        self._table[self._row] = self._table[self._row] + value

    @property
    def value(self) -> Any:
        """Traced value of the sum so far."""
        return self._table[self._row]

    @value.setter
    def value(self, value: Any) -> None:
        """Set the total to a value."""
        self._table[self._row] = value


class Array:
    """An argument or result with entries for rows along some of its axes."""

    def __init__(self, recorder, name, axes, table=None):
        self.recorder, self.name, self.axes, self._table = recorder, name, axes, table

    def __getitem__(self, at):
        if isinstance(at, Span) and self._table is not None:
            return self._table[at.row]
        if isinstance(at, slice) and at == slice(0):
            return np.zeros(0, dtype=int)
        (paths, spans), entries = self._entries(at), self.recorder.block.entries
        found = np.empty([s.stop - s.start for s in spans], dtype=object)
        for place in np.ndindex(found.shape):
            index = tuple(s.start + n for s, n in zip(spans, place, strict=True))
            known = entries.get((self.name, paths, index))
            leaf = self.recorder.leaf
            found[place] = (
                known if known is not None else leaf(f"{self.name}@{','.join(paths)}", index)
            )
        return found.reshape(
            [n for n, a in zip(found.shape, _each(at), strict=True) if not _single(a)]
        )

    def __setitem__(self, at, value):
        (paths, spans), entries = self._entries(at), self.recorder.block.entries
        shape = [s.stop - s.start for s in spans]
        kept = [n for n, a in zip(shape, _each(at), strict=True) if not _single(a)]
        value = np.broadcast_to(np.asarray(value, dtype=object), kept).reshape(shape)
        for place in np.ndindex(value.shape):
            index = tuple(s.start + n for s, n in zip(spans, place, strict=True))
            entries[self.name, paths, index] = value[place]

    def _entries(self, at):
        """Row paths and index ranges of the entries requested from an array, by axis."""
        paths, spans = [], []
        for axis, a in zip(self.axes, _each(at), strict=True):
            if isinstance(a, Span):
                self.recorder.block_at(a.row)
                paths.append(a.path)
                spans.append(range(a.size))
            elif isinstance(axis, str):
                raise TraceError(
                    f"{self.name} has entries along {axis!r} of every robot, whose number is not "
                    f"known here: take those of a row, {self.name}[model.v_slice[i]], inside a walk"
                )
            else:
                paths.append("")
                spans.append(range(a, a + 1) if _single(a) else range(axis)[a])
        return tuple(paths) or ("",), spans


def _each(at):
    """Index along each axis; a row of the velocity variables becomes a span of one entry."""
    each = at if isinstance(at, tuple) else (at,)
    return tuple(Span(a, "v", 1, single=True) if isinstance(a, LoopRow) else a for a in each)


def _single(a):
    """Whether an index selects a single entry, so that the axis is dropped."""
    return isinstance(a, (int, np.integer)) or (isinstance(a, Span) and a.single)
