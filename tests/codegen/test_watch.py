"""What is watched for infinities, and that none escapes."""

import numpy as np
import pytest
from support.backends import llvm

from kinetree.codegen.program import Argument, trace
from kinetree.codegen.watch import WatchedValues, what_to_watch


def program(function, size=3):
    return trace(function, [Argument("x", (size,))])


def test_few_results_stand_for_many_inputs():
    watch = what_to_watch(program(lambda x: np.array([x[0] * x[1] + x[2]])), "float64")
    assert watch == WatchedValues(inputs=False)


def test_few_inputs_stand_for_many_results():
    watch = what_to_watch(program(lambda x: np.outer(x, x)), "float64")
    assert watch == WatchedValues(results=False, bound=1e75)
    assert what_to_watch(program(lambda x: np.outer(x, x)), "float32").bound == 1e15


@pytest.mark.parametrize(
    "hides",
    [lambda x: 1 / x, np.sqrt, lambda x: (x < 1).select(x, 2), np.exp, np.log, np.tanh],
)
def test_divisions_roots_exponentials_and_choices_need_both(hides):
    watch = what_to_watch(program(lambda x: np.outer(x, [hides(a) for a in x])), "float64")
    assert watch == WatchedValues()


def test_high_powers_hold_inputs_to_less():
    many = what_to_watch(program(lambda x: np.outer(x, x**8 * x**7)), "float64")
    assert many == WatchedValues(results=False, bound=1e15)
    assert (
        what_to_watch(program(lambda x: np.outer(x, ((x**8) ** 8) ** 2)), "float64")
        == WatchedValues()
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.outer(x, x),
        lambda x: np.array([x @ x]),
        lambda x: np.array([np.exp(x[0]), np.tanh(x[1]), np.log(x[2])]),
    ],
)
def test_whatever_is_watched_nothing_escapes(function, bad, dtype):
    run = llvm(2)(program(function), dtype)
    x = np.ones((5, 3), dtype)
    run(x)
    assert run.status.value == 0
    for place in np.ndindex(x.shape):
        wrong, before = x.copy(), run.status.value
        wrong[place] = bad
        run(wrong)
        assert run.status.value > before


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_beyond_the_range_of_floats_are_counted(dtype):
    run = llvm(2)(program(lambda x: np.outer(x, x)), dtype)
    run(np.full((2, 3), 1e14 if dtype == "float32" else 1e70, dtype))
    assert run.status.value == 0
    run(np.full((2, 3), 0.9 * np.finfo(dtype).max, dtype))
    assert run.status.value > 0


@pytest.mark.parametrize(("function", "bad"), [(np.exp, 1e4), (np.log, 0.0), (np.log, -1.0)])
def test_functions_that_leave_the_range_of_floats_are_counted(function, bad):
    run = llvm(2)(program(function), "float64")
    run(np.full(3, 0.5))
    assert run.status.value == 0
    run(np.array([0.5, bad, 0.5]))
    assert run.status.value > 0
