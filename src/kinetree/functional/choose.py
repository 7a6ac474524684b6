"""``select``: a choice that can be compiled."""

from typing import Any

import numpy as np

from kinetree.spatial import ops

__all__ = ["select"]

_MANY = (np.ndarray, list, tuple)
_each = np.frompyfunc(ops.select, 3, 1)


def select(condition, a, b) -> Any:
    """``a`` where the condition holds, else ``b``; element by element, like ``np.where``.

    Unlike ``np.where`` it works in functions under ``@kinetree.kernel``. Both values are computed,
    for every sample: keep both finite.
    """
    if not (isinstance(condition, _MANY) or isinstance(a, _MANY) or isinstance(b, _MANY)):
        return ops.select(condition, a, b)
    if all(np.asarray(x).dtype != object for x in (condition, a, b)):
        return np.where(condition, a, b)
    return _each(condition, a, b)
