"""What one kind of row alone does not show of a text, found by recording representative kinds.

A kind of joint is recorded and compiled by itself, whatever other kinds a robot has. But a free
joint, which hangs on the base, never shows that children add to ``IA`` of their parents, so that it
is an articulated inertia and no constants come back from it. The outline of a text says such things
for all kinds alike. It speaks of whole tables, never of single numbers, so that every kind comes to
the same conclusions about another.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple


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
    """Properties of a text; those of no text yet by default.

    Attributes:
        like: of tables that other rows look at or add to, which all kinds have alike: a value of
            the type and shapes that their rows have.
        varied: tables whose constants do not come back: others add to them, loops do, or a
            walk along a chain sets them again for some rows.
        crossing: tables that other rows look at, whatever their kind.
        exposed: tables that nested walks look at, so that all of a row is kept.
        unseen: tables that are stored to in other rows, but that nothing reads.
        fused: numbers of the walks that go on with the walk before them.
        stored: tables that walks set, each with the number of the walk.
        skeleton: the regions, in the order of what is recorded; None for what does nothing.
        first: whether this is the outline of the first recording.
    """

    like: dict = field(default_factory=dict)
    varied: Any = field(default_factory=_All)
    crossing: frozenset = frozenset()
    exposed: frozenset = frozenset()
    unseen: frozenset = frozenset()
    fused: frozenset = frozenset()
    stored: frozenset = frozenset()
    skeleton: tuple = ()
    first: bool = True


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
        """All tables in whose other rows it reads or stores."""
        return self.read_other | self.stored_other

    @property
    def all(self) -> set:
        """All tables."""
        return self.read | self.stored | self.other

    def note(self, table: str, own: bool, stores: bool) -> None:
        """One more access."""
        kind = ("stored" if stores else "read") + ("" if own else "_other")
        getattr(self, kind).add(table)

    def __or__(self, after: "Access") -> "Access":
        parts = ("read", "stored", "read_other", "stored_other", "anywhere")
        return Access(*(getattr(self, p) | getattr(after, p) for p in parts))


def can_follow(first: Access, second: Access, backwards: bool) -> bool:
    """Whether two walks in the same direction can be one: each row does both, then the next row.

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
