"""Normal and short forms of trigonometric polynomials."""

import pytest
import sympy as sp

from kinetree.symbolic.trigonometry import Arranger, series, terms_of

a, b, c = sp.symbols("a b c", real=True)
m, L, g, I, p, v, w = sp.symbols("m L g I p v w", real=True)
sin, cos = sp.sin, sp.cos


def short(expression):
    terms = terms_of(expression, [a, b, c])
    return sp.Add(*(t.number * t.monomial * t.trigonometric for t in terms))


def test_products_become_sums_of_angles():
    assert series(cos(a) * cos(b) - sin(a) * sin(b), [a, b]) == {1: {("cos", (1, 1)): 1}}
    assert series(sin(a) ** 2 + cos(a) ** 2, [a, b]) == {1: {("cos", (0, 0)): 1}}
    assert series(m * sin(2 * a - b) + 3 * L**2, [a, b]) == {
        m: {("sin", (2, -1)): 1},
        L**2: {("cos", (0, 0)): 3},
    }
    assert series(sin(-a), [a]) == {1: {("sin", (1,)): -1}}
    assert series(sp.S.Zero, [a]) in ({}, {1: {("cos", (0,)): 0}})


@pytest.mark.parametrize("expression", [sin(L * a), cos(a) / m, sp.sqrt(m), sin(a + 1), cos(a / 2)])
def test_what_is_not_a_polynomial_is_left_alone(expression):
    assert series(expression, [a, b]) is None
    assert Arranger([a, b], [m], [])(expression) == expression


@pytest.mark.parametrize(
    "expression",
    [
        cos(a) ** 2,
        m * sin(b) ** 2,
        sin(a) * cos(b),
        cos(a + b) * cos(b),
        sin(a) * sin(b),
        cos(a) * sin(b),
        m * cos(a + b),
        L * cos(a) ** 2 + g * sin(b) ** 2,
    ],
)
def test_products_come_back_where_they_are_shorter(expression):
    assert short(sp.expand(sp.expand_trig(expression))) == expression


@pytest.mark.parametrize("seed", range(5))
def test_value_is_unchanged(seed, rng):
    monomials = [cos(a), sin(a), cos(b), sin(b), cos(c), sin(c), m, L, p]
    expression = sum(
        int(rng.integers(-4, 5)) * sp.Mul(*rng.choice(monomials, size=5)) for _ in range(12)
    )
    values = {s: sp.Rational(int(rng.integers(-30, 30)), 10) for s in (a, b, c, m, L, p)}
    for arranged in (short(expression), Arranger([a, b, c], [m], [p])(expression)):
        assert abs((arranged - expression).subs(values).evalf(30)) < 1e-24


def test_rounding_leaves_no_terms():
    noise = sp.Rational(1, 10**16)
    assert short(3 * cos(a) + noise * sin(b)) == 3 * cos(a)


def test_inertias_geometry_and_velocities_in_their_brackets():
    arrange = Arranger([a, b], [m, I], [v, w], [g])
    assert arrange(2 * m * v * w * sin(a) + m * w**2 * sin(a)) == m * (2 * v * w + w**2) * sin(a)
    assert arrange(-m * L * v**2 - I * L * v**2) == -L * v**2 * (I + m)
    assert arrange(m * L**2 + 2 * m * L * p * cos(a) + I * L**2) == L**2 * (I + m) + (
        2 * L * m * p * cos(a)
    )
    assert arrange(m * g * L * cos(a) + m * g * p * cos(b)) == g * m * (L * cos(a) + p * cos(b))
