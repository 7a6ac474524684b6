"""Traced numbers: sharing, constants, conditions, and NumPy on arrays of them."""

import copy
from fractions import Fraction

import numpy as np
import pytest
from support.graphs import check_graph

from kinetree.errors import SingularError, TraceError
from kinetree.expr.interpret import evaluate
from kinetree.expr.node import Condition, Expr, Graph
from kinetree.spatial import Motion, ops


@pytest.fixture
def graph():
    return Graph()


def inputs(graph, *names):
    return [graph.input(name) for name in names]


def value(x, /, **numbers):
    """Value of an expression for some values of its inputs."""
    check_graph(x.graph)
    return float(evaluate(x.graph, [x.i], numbers)[0])


def test_equal_expressions_are_one_node(graph):
    x, y = inputs(graph, "x", "y")
    assert (x * y + 1).i == (1 + y * x).i
    assert (x * y + 1) is (1 + y * x)
    assert graph.input("x") is x
    assert graph.input("x", (1,)) is not x


def test_constants_of_every_kind_are_floats(graph):
    x = graph.input("x")
    for c in (3, 3.0, np.float64(3), np.float32(3), np.int32(3), Fraction(3)):
        assert (x * c).i == (c * x).i == (3 * x).i
        assert (x - c).i == (x - 3).i
        assert (c - x).i == (3 - x).i
        assert (x / c).i == (x / 3).i
        assert (c / x).i == (3 / x).i
    assert (x + True).i == (x + 1).i
    assert [node for node in graph.nodes if node[0] == "const"].count(("const", 3.0)) == 1


def test_what_folds_is_a_plain_float_again(graph):
    x = graph.input("x")
    for result in (x * 0, 0 * x, x - x, 0 / x):
        assert type(result) is float
        assert result == 0
    assert x / x == 1.0
    assert x + 0 is x
    assert 1 * x is x
    assert +x is x


def test_zeros_of_both_signs_are_one_constant(graph):
    x = graph.input("x")
    assert (x < 0.0).i == (x < -0.0).i


@pytest.mark.parametrize("n", [-8, -2, -1, 0, 1, 2, 3, 8, 0.5])
def test_powers(graph, n):
    x = graph.input("x")
    result = x**n
    assert (result if n == 0 else value(result, x=1.7)) == pytest.approx(1.7**n, rel=1e-14)
    assert np.power(np.array([x]), n)[0] == result


@pytest.mark.parametrize("n", [9, -9, 1.5, "2", 2j])
def test_other_powers_are_rejected(graph, n):
    with pytest.raises(TraceError, match=r"power .*integer powers from -8 to 8"):
        graph.input("x") ** n


NUMPY = [
    "sin", "cos", "tan", "sqrt", "arcsin", "arccos", "arctan", "abs", "absolute", "square",
    "exp", "log", "tanh", "floor", "negative", "positive", "conjugate", "reciprocal", "real",
]  # fmt: skip


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_functions_work_on_arrays_and_on_single_values(graph, name):
    x = graph.input("x")
    function = getattr(np, name)
    expected = pytest.approx(function(0.7), rel=1e-15)
    assert value(function(np.array([x]))[0], x=0.7) == expected
    assert value(np.asarray(function(x))[()], x=0.7) == expected


@pytest.mark.parametrize("name", ["arctan2", "hypot", "add", "multiply", "subtract", "divide"])
def test_numpy_functions_of_two_arguments_work(graph, name):
    x, y = inputs(graph, "x", "y")
    function = getattr(np, name)
    expected = pytest.approx(function(0.7, -0.3), rel=1e-15)
    result = function(np.array([x]), np.array([y]))[0]
    assert value(result, x=0.7, y=-0.3) == expected
    assert value(function(x, -0.3), x=0.7) == expected


def test_array_algebra(graph, rng):
    A, b = rng.standard_normal((3, 3)), rng.standard_normal(3)
    x = np.array([graph.input("x", (k,)) for k in range(3)])
    results = [
        (A @ x, A @ b), (np.dot(A, x), A @ b), (x @ A @ x, b @ A @ b),
        (np.cross(x, A[0]), np.cross(b, A[0])),
        (np.sum(x), b.sum()), (x.sum(), b.sum()), (np.outer(x, x), np.outer(b, b)),
        (np.einsum("ij,j->i", A, x), A @ b), (np.linalg.multi_dot([A, A, x]), A @ A @ b),
        (np.linalg.norm(x), np.linalg.norm(b)), (np.prod(x), b.prod()),
        (np.cumsum(x), np.cumsum(b)), (np.mean(x), b.mean()),
        (np.trace(np.diag(x)), b.sum()), (A * x, A * b), (2.0 * x, 2 * b),
        (x - b, 0 * b), (x / 2, b / 2),
    ]  # fmt: skip
    for traced, expected in results:
        roots = [graph.number(e) for e in np.ravel(np.asarray(traced))]
        found = evaluate(graph, roots, {"x": b})
        np.testing.assert_allclose(found, np.ravel(expected), rtol=0, atol=1e-14)


