"""Conditions on traced numbers, and their powers and elementary functions.

Methods have the names that NumPy looks for on objects. Sine, cosine, square root, arctangent,
exponential, logarithm, hyperbolic tangent and floor are operations of the graph; the others are
made of them.
"""

from math import nan
from numbers import Real
from typing import Any

import numpy as np

from kinetree.errors import TraceError
from kinetree.expr import simplify
from kinetree.expr.refusals import NotANumber, mixed_traces


class Condition(NotANumber):
    """A comparison of traced numbers, or several combined by ``&``, ``|`` and ``~``."""

    __slots__ = ("graph", "i")

    def __init__(self, graph, i):
        self.graph = graph
        self.i = i

    def _combine(self, op, other):
        """Condition that combines two by ``and`` or ``or``."""
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
        """Traced number ``a`` where the condition holds, else ``b``."""
        g = self.graph
        if isinstance(a, _TRUTHS) or isinstance(b, _TRUTHS):
            return (self & as_truth(a)) | (~self & as_truth(b))
        return g.handle(simplify.select(g, self.i, g.number(a), g.number(b)))

    def require(self):
        """Record a run-time check that the condition holds."""
        self.graph.checks.append((self.i, None))

    def __repr__(self):
        return f"<traced condition {self.graph.nodes[self.i][0]} {self.i}>"


_TRUTHS = (Condition, bool, np.bool_)


def as_truth(x):
    """Condition unchanged; for numbers, whether they are 1 (true)."""
    return x if isinstance(x, Condition) else bool(x)


def as_condition(g, i):
    """Condition of a node, or True or False if its outcome is known."""
    handle = g.handle(i)
    return handle if isinstance(handle, Condition) else bool(handle)


class Elementary:
    """Functions of a traced number beside arithmetic and comparisons."""

    __slots__ = ()

    def __abs__(self: Any):
        return self._unary("abs")

    def __floor__(self: Any):
        return self._unary("floor")

    def stop_gradient(self: Any):
        """The number as a constant, through which no derivative passes."""
        return self._unary("held")

    def __pow__(self: Any, n):
        power = float(n) if isinstance(n, Real) else nan
        if power == 0.5:
            return self.sqrt()
        if not -8 <= power <= 8 or not power.is_integer():
            raise TraceError(
                f"cannot raise a traced value to the power {n}: only integer powers from -8 to 8 "
                f"and 0.5 are supported; write products, quotients or sqrt"
            )
        if power < 0:
            return 1 / self**-power
        result = 1.0
        for _ in range(int(power)):
            result = result * self
        return result

    def _unary(self: Any, op):
        """Traced number from an operation with one operand."""
        g = self.graph
        return g.handle(simplify.unary(g, op, self.i))

    def sin(self: Any):
        """Sine of a traced number."""
        return self._unary("sin")

    def cos(self: Any):
        """Cosine of a traced number."""
        return self._unary("cos")

    def tan(self: Any):
        """Tangent of a traced number."""
        return self.sin() / self.cos()

    def sqrt(self: Any):
        """Square root of a traced number."""
        return self._unary("sqrt")

    def exp(self: Any):
        """Exponential of a traced number."""
        return self._unary("exp")

    def log(self: Any):
        """Natural logarithm of a traced number."""
        return self._unary("log")

    def tanh(self: Any):
        """Hyperbolic tangent of a traced number."""
        return self._unary("tanh")

    def arctan2(self: Any, x):
        """Angle of the point ``(x, self)``, in (-π, π]."""
        g = self.graph
        return g.handle(simplify.atan2(g, self.i, g.number(x)))

    def atan2(self: Any, y, x):
        """Angle of the point ``(x, y)``; either may be a plain number."""
        g = self.graph
        return g.handle(simplify.atan2(g, g.number(y), g.number(x)))

    def arctan(self: Any):
        """Angle in (-π/2, π/2) with this tangent."""
        return self.arctan2(1.0)

    def arcsin(self: Any):
        """Angle in [-π/2, π/2] with this sine."""
        return self.arctan2(((1 - self) * (1 + self)).sqrt())

    def arccos(self: Any):
        """Angle in [0, π] with this cosine."""
        return ((1 - self) * (1 + self)).sqrt().arctan2(self)

    def hypot(self: Any, other):
        """Length of the hypotenuse, ``sqrt(self² + other²)``."""
        return (self * self + other * other).sqrt()

    def conjugate(self: Any):
        """The number itself: traced numbers are real."""
        return self

    @property
    def real(self: Any):
        """Real part: the number itself."""
        return self

    @property
    def imag(self: Any):
        """Imaginary part: zero."""
        return 0.0
