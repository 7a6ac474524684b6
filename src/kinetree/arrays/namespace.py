"""A few functions of arrays that every library has, under one name."""

from importlib import import_module
from typing import Any

from kinetree.array_kinds import kind_of

__all__ = ["good_samples", "stacked_rows"]


def namespace(x) -> Any:
    """The module with the functions for an array of another library."""
    return import_module({"jax": "jax.numpy"}.get(kind_of(x) or "", kind_of(x) or "numpy"))


def stacked_rows(rows, count):
    """An array (..., count, n) of some of its rows, by number, and zeros; rows broadcast."""
    arrays = list(rows.values())
    xp = namespace(arrays[0])
    whole = sum(arrays[1:], start=arrays[0])  # in the shape of all
    zero = xp.zeros_like(whole)
    return xp.stack([rows[k] + zero if k in rows else zero for k in range(count)], -2)


def good_samples(result, health):
    """``result`` where ``health`` is at least 1; NaN in the samples where it is not."""
    xp = namespace(result)
    return xp.where(health[..., None] >= 1, result, xp.full_like(result, float("nan")))
