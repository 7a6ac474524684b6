"""Loops inside compiled code: meaning, nesting, run-time counts, checks, derivatives."""

import numpy as np
import pytest
from support.closeness import EPS, assert_close

import kinetree as kt
from kinetree.codegen.program import Argument, trace
from kinetree.codegen.render import numpy as listing
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.codegen.schedule import LoopStep, schedule
from kinetree.errors import SingularError, TraceError
from kinetree.expr import interpret, show
from kinetree.expr.repeat import repeat
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.prepare import bind, prepare
from kinetree.spatial import ops


def compiled(function, *shapes):
    """The program of a function of arrays, and the program as a compiled function."""
    inputs = [Argument(f"x{k}", shape) for k, shape in enumerate(shapes)]
    program = trace(lambda *a: function(*(x if x.shape else x[()] for x in a)), inputs, "loop")

    def reference(arrays):
        return function(*arrays)

    k = Kernel(
        "loop", inputs, program.outputs, lambda: program,
        reference=reference, validate=lambda arrays: None,
    )  # fmt: skip
    return program, k.call


def root(x):
    """Newton's iteration for the square root."""
    return repeat(lambda y: 0.5 * (y + x / y), x, 7)


def fibonacci(a, b):
    """Both values change at once."""
    return repeat(lambda s: (s[1], s[0] + s[1]), (a, b), 10)


def powers(x, n):
    """The count is an input."""
    return repeat(lambda y: y * x, 1.0, n)


def nested(x, n):
    """A loop in a loop, with values from outside both."""
    return repeat(lambda y: repeat(lambda z: 0.5 * z + ops.sin(y) * x, y, 3) + x, x, n)


def two_in_a_row(x):
    y = repeat(lambda y: ops.cos(y), x, 20)
    return repeat(lambda z: z * y + x, x, 5) + y


def structured(x):
    """A state of several arrays, in a dict in a tuple."""
    A = np.array([[0.0, 1.0], [-1.0, -0.1]])

    def body(state):
        part, n = state
        return {"v": part["v"] + 0.1 * (A @ part["v"]), "s": part["s"] + part["v"][0]}, n + 1

    part, n = repeat(body, ({"v": x, "s": 0.0}, 0), 12)
    return part["v"], part["s"], n


CASES = {
    root: [()],
    fibonacci: [(), ()],
    powers: [(), ()],
    nested: [(), ()],
    two_in_a_row: [()],
    structured: [(2,)],
}


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("batch", [1, 2, 7])
def test_compiled_loops_are_python_loops(function, batch, rng):
    shapes = CASES[function]
    arrays = [rng.uniform(0.5, 1.5, size=(batch, *s)) for s in shapes]
    if function in (powers, nested):
        arrays[1] = rng.integers(-1, 6, size=batch).astype(float)
    program, call = compiled(function, *shapes)
    got = call(*arrays)
    got = got if isinstance(got, tuple) else (got,)
    samples = [function(*(a[k] for a in arrays)) for k in range(batch)]
    samples = [s if isinstance(s, tuple) else (s,) for s in samples]
    for k, expected in enumerate(zip(*samples, strict=True)):
        assert_close(got[k], np.stack(expected), ulps=64)
        assert_close(interpret.run(program, *arrays)[k], np.stack(expected), ulps=64)
    listed = listing.function(program)(*arrays)
    listed = listed if isinstance(listed, tuple) else (listed,)
    for mine, compiled_result in zip(listed, got, strict=True):
        assert_close(mine, compiled_result, ulps=64)


def test_one_sample_and_single_precision():
    _, call = compiled(root, ())
    assert call(np.array(2.0)) == pytest.approx(np.sqrt(2.0), abs=4 * EPS)
    x = np.array([2.0, 3.0, 5.0], np.float32)
    got = call(x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.sqrt(x), rtol=3e-7)


def test_the_code_does_not_grow_with_the_count():
    def swing(n):
        program, _ = compiled(lambda x: repeat(lambda y: y - 0.01 * ops.sin(y), x, n), ())
        return len(program.graph.nodes)

    assert swing(10) == swing(1_000_000)


