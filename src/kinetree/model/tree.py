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
    """Raise ModelError unless ``parent`` is regular: ``0 ≤ λ(i) < i`` — RBDA (4.2)."""
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
    """Raise ModelError unless a parent is the number of an earlier body."""
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
    """Body number and name, for messages."""
    return f"{i}" if names is None else f"{i} ({names[i]!r})"


def _cycle(parent, i):
    """Bodies of a cycle among the ancestors of ``i``, or None."""
    path = [i]
    while path[-1] != 0:
        path.append(parent[path[-1]])
        if path[-1] in path[:-1]:
            return path[path.index(path[-1]) :]
    return None


def regular_order(parent):
    """Order of bodies with parents first, as close to 0, 1, 2, … as possible.

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
    """Number of regular numberings of a tree, ``N_B! / Π |ν(i)|`` — RBDA §4.1.2."""
    return factorial(len(parent) - 1) // prod(len(nu) for nu in subtrees(parent)[1:])


def children(parent):
    """Children μ(i) of every body, from the parent array."""
    mu = [[] for _ in parent]
    for i in range(1, len(parent)):
        mu[parent[i]].append(i)
    return tuple(map(tuple, mu))


def supports(parent):
    """Supports κ(i) of every body: joints on the way from the base, ``i`` included."""
    kappa: list[tuple[int, ...]] = [()]
    for i in range(1, len(parent)):
        kappa.append((*kappa[parent[i]], i))
    return tuple(kappa)


def subtrees(parent):
    """Subtrees ν(i) of every body: ``i`` and everything beyond it."""
    nu = [[i] for i in range(len(parent))]
    for i in range(len(parent) - 1, 0, -1):
        nu[parent[i]].extend(nu[i])
    return tuple(tuple(sorted(s)) for s in nu)


def depths(parent):
    """Number of joints between each body and the base, from the parent array."""
    found = [0]
    for p in parent[1:]:
        found.append(found[p] + 1)
    return tuple(found)


def expanded_parent(parent, nv):
    """Expanded parent array over velocity variables, -1 for none — RBDA Table 6.4.

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
    """Numbers of all bodies, parents first."""
    return range(1, model.body_count + 1)


def inward(model: Any) -> Any:
    """Numbers of all bodies, children first."""
    return range(model.body_count, 0, -1)


def above(model: Any, i: int, bodies: Any = None) -> Any:
    """Numbers of the bodies between body ``i`` and the base, its parent first.

    None where ``i`` is not among ``bodies``, if such are given.
    """
    found, p = [], model.parent[i] if bodies is None or i in bodies else 0
    while p:  # model.support has n²/2 numbers for a chain
        found.append(p)
        p = model.parent[p]
    return found


def variables(model: Any) -> Any:
    """Indices of the velocity variables."""
    return range(model.nv)


def unit(model: Any, k: int) -> Array:
    """Unit vector (nv,) of velocity variable ``k``."""
    return np.eye(model.nv, dtype=int)[k]


def parameter_columns(model: Any) -> Any:
    """Indices of the inertial parameters of all bodies."""
    return range(10 * model.body_count)


def parameter_slice(model: Any, i: int) -> slice:
    """Slice of the ten inertial parameters of body ``i``."""
    return slice(10 * i - 10, 10 * i)


def laden(model: Any) -> list:
    """For each body, whether it or one of its ancestors has mass.

    Bodies nearer to the base may be massless sliders that are far away from all others.
    """
    found = [False] * (model.body_count + 1)
    for i in outward(model):
        m = model.inertia[i].mass
        massless = isinstance(m, (int, float, np.number)) and m == 0  # whatever parameters may be
        found[i] = found[model.parent[i]] or not massless
    return found


def first_laden(model: Any) -> int:
    """Number of the first body with mass; 0 (the base) if none has."""
    return model.laden.index(True) if any(model.laden) else 0


def table(model: Any, base: Any = None) -> Any:
    """New list with an entry per body; ``base`` is that of the fixed base."""
    return [base] + [None] * model.body_count


def sums(model: Any, zero: Any) -> Any:
    """New list of sums per body, initially ``zero``, the base included."""
    return table(model, zero)


def copy_table(model: Any, rows: Any) -> Any:
    """Copy of a list of values per body, for sums over subtrees."""
    return list(rows)


def fill_table(model: Any, value: Any) -> Any:
    """New list with the same value for all bodies."""
    return [value] * (model.body_count + 1)


def chain(model: Any, i: int) -> Any:
    """Numbers of the bodies from the base to body ``i``, itself included; none for the base."""
    return (*reversed(above(model, i)), i) if i else ()


class BodySum:
    """A sum over bodies: ``add`` in the walk, ``value`` after it."""

    def __init__(self, zero: Any):
        self.value = zero

    def add(self, x: Any) -> None:
        """Add the contribution of one body to the sum."""
        self.value = self.value + x


def total(model: Any, zero: Any = 0) -> Any:
    """New sum over bodies, initially ``zero``."""
    return BodySum(zero)


def of_body(model: Any, array: Any, i: Any) -> Any:
    """Entry of an array (body_count, ...) for body ``i``."""
    return array[i - 1]


def join_rows(model: Any, rows: Any, by: str = "v") -> Any:
    """Vector of all joints' arrays in a list, concatenated by velocity or position variables."""
    return np.concatenate(rows)


def stack_rows(model: Any, rows: Any, *shape: int) -> Any:
    """Array (body_count, *shape) of a list of arrays per body."""
    return np.array(rows[1:]).reshape(model.body_count, *shape)


def columns(model: Any, rows: Any, size: int, *like: Any) -> Any:
    """Matrix (size, nv) of all joints' blocks (size, n_i); zero for joints without one."""
    found = np.zeros((size, model.nv), dtype=model.scalar_type(*like))
    for at, part in zip(model.v_slice, rows, strict=True):
        if part is not None:
            found[:, at] = part.to_array() if hasattr(part, "to_array") else part
    return found


def zeros(model: Any, shape: tuple, *like: Any) -> Array:
    """Array of zeros with axes "nv", "body_count", "parameters" or numbers.

    Its type holds the model's numbers and those of ``like``: arrays, or tables.
    """
    named = {"nv": model.nv, "body_count": model.body_count, "parameters": 10 * model.body_count}
    sizes = [named[n] if isinstance(n, str) else n for n in shape]
    rows = (x for a in like for x in (a if isinstance(a, list) else (a,)) if x is not None)
    numbers = (x.to_array() if hasattr(x, "to_array") else x for x in rows)
    return np.zeros(sizes, dtype=model.scalar_type(*numbers))


def matrix(model: Any, *like: Any) -> Array:
    """Matrix of zeros, (nv, nv), of the number type of the model and of ``like``."""
    return zeros(model, ("nv", "nv"), *like)
