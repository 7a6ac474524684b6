"""Numbers that carry their first two derivatives along one direction.

A function of a jet, written with ``kinetree.spatial.ops``, returns a jet. The entries can be
numbers of any kind that the function takes, so that nothing is lost by differentiating.
"""

import numpy as np

from kinetree.spatial import ops


def jets(x, direction):
    """Array of jets ``x + t direction`` in ``t``, for first and second derivatives."""
    return np.array([Jet(a, d) for a, d in zip(x, direction, strict=True)], dtype=object)


class Jet:
    """A value with its first and second derivative."""

    __slots__ = ("first", "second", "value")

    def __init__(self, value, first=0, second=0):
        self.value, self.first, self.second = value, first, second

    def _chain(self, f, df, ddf):
        """Function of this jet, by the chain rule from its value and two derivatives."""
        d = self.first
        return Jet(f, df * d, df * self.second + ddf * (d * d))

    def __neg__(self):
        return Jet(-self.value, -self.first, -self.second)

    def __add__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented  # entry by entry, which NumPy does
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.first, self.second)
        return Jet(self.value + other.value, self.first + other.first, self.second + other.second)

    __radd__ = __add__

    def __sub__(self, other):
        return NotImplemented if isinstance(other, np.ndarray) else self + (-other)

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        if not isinstance(other, Jet):
            return Jet(self.value * other, self.first * other, self.second * other)
        a, b = self, other
        cross = a.first * b.first
        return Jet(
            a.value * b.value,
            a.value * b.first + a.first * b.value,
            a.value * b.second + cross + cross + a.second * b.value,
        )

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        if isinstance(other, Jet):
            return self * (1 / other)
        return Jet(self.value / other, self.first / other, self.second / other)

    def __rtruediv__(self, other):
        inverse = 1 / self.value
        square = inverse * inverse
        return self._chain(inverse, -square, 2 * inverse * square) * other

    def __pow__(self, n: int):
        x = self.value
        return self._chain(x**n, n * x ** (n - 1), n * (n - 1) * x ** (n - 2))

    def __lt__(self, other):
        return ops.less(self.value, other.value if isinstance(other, Jet) else other)

    def __gt__(self, other):
        return ops.less(other.value if isinstance(other, Jet) else other, self.value)

    def sin(self):
        """Sine of a jet."""
        s, c = ops.sin(self.value), ops.cos(self.value)
        return self._chain(s, c, -s)

    def cos(self):
        """Cosine of a jet."""
        s, c = ops.sin(self.value), ops.cos(self.value)
        return self._chain(c, -s, -c)

    def sqrt(self):
        """Square root of a jet."""
        root = ops.sqrt(self.value)
        half = 1 / (2 * root)
        return self._chain(root, half, -half / (2 * self.value))

    def exp(self):
        """Exponential of a jet."""
        e = ops.exp(self.value)
        return self._chain(e, e, e)

    def log(self):
        """Natural logarithm of a jet."""
        inverse = 1 / self.value
        return self._chain(ops.log(self.value), inverse, -inverse * inverse)

    def tanh(self):
        """Hyperbolic tangent of a jet."""
        t = ops.tanh(self.value)
        derivative = 1 - t * t
        return self._chain(t, derivative, -2 * t * derivative)

    @staticmethod
    def atan2(y, x):
        """Angle of the point (x, y), of jets."""
        y, x = (a if isinstance(a, Jet) else Jet(a) for a in (y, x))
        square = x.value * x.value + y.value * y.value
        first = (x.value * y.first - y.value * x.first) / square
        growth = (x.value * x.first + y.value * y.first) / square
        second = (x.value * y.second - y.value * x.second) / square - 2 * first * growth
        return Jet(ops.atan2(y.value, x.value), first, second)

    @staticmethod
    def select_parts(condition, a, b):
        """Jet ``a`` where the condition holds, else ``b``, for each derivative."""
        a, b = (x if isinstance(x, Jet) else Jet(x) for x in (a, b))
        parts = [(getattr(a, name), getattr(b, name)) for name in ("value", "first", "second")]
        return Jet(*(ops.select(condition, x, y) for x, y in parts))

    def __repr__(self):
        return f"Jet({self.value!r}, {self.first!r}, {self.second!r})"
