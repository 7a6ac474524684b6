"""An algorithm run once on symbols: what it costs, and its values for many samples at once.

For decisions that are made before anything is compiled.
"""

import numpy as np

from kinetree.expr.count import cost
from kinetree.expr.interpret import evaluate
from kinetree.expr.node import Graph
from kinetree.expr.refusals import explained

__all__ = ["Rehearsal"]


class Rehearsal:
    """A function of arrays, traced.

    Args:
        function: takes one array per shape and returns a tuple of arrays.
        shapes: shape of every argument, by name.
    """

    def __init__(self, function, **shapes):
        self.graph, symbols = Graph(), []
        for name, shape in shapes.items():
            array = np.empty(shape, dtype=object)
            for index in np.ndindex(array.shape):
                array[index] = self.graph.input(name, index)
            symbols.append(array)
        with explained():
            results = function(*symbols)
        self.results = [np.asarray(r, dtype=object) for r in results]

    def cost(self) -> int:
        """Weighted number of operations."""
        return cost(self.graph, self._roots(self.results))

    def values(self, **arrays):
        """Results for arrays with one leading axis of samples."""
        count = len(next(iter(arrays.values())))
        flat = evaluate(self.graph, self._roots(self.results), arrays)
        found, position = [], 0
        for r in self.results:
            part = [np.broadcast_to(x, count) for x in flat[position : position + r.size]]
            stacked = np.stack(part, axis=-1) if part else np.empty((count, 0))
            found.append(stacked.reshape(count, *r.shape))
            position += r.size
        return found

    def _roots(self, arrays):
        return [self.graph.number(x) for a in arrays for x in a.ravel()]
