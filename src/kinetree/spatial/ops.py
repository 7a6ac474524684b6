"""Scalar functions with one spelling for every kind of number.

An algorithm written with these runs on floats, complex numbers (complex-step
derivatives), ``fractions.Fraction``, mpmath and SymPy numbers, and traced
expressions. A number type of your own joins in by having methods of the same
name (``x.sin()``, ``x.sqrt()``, ``condition.select(a, b)``).
"""

import importlib
import sys
from math import factorial
from typing import Any

import numpy as np

from kinetree.errors import ArrayKindError, SingularError

_NATIVE = (float, int, complex, np.number)


def _package(x):
    """Name of the package that the type of ``x`` comes from."""
    return type(x).__module__.partition(".")[0]


def _library(x):
    """Module with elementary functions for the type of ``x``, or None."""
    name = _package(x)
    return importlib.import_module(name) if name in ("mpmath", "sympy") else None


def _unary(name, x):
    """Elementary function of one number of any kind, by name."""
    if isinstance(x, _NATIVE):
        return getattr(np, name)(x)
    library = _library(x)
    if library is not None:
        return getattr(library, name)(x)
    if not hasattr(x, name):
        raise _undefined_error(name, x)
    return getattr(x, name)()


def _undefined_error(name, x):
    """Error for a type of numbers that has no such function."""
    return ArrayKindError(
        f"{name}() of a {type(x).__name__} is not defined; use a float, complex, mpmath, SymPy "
        f"or traced number, or give the type a method {name}()"
    )


def sin(x):
    """Sine of an angle [rad]."""
    return _unary("sin", x)


def cos(x):
    """Cosine of an angle [rad]."""
    return _unary("cos", x)


def sqrt(x):
    """Nonnegative square root of a number of any kind."""
    return _unary("sqrt", x)


def exp(x):
    """Exponential of a number of any kind."""
    return _unary("exp", x)


def log(x):
    """Natural logarithm of a number of any kind."""
    return _unary("log", x)


def tanh(x):
    """Hyperbolic tangent of a number of any kind."""
    return _unary("tanh", x)


def atan2(y, x):
    """Angle of the point (x, y), in (-pi, pi]."""
    for number in (y, x):
        library = _library(number)
        if library is not None:
            return library.atan2(y, x)
        if not isinstance(number, _NATIVE):
            if not hasattr(number, "atan2"):
                raise _undefined_error("atan2", number)
            return number.atan2(y, x)
    if np.iscomplexobj(y) or np.iscomplexobj(x):
        return _complex_step_atan2(y, x)
    return np.arctan2(y, x)


def _complex_step_atan2(y, x):
    """Analytic continuation of atan2 that keeps first derivatives in the imaginary part."""
    y, x = complex(y), complex(x)
    rate = (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2)
    return complex(np.arctan2(y.real, x.real), rate)


def less(a, b):
    """Comparison ``a < b``; complex numbers compare by real parts, as the complex step needs."""
    return _real(a) < _real(b)


def _real(x):
    """Real part of a number of any kind."""
    return x.real if isinstance(x, (complex, np.complexfloating)) else x


def select(condition, a, b):
    """Number ``a`` where the condition holds, else ``b``; both are computed and must be finite."""
    if isinstance(condition, (bool, np.bool_)):
        return a if condition else b
    if is_symbolic(condition):
        return sys.modules["sympy"].Piecewise((a, condition), (b, True))
    for x in (a, b):
        if hasattr(x, "select_parts"):  # numbers that consist of others
            return x.select_parts(condition, a, b)
    return condition.select(a, b)


def stop_gradient(x):
    """Number ``x`` as a constant, through which no derivative passes."""
    return x.stop_gradient() if hasattr(x, "stop_gradient") else getattr(x, "real", x)


def absolute(x):
    """Absolute value, extended to complex numbers so that the complex step works."""
    return select(less(x, 0), -x, x)


def is_symbolic(x) -> bool:
    """Whether ``x`` is a SymPy formula."""
    return _package(x) == "sympy"


