"""Recording of loops: a text runs once, on rows that stand for any row of their kind.

``for i in recorder.walk("bodies")`` yields one ``LoopRow`` for each kind of body. While the loop's
body runs, ``table[i]`` and ``table[i.column("parent")]`` are loads, unless this code has stored
there; assignments are stores; ``q[i.span("q", 1)]`` are loads from an argument. What is computed
goes into one graph. Where code ends (a nested walk begins, the loop ends), it is kept as a
``RecordedBlock``, and what follows reads the tables.

Inputs are numbered by their block while recording lasts, ``v@i.parent#12``, so that a value can be
traced back to where it was loaded: a value that is used in another block is computed there again,
if everything that it depends on can be loaded again, and rejected otherwise.

A kind of joint is recorded and compiled by itself, whatever other kinds a robot has. But a free
joint, which hangs on the base, never shows that children add to ``IA`` of their parents, so that it
is an articulated inertia and no constants come back from it. The ``Outline`` of a text says such
things for all kinds alike; a first recording, of representative kinds, finds it. It speaks of whole
tables, never of single numbers, so that every kind comes to the same conclusions about another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from kinetree.codegen.loops.language import VARIABLES, Append, Chain, Declaration, Domain, domain_of
from kinetree.codegen.loops.stores import ANY
from kinetree.codegen.loops.values import Array, LoopRow, Sums, Table, Total
from kinetree.errors import TraceError
from kinetree.expr.node import Graph


class _All:
    """Everything."""

    def __contains__(self, x):
        return True


class Bone(NamedTuple):
    """A region without its cases: of its parameters and what is inside of it."""

    region: str
    parameters: dict
    inner: tuple


@dataclass(frozen=True)
class Outline:
    """Properties of a text; those of no text yet by default."""

    like: dict = field(default_factory=dict)
    """Of tables that other rows look at or add to, which all kinds have alike: a value of the type
    and shapes that their rows have."""
    varied: Any = field(default_factory=_All)
    """Tables whose constants do not come back: others add to them, loops do, or a walk along a
    chain sets them again for some rows."""
    crossing: frozenset = frozenset()
    """Tables that other rows look at, whatever their kind."""
    exposed: frozenset = frozenset()
    """Tables that nested walks look at, so that all of a row is kept."""
    unseen: frozenset = frozenset()
    """Tables that are stored to in other rows, but that nothing reads."""
    fused: frozenset = frozenset()
    """Numbers of the walks that go on with the walk before them."""
    stored: frozenset = frozenset()
    """Tables that walks set, each with the number of the walk."""
    skeleton: tuple = ()
    """The regions, in the order of what is recorded; None for what does nothing."""
    first: bool = True
    """Whether this is the outline of the first recording."""


@dataclass
class Access:
    """The tables that a walk reads or stores to: in the row of its variable, or in others.

    Others are rows that its own row refers to, or ``anywhere``: of a frame that is given, say.
    """

    read: set = field(default_factory=set)
    stored: set = field(default_factory=set)
    read_other: set = field(default_factory=set)
    stored_other: set = field(default_factory=set)
    anywhere: set = field(default_factory=set)

    @property
    def other(self) -> set:
        """Tables in whose other rows, not that of its variable, a walk reads or stores."""
        return self.read_other | self.stored_other

    @property
    def all(self) -> set:
        """All tables that a walk reads or stores to."""
        return self.read | self.stored | self.other

    def note(self, table: str, own: bool, stores: bool) -> None:
        """Record that a walk reads or stores to a table, in its ``own`` row or in others."""
        kind = ("stored" if stores else "read") + ("" if own else "_other")
        getattr(self, kind).add(table)

    def __or__(self, after: "Access") -> "Access":
        parts = ("read", "stored", "read_other", "stored_other", "anywhere")
        return Access(*(getattr(self, p) | getattr(after, p) for p in parts))


def can_follow(first: Access, second: Access, backwards: bool) -> bool:
    """Whether two successive walks in the same direction can be fused into one.

    A row that others refer to comes before them: outward, after them: inward. So what the first
    walk does at *other* rows must not concern the second, nor the other way round; outward the
    second may look at other rows that the first has set, for these are complete by then; inward at
    its own row, to which the first has added.
    """
    if second.stored & first.read_other or second.stored_other & first.all:
        return False
    if first.stored & second.anywhere:
        return False
    if backwards:
        return not (first.stored | first.stored_other) & second.other
    return not first.stored_other & second.all


@dataclass(eq=False)
class RecordedBlock:
    """Straight-line code as it is recorded.

    ``values`` by table and path are what loads see; those ``stored`` are stores. ``entries`` are
    single numbers of arrays, by name, paths and index. Code that is ``kept`` is there even if
    representative kinds have none.
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
    kept: bool = False


@dataclass(eq=False)
class RecordedLoop:
    """A region with a body as it is recorded: items by kind."""

    region: str
    parameters: dict
    bodies: dict = field(default_factory=dict)


