"""The expression graph: about twenty scalar operations, each distinct expression stored once.

A ``Graph`` is an append-only list of nodes; a node is a tuple ``(op, *operands)`` whose operands
are numbers of earlier nodes. Building an expression that already exists returns the old node
(hash-consing), so common subexpressions are found as they arise. ``Expr`` is a handle on one node
that behaves like a number: an algorithm that runs on floats runs on it too, and leaves its trace.
``Condition`` is a handle on a comparison, or on several combined by ``&``, ``|`` and ``~``.

Constants stay ordinary floats until they meet an ``Expr``, and what folds to a constant is a float
again. What is simplified on the way in is listed in ``kinetree.expr.simplify``; what the operations
mean is defined by ``kinetree.expr.interpret``; what cannot be traced and what to write instead is
said by ``kinetree.expr.refusals``. Every operation of a traced algorithm passes through here before
the first result can be computed, which is why the arithmetic is spelled out so plainly.
"""

from numbers import Real
from typing import Any

import numpy as np

from kinetree.errors import SingularError, TraceError
from kinetree.expr import simplify
from kinetree.expr.elementary import Condition, Elementary, as_condition
from kinetree.expr.refusals import NotTraceable, mixed_traces

# Operation: number of operands. "const" and "input" carry a value, respectively a name and index.
OPERATIONS = {
    "const": 0, "input": 0,
    "+": 2, "-": 2, "*": 2, "/": 2, "neg": 1,
    "sqrt": 1, "sin": 1, "cos": 1, "atan2": 2, "abs": 1, "exp": 1, "log": 1, "tanh": 1,
    "floor": 1, "held": 1,
    "<": 2, "<=": 2, "==": 2, "and": 2, "or": 2, "not": 1,
    "select": 3,
    "carry": 0, "repeat": None, "final": 2,  # loops: see kinetree.expr.repeat
    "callee": 0, "call": None, "result": 2,  # other kernels: see kinetree.expr.calls
}  # fmt: skip

LEAVES = frozenset(("const", "input", "carry", "callee"))
"""Operations without operands."""

CONDITIONS = frozenset(("<", "<=", "==", "and", "or", "not"))
"""Operations whose result is true or false."""


EPSILON = 2.0**-52

_PLAIN = frozenset((float, int, np.float64, np.int64))


class Graph:
    """Nodes in the order of their creation, which is an order in which they can be evaluated.

    Attributes:
        nodes: the nodes, ``(op, *operands)``, ``("const", value)`` or ``("input", name, index)``.
        known: node number of every node.
        handles: what stands for each node in traced code: a float, an Expr or a Condition; None
            where it has not been used yet, see ``handle``.
        checks: conditions that must hold when the code runs, ``(node number, message or None)``.
    """

    __slots__ = ("checks", "handles", "known", "latest", "nodes", "scoped")

    def __init__(self):
        self.nodes = []
        self.known = {}
        self.handles = []
        self.checks = []
        self.latest = None, []  # roots of the last call of ``reachable``, and its result
        self.scoped = None, {}  # the same of ``kinetree.expr.repeat.by_scope``

    def node(self, *key):
        """Number of the node ``(op, *operands)``, added if it is new."""
        i = self.known.get(key)
        return self.append(key) if i is None else i

    def append(self, key):
        """Number of a node that is known to be new."""
        i = self.known[key] = len(self.nodes)
        self.nodes.append(key)
        self.handles.append(key[1] if key[0] == "const" else None)
        return i

    def handle(self, i):
        """Traced number or condition for node ``i``, made at its first use.

        Made on first use: most nodes come from derivatives and from rearranging, which work
        with the numbers of nodes.
        """
        found = self.handles[i]
        if found is None:
            kind = Condition if self.nodes[i][0] in CONDITIONS else Expr
            found = self.handles[i] = kind(self, i)
        return found

    def forget_handles(self):
        """Drop the traced numbers of all nodes after tracing, which break reference cycles.

        The graph goes with the last who needs it then, without a search for cycles.
        """
        self.handles = [node[1] if node[0] == "const" else None for node in self.nodes]

    def constant(self, x):
        """Node of a constant; ``0`` and ``-0.0`` are one constant."""
        i = self.known.get(("const", x))  # an integer finds the float that equals it
        if i is None:
            x = float(x)
            if x != x:
                raise TraceError(
                    "a constant that is not a number (NaN) met a traced value: a parameter of the "
                    "model, or something computed before tracing, is missing or undefined"
                )
            i = self.append(("const", x))
        return i

    def input(self, name, index=()):
        """Traced number of the input ``name[index]``."""
        return self.handle(self.node("input", name, index))

    def number(self, x):
        """Node of a traced number of this graph, or of a plain number."""
        i = self.operand(x)
        if i is None:
            raise TraceError(
                f"a traced function computes with real numbers, got a {type(x).__name__}: {x!r}"
            )
        return i

    def operand(self, x):
        """Node of an operand; None if the operand's class must handle the operation."""
        if type(x) in _PLAIN:
            i = self.known.get(("const", x))
            return self.constant(x) if i is None else i
        if isinstance(x, Expr):
            if x.graph is not self:
                raise mixed_traces()
            return x.i
        if isinstance(x, (Real, np.bool_)):
            return self.constant(x)
        if isinstance(x, Condition):
            raise TraceError(
                "a traced condition was used as a number: write kinetree.select(condition, 1, 0)"
            )
        if isinstance(x, (complex, np.complexfloating)):
            raise TraceError(f"a traced value met the complex number {x}: traces are real")
        return None

    def expr(self, i):
        """Node ``i`` as a traced number, or as a float if it is constant."""
        return self.handle(i)

    def reachable(self, roots):
        """Nodes that ``roots`` depend on, in evaluation order."""
        roots = tuple(roots)
        if roots != self.latest[0]:  # nodes do not change, and the same roots often come again
            self.latest = roots, _reachable(self.nodes, roots)
        return list(self.latest[1])

    def use_counts(self, order, roots):
        """Number of uses of each node as an operand in ``order`` or as a root."""
        uses = [0] * len(self.nodes)
        for i in order:
            node = self.nodes[i]
            if node[0] not in LEAVES:
                for a in node[1:]:
                    uses[a] += 1
        for i in roots:
            uses[i] += 1
        return uses


