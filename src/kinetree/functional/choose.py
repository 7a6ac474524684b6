"""``select``: a choice that can be compiled."""

import numpy as np

from kinetree.spatial import ops

__all__ = ["select"]

_each = np.frompyfunc(ops.select, 3, 1)


def select(condition, a, b):
    """``a`` where the condition holds, else ``b``; element by element, like ``np.where``.

    Unlike ``np.where`` it works in functions under ``@kinetree.kernel``. Both values are computed,
    for every sample: keep both finite.
    """
    if not any(isinstance(x, (np.ndarray, list, tuple)) for x in (condition, a, b)):
        return ops.select(condition, a, b)
    if all(np.asarray(x).dtype != object for x in (condition, a, b)):
        return np.where(condition, a, b)
    return _each(condition, a, b)
