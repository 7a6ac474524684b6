"""The interpreter in every arithmetic, against the algorithm text itself."""

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close
from support.graphs import check_graph

from kinetree.algorithms import aba, rnea
from kinetree.codegen.program import Argument, trace
from kinetree.errors import ShapeError
from kinetree.expr.interpret import MEANING, evaluate, holds, run
from kinetree.expr.node import CONDITIONS, OPERATIONS, Graph
from kinetree.joints import Prismatic, Revolute, Spherical
from kinetree.samples import chain, random_tree


@pytest.fixture(scope="module")
def arm():
    model = chain(3)
    inputs = [Argument(name, (3,)) for name in ("q", "qd", "tau")]
    program = trace(lambda *state: aba.forward_dynamics(model, *state), inputs, "forward_dynamics")
    check_graph(program.graph, program.roots)
    return model, program


STRUCTURE = {"const", "input", "carry", "repeat", "final", "callee", "call", "result"}


def test_every_operation_has_a_meaning():
    assert set(MEANING) == set(OPERATIONS) - STRUCTURE
    assert set(MEANING) > CONDITIONS


@pytest.mark.covers("RBDA 10.4", by=evaluate)
def test_traced_program_computes_what_the_source_computes(arm, rng):
    model, program = arm
    state = rng.standard_normal((3, 3))
    (result,) = run(program, *state)
    assert_close(result, aba.forward_dynamics(model, *state), ulps=1000)


