"""Running an algorithm, written for one sample, over leading batch axes.

This is the plain-NumPy reference: one Python call per sample.
"""

import numpy as np

from kinetree.errors import ShapeError, SingularError


def over_batch(function, arguments, *, core, shape):
    """Results of ``function`` for every sample of its arguments, stacked.

    Args:
        function: takes arrays without batch axes and returns one of shape ``shape``.
        arguments: arrays by name; their leading axes broadcast against each other.
        core: number of trailing axes of each argument that belong to one sample.
        shape: shape of one result.
    """
    arrays = list(arguments.values())
    batch = batch_shape(arguments, core)
    dtype = np.result_type(*arrays)
    full = [
        np.broadcast_to(a, batch + a.shape[a.ndim - n :]) for a, n in zip(arrays, core, strict=True)
    ]
    result = np.empty(batch + shape, dtype=dtype)
    # Overflow and division by zero end in SingularError or a result that is not finite.
    with np.errstate(all="ignore"):
        for index in np.ndindex(batch):
            result[index] = _one(function, [a[index] for a in full], index)
    _check_overflow(result, batch, dict(zip(arguments, full, strict=True)))
    return result if result.shape else result[()]


def _one(function, arguments, index):
    """Result of a function for one sample; errors name its index."""
    try:
        return function(*arguments)
    except (ShapeError, SingularError) as error:
        raise of_sample(error, index) from error


def of_sample(error, index):
    """Error that names the sample of a batch; unchanged without a batch."""
    kind = SingularError if isinstance(error, SingularError) else ShapeError
    sample = tuple(map(int, index))
    return kind(f"sample {sample}: {error}") if sample else error


def _check_overflow(result, batch, arguments):
    """Raise an error if a result of finite arguments is not finite."""
    if result.dtype == object or np.all(np.isfinite(result)):
        return
    sample = tuple(int(n) for n in np.argwhere(~np.isfinite(result))[0][: len(batch)])
    sizes = {name: float(np.max(np.abs(a[sample]), initial=0)) for name, a in arguments.items()}
    name = max(sizes, key=lambda name: sizes[name])
    raise SingularError(
        f"{f'sample {sample}: ' if sample else ''}the result is too large for {result.dtype}. The "
        f"largest argument is {name} with {sizes[name]:.3g}: check its units, and the model's"
    )


def batch_shape(arguments, core):
    """Common batch shape of arrays whose last ``core`` axes are one sample."""
    leads = [a.shape[: a.ndim - n] for a, n in zip(arguments.values(), core, strict=True)]
    return common_shape(arguments, leads)


def common_shape(names, leads, what="batch axes"):
    """Shape to which leading axes broadcast; ShapeError names all arrays with theirs."""
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        shapes = ", ".join(f"{n} {tuple(lead)}" for n, lead in zip(names, leads, strict=True))
        raise ShapeError(
            f"{what} do not broadcast against each other: {shapes}; leading axes must be equal or 1"
        ) from None


# --- Leading axes of the arrays of a kernel: what they have in common, and how to align them -----


def batch_of(kernel, shapes):
    """Common batch shape of arrays with these shapes; ShapeError if they do not fit."""
    if len(shapes) != len(kernel.inputs):
        names = ", ".join(i.name for i in kernel.inputs)
        raise TypeError(
            f"{kernel.name} takes {len(kernel.inputs)} arrays ({names}), got {len(shapes)}"
        )
    leads = []
    for shape, argument in zip(shapes, kernel.inputs, strict=True):
        n = len(shape) - len(argument.shape)
        if n < 0 or tuple(shape[n:]) != argument.shape:
            core = ", ".join(["...", *map(str, argument.shape)])
            raise ShapeError(
                f"{kernel.name}: {argument.name} must have shape ({core}), got {tuple(shape)}"
            )
        leads.append(tuple(shape[:n]))
    if leads.count(leads[0]) == len(leads):
        return leads[0]
    return common_shape([i.name for i in kernel.inputs], leads)


def align_shapes(kernel, shapes):
    """Shapes padded with leading axes of length 1 to equal numbers of axes."""
    ranks = [len(s) - len(i.shape) for s, i in zip(shapes, kernel.inputs, strict=True)]
    most = max(ranks, default=0)
    return [(1,) * (most - r) + tuple(s) for r, s in zip(ranks, shapes, strict=True)]
