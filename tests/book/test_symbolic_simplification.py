"""RBDA §10.4: recording an algorithm, simplifying it, and what that saves."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.graphs import check_graph

from kinetree.algorithms import rnea
from kinetree.codegen.program import Argument, trace
from kinetree.errors import LoadError, UnknownNameError
from kinetree.expr import simplify
from kinetree.expr.counting import count_operations
from kinetree.expr.forward import substitute
from kinetree.expr.interpret import evaluate, run
from kinetree.expr.show import listing
from kinetree.joints import Exponential, Spherical
from kinetree.samples import arm, chain, panda, random_tree, scara
from kinetree.spatial.vector3 import cross
from kinetree.textbook.record import RecordedNumber, Recording, savings

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
    graph, roots = recording.simplify(tau)
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
    graph, roots = recording.simplify(tau)
    assert count_operations(graph, roots) == count_operations(program.graph, program.roots)
    state = rng.standard_normal((3, 3))
    values = evaluate(graph, roots, dict(zip(("q", "qd", "qdd"), state, strict=True)))
    assert_close(values, run(program, *state)[0])


EVERYTHING = """\
# what every statement looks like
t0 = x[0]
t1 = I[0, 2]
t2 = t[]
t3 = 0.1
t4 = t0 + t1
t5 = t4 <= t3
t6 = not(t5)
t7 = t5 or t6
t8 = neg(t2)
t9 = atan2(t8, t0)
t10 = select(t7, t9, t3)  # the last

return t10, t0
"""


@pytest.mark.covers("RBDA 10.4", by=(Recording.write, Recording.read))
def test_recorded_statements_go_through_a_file(rng, tmp_path):
    """Two programs: one records any algorithm, the other simplifies what it finds in the file."""
    model = random_tree(3, rng, joints=(Spherical(), Exponential()))
    recording = Recording()
    q, qd = recording.array("q", (model.nq,)), recording.array("qd", (model.nv,))
    tau = rnea.bias_force(model, q, qd)
    recording.write(tmp_path / "bias.txt", tau)
    again, results = Recording.read(tmp_path / "bias.txt")
    assert again.nodes == recording.nodes  # constants to the last bit
    assert [x.i for x in results] == [x.i for x in tau]
    again.write(tmp_path / "again.txt", results)
    assert (tmp_path / "again.txt").read_bytes() == (tmp_path / "bias.txt").read_bytes()
    inputs = {"q": model.random_configuration(rng), "qd": rng.standard_normal(model.nv)}
    values = evaluate(*again.simplify(results), inputs)
    assert_close(values, rnea.bias_force(model, *inputs.values()), ulps=1000)
    # and the other way round: new statements after those that were read
    graph, roots = again.simplify([results[0] * 2])
    assert_close(evaluate(graph, roots, inputs)[0], 2 * values[0])


@pytest.mark.covers("RBDA Table 10.3", by=(Recording.write, Recording.read))
def test_the_file_of_the_book_has_29_operations(tmp_path):
    recording = Recording()
    recording.write(tmp_path / "table", torque(recording.array("v", (3,))))
    again, results = Recording.read(tmp_path / "table")
    assert again.operations == 29
    assert str(count_operations(*again.simplify(results))) == "4m + 1a"


def test_every_statement_of_the_format_is_read(tmp_path):
    path = tmp_path / "all.txt"
    path.write_text(EVERYTHING, encoding="utf-8")
    recording, results = Recording.read(path)
    assert len(recording.nodes) == 11
    inputs = {"x": np.array([0.4]), "I": np.array([[0, 0, -0.7]]), "t": np.array(0.3)}
    found = evaluate(*recording.simplify(results), inputs)
    assert_close(found, [np.arctan2(-0.3, 0.4), 0.4])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("t3 = t0 + t9", "t3 = t0 + t3"), ("t3 = ", "t3 = t0 ^ t1"),
        ("t3 = sin(t0, t1)", "t4 = 1.0"), ("t3 = x[1 2]", "t3 = t0 + 1.0"),
        ("t3 = evil(t0)", "t3 = __import__('os')"), ("t3 = x[0,,1]", "x = t0"),
        ("return t3", "return 1.0"),
    ],
)  # fmt: skip
def test_lines_that_are_no_statements_are_named(line, text, tmp_path):
    for wrong in (line, text):
        path = tmp_path / "wrong.txt"
        path.write_text(f"t0 = x[0]\nt1 = 2.0\nt2 = t0 * t1\n{wrong}\nreturn t2\n")
        with pytest.raises(LoadError, match=r"wrong.txt, line 4: expected the statement 't3 = "):
            Recording.read(path)
    path.write_text("t0 = x[0]\n")
    with pytest.raises(LoadError, match=r"the last line, 'return .*is missing"):
        Recording.read(path)
    path.write_text("return\nt0 = 1.0\n")
    with pytest.raises(LoadError, match="line 2"):
        Recording.read(path)
    recording = Recording()
    with pytest.raises(UnknownNameError, match="'gradient by q'"):
        recording.write(path, recording.array("gradient by q", (1,)))


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
    assert all(isinstance(x, RecordedNumber) for x in tau)
    x, y = recording.array("x", (2,))
    extra = [
        abs(x) / y, 1 / x, 2 - x, x.sqrt(), x.atan2(y, 1.0), (x < y).select(x, 0),
        (x > 1).select(y, 1), -x, x.check_pivot(1.0, None),
    ]  # fmt: skip
    graph, roots = recording.simplify([*tau, *extra])
    check_graph(graph, roots)
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    inputs = {"q": q, "qd": qd, "x": np.array([0.3, 0.7])}
    values = evaluate(graph, roots, inputs)
    assert_close(values[: model.nv], rnea.bias_force(model, q, qd), ulps=1000)
    expected = [
        0.3 / 0.7, 1 / 0.3, 1.7, np.sqrt(0.3), np.arctan2(0.7, 1.0), 0.3, 1.0, -0.3, 0.3,
    ]  # fmt: skip
    assert_close(values[model.nv :], expected)
