"""Costs of factors of sparse inertia matrices, and trees that are renumbered — RBDA §6.4, §6.5.

``lam`` is the expanded parent array (``model.expanded_parent``), as in ``algorithms.sparsity``.
"""

from typing import NamedTuple

from kinetree.algorithms.sparsity import sparsity
from kinetree.errors import ModelError, UnknownNameError


class Cost(NamedTuple):
    """Numbers of multiplications, additions, divisions and square roots."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    roots: int = 0


# RBDA Table 6.6; what it prints as "2nd" and "nd" are 2n and n divisions, whatever the depth.
_COST = {
    ("factorize", "ltl"): lambda n, D1, D2: Cost(D2, D2, D1, n),
    ("factorize", "ltdl"): lambda n, D1, D2: Cost(D2, D2, D1),
    ("solve", "ltl"): lambda n, D1, D2: Cost(2 * D1, 2 * D1, 2 * n),
    ("solve", "ltdl"): lambda n, D1, D2: Cost(2 * D1, 2 * D1, n),
    ("multiply_l", "ltl"): lambda n, D1, D2: Cost(n + D1, D1),
    ("multiply_l", "ltdl"): lambda n, D1, D2: Cost(D1, D1),
    ("solve_l", "ltl"): lambda n, D1, D2: Cost(D1, D1, n),
    ("solve_l", "ltdl"): lambda n, D1, D2: Cost(D1, D1),
    ("multiply", "ltl"): lambda n, D1, D2: Cost(n + 2 * D1, 2 * D1),
    ("multiply", "ltdl"): lambda n, D1, D2: Cost(n + 2 * D1, 2 * D1),
}


def predicted_cost(lam, task, factors="ltdl") -> Cost:
    """Operation count of an ``ltl`` task for a parent array (RBDA Table 6.6).

    Args:
        lam: expanded parent array.
        task: ``"factorize"``; ``"solve"`` with both factors; ``"multiply_l"`` or ``"solve_l"``
            with ``L`` or its transpose; ``"multiply"`` by ``H``.
        factors: ``"ltl"`` or ``"ltdl"``.
    """
    if (task, factors) not in _COST:
        known = ", ".join(f"{t}/{f}" for t, f in _COST)
        raise UnknownNameError(f"no cost is known for {task}/{factors}; known: {known}")
    s = sparsity(lam)
    return _COST[task, factors](s.n, s.D1, s.D2)


def renumber_parents(lam, order):
    """Parent array after renumbering: new variable ``k`` is old variable ``order[k]``.

    The matrix of the renumbered tree is ``H[np.ix_(order, order)]``, a symmetric permutation.
    """
    position = {old: new for new, old in enumerate(order)}
    if sorted(position) != list(range(len(lam))) or len(order) != len(lam):
        raise ModelError(f"order must be a permutation of 0 to {len(lam) - 1}, got {list(order)}")
    new = tuple(-1 if lam[old] < 0 else position[lam[old]] for old in order)
    for k, parent in enumerate(new):
        if parent >= k:
            raise ModelError(
                f"order lists variable {order[k]} before variable {order[parent]}, which it hangs "
                f"on; a regular numbering lists every variable after its parent"
            )
    return new
