"""Connectivity of a kinematic tree: λ, μ, κ, ν — RBDA §4.1.4, §6.5, Table 6.4.

Bodies are numbered 0 … N_B with the base as 0 and every parent below its children, so that one
ascending loop meets parents first. ``parent[0]`` is -1 and never used by an algorithm.
"""

import heapq
from math import factorial, prod
from operator import index

import numpy as np

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
    """How many regular numberings the tree has: ``N_B! / Π |ν(i)|`` — RBDA §4.1.2."""
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


def support_matrix(parent):
    """ε, (N_B, N_B): ``ε[i-1, j-1]`` is 1 where joint ``j`` supports body ``i`` — RBDA (4.5)."""
    epsilon = np.zeros((len(parent) - 1,) * 2, dtype=int)
    for i, kappa in enumerate(supports(parent)):
        for j in kappa:
            epsilon[i - 1, j - 1] = 1
    return epsilon


def connectivity_matrix(parent):
    """D, (N_B, N_B): 1 on the diagonal, -1 at the parent — tutorial (62); the inverse of ε.

    Body velocities times D are joint velocities; joint velocities times ε are body velocities.
    """
    D = np.eye(len(parent) - 1, dtype=int)
    for i, p in enumerate(parent[1:], start=1):
        if p != 0:
            D[i - 1, p - 1] = -1
    return D


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
