"""Kinds of arrays: NumPy's, CuPy's, PyTorch's or JAX's.

The type of an array decides, without importing the library that it comes from.
"""

from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from kinetree.errors import ArrayKindError, ShapeError

Array: TypeAlias = Any
"""An array of NumPy, CuPy, PyTorch or JAX: results are of the kind of the arguments."""

ArrayLike: TypeAlias = Any
"""An array of any library, or lists and numbers; leading axes are batches."""

_LIBRARIES = {"torch": "torch", "cupy": "cupy", "jax": "jax", "jaxlib": "jax"}
_WORDS = {
    "torch": "a torch tensor",
    "cupy": "a CuPy array",
    "jax": "a JAX array",
    "numpy": "a NumPy array",
}
_MIXES = ("jax",)  # takes NumPy arrays wherever it takes its own
_known: dict = {}


def kind_of(x) -> str | None:
    """``"torch"``, ``"cupy"`` or ``"jax"`` for an array of theirs; None for anything else."""
    kind = type(x)
    if kind not in _known:
        _known[kind] = _kind_of_type(kind)
    return _known[kind]


def _kind_of_type(kind):
    """Library of a type of arrays, or None."""
    for base in kind.__mro__:
        library = _LIBRARIES.get(base.__module__.partition(".")[0])
        if library and {"shape", "dtype", "ndim"} <= set(dir(kind)):
            return library
    return None


def is_foreign(x) -> bool:
    """Whether this is an array, but not one of NumPy's."""
    return type(x) is not np.ndarray and kind_of(x) is not None


def refuse_masked(x, name):
    """Raise ShapeError for values that NumPy masks: as plain arrays they would count."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        count = np.ma.count_masked(x)
        raise ShapeError(
            f"{name} has {count} masked value{'s' if count > 1 else ''}, for which there is no "
            f"number to compute with; leave those samples out, or fill them: x.filled(0.0)"
        )


def common(name, inputs, arrays) -> str | None:
    """The kind of several arrays, or None if all are NumPy's, lists and numbers.

    One sample as a NumPy array is a constant, like a list or a number, and goes with any kind.

    Args:
        name: whose arguments these are, for messages.
        inputs: ``Argument``s, one for each array.
        arrays: what the caller gave.
    """
    kinds = {}
    for i, a in zip(inputs, arrays, strict=False):
        kind = kind_of(a) or ("numpy" if _is_batch(a, i) else None)
        if kind is not None:
            kinds.setdefault(kind, i.name)
    foreign = [kind for kind in kinds if kind != "numpy"]
    if not foreign:
        return None
    if len(foreign) > 1 or ("numpy" in kinds and foreign[0] not in _MIXES):
        found = ", ".join(f"{n} is {_WORDS[k]}" for k, n in kinds.items())
        raise ArrayKindError(
            f"{name}: arrays of different libraries do not mix: {found}; convert one of them, "
            f"for example with from_dlpack of the other library"
        )
    return foreign[0]


def _is_batch(a, argument):
    """Whether an array has batch axes before the shape of an argument."""
    return isinstance(a, np.ndarray) and a.ndim > len(argument.shape)


def precision(name, arrays, dtypes):
    """``"float32"`` if all arrays are of that precision, else ``"float64"``, as for NumPy arrays.

    Args:
        name: whose arguments these are.
        arrays: names of the arrays.
        dtypes: names of their types, such as ``"float32"``; None for plain numbers.
    """
    for array, dtype in zip(arrays, dtypes, strict=True):
        if dtype is not None and dtype not in _PRECISIONS and not dtype.startswith(_WHOLE):
            raise ShapeError(
                f"{name}: {array} must be of float64 or float32, got {dtype}; convert it first"
            )
    found = {dtype for dtype in dtypes if dtype is not None}
    return "float32" if found == {"float32"} else "float64"


_PRECISIONS = ("float32", "float64")
_WHOLE = ("int", "uint", "bool")


# --- Other libraries: who computes with their arrays, and what each has under one name ------------


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
