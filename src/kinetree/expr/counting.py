"""Floating-point operations of graphs and of any routine — RBDA §5.1, appendix A.

    with counting() as tally:
        f = I @ v                  # on arrays of Counted numbers, see ``variables``
    print(tally)                   # 24m + 18a

    count(forward_dynamics, model, q, qd, tau).multiplications

The conventions are the book's: subtractions are additions, sign changes are free, sines and
cosines, and exponentials with logarithms and hyperbolic tangents, are kept apart. Numbers known
beforehand cost nothing among themselves, nor do the constants 0, 1 and -1 in a sum or product. The
same operation on the same operands counts once, up to sign, because it needs to be done once:
symmetric matrices are stored full. Of a graph, what stands in the body of a loop counts once.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from itertools import count as _serial_numbers
from math import atan2, cos, exp, log, sin, sqrt, tanh
from numbers import Real
from sys import float_info
from typing import Any

import numpy as np

from kinetree.arguments import guard_module
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SingularError
from kinetree.expr.calls import callee_of
from kinetree.expr.node import LEAVES

# Cost of an operation relative to an addition, from the throughput of current processors.
WEIGHTS = {
    "const": 0, "input": 0, "carry": 0, "repeat": 0, "final": 0, "callee": 0, "result": 0,
    "held": 0,
    "/": 8, "sqrt": 8, "sin": 15, "cos": 15, "atan2": 40,
    "exp": 15, "log": 40, "tanh": 25,
}  # fmt: skip


class _Counts:
    """Base of numbers of operations: their sum, and how they are written."""

    multiplications: int
    additions: int
    divisions: int
    square_roots: int

    @property
    def total(self) -> int:
        """Sum of multiplications, additions, divisions and square roots."""
        return self.multiplications + self.additions + self.divisions + self.square_roots

    def __str__(self):
        counts = (self.multiplications, self.additions, self.divisions, self.square_roots)
        named = zip(counts, "madr", strict=True)
        return " + ".join(f"{n}{letter}" for n, letter in named if n) or "0"


@dataclass(frozen=True)
class OperationCount(_Counts):
    """Operations by kind, in the convention of RBDA §10.3; prints as ``24m + 18a``.

    Subtractions are additions, sign changes and choices are free, trigonometric functions and
    exponentials (with logarithms and hyperbolic tangents) are kept apart.
    """

    multiplications: int
    additions: int
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    sign_changes: int = 0
    comparisons: int = 0
    exponentials: int = 0


def count_operations(graph, roots):
    """Numbers of operations of each kind that ``roots`` need, each node once."""
    kinds = Counter(graph.nodes[i][0] for i in graph.reachable(roots))
    return OperationCount(
        multiplications=kinds["*"],
        additions=kinds["+"] + kinds["-"],
        divisions=kinds["/"],
        square_roots=kinds["sqrt"],
        trigonometric=kinds["sin"] + kinds["cos"] + kinds["atan2"],
        sign_changes=kinds["neg"] + kinds["abs"] + kinds["floor"],
        comparisons=sum(kinds[op] for op in ("<", "<=", "==", "and", "or", "not", "select")),
        exponentials=kinds["exp"] + kinds["log"] + kinds["tanh"],
    )


def cost(graph, roots):
    """Cost of the nodes that ``roots`` need, in units of an addition."""
    nodes, order = graph.nodes, graph.reachable(roots)
    return cost_of_calls(graph, roots) + sum(WEIGHTS.get(nodes[i][0], 1) for i in order)


def cost_of_calls(graph, roots):
    """Cost of the called kernels that ``roots`` need."""
    calls = [i for i in graph.reachable(roots) if graph.nodes[i][0] == "call"]
    return sum(callee_of(graph, i).cost for i in calls)


def depth(graph, roots):
    """Length of the longest chain of dependent operations."""
    nodes, level = graph.nodes, {}
    for i in graph.reachable(roots):
        op, *operands = nodes[i]
        level[i] = 0 if op in LEAVES else 1 + max(level[a] for a in operands)
    return max((level[i] for i in roots), default=0)


__all__ = ["Counted", "Tally", "count", "counting", "fit_growth", "variables"]

_tally: ContextVar["Tally | None"] = ContextVar("tally", default=None)
_serial = _serial_numbers()


@dataclass
class Tally(_Counts):
    """Numbers of operations of each kind; prints as in the book, ``24m + 18a``."""

    multiplications: int = 0
    additions: int = 0
    divisions: int = 0
    square_roots: int = 0
    trigonometric: int = 0
    exponentials: int = 0
    _done: dict = field(default_factory=dict, repr=False, compare=False)

    def result_of(self, kind: str, *operation: Any) -> Any:
        """Serial number of an operation's result; counts the operation if it is new."""
        if operation not in self._done:
            setattr(self, kind, getattr(self, kind) + 1)
            self._done[operation] = next(_serial)
        return self._done[operation]


