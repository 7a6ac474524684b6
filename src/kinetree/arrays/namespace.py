"""A few functions of arrays that every library has, under one name."""

from importlib import import_module
from typing import Any

from kinetree.arrays.kinds import kind_of

__all__ = ["good_samples", "namespace", "stacked_rows"]


def namespace(*arrays) -> Any:
    """The module with the functions for arrays of another library, or NumPy for its own."""
    kind = next(filter(None, map(kind_of, arrays)), "numpy")
    return import_module({"jax": "jax.numpy"}.get(kind, kind))


def stacked_rows(rows, count):
    """An array (..., count, n) of some of its rows, by number, and zeros; rows broadcast."""
    arrays = list(rows.values())
    xp = namespace(arrays[0])
    whole = sum(arrays[1:], start=arrays[0])  # in the shape of all
    zero = xp.zeros_like(whole)
    return xp.stack([rows[k] + zero if k in rows else zero for k in range(count)], -2)


def good_samples(result, good):
    """``result``, with NaN in the samples that are not good; ``good`` has the axes of the batch."""
    xp = namespace(result)
    good = good[(..., *[None] * (len(result.shape) - len(good.shape)))]
    return xp.where(good, result, xp.full_like(result, float("nan")))