def test_samples_go_together_and_broadcast(arm, rng):
    _, program = arm
    q, qd, tau = rng.standard_normal((2, 1, 3)), rng.standard_normal((4, 3)), rng.standard_normal(3)
    (result,) = run(program, q, qd, tau)
    assert result.shape == (2, 4, 3)
    for i, j in np.ndindex(2, 4):
        assert np.array_equal(result[i, j], run(program, q[i, 0], qd[j], tau)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_precision_of_the_inputs_is_kept(arm, rng, dtype):
    _, program = arm
    state = rng.standard_normal((3, 3))
    (result,) = run(program, *state.astype(dtype))
    assert result.dtype == dtype
    exact = run(program, *state)[0]
    assert_close(result.astype(float), exact, ulps=1000 * max(1, np.finfo(dtype).eps / 2**-52))


def test_whole_numbers_are_computed_with_as_floats():
    graph = Graph()
    x = graph.input("x")
    (result,) = evaluate(graph, [(x / 2).i], {"x": np.array([1, 2])})
    assert result.dtype == float
    assert result.tolist() == [0.5, 1.0]


def test_multiple_precision(arm, rng):
    model, program = arm
    state = rng.standard_normal((3, 3))
    with mpmath.workdps(30):
        exact = [np.array([mpmath.mpf(x) for x in row], dtype=object) for row in state]
        (result,) = run(program, *exact, functions=mpmath)
        assert isinstance(result[0], mpmath.mpf)
        # The transforms of the joints have been composed in float64 while tracing.
        assert_close(result.astype(float), aba.forward_dynamics(model, *state), ulps=1000)
        twice = run(program, *(row + mpmath.mpf(10) ** -25 for row in exact), functions=mpmath)[0]
        assert 0 < max(abs(a - b) for a, b in zip(twice, result, strict=True)) < 1e-22


def test_complex_step_gives_derivatives_of_every_operation():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    u = (x * y - 3).sin() / (x + y).cos() + abs(x) * abs(y - 2) + (x * x + 1).sqrt() - (-x * y)
    u = u + x.arctan2(y) + (x < y).select(x * x, y) + ((x <= 0) | ~(y == 2)).select(x, y)
    h, at = 1e-30, {"x": 0.3, "y": 0.7}
    for name in at:
        step = {k: np.array(v + (1j * h if k == name else 0)) for k, v in at.items()}
        derivative = evaluate(graph, [u.i], step)[0].imag / h
        near = [evaluate(graph, [u.i], {**at, name: at[name] + d})[0] for d in (1e-6, -1e-6)]
        assert derivative == pytest.approx((near[0] - near[1]) / 2e-6, rel=1e-8)


def test_the_branch_that_is_not_chosen_may_be_undefined():
    graph = Graph()
    x = graph.input("x")
    y = (x > 0).select(x.sqrt(), 1 / x)
    (result,) = evaluate(graph, [y.i], {"x": np.array([4.0, -2.0])})
    assert result.tolist() == [2.0, -0.5]


def test_conditions_and_choices():
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    roots = [(x < y).i, (x <= y).i, (x == y).i, ((x < y) | (x == y)).i, (~(x < y) & (y < 2)).i]
    found = evaluate(graph, roots, {"x": np.array([1.0, 2.0, 3.0]), "y": np.array(2.0)})
    assert [f.tolist() for f in found] == [
        [True, False, False], [True, True, False], [False, True, False], [True, True, False],
        [False, False, False],
    ]  # fmt: skip


def test_constants_and_inputs_as_results():
    program = trace(lambda x: np.array([x[1], 2, x[0] * 0]), [Argument("x", (2,))])
    (result,) = run(program, np.array([[1.0, 5.0], [2.0, 6.0]]))
    assert result.tolist() == [[5, 2, 0], [6, 2, 0]]


def test_a_batch_on_which_nothing_depends_is_one_all_the_same():
    inputs = [Argument("x", (2,)), Argument("k", ())]
    program = trace(lambda x, k: (x[0], 3 * np.ones(2)), inputs)
    first, constant = run(program, np.array([1.0, 2.0]), np.zeros(4))
    assert first.tolist() == [1.0] * 4
    assert constant.tolist() == [[3.0, 3.0]] * 4


def test_several_results_keep_their_shapes(rng):
    inputs = [Argument("A", (2, 3)), Argument("k", ())]
    program = trace(lambda A, k: (A.T * k[()], A.sum(), np.zeros((0, 2))), inputs)
    A, k = rng.standard_normal((5, 2, 3)), rng.standard_normal(5)
    transposed, total, nothing = run(program, A, k)
    assert_close(transposed, np.swapaxes(A, 1, 2) * k[:, None, None])
    assert_close(total, A.sum(axis=(1, 2)))
    assert nothing.shape == (5, 0, 2)


def test_checks_are_reported_per_sample(arm):
    _, program = arm
    good = holds(program, np.zeros((2, 3)), np.zeros(3), np.zeros(3))
    assert good.tolist() == [True, True]
    checked = trace(lambda x: x[0].check_pivot(1.0, None), [Argument("x", (1,))])
    assert holds(checked, np.array([[1.0], [0.0], [-1.0]])).tolist() == [True, False, False]
    assert holds(trace(lambda x: x, [Argument("x", (1,))]), np.zeros((2, 1))).tolist() == [True] * 2


def test_wrong_inputs_are_named(arm):
    _, program = arm
    with pytest.raises(ShapeError, match=r"forward_dynamics takes 3 arrays \(q, qd, tau\), got 1"):
        run(program, np.zeros(3))
    graph = Graph()
    with pytest.raises(ShapeError, match="needs a value for its input 'x'"):
        evaluate(graph, [graph.input("x").i], {})


def test_joints_with_quaternions_and_slanted_axes(rng):
    model = random_tree(5, rng, joints=(Spherical(), Revolute((1.0, 2.0, 2.0)), Prismatic("x")))
    inputs = [Argument("q", (model.nq,)), Argument("qd", (model.nv,)), Argument("qdd", (model.nv,))]
    program = trace(lambda *state: rnea.inverse_dynamics(model, *state), inputs)
    check_graph(program.graph, program.roots)
    q, (qd, qdd) = model.random_configuration(rng), rng.standard_normal((2, model.nv))
    assert_close(run(program, q, qd, qdd)[0], rnea.inverse_dynamics(model, q, qd, qdd), ulps=1000)
