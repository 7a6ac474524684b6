"""Identities of charts, one for every kind; motions on charts are tested elsewhere."""

from math import cos, pi, sin

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import SINGULAR, five_bar, pendulum, pendulum_state, pinned_body
from support.state_charts import nonlinear_state_chart, random_state_chart

from kinetree import samples
from kinetree.errors import ShapeError, SingularError
from kinetree.loops.state_space import charts, multipliers
from kinetree.loops.state_space.charts.chart import coordinate_weights, row_weights
from kinetree.loops.state_space.charts.linear_chart import dependent_columns
from kinetree.loops.state_space.invariants import invariant_gradient, invariants
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.quantities import kinematics

SYSTEM = five_bar()
Q = np.zeros(4)
V2 = np.linalg.svd(SYSTEM.G(Q))[2][2:].T
V = V2 @ [0.7, -1.1]


def random_linear(system, q, v=None):
    return charts.linear(system, q, np.random.default_rng(5).standard_normal((2, 4)), v=v)


def apex(model, q):
    """Position of the pin in the middle, where the inner links meet."""
    return kinematics.pose(model, q, "link3")[[0, 2], 3]


def apex_chart(system, q, v=None):
    return charts.declared(system, q, apex, model=samples.five_bar(), v=v)


SLOW = 0.4 * V
KINDS = {
    "tangent": lambda: charts.tangent(SYSTEM, Q, SLOW),
    "partition": lambda: charts.partition(SYSTEM, Q, SLOW),
    "linear": lambda: random_linear(SYSTEM, Q, SLOW),
    "apex": lambda: apex_chart(SYSTEM, Q, SLOW),
    "linear state": lambda: random_state_chart(SYSTEM, Q, SLOW),
    "nonlinear state": lambda: nonlinear_state_chart(SYSTEM, Q, SLOW),
}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def nearby(chart, size=0.05, seed=1):
    """A state of the chart near its start, and its coordinates."""
    start = chart.coordinates(Q, SLOW)
    y = start + size * np.random.default_rng(seed).standard_normal(chart.size)
    return (y, *chart.state(y))


def lagrange(t, q, v):
    return multipliers.acceleration(SYSTEM, t, q, v)


@pytest.mark.covers("Spencer 2.2", "Spencer 2.3", by=charts.AbstractChart)
@every_kind
def test_states_and_coordinates_are_inverse_to_each_other(make):
    chart = make()
    y, q, v = nearby(chart)
    np.testing.assert_allclose(invariants(SYSTEM, q, v), 0, atol=1e-14)
    np.testing.assert_allclose(chart.coordinates(q, v), y, atol=1e-12)
    q2, v2 = chart.state(chart.coordinates(q, v), guess=(Q, V))
    np.testing.assert_allclose(np.concatenate([q2, v2]), np.concatenate([q, v]), atol=1e-12)


BY_LISTS = {
    "tangent": lambda q, v, one: charts.tangent(SYSTEM, q, v, offset=q),
    "partition": lambda q, v, one: charts.partition(SYSTEM, q, v),
    "linear": lambda q, v, one: charts.linear(SYSTEM, q, one[:2], v=v, offset=q),
    "state": lambda q, v, one: charts.linear_state(SYSTEM, q, v, np.eye(8)[[0, 1, 4, 5]].tolist()),
    "atlas": lambda q, v, one: charts.Atlas(SYSTEM, q, v).chart,
}


@pytest.mark.parametrize("make", BY_LISTS.values(), ids=BY_LISTS)
def test_charts_take_lists_as_they_take_arrays(make):
    arrays = make(Q, SLOW, np.eye(4))
    lists = make([0] * 4, SLOW.tolist(), np.eye(4).tolist())
    y = arrays.coordinates(Q, SLOW)
    for found, expected in (
        (lists.coordinates(Q.tolist(), SLOW.tolist()), y),
        (lists.state(y.tolist())[1], arrays.state(y)[1]),
        (lists.rate(0.0, y.tolist()), arrays.rate(0.0, y)),
        (lists.derivative(Q.tolist(), SLOW.tolist()), arrays.derivative(Q, SLOW)),
        (lists.inverse_derivative(Q.tolist(), SLOW.tolist()), arrays.inverse_derivative(Q, SLOW)),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-13)