def digits(x) -> int:
    """Decimal digits that numbers of the type of ``x`` carry.

    None for a formula: its series serve at zero alone, where the first few terms are exact.
    """
    if is_symbolic(x):
        return 0
    return x.context.dps if _package(x) == "mpmath" else 16


def rational(numerator, denominator, like):
    """Rational constant, as exact as the number type of ``like`` allows."""
    if _package(like) in ("mpmath", "sympy", "fractions"):
        return (numerator + 0 * like) / denominator
    return numerator / denominator


def magnitude(x) -> float:
    """Magnitude of a number as a float, for tolerances and pivot tests; never traced."""
    return float(abs(x))


def check_pivot(pivot, scale, message):
    """The pivot, or SingularError unless it is safely above zero relative to ``scale``.

    ``scale`` is the size that rounding errors of the pivot are proportional to. A traced
    number decides for itself, at run time, through its method ``check_pivot``.
    """
    if hasattr(pivot, "check_pivot"):
        return pivot.check_pivot(scale, message)
    if is_symbolic(pivot):
        return pivot  # a formula is neither zero nor positive until numbers go in
    is_safe: Any = less(64 * sys.float_info.epsilon * scale, pivot)
    if not isinstance(is_safe, (bool, np.bool_)):
        is_safe.require()  # the pivot is a plain number, its scale a traced one
    elif not is_safe:
        raise SingularError(message())
    return pivot


# --- Stumpff functions: ``c_k(s) = Σ (-s)ʲ / (2j + k)!``, smooth at zero -------------------------
# With ``s = θ²`` they are the coefficients of every exponential map on rotations and rigid
# motions: ``c_0 = cos θ``, ``c_1 = sin θ/θ``, ``c_2 = (1 - cos θ)/θ²``, ``c_3 = (θ - sin θ)/θ³``.
# The closed forms lose all digits near zero, so a series takes over there.

_SWITCH = 4  # |θ| = 2: the closed forms have lost less than four bits


def stumpff(s):
    """Stumpff functions ``(c_0, ..., c_5)`` at ``s = θ² ≥ 0``, to working precision."""
    if is_symbolic(s):  # the series is exact where a formula needs it, at zero
        near = sys.modules["sympy"].Eq(s, 0)
        small, large = _small(s), _large(s)
    else:
        near = less(s, _SWITCH)
        small, large = _small(select(near, s, 0 * s)), _large(select(near, _SWITCH + 0 * s, s))
    return tuple(select(near, a, b) for a, b in zip(small, large, strict=True))


def stumpff_rate(c):
    """Derivatives ``(dc_1/ds, dc_2/ds, dc_3/ds)`` of Stumpff functions, without division."""
    return tuple((k * c[k + 2] - c[k + 1]) / 2 for k in (1, 2, 3))


def _small(s):
    """Stumpff functions for small ``s``, by series and downward recursion."""
    c4, c5 = _series(s, 4), _series(s, 5)
    c2, c3 = rational(1, 2, s) - s * c4, rational(1, 6, s) - s * c5
    return 1 - s * c2, 1 - s * c3, c2, c3, c4, c5


def _large(s):
    """Stumpff functions for large ``s``, by closed forms and upward recursion."""
    theta = sqrt(s)
    c0, c1 = cos(theta), sin(theta) / theta
    half = sin(theta / 2) / theta
    c2 = 2 * half * half  # 1 - cos θ = 2 sin²(θ/2)
    c3 = (1 - c1) / s
    return c0, c1, c2, c3, (rational(1, 2, s) - c2) / s, (rational(1, 6, s) - c3) / s


def _series(s, k):
    """Power series of the Stumpff function ``c_k`` for |s| < 4, by Horner's rule."""
    terms = 4 + digits(s) // 2
    total = rational(1, factorial(2 * terms + k), s)
    for j in range(terms - 1, -1, -1):
        total = rational(1, factorial(2 * j + k), s) - s * total
    return total
