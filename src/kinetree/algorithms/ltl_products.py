"""Sparse products with a matrix or its factors — RBDA §6.5, Table 6.5.

``lam`` is the expanded parent array, as in ``ltl``.
"""

import numpy as np

from kinetree.algorithms.ltl import ancestors

__all__ = ["multiply", "multiply_l", "multiply_lt"]


def multiply_l(L, lam, x, unit=False):
    """``y = L x``."""
    y = [x[i] if unit else L[i, i] * x[i] for i in range(len(lam))]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[i] = y[i] + L[i, j] * x[j]
    return np.array(y)


def multiply_lt(L, lam, x, unit=False):
    """``y = Lᵀ x``."""
    y = [x[i] if unit else L[i, i] * x[i] for i in range(len(lam))]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[j] = y[j] + L[i, j] * x[i]
    return np.array(y)


def multiply(H, lam, x):
    """``y = H x`` from the lower triangle of a symmetric ``H``."""
    y = [H[i, i] * x[i] for i in range(len(lam))]
    for i in range(len(lam)):
        for j in ancestors(lam, i):
            y[i] = y[i] + H[i, j] * x[j]
            y[j] = y[j] + H[i, j] * x[i]
    return np.array(y)