def test_words_and_charts_of_states_are_refused_by_name():
    with pytest.raises(ShapeError, match="q must hold numbers"):
        charts.tangent(SYSTEM, Q).coordinates(["a"] * 4, SLOW)
    with pytest.raises(ShapeError, match=r"charts.verify .* got a LinearStateChart"):
        charts.verify(random_state_chart(SYSTEM, Q, SLOW), Q)


@pytest.mark.covers("Spencer 2.2", "Spencer 2.3", by=charts.AbstractChart.derivative)
@every_kind
def test_derivative_of_a_chart(make):
    """Against differences; it spans the null space of H, and has the other as left inverse."""
    chart = make()
    y, q, v = nearby(chart)
    D, P = chart.derivative(q, v), chart.size
    h = 1e-6
    differences = [
        (np.concatenate(chart.state(y + h * e)) - np.concatenate(chart.state(y - h * e))) / (2 * h)
        for e in np.eye(P)
    ]
    np.testing.assert_allclose(D, np.array(differences).T, atol=1e-7)
    chart.state(y)
    H = invariant_gradient(SYSTEM, q, v)
    np.testing.assert_allclose(H @ D, 0, atol=1e-12)
    assert np.linalg.matrix_rank(D) == P
    inverse = chart.inverse_derivative(q, v)
    np.testing.assert_allclose(inverse @ D, np.eye(P), atol=1e-12)
    # (2.31): the derivative by way of the inverse map
    by_inverse = np.linalg.inv(np.concatenate([inverse, H]))[:, :P]
    np.testing.assert_allclose(by_inverse, D, atol=1e-11)


@pytest.mark.covers("Spencer 2.2", by=charts.AbstractChart.rate_by_pseudo_inverse)
@every_kind
def test_rates_of_coordinates_do_not_depend_on_how_they_are_found(make):
    chart = make()
    y, q, v = nearby(chart)
    rate = chart.rate(0.0, y)
    np.testing.assert_allclose(rate, chart.rate(0.0, y, acceleration=lagrange), atol=1e-11)
    np.testing.assert_allclose(rate, chart.rate_by_pseudo_inverse(0.0, y, lagrange), atol=1e-11)
    f = np.concatenate([v, lagrange(0.0, q, v)])
    np.testing.assert_allclose(chart.derivative(q, v) @ rate, f, atol=1e-11)


@pytest.mark.covers("Spencer 2.2", by=charts.AbstractChart.derivative)
def test_the_pseudo_inverse_is_the_inverse_derivative_for_tangent_charts_alone():
    at_start = {"tangent": 1e-13, "partition": 0.5, "linear state": 0.5}
    for name, bound in at_start.items():
        chart = KINDS[name]() if name != "tangent" else charts.linear_state(
            SYSTEM, Q, V, _null_rows(Q, V)
        )  # fmt: skip
        v = V if name == "tangent" else SLOW
        gap = np.linalg.norm(
            np.linalg.pinv(chart.derivative(Q, v)) - chart.inverse_derivative(Q, v)
        )
        assert gap <= bound if name == "tangent" else gap > bound


def _null_rows(q, v):
    H = invariant_gradient(SYSTEM, q, v)
    return np.linalg.svd(H)[2][4:]


@pytest.mark.covers("Spencer 2.3", by=(charts.linear, invariant_gradient))
def test_conditions_of_positions_and_of_states_fail_together(rng):
    """(2.27), (2.28) on R_q against (2.21), (2.22) on (R_q, R_v), for random rows."""
    for degenerate in (False, True):
        R = rng.standard_normal((2, 4))
        if degenerate:
            R[1] = SYSTEM.G(Q)[0] + 0.3 * R[0]
        both = np.block([[R, np.zeros((2, 4))], [np.zeros((2, 4)), R]])
        H = invariant_gradient(SYSTEM, Q, V)
        rank_q = np.linalg.matrix_rank(np.concatenate([R, SYSTEM.G(Q)]), 1e-9)
        rank_x = np.linalg.matrix_rank(np.concatenate([both, H]), 1e-9)
        assert (rank_q == 4) == (rank_x == 8) == (not degenerate)
    with pytest.raises(SingularError, match="do not determine the state"):
        charts.linear(SYSTEM, Q, SYSTEM.G(Q))