class LoopRecorder:
    """Recorder of a text's operations, as blocks and loops.

    Args:
        domains: those that the text walks over.
        kinds: for each domain the kinds of rows to record; by default one, ``""``.
        outline: what the recording of representative kinds has shown.
        pairs: kinds of nested walks to record, outermost first; by default all. Those of a single
            kind are recorded in any case: what its rows have must not depend on others.
    """

    def __init__(self, domains, kinds=None, outline=None, pairs=None):
        self.domains: dict[str, Domain] = {d.name: d for d in domains}
        self.kinds, self.pairs = kinds or {}, pairs
        self.outline = outline or Outline()
        self.graph, self.tables = Graph(), {}
        self.declared: dict[str, Declaration] = {}
        self.cleared: list[str] = []
        self.items: list[Any] = []  # blocks and loops
        self.scope: tuple[RecordedLoop, ...] = ()
        self.rows: tuple[LoopRow, ...] = ()
        self.serial = self.walks = 0
        self.by_serial: dict[int, RecordedBlock] = {}  # also those that only load
        self.keeps = False  # whether code is kept that only some kinds have: checks
        self.stored: dict[str, dict[int, Any]] = {}  # by table and number of the walk: over what
        self.folded: set[tuple[str, int]] = set()  # where constants of other rows came back
        self.block = self._new_block()

    # --- tables and arrays ------------------------------------------------------------------

    def table(self, domain: str, base: Any = None) -> Table:
        """New table with one value per row of a domain; ``base`` is that of row 0, the root."""
        name = f"t{len(self.tables)}"
        self.declared[name] = Declaration(name, "rows", domain)
        self.tables[name] = Table(self, name, domain, base)
        return self.tables[name]

    def sums(self, domain: str, zero: Any) -> Sums:
        """New table of sums per row of a domain; rows without a parent add to a total."""
        total, name = self.total(zero), f"t{len(self.tables)}"
        self.declared[name] = Declaration(name, "rows", domain)
        self.tables[name] = table = Sums(self, name, domain, total)
        return table

    def total(self, zero: Any = 0) -> Total:
        """New scalar or array that walks add to, initially ``zero``."""
        table = self.table("", zero)
        self.cleared.append(table.name)
        return Total(table, LoopRow(self, "", "", ANY))

    def argument(self, name: str, axes: tuple = ()) -> Any:
        """Traced argument of the program; an ``Array`` if an axis depends on the robot."""
        self.declared[name] = Declaration(name, "argument", "", axes)
        if any(isinstance(n, str) for n in axes):
            return Array(self, name, axes)
        return self._leaves(f"{name}@{',' * (len(axes) - 1)}", axes)

    def result(self, axes: tuple, table: Table | None = None, zeros: bool = True) -> Array:
        """New result array of the program, initialised to zero unless walks set all of it.

        ``table``: has what is read from it.
        """
        name = f"out{sum(d.storage == 'result' for d in self.declared.values())}"
        self.declared[name] = Declaration(name, "result", "", axes)
        if zeros:
            self.cleared.append(name)
        return Array(self, name, axes, table)

    def given_back(self, value: Any) -> str:
        """Name of the result that returns a value, stored to a new result if necessary."""
        if isinstance(value, Array):
            return value.name
        value = np.asarray(value, dtype=object)
        result = self.result(value.shape, zeros=False)
        result[(slice(None),) * value.ndim] = value
        self._close()
        return result.name

    def numbers(self, name: str, size: int, row: LoopRow | None = None) -> np.ndarray:
        """Parameters of the model by name, (size,): of a row, or global ones without a row."""
        domain = row.domain if row is not None else ""
        known = self.declared.get(name)
        most = max(size, known.axes[0] if known else 0)
        self.declared[name] = Declaration(name, "model", domain, (most,))
        if row is not None:
            self.block_at(row)
        return self._leaves(f"{name}@{row.path if row is not None else ''}", (size,))

    def leaf(self, place: str, index: tuple) -> Any:
        """Node that loads one number, tied to the present block unless the place is constant."""
        table, _, path = place.partition("@")
        fixed = not path.strip(",") and self.declared[table].storage in ("model", "argument")
        return self.graph.input(place if fixed else f"{place}#{self.block.serial}", index)

    def _leaves(self, place, shape):
        """Array of nodes that load the numbers of a place, in the given shape."""
        found = np.empty(shape, dtype=object)
        for index in np.ndindex(found.shape):
            found[index] = self.leaf(place, index)
        return found if shape else found[()]

    # --- regions ----------------------------------------------------------------------------

    @property
    def goes_backwards(self) -> bool:
        """Whether the last recorded walk goes from the last row to the first."""
        loops = [item for item in self.items if isinstance(item, RecordedLoop)]
        return bool(loops) and loops[-1].parameters.get("backwards", False)

    def walk(
        self, over: str | Chain, backwards: bool = False, kinds: tuple | None = None
    ) -> Iterator:
        """Walk over the rows of a domain or chain; yields a row per kind, to record the body."""
        variables = {r.path: r.domain for r in self.rows}
        domain = over if isinstance(over, str) else domain_of(over.start, variables, self.domains)
        variable = VARIABLES[len(self.rows)]
        loop = None
        if not self.scope:
            loop = self._walk_to_continue(over, backwards)
        if loop is None:
            self._close()
            parameters = {"variable": variable, "over": over, "backwards": backwards}
            loop = RecordedLoop("walk", parameters)
            self.items.append(loop)
        outside = self.items, self.scope, self.rows
        kinds = self.kinds.get(domain, ("",)) if kinds is None else kinds
        for kind in kinds:
            rows = (*outside[2], LoopRow(self, domain, variable, kind, loop))
            if not self._is_wanted(tuple(row.kind for row in rows)):
                continue
            self.items = loop.bodies.setdefault(kind, [])
            self.scope, self.rows = (*outside[1], loop), rows
            self.block = self._reopen() or self._new_block()
            yield rows[-1]
            self._close()
        self.items, self.scope, self.rows = outside
        self.block = self._new_block()

    def _is_wanted(self, kinds):
        """Whether a nested walk is recorded for rows of these kinds."""
        return self.pairs is None or kinds in self.pairs or len(set(kinds) - {""}) < 2

    def repeat(self, times: int | str) -> Iterator:
        """Loop with ``times`` iterations, a constant or argument; its context is the body."""
        yield from self._inside(RecordedLoop("repeat", {"times": times}))

    def until(self, most: int | str) -> Iterator:
        """Loop until ``stop`` receives a condition that holds, at most ``most`` times."""
        yield from self._inside(RecordedLoop("until", {"most": most}))

    def stop(self, condition: Any) -> None:
        """End an ``until`` loop when ``condition`` holds; the last statement of its body."""
        row = self.rows[-1] if self.rows else LoopRow(self, "", "", ANY)
        ends = self.table(row.domain)  # it may depend on rows that the body has changed
        ends[row] = condition.select(1.0, 0.0)
        self.scope[-1].parameters["condition"] = self._condition(lambda: ends[row] > 0.5)

    def when(self, condition: Any) -> Iterator:
        """Conditional block: its body runs once if the traced condition holds."""
        yield from self._inside(
            RecordedLoop("when", {"condition": self._condition(lambda: condition)})
        )

    def append(self, name: str, columns: dict, rows: dict, keep: Any = None) -> None:
        """Append a row to a growing list, with references to rows and values, if ``keep`` holds."""
        new = LoopRow(self, name, f"{name}.new", ANY, self.scope[-1] if self.scope else None)
        for table, value in rows.items():
            self.block.stored[table.name, new.path] = value
            table.latest.setdefault("", value)
        if keep is not None:
            self.block.conditions[f"keep@{name}"] = keep
        self.block.appends.append(Append(name, {c: row.path for c, row in columns.items()}))

    def _condition(self, get):
        """Separate block whose only result is the condition that ``get()`` returns."""
        self._close()
        block = self.block
        block.conditions["holds@"] = get()
        self._take_checks(block)
        self.block = self._new_block()
        return block

    def _inside(self, loop):
        """Context in which operations are recorded as the body of a loop."""
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

    def block_at(self, row: LoopRow) -> RecordedBlock:
        """The current block; TraceError if ``row`` belongs to a walk that has ended."""
        if row.loop is not None and row.loop not in self.scope:
            raise TraceError(
                f"a row of a walk ({row.path}) is used after the walk, where it stands for no row: "
                f"do it inside"
            )
        return self.block

    def _new_block(self):
        """Begin a new block of straight-line code in the current loops."""
        self.serial += 1
        found = RecordedBlock(
            self.serial, self.scope, self.rows, kept=self.keeps and bool(self.rows)
        )
        self.by_serial[self.serial] = found
        return found

    def _take_checks(self, block):
        """Move run-time checks traced since the last block into this block."""
        block.checks += self.graph.checks
        self.graph.checks = []

    def _close(self):
        """End the current block and begin another, which loads values from the tables."""
        self._take_checks(self.block)
        self.items.append(self.block)
        self.block = self._new_block()

    def _walk_to_continue(self, over, backwards):
        """The previous walk if this one is fused with it, else None."""
        self.walks += 1
        if self.walks not in self.outline.fused:
            return None
        last = self.items[-1]
        assert (last.parameters["over"], last.parameters["backwards"]) == (over, backwards)
        return last

    def _reopen(self):
        """Last block of the previous walk, reopened for a fused one; None if there is none."""
        if not self.items or not isinstance(self.items[-1], RecordedBlock):
            return None
        block = self.items.pop()
        block.rows = self.rows
        return block
