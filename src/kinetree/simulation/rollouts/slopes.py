"""Slopes of traced numbers along the directions in which arrays can change."""

import numpy as np

from kinetree.expr.diff import jacobian

__all__ = ["gradients_along"]


def gradients_along(total, arrays, rates):
    """Slopes of an expression along the directions of each array; (*tangent) each."""
    if not hasattr(total, "graph"):  # a number that depends on nothing
        return [np.zeros(_tangent(a, r), dtype=object) for a, r in zip(arrays, rates, strict=True)]
    directions = [
        {x.i: rate for x, rate in zip(a.ravel(), column.ravel(), strict=True)}
        for a, r in zip(arrays, rates, strict=True)
        for column in np.moveaxis(r, -1, 0)
    ]
    slopes = jacobian(total.graph, np.array([total]), directions)[0]
    parts = np.split(slopes, np.cumsum([r.shape[-1] for r in rates])[:-1])
    return [p.reshape(_tangent(a, r)) for p, a, r in zip(parts, arrays, rates, strict=True)]


def _tangent(array, rates):
    """Shape of the space in which an array can change."""
    return array.shape if rates.shape[-1] == array.size else rates.shape[-1:]