@pytest.mark.covers("Spencer 2.3", by=(charts.LinearChart, charts.LinearStateChart))
@pytest.mark.parametrize("name", ["tangent", "partition", "linear", "linear state"])
def test_bars_of_linear_charts(name):
    chart = KINDS[name]()
    R, S, R_bar, S_bar = chart.R, chart.S, chart.R_bar, chart.S_bar
    np.testing.assert_allclose(R @ R_bar, np.eye(len(R)), atol=1e-14)
    np.testing.assert_allclose(R @ S_bar, 0, atol=1e-14)
    np.testing.assert_allclose(S @ S_bar, np.eye(len(S)), atol=1e-14)


@pytest.mark.covers("Spencer 2.3", by=charts.LinearStateChart.derivative)
def test_the_smaller_solve_of_linear_charts_gives_the_same_derivative():
    """(2.37) against (2.29), for partition, tangent and random rows."""
    rows = {
        "tangent": _null_rows(Q, V),
        "partition": np.eye(8)[[0, 3, 4, 7]],
        "random": np.random.default_rng(3).standard_normal((4, 8)),
    }
    for R in rows.values():
        chart = charts.linear_state(SYSTEM, Q, V, R)
        y, q, v = chart.coordinates(Q, V) + 0.03, *chart.state(chart.coordinates(Q, V) + 0.03)
        A = np.concatenate([R, invariant_gradient(SYSTEM, q, v)])
        long_way = np.linalg.inv(A)[:, :4]
        assert_close(chart.derivative(q, v), long_way, condition=np.linalg.cond(A))
        assert chart.dependent_condition(q, v) >= 1
        assert_close(chart.rate(0, y), R @ np.concatenate([v, lagrange(0, q, v)]), ulps=1e3)


@pytest.mark.covers("Spencer 2.4", by=charts.LinearChart)
@pytest.mark.parametrize("name", ["tangent", "partition", "linear", "apex"])
def test_blocks_of_the_derivative_of_position_charts(name):
    """(2.40): K, zero, Kdot, K."""
    chart = KINDS[name]()
    y, q, v = nearby(chart)
    point, D = chart.solve(y), chart.derivative(q, v)
    np.testing.assert_allclose(D[:4, :2], point.K, atol=1e-13)
    np.testing.assert_allclose(D[4:, 2:], point.K, atol=1e-13)
    np.testing.assert_allclose(D[:4, 2:], 0, atol=1e-15)
    np.testing.assert_allclose(D[4:, :2] @ y[2:], point.c, atol=1e-12)  # Kdot y_v
    np.testing.assert_allclose(SYSTEM.G(q) @ point.K, 0, atol=1e-13)


@pytest.mark.covers("Spencer 2.4", by=charts.LinearChart)
def test_null_space_basis_by_the_dependent_block():
    """(2.46), (2.47) written out, against the inverse of [R; G] of (2.44), (2.45)."""
    chart = random_linear(SYSTEM, Q)
    y, q, v = nearby(chart)
    point, G = chart.solve(y), SYSTEM.G(q)
    right = np.linalg.inv(G @ chart.S_bar)
    assert_close(point.K, chart.R_bar - chart.S_bar @ right @ G @ chart.R_bar, ulps=1e3)
    assert_close(point.c, -chart.S_bar @ right @ SYSTEM.Gdot_v(q, v), ulps=1e3)
    whole = np.linalg.inv(np.concatenate([chart.R, G]))
    assert_close(point.K, whole[:, :2], ulps=1e3)
    assert_close(point.c, -whole[:, 2:] @ SYSTEM.Gdot_v(q, v), ulps=1e3)
    assert chart.dependent_condition(q) == pytest.approx(np.linalg.cond(G @ chart.S_bar))


