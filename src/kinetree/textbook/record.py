"""Tracing and simplifying as two steps: first record everything, then simplify — RBDA Fig. 10.6.

kinetree's own traces simplify as they go. This records an algorithm word for word instead, every
``0 * x`` of it, so that what the rules save can be measured, listed and explained:

    recording = Recording()
    v = recording.array("v", (3,))
    tau = cross(v, I @ v) @ s                  # 29 operations
    graph, roots = recording.simplified([tau])  # 5 operations
"""

from typing import NamedTuple

import numpy as np

from kinetree.expr.count import OperationCount, count_operations
from kinetree.expr.node import Graph
from kinetree.expr.refusals import NotTraceable
from kinetree.expr.substitute import substitute

__all__ = ["Recorded", "Recording", "Savings", "savings"]


class Recording:
    """Everything an algorithm does, in order: nothing shared, nothing left out.

    Attributes:
        nodes: as in ``Graph``, but one for every operation, however often it is repeated.
    """

    def __init__(self):
        self.nodes = []

    def add(self, *node):
        """Append a node; its number."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def array(self, name, shape):
        """An input."""
        symbols = np.empty(shape, dtype=object)
        for index in np.ndindex(shape):
            symbols[index] = Recorded(self, self.add("input", name, index))
        return symbols

    def number(self, x):
        """Node number of a value."""
        return x.i if isinstance(x, Recorded) else self.add("const", float(x))

    @property
    def operations(self) -> int:
        """Number of operations recorded."""
        return sum(node[0] not in ("const", "input") for node in self.nodes)

    def simplified(self, results):
        """A graph, and its roots for ``results``, by the rules of ``kinetree.expr.simplify``."""
        graph = Graph()
        return graph, substitute(self, [self.number(x) for x in np.ravel(results)], {}, graph)


class Recorded(NotTraceable):
    """A number that records what is done to it."""

    __slots__ = ("i", "recording")

    def __init__(self, recording, i):
        self.recording, self.i = recording, i

    def _record(self, op, *operands):
        numbers = [self.recording.number(x) for x in operands]
        return Recorded(self.recording, self.recording.add(op, *numbers))

    def __add__(self, other):
        return self._binary("+", self, other)

    def __radd__(self, other):
        return self._binary("+", other, self)

    def __sub__(self, other):
        return self._binary("-", self, other)

    def __rsub__(self, other):
        return self._binary("-", other, self)

    def __mul__(self, other):
        return self._binary("*", self, other)

    def __rmul__(self, other):
        return self._binary("*", other, self)

    def __truediv__(self, other):
        return self._binary("/", self, other)

    def __rtruediv__(self, other):
        return self._binary("/", other, self)

    def __lt__(self, other):
        return self._binary("<", self, other)

    def __gt__(self, other):
        return self._binary("<", other, self)

    def _binary(self, op, a, b):
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return NotImplemented
        if any(hasattr(x, "__array_ufunc__") and x.__array_ufunc__ is None for x in (a, b)):
            return NotImplemented  # a spatial vector, which knows what to do
        return self._record(op, a, b)

    def __neg__(self):
        return self._record("neg", self)

    def __abs__(self):
        return self._record("abs", self)

    def sin(self):
        """Sine."""
        return self._record("sin", self)

    def cos(self):
        """Cosine."""
        return self._record("cos", self)

    def sqrt(self):
        """Square root."""
        return self._record("sqrt", self)

    def exp(self):
        """Exponential."""
        return self._record("exp", self)

    def log(self):
        """Natural logarithm."""
        return self._record("log", self)

    def tanh(self):
        """Hyperbolic tangent."""
        return self._record("tanh", self)

    def atan2(self, y, x):
        """Angle of the point ``(x, y)``."""
        return self._record("atan2", y, x)

    def select(self, a, b):
        """``a`` where this condition holds, else ``b``."""
        return self._record("select", self, a, b)

    def check_pivot(self, scale, message):
        """The number itself: checks are not recorded."""
        return self


class Savings(NamedTuple):
    """What simplification saves: RBDA §10.4 reports factors from near 1 to 10."""

    recorded: int
    """Operations of the algorithm as it is written."""
    simplified: OperationCount
    """What is left of them."""

    @property
    def factor(self) -> float:
        """Recorded operations per operation left."""
        after = self.simplified
        left = after.total + after.trigonometric + after.exponentials + after.sign_changes
        return self.recorded / left if left else float("inf")


def savings(function, inputs):
    """Record ``function`` of arrays, simplify, and compare.

    Args:
        function: takes one array per input and returns an array or number.
        inputs: the name and shape of each, as pairs.
    """
    recording = Recording()
    result = function(*(recording.array(name, shape) for name, shape in inputs))
    graph, roots = recording.simplified(result)
    return Savings(recording.operations, count_operations(graph, roots))