def test_compile_time_does_not_depend_on_the_count():
    m = kt.samples.pendulum()

    @kernel
    def settle(m, q, qd, *, steps):
        def step(state):
            q, qd = state
            qd = qd + 1e-3 * kt.forward_dynamics(m, q, qd, -0.1 * qd)
            return q + 1e-3 * qd, qd

        return repeat(step, (q, qd), steps)

    def operations(steps):
        call = bind(settle, (m, np.zeros(1), np.ones(1)), {"steps": steps})
        return len(prepare(settle, call).kernel.program.graph.nodes)

    assert operations(20_000) == operations(2)


def test_what_does_not_change_is_computed_before_the_loop():
    program, _ = compiled(lambda x: repeat(lambda y: y * ops.sqrt(1 + x * x), x, 100), ())
    plan = schedule(program.graph, program.roots)
    loop = next(s for s in plan.steps if isinstance(s, LoopStep))
    assert loop.times == 100
    (body,) = loop.steps
    assert [s.op for s in plan.blocks[body].statements] == ["*", "transfer"]


def test_the_listing_shows_the_loop():
    program, _ = compiled(fibonacci, (), ())
    assert show.listing(program).splitlines() == [
        "loop(x0, x1):",
        "    s0 = x0",
        "    s1 = x1",
        "    repeat 10 times:",
        "        t3 = s0 + s1",
        "        s0, s1 = s1, t3",
        "    out0 = s0",
        "    out1 = s1",
    ]


def test_long_bodies_are_cut_into_blocks_too(rng):
    def body(y):
        for k in range(40):
            y = np.array(
                [y[0] + 0.01 * y[1] * y[2], y[1] - 0.01 * y[0] * k, 0.9 * y[2] + y[0] * y[1]]
            )
            y = y / (1 + y @ y)
        return y

    def function(x):
        return repeat(body, x, 3)

    program, _ = compiled(function, (3,))
    plan = schedule(program.graph, program.roots, block_size=50)
    loop = next(s for s in plan.steps if isinstance(s, LoopStep))
    assert len(loop.steps) > 5
    x = rng.normal(size=(5, 3))
    _, call = compiled(function, (3,))
    assert_close(call(x), [function(s) for s in x], ulps=1000)


def test_short_loops_are_no_loops():
    for times, expected in ((0, 3.0), (1, 6.0), (-2, 3.0)):
        program, call = compiled(lambda x, n=times: repeat(lambda y: 2 * y, x, n), ())
        assert not any(node[0] == "repeat" for node in program.graph.nodes)
        assert call(np.array(3.0)) == expected


def test_fractions_count_as_wholes():
    _, call = compiled(powers, (), ())
    assert powers(2.0, 2.5) == 8.0 == call(np.array(2.0), np.array(2.5))


def test_plain_state_becomes_traced_on_the_way():
    def function(x):
        return repeat(lambda s: (s[0] + 1, s[1] + s[0] * x), (0, 0.0), 6)

    _, call = compiled(function, ())
    assert call(np.array([1.0, 2.0]))[1] == pytest.approx([15.0, 30.0], abs=0)


# --- checks --------------------------------------------------------------------------------------


def guarded(x, n):
    def body(y):
        return ops.check_pivot(y, 1.0, lambda: "y is not positive") - 1.0

    return repeat(body, x, n)


def test_checks_inside_a_loop_name_the_sample():
    _, call = compiled(lambda x: guarded(x, 4), ())
    assert_close(call(np.array([5.0, 4.5])), [1.0, 0.5])
    with pytest.raises(SingularError, match=r"sample \(1,\): y is not positive"):
        call(np.array([5.0, 2.5, 7.0]))


def test_checks_do_not_count_once_a_sample_has_ended():
    program, call = compiled(guarded, (), ())
    assert_close(call(np.array([5.0, 2.0, 1.0]), np.array([4.0, 1.0, 0.0])), [1.0, 1.0, 1.0])
    good = interpret.holds(program, np.array([5.0, 2.0, 2.0]), np.array([4.0, 1.0, 3.0]))
    np.testing.assert_array_equal(good, [True, True, False])


def test_unused_loops_and_their_checks_are_gone():
    program, _ = compiled(lambda x: (guarded(x, 5), x + 1)[1], ())
    assert program.checks == ()
    assert len(schedule(program.graph, program.roots).blocks[0].statements) == 2


def test_values_cannot_leave_the_loop_by_a_side_door():
    seen = []

    def function(x):
        repeat(lambda y: (seen.append(y * x), y + 1)[1], x, 5)
        return seen[0]

    with pytest.raises(TraceError, match="part of the state"):
        compiled(function, ())


