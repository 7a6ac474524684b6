"""Derivatives of graphs, against complex steps, 30 digits and each other."""

import math

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.codegen.program import Argument, trace
from kinetree.expr import interpret
from kinetree.expr.counting import cost
from kinetree.expr.diff import derivatives, estimates, jacobian
from kinetree.expr.node import Graph
from kinetree.expr.repeat import repeat
from kinetree.spatial.ops import atan2, cos, exp, less, log, select, sin, sqrt, stop_gradient, tanh

MODES = ("forward", "reverse")


def size(z):
    """``|z|``, continued to complex numbers."""
    return z * np.sign(z.real) if isinstance(z, complex) else abs(z)


FUNCTIONS = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - 3 * y,
    "product": lambda x, y: x * y * x,
    "square": lambda x, y: x * x,
    "quotient": lambda x, y: x / y,
    "reciprocal": lambda x, y: 2 / (x * y),
    "negative": lambda x, y: -(x * y),
    "sqrt": lambda x, y: sqrt(x * x + y),
    "sin": lambda x, y: sin(x * y),
    "cos": lambda x, y: cos(x - y * y),
    "exp": lambda x, y: exp(x * y),
    "log": lambda x, y: log(x * x + y),
    "tanh": lambda x, y: tanh(x - y * y),
    "atan2": lambda x, y: atan2(x * y, x + 2 * y),
    "atan2 of a constant": lambda x, y: atan2(0.5, x * y),
    "abs": lambda x, y: size(x * y) * x,
    "floor": lambda x, y: (x - math.floor(x.real if isinstance(x, complex) else x)) * y,
    "select": lambda x, y: select(less(x, y), x * y, sin(y)),
    "other branch": lambda x, y: select(less(y, x), x * y, sin(y) * x),
    "nested": lambda x, y: sin(x / y) * sqrt(y) / (1 + cos(x) * cos(x)) + atan2(y, x * x),
}
POINT = (-0.7, 1.3)


def traced(f):
    """A graph, its two inputs, and ``f`` of them."""
    g = Graph()
    x, y = g.input("x"), g.input("y")
    return g, (x, y), np.array([f(x, y)], dtype=object)


def value(g, array, x=POINT[0], y=POINT[1], functions=None):
    roots = [g.number(a) for a in array.ravel()]
    inputs = {"x": np.asarray(x), "y": np.asarray(y)}
    return np.array(interpret.evaluate(g, roots, inputs, functions)).reshape(array.shape)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_equal_the_complex_step(name, mode):
    g, inputs, f = traced(FUNCTIONS[name])
    J = jacobian(g, f, [{v.i: 1} for v in inputs], mode)
    x, y = POINT
    step = [FUNCTIONS[name](complex(x, 1e-30), y), FUNCTIONS[name](x, complex(y, 1e-30))]
    assert_close(value(g, J)[0].astype(float), np.imag(step) * 1e30, ulps=20)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "abs"])
def test_second_derivatives_to_thirty_digits(name, mode):
    g, inputs, f = traced(FUNCTIONS[name])
    directions = [{v.i: 1} for v in inputs]
    H = jacobian(g, jacobian(g, f, directions, mode), directions, mode)[0]
    with mpmath.workdps(50):
        x, y = map(mpmath.mpf, POINT)
        orders = ((2, 0), (1, 1), (1, 1), (0, 2))
        exact = [mpmath.diff(FUNCTIONS[name], (x, y), n) for n in orders]
        found = value(g, H, *(np.array(v, dtype=object) for v in (x, y)), functions=mpmath)
        error = max(abs(a - b) for a, b in zip(found.ravel(), exact, strict=True))
    assert error < 1e-30 * max(1, *(abs(float(e)) for e in exact))


def test_the_derivative_of_abs_jumps_at_zero():
    g, (x, _), f = traced(lambda x, y: abs(x))
    J = jacobian(g, f, [{x.i: 1}])
    assert [float(value(g, J, x=s)[0, 0]) for s in (-2.0, 0.0, 2.0)] == [-1, 1, 1]


@pytest.mark.parametrize("mode", MODES)
def test_derivatives_do_not_go_through_numbers_that_are_held(mode):
    g, (x, y), f = traced(lambda x, y: stop_gradient(x * y) * sin(y))
    J = jacobian(g, f, [{x.i: 1}, {y.i: 1}], mode)
    x, y = POINT
    assert_close(value(g, J)[0].astype(float), [0, x * y * np.cos(y)], ulps=4)
    assert value(g, f)[0] == stop_gradient(complex(x * y, 1)) * np.sin(y)


@pytest.mark.parametrize("mode", MODES)
def test_rates_may_be_expressions(mode):
    g, (x, y), f = traced(lambda x, y: x * x + sin(y))
    J = jacobian(g, f, [{x.i: -y, y.i: x}], mode)  # along a turn about the origin
    x, y = POINT
    assert_close(value(g, J)[0].astype(float), [-2 * x * y + np.cos(y) * x], ulps=4)


