"""Every rule does what the table says, to expressions and to rounding."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs import check_graph

from kinetree.expr import simplify
from kinetree.expr.interpret import evaluate
from kinetree.expr.node import Condition, Expr, Graph
from kinetree.expr.simplify import EXACT, NEUTRAL, RULES
from kinetree.spatial import ops

IDS = [f"{before} = {after}" for before, after, _ in RULES]
values = st.floats(-1e3, 1e3, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-3)
FUNCTIONS = {"sin": ops.sin, "cos": ops.cos, "select": ops.select, "abs": abs, "tanh": ops.tanh}


def traced(text, c, d):
    """The expression in a graph, its variables being inputs."""
    graph = Graph()
    names = {name: graph.input(name) for name in "xyz"}
    return graph, eval(text, {**FUNCTIONS, **names, "c": c, "d": d})


def of_floats(text, numbers):
    """The expression as written, in float64."""
    numbers = {name: np.float64(x) for name, x in numbers.items()}
    return eval(text, {**FUNCTIONS, **numbers, "select": lambda c, a, b: a if c else b})


@pytest.mark.covers("RBDA 10.4", by=(simplify, Expr))
@pytest.mark.parametrize(("before", "after", "accuracy"), RULES, ids=IDS)
def test_both_sides_become_the_same_node(before, after, accuracy):
    graph = Graph()
    names = {name: graph.input(name) for name in "xyz"} | {"c": 2.5, "d": -0.75, **FUNCTIONS}
    left, right = eval(before, names), eval(after, names)
    check_graph(graph)
    if isinstance(left, (Expr, Condition)):
        assert left.i == right.i
    else:
        assert left == right
        assert type(left) is type(right)
    assert accuracy in (EXACT, NEUTRAL)


@pytest.mark.parametrize(("before", "after", "accuracy"), RULES, ids=IDS)
@settings(max_examples=30)
@given(numbers=st.fixed_dictionaries(dict.fromkeys("xyzcd", values)))
def test_value_is_the_one_of_the_source(before, after, accuracy, numbers):
    if "/ x" in before or "/ -y" in before or "/ y" in before or "/ c" in before:
        numbers = {name: x or 1.5 for name, x in numbers.items()}
    graph, result = traced(before, numbers["c"], numbers["d"])
    inputs = {name: numbers[name] for name in "xyz"}
    if isinstance(result, (Expr, Condition)):
        (result,) = evaluate(graph, [result.i], inputs)
    expected = of_floats(before, numbers)
    if accuracy == EXACT:
        assert result == expected  # 0.0 == -0.0: signs of zero are not kept
    else:
        # A few roundings of the terms that were added up, which may cancel.
        x, c, d = abs(numbers["x"]), abs(numbers["c"]), abs(numbers["d"])
        terms = 0 if "/" in before else 1 if "sin" in before else (1 + c + d) * x + c + d
        assert abs(result - expected) <= 4 * np.finfo(float).eps * max(terms, abs(expected))


CONSTANTS = (0.0, 1.0, -1.0, 2.5, -0.75)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "atan2"])
def test_constants_fold(op):
    meaning = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b, "atan2": math.atan2,
    }[op]  # fmt: skip
    for a, b in itertools.product(CONSTANTS, repeat=2):
        if op == "div" and b == 0:
            continue
        graph = Graph()
        i = getattr(simplify, op)(graph, graph.constant(a), graph.constant(b))
        assert graph.nodes[i] == ("const", meaning(a, b))


def test_functions_comparisons_and_choices_of_constants_fold():
    graph = Graph()
    two, three = graph.constant(2), graph.constant(3)
    values = {
        simplify.unary(graph, "sqrt", two): math.sqrt(2),
        simplify.unary(graph, "sin", two): math.sin(2),
        simplify.unary(graph, "cos", two): math.cos(2),
        simplify.unary(graph, "exp", two): math.exp(2),
        simplify.unary(graph, "exp", graph.constant(1e3)): math.inf,
        simplify.unary(graph, "log", two): math.log(2),
        simplify.unary(graph, "log", graph.constant(0)): -math.inf,
        simplify.unary(graph, "tanh", two): math.tanh(2),
        simplify.unary(graph, "abs", graph.constant(-7)): 7,
        simplify.neg(graph, two): -2,
        simplify.compare(graph, "<", two, three): 1,
        simplify.compare(graph, "<=", three, two): 0,
        simplify.compare(graph, "==", two, two): 1,
        simplify.negate(graph, graph.constant(1)): 0,
        simplify.select(graph, graph.constant(0), two, three): 3,
        simplify.select(graph, graph.constant(1), two, three): 2,
    }
    for i, value in values.items():
        assert graph.nodes[i] == ("const", value)


@pytest.mark.parametrize(("op", "name"), [("sqrt", "square root"), ("log", "logarithm")])
def test_square_root_and_logarithm_of_a_negative_constant_are_rejected(op, name):
    graph = Graph()
    with pytest.raises(TypeError, match=rf"the {name} of the negative constant -2\.0 was traced"):
        simplify.unary(graph, op, graph.constant(-2))


def test_division_by_the_constant_zero_is_rejected():
    x = Graph().input("x")
    with pytest.raises(ZeroDivisionError, match="divided by the constant zero"):
        x / 0


@pytest.mark.parametrize("c", [1e-310, -1e-300, 1e300, math.inf])
def test_constants_without_a_good_reciprocal_divide(c):
    graph = Graph()
    y = graph.input("x") / c
    assert evaluate(graph, [y.i], {"x": 3e-5})[0] == 3e-5 / c


def test_quotients_share_the_reciprocal_of_their_denominator():
    graph = Graph()
    x, y, z = (graph.input(name) for name in "xyz")
    _ = x / z, y / z, 3 / z, x / -z
    assert sum(node[0] == "/" for node in graph.nodes) == 1


def test_order_of_operands_does_not_matter():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    assert (x + y).i == (y + x).i
    assert (x * y).i == (y * x).i
    assert (x == y).i == (y == x).i
    assert (2 + x).i == (x + 2).i
    assert ((x < y) & (y < 1)).i == ((y < 1) & (x < y)).i


# --- random expressions -------------------------------------------------------------------------

leaves = st.sampled_from(["x", "y", "z", "0.0", "1.0", "-1.0", "2.5", "0.5"])
binary = st.sampled_from(["({} + {})", "({} - {})", "({} * {})", "select(x < y, {}, {})"])
unary = st.sampled_from(["(-{})", "sin({})", "cos({})", "abs({})"])


def grow(inner):
    return st.one_of(
        st.builds(lambda f, a, b: f.format(a, b), binary, inner, inner),
        st.builds(lambda f, a: f.format(a), unary, inner),
    )


texts = st.recursive(leaves, grow, max_leaves=14)


@settings(max_examples=300)
@given(texts, st.tuples(values, values, values))
def test_simplified_expression_has_the_value_of_the_source(text, numbers):
    """In arithmetic of 40 digits, where only the folding of constants rounds."""
    with mpmath.workdps(40):
        numbers = {name: mpmath.mpf(x) / 64 for name, x in zip("xyz", numbers, strict=True)}
        exact = {"sin": mpmath.sin, "cos": mpmath.cos, "select": lambda c, a, b: a if c else b}
        expected = eval(text, {**exact, **numbers})
        graph, result = traced(text, 0, 0)
        check_graph(graph)
        if isinstance(result, Expr):
            inputs = {name: np.array(x, dtype=object) for name, x in numbers.items()}
            (result,) = evaluate(graph, [result.i], inputs, functions=mpmath)
            result = result[()]
        assert abs(result - expected) <= 1e-14 * size_of(text, numbers)


def size_of(text, numbers):
    """How large the terms of an expression are before they cancel."""
    sizes = {"sin": lambda x: 1 + x, "cos": lambda x: 1 + x, "select": lambda c, a, b: a + b}
    return 1 + eval(text.replace("-", "+"), sizes | {n: abs(x) for n, x in numbers.items()})
