"""RBDA §10.4: recording an algorithm, simplifying it, and what that saves."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import rnea
from kinetree.codegen.program import Argument, trace
from kinetree.expr import simplify
from kinetree.expr.count import count_operations
from kinetree.expr.interpret import evaluate, run
from kinetree.expr.show import check_graph, listing
from kinetree.expr.substitute import substitute
from kinetree.joints import Spherical
from kinetree.samples import arm, chain, panda, random_tree, scara
from kinetree.spatial.vector3 import cross
from kinetree.textbook.record import Recorded, Recording, savings

I, S = np.diag([1.5, 1.6, 1.7]), np.array([0.0, 0.0, 1.0])


def torque(v):
    """The calculation of RBDA Table 10.3."""
    p = cross(v, I @ v)
    return p @ S


@pytest.mark.covers("RBDA 10.4", "RBDA Table 10.3", by=(Recording, simplify.mul))
def test_example_of_the_book_goes_from_29_operations_to_5():
    recording = Recording()
    tau = torque(recording.array("v", (3,)))
    assert recording.operations == 29
    graph, roots = recording.simplified(tau)
    check_graph(graph, roots)
    assert str(count_operations(graph, roots)) == "4m + 1a"
    v = np.array([0.3, -0.7, 1.1])
    assert_close(evaluate(graph, roots, {"v": v})[0], 0.1 * v[0] * v[1])  # the optimum


@pytest.mark.covers("RBDA Table 10.3", by=trace)
def test_tracing_simplifies_as_it_goes():
    program = trace(torque, [Argument("v", (3,))], "torque")
    assert listing(program) == (
        "torque(v):\n"
        "    t0 = 1.5 * v[0]\n"
        "    t1 = 1.6000000000000001 * v[1]\n"
        "    t2 = v[0] * t1\n"
        "    t3 = v[1] * t0\n"
        "    out0 = t2 - t3\n"
    )


@pytest.mark.covers("RBDA 10.4", by=savings)
def test_reduction_factor_of_the_example_is_almost_6():
    saved = savings(torque, [("v", (3,))])
    assert saved.recorded == 29
    assert saved.simplified.total == 5
    assert 5.5 < saved.factor < 6


def test_recording_and_simplifying_equals_tracing(rng):
    """One program or two: the order of the steps does not matter."""
    model = chain(3)
    inputs = [("q", (3,)), ("qd", (3,)), ("qdd", (3,))]
    program = trace(
        lambda *state: rnea.inverse_dynamics(model, *state), [Argument(*i) for i in inputs]
    )
    recording = Recording()
    tau = rnea.inverse_dynamics(model, *(recording.array(*i) for i in inputs))
    graph, roots = recording.simplified(tau)
    assert count_operations(graph, roots) == count_operations(program.graph, program.roots)
    state = rng.standard_normal((3, 3))
    values = evaluate(graph, roots, dict(zip(("q", "qd", "qdd"), state, strict=True)))
    assert_close(values, run(program, *state)[0])


def test_simplifying_again_changes_nothing():
    """The rules have been applied exhaustively."""
    model = panda()
    inputs = [Argument("q", (model.nq,)), Argument("qd", (model.nv,)), Argument("qdd", (model.nv,))]
    program = trace(lambda *state: rnea.inverse_dynamics(model, *state), inputs)
    graph = type(program.graph)()
    roots = substitute(program.graph, program.roots, {}, graph)
    assert count_operations(graph, roots) == count_operations(program.graph, program.roots)


@pytest.mark.covers("RBDA 10.4", by=savings)
@pytest.mark.parametrize(
    ("model", "lowest", "highest"),
    [(chain(6), 1.5, 1.9), (arm(), 2.0, 6.0), (panda(), 2.0, 4.0), (scara(), 5.0, 20.0)],
    ids=lambda x: getattr(x, "name", None),
)
def test_savings_grow_with_the_zeros_of_the_model(model, lowest, highest):
    """Near 1 for a chain in general position, a multiple for robots with parallel axes."""
    inputs = [("q", (model.nq,)), ("qd", (model.nv,)), ("qdd", (model.nv,))]
    saved = savings(lambda *state: rnea.inverse_dynamics(model, *state), inputs)
    assert lowest < saved.factor < highest


def test_parameters_may_stay_open(rng):
    """One program for a family of models: the inertia is an input — RBDA §10.4."""
    inputs = [Argument("v", (3,)), Argument("I", (3, 3))]
    program = trace(lambda v, I: cross(v, I @ v) @ S, inputs)
    v = rng.standard_normal(3)
    for _ in range(2):
        A = rng.standard_normal((3, 3))
        assert_close(run(program, v, A)[0], np.cross(v, A @ v)[2])


def test_recorded_numbers_know_every_operation(rng):
    model = random_tree(3, rng, joints=(Spherical(),))
    recording = Recording()
    q, qd = recording.array("q", (model.nq,)), recording.array("qd", (model.nv,))
    tau = rnea.bias_force(model, q, qd)
    assert all(isinstance(x, Recorded) for x in tau)
    x, y = recording.array("x", (2,))
    extra = [
        abs(x) / y, 1 / x, 2 - x, x.sqrt(), x.atan2(y, 1.0), (x < y).select(x, 0),
        (x > 1).select(y, 1), -x, x.check_pivot(1.0, None),
    ]  # fmt: skip
    graph, roots = recording.simplified([*tau, *extra])
    check_graph(graph, roots)
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    inputs = {"q": q, "qd": qd, "x": np.array([0.3, 0.7])}
    values = evaluate(graph, roots, inputs)
    assert_close(values[: model.nv], rnea.bias_force(model, q, qd), ulps=1000)
    expected = [
        0.3 / 0.7, 1 / 0.3, 1.7, np.sqrt(0.3), np.arctan2(0.7, 1.0), 0.3, 1.0, -0.3, 0.3,
    ]  # fmt: skip
    assert_close(values[model.nv :], expected)
