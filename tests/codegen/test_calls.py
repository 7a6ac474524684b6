"""Programs that call other kernels: the same numbers as with a copy of their operations."""

import os
import subprocess
import sys

import numpy as np
import pytest
from support.graphs import check_graph

import kinetree as kt
from kinetree.codegen.inline import evaluate, trace_of
from kinetree.codegen.program import Argument, Traced, calls_of, trace
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import SingularError
from kinetree.expr import interpret
from kinetree.expr.calls import call, calls_to
from kinetree.expr.counting import cost
from kinetree.expr.repeat import repeat
from kinetree.expr.show import dot, listing
from kinetree.spatial.ops import check_pivot

INPUTS = [Argument("x", (2,)), Argument("y", (2,))]
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}


def kernel(text, name, inputs=INPUTS):
    """A kernel of a text on arrays, and the text that calls it where calls are wanted."""
    make = Traced(lambda: trace(text, inputs, name))
    made = Kernel(
        name, inputs, make.program.outputs, make, reference=lambda arrays: _plainly(text, arrays),
        validate=lambda arrays: None,
    )  # fmt: skip

    def calling(*arrays):
        graph = trace_of([np.asarray(a) for a in arrays])
        if graph is None or not calls_to():
            return text(*arrays)
        return call(graph, made, arrays)

    return made, calling


def _plainly(text, arrays):
    batch = np.shape(arrays[0])[:-1]
    each = [text(*(a[index] for a in arrays)) for index in np.ndindex(batch)]
    return tuple(np.array(r).reshape(batch + np.shape(r[0])) for r in zip(*each, strict=True))


def inner(x, y):
    pivot = check_pivot(2 + x[0] * x[0] + y[1], 1.0, lambda: "no pivot")
    return np.array([np.sin(x[0]) * y[0], x[1] * y[1] / pivot, 3.0, x[0]]), x @ y


INNER, called_inner = kernel(inner, "inner")


def middle(x, y):
    """Calls inside what is called."""
    a, b = called_inner(x, y)
    return called_inner(a[:2] + y, np.array([b, a[3]]))


MIDDLE, called_middle = kernel(middle, "middle")


def outer(x, y):
    a, b = called_middle(x, y)

    def body(state):
        u, w = called_inner(state, 0.5 * y)
        return u[:2] * 0.5 + w * 0.1

    return a * b + a[2], b, repeat(body, a[:2], 4)


OUTER, _ = kernel(outer, "outer")


def arrays(shape=(), dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, (*shape, 2)).astype(dtype) for _ in INPUTS]


def test_programs_for_the_processor_have_calls_and_all_others_have_none():
    assert calls_of(OUTER.program_with_calls) == [MIDDLE, INNER]
    assert calls_of(MIDDLE.program_with_calls) == [INNER]
    assert calls_of(OUTER.program) == calls_of(MIDDLE.program) == []
    assert INNER.program is INNER.program_with_calls
    for k in (OUTER, MIDDLE):
        check_graph(k.program_with_calls.graph, k.program_with_calls.roots)


def test_the_cost_of_what_is_called_counts():
    graph, roots = MIDDLE.program_with_calls.graph, MIDDLE.program_with_calls.roots
    assert cost(graph, roots) > 2 * INNER.cost
    assert cost(graph, roots) == pytest.approx(
        cost(MIDDLE.program.graph, MIDDLE.program.roots), rel=0.2
    )


def test_results_that_are_constant_are_known_to_the_caller():
    assert INNER.constants == {2: 3.0}
    assert MIDDLE.constants == {2: 3.0}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 9)])
def test_machine_code_computes_what_the_interpreter_does_with_calls_and_without(shape, dtype):
    given = arrays(shape, dtype)
    results = OUTER.call(*given)
    for program in (OUTER.program_with_calls, OUTER.program):
        for found, expected in zip(results, interpret.run(program, *given), strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=0, atol=64 * EPSILON[dtype])


def test_a_batch_has_the_bits_of_its_samples():
    given = arrays((11,))
    whole = OUTER.call(*given)
    for n in range(11):
        for one, many in zip(OUTER.call(*(a[n] for a in given)), whole, strict=True):
            np.testing.assert_array_equal(one, many[n])


@pytest.mark.parametrize("which", [MIDDLE, OUTER])
def test_rates_through_calls_are_those_of_the_copy(which):
    """Forward accumulation, also inside a loop, against a complex step of the text."""
    from kinetree.expr.diff import jacobian

    def derivative(x, y):
        graph = x[0].graph
        results = (middle if which is MIDDLE else outer)(x, y)
        flat = np.concatenate([np.ravel(r) for r in results])
        directions = [{s.i: 1} for s in (*x, *y)]
        return jacobian(graph, flat, directions, "forward")

    program = Traced(lambda: trace(derivative, INPUTS, "derivative")).program
    assert calls_of(program)
    x, y = arrays()
    (found,) = interpret.run(program, x, y)
    np.testing.assert_allclose(found, _complex_step(which, x, y), rtol=0, atol=1e-14)
    compiled = Kernel(
        "derivative", INPUTS, program.outputs, lambda: program, reference=None, validate=None
    )
    np.testing.assert_allclose(compiled.call(x, y), found, rtol=0, atol=1e-14)