@pytest.mark.parametrize("traced", [False, True])
def test_the_state_keeps_its_shape(traced):
    def function(x):
        return repeat(lambda y: y[:2], x, 5)

    with pytest.raises(TraceError, match=r"expected arrays of shapes \[\(3,\)\], got \[\(2,\)\]"):
        compiled(function, (3,)) if traced else function(np.zeros(3))


# --- rollouts ------------------------------------------------------------------------------------


def rk4(m, q, qd, steps, dt=0.01):
    """Classical Runge-Kutta on q and qd, for joints whose q is a vector."""

    def rate(q, qd):
        return qd, kt.forward_dynamics(m, q, qd, -0.05 * qd)

    def step(state):
        q, qd = state
        v1, a1 = rate(q, qd)
        v2, a2 = rate(q + dt / 2 * v1, qd + dt / 2 * a1)
        v3, a3 = rate(q + dt / 2 * v2, qd + dt / 2 * a2)
        v4, a4 = rate(q + dt * v3, qd + dt * a3)
        return (
            q + dt / 6 * (v1 + 2 * (v2 + v3) + v4),
            qd + dt / 6 * (a1 + 2 * (a2 + a3) + a4),
        )

    return repeat(step, (q, qd), steps)


@kernel
def rollout(m, q, qd, steps: int):
    return rk4(m, q, qd, steps)


PENDULUM = kt.samples.pendulum()


def test_rollout_in_one_kernel_is_the_python_loop(rng):
    q, qd = rng.normal(size=(2, 5, 1))
    got = rollout(PENDULUM, q, qd, 200)
    for k in range(5):
        expected = rk4(PENDULUM, q[k], qd[k], 200)
        assert_close(got[0][k], expected[0], ulps=2000)
        assert_close(got[1][k], expected[1], ulps=2000, scale=1 + np.abs(expected[0]).max())


def test_rollout_on_the_manifold(rng):
    m = kt.ModelBuilder("ball").body(
        "ball", joint=kt.Spherical(), inertia=kt.shapes.box(0.3, 0.2, 0.1, mass=1.0)
    ).build()  # fmt: skip

    def euler(m, q, qd, steps):
        def step(state):
            q, qd = state
            qd = qd + 0.01 * kt.forward_dynamics(m, q, qd, 0 * qd)
            return m.integrate(q, 0.01 * qd), qd

        return repeat(step, (q, qd), steps)

    q, qd = m.random_configuration(rng), rng.normal(size=3)
    got, expected = kernel(euler)(m, q, qd, steps=50), euler(m, q, qd, 50)
    assert_close(got[0], expected[0], ulps=1000)
    assert_close(got[1], expected[1], ulps=1000)


def test_derivative_of_the_final_state_with_respect_to_the_first(rng):
    q, qd = rng.normal(size=(2, 3, 1))
    d = differentiate(rollout, wrt=("q", "qd"))
    (dq_dq, dq_dqd), (dv_dq, dv_dqd) = d(PENDULUM, q, qd, 30)
    h = 1e-30j
    for k in range(3):
        by_q = rk4(PENDULUM, q[k] + h, qd[k] + 0j, 30)
        by_qd = rk4(PENDULUM, q[k] + 0j, qd[k] + h, 30)
        for J, step in (((dq_dq, dv_dq), by_q), ((dq_dqd, dv_dqd), by_qd)):
            for part, expected in zip(J, step, strict=True):
                assert_close(part[k, :, 0], expected.imag / 1e-30, ulps=500, scale=2)


def test_derivatives_of_nested_loops_with_a_count_at_run_time(rng):
    @kernel
    def f(x, n: ()):
        return nested(x[0], n) * x[1]

    d = differentiate(f, wrt="x")
    dd = differentiate(f, wrt="x", order=2)
    for n in range(4):
        x = rng.normal(size=2)
        derivative = [f.reference(x + 1e-30j * e, float(n)).imag / 1e-30 for e in np.eye(2)]
        assert_close(d(x, float(n)), derivative, ulps=500)
        curvature = np.array(
            [(d(x + 1e-5 * e, float(n)) - d(x - 1e-5 * e, float(n))) / 2e-5 for e in np.eye(2)]
        )
        np.testing.assert_allclose(dd(x, float(n)), curvature.T, rtol=1e-6, atol=1e-7)
