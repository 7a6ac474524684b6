"""Programs with loops over tables: what they consist of, and what they mean.

Specialised code is a straight line, unrolled for one robot. A ``LoopProgram`` is the same
computation for every robot: loops over tables whose lengths and contents are known when the code
runs. The robot is data.

**Domains and tables.** A domain is a set of things that have a row each: the bodies of a robot, its
frames, pairs of shapes, contacts. Its columns are integers of a row: the number of another row
(``parent``), or the first of its entries along an axis of an argument (``q``, ``v``). A table holds
numbers, and has one of four storages:

    rows      of the workspace, per row of a domain and sample; computed by the program
    model     of the robot, per row; read only, the same for all samples
    argument  an array that the caller gives
    result    an array that the caller gets

A table of no domain has a single row (gravity, a total).

**Cases.** All arithmetic is in straight-line programs, ordinary ``Program``s, one for each *kind*
of row (the class of a joint, say; in nested loops one for each pair of kinds). Their inputs are
loads and their outputs are stores; the names say where:

    v@i  v@i.parent  S@j     rows: of the loop's variable, or of a row that a column names
    inertia@i                numbers of the model, of a row
    q@i.q  tau@i.v           arrays: from this row's first entry along the axis on
    H@i.v,j.v  J@,j.v        one offset per axis, nothing for the beginning of an axis
    gravity@  E@             a single row; a number or a whole array of fixed shape

An input has its numbers by index, as in any program: ``("input", "v@i.parent", (3,))``; numbers of
a row are counted through, whatever they are parts of. An output is a single number and has its
index in its name: ``f@i[3]``, ``H@i.v,j.v[0,2]``. It *sets* its place, or, written
``+f@i.parent[3]``, *adds* to it. ``place_of`` takes such names apart.

A case first loads, then computes, then stores: an input is what its place held before the case ran.
Two paths of a case that are spelled differently name different rows (a body is not its own parent;
a contact has two bodies): the interpreter checks it.

**Regions** say in which order cases run:

    Code(cases)                       the case for the kinds of the variables in scope
    Walk(variable, over, ...)         for every row of a domain or list, or along a chain of rows
    Repeat(times, body)               a number of times
    Until(condition, most, body)      until a condition holds, at most ``most`` times
    When(condition, body)             if a condition holds
    Clear(table)                      zeros everywhere; a list becomes empty

Nothing is carried from one row to the next but in tables. A row is set before it is read.

**Lists** are domains that grow while the program runs (``grows=True``): a case that ``append``s
stores to the row behind the last, ``n@touch.new[0]``, and the row counts, unless the case has an
output ``keep@touch`` that does not hold. Columns of the new row name rows in scope:
``Append.columns``. How many rows a list can have is in the robot's data; one more fails like a
check.

**Lanes.** Where the robot alone decides which case runs next, samples run side by side in lanes of
a vector. Where values decide (lists, ``When``, ``Until``), each sample runs by itself: see
``LoopProgram.by_values``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.program import Program

VARIABLES = ("i", "j", "k", "l")
"""Of loops, by depth."""

NO_ROW = -1
"""In a column: there is none. A body on the fixed base has no row above it."""


@dataclass(frozen=True)
class Domain:
    """Things that have rows."""

    name: str
    """Such as ``"bodies"``."""
    columns: dict[str, str] = field(default_factory=dict)
    """Integers of a row, each with what it refers to: the name of a domain, whose row it is, or the
    name of an extent, along which it is the first entry."""
    grows: bool = False
    """Whether it is a list, which is empty at first."""


@dataclass(frozen=True)
class Declaration:
    """A table."""

    name: str
    """In places."""
    storage: str
    """``"rows"``, ``"model"``, ``"argument"`` or ``"result"``."""
    domain: str = ""
    """Whose rows it has, for storages ``rows`` and ``model``; ``""`` for a single row."""
    axes: tuple = ()
    """Of an argument or result: sizes, or names of extents (``"q"``, ``"v"``, ``"b"``) whose length
    is that of the robot. Of numbers of the model: their number. Rows have none: how many numbers
    a row has depends on its kind."""


class NumberPlace(NamedTuple):
    """Where a number lives: see the module. ``paths`` has one entry per axis, or one row."""

    table: str
    paths: tuple
    index: tuple = ()
    adds: bool = False


def place_of(name: str) -> NumberPlace:
    """Place of a number (table, paths of rows, index) from the name of an input or output."""
    adds = name[0] == "+"
    name, _, index = name[adds:].partition("[")
    table, _, where = name.partition("@")
    entries = tuple(int(k) for k in index[:-1].split(",") if k)
    return NumberPlace(table, tuple(where.split(",")), entries, adds)


def output_name(place: NumberPlace) -> str:
    """Name of the output that stores to a place; ``+`` in front if it adds."""
    index = ",".join(map(str, place.index))
    return f"{'+' * place.adds}{input_name(place)}[{index}]"


def input_name(place: NumberPlace) -> str:
    """Name of the input that loads from a place: table and paths of rows, without the index."""
    return f"{place.table}@{','.join(place.paths)}"


# --- regions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Append:
    """One more row of a list, if the output ``keep@list`` holds or there is none.

    ``columns``: for each column of the list the path of the row whose number it gets.
    """

    list: str
    columns: dict[str, str]


@dataclass(frozen=True)
class Code:
    """Straight-line code: ``cases`` by the kinds of all variables in scope, outermost first.

    A variable over a domain without kinds has the kind ``""``. Outside all walks the key is ``()``.
    """

    cases: dict[tuple, Program]
    appends: tuple[Append, ...] = ()


@dataclass(frozen=True)
class Chain:
    """The rows from ``start`` on, each the ``column`` of the one before, as long as there is one.

    ``Chain("i.parent", "parent")`` are the bodies above body ``i``. A start ``world.frame`` is a
    column of the single row that a program has in all: data, such as the body of a given frame.
    """

    start: str
    column: str


@dataclass(frozen=True)
class Walk:
    """The body of the loop for one row after the other; ``backwards`` from the last to the first.

    ``over``: the name of a domain (a list, too), or a ``Chain``.
    """

    variable: str
    over: "str | Chain"
    backwards: bool
    body: tuple


@dataclass(frozen=True)
class Repeat:
    """The body ``times`` times: a number, or the name of an argument without axes, ``"times@"``.

    Fractions of an argument are rounded up, negative values count as zero, as in ``kt.repeat``.
    """

    times: "int | str"
    body: tuple


@dataclass(frozen=True)
class Until:
    """The body again and again: until its ``condition`` holds, looked at after each time.

    ``condition`` is code with an output ``holds@``. ``most`` bounds the number of times.
    """

    condition: Code
    most: "int | str"
    body: tuple


@dataclass(frozen=True)
class When:
    """The body, if the output ``holds@`` of ``condition`` holds."""

    condition: Code
    body: tuple


@dataclass(frozen=True)
class Clear:
    """Zeros in a whole table of rows or result; no more rows in a list."""

    table: str


@dataclass(frozen=True)
class LoopProgram:
    """Regions in order, and what they are about."""

    name: str
    """What is computed."""
    arguments: tuple[str, ...]
    """Names of the tables that the caller gives, in call order."""
    results: tuple[str, ...]
    """Names of the tables that the caller gets, in order."""
    domains: dict[str, Domain]
    """By name."""
    tables: dict[str, Declaration]
    """By name."""
    body: tuple[Any, ...]
    """The regions."""
    shared: dict[str, tuple] = field(default_factory=dict)
    """For each domain the numbers, ``(table, k)``, that others than the row itself look at or add
    to. They come first in a row, in this order, whatever its kind, so that the code of a kind
    can be compiled alone."""
    rows: dict[tuple, tuple] = field(default_factory=dict)
    """For each ``(domain, kind)`` all numbers of a row in order, the shared ones first. A row is as
    long as this; the numbers of a sample lie side by side."""
    exposed: frozenset = frozenset()
    """Tables that nested walks look at, of which all numbers of a row are kept."""

    @property
    def by_values(self) -> bool:
        """Whether values decide about branches or loop counts, so that samples run one by one."""
        return any(d.grows for d in self.domains.values()) or any(
            isinstance(r, (When, Until)) or (isinstance(r, Repeat) and isinstance(r.times, str))
            for r, _ in regions(self.body)
        )

    def codes(self) -> "Iterator[tuple[Code, tuple[Walk, ...]]]":
        """All straight-line code in order, conditions included, with the walks around each."""
        for region, walks in regions(self.body):
            if isinstance(region, Code):
                yield region, walks

    def scope(self, walks: tuple[Walk, ...]) -> dict[str, str]:
        """Domain of the rows that each loop variable goes over, outermost walk first."""
        found = {}
        for walk in walks:
            over = walk.over
            is_chain = isinstance(over, Chain)
            domain = domain_of(over.start, found, self.domains) if is_chain else over
            found[walk.variable] = domain
        return found


def domain_of(path: str, variables: dict[str, str], domains: dict[str, Domain]) -> str:
    """Domain of the row that a path such as ``i.parent`` names, given the domains of variables.

    A path that starts with no variable starts from the single row.
    """
    first, *columns = path.split(".")
    domain = variables.get(first, "")
    for column in columns:
        domain = domains[domain].columns[column]
    return domain


def with_codes(body: tuple, change: Callable[[Code], Code]) -> tuple:
    """Copy of regions with ``change`` applied to all straight-line code, conditions included."""
    found = []
    for region in body:
        if isinstance(region, Code):
            region = change(region)
        elif not isinstance(region, Clear):
            inner: dict[str, Any] = {"body": with_codes(region.body, change)}
            if isinstance(region, (When, Until)):
                inner["condition"] = change(region.condition)
            region = replace(region, **inner)
        found.append(region)
    return tuple(found)


def regions(body: tuple, walks: tuple = ()) -> "Iterator[tuple[Any, tuple[Walk, ...]]]":
    """All regions of a program in order, outer before inner, each with the walks around it."""
    for region in body:
        yield region, walks
        inner = (*walks, region) if isinstance(region, Walk) else walks
        if isinstance(region, When):
            yield region.condition, inner
        if not isinstance(region, (Code, Clear)):
            yield from regions(region.body, inner)
        if isinstance(region, Until):
            yield region.condition, inner


BODIES = "bodies"
"""Name of the domain whose rows have kinds."""

SINGLE = ""
"""Name of the domain of the single row that a program has in all: gravity, a given frame."""


@dataclass(frozen=True)
class RowRange:
    """The rows of a domain, counted from 0."""

    count: int
    """How many there are."""
    columns: dict[str, Array] = field(default_factory=dict)
    """By name, integers of each row, (count,): a row of another domain, ``NO_ROW`` for none, or the
    first entry along an axis of an argument."""
    kinds: tuple = ("",)
    """Those that occur; ``("",)`` for a domain without kinds."""
    kind: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Number of each row's kind among ``kinds``, (count,)."""

    @cached_property
    def kind_numbers(self) -> Array:
        """Number of each row's kind in ``kind``; all zero for a domain without kinds."""
        return self.kind if len(self.kind) else np.zeros(self.count, dtype=np.int64)


@dataclass(frozen=True)
class Data:
    """One robot."""

    domains: dict[str, RowRange]
    """Rows by name of the domain; ``SINGLE`` has one, where the program asks for columns that are
    the same for everything."""
    lengths: dict[str, int]
    """Of axes by name: ``{"q": nq, "v": nv, "b": body_count}``."""
    numbers: dict[str, dict[str, Array]]
    """By domain and name of a table of the model, (count, width); the width is that of the table's
    declaration."""

    def rows(self, domain: str) -> RowRange:
        """Rows that a robot has in a domain; an empty range where it has none."""
        return self.domains.get(domain) or RowRange(int(domain == SINGLE))
