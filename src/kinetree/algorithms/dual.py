"""Derivatives along a direction by dual numbers ``a + b ε`` with ``ε² = 0``.

Exact like the complex step, and generic in the scalar: ``a`` and ``b`` may be complex or traced
themselves, where a complex step would already be taken.
"""

from typing import Any

import numpy as np

from kinetree.expr.elementary import Elementary
from kinetree.spatial.ops import atan2, cos, exp, less, log, select, sin, sqrt, tanh


def _with_dual(operation):
    """Decorator of binary operations: converts the other operand to ``Dual``, or elementwise."""

    def operator(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        return operation(self, other if isinstance(other, Dual) else Dual(other))

    return operator


class Dual(Elementary):
    """A number and its rate of change."""

    __slots__ = ("rate", "value")

    def __init__(self, value, rate: Any = 0):
        self.value, self.rate = value, rate

    def __neg__(self):
        return Dual(-self.value, -self.rate)

    @_with_dual
    def __add__(self, other):
        return Dual(self.value + other.value, self.rate + other.rate)

    @_with_dual
    def __sub__(self, other):
        return Dual(self.value - other.value, self.rate - other.rate)

    @_with_dual
    def __mul__(self, other):
        return Dual(self.value * other.value, self.value * other.rate + self.rate * other.value)

    @_with_dual
    def __truediv__(self, other):
        quotient = self.value / other.value
        return Dual(quotient, (self.rate - quotient * other.rate) / other.value)

    @_with_dual
    def __rsub__(self, other):
        return other - self

    @_with_dual
    def __rtruediv__(self, other):
        return other / self

    __radd__, __rmul__ = __add__, __mul__

    @_with_dual
    def __lt__(self, other):
        return _comparison(less(self.value, other.value))

    @_with_dual
    def __gt__(self, other):
        return _comparison(less(other.value, self.value))

    @_with_dual
    def __le__(self, other):
        return _comparison(self.value <= other.value)

    @_with_dual
    def __ge__(self, other):
        return _comparison(self.value >= other.value)

    def __pos__(self):
        return self

    def __abs__(self):
        return select(self < 0, -self, self)

    def sin(self):
        """Sine of a dual number."""
        return Dual(sin(self.value), cos(self.value) * self.rate)

    def cos(self):
        """Cosine of a dual number."""
        return Dual(cos(self.value), -sin(self.value) * self.rate)

    def sqrt(self):
        """Square root of a dual number."""
        root = sqrt(self.value)
        return Dual(root, self.rate / (2 * root))

    def exp(self):
        """Exponential of a dual number."""
        e = exp(self.value)
        return Dual(e, e * self.rate)

    def log(self):
        """Natural logarithm of a dual number."""
        return Dual(log(self.value), self.rate / self.value)

    def tanh(self):
        """Hyperbolic tangent of a dual number."""
        t = tanh(self.value)
        return Dual(t, (1 - t * t) * self.rate)

    def arctan2(self, x):
        """Angle of the point (x, self), by the name that NumPy looks for."""
        return Dual.atan2(self, x)

    @staticmethod
    def atan2(y, x):
        """Angle of the point (x, y)."""
        y, x = (a if isinstance(a, Dual) else Dual(a) for a in (y, x))
        square = x.value * x.value + y.value * y.value
        rate = (x.value * y.rate - y.value * x.rate) / square
        return Dual(atan2(y.value, x.value), rate)


class _Comparison:
    """A traced condition that chooses between dual numbers."""

    __slots__ = ("condition",)

    def __init__(self, condition):
        self.condition = condition

    def select(self, a, b):
        """Dual number ``a`` where the comparison holds, else ``b``."""
        a, b = (x if isinstance(x, Dual) else Dual(x) for x in (a, b))
        values, rates = (a.value, b.value), (a.rate, b.rate)
        return Dual(select(self.condition, *values), select(self.condition, *rates))

    def require(self):
        """Raise an error, or trace a check, unless the comparison holds."""
        self.condition.require()

    def __and__(self, other):
        return _comparison(self.condition & getattr(other, "condition", other))

    def __or__(self, other):
        return _comparison(self.condition | getattr(other, "condition", other))

    def __invert__(self):
        return _comparison(~self.condition)

    __rand__, __ror__ = __and__, __or__


def _comparison(outcome):
    """Comparison of dual numbers, from the outcome for their values."""
    return outcome if isinstance(outcome, (bool, np.bool_)) else _Comparison(outcome)


def value_of(array):
    """Values of an array of dual and plain numbers."""
    return _part(array, lambda y: y.value if isinstance(y, Dual) else y)


def rate_of(array):
    """Rates of an array of dual and plain numbers."""
    return _part(array, lambda y: y.rate if isinstance(y, Dual) else 0)


def _part(array, part):
    """Array of the values, or of the rates, of dual numbers."""
    array = np.asarray(array)
    return np.array([part(y) for y in array.ravel()]).reshape(array.shape)


def duals(values, rates):
    """Array of dual numbers from values and rates of the same shape."""
    pairs = zip(np.ravel(values), np.ravel(rates), strict=True)
    return np.array([Dual(a, b) for a, b in pairs], dtype=object).reshape(np.shape(values))


def derivative_along(function, x, direction):
    """Directional derivative ``d/dt function(x + t direction)`` at ``t = 0``, by dual numbers."""
    return rate_of(function(duals(x, direction)))
