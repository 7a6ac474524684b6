"""Short ways: calls with arrays of a type and of shapes that have been seen before.

What follows from kinds and shapes is kept in plans, one for each; ``kernel.call`` looks for a plan
before anything else. A small batch on a GPU costs little more than its launch, so this counts.
"""

from kinetree.arrays.device import memory_error

__all__ = ["Plans", "out_of_memory", "short_ways"]


class Plans(dict):
    """Plans by what they depend on; not too many."""

    most = 64

    def keep(self, key, plan):
        """Add a plan; where there are too many, forget the others."""
        if len(self) >= self.most:
            self.clear()
        self[key] = plan


def short_ways(kernel):
    """Functions of arrays by the type of the first of them; they are part of ``kernel.call``.

    A function returns NotImplemented where it has no plan.
    """
    ways = kernel.__dict__.get("short_ways")
    if ways is None:
        ways = kernel.short_ways = {}
        kernel.call = _shortened(kernel, ways)
    return ways


def _shortened(kernel, ways):
    def call(*arrays):
        way = ways.get(type(arrays[0])) if arrays else None
        if way is not None:
            result = way(*arrays)
            if result is not NotImplemented:
                return result
        return kernel.lean(*arrays)

    return call


def out_of_memory(kernel, shape):
    """The error for a result of this shape that does not fit."""
    return memory_error(kernel, shape[: len(shape) - len(kernel.outputs[0].shape)])
