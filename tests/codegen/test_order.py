"""Orders of computation: all are orders, and the best keeps no more values waiting than others."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.codegen import order
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.watch import hidden_inputs
from kinetree.expr.node import LEAVES
from kinetree.model.define import kernel_of

ORDERS = [order.creation_order, order.by_results, order.backward, order.fewest_waiting]


@pytest.fixture(scope="module")
def program():
    return kernel_of(kt.samples.quadruped(), "forward_dynamics").program


@pytest.mark.parametrize("make", ORDERS)
def test_operands_come_first_and_nothing_is_lost(program, make):
    nodes, seen = program.graph.nodes, set()
    for i in make(program):
        if nodes[i][0] not in LEAVES:
            assert seen.issuperset(nodes[i][1:])
        assert i not in seen
        seen.add(i)
    assert seen == set(order.creation_order(program))


def test_the_best_order_keeps_the_fewest_waiting(program):
    waiting = [order.most_waiting(program, make(program)) for make in ORDERS]
    assert waiting[-1] == min(waiting)


def test_waiting_values_are_counted():
    program = trace(lambda x: np.array([(x[0] + 1) * (x[1] + 2)]), [Argument("x", (2,))])
    assert order.most_waiting(program, order.creation_order(program)) == 2


def test_divisors_and_choices_hide_but_angles_in_divisors_do_not():
    def function(x, q):
        select = kt.spatial.ops.select
        return np.array([x[0] / x[1], select(x[2] < 0, 1.0, 2.0), x[3] / (2 + np.cos(q[0]))])

    program = trace(function, [Argument("x", (4,)), Argument("q", (1,))])
    assert hidden_inputs(program) == {("x", (1,)), ("x", (2,))}


def test_exponentials_and_tangents_hide_but_logarithms_do_not():
    def function(x):
        angle = np.sin(x[3])  # of an infinite angle is NaN, which nothing hides
        return np.array([np.exp(-x[0]), np.tanh(2 * x[1]), np.log(x[2]), np.tanh(angle)])

    program = trace(function, [Argument("x", (4,))])
    assert hidden_inputs(program) == {("x", (0,)), ("x", (1,))}
