"""Loop programs in lowered form: typed values, places of numbers, and regions in order.

``lowering`` makes every decision that languages share: where a number is, in which order a case
loads and stores, where chains begin. Writers of languages (``render.llvm_loops``,
``render.cstyle_loops``) only spell what is here.

**Values** are integers and addresses, by which code finds numbers. Each has a type:

    INTEGER   an integer
    RECORD    the words of a row, which do not change while code runs; may be that of no row
    LISTED    the words of a row of a list, which are in the workspace
    NUMBERS   where numbers of the workspace begin
    MODEL     where numbers of the model begin

and an operation:

    variable                     the record of a row in scope, or the header
    word(record, k)              word ``k`` of a record, of any type
    sum(a, b), product(a, b)     of integers
    element(record, size, n)     the record ``n`` records of ``size`` words further on
    within(place)                the record of a list at a place of the workspace
    row(n)                       where numbers begin that are ``n`` numbers into the workspace
    count(list, cell)            rows of a list at present; ``cell`` is where machine code keeps it

**Places** are where a number is loaded from or stored to.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from kinetree.codegen.program import Program

INTEGER, RECORD, LISTED, NUMBERS, MODEL = "integer", "record", "listed", "numbers", "model"


@dataclass(frozen=True)
class Value:
    """An integer or an address.

    Within a function, or a body of a loop, values of one name are the same. Operands are values,
    and integers that are known.
    """

    name: str
    type: str
    op: str
    operands: tuple = ()


ROBOT = Value("robot", RECORD, "variable")
"""The header."""


class RowPlace(NamedTuple):
    """A number of a row, or of what a record has in the workspace."""

    row: Value
    at: int


class ModelPlace(NamedTuple):
    """A number of the model, the same for all samples."""

    numbers: Value
    at: int


class EntryPlace(NamedTuple):
    """An entry of an array that is ``given`` or a result, ``offset + at`` from its beginning.

    ``argument`` is the array's number among arguments and results.
    """

    table: str
    argument: int
    given: bool
    offset: Value | None
    at: int


# --- cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NewRow:
    """The end of a case: the row behind the last of a list, which counts if node ``keep`` holds.

    ``words`` are number and value of each word of its record. A list that is full, with ``most``
    rows, fails like a check.
    """

    list: str
    record: Value
    words: tuple
    keep: int | None
    count: Value
    most: Value


@dataclass(frozen=True)
class LoweredCase:
    """Straight-line code for rows of some kinds."""

    program: Program
    """Its operations. Outputs that add load what they add to."""
    statements: tuple
    """``Statement``s in order, loads among them: before their use, and before their place gets
    another number."""
    loads: dict
    """Place of each node that is loaded."""
    stores: dict
    """For each node the places that it is stored to as soon as it is there, by name of output."""
    moves: dict
    """The same of numbers that change places with others: all are loaded before one is stored."""
    answers: dict
    """Nodes by name of outputs that are conditions: ``holds@``, ``keep@list``."""
    new_rows: tuple
    """Of lists, ``NewRow``s."""


# --- regions: each has the name of the method of a writer that writes it --------------------------


@dataclass(frozen=True)
class CaseCall:
    """The case for the rows in scope, which may decide a condition.

    ``index`` is its number: kinds of the rows, outermost first, as digits. ``code`` is where
    machine code has the addresses of all of them, ``cases`` the ``LoweredCase``s by number, in
    code that has all of them.
    """

    code: Value
    index: "Value | int"
    records: tuple
    cases: dict
    decides: bool
    method = "case_call"


@dataclass(frozen=True)
class RowLoop:
    """The body for one row after the other; records have ``size`` words."""

    variable: Value
    first: Value
    size: int
    count: Value
    backwards: bool
    body: tuple
    method = "row_loop"


@dataclass(frozen=True)
class ChainLoop:
    """The body for a row and those that follow, each the ``next`` of the one before."""

    variable: Value
    first: Value
    next: Value
    backwards: bool
    body: tuple
    method = "chain_loop"


@dataclass(frozen=True)
class CountedLoop:
    """The body some times, or until a condition holds that is looked at after each time.

    ``most`` may be a place: fractions are rounded up.
    """

    most: "int | EntryPlace"
    until: CaseCall | None
    body: tuple
    method = "counted_loop"


@dataclass(frozen=True)
class Choice:
    """The body if a condition holds."""

    condition: CaseCall
    body: tuple
    method = "choice"


@dataclass(frozen=True)
class ZeroNumbers:
    """Zeros in some places of rows."""

    places: tuple
    method = "zero_numbers"


@dataclass(frozen=True)
class ZeroArray:
    """Zeros in a whole result, whose beginning and size are given."""

    place: EntryPlace
    size: "Value | int"
    method = "zero_array"


@dataclass(frozen=True)
class EmptyList:
    """No more rows in a list; machine code keeps their number in ``cell``."""

    list: str
    cell: Value
    method = "empty_list"


class LoweredWriter:
    """Base of writers: a method for each region, and texts of values, each where it comes first."""

    def __init__(self, *given: Any, **variables: str):
        super().__init__(*given)
        self.known: dict[str, str] = variables

    def regions(self, body: tuple) -> None:
        """Write regions of a lowered loop program in order."""
        for region in body:
            getattr(self, region.method)(region)

    def value(self, x: "Value | int") -> str:
        """Text of a lowered value, whose lines are written at its first use."""
        if isinstance(x, int):
            return str(x)
        if x.name not in self.known:
            given = [self.value(a) if isinstance(a, Value) else a for a in x.operands]
            self.known[x.name] = self.define(x, given)
        return self.known[x.name]

    def define(self, x: Value, given: list) -> str:
        """Text of a lowered value from its operands' texts, after writing the lines it needs."""
        raise TypeError(f"{type(self).__name__} does not say how values are written")

    @contextmanager
    def inside(self, **variables: str) -> Iterator:
        """Context of a block, after which its variables are not known any more."""
        outside, self.known = self.known, {**self.known, **variables}
        yield
        self.known = outside
