"""What a ``LoopProgram`` is bound to: rows, columns, kinds and numbers of one robot."""

from dataclasses import dataclass, field

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
        extents: lengths of axes by name: ``{"q": nq, "v": nv, "b": body_count}``.
        numbers: by name of a table of the model, (rows, width); (1, width) for a single row. A
            width may be larger than what one kind of row reads, and differ between robots.
    """

    domains: dict[str, Rows]
    extents: dict[str, int]
    numbers: dict[str, Array]
