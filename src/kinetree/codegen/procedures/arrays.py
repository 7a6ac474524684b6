"""Values while a procedure is written: numbers, arrays in memory, small arrays of numbers."""

import math
import struct
from dataclasses import dataclass
from itertools import product
from typing import Any

from kinetree.codegen.procedures.language import FLOAT, INT, ArrayType


@dataclass(frozen=True)
class Number:
    """A number: what LLVM calls it, and its type."""

    x: str
    kind: Any

    @property
    def literal(self):
        """The whole number that is written here, or None."""
        return int(self.x) if self.kind == INT and self.x.lstrip("-").isdigit() else None


@dataclass(frozen=True)
class Pointed:
    """An array in memory: address of its first number, and how far apart numbers are."""

    at: str
    element: str
    dims: tuple
    strides: tuple

    @property
    def kind(self):
        """Its type."""
        return ArrayType(self.element, self.dims)

    @property
    def is_contiguous(self):
        """Whether numbers are in memory one after the other, the last index first."""
        wanted = strides_of(self.dims)
        return all(
            s == w or d == 1 for s, w, d in zip(self.strides, wanted, self.dims, strict=True)
        )


@dataclass(frozen=True)
class Small:
    """An array of numbers that are nowhere in memory, in the order of C."""

    element: str
    dims: tuple
    numbers: tuple

    @property
    def kind(self):
        """Its type."""
        return ArrayType(self.element, self.dims)


@dataclass(frozen=True)
class Pointer:
    """A record: its address and class."""

    at: str
    kind: Any


def strides_of(dims):
    """Distances between numbers of a contiguous array along each axis."""
    return tuple(math.prod(dims[k + 1 :]) for k in range(len(dims)))


def places(dims):
    """All indices of a small array."""
    return product(*map(range, dims))


def literal(value) -> Number:
    """A constant."""
    if isinstance(value, bool):
        return Number("true" if value else "false", "i1")
    if isinstance(value, int):
        return Number(str(value), INT)
    return Number("0x" + struct.pack(">d", float(value)).hex().upper(), FLOAT)
