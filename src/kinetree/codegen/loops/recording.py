"""Recording of loops: a text runs once, on rows that stand for any row of their kind.

``for i in recorder.walk("bodies")`` yields one ``Row`` for each kind of body. While the loop's body
runs, ``table[i]`` and ``table[i.column("parent")]`` are loads, unless this code has stored there;
assignments are stores; ``q[i.span("q", 1)]`` are loads from an argument. What is computed goes into
one graph. Where code ends (a nested walk begins, the loop ends), it is kept as a ``Block``, and
what follows reads the tables.

Inputs are numbered by their block while recording lasts, ``v@i.parent#12``, so that a value can be
traced back to where it was loaded: a value that is used in another block is computed there again,
if everything that it depends on can be loaded again, and refused otherwise.

What a kind alone does not show (that children add to a table, say) is found by a first recording,
of representative kinds: see ``outline``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.codegen.loops.language import VARIABLES, Append, Chain, Declaration, Domain
from kinetree.codegen.loops.outline import Outline
from kinetree.codegen.loops.stores import ANY
from kinetree.errors import TraceError
from kinetree.expr.node import Expr, Graph


@dataclass(eq=False)
class Row:
    """A row that is known when the code runs: of a loop's variable, or named by columns."""

    recorder: Any
    domain: str
    path: str
    kind: Any
    loop: Any = None

    def __eq__(self, other) -> Any:
        return isinstance(other, Row) and other.path == self.path and other.loop is self.loop

    def __hash__(self):
        return hash(self.path)

    def column(self, name: str) -> "Row":
        """The row that a column names."""
        domain = self.recorder.domains[self.domain].columns[name]
        return Row(self.recorder, domain, f"{self.path}.{name}", ANY, self.loop)

    def span(self, column: str, size: int) -> "Span":
        """The entries of an axis that belong to this row."""
        return Span(self, column, size)

    def __sub__(self, n: int) -> "Span":
        """``i - 1``: the entry of body ``i`` along an axis that counts bodies from 0."""
        assert n == 1
        return Span(self, "b", 1, single=True)


@dataclass(frozen=True)
class Span:
    """Entries along an axis, from the first one of a row on."""

    row: Row
    column: str
    size: int
    single: bool = False

    @property
    def path(self) -> str:
        """In the name of a place."""
        return f"{self.row.path}.{self.column}"


@dataclass(eq=False)
class Block:
    """Straight-line code as it is recorded.

    ``values`` by table and path are what loads see; those ``stored`` are stores. ``entries`` are
    single numbers of arrays, by name, paths and index.
    """

    serial: int
    scope: tuple
    rows: tuple
    values: dict = field(default_factory=dict)
    stored: dict = field(default_factory=dict)
    entries: dict = field(default_factory=dict)
    checks: list = field(default_factory=list)
    appends: list = field(default_factory=list)
    conditions: dict = field(default_factory=dict)


@dataclass(eq=False)
class Loop:
    """A region with a body as it is recorded: items by kind."""

    region: str
    parameters: dict
    bodies: dict = field(default_factory=dict)


# --- values in tables ----------------------------------------------------------------------------


def arrays_of(value: Any) -> list:
    """The arrays that a value consists of: by its method ``arrays``, or itself."""
    return value.arrays() if hasattr(value, "arrays") else [np.asarray(value)]


def value_like(value: Any, arrays: list) -> Any:
    """A value of the same type that consists of other arrays."""
    if hasattr(value, "arrays"):
        return value.like(arrays)
    return arrays[0] if arrays[0].shape else arrays[0][()]


def _converted(value, like):
    """A value in the type that its table's rows have after sums: a rigid inertia among others."""
    if like is None or type(value) is type(like) or not hasattr(like, "arrays"):
        return value
    return like.like([np.zeros(np.shape(a), dtype=int) for a in like.arrays()]) + value


class Table:
    """A value per row of a domain; ``base`` is that of row 0 of a text, which has none here."""

    def __init__(self, recorder, name, domain, base=None):
        self.recorder, self.name, self.domain, self.base = recorder, name, domain, base
        self.latest = {}  # value stored last, by kind; ANY for a row that a column names

    def __getitem__(self, row):
        if not isinstance(row, Row):
            return self.base
        values, key = self.recorder.block_at(row).values, (self.name, row.path)
        if key not in values:
            values[key] = self._loaded(row)
        return values[key]

    def __setitem__(self, row, value):
        if not isinstance(row, Row):
            self.base = value
            return
        block, key = self.recorder.block_at(row), (self.name, row.path)
        value = _converted(value, self.recorder.outline.like.get(self.name))
        block.values[key] = block.stored[key] = value
        self.latest[row.kind] = value

    def _loaded(self, row):
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
        found, k, place = [], 0, f"{self.name}@{row.path}"
        for array in arrays_of(like):
            found.append(self._numbers(array, place, k, folds))
            k += array.size
        return value_like(like, found)

    def _numbers(self, array, place, k, folds):
        """Constants come back as they are, integers as integers; all else is loaded."""
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
        return super().__getitem__(row) if isinstance(row, Row) else self._total.value

    def __setitem__(self, row, value):
        if isinstance(row, Row):
            super().__setitem__(row, value)
        else:
            self._total.value = value