@pytest.mark.covers("Spencer 2.3", by=charts.partition)
def test_pivoting_chooses_the_outer_joints_of_the_five_bar():
    chart = charts.partition(SYSTEM, Q)
    assert_close(chart.R, np.eye(4)[[0, 3]])  # independent q1, q4; dependent q2, q3
    H = invariant_gradient(SYSTEM, Q, np.zeros(4))
    assert dependent_columns(H).tolist() == [1, 2, 5, 6]
    # coordinates are entries of q and v
    assert_close(chart.coordinates(Q + 1, V), [1, 1, V[0], V[3]])


def test_independent_coordinates_of_the_users_choice():
    chart = charts.partition(SYSTEM, Q, independent=[3, 1])
    assert_close(chart.R, np.eye(4)[[3, 1]])
    for wrong in ([0], [0, 0], [0, 4]):
        with pytest.raises(ShapeError, match="2 different numbers from 0 to 3"):
            charts.partition(SYSTEM, Q, independent=wrong)


@pytest.mark.covers("Spencer 2.3", by=charts.tangent)
def test_tangent_charts_are_as_good_as_the_constraints_are():
    chart = charts.tangent(SYSTEM, Q)
    A = np.concatenate([chart.R, SYSTEM.G(Q) / np.linalg.norm(SYSTEM.G(Q), axis=1)[:, None]])
    assert np.linalg.cond(A) <= 2 * np.linalg.cond(SYSTEM.G(Q))
    assert chart.health < charts.partition(SYSTEM, Q).health
    assert_close(chart.coordinates(Q, V), np.concatenate([np.zeros(2), chart.R @ V]))


@pytest.mark.covers("Spencer 2.3", by=charts.linear)
def test_the_pendulum_chart_fails_where_it_should():
    """y = q1 is valid unless q2 = 0, and its condition grows like 1 / q2."""
    system = pendulum()
    for q2 in (1e-1, 1e-3, 1e-5):
        q = np.array([np.sqrt(1 - q2**2), q2])
        condition = charts.linear(system, q, [[1.0, 0.0]]).health
        assert condition * q2 == pytest.approx(1, rel=0.02)
    with pytest.raises(SingularError, match="no chart here"):
        charts.linear(system, np.array([1.0, 0.0]), [[1.0, 0.0]])


def test_charts_of_wrong_size_are_rejected():
    with pytest.raises(ShapeError, match=r"R has shape \(1, 4\), expected \(2, 4\)"):
        charts.linear(SYSTEM, Q, np.ones((1, 4)))
    with pytest.raises(ShapeError, match=r"R\(q, y\) has shape \(1,\)"):
        charts.nonlinear(SYSTEM, Q, lambda q, y: q[:1] - y, y=[0.0])
    with pytest.raises(ShapeError, match=r"expected \(4, 8\)"):
        charts.linear_state(SYSTEM, Q, V, np.ones((3, 8)))
    with pytest.raises(ShapeError, match=r"R\(x, y\) has shape"):
        charts.state(SYSTEM, Q, V, lambda x, y: x[:2] - y, y=np.zeros(2))
    pinned = system_of(pinned_body())
    with pytest.raises(ShapeError, match=r"use a chart of positions"):
        charts.linear_state(pinned, np.zeros(3), np.zeros(3), np.eye(6)[[0, 3]])


def test_no_chart_at_a_kinematic_singularity():
    with pytest.raises(SingularError, match="only 1 of 2 constraints are independent here"):
        charts.tangent(SYSTEM, SINGULAR, rank=2)


