"""Counts, costs and depths of small graphs."""

import numpy as np

from kinetree.codegen.program import Argument, cheapest, trace
from kinetree.expr.counting import WEIGHTS, OperationCount, cost, count_operations, depth
from kinetree.expr.node import Graph


def test_every_kind_is_counted_once_and_dead_code_not_at_all():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    root = x * y + (x * y - 2) / y.sqrt() + (x < y).select(x.sin(), abs(-x + 1).log().exp())
    _ = x.cos()
    count = count_operations(graph, [root.i])
    assert count == OperationCount(
        multiplications=2, additions=4, divisions=1, square_roots=1, trigonometric=1,
        sign_changes=1, comparisons=2, exponentials=2,
    )  # fmt: skip
    assert count.total == 8
    assert str(count) == "2m + 4a + 1d + 1r"
    assert str(OperationCount(0, 0)) == "0"
    assert str(OperationCount(24, 18)) == "24m + 18a"


def test_cost_weighs_slow_operations():
    graph = Graph()
    x = graph.input("x")
    assert cost(graph, [x.i]) == 0
    assert cost(graph, [(x * 2 + 1).i]) == 2
    assert cost(graph, [x.sin().i, x.cos().i]) == WEIGHTS["sin"] + WEIGHTS["cos"]
    assert cost(graph, [(1 / x).i]) == WEIGHTS["/"]


def test_depth_is_the_longest_chain():
    graph = Graph()
    x = graph.input("x")
    assert depth(graph, []) == 0
    assert depth(graph, [x.i]) == 0
    assert depth(graph, [(x + 1).i, ((x + 1) * (x + 1).sin() + 3).i]) == 4


def test_the_cheapest_program_is_kept():
    inputs = [Argument("x", (3,))]
    dear = trace(lambda x: np.sin(x).sum(), inputs, "dear")
    cheap = trace(lambda x: x.sum(), inputs, "cheap")
    assert cheapest([dear, cheap]) is cheap