def test_numbers_of_numpy_on_the_left_are_taken_directly(graph):
    x = graph.input("x")
    assert isinstance(np.float64(2.5) * x, Expr)
    assert isinstance(np.array([2.5, 1.0]) * x, np.ndarray)
    assert isinstance(x * np.array([2.5, 1.0]), np.ndarray)
    assert isinstance(x * np.array(2.5), Expr)
    assert isinstance(x * Motion.zero(), Motion)


def test_real_and_imaginary_part(graph):
    x = graph.input("x")
    assert x.real is x
    assert x.imag == 0
    assert np.array([x]).conj()[0] is x


def test_conditions_combine(graph):
    x, y = inputs(graph, "x", "y")
    between = (x > 0) & (x < y)
    outside = ~between | (y == 3) | (y != y)
    for a, b in [(1.0, 2.0), (-1.0, 2.0), (3.0, 2.0), (5.0, 3.0)]:
        inside = 0 < a < b
        assert value(ops.select(between, x, -y), x=a, y=b) == (a if inside else -b)
        assert value(ops.select(outside, x, -y), x=a, y=b) == (a if not inside or b == 3 else -b)
    assert (np.array([x > 0]) & np.array([x < y]))[0] is between
    assert (~np.array([between]))[0] is ~between
    assert (True & between) is between
    assert (between & np.False_) is False
    assert (between | True) is True


@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])
def test_every_comparison(graph, a, b):
    x, y = inputs(graph, "x", "y")
    pairs = [
        (x < y, a < b), (x <= y, a <= b), (x > y, a > b), (x >= y, a >= b), (x == y, a == b),
        (x != y, a != b), (x < 2, a < 2), (x > 2, a > 2), (x <= 2, a <= 2), (x == 2, a == 2),
    ]  # fmt: skip
    for condition, expected in pairs:
        assert isinstance(condition, Condition)
        assert value(condition, x=a, y=b) == expected


def test_known_outcomes_are_plain_booleans(graph):
    x = graph.input("x")
    assert (x < x) is False
    assert (x == x) is True
    assert (x != x) is False
    assert x in [1.0, x][1:]
    assert ops.select(x <= x, 1, 2) == 1


def test_selection_of_conditions(graph):
    x, y = inputs(graph, "x", "y")
    chosen = (x < 0).select(y < 0, y > 0)
    for a, b in [(-1, -1), (-1, 1), (1, -1), (1, 1)]:
        assert value(chosen, x=float(a), y=float(b)) == (b < 0 if a < 0 else b > 0)
    assert value((x < 0).select(True, y < 0), x=1.0, y=-1.0)


@pytest.mark.parametrize("a", [-0.7, 0.0, 0.7])
def test_scalar_functions_of_the_library_take_traced_numbers(graph, a):
    x = graph.input("x")
    functions = [
        ops.sin, ops.cos, lambda x: ops.sqrt(x + 1), ops.absolute, lambda x: ops.atan2(x, 2.0),
        lambda x: ops.atan2(2.0, x), lambda x: ops.atan2(x, x + 2),
        lambda x: ops.rational(1, 3, x) * x,
        lambda x: ops.select(ops.less(x, 0.1), x, 2 * x + 1),
        lambda x: ops.check_pivot(x + 1, 1.0, None),
    ]  # fmt: skip
    for function in functions:
        assert value(function(x), x=a) == pytest.approx(float(function(a)), rel=4e-16, abs=1e-16)
    assert ops.digits(x) == 16
    assert not ops.is_symbolic(x)


def test_pivots_are_checked_when_the_code_runs(graph):
    x, scale = inputs(graph, "x", "scale")
    assert x.check_pivot(scale, lambda: "never") is x
    ((condition, _),) = graph.checks
    good = evaluate(graph, [condition], {"x": [1.0, 1e-20, -1.0], "scale": [1.0, 1.0, 1.0]})
    assert good[0].tolist() == [True, False, False]


def test_a_pivot_that_is_known_to_vanish_raises_while_tracing(graph):
    x = graph.input("x")
    with pytest.raises(SingularError, match="no inertia"):
        (64 * 2.0**-52 * x).check_pivot(x, lambda: "no inertia")


def test_copies_stay_in_the_graph(graph):
    x = np.array([graph.input("x")])
    assert copy.deepcopy(x)[0] is x[0]
    assert copy.copy(x[0]) is x[0]
    assert np.copy(x)[0] is x[0]


def test_expressions_can_be_keys(graph):
    x, y = inputs(graph, "x", "y")
    assert {x: 1, y: 2}[y] == 2


def test_text_names_the_operation(graph):
    x = graph.input("x")
    assert repr(x * 2) == "<traced * 2>"
    assert repr(x < 2) == "<traced condition < 3>"


def test_reachable_leaves_dead_code_behind(graph):
    x, y = inputs(graph, "x", "y")
    kept = x * 2 + 1
    dead = y.sin()
    order = graph.reachable([kept.i])
    assert order == sorted(order)
    assert dead.i not in order
    assert y.i not in order
