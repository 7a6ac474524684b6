"""The well-formedness check finds what is wrong."""

import pytest
from support.graphs import check_graph

from kinetree.expr.node import Graph


def sample():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y", (1, 2))
    ((x < y) & ~(x == 2)).require()
    z = (x < y).select(x.sin() * 2 - y, x.arctan2(y) / x)
    return graph, z


def test_traced_graphs_are_well_formed():
    graph, z = sample()
    check_graph(graph, [z.i])


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (("erf", 0), "not an operation"),
        (("const", 7), "not a number"),
        (("const", float("nan")), "not a number"),
        (("input", 3, ()), "a name and an index"),
        (("sin", 0, 1), "needs 1 operands"),
        (("+", 0, 99), "operand 99 is not an earlier node"),
        (("sin", 2), "operand 2 must be a number"),
        (("and", 0, 2), "operand 0 must be a condition"),
        (("select", 0, 0, 1), "operand 0 must be a condition"),
    ],
)
def test_malformed_nodes_are_named(node, problem):
    graph, _ = sample()
    assert graph.nodes[2][0] == "<"
    graph.append(node)
    with pytest.raises(AssertionError, match=problem):
        check_graph(graph)


def test_duplicates_wrong_checks_and_wrong_roots_are_named():
    graph, z = sample()
    with pytest.raises(AssertionError, match="a condition is not a result"):
        check_graph(graph, [2])
    graph.checks.append((z.i, None))
    with pytest.raises(AssertionError, match="checked, but not a condition"):
        check_graph(graph)
    graph, _ = sample()
    graph.append(graph.nodes[3])
    with pytest.raises(AssertionError, match="two nodes are equal"):
        check_graph(graph)
