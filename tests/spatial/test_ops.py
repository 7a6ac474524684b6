from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

from kinetree.errors import SingularError
from kinetree.spatial import ops


class Traced:
    """A number of one's own, which records what is done to it."""

    def __init__(self, name):
        self.name = name

    def sin(self):
        return Traced(f"sin({self.name})")

    def atan2(self, y, x):
        return Traced("atan2")

    def select(self, a, b):
        return Traced("select")

    def check_pivot(self, scale, message):
        return Traced("checked")


@pytest.mark.parametrize("function", ["sin", "cos", "sqrt", "exp", "log", "tanh"])
def test_elementary_functions_of_every_number_type(function):
    f = getattr(ops, function)
    assert f(0.5) == getattr(np, function)(0.5)
    assert f(np.float32(0.5)).dtype == np.float32
    assert f(0.5 + 1e-30j).imag != 0
    with mpmath.workdps(40):
        assert f(mpmath.mpf("0.5")) == getattr(mpmath, function)(mpmath.mpf("0.5"))
    x = sympy.Symbol("x")
    assert f(x) == getattr(sympy, function)(x)


def test_own_number_types_join_in_by_methods():
    assert ops.sin(Traced("x")).name == "sin(x)"
    assert ops.atan2(1.0, Traced("x")).name == "atan2"
    assert ops.select(Traced("c"), 1, 2).name == "select"
    assert ops.check_pivot(Traced("p"), 1, None).name == "checked"


@pytest.mark.parametrize(
    "call", [lambda: ops.sin(Fraction(1, 2)), lambda: ops.atan2(Fraction(1), 2.0)]
)
def test_numbers_without_the_function_are_named(call):
    with pytest.raises(
        TypeError, match=r"of a Fraction is not defined; use a float, complex, mpmath"
    ):
        call()


def test_arctangent_of_every_number_type():
    assert ops.atan2(1.0, -1.0) == np.arctan2(1.0, -1.0)
    assert ops.atan2(mpmath.mpf(1), -1) == mpmath.atan2(1, -1)
    y, x = sympy.symbols("y x")
    assert ops.atan2(y, x) == sympy.atan2(y, x)
    angle = ops.atan2(np.complex128(1 + 2e-30j), -1.0)
    assert angle.real == np.arctan2(1, -1)
    assert angle.imag == pytest.approx(2e-30 * -1 / 2)  # d/dy = x / (x² + y²)


def test_comparison_of_complex_numbers_is_by_real_part():
    assert ops.less(1 + 5j, 2)
    assert not ops.less(2, np.complex64(1 + 5j))
    assert ops.less(Fraction(1, 3), Fraction(1, 2))


def test_selection():
    assert ops.select(True, 1, 2) == 1
    assert ops.select(np.bool_(False), 1, 2) == 2
    x = sympy.Symbol("x")
    chosen = ops.select(ops.less(x, 0), -x, x)
    assert (chosen.subs(x, -3), chosen.subs(x, 4)) == (3, 4)
    assert ops.select(sympy.true, 1, 2) == 1


def test_absolute_value_is_differentiable_by_complex_step():
    assert ops.absolute(-2 + 1e-30j) == 2 - 1e-30j
    assert ops.absolute(Fraction(-1, 2)) == Fraction(1, 2)
    assert ops.magnitude(-3 + 4j) == 5.0


def test_pivots_near_rounding_errors_are_rejected():
    assert ops.check_pivot(1e-10, 1.0, None) == 1e-10
    assert ops.check_pivot(Fraction(1, 3), 1, None) == Fraction(1, 3)
    x = sympy.Symbol("x")
    assert ops.check_pivot(x, 1, None) is x
    for bad in (1e-17, 0.0, -1.0):
        with pytest.raises(SingularError, match="joint 3"):
            ops.check_pivot(bad, 1.0, lambda: "joint 3")


def test_constants_as_exact_as_the_number_type_allows():
    assert ops.rational(1, 3, 2.0) == 1 / 3
    assert ops.rational(1, 3, Fraction(2)) == Fraction(1, 3)
    assert ops.rational(1, 3, sympy.Symbol("x")) == sympy.Rational(1, 3)
    with mpmath.workdps(50):
        assert ops.rational(1, 3, mpmath.mpf(2)) == mpmath.mpf(1) / 3
        assert ops.digits(mpmath.mpf(2)) == 50
    assert ops.digits(2.0) == 16
    assert ops.digits(sympy.Symbol("x")) == 0
    assert ops.is_symbolic(sympy.Symbol("x"))
    assert not ops.is_symbolic(2.0)
