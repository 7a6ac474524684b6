"""Derivatives inside of kernels: copied into the trace that uses them."""

import numpy as np
from support.closeness import assert_close

import kinetree as kt
from kinetree.codegen.inline import alone
from kinetree.codegen.program import Argument, trace
from kinetree.expr import interpret


@kt.kernel
def inner(x: (2,), s: ()):
    return s * x * x, (x * x).sum() * s


derivative = kt.differentiate(inner, wrt=("x", "s"))


@kt.kernel
def outer(x: (2,), s: ()):
    (by_x, by_s), (total_by_x, total_by_s) = derivative(x, 2 * s)
    return by_x, by_s, total_by_x, total_by_s


def test_numbers_and_results_without_axes_take_part():
    x, s = np.array([1.5, -2.0]), 0.7
    by_x, by_s, total_by_x, total_by_s = outer(x, s)
    assert_close(by_x, np.diag(4 * s * x))
    assert_close(by_s, x * x)
    assert_close(total_by_x, 4 * s * x)
    assert_close(total_by_s, x @ x)


def test_a_loop_holds_no_state_where_each_sample_runs_alone():
    def powers(x, n):
        return kt.repeat(lambda s: s * x, x, n[()])

    program = trace(powers, [Argument("x", (2,)), Argument("n", ())])
    lone = alone(program)
    held, free = (
        [p.graph.nodes[i][0] for i in p.graph.reachable(p.wanted)] for p in (program, lone)
    )
    assert held.count("select") == 2
    assert not {"select", "<"} & set(free)
    for n in (0, 1, 5):
        (found,) = interpret.run(lone, np.array([2.0, 3.0]), np.array(float(n)))
        assert_close(found, np.array([2.0, 3.0]) ** (n + 1))
