"""Second-order jets against symbolic derivatives."""

import mpmath
import numpy as np
import pytest
import sympy
from support.closeness import assert_close

from kinetree.joints.jet import Jet, jets
from kinetree.spatial import ops

FUNCTIONS = {
    "sin": lambda x: ops.sin(x),
    "cos": lambda x: ops.cos(3 * x - 1),
    "sqrt": lambda x: ops.sqrt(2 + x * x),
    "exp": lambda x: ops.exp(2 - x * x),
    "log": lambda x: ops.log(2 + x * x),
    "tanh": lambda x: ops.tanh(3 * x - 1),
    "reciprocal": lambda x: 2 / (3 + x),
    "quotient": lambda x: (x - 4) / (1 + x * x) / 3,
    "power": lambda x: x**3 - 5 * x**2 + 1 - x,
    "atan2": lambda x: ops.atan2(x * x + 1, 2 - x) + ops.atan2(2, x) + ops.atan2(x, 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_the_symbolic_ones(name):
    f, x = FUNCTIONS[name], sympy.Symbol("x")
    at, direction = sympy.Rational(7, 10), sympy.Rational(3, 2)
    exact = [f(x), sympy.diff(f(x), x) * direction, sympy.diff(f(x), x, 2) * direction**2]
    exact = [float(e.subs(x, at)) for e in exact]
    y = f(Jet(0.7, 1.5))
    assert_close([y.value, y.first, y.second], exact, ulps=20)


def test_selection_compares_values():
    assert ops.absolute(Jet(-2.0, 1.0)).first == -1.0
    assert Jet(1.0) < Jet(2.0)
    assert Jet(1.0) > 0.5
    assert not Jet(1.0) > Jet(1.0)


def test_a_number_alone_does_not_change():
    assert (Jet(2.0).first, Jet(2.0).second) == (0, 0)
    assert Jet(3.0, 1.0).second == 0


def test_entries_may_be_numbers_of_any_kind():
    with mpmath.workdps(40):
        y = ops.sin(Jet(mpmath.mpf(1) / 3, mpmath.mpf(1)))
        assert y.second == -mpmath.sin(mpmath.mpf(1) / 3)
    y = ops.sin(Jet(0.3 + 1e-30j, 1.0))
    assert_close(y.first.imag / 1e-30, -np.sin(0.3), ulps=4)


def test_arrays_of_jets_mix_with_arrays_of_numbers():
    x = jets([1.0, 2.0], [0.5, 0.25])
    A = np.array([[1.0, 2.0], [3.0, 4.0]])
    y = A @ x
    assert [j.value for j in y] == [5.0, 11.0]
    assert [j.first for j in y] == [1.0, 2.5]
    for z in (x[0] * A[0], x[0] + A[0], x[0] - A[0], x[0] / A[0], A[0] - x[0], A[0] / x[0]):
        assert z.shape == (2,)
    assert (A[0] / x[0])[1].first == -1.0
    assert repr(Jet(1, 2, 3)) == "Jet(1, 2, 3)"
