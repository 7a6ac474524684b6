"""Dual numbers carry exact derivatives through ordinary arithmetic."""

import operator

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms.dual import Dual, derivative_along
from kinetree.spatial.ops import cos, exp, log, sin, sqrt, tanh

FORMULAS = {
    "polynomial": lambda x: x[0] * x[1] - 3 * x[0] + 2 - x[1] * 4.0,
    "quotients": lambda x: 1 / x[0] + x[1] / 3 - x[0] / x[1],
    "negation": lambda x: -(x[0] - 1.0) + (5 - x[1]),
    "functions": lambda x: sin(x[0]) * cos(x[1]) + sqrt(x[0] * x[0] + x[1]),
    "exponentials": lambda x: exp(-x[0]) * log(x[1]) + tanh(x[0] * x[1]),
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_derivative_equals_complex_step(formula, rng):
    x, dx = rng.uniform(0.5, 2.0, 2), rng.standard_normal(2)
    expected = np.imag(formula(x + 1e-30j * dx)) / 1e-30
    actual = derivative_along(lambda x: np.array([formula(x), 7]), x, dx)
    assert_close(actual.astype(float), [expected, 0.0])


def test_values_may_be_of_any_kind_of_number():
    with mpmath.workdps(50):
        x = np.array([mpmath.mpf(2)])
        (rate,) = derivative_along(lambda x: np.array([sin(x[0])]), x, np.array([mpmath.mpf(1)]))
        assert abs(rate - mpmath.cos(2)) < mpmath.mpf(10) ** -48


def test_arrays_are_left_to_numpy():
    product = Dual(2.0, 1.0) * np.array([1.0, 3.0])
    assert [p.value for p in product] == [2.0, 6.0]
    assert [p.rate for p in product] == [1.0, 3.0]


def test_comparisons_are_those_of_values():
    small, same, large = Dual(1.0, 5.0), Dual(1.0, -2.0), Dual(2.0, 0.0)
    pairs = [(small, large), (small, same), (large, small), (large, 2.0), (small, 2.0)]
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        for a, b in pairs:
            assert bool(compare(a, b)) == compare(a.value, getattr(b, "value", b))
    assert (abs(Dual(-3.0, 4.0)).value, abs(Dual(-3.0, 4.0)).rate) == (3.0, -4.0)
    assert (abs(Dual(3.0, 4.0)).value, abs(Dual(3.0, 4.0)).rate) == (3.0, 4.0)
    assert (+small).rate == 5.0


@pytest.mark.parametrize("point", [(0.3, 1.2), (-0.7, 0.4), (0.9, -2.0), (-0.2, -0.1)])
def test_angles_of_points(point):
    (y, x), (dy, dx) = point, (1.7, -0.6)
    for found in (
        Dual.atan2(Dual(y, dy), Dual(x, dx)),
        np.arctan2(np.array([Dual(y, dy)]), np.array([Dual(x, dx)]))[0],
        Dual(y, dy).arctan2(Dual(x, dx)),
    ):
        assert_close(found.value, np.arctan2(y, x))
        assert_close(found.rate, (x * dy - y * dx) / (x * x + y * y))
