"""What a user reads when a function cannot be compiled: the line, the reason, what to write."""

import math
from pathlib import Path

import numpy as np
import pytest

import kinetree as kt
from kinetree.errors import KinetreeError, TraceError
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import kernel

ARM = kt.samples.double_pendulum()
HERE = str(Path(__file__))


def an_if(m, q):
    if q[0] > 0:  # here
        return q[0]
    return -q[0]


def an_equality(m, q):
    return q if q[0] == 0 else -q  # here


def a_maximum(m, q):
    return max(q[0], q[1])  # here


def a_numpy_maximum(m, q):
    return np.maximum(q, 0.0)  # here


def a_clip(m, q):
    return np.clip(q, -1.0, 1.0)  # here


def a_chain(m, q):
    return 1.0 if 0 < q[0] < 1 else 0.0  # here


def a_where(m, q):
    return np.where(q > 0, q, -q)  # here


def an_inverse(m, q):
    return np.linalg.inv(kt.mass_matrix(m, q))  # here


def a_math_function(m, q):
    return math.sin(q[0])  # here


def a_float(m, q):
    return float(q[0])  # here


def a_hyperbolic_sine(m, q):
    return np.sinh(q)  # here


def an_assignment(m, q):
    out = np.zeros(2)
    out[0] = q[0]  # here
    return out


def a_slice_assignment(m, q):
    out = np.zeros(4)
    out[:2] = q  # here
    return out


def a_while(m, q):
    x = q[0]
    while x > 1:  # here
        x = x / 2
    return x


def a_range(m, q):
    return sum(q[1] for _ in range(q[0]))  # here


def a_cube_root(m, q):
    return q[0] ** (1 / 3)  # here


def a_leak(m, q):
    seen = []

    def body(x):
        seen.append(x[0] * 2)
        return x + 1

    repeat(body, q, 10)
    return seen[0]


def a_changed_state(m, q):
    return repeat(lambda x: x[:1], q, 10)  # here


def a_condition(m, q):
    return q[0] > 0


CASES = {
    an_if: "select",
    an_equality: "select",
    a_maximum: "select",
    a_numpy_maximum: "select",
    a_clip: "select",
    a_chain: "select",
    a_where: "select",
    an_inverse: "write the formula out",
    a_math_function: "np.sin",
    a_float: "turned into a float",
    a_hyperbolic_sine: "hypot exp log tanh",
    an_assignment: "dtype=object",
    a_slice_assignment: "dtype=object",
    a_while: "kinetree.repeat(body, state, times)",
    a_range: "kinetree.repeat(body, state, times)",
    a_cube_root: "only integer powers",
    a_leak: "part of the state",
    a_changed_state: "same structure and shapes",
    a_condition: "kinetree.select(condition, 1, 0)",
}


def _line(function):
    """Number of the line marked ``# here``, or None."""
    start = function.__code__.co_firstlineno
    lines = Path(HERE).read_text(encoding="utf-8").splitlines()[start - 1 :]
    for k, line in enumerate(lines):
        if k and line.startswith("def "):
            return None
        if "# here" in line:
            return start + k
    return None


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_what_cannot_be_traced_is_rejected_with_advice(function):
    with pytest.raises(TraceError) as caught:
        kernel(function)(ARM, np.array([0.3, 0.4]))
    message = str(caught.value)
    assert f"kernel {function.__name__!r} cannot be compiled" in message
    assert CASES[function] in message
    line = _line(function)
    if line is not None:
        assert f"{HERE}:{line}, in {function.__name__}" in message
        assert "# here" in message
    assert caught.value.__cause__ is not None


def test_the_error_is_a_type_error_and_a_kinetree_error():
    with pytest.raises(TypeError):
        kernel(an_if)(ARM, np.zeros(2))
    assert issubclass(TraceError, KinetreeError)


def test_the_line_is_that_of_the_users_code_not_of_a_library():
    def helper(x):
        return np.linalg.det(x)

    @kernel
    def calls_a_helper(m, q):
        return helper(kt.mass_matrix(m, q))

    with pytest.raises(TraceError, match=r"in helper\n    return np\.linalg\.det"):
        calls_a_helper(ARM, np.zeros(2))


def test_what_computes_in_python_is_rejected_by_name():
    @kernel
    def accelerate(m, q, qd, tau):
        return kt.forward_dynamics(m, q, qd, tau, method="implicit")

    four_bar = kt.samples.four_bar()
    with pytest.raises(TraceError, match="solves a general linear system on the CPU, in Python"):
        accelerate(four_bar, four_bar.neutral(), np.zeros(four_bar.nv), np.zeros(four_bar.nv))


def test_the_function_still_works_on_plain_numbers():
    assert kernel(an_if).reference(ARM, np.array([-2.0, 0.0])) == 2.0