@pytest.mark.parametrize("mode", MODES)
def test_a_node_with_a_rate_is_independent(mode):
    g, (x, _), _ = traced(lambda x, y: x)
    s = sin(x)
    J = jacobian(g, np.array([s * s * x]), [{s.i: 1}], mode)
    x, _ = POINT
    assert_close(value(g, J)[0].astype(float), [2 * np.sin(x) * x], ulps=4)


@pytest.mark.parametrize("mode", MODES)
def test_what_does_not_move_has_plain_zeros(mode):
    g, (x, y), _ = traced(lambda x, y: x)
    y_ = np.array([sin(x), y * y, 3.0], dtype=object)
    J = jacobian(g, y_, [{x.i: 1}, {y.i: 1}], mode)
    plain = [[isinstance(entry, int) and entry == 0 for entry in row] for row in J]
    assert plain == [[False, True], [True, False], [True, True]]


def test_derivatives_leave_zeros_out():
    g, (x, y), _ = traced(lambda x, y: x)
    rows = derivatives(g, [(x * y).i, y.i, g.constant(2.0)], [{x.i: g.constant(1.0)}])
    assert rows == [{0: y.i}, {}, {}]


def test_the_cheaper_way_is_taken():
    g = Graph()
    x = np.array([g.input("x", (k,)) for k in range(12)])
    one, seeds = g.constant(1.0), [{v.i: g.constant(1.0)} for v in x]
    scalar = sin(x @ x) * sqrt(1 + x @ x)
    guess = estimates(g, [scalar.i], seeds)
    assert guess["reverse"] < guess["forward"] / 2
    many = [(sin(x[0]) * (k + 2)).i for k in range(12)]
    guess = estimates(g, many, [{x[0].i: one}])
    assert guess["forward"] < guess["reverse"]
    (gradient,) = derivatives(g, [scalar.i], seeds)
    cosine_and_quotient = 30
    limit = cost(g, [scalar.i]) + cosine_and_quotient + 2 * len(x)
    assert cost(g, gradient.values()) <= limit


def test_the_gradient_shares_values_with_the_function():
    g, (x, y), f = traced(lambda x, y: sin(x) * y)
    cosine = cos(x)
    J = jacobian(g, f, [{x.i: 1}, {y.i: 1}])
    assert J[0, 0] is cosine * y
    assert J[0, 1] is sin(x)


# --- loops ---------------------------------------------------------------------------------------


def rollout(body, times):
    return trace(lambda x: repeat(body, x, times), [Argument("x", (2,))])


def derivative_program(function):
    def of_x(x):
        y = function(x)
        return jacobian(x[0].graph, y, [{v.i: 1} for v in x])

    return trace(of_x, [Argument("x", (2,))])


def spin(x):
    return np.array([x[0] + 0.1 * sin(x[1]), x[1] - 0.1 * x[0] * x[1]])


def unrolled(x, times, body=spin):
    for _ in range(times):
        x = body(x)
    return x


def complex_step(function, x):
    steps = [np.imag(function(x + 1e-30j * e)) * 1e30 for e in np.eye(len(x))]
    return np.stack(steps, axis=-1)


def count(program, op):
    g = program.graph
    return sum(g.nodes[i][0] == op for i in g.reachable(program.roots))


def test_a_loop_carries_its_rates_along(rng):
    x = rng.standard_normal(2)
    p = derivative_program(lambda x: repeat(spin, x, 7))
    assert count(p, "repeat") == 1
    (J,) = interpret.run(p, x)
    assert_close(J, complex_step(lambda x: unrolled(x, 7), x), ulps=50)


def test_a_loop_in_a_loop(rng):
    def outer(x):
        return repeat(spin, x, 3) * np.array([1, x[0]])

    x = rng.standard_normal(2)
    p = derivative_program(lambda x: repeat(outer, x, 4))
    assert count(p, "repeat") == 2
    (J,) = interpret.run(p, x)
    exact = complex_step(
        lambda x: unrolled(x, 4, lambda x: unrolled(x, 3) * np.array([1, x[0]])), x
    )
    assert_close(J, exact, ulps=100)


def test_second_derivatives_through_a_loop(rng):
    def second(x):
        directions = [{v.i: 1} for v in x]
        g = x[0].graph
        return jacobian(g, jacobian(g, repeat(spin, x, 5), directions), directions)

    x = rng.standard_normal(2)
    p = trace(second, [Argument("x", (2,))])
    assert count(p, "repeat") == 1
    (H,) = interpret.run(p, x)
    first = derivative_program(lambda x: repeat(spin, x, 5))
    assert_close(H, complex_step(lambda x: interpret.run(first, x)[0], x), ulps=100)


def test_checks_inside_a_loop_hold_for_the_derivative():
    def body(x):
        (x[0] < 2.0).require()
        return x * 1.5

    p = derivative_program(lambda x: repeat(body, x, 4))
    assert len(p.checks) >= 1