@pytest.mark.covers("Spencer 2.4", by=(charts.declared, charts.NonlinearChart))
def test_accelerations_of_curved_coordinates():
    """(2.45) needs the terms of R's own curvature; against differences in time."""
    chart = apex_chart(SYSTEM, Q, V)
    y = chart.coordinates(Q, V)
    ydd = chart.rate(0.0, y)[2:]
    h = 1e-4

    def moved(t):
        a = lagrange(0, Q, V)
        jerk = (lagrange(0, Q + h * V, V + h * a) - a) / h
        q = Q + t * V + t**2 / 2 * a + t**3 / 6 * jerk
        return apex(samples.five_bar(), q)

    differences = (moved(h) - 2 * moved(0) + moved(-h)) / h**2
    np.testing.assert_allclose(ydd, differences, atol=1e-6)
    point = chart.solve(y)
    without = -np.linalg.inv(
        np.concatenate([chart.position_rows(Q, y[:2]), SYSTEM.G(Q)])
    )[:, 2:] @ SYSTEM.Gdot_v(Q, V)  # fmt: skip
    assert np.linalg.norm(chart.position_rows(Q, y[:2]) @ (point.c - without)) > 0.1


def test_relations_with_derivatives_of_the_users_own():
    """A relation that is not written for tracing: y = angle of the pendulum, by sine and cosine."""
    system = pendulum()
    q, v = pendulum_state(0.7, 1.3)

    def R(q, y):
        return np.array([q[1] * cos(y[0]) - q[0] * sin(y[0])])

    by_hand = charts.nonlinear(
        system, q, R, y=[0.5],
        first=lambda q, y: np.array([[-sin(y[0]), cos(y[0])]]),
        second=lambda q, y: np.array([[-q[1] * sin(y[0]) - q[0] * cos(y[0])]]),
        bias=lambda q, y, v, w: np.array([
            -2 * w[0] * (v[1] * sin(y[0]) + v[0] * cos(y[0]))
            + w[0] ** 2 * (q[0] * sin(y[0]) - q[1] * cos(y[0]))
        ]),
    )  # fmt: skip
    traced = charts.nonlinear(
        system, q, lambda q, y: np.array([q[1] * np.cos(y[0]) - q[0] * np.sin(y[0])]), y=[0.5]
    )
    for chart in (by_hand, traced):
        y = chart.coordinates(q, v)
        np.testing.assert_allclose(y, [0.7, 1.3], atol=1e-14)
        np.testing.assert_allclose(chart.rate(0, y), [1.3, -9.81 * cos(0.7)], atol=1e-13)
    assert_close(by_hand.derivative(q, v), traced.derivative(q, v))


@pytest.mark.covers("Spencer 2.3", by=charts.verify)
def test_the_angle_of_the_pendulum_is_a_global_coordinate():
    system, q = pendulum(), np.array([0.6, 0.8])
    angle = charts.declared(
        system, q, lambda q: np.array([np.arctan2(q[1], q[0])]), periods=[2 * pi]
    )
    found = charts.verify(angle, q)
    assert found.valid
    assert found.condition == pytest.approx(1)
    assert found.scanned == 400


@pytest.mark.covers("Spencer 2.3", by=charts.verify)
def test_the_verifier_reports_where_a_cartesian_coordinate_fails():
    system, q = pendulum(), np.array([0.6, 0.8])
    found = charts.verify(charts.partition(system, q, independent=[0]), q)
    assert not found.valid
    for failure in found.failures:
        np.testing.assert_allclose(np.abs(failure), [1, 0], atol=1e-6)
    assert not np.isfinite(found.condition)


def test_angles_count_turns():
    system = pendulum()
    q, v = pendulum_state(3.0, 1.0)
    chart = charts.declared(
        system, q, lambda q: np.array([np.arctan2(q[1], q[0])]), periods=[2 * pi]
    )
    y = chart.coordinates(q, v)
    for angle in np.arange(3.0, 9.0, 0.5):  # the guess is half a radian away
        q, v = chart.state([angle, 1.0])
        np.testing.assert_allclose(q, pendulum_state(angle, 1.0)[0], atol=1e-12)
        y = chart.coordinates(q, v)
        assert y[0] == pytest.approx(angle)