class Counted:
    """A number whose operations are counted by the ``counting`` block in which it is used.

    Behaves as a real number in NumPy object arrays, and carries its value along, so that results
    can be checked and choices made. Comparisons are free.
    """

    __slots__ = ("serial", "sign", "value")

    def __init__(self, value: Any, serial: Any = None, sign: int = 1):
        self.value, self.sign = value, sign
        self.serial = next(_serial) if serial is None else serial

    def __add__(self, other):
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        if _is_constant(other, 0):
            return self
        (x, s), (y, t) = sorted((_name(self), _name(other)))
        return _result("additions", _value(self) + _value(other), s, "+", x, y, s * t)

    __radd__ = __add__

    def __sub__(self, other):
        return self + -other if isinstance(other, _NUMBERS) else NotImplemented

    def __rsub__(self, other):
        return -self + other

    def __neg__(self):
        return Counted(-self.value, self.serial, -self.sign)

    def __pos__(self):
        return self

    def __abs__(self):
        return -self if self.value < 0 else self

    def __mul__(self, other):
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        if _is_constant(other, 0):
            return 0
        if _is_constant(other, 1, -1):
            return self if other == 1 else -self
        (x, s), (y, t) = sorted((_name(self), _name(other)))
        return _result("multiplications", _value(self) * _value(other), s * t, "*", x, y)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if _is_constant(other, 1, -1):
            return self * other
        return _quotient(self, other) if isinstance(other, _NUMBERS) else NotImplemented

    def __rtruediv__(self, other):
        return 0 if _is_constant(other, 0) else _quotient(other, self)

    def __pow__(self, n):
        if not isinstance(n, int) or n < 1:
            return NotImplemented
        half = self ** (n // 2) if n > 1 else 1
        return half * half * (self if n % 2 else 1)

    def sqrt(self) -> Any:
        """Square root of a counted number."""
        return _result("square_roots", sqrt(self.value), 1, "sqrt", *_name(self))

    def sin(self) -> Any:
        """Sine of a counted number."""
        x, s = _name(self)
        return _result("trigonometric", sin(self.value), s, "sin", x)

    def cos(self) -> Any:
        """Cosine of a counted number."""
        x, _ = _name(self)
        return _result("trigonometric", cos(self.value), 1, "cos", x)

    def exp(self) -> Any:
        """Exponential of a counted number."""
        return _result("exponentials", exp(self.value), 1, "exp", *_name(self))

    def log(self) -> Any:
        """Natural logarithm of a counted number."""
        return _result("exponentials", log(self.value), 1, "log", *_name(self))

    def tanh(self) -> Any:
        """Hyperbolic tangent of a counted number."""
        x, s = _name(self)
        return _result("exponentials", tanh(self.value), s, "tanh", x)

    @staticmethod
    def atan2(y: Any, x: Any) -> Any:
        """Angle of the point (x, y), of counted numbers."""
        value = atan2(_value(y), _value(x))
        return _result("trigonometric", value, 1, "atan2", _name(y), _name(x))

    def check_pivot(self, scale: Any, message: Any) -> Any:
        """The number, or an error if it is not safely positive."""
        if not self.value > 64 * float_info.epsilon * _value(scale):
            raise SingularError(message())
        return self

    def __lt__(self, other):
        return self.value < _value(other)

    def __gt__(self, other):
        return self.value > _value(other)

    def __le__(self, other):
        return self.value <= _value(other)

    def __ge__(self, other):
        return self.value >= _value(other)

    def __float__(self):
        return float(self.value)

    def __repr__(self):
        return f"Counted({self.value})"


_NUMBERS = (Counted, Real)


def _is_constant(x, *values):
    """Whether a number is a plain constant equal to one of the values."""
    return not isinstance(x, Counted) and x in values


def _value(x):
    """Plain value of a counted number."""
    return x.value if isinstance(x, Counted) else float(x)


def _name(x):
    """Sortable key of a number up to its sign, and the sign."""
    if isinstance(x, Counted):
        return (0, x.serial), x.sign
    return (1, abs(x)), 1 if x >= 0 else -1


def _result(kind, value, sign, *operation):
    """Counted number that results from an operation."""
    tally = _tally.get()
    return Counted(value, tally.result_of(kind, *operation) if tally else None, sign)


def _quotient(a, b):
    """Quotient of counted numbers."""
    (x, s), (y, t) = _name(a), _name(b)
    return _result("divisions", _value(a) / _value(b), s * t, "/", x, y)


@contextmanager
def counting() -> "Iterator[Tally]":
    """Context that counts operations on ``Counted`` numbers; nested ones count separately."""
    tally = Tally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)


