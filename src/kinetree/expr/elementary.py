"""Powers and elementary functions of traced numbers, by the names that NumPy looks for on objects.

Sine, cosine, square root, arctangent, exponential, logarithm and hyperbolic tangent are operations
of the graph; the others are made of them.
"""

from math import nan
from numbers import Real
from typing import Any

from kinetree.errors import TraceError
from kinetree.expr import simplify

__all__ = ["Elementary"]


class Elementary:
    """What a traced number can do beside arithmetic and comparisons."""

    __slots__ = ()

    def __abs__(self: Any):
        return self._unary("abs")

    def __pow__(self: Any, n):
        power = float(n) if isinstance(n, Real) else nan
        if power == 0.5:
            return self.sqrt()
        if not -8 <= power <= 8 or not power.is_integer():
            raise TraceError(
                f"cannot raise a traced value to the power {n}: only whole powers from -8 to 8 "
                f"and 0.5 are supported; write products, quotients or sqrt"
            )
        if power < 0:
            return 1 / self**-power
        result = 1.0
        for _ in range(int(power)):
            result = result * self
        return result

    def _unary(self: Any, op):
        g = self.graph
        return g.handle(simplify.unary(g, op, self.i))

    def sin(self: Any):
        """Sine."""
        return self._unary("sin")

    def cos(self: Any):
        """Cosine."""
        return self._unary("cos")

    def tan(self: Any):
        """Tangent."""
        return self.sin() / self.cos()

    def sqrt(self: Any):
        """Square root."""
        return self._unary("sqrt")

    def exp(self: Any):
        """Exponential."""
        return self._unary("exp")

    def log(self: Any):
        """Natural logarithm."""
        return self._unary("log")

    def tanh(self: Any):
        """Hyperbolic tangent."""
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
        """``sqrt(self² + other²)``."""
        return (self * self + other * other).sqrt()

    def conjugate(self: Any):
        """The number itself: traced numbers are real."""
        return self

    @property
    def real(self: Any):
        """The number itself."""
        return self

    @property
    def imag(self: Any):
        """Zero."""
        return 0.0
