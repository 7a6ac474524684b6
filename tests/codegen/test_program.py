"""Programs: tracing, shapes, and the choice of the cheapest."""

import numpy as np
import pytest

from kinetree.codegen.program import Argument, Program, cheapest, trace
from kinetree.errors import TraceError
from kinetree.expr import interpret


def test_sizes_of_arguments():
    assert Argument("q", (3, 4)).size == 12
    assert Argument("x", ()).size == 1
    assert Argument("none", (0, 6)).size == 0


def test_a_trace_knows_inputs_outputs_and_roots():
    inputs = [Argument("a", (2, 3)), Argument("s", ())]
    program = trace(lambda a, s: (a.T * s, a[0] @ a[1]), inputs, "f")
    assert isinstance(program, Program)
    assert program.name == "f"
    assert program.inputs == tuple(inputs)
    assert [o.shape for o in program.outputs] == [(3, 2), ()]
    assert [o.name for o in program.outputs] == ["out0", "out1"]
    assert len(program.roots) == 7


def test_a_trace_takes_the_name_of_its_function():
    def scaled(x):
        return 2 * x

    assert trace(scaled, [Argument("x", (2,))]).name == "scaled"


def test_numbers_may_be_results(rng):
    program = trace(lambda x: np.array([1, x[0], 2.5]), [Argument("x", (1,))], "f")
    np.testing.assert_array_equal(interpret.run(program, np.array([7.0]))[0], [1, 7, 2.5])


def test_what_is_not_needed_is_not_in_the_program():
    def wasteful(x):
        np.sin(x[0]) * 17
        return x[0] + x[1]

    program = trace(wasteful, [Argument("x", (2,))], "f")
    used = program.graph.reachable(program.roots)
    assert "sin" not in {program.graph.nodes[i][0] for i in used}


def test_checks_are_kept():
    def checked(x):
        (x[0] < 1).require()
        return x

    program = trace(checked, [Argument("x", (1,))], "f")
    assert len(program.checks) == 1
    np.testing.assert_array_equal(interpret.holds(program, np.array([[0.0], [2.0]])), [True, False])


def test_the_cheapest_program_is_kept():
    inputs = [Argument("x", (2,))]
    dear = trace(lambda x: np.array([x[0] * x[0] * x[0] / x[1]]), inputs, "dear")
    cheap = trace(lambda x: np.array([x[0] + x[1] + 1]), inputs, "cheap")
    trigonometric = trace(lambda x: np.array([np.sin(x[0])]), inputs, "trigonometric")
    assert cheapest([dear, cheap]).name == "cheap"
    assert cheapest([trigonometric, cheap, dear]).name == "cheap"
    assert cheapest([dear]).name == "dear"


def test_values_of_another_trace_are_rejected():
    kept = []
    trace(lambda x: kept.append(x) or x, [Argument("x", (1,))], "first")
    with pytest.raises(TraceError):
        trace(lambda x: x + kept[0], [Argument("x", (1,))], "second")
