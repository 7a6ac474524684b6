"""Regrouped sums: the same values, fewer instructions on processors with fused multiply-add."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.closeness import assert_close
from support.graphs import check_graph

from kinetree.algorithms import aba, rnea
from kinetree.codegen.program import Argument, regroup, regroup_sums, trace
from kinetree.expr.counting import count_operations
from kinetree.expr.interpret import holds, run
from kinetree.expr.repeat import repeat
from kinetree.samples import chain


def instructions(program):
    """Arithmetic instructions left when every addition takes in a product that only it needs."""
    nodes, order = program.graph.nodes, program.graph.reachable(program.roots)
    uses = dict.fromkeys(order, 0)
    for i in order:
        if nodes[i][0] not in ("const", "input"):
            for a in nodes[i][1:]:
                uses[a] += 1
    merged = set()
    for i in order:
        op, *operands = nodes[i]
        candidates = operands if op == "+" else operands[1:] if op == "-" else ()
        merged.update([a for a in candidates if nodes[a][0] == "*" and uses[a] == 1][:1])
    return sum(nodes[i][0] in ("+", "-", "*", "/", "neg") for i in order) - len(merged)


def test_a_sum_of_products_takes_one_instruction_per_product():
    inputs = [Argument("x", (8,))]
    program = trace(lambda x: (x[0] * x[1] - x[2] * x[3]) + (x[4] * x[5] - x[6] * x[7]), inputs)
    assert instructions(program) == 5
    assert instructions(regroup_sums(program)) == 4


def test_a_sum_begins_with_what_is_not_a_product():
    inputs = [Argument("x", (7,))]
    program = trace(lambda x: (x[0] * x[1] + x[2] * x[3]) - (x[4] * x[5] - x[6]), inputs)
    assert instructions(program) == 5
    assert instructions(regroup_sums(program)) == 3


def test_a_sum_of_negative_terms_changes_sign_once():
    inputs = [Argument("x", (3,))]
    program = regroup_sums(trace(lambda x: -(x[0] * x[1]) - x[2], inputs))
    assert run(program, np.array([2.0, 3.0, 4.0]))[0] == -10
    assert count_operations(program.graph, program.roots).sign_changes == 1


def test_reciprocals_that_serve_once_become_divisions():
    inputs = [Argument("x", (3,))]
    once = regroup_sums(trace(lambda x: x[0] / x[1], inputs))
    assert str(count_operations(once.graph, once.roots)) == "1d"
    twice = regroup_sums(trace(lambda x: np.array([x[0] / x[1], x[2] / x[1]]), inputs))
    assert str(count_operations(twice.graph, twice.roots)) == "2m + 1d"


@pytest.mark.parametrize(
    ("algorithm", "saving"), [(rnea.inverse_dynamics, 0.18), (aba.forward_dynamics, 0.15)]
)
def test_recursive_algorithms_save_a_sixth(algorithm, saving, rng):
    model = chain(5)
    inputs = [Argument(name, (5,)) for name in ("q", "qd", "u")]
    program = trace(lambda *state: algorithm(model, *state), inputs)
    better = regroup_sums(program)
    check_graph(better.graph, better.roots)
    assert instructions(better) < (1 - saving) * instructions(program)
    state = rng.standard_normal((3, 6, 5))
    assert_close(run(better, *state)[0], run(program, *state)[0], ulps=2000)
    assert holds(better, *state).all()
    after = count_operations(better.graph, better.roots)
    assert after.total <= count_operations(program.graph, program.roots).total


def test_regrouping_twice_changes_nothing(rng):
    model = chain(3)
    inputs = [Argument(name, (3,)) for name in ("q", "qd", "u")]
    once = regroup_sums(trace(lambda *state: rnea.inverse_dynamics(model, *state), inputs))
    graph, roots = regroup(once.graph, once.roots)
    assert graph.nodes == once.graph.nodes
    assert tuple(roots) == once.roots


def test_loops_keep_their_meaning():
    def body(x):
        return np.array([x[0] + (x[0] * x[1] + 3) + x[1] * 2, x[1] - (x[0] * x[0] - 1)]) / 8

    program = trace(lambda x: repeat(body, x, 4), [Argument("x", (2,))])
    x = np.array([0.3, 0.7])
    better = regroup_sums(program)
    check_graph(better.graph, better.roots)
    assert_close(run(better, x)[0], repeat(body, x, 4))


terms = st.recursive(
    st.integers(0, 4).map(lambda k: f"x[{k}]"),
    lambda inner: st.builds(
        lambda op, a, b: f"({a} {op} {b})", st.sampled_from("+-*"), inner, inner
    ),
    max_leaves=16,
)


@given(
    st.lists(terms, min_size=1, max_size=3), st.lists(st.integers(-9, 9), min_size=5, max_size=5)
)
def test_whole_numbers_give_the_same_results(texts, numbers):
    program = trace(lambda x: np.array([eval(t, {"x": x}) for t in texts]), [Argument("x", (5,))])
    better = regroup_sums(program)
    check_graph(better.graph, better.roots)
    x = np.array(numbers, dtype=object)  # exact
    assert run(better, x)[0].tolist() == run(program, x)[0].tolist()
    assert instructions(better) <= instructions(program)
