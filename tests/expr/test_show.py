"""Graphs as text."""

import numpy as np

from kinetree.codegen.program import Argument, trace
from kinetree.expr.show import dot, listing


def pendulum(q, k):
    torque = 9.81 * np.sin(q[0]) - q[1] * k[()]
    chosen = (torque < 0).select(-torque, torque)
    (chosen < 100).require()
    return np.array([torque, 2.0]), np.array([[q[1], chosen]])


PROGRAM = trace(pendulum, [Argument("q", (2,)), Argument("k", ())])


def test_listing():
    assert listing(PROGRAM) == (
        "pendulum(q, k):\n"
        "    t0 = sin(q[0])\n"
        "    t1 = 9.8100000000000005 * t0\n"
        "    t2 = q[1] * k\n"
        "    out0[0] = t1 - t2\n"
        "    t4 = out0[0] < 0\n"
        "    t5 = t2 - t1\n"
        "    out1[0, 1] = select(t4, t5, out0[0])\n"
        "    t7 = out1[0, 1] < 100\n"
        "    out0[1] = 2\n"
        "    out1[0, 0] = q[1]\n"
        "    require t7\n"
    )


def test_listing_of_one_value_for_two_results():
    program = trace(lambda x: np.array([x[0] + 1, x[0] + 1]), [Argument("x", (1,))], "twice")
    assert listing(program) == "twice(x):\n    out0[0] = 1 + x[0]\n    out0[1] = out0[0]\n"


def test_drawing():
    text = dot(PROGRAM)
    assert text.startswith('digraph "pendulum" {\n')
    assert text.endswith("}\n")
    assert text.count("[label=") == len(
        PROGRAM.graph.reachable([*PROGRAM.roots, *(c for c, _ in PROGRAM.checks)])
    )
    assert 'label="q[0]", style=filled' in text
    assert '-> "out1[0, 1]";' in text
