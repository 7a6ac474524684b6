"""What algorithms walk over and keep per body, of one robot: ranges, lists and arrays.

A text that walks by these and keeps its values in these tables runs on one robot, and on a general
model that stands for every robot and records the walk as a loop: see ``kinetree.model.general``.
Values that a walk carries along live in tables, never in a variable of Python.
"""

from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array


def outward(model: Any) -> Any:
    """The bodies, each after its parent."""
    return range(1, model.body_count + 1)


def inward(model: Any) -> Any:
    """The bodies, each before its parent."""
    return range(model.body_count, 0, -1)


def above(model: Any, i: int) -> Any:
    """The bodies between body ``i`` and the base, its parent first."""
    found, p = [], model.parent[i]
    while p:  # model.support has n²/2 numbers for a chain
        found.append(p)
        p = model.parent[p]
    return found


def variables(model: Any) -> Any:
    """The velocity variables, one after the other: columns of a matrix."""
    return range(model.nv)


def unit(model: Any, k: int) -> Array:
    """The vector of velocity variables that is 1 for variable ``k`` and 0 for all others."""
    return np.eye(model.nv, dtype=int)[k]


def parameter_slice(model: Any, i: int) -> slice:
    """Where the ten inertial parameters of body ``i`` are among those of all."""
    return slice(10 * i - 10, 10 * i)


def laden(model: Any) -> list:
    """Whether a body, or one between it and the base, has mass.

    Farther up may be sliders without mass that are far away from all the others.
    """
    found = [False] * (model.body_count + 1)
    for i in outward(model):
        m = model.inertia[i].mass
        massless = isinstance(m, (int, float, np.number)) and m == 0  # whatever parameters may be
        found[i] = found[model.parent[i]] or not massless
    return found


def first_laden(model: Any) -> int:
    """The first body with mass; the base, where none has."""
    return model.laden.index(True) if any(model.laden) else 0


def table(model: Any, base: Any = None) -> Any:
    """One value per body, to be filled in; ``base`` is that of the fixed base."""
    return [base] + [None] * model.body_count


def sums(model: Any, zero: Any) -> Any:
    """A table in which walks add to their parents' rows, that of the base included: ``zero``."""
    return table(model, zero)


def copied(model: Any, rows: Any) -> Any:
    """A table that begins as a copy of another, for sums."""
    return list(rows)


def filled(model: Any, value: Any) -> Any:
    """A table that begins with one value for all bodies."""
    return [value] * (model.body_count + 1)


def chain(model: Any, i: int) -> Any:
    """The bodies from the base to body ``i``, each after its parent; none for the base itself."""
    return (*reversed(above(model, i)), i) if i else ()


class Total:
    """A sum over bodies: ``add`` in the walk, ``value`` after it."""

    def __init__(self, zero: Any):
        self.value = zero

    def add(self, x: Any) -> None:
        """Add what one body has."""
        self.value = self.value + x


def total(model: Any, zero: Any = 0) -> Any:
    """A sum that begins with ``zero``."""
    return Total(zero)


def of_body(model: Any, array: Any, i: Any) -> Any:
    """What an array (body_count, ...) has for body ``i``."""
    return array[i - 1]


def joined(model: Any, rows: Any, by: str = "v") -> Any:
    """A table of arrays, one per joint, as one vector, by velocity or position variables."""
    return np.concatenate(rows)


def stacked(model: Any, rows: Any, *shape: int) -> Any:
    """A table of arrays of one shape, one per body, as one array (body_count, *shape)."""
    return np.array(rows[1:]).reshape(model.body_count, *shape)


def columns(model: Any, rows: Any, size: int, *like: Any) -> Any:
    """A table of columns (size, n_i) side by side, (size, nv); zero for joints that have none."""
    found = np.zeros((size, model.nv), dtype=model.scalar_type(*like))
    for at, part in zip(model.v_slice, rows, strict=True):
        if part is not None:
            found[:, at] = part.to_array() if hasattr(part, "to_array") else part
    return found


def zeros(model: Any, shape: tuple, *like: Any) -> Array:
    """A result to be filled in by blocks: axes are "nv", "body_count", "parameters" or numbers.

    Its type holds the model's numbers and those of ``like``: arrays, or tables.
    """
    named = {"nv": model.nv, "body_count": model.body_count, "parameters": 10 * model.body_count}
    sizes = [named[n] if isinstance(n, str) else n for n in shape]
    rows = (x for a in like for x in (a if isinstance(a, list) else (a,)) if x is not None)
    numbers = (x.to_array() if hasattr(x, "to_array") else x for x in rows)
    return np.zeros(sizes, dtype=model.scalar_type(*numbers))


def matrix(model: Any, *like: Any) -> Array:
    """Zeros, (nv, nv), of a type that holds the model's numbers and those of ``like``."""
    return zeros(model, ("nv", "nv"), *like)
