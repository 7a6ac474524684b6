"""Conditions on traced numbers: what they combine to, and what they choose."""

import numpy as np

from kinetree.expr import simplify
from kinetree.expr.refusals import NotANumber, mixed_traces

__all__ = ["Condition", "as_condition"]


class Condition(NotANumber):
    """A comparison of traced numbers, or several combined by ``&``, ``|`` and ``~``."""

    __slots__ = ("graph", "i")

    def __init__(self, graph, i):
        self.graph = graph
        self.i = i

    def _combine(self, op, other):
        g = self.graph
        if isinstance(other, Condition):
            if other.graph is not g:
                raise mixed_traces()
            return as_condition(g, simplify.combine(g, op, self.i, other.i))
        if isinstance(other, (bool, np.bool_)):
            return as_condition(g, simplify.combine(g, op, self.i, g.constant(bool(other))))
        return NotImplemented

    def __and__(self, other):
        return self._combine("and", other)

    __rand__ = __and__

    def __or__(self, other):
        return self._combine("or", other)

    __ror__ = __or__

    def __invert__(self):
        return as_condition(self.graph, simplify.negate(self.graph, self.i))

    def select(self, a, b):
        """``a`` where this condition holds, else ``b``."""
        g = self.graph
        if isinstance(a, (Condition, bool)) or isinstance(b, (Condition, bool)):
            return (self & a) | (~self & b)
        return g.handle(simplify.select(g, self.i, g.number(a), g.number(b)))

    def require(self):
        """Record that this condition must hold when the code runs."""
        self.graph.checks.append((self.i, None))

    def __repr__(self):
        return f"<traced condition {self.graph.nodes[self.i][0]} {self.i}>"


def as_condition(g, i):
    """A Condition, or True or False when the outcome is known."""
    handle = g.handle(i)
    return handle if isinstance(handle, Condition) else bool(handle)
