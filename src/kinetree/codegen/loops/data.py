"""What a ``LoopProgram`` is bound to: rows, columns, kinds and numbers of one robot."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kinetree.arrays.kinds import Array

SINGLE = ""
"""Name of the domain of the single row that a program has in all: gravity, a given frame."""


@dataclass(frozen=True)
class Rows:
    """The rows of a domain, counted from 0.

    Attributes:
        count: how many there are.
        columns: by name, integers of each row, (count,): a row of another domain, ``NO_ROW`` for
            none, or the first entry along an axis of an argument.
        kinds: those that occur; ``("",)`` for a domain without kinds.
        kind: number of each row's kind among ``kinds``, (count,).
    """

    count: int
    columns: dict[str, Array] = field(default_factory=dict)
    kinds: tuple = ("",)
    kind: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(frozen=True)
class Data:
    """One robot.

    Attributes:
        domains: rows by name of the domain; ``SINGLE`` has one, where the program asks for columns
            that are the same for everything.
        lengths: of axes by name: ``{"q": nq, "v": nv, "b": body_count}``.
        numbers: by domain and name of a table of the model, (count, width); the width is that of
            the table's declaration.
    """

    domains: dict[str, Rows]
    lengths: dict[str, int]
    numbers: dict[str, dict[str, Array]]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Numbers of rows by domain."""
        return {name: rows.count for name, rows in self.domains.items()}

    @cached_property
    def kinds(self) -> dict[str, list]:
        """The kind of every row, by domain; of domains that have some."""
        having = {name: rows for name, rows in self.domains.items() if len(rows.kind)}
        return {name: [rows.kinds[k] for k in rows.kind] for name, rows in having.items()}

    @cached_property
    def integers(self) -> dict[str, dict[str, Array]]:
        """Columns by domain and name."""
        return {name: rows.columns for name, rows in self.domains.items()}
