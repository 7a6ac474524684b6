"""What algorithms walk over and keep per body, of one robot: ranges, lists and arrays.

A text that walks by these and keeps its values in these tables runs on one robot, and on a general
model that stands for every robot and records the walk as a loop: see ``kinetree.model.general``.
Values that a walk carries along live in tables, never in a variable of Python.
"""

from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array


def outward(model) -> Any:
    """The bodies, each after its parent."""
    return range(1, model.body_count + 1)


def inward(model) -> Any:
    """The bodies, each before its parent."""
    return range(model.body_count, 0, -1)


def above(model, i: int) -> Any:
    """The bodies between body ``i`` and the base, its parent first."""
    found, p = [], model.parent[i]
    while p:  # model.support has n²/2 numbers for a chain
        found.append(p)
        p = model.parent[p]
    return found


def table(model, base: Any = None) -> Any:
    """One value per body, to be filled in; ``base`` is that of the fixed base."""
    return [base] + [None] * model.body_count


def copied(model, rows: Any) -> Any:
    """A table that begins as a copy of another, for sums."""
    return list(rows)


def joined(model, rows: Any) -> Any:
    """A table of arrays, one per joint, as one vector."""
    return np.concatenate(rows)


def matrix(model, *like: Any) -> Array:
    """Zeros, (nv, nv), of a type that holds the model's numbers and those of ``like``."""
    return np.zeros((model.nv, model.nv), dtype=model.scalar_type(*like))
