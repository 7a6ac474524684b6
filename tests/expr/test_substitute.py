"""Copies of expressions with other nodes in them."""

import numpy as np
from support.closeness import assert_close

from kinetree.codegen.program import Argument, trace
from kinetree.expr import interpret
from kinetree.expr.forward import substitute
from kinetree.expr.node import Graph
from kinetree.expr.repeat import repeat
from kinetree.spatial.ops import atan2, cos, exp, less, log, select, sin, sqrt, tanh


def everything(x, y):
    """Uses every operation at least once."""
    condition = (x < y) & ~(y <= 0.1) | (x == 3.0)
    chosen = select(condition, abs(x) / y, -x)
    exponentials = log(exp(x) + 1) * tanh(y)
    angle = atan2(sin(x), cos(y))
    return chosen + angle - sqrt(y * y + 1) * select(less(x, y), x, y) + exponentials


def test_numbers_in_the_place_of_inputs_fold_to_constants():
    g = Graph()
    f = everything(g.input("x"), g.input("y"))
    values = {g.input("x").i: g.constant(-0.7), g.input("y").i: g.constant(1.3)}
    (i,) = substitute(g, [f.i], values)
    expected = interpret.evaluate(g, [f.i], {"x": np.float64(-0.7), "y": np.float64(1.3)})[0]
    assert g.nodes[i][0] == "const"
    assert_close(g.nodes[i][1], expected, ulps=8)


def test_a_copy_in_another_graph_has_the_same_values(rng):
    g, other = Graph(), Graph()
    f = everything(g.input("x"), g.input("y"))
    y = sin(other.input("z"))
    (i,) = substitute(g, [f.i], {g.input("y").i: y.i}, other)
    x, z = rng.standard_normal(2)
    found = interpret.evaluate(other, [i], {"x": x, "z": z})[0]
    assert_close(found, interpret.evaluate(g, [f.i], {"x": x, "y": np.sin(z)})[0], ulps=4)


def test_nothing_replaced_copies_nothing():
    g = Graph()
    f = everything(g.input("x"), g.input("y"))
    before = len(g.nodes)
    assert substitute(g, [f.i], {}) == [f.i]
    assert len(g.nodes) == before


def test_a_copied_loop_is_another_loop(rng):
    def both(x):
        once = repeat(lambda s: np.array([s[1], s[0] * x[0] + 1]), x, 6)
        g = x[0].graph
        (i,) = substitute(g, [once[0].i], {x[0].i: (2 * x[0]).i})
        return np.array([once[0], g.expr(i)])

    p = trace(both, [Argument("x", (2,))])
    x = rng.standard_normal(2)
    (found,) = interpret.run(p, x)

    def unrolled(a, b):
        s = np.array([a, b])
        for _ in range(6):
            s = np.array([s[1], s[0] * a + 1])
        return s[0]

    assert_close(found, [unrolled(*x), unrolled(2 * x[0], x[1])], ulps=20)
