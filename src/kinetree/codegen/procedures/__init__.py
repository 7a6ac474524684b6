"""Procedures run by Python itself, until the compiler of this package takes this file's place."""

from math import atan2, cos, floor, isfinite, sin, sqrt

import numpy as np

__all__ = [
    "atan2", "cos", "cross", "floor", "isfinite", "local", "procedure", "record", "sin", "sqrt",
    "view",
]  # fmt: skip


def cross(a, b):
    """Product of two vectors."""
    return np.array([
        a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0],
    ])  # fmt: skip


def procedure(function):
    """The function, with itself as its meaning in Python."""
    function.python = function
    return function


def record(cls):
    """The class, with numbers and arrays given by name."""

    def filled(self, **values):
        if set(values) != set(cls.__annotations__):
            raise TypeError(f"{cls.__name__} takes {sorted(cls.__annotations__)}")
        self.__dict__.update(values)

    cls.__init__ = filled
    return cls


def local(kind, *shape):
    """An array on the stack."""
    return np.full(shape, np.nan) if kind == "float" else np.zeros(shape, dtype=np.int64)


def view(array, start, *shape):
    """The array from an offset on, maybe in another shape."""
    if not shape:
        return array[start:]
    size = int(np.prod(shape))
    return array.reshape(-1)[start : start + size].reshape(shape)
