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
    """Library of an array, ``"torch"``, ``"cupy"`` or ``"jax"``; None for anything else."""
    kind = type(x)
    if kind not in _known:
        _known[kind] = _kind_of_type(kind)
    return _known[kind]


def _kind_of_type(kind):
    """Library of an array type, or None."""
    for base in kind.__mro__:
        library = _LIBRARIES.get(base.__module__.partition(".")[0])
        if library and {"shape", "dtype", "ndim"} <= set(dir(kind)):
            return library
    return None


def is_foreign(x) -> bool:
    """Whether ``x`` is an array of another library than NumPy."""
    return type(x) is not np.ndarray and kind_of(x) is not None


def refuse_masked(x, name):
    """Raise ShapeError for masked arrays, whose masked values would count."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        count = np.ma.count_masked(x)
        raise ShapeError(
            f"{name} has {count} masked value{'s' if count > 1 else ''}, for which there is no "
            f"number to compute with; leave those samples out, or fill them: x.filled(0.0)"
        )


def common(name, inputs, arrays) -> str | None:
    """Common library of several arrays; None for NumPy; an error for mixtures.

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
    """Whether an array has batch axes before an argument's shape."""
    return isinstance(a, np.ndarray) and a.ndim > len(argument.shape)


def precision(name, arrays, dtypes):
    """``"float32"`` if all arrays have that precision, else ``"float64"``.

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
    """Module of this package for an array library, which it imports."""
    if kind == "torch":
        from kinetree.arrays import torch_kind

        return torch_kind
    if kind == "jax":
        from kinetree.arrays import jax_kind

        return jax_kind
    from kinetree.arrays import cupy_kind

    return cupy_kind


def foreign_call(kernel, arrays, out=None):
    """Results of a kernel for arrays of another library; NotImplemented for NumPy's."""
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
    """NumPy array with the numbers of an array of any library, copied from a device."""
    return module_of(kind_of(x)).to_numpy(x) if is_foreign(x) else np.asarray(x)


def namespace(*arrays) -> Any:
    """Module with array functions: of another library, or NumPy."""
    kind = next(filter(None, map(kind_of, arrays)), "numpy")
    return import_module({"jax": "jax.numpy"}.get(kind, kind))


def stacked_rows(rows, count):
    """Array (..., count, n) with given rows by index and zeros elsewhere; rows broadcast."""
    arrays = list(rows.values())
    xp = namespace(arrays[0])
    whole = sum(arrays[1:], start=arrays[0])  # in the shape of all
    zero = xp.zeros_like(whole)
    return xp.stack([rows[k] + zero if k in rows else zero for k in range(count)], -2)


def good_samples(result, good):
    """Results with NaN in samples where ``good`` is false; ``good`` has the batch axes."""
    xp = namespace(result)
    good = good[(..., *[None] * (len(result.shape) - len(good.shape)))]
    return xp.where(good, result, xp.full_like(result, float("nan")))