@pytest.mark.covers("Spencer 2.2", by=charts.tangent)
def test_charts_where_configurations_are_no_vectors(rng):
    """A body that is free in the plane but for a pin: states, derivative, rates."""
    system = system_of(pinned_body())
    q, v = np.array([0.4, 0, 0]), np.array([1.7, 0, 0])
    for chart in (charts.tangent(system, q), charts.partition(system, q)):
        y = chart.coordinates(q, v) + np.array([0.8, 0.3])
        q1, v1 = chart.state(y)
        np.testing.assert_allclose(invariants(system, q1, v1), 0, atol=1e-14)
        np.testing.assert_allclose(chart.coordinates(q1, v1), y, atol=1e-13)
        rate = chart.rate(0.0, y)
        h = 1e-5
        (qa, va), (qb, vb) = (chart.state(y + s * h * rate) for s in (-1, 1))
        moved = system.space.difference(qa, qb) / (2 * h)
        np.testing.assert_allclose(moved, v1, atol=1e-8)
        a = multipliers.acceleration(chart.system, 0, q1, v1)
        np.testing.assert_allclose((vb - va) / (2 * h), a, atol=1e-8)
        D = chart.derivative(q1, v1)
        for e, column in zip(np.eye(2), D.T, strict=True):
            (qa, va), (qb, vb) = (chart.state(y + s * h * e) for s in (-1, 1))
            found = np.concatenate([system.space.difference(qa, qb), vb - va]) / (2 * h)
            np.testing.assert_allclose(found, column, atol=1e-8)


def test_redundant_constraints_are_left_out_of_charts():
    model = samples.four_bar()
    system = system_of(model)
    chart = charts.tangent(system, np.zeros(3))
    assert (system.m, chart.system.m, chart.size) == (5, 2, 2)
    q, v = chart.state([0.5, 2.0])
    np.testing.assert_allclose(invariants(system, q, v), 0, atol=1e-14)


@pytest.mark.covers("Spencer 2.4", by=samples.parallel_four_bar)
def test_the_null_space_of_the_parallelogram_is_constant():
    system = system_of(samples.parallel_four_bar())
    chart = charts.partition(system, np.zeros(4), independent=[0, 1])
    for y in ([0, 0, 1, 2], [0.3, 0.2, -1, 0.5], [0.4, -0.3, 0, 1]):
        point = chart.solve(y)
        np.testing.assert_allclose(point.K, [[1, 0], [0, 1], [1, -1], [-1, 1]], atol=1e-13)
        np.testing.assert_allclose(point.q, [y[0], y[1], y[0] - y[1], y[1] - y[0]], atol=1e-13)
        np.testing.assert_allclose(point.c, 0, atol=1e-12)


@pytest.mark.covers("Spencer 2.4", by=charts.linear)
def test_the_null_space_of_the_parallel_four_bar_off_its_branch():
    """The printed formula, at a configuration that is not closed: columns of ``Dψ``."""
    L1, L2 = 1.3, 0.8
    q = np.array([0.9, 0.35, 0.2, -2.1])
    a, b = np.cumsum(q[1:]), np.array([L2, L1, L2])
    G = np.zeros((2, 4))
    for j in range(3):
        G[:, 1 + j] = np.sum(b[j:] * np.array([-np.sin(a[j:]), np.cos(a[j:])]), axis=1)
    G[:, 0] = [L1 * sin(q[0]), -L1 * cos(q[0])]
    rest = np.zeros(4)
    system = ConstrainedSystem(
        n=4, m=2, M=lambda q: np.eye(4), F=lambda t, q, v: rest, g=lambda q: np.zeros(2),
        G=lambda q: G, Gdot_v=lambda q, v: np.zeros(2),
    )  # fmt: skip
    chart = charts.linear(system, q, np.eye(4)[:2])
    K = chart.derivative(q, rest)[:4, :2]
    np.testing.assert_allclose(K[2:], [[0.738830, -1.674620], [-1.384338, 0.444468]], atol=1e-6)


def test_equations_are_measured_for_steps_of_unit_size():
    """Their own factors drop out, and an equation that says nothing keeps its own."""
    assert coordinate_weights(pendulum()) == 1.0
    rows, weights = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -0.5]]), np.array([1.0, 2.0])
    assert_close(row_weights(rows, weights), [1 / np.hypot(3, 2), 1.0, 4.0])
    assert_close(row_weights(7 * rows, 1.0), [1 / 35, 1.0, 2 / 7])
