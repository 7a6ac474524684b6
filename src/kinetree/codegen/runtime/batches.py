"""Leading axes of the arrays of a kernel: what they have in common, and how to align them."""

import numpy as np

from kinetree.errors import ShapeError

__all__ = ["aligned", "batch_of"]


def batch_of(kernel, shapes):
    """The common leading axes of arrays with these shapes; raise ShapeError if they do not fit."""
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
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        found = ", ".join(f"{i.name} {lead}" for i, lead in zip(kernel.inputs, leads, strict=True))
        raise ShapeError(
            f"batch axes do not broadcast against each other: {found}; leading axes must be "
            f"equal or 1"
        ) from None


def aligned(kernel, shapes):
    """The shapes with as many leading axes each, of length 1 where there was none."""
    ranks = [len(s) - len(i.shape) for s, i in zip(shapes, kernel.inputs, strict=True)]
    most = max(ranks, default=0)
    return [(1,) * (most - r) + tuple(s) for r, s in zip(ranks, shapes, strict=True)]