def test_gradients_through_calls_are_those_of_the_copy():
    """Reverse accumulation against a complex step of the text."""
    from kinetree.expr.diff import jacobian

    def derivative(x, y):
        a, b = called_middle(x, y)
        flat = np.concatenate([np.ravel(a), np.ravel(b)])
        return jacobian(x[0].graph, flat, [{s.i: 1} for s in (*x, *y)], "reverse")

    program = Traced(lambda: trace(derivative, INPUTS, "derivative")).program
    assert [k.name for k in calls_of(program)] == ["gradients of middle"]
    x, y = arrays()
    (found,) = interpret.run(program, x, y)
    np.testing.assert_allclose(found, _complex_step(MIDDLE, x, y), rtol=0, atol=1e-14)
    compiled = Kernel(
        "derivative", INPUTS, program.outputs, lambda: program, reference=None, validate=None
    )
    np.testing.assert_allclose(compiled.call(x, y), found, rtol=0, atol=1e-14)


def _complex_step(which, x, y):
    columns = []
    for k in range(4):
        z = np.concatenate([x, y]).astype(complex)
        z[k] += 1e-30j
        results = evaluate(which.program, [z[:2], z[2:]])
        columns.append(np.concatenate([np.ravel(r) for r in results]).imag / 1e-30)
    return np.array(columns).T


def test_a_check_that_fails_in_what_is_called_is_found_and_named():
    x, y = arrays((5,))
    x[3], y[3] = 0, [1, -2.0]
    with pytest.raises(
        SingularError, match=r"no pivot.*\n?.*sample \(3,\)|sample \(3,\).*no pivot"
    ):
        MIDDLE.call(x, y)
    with pytest.raises(SingularError, match="no pivot"):
        MIDDLE.call(x[3], y[3])


def test_a_number_that_is_not_finite_is_found_behind_a_call():
    _, y = arrays()
    status = OUTER.variant("float64", False).status
    before = status.value
    OUTER.variant("float64", False).ufunc(np.array([np.nan, 1.0]), y)
    assert status.value > before


def test_listings_name_what_is_called():
    assert "inner" in listing(MIDDLE.program_with_calls)
    assert "inner" in dot(MIDDLE.program_with_calls)


_SCRIPT = """
import numpy as np
import kinetree.codegen.build as build
built, compile_ = [], build.object_code
build.object_code = lambda text, *level: (
    built.append(text.split("\\n")[0]) or compile_(text, *level)
)
from test_calls import OUTER, arrays
print([a.tolist() for a in OUTER.call(*arrays((3,)))])
print(built)
"""


def test_code_kept_on_disk_finds_what_it_calls_in_another_process(tmp_path):
    folder = os.path.dirname(__file__)
    path = os.pathsep.join([folder, *sys.path])
    environment = {**os.environ, "KINETREE_CACHE": str(tmp_path), "PYTHONPATH": path}

    def run():
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout.splitlines()

    first, second = run(), run()
    assert first[0] == second[0]
    assert any("outer" in name for name in eval(first[1]))
    assert second[1] == "[]"


# --- steps and kernels of users that call code for every robot -----------------------------------


@kt.kernel
def power(model, q, qd, tau):
    """Calls general code three times, once with a constant velocity."""
    qdd = kt.forward_dynamics(model, q, qd, tau)
    static = kt.inverse_dynamics(model, q, 0 * qd, qdd)
    return (static + kt.bias_force(model, q, qd)) @ qd


@kt.kernel
def final_cost(model, q, qd):
    return q @ q + qd @ qd


def _state(model, count):
    rng = np.random.default_rng(3)
    q = [
        model.integrate(model.neutral(), 0.3 * rng.standard_normal(model.nv)) for _ in range(count)
    ]
    return np.array(q), 0.1 * rng.standard_normal((count, model.nv))


@pytest.mark.parametrize("sample", ["scara", "satellite"])
def test_both_tiers_take_the_same_steps(sample):
    found = {}
    for tier in ("specialised", "general"):
        with kt.tier(tier):
            model = getattr(kt.samples, sample)()
            q, qd = _state(model, 5)
            many = kt.rollout(model, q, qd, steps=5, dt=1e-3)
            one = kt.rollout(model, q[:1], qd[:1], steps=5, dt=1e-3)
            np.testing.assert_array_equal(one.q[:, 0], many.q[:, 0])
            assert many.tier == tier
            gradient = kt.rollout_gradient(
                model, q[:1], qd[:1], steps=3, dt=1e-3, terminal=final_cost
            )
            tau = np.linspace(-1, 1, model.nv)
            found[tier] = many.q, many.qd, gradient.q0, gradient.qd0, power(model, q, qd, tau)
    for ours, other in zip(found["general"], found["specialised"], strict=True):
        np.testing.assert_allclose(ours, other, rtol=0, atol=1e-13 * np.max(np.abs(other)))


def test_robots_that_share_code_keep_their_own_numbers():
    """The text of a step is the same for both, and so is the object code; the robots are not."""
    with kt.tier("general"):
        light = kt.samples.chain(3)
        heavy = light.replace(gravity=[0, 0, -3.0])
        q, qd = _state(light, 2)
        first = kt.rollout(light, q, qd, steps=5, dt=1e-2).q
        second = kt.rollout(heavy, q, qd, steps=5, dt=1e-2).q
        again = kt.rollout(light, q, qd, steps=5, dt=1e-2).q
    np.testing.assert_array_equal(first, again)
    assert np.max(np.abs(first - second)) > 1e-4
    with kt.tier("specialised"):
        np.testing.assert_allclose(kt.rollout(heavy, q, qd, steps=5, dt=1e-2).q, second, atol=1e-13)
