"""Branch-induced sparsity: what the shape of a tree says about ``H`` — RBDA §6.4, §6.5.

``lam`` is the expanded parent array (``model.expanded_parent``), counted from 0, -1 for none. The
pattern is structural: it comes from the tree, never from numbers that happen to be zero.
"""

from typing import NamedTuple

import numpy as np

from kinetree.algorithms.ltl import ancestors


def depths(lam):
    """Depth ``d_k`` of each variable: the number of its ancestors, itself included."""
    d = []
    for parent in lam:
        d.append(1 if parent < 0 else d[parent] + 1)
    return tuple(d)


def pattern(lam):
    """Structural nonzeros of ``H``, (n, n) of bool: pairs of which one supports the other."""
    nonzero = np.eye(len(lam), dtype=bool)
    for k in range(len(lam)):
        for i in ancestors(lam, k):
            nonzero[k, i] = nonzero[i, k] = True
    return nonzero


class Sparsity(NamedTuple):
    """Numbers that measure the pattern."""

    n: int
    """Size of ``H``."""
    d: int
    """Depth of the tree, in variables."""
    D1: int
    """Nonzeros below the diagonal — RBDA (6.26)."""
    D2: int
    """Updates that a factorisation makes — RBDA (6.27)."""

    @property
    def nonzeros(self) -> int:
        """Number of structural nonzeros of ``H``."""
        return self.n + 2 * self.D1

    @property
    def density(self) -> float:
        """ρ, the fraction of ``H`` that is nonzero — RBDA §6.4.

        Computing ``H`` costs about ρ of the dense cost, factorising it about ρ².
        """
        return self.nonzeros / max(self.n, 1) ** 2


def sparsity(lam) -> Sparsity:
    """Size, depth, and costs D1, D2 of the sparsity pattern of ``H``."""
    d = depths(lam)
    return Sparsity(
        len(lam), max(d, default=0), sum(k - 1 for k in d), sum(k * (k - 1) // 2 for k in d)
    )
