"""Arrays of other libraries: who computes with them, and what every library has under one name."""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from kinetree.arrays.kinds import common, is_foreign, kind_of
from kinetree.errors import ArrayKindError


@cache
def module_of(kind) -> Any:
    """The module of this package for a kind; it imports the library."""
    if kind == "torch":
        from kinetree.arrays import torch_kind

        return torch_kind
    if kind == "jax":
        from kinetree.arrays import jax_kind

        return jax_kind
    from kinetree.arrays import cupy_kind

    return cupy_kind


def foreign_call(kernel, arrays, out=None):
    """The results of a kernel for arrays of another library, of their kind; else NotImplemented."""
    if out is None and len({type(a) for a in arrays}) == 1:  # as most calls are
        kind = kind_of(arrays[0])
    else:
        kind = common(kernel.name, kernel.inputs, arrays)
    if kind is None:
        return NotImplemented
    if out is not None:
        raise ArrayKindError(f"{kernel.name}: out= takes NumPy arrays, with NumPy arrays as inputs")
    results = module_of(kind).call(kernel, arrays)
    return results[0] if len(kernel.outputs) == 1 else tuple(results)


def as_numpy(x) -> np.ndarray:
    """An array of any library as one of NumPy's; from a device its numbers are copied."""
    return module_of(kind_of(x)).to_numpy(x) if is_foreign(x) else np.asarray(x)


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