def variables(x: Any) -> Any:
    """Nested structure with every float replaced by a ``Counted`` number.

    Goes into arrays, lists, tuples and the spatial types. Integers are structure and stay. A
    symmetric matrix stays symmetric: opposite entries are one variable.
    """
    if isinstance(x, (float, np.floating)):
        return Counted(float(x))
    if isinstance(x, np.ndarray):
        return _variable_array(x) if np.issubdtype(x.dtype, np.floating) else x
    if isinstance(x, (list, tuple)):
        return type(x)(variables(item) for item in x)
    slots = [name for cls in type(x).__mro__ for name in getattr(cls, "__slots__", ())]
    if not slots:
        return x
    new = copy(x)
    for name in slots:
        object.__setattr__(new, name, variables(getattr(x, name)))
    return new


def _variable_array(x):
    """Array of counted numbers; symmetric matrices get equal entries."""
    new = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        new[index] = Counted(float(x[index]))
    if x.ndim == 2 and x.shape[0] == x.shape[1] and np.array_equal(x, x.T):
        upper = np.triu_indices(len(x), 1)
        new[upper] = new.T[upper]
    return new


def count(function: Callable, *args: Any) -> Tally:
    """Operations that ``function(*args)`` takes, by kind, for general floats in ``args``.

    The numbers inside a ``Model`` count as known beforehand.
    """
    counted = [variables(x) for x in args]
    with counting() as tally:
        function(*counted)
    return tally


def fit_growth(sizes: ArrayLike, costs: ArrayLike) -> float:
    """Exponent ``p`` with which ``costs`` grow as ``sizes**p``, by a logarithmic fit.

    Lower-order terms bend the curve: choose sizes large enough to make them negligible.
    """
    sizes, costs = np.asarray(sizes, dtype=float), np.asarray(costs, dtype=float)
    if sizes.shape != costs.shape or sizes.ndim != 1 or len(set(sizes)) < 2:
        raise ShapeError(
            f"fit_growth needs a cost for each of at least two different sizes, got sizes of "
            f"shape {sizes.shape} and costs of shape {costs.shape}"
        )
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


guard_module(__name__)
