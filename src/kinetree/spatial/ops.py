"""Scalar functions with one spelling for every kind of number.

An algorithm written with these runs on floats, complex numbers (complex-step
derivatives), ``fractions.Fraction``, mpmath and SymPy numbers, and traced
expressions. A number type of your own joins in by having methods of the same
name (``x.sin()``, ``x.sqrt()``, ``condition.select(a, b)``).
"""

import importlib
import sys

import numpy as np

from kinetree.errors import SingularError

__all__ = ["absolute", "atan2", "check_pivot", "cos", "less", "magnitude", "select", "sin", "sqrt"]

_NATIVE = (float, int, complex, np.number)


def _library(x):
    """The module that owns the type of ``x`` and has its elementary functions, or None."""
    name = type(x).__module__.partition(".")[0]
    return importlib.import_module(name) if name in ("mpmath", "sympy") else None


def _unary(name, x):
    if isinstance(x, _NATIVE):
        return getattr(np, name)(x)
    method = getattr(x, name, None)
    if method is not None and _library(x) is None:
        return method()
    library = _library(x)
    if library is not None:
        return getattr(library, name)(x)
    raise TypeError(
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
    """Non-negative square root."""
    return _unary("sqrt", x)


def atan2(y, x):
    """Angle of the point (x, y), in (-pi, pi]."""
    for number in (y, x):
        library = _library(number)
        if library is not None:
            return library.atan2(y, x)
        if not isinstance(number, _NATIVE):
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
    """``a < b``; complex numbers compare by their real parts, as the complex step needs."""
    return (a.real if isinstance(a, complex) else a) < (b.real if isinstance(b, complex) else b)


def select(condition, a, b):
    """``a`` where the condition holds, else ``b``. Both are evaluated: keep both finite."""
    if isinstance(condition, (bool, np.bool_)):
        return a if condition else b
    sympy = sys.modules.get("sympy")
    if sympy is not None and isinstance(condition, sympy.logic.boolalg.Boolean):
        return sympy.Piecewise((a, condition), (b, True))
    return condition.select(a, b)


def absolute(x):
    """``|x|``, extended to complex numbers so that it stays differentiable by complex step."""
    return select(less(x, 0), -x, x)


def magnitude(x) -> float:
    """Size of a number as a float, for tolerances and pivot tests; never traced."""
    return float(abs(x))


def check_pivot(pivot, scale, message):
    """Return ``pivot``, or raise SingularError when it is not safely above zero.

    ``scale`` is the size that rounding errors of the pivot are proportional to. A traced
    number decides for itself, at run time, through its method ``check_pivot``.
    """
    if hasattr(pivot, "check_pivot"):
        return pivot.check_pivot(scale, message)
    sympy = sys.modules.get("sympy")
    if sympy is not None and isinstance(pivot, sympy.Basic):
        return pivot  # a formula is neither zero nor positive until numbers go in
    if not less(64 * sys.float_info.epsilon * scale, pivot):
        raise SingularError(message())
    return pivot
