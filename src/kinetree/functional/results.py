"""What a user's kernel returns: one array, or a tuple or dict of arrays; and stacks of them."""

import numpy as np

from kinetree.arrays.batch import batch_shape
from kinetree.errors import SingularError, TraceError

__all__ = ["flatten", "over_samples"]


def flatten(result, name):
    """The arrays of a result as a tuple, and a function that puts arrays back into its form.

    The function takes one array, or a tuple of several; it is None where there is nothing to do.
    """
    if isinstance(result, dict):
        keys = tuple(result)
        return _arrays(result.values(), name), lambda r: dict(zip(keys, _tuple(r), strict=True))
    if isinstance(result, tuple):
        return _arrays(result, name), _tuple if len(result) == 1 else None
    return _arrays((result,), name), None


def _tuple(r):
    return r if isinstance(r, tuple) else (r,)


def _arrays(results, name):
    results = tuple(results)
    if not results or any(r is None for r in results):
        raise TraceError(
            f"kernel {name!r} returned {None if results else 'no arrays'}: it must return a number "
            f"or an array, or a tuple or dict of such"
        )
    return tuple(np.asarray(r) for r in results)


def over_samples(function, call):
    """Call ``function`` on every sample of the arrays of a call and stack the results."""
    core = [len(shape) for shape in call.shapes.values()]
    batch = batch_shape(call.arrays, core)
    full = [
        np.broadcast_to(a, batch + a.shape[a.ndim - n :])
        for a, n in zip(call.arrays.values(), core, strict=True)
    ]
    if not batch:
        return function(*(_sample(a, ()) for a in full))
    samples = [_one(function, full, index) for index in np.ndindex(batch)]
    if not samples:  # one made-up sample tells the shapes
        samples = [function(*(np.zeros(shape)[()] for shape in call.shapes.values()))]
    forms = [flatten(s, call.name) for s in samples]
    stacked = [np.stack(parts) for parts in zip(*(arrays for arrays, _ in forms), strict=True)]
    size = np.prod(batch, dtype=int)
    results = tuple(a[:size].reshape(batch + a.shape[1:]) for a in stacked)
    pack = forms[0][1]
    if pack is not None:
        return pack(results)
    return results[0] if len(results) == 1 else results


def _one(function, arrays, index):
    try:
        return function(*(_sample(a, index) for a in arrays))
    except SingularError as error:
        raise SingularError(f"sample {index}: {error}") from error


def _sample(array, index):
    """One sample: an array, or a number where it has no axes."""
    sample = array[index]
    return sample[()] if isinstance(sample, np.ndarray) else sample
