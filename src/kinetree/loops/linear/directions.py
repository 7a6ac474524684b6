"""Derivatives along several directions at once: one batch of products with the derivative."""

from typing import Any

import numpy as np

__all__ = ["along_columns"]


def along_columns(rate, model, *arrays, tangents, f_ext=None) -> Any:
    """What ``rate``, a ``kinetree.jvp``, gives along each column of the tangents.

    Args:
        rate: the rate of a function that returns vectors.
        model: the mechanism.
        *arrays: arguments of the function, (..., n) each.
        tangents: matrices (..., n, p), one for each argument that changes.
        f_ext: forces on bodies, if the function takes them, (..., body_count, 6).

    Returns:
        For every vector (..., m) that the function returns a matrix (..., m, p).
    """
    arrays = [a[..., None, :] for a in arrays]
    if f_ext is not None:
        arrays.append(f_ext[..., None, :, :])
    found = rate(model, *arrays, tangents=tuple(np.swapaxes(t, -1, -2) for t in tangents))
    if isinstance(found, tuple):
        return tuple(np.swapaxes(part, -1, -2) for part in found)
    return np.swapaxes(found, -1, -2)
