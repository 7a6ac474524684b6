"""What cannot be traced says what to write instead."""

import math

import numpy as np
import pytest

from kinetree.codegen.program import Argument, trace
from kinetree.errors import TraceError
from kinetree.expr.node import Graph
from kinetree.expr.refusals import explain_trace_errors
from kinetree.spatial import ops


@pytest.fixture
def x():
    return Graph().input("x")


def another(x):
    return x.graph.input("y")


def _assign(x):
    np.zeros(3)[0] = x


DECISIONS = {
    "if": lambda x: 1 if x else 2,
    "if comparison": lambda x: 1 if x < 0 else 2,
    "if equal": lambda x: 1 if x == 0 else 2,
    "and": lambda x: x > 0 and x < 1,
    "not": lambda x: not x,
    "chain": lambda x: 0 < x < 1,
    "max": lambda x: max(x, 0),
    "min": lambda x: min(0, x),
    "in": lambda x: x in [0.0, 1.0],
    "np.maximum": lambda x: np.maximum(np.array([x]), 0.0),
    "np.minimum": lambda x: np.minimum(x, 0.0),
    "np.where": lambda x: np.where(np.array([x]) > 0, 1.0, 2.0),
    "np.clip": lambda x: np.clip(np.array([x]), 0.0, 1.0),
    "np.sign": lambda x: np.sign(np.array([x])),
    "np.sort": lambda x: np.sort(np.array([x, another(x)])),
    "np.logical_and": lambda x: np.logical_and(np.array([x > 0]), np.array([x < 1])),
    "np.any": lambda x: bool(np.any(np.array([x > 0]))),
    "np.argmax": lambda x: np.argmax(np.array([x, another(x)])),
    "np.array_equal": lambda x: np.array_equal(np.array([x]), np.array([another(x)])),
    "sum of if": lambda x: sum(1 for k in [x] if k),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_decisions_are_rejected_and_select_is_named(x, name):
    with pytest.raises(TraceError, match=r"kinetree\.select\(c, a, b\).*& \| ~"):
        DECISIONS[name](x)


NUMBERS = {
    "float": float,
    "int": int,
    "complex": complex,
    "round": round,
    "math.sin": math.sin,
    "range": range,
    "list index": lambda x: [1, 2][x],
    "float array": _assign,
    "astype": lambda x: np.array([x]).astype(float),
    "dtype=float": lambda x: np.array([x], dtype=float),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_machine_numbers_are_rejected_and_numpy_is_named(x, name):
    with pytest.raises(
        TraceError, match=r"turned into a float .*use np\.sin.*np\.array\(\[\.\.\.\]\)"
    ):
        NUMBERS[name](x)


FUNCTIONS = [
    "exp2", "expm1", "log2", "log10", "log1p", "sinh", "cosh", "arcsinh", "arccosh", "arctanh",
    "rint", "cbrt",
]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_are_missing_name_those_that_exist(x, name):
    with pytest.raises(
        TraceError, match=r"of a traced value is not available; there are .*arctan2 .*exp"
    ):
        getattr(np, name)(np.array([x]))


OPERATORS = {
    "%": (lambda x: x % 2, "remainder %"),
    "reflected %": (lambda x: 2 % x, "remainder %"),
    "//": (lambda x: x // 2, "whole quotient //"),
    "divmod": (lambda x: divmod(x, 2), "divmod"),
    "2**x": (lambda x: 2**x, "traced exponent"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_that_are_missing_name_those_that_exist(x, name):
    operation, text = OPERATORS[name]
    with pytest.raises(TraceError, match=f"{text} of a traced value is not available|{text}"):
        operation(x)


def test_conditions_are_not_numbers(x):
    condition = x < 0
    uses = [
        lambda: condition * 2, lambda: 2 - condition, lambda: -condition, lambda: condition < 1,
        lambda: abs(condition), lambda: np.sin(np.array([condition])), lambda: condition**2,
        lambda: x + condition, lambda: x * condition, lambda: condition / x, lambda: x < condition,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(
            TraceError, match=r"used as a number: write kinetree\.select\(condition, 1, 0\)"
        ):
            use()


def test_numbers_are_not_conditions(x):
    uses = [
        lambda: x & True, lambda: (x < 0) & x, lambda: x | x, lambda: ~x,
        lambda: np.array([x]) & np.array([x]), lambda: ~np.array([x]),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(TraceError, match=r"comparisons need brackets|combine conditions"):
            use()
    with pytest.raises(TraceError, match=r"compare it, as in kinetree\.select\(x < 0, a, b\)"):
        ops.select(x, 1, 2)
    with pytest.raises(TypeError):
        (x < 0) & 3


def test_traces_do_not_mix(x):
    other = Graph().input("x")
    for use in (
        lambda: x + other,
        lambda: x < other,
        lambda: (x < 0) & (other < 0),
        lambda: x / other,
    ):
        with pytest.raises(TraceError, match=r"two different traces .*kept"):
            use()


def test_numbers_that_are_not_real_are_rejected(x):
    with pytest.raises(TraceError, match=r"not a number \(NaN\)"):
        x * math.nan
    with pytest.raises(TraceError, match="complex number 1j"):
        x + 1j
    with pytest.raises(TypeError):
        x + "1"
    with pytest.raises(TraceError, match="real numbers, got a str: 'a'"):
        x.graph.number("a")


def test_results_must_be_numbers():
    with pytest.raises(TraceError, match=r"used as a number: write kinetree\.select"):
        trace(lambda x: x[0] < 0, [Argument("x", (1,))])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sin(np.array([x[0], 1.0])),
        lambda x: np.linalg.solve(np.diag(x), x),
        lambda x: np.linalg.inv(np.diag(x)),
        lambda x: np.isfinite(x),
        lambda x: np.arctan2(1.0, x),
        lambda x: np.float_power(x, 2),
    ],
)
def test_errors_of_numpy_are_explained(function):
    with pytest.raises(
        TraceError, match=r"NumPy rejected .*arctan2.*np\.linalg does not work"
    ) as info:
        trace(function, [Argument("x", (2,))])
    assert isinstance(info.value.__cause__, (TypeError, AttributeError))


def test_other_errors_pass_through_untouched():
    def wrong_call():
        with explain_trace_errors():
            math.sin()

    def wrong_value():
        with explain_trace_errors():
            raise ValueError("theirs")

    with pytest.raises(TypeError, match="argument") as info:
        wrong_call()
    assert not isinstance(info.value, TraceError)
    with pytest.raises(ValueError, match="theirs"):
        wrong_value()
