"""What a ``LoopProgram`` is bound to: rows, columns, kinds and numbers of one robot."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kinetree.arrays.kinds import Array

BODIES = "bodies"
"""Name of the domain whose rows have kinds."""

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

    @cached_property
    def kind_numbers(self) -> Array:
        """``kind``, all zero for a domain without kinds."""
        return self.kind if len(self.kind) else np.zeros(self.count, dtype=np.int64)


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

    def rows(self, domain: str) -> Rows:
        """The rows of a domain; none where the robot does not have it."""
        return self.domains.get(domain) or Rows(int(domain == SINGLE))