def _reachable(nodes, roots):
    """Nodes that ``roots`` depend on, found from the last to the first."""
    i = max(roots, default=-1)
    needed, found = bytearray(i + 1), []
    for root in roots:
        needed[root] = 1
    while i >= 0:
        found.append(i)
        node = nodes[i]
        if node[0] not in LEAVES:
            if len(node) == 3:  # most have two operands: a quarter faster than by the loop
                needed[node[1]] = needed[node[2]] = 1
            else:
                for a in node[1:]:
                    needed[a] = 1
        i -= 1
        if i >= 0 and not needed[i]:  # most are needed
            i = needed.rfind(1, 0, i)
    found.reverse()
    return found


def _sum_by(rule):
    """Operator method ``+`` or ``-`` of traced numbers, by its simplification rule."""

    def operator(self, other):
        g = self.graph
        if type(other) is Expr and other.graph is g:
            b = other.i
        elif type(other) in _PLAIN and other == 0:
            return self
        else:
            b = g.operand(other)
            if b is None:
                return NotImplemented
        i = rule(g, self.i, b)
        found = g.handles[i]
        if found is None:  # as ``handle`` has it, without a call: nothing is done more often
            found = g.handles[i] = Expr(g, i)
        return found

    return operator


class Expr(Elementary, NotTraceable):
    """One node of a graph, with the arithmetic of a number."""

    __slots__ = ("graph", "i")
    __array_priority__ = -1.0  # above NumPy scalars, which would take the long way; below arrays

    def __init__(self, graph, i):
        self.graph = graph
        self.i = i

    # --- arithmetic --------------------------------------------------------------------------

    __add__ = __radd__ = _sum_by(simplify.add)
    __sub__ = _sum_by(simplify.sub)

    def __rsub__(self, other):
        g = self.graph
        b = g.operand(other)
        return NotImplemented if b is None else g.handle(simplify.sub(g, b, self.i))

    def __mul__(self, other):
        g = self.graph
        if type(other) is Expr and other.graph is g:
            b = other.i
        elif type(other) in _PLAIN and (other == 0 or other == 1):
            return self if other == 1 else 0.0
        else:
            b = g.operand(other)
            if b is None:
                return NotImplemented
        i = simplify.mul(g, self.i, b)
        found = g.handles[i]
        if found is None:
            found = g.handles[i] = Expr(g, i)
        return found

    __rmul__ = __mul__

    def __truediv__(self, other):
        g = self.graph
        b = g.operand(other)
        return NotImplemented if b is None else g.handle(simplify.div(g, self.i, b))

    def __rtruediv__(self, other):
        g = self.graph
        b = g.operand(other)
        return NotImplemented if b is None else g.handle(simplify.div(g, b, self.i))

    def __neg__(self):
        g = self.graph
        return g.handle(simplify.neg(g, self.i))

    def __pos__(self):
        return self

    # --- conditions --------------------------------------------------------------------------

    def _compare(self, op, other, swap=False, negate=False) -> Any:
        """Condition that compares this number with another."""
        g = self.graph
        b = g.operand(other)
        if b is None:
            return NotImplemented
        i = simplify.compare(g, op, b, self.i) if swap else simplify.compare(g, op, self.i, b)
        return as_condition(g, simplify.negate(g, i) if negate else i)

    def __lt__(self, other) -> Any:
        return self._compare("<", other)

    def __le__(self, other) -> Any:
        return self._compare("<=", other)

    def __gt__(self, other) -> Any:
        return self._compare("<", other, swap=True)

    def __ge__(self, other) -> Any:
        return self._compare("<=", other, swap=True)

    def __eq__(self, other) -> Any:
        return self._compare("==", other)

    def __ne__(self, other) -> Any:
        return self._compare("==", other, negate=True)

    __hash__ = object.__hash__

    def check_pivot(self, scale, message):
        """Record a run-time check that this value is safely positive."""
        condition = 64 * EPSILON * scale < self
        if condition is False:
            raise SingularError(message())
        condition.require()
        return self

    def __repr__(self):
        return f"<traced {self.graph.nodes[self.i][0]} {self.i}>"
