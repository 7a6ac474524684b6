"""Against 50-digit arithmetic, on both sides of the switch between series and closed form."""

import mpmath
import numpy as np
import pytest
import sympy

from kinetree.spatial.ops import stumpff, stumpff_rate

EPS = np.finfo(float).eps


def reference(s, k):
    """The defining series, with enough terms and digits for s up to 100."""
    with mpmath.workdps(50):
        s = mpmath.mpf(s)
        return sum((-s) ** j / mpmath.factorial(2 * j + k) for j in range(60))


def bounds(s):
    """Sizes that the errors are proportional to; the argument θ itself is rounded."""
    if s <= 4:
        return [1 / float(mpmath.factorial(k)) for k in range(6)]
    theta = np.sqrt(s)
    return [theta, 1, 2 * theta / s, 1 / s, 1 / (2 * s), 1 / (6 * s)]


@pytest.mark.covers("Tutorial 5", "Spencer A.1.3", by=stumpff)
@pytest.mark.parametrize(
    "samples",
    [
        [0.0, 1e-300, 1e-100, 1e-30, 1e-16, 1e-12, 1e-8],
        np.logspace(-7, 0.6, 40),
        np.linspace(3.99, 4.01, 41),
        np.linspace(4, 100, 60),
    ],
    ids=["tiny", "series", "switch", "closed"],
)
def test_within_four_ulp_of_the_definition(samples):
    for s in samples:
        for k, (c, size) in enumerate(zip(stumpff(np.float64(s)), bounds(s), strict=True)):
            assert abs(c - reference(s, k)) <= 4 * EPS * size, (s, k)


@pytest.mark.covers("Tutorial 5", by=stumpff)
def test_closed_forms_lose_all_digits_where_the_series_does_not():
    """(1 - cos θ)/θ² at θ = 1e-8 is 0 instead of one half."""
    theta = 1e-8
    assert (1 - np.cos(theta)) / theta**2 == 0
    assert stumpff(theta**2)[2] == 0.5


def test_recurrence_holds_across_the_range():
    """c_k + s c_(k+2) = 1/k!."""
    for s in (0.0, 1e-9, 1.0, 3.999, 4.0, 30.0):
        c = stumpff(s)
        for k in range(4):
            expected = 1 / float(mpmath.factorial(k))
            assert abs(c[k] + s * c[k + 2] - expected) < 8 * EPS


def test_rates_by_complex_step():
    for s in (0.0, 1e-9, 1.0, 3.999, 4.001, 30.0):
        c = stumpff(s + 1e-30j)
        for k, rate in enumerate(stumpff_rate(stumpff(s)), start=1):
            assert abs(c[k].imag / 1e-30 - rate) <= 64 * EPS * (1 + abs(rate))


@pytest.mark.parametrize("dps", [30, 50, 120])
def test_precision_follows_the_number_type(dps):
    with mpmath.workdps(dps + 20):
        expected = {s: (mpmath.sin(mpmath.sqrt(s)) / mpmath.sqrt(s)) for s in (1, 3, 5)}
    with mpmath.workdps(dps):
        for s, value in expected.items():
            assert abs(stumpff(mpmath.mpf(s))[1] - value) < mpmath.mpf(10) ** (2 - dps)


def test_exact_as_a_formula():
    s = sympy.Symbol("s", positive=True)
    c = stumpff(s)
    assert sympy.simplify(c[1] - sympy.sin(sympy.sqrt(s)) / sympy.sqrt(s)) == 0
    assert stumpff(sympy.Integer(0)) == tuple(
        sympy.Rational(1, sympy.factorial(k)) for k in range(6)
    )
    t = sympy.Symbol("t", nonnegative=True)
    for k, c in enumerate(stumpff(t)):
        assert c.subs(t, 0) == 1 / sympy.factorial(k)
        assert c.diff(t).subs(t, 0) == -1 / sympy.factorial(k + 2)