class Total:
    """A sum over rows, which starts at zero: a table with a single row."""

    def __init__(self, table, row):
        self._table, self._row = table, row

    def add(self, value: Any) -> None:
        """One more term."""
        self._table[self._row] = self._table[self._row] + value

    @property
    def value(self) -> Any:
        """The sum of all terms so far."""
        return self._table[self._row]

    @value.setter
    def value(self, value: Any) -> None:
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
        """Paths and ranges of entries, by axis."""
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
    """What is asked for along each axis; a row of the variables is a single entry."""
    each = at if isinstance(at, tuple) else (at,)
    return tuple(Span(a, "v", 1, single=True) if isinstance(a, Row) else a for a in each)


def _single(a):
    return isinstance(a, (int, np.integer)) or (isinstance(a, Span) and a.single)


# --- the recorder --------------------------------------------------------------------------------


class Recorder:
    """What a text does, as blocks and loops.

    Args:
        domains: those that the text walks over.
        kinds: for each domain the kinds of rows to record; by default one, ``""``.
        outline: what the recording of representative kinds has shown.
        pairs: kinds of nested walks to record, outermost first; by default all.
    """

    def __init__(self, domains, kinds=None, outline=None, pairs=None):
        self.domains: dict[str, Domain] = {d.name: d for d in domains}
        self.kinds, self.pairs = kinds or {}, pairs
        self.outline = outline or Outline()
        self.graph, self.tables = Graph(), {}
        self.declared: dict[str, Declaration] = {}
        self.cleared: list[str] = []
        self.items, self.scope, self.rows = [], (), ()
        self.serial = self.walks = 0
        self.block = self._new_block()

    # --- tables and arrays ------------------------------------------------------------------

    def table(self, domain: str, base: Any = None) -> Table:
        """A value per row, to be filled in."""
        name = f"t{len(self.tables)}"
        self.declared[name] = Declaration(name, "rows", domain)
        self.tables[name] = Table(self, name, domain, base)
        return self.tables[name]

    def sums(self, domain: str, zero: Any) -> Sums:
        """A value per row, and a total for what rows without a row above them add to it."""
        total, name = self.total(zero), f"t{len(self.tables)}"
        self.declared[name] = Declaration(name, "rows", domain)
        self.tables[name] = table = Sums(self, name, domain, total)
        return table

    def total(self, zero: Any = 0) -> Total:
        """A sum that starts at zero."""
        table = self.table("", zero)
        self.cleared.append(table.name)
        return Total(table, Row(self, "", "", ANY))

    def argument(self, name: str, axes: tuple = ()) -> Any:
        """An array that the caller gives; one of fixed shape is an array of numbers."""
        self.declared[name] = Declaration(name, "argument", "", axes)
        if any(isinstance(n, str) for n in axes):
            return Array(self, name, axes)
        return self._leaves(f"{name}@{',' * (len(axes) - 1)}", axes)

    def result(self, axes: tuple, table: Table | None = None, zeros: bool = True) -> Array:
        """An array that the caller gets, of zeros at first unless all of it will be set.

        ``table``: has what is read from it.
        """
        name = f"out{sum(d.storage == 'result' for d in self.declared.values())}"
        self.declared[name] = Declaration(name, "result", "", axes)
        if zeros:
            self.cleared.append(name)
        return Array(self, name, axes, table)

    def given_back(self, value: Any) -> str:
        """The name of a result: an array of this recorder's, or numbers that are known outside."""
        if isinstance(value, Array):
            return value.name
        value = np.asarray(value, dtype=object)
        result = self.result(value.shape, zeros=False)
        result[(slice(None),) * value.ndim] = value
        self._close()
        return result.name

    def numbers(self, name: str, size: int, row: Row | None = None) -> np.ndarray:
        """Numbers of the model: of a row, or those that it has once."""
        domain = row.domain if row is not None else ""
        known = self.declared.get(name)
        most = max(size, known.axes[0] if known else 0)
        self.declared[name] = Declaration(name, "model", domain, (most,))
        if row is not None:
            self.block_at(row)
        return self._leaves(f"{name}@{row.path if row is not None else ''}", (size,))

    def leaf(self, place: str, index: tuple) -> Any:
        """The number at a place, as it is before the block; see the module for its name."""
        table, _, path = place.partition("@")
        fixed = not path.strip(",") and self.declared[table].storage in ("model", "argument")
        return self.graph.input(place if fixed else f"{place}#{self.block.serial}", index)

    def _leaves(self, place, shape):
        found = np.empty(shape, dtype=object)
        for index in np.ndindex(found.shape):
            found[index] = self.leaf(place, index)
        return found if shape else found[()]

    # --- regions ----------------------------------------------------------------------------

    @property
    def goes_backwards(self) -> bool:
        """Whether the last walk goes from the last row to the first."""
        loops = [item for item in self.items if isinstance(item, Loop)]
        return bool(loops) and loops[-1].parameters.get("backwards", False)

    def walk(
        self, over: str | Chain, backwards: bool = False, kinds: tuple | None = None
    ) -> Iterator:
        """One row for each kind of what is walked over; what is done with it is the loop's body."""
        domain = over if isinstance(over, str) else self._end_of(over.start)
        variable = VARIABLES[len(self.rows)]
        loop = None
        if not self.scope:
            loop = self._continued(over, backwards)
        if loop is None:
            self._close()
            parameters = {"variable": variable, "over": over, "backwards": backwards}
            loop = Loop("walk", parameters)
            self.items.append(loop)
        outside = self.items, self.scope, self.rows
        kinds = self.kinds.get(domain, ("",)) if kinds is None else kinds
        for kind in kinds:
            rows = (*outside[2], Row(self, domain, variable, kind, loop))
            if self.pairs and len(rows) > 1 and tuple(r.kind for r in rows) not in self.pairs:
                continue
            self.items = loop.bodies.setdefault(kind, [])
            self.scope, self.rows = (*outside[1], loop), rows
            self.block = self._reopened() or self._new_block()
            yield rows[-1]
            self._close()
        self.items, self.scope, self.rows = outside
        self.block = self._new_block()

    def repeat(self, times: int | str) -> Iterator:
        """The loop's body so many times: a number, or the name of an argument."""
        yield from self._inside(Loop("repeat", {"times": times}))

    def until(self, most: int | str) -> Iterator:
        """The loop's body until ``stop`` gets a condition that holds, at most so many times."""
        yield from self._inside(Loop("until", {"most": most}))

    def stop(self, condition: Any) -> None:
        """In the body of ``until``, as its last statement: whether to end."""
        row = self.rows[-1] if self.rows else Row(self, "", "", ANY)
        ends = self.table(row.domain)  # it may depend on rows that the body has changed
        ends[row] = condition.select(1.0, 0.0)
        self.scope[-1].parameters["condition"] = self._condition(lambda: ends[row] > 0.5)

    def when(self, condition: Any) -> Iterator:
        """The loop's body once, if the condition holds."""
        yield from self._inside(Loop("when", {"condition": self._condition(lambda: condition)}))

    def append(self, name: str, columns: dict, rows: dict, keep: Any = None) -> None:
        """One more row of a list: its columns, and values by table; counts if ``keep`` holds."""
        new = Row(self, name, f"{name}.new", ANY, self.scope[-1] if self.scope else None)
        for table, value in rows.items():
            self.block.stored[table.name, new.path] = value
            table.latest.setdefault("", value)
        if keep is not None:
            self.block.conditions[f"keep@{name}"] = keep
        self.block.appends.append(Append(name, {c: row.path for c, row in columns.items()}))

    def _condition(self, get):
        """A block of its own in which a condition is looked up."""
        self._close()
        block = self.block
        block.conditions["holds@"] = get()
        self._take_checks(block)
        self.block = self._new_block()
        return block

    def _inside(self, loop):
        self._close()
        self.items.append(loop)
        outside = self.items, self.scope
        self.items = loop.bodies.setdefault("", [])
        self.scope = (*outside[1], loop)
        self.block = self._new_block()
        yield None
        self._close()
        self.items, self.scope = outside
        self.block = self._new_block()

    # --- blocks -----------------------------------------------------------------------------

    def block_at(self, row: Row) -> Block:
        """The current block, in which a row must be known."""
        if row.loop is not None and row.loop not in self.scope:
            raise TraceError(
                f"a row of a walk ({row.path}) is used after the walk, where it stands for no row: "
                f"do it inside"
            )
        return self.block

    def _new_block(self):
        self.serial += 1
        return Block(self.serial, self.scope, self.rows)

    def _take_checks(self, block):
        block.checks += self.graph.checks
        self.graph.checks = []

    def _close(self):
        """End the current block: what follows reads its stores from the tables."""
        self._take_checks(self.block)
        self.items.append(self.block)
        self.block = self._new_block()

    def _continued(self, over, backwards):
        """The walk before this one, if this one goes on with it."""
        self.walks += 1
        if self.walks not in self.outline.fused:
            return None
        last = self.items[-1]
        assert (last.parameters["over"], last.parameters["backwards"]) == (over, backwards)
        return last

    def _reopened(self):
        """The last block of the walk that goes on; its stores are known."""
        if not self.items or not isinstance(self.items[-1], Block):
            return None
        block = self.items.pop()
        block.rows = self.rows
        return block

    def _end_of(self, path):
        variable, *columns = path.split(".")
        at = next((r.domain for r in self.rows if r.path == variable), "")  # "" is the single row
        for column in columns:
            at = self.domains[at].columns[column]
        return at
