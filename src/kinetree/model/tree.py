"""Connectivity of a kinematic tree: λ, μ, κ, ν — RBDA §4.1.4, §6.4, Table 6.4.

Bodies are numbered 0 … N_B with the base as 0 and every parent below its children, so that one
ascending loop meets parents first. ``parent[0]`` is -1 and never used by an algorithm.
"""

from kinetree.errors import ModelError

__all__ = ["check_parents", "children", "expanded_parent", "subtrees", "supports"]


def check_parents(parent):
    """Raise unless ``parent`` is a regular numbering: ``0 ≤ λ(i) < i`` — RBDA (4.2)."""
    for i, p in enumerate(parent[1:], start=1):
        if not 0 <= p < i:
            raise ModelError(
                f"parent of body {i} is {p}, but a regular numbering needs 0 <= parent < {i}: "
                f"list every body after its parent (kinetree.ModelBuilder does it for you)"
            )


def children(parent):
    """μ(i): the bodies whose parent is ``i``."""
    mu = [[] for _ in parent]
    for i in range(1, len(parent)):
        mu[parent[i]].append(i)
    return tuple(map(tuple, mu))


def supports(parent):
    """κ(i): the joints on the way from the base to body ``i``, which includes ``i``."""
    kappa = [()]
    for i in range(1, len(parent)):
        kappa.append((*kappa[parent[i]], i))
    return tuple(kappa)


def subtrees(parent):
    """ν(i): body ``i`` and everything beyond it."""
    nu = [[i] for i in range(len(parent))]
    for i in range(len(parent) - 1, 0, -1):
        nu[parent[i]].extend(nu[i])
    return tuple(tuple(sorted(s)) for s in nu)


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
