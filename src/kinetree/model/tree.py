"""Connectivity of a kinematic tree: λ, μ, κ, ν — RBDA §4.1.4, §6.5, Table 6.4.

Bodies are numbered 0 … N_B with the base as 0 and every parent below its children, so that one
ascending loop meets parents first. ``parent[0]`` is -1 and never used by an algorithm.

A text that walks by ``outward``, ``inward`` and ``above`` and keeps its values in ``table`` runs on
one robot, and on a general model that stands for every robot and records the walk as a loop: see
``kinetree.model.general``. Values that a walk carries along live in tables, never in a variable of
Python.
"""

import heapq
from math import factorial, prod
from operator import index
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import ModelError


def check_parents(parent, names=None):
    """Raise unless ``parent`` is a regular numbering: ``0 ≤ λ(i) < i`` — RBDA (4.2)."""
    for i, p in enumerate(parent[1:], start=1):
        _check_number(p, i, len(parent), names)
    for i, p in enumerate(parent[1:], start=1):
        if p < i:
            continue
        cycle = _cycle(parent, i)
        if cycle:
            path = " -> ".join(_label(k, names) for k in cycle)
            raise ModelError(
                f"bodies hang on each other in a circle, not on the base: {path}. A joint that "
                f"closes a kinematic loop is not a parent joint: add it as a loop"
            )
        raise ModelError(
            f"parent of body {_label(i, names)} is {_label(p, names)}, but a regular numbering "
            f"needs 0 <= parent < {i}: list every body after its parent (ModelBuilder does it)"
        )


def _check_number(p, i, count, names):
    """Raise an error unless a parent is the number of an earlier body."""
    try:
        index(p)
    except TypeError:
        raise ModelError(
            f"parent of body {_label(i, names)} must be a body number, got {p!r}"
        ) from None
    if not 0 <= p < count:
        raise ModelError(
            f"parent of body {_label(i, names)} is {p}; the model has bodies 0 to {count - 1}"
        )


def _label(i, names):
    """Number of a body with its name."""
    return f"{i}" if names is None else f"{i} ({names[i]!r})"


def _cycle(parent, i):
    """The bodies of a cycle that the ancestors of ``i`` run into, or None."""
    path = [i]
    while path[-1] != 0:
        path.append(parent[path[-1]])
        if path[-1] in path[:-1]:
            return path[path.index(path[-1]) :]
    return None


def regular_order(parent):
    """Body numbers in an order that has every parent first, as close to 0, 1, 2, … as possible.

    ``order[new] == old``; an order that is regular already comes back unchanged. Bodies that do
    not hang on body 0 are left out.
    """
    mu = children(parent)
    order, ready = [], [0]
    while ready:
        order.append(heapq.heappop(ready))
        for child in mu[order[-1]]:
            heapq.heappush(ready, child)
    return tuple(order)


def numbering_count(parent):
    """Number of regular numberings of the tree: ``N_B! / Π |ν(i)|`` — RBDA §4.1.2."""
    return factorial(len(parent) - 1) // prod(len(nu) for nu in subtrees(parent)[1:])


def children(parent):
    """μ(i): the bodies whose parent is ``i``."""
    mu = [[] for _ in parent]
    for i in range(1, len(parent)):
        mu[parent[i]].append(i)
    return tuple(map(tuple, mu))


def supports(parent):
    """κ(i): the joints on the way from the base to body ``i``, which includes ``i``."""
    kappa: list[tuple[int, ...]] = [()]
    for i in range(1, len(parent)):
        kappa.append((*kappa[parent[i]], i))
    return tuple(kappa)


def subtrees(parent):
    """ν(i): body ``i`` and everything beyond it."""
    nu = [[i] for i in range(len(parent))]
    for i in range(len(parent) - 1, 0, -1):
        nu[parent[i]].extend(nu[i])
    return tuple(tuple(sorted(s)) for s in nu)


def depths(parent):
    """Number of joints between each body and the base."""
    found = [0]
    for p in parent[1:]:
        found.append(found[p] + 1)
    return tuple(found)


def expanded_parent(parent, nv):
    """For each velocity variable the one it hangs on, or -1 — RBDA Table 6.4, counted from 0.

    Joint ``i`` becomes a chain of ``nv[i]`` variables. Unlike the printed algorithm, joints
    without freedom are looked through: a child hangs on the last variable of its nearest ancestor
    that has any.
    """
    last = [-1]  # the variable that a child of body i hangs on
    expanded = []
    for i in range(1, len(parent)):
        last.append(last[parent[i]])
        for _ in range(nv[i]):
            expanded.append(last[i])
            last[i] = len(expanded) - 1
    return tuple(expanded)


# --- Walks and tables of one robot ----------------------------------------------------------------


def outward(model: Any) -> Any:
    """The bodies, each after its parent."""
    return range(1, model.body_count + 1)


def inward(model: Any) -> Any:
    """The bodies, each before its parent."""
    return range(model.body_count, 0, -1)


def above(model: Any, i: int, bodies: Any = None) -> Any:
    """The bodies between body ``i`` and the base, its parent first.

    None where ``i`` is not among ``bodies``, if such are given.
    """
    found, p = [], model.parent[i] if bodies is None or i in bodies else 0
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


def parameter_columns(model: Any) -> Any:
    """The inertial parameters of all bodies, one after the other: columns of a matrix."""
    return range(10 * model.body_count)


def parameter_slice(model: Any, i: int) -> slice:
    """Place of the ten inertial parameters of body ``i`` among those of all."""
    return slice(10 * i - 10, 10 * i)


def laden(model: Any) -> list:
    """Whether a body, or one between it and the base, has mass.

    Bodies nearer to the base may be massless sliders that are far away from all others.
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


def copy_table(model: Any, rows: Any) -> Any:
    """A table that begins as a copy of another, for sums."""
    return list(rows)


def fill_table(model: Any, value: Any) -> Any:
    """A table that begins with one value for all bodies."""
    return [value] * (model.body_count + 1)


def chain(model: Any, i: int) -> Any:
    """The bodies from the base to body ``i``, each after its parent; none for the base itself."""
    return (*reversed(above(model, i)), i) if i else ()


class BodySum:
    """A sum over bodies: ``add`` in the walk, ``value`` after it."""

    def __init__(self, zero: Any):
        self.value = zero

    def add(self, x: Any) -> None:
        """Add what one body has."""
        self.value = self.value + x


def total(model: Any, zero: Any = 0) -> Any:
    """A sum that begins with ``zero``."""
    return BodySum(zero)


def of_body(model: Any, array: Any, i: Any) -> Any:
    """Entry of an array (body_count, ...) for body ``i``."""
    return array[i - 1]


def join_rows(model: Any, rows: Any, by: str = "v") -> Any:
    """A table of arrays, one per joint, as one vector, by velocity or position variables."""
    return np.concatenate(rows)


def stack_rows(model: Any, rows: Any, *shape: int) -> Any:
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
