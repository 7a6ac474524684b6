"""Constrained systems and charts to first order: every way against the others — Spencer §4.1."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import (
    absolute_five_bar,
    five_bar,
    pendulum,
    pendulum_state,
    spatial_chain,
)
from support.state_charts import nonlinear_state_chart, random_state_chart

import kinetree as kt
from kinetree.loops.state_space import charts
from kinetree.loops.state_space.charts.chart import AbstractChart
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.textbook import chart_motion
from kinetree.textbook.system_invariants import project_position
from kinetree.textbook.system_linearization import linearize_chart, linearize_system

MODEL = kt.samples.five_bar()
SYSTEM, MODEL_SYSTEM = five_bar(), system_of(MODEL)
Q = np.zeros(4)
V = 0.4 * np.linalg.svd(SYSTEM.G(Q))[2][2:].T @ [0.7, -1.1]
PARTITION = np.eye(4)[[0, 3]]


def squared(system, q, v):
    return charts.declared(system, q, lambda q: np.array([q[0] + q[0] ** 2, q[3] - q[1] * q[3]]))


CHARTS = {
    "tangent": lambda s: charts.tangent(s, Q, V),
    "partition": lambda s: charts.partition(s, Q, V),
    "any R": lambda s: charts.linear(s, Q, [[1.0, 0.5, 0, 0], [0, 0.2, -1, 2]], v=V),
    "declared": lambda s: squared(s, Q, V),
    "linear state": lambda s: random_state_chart(s, Q, V),
    "curved state": lambda s: nonlinear_state_chart(s, Q, V),
}


@pytest.mark.covers("Spencer 4.1", by=linearize_chart)
@pytest.mark.parametrize("system", [SYSTEM, MODEL_SYSTEM], ids=["functions", "model"])
@pytest.mark.parametrize("kind", CHARTS)
def test_every_chart_against_differences(kind, system):
    chart = CHARTS[kind](system)
    y = chart.coordinates(Q, V)
    exact, central, forward = (
        chart.linearize(0.0, y, method=method)
        for method in ("equations", "differences", "forward differences")
    )
    size = max(np.abs(exact.field).max(), np.abs(exact.A).max())
    for name in ("A", "field"):
        assert np.abs(getattr(central, name) - getattr(exact, name)).max() < 1e-7 * size
        assert np.abs(getattr(forward, name) - getattr(exact, name)).max() < 1e-5 * size
    np.testing.assert_allclose(exact.rate, chart.rate(0.0, y), atol=1e-12)
    if chart.is_linear:  # (4.7): A_hat = R [Df] Dψ
        assert_close(chart.inverse_derivative(Q, V) @ exact.field, exact.A, ulps=1e4)


@pytest.mark.covers("Spencer 4.1", by=linearize_system)
@pytest.mark.parametrize("projector", ["orthogonal", "coordinates"])
def test_systems_and_models_have_the_same_linear_model(projector):
    of_model = kt.loops.linearize_on_manifold(
        MODEL, Q, V, np.zeros(4), independent=PARTITION, projector=projector
    )
    for system in (MODEL_SYSTEM, SYSTEM):
        found = linearize_system(system, Q, V, R=PARTITION, projector=projector)
        scale, tolerance = np.abs(of_model.A).max(), 1e-8 if system is SYSTEM else 1e-12
        np.testing.assert_allclose(found.A, of_model.A, atol=tolerance * scale)
        np.testing.assert_allclose(found.projector, of_model.projector, atol=1e-12)
        np.testing.assert_allclose(found.rate, of_model.rate, atol=1e-11)
        assert np.abs(found.invariants @ found.projector).max() < 1e-12
        np.testing.assert_allclose(found.A @ found.projector, found.A, atol=1e-10 * scale)


@pytest.mark.covers("Spencer 4.1", by=linearize_system)
def test_eigenvalues_at_rest_belong_to_the_system():
    """LN-06: +-3.37326 i and +-3.96891 i, in relative and in absolute angles, whatever R."""
    home = np.array([2 * np.pi / 3, np.arccos(2 / 3), -np.arccos(2 / 3), -2 * np.pi / 3])
    absolute = np.deg2rad([275.88390, -74.63356, 74.63356, -275.88390])
    relative = np.diff(absolute - home, prepend=0)
    expected = np.array([-3.96891, -3.37326, 3.37326, 3.96891])
    for system, near in ((MODEL_SYSTEM, relative), (SYSTEM, relative), (ABSOLUTE, absolute)):
        q = project_position(system, near)
        for R in (None, PARTITION, np.random.default_rng(2).standard_normal((2, 4))):
            found = kt.linearize(system, q, np.zeros(4), independent=R)
            assert np.abs(np.sort(found.eigenvalues.imag) - expected).max() < 2e-5
            assert np.abs(found.eigenvalues.real).max() < 2e-5
            zeros = np.sort(np.abs(np.linalg.eigvals(found.A)))[:4]
            assert zeros.max() < 1e-4  # pairs that rounding splits like a square root


ABSOLUTE = absolute_five_bar()


@pytest.mark.covers("Spencer 4.1", by=linearize_system)
def test_the_spectrum_of_one_r_is_that_of_its_coordinates_with_zeros():
    for R in (PARTITION, np.random.default_rng(3).standard_normal((4, 8))):
        found = linearize_system(MODEL_SYSTEM, Q, V, R=R)
        whole, part = (np.poly(A) for A in (found.A, found.A_hat))
        np.testing.assert_allclose(whole, [*part, 0, 0, 0, 0], atol=1e-9 * np.abs(part).max())


def test_a_free_body_on_a_pin_moves_on_a_curved_manifold():
    model, q = spatial_chain(
        np.random.default_rng(0), kt.Free(), cut=kt.joints.SphereInCylinder("x")
    )
    system = system_of(model)
    v = kt.loops.project_velocity(model, q, np.random.default_rng(1).standard_normal(6))
    exact, central = (
        linearize_system(system, q, v, method=method) for method in ("equations", "differences")
    )
    size = np.abs(exact.A).max()
    assert np.abs(exact.A - central.A).max() < 1e-7 * size
    assert np.abs(exact.A_hat - central.A_hat).max() < 1e-7 * size
    of_model = kt.loops.linearize_on_manifold(model, q, v, np.zeros(6))
    assert np.abs(exact.A - of_model.A).max() < 1e-9 * size


def test_forces_of_the_users_own_count():
    """A damper as a function of the state, and one of the joint, are the same."""
    damped = MODEL.replace(dynamics={"link2_joint": kt.model.JointDynamics(damping=0.7)})

    def damper(t, q, qd):
        return -0.7 * qd * np.array([0, 1, 0, 0])

    own, joint = system_of(MODEL, damper), system_of(damped)
    found = [linearize_system(s, Q, V, R=PARTITION).A_hat for s in (own, joint)]
    np.testing.assert_allclose(*found, atol=1e-8 * np.abs(found[1]).max())
    assert np.abs(found[0] - linearize_system(MODEL_SYSTEM, Q, V, R=PARTITION).A_hat).max() > 0.01


@pytest.mark.parametrize("traceable", [True, False])
def test_functions_are_differentiated_exactly_where_they_can_be_traced(traceable):
    """A pendulum of varying inertia; ``float`` cannot be traced."""
    number = (lambda x: x) if traceable else float

    def F(t, q, v):
        return np.array([-0.3 * v[0] * q[1], -9.81 + number(q[0]) * v[1]])

    system = ConstrainedSystem.from_functions(
        n=2,
        M=lambda q: np.array([[2 + q[0] ** 2, 0.1 * q[1]], [0.1 * q[1], 1 + q[1] ** 2]]),
        F=F,
        g=lambda q: np.array([q @ q - 1]),
    )
    q, v = pendulum_state(0.4, 1.3)
    exact, central = (
        linearize_system(system, q, v, method=method) for method in ("equations", "differences")
    )
    assert np.abs(exact.A - central.A).max() < 1e-8 * np.abs(exact.A).max()
    plain = kt.loops.linearize_system(
        ConstrainedSystem(2, 1, system.M, F, system.g, system.G, system.Gdot_v), q, v
    )
    assert np.abs(exact.A - plain.A).max() < 1e-8 * np.abs(exact.A).max()


def test_errors_name_what_is_wrong():
    with pytest.raises(kt.ShapeError, match="R must be a matrix with n = 4 columns, or 2 n"):
        linearize_system(SYSTEM, Q, V, R=np.eye(3))
    with pytest.raises(kt.UnknownNameError, match="projector must be 'orthogonal'"):
        linearize_system(SYSTEM, Q, V, projector="oblique")
    with pytest.raises(kt.UnknownNameError, match="a chart has no method 'magic'"):
        linearize_system(SYSTEM, Q, V, method="magic")
    with pytest.raises(kt.ShapeError, match=r"give tau and f_ext to kinetree\.loops\.system_of"):
        kt.linearize(SYSTEM, Q, V, np.zeros(4))


# --- weights: LP-11 ------------------------------------------------------------------------------


def scaled_pendulum(unit, weights):
    """A pendulum of one metre, whose lengths are measured in another unit."""
    given = {"weights": [1 / unit**2], "coordinate_weights": [1 / unit] * 2} if weights else {}
    metres = pendulum()
    return ConstrainedSystem(
        n=2, m=1, M=metres.M, F=lambda t, q, v: unit * metres.F(t, q / unit, v / unit),
        g=lambda q: np.array([q @ q - unit**2]), G=metres.G, Gdot_v=metres.Gdot_v, **given,
    )  # fmt: skip


def iterations(unit, weights, kind, residual):
    q, v = pendulum_state(0.3, 2.0)
    system = scaled_pendulum(unit, weights)
    if kind == "state":
        chart = charts.linear_state(system, unit * q, unit * v, np.eye(4)[[1, 3]], tolerance=1e-9)
        chart.residual_tolerance = residual
        chart.state(chart.coordinates(unit * q, unit * v) + unit * np.array([0.2, 0.1]))
        return chart.solved.iterations
    make = partial(charts.partition, independent=[1])
    chart = make(system, unit * q, unit * v, tolerance=1e-9)
    chart.residual_tolerance = residual
    return chart.solve(
        chart.coordinates(unit * q, unit * v) + unit * np.array([0.2, 0.1])
    ).iterations


@pytest.mark.covers("Spencer 2.3", by=(charts.partition, charts.linear_state))
@pytest.mark.parametrize("residual", [0.0, 1e-6])
def test_units_do_not_change_the_number_of_steps_when_weights_are_set(residual):
    for kind in ("position", "state"):
        counts = [iterations(unit, True, kind, residual) for unit in (1.0, 1e3, 1e-3)]
        assert counts[0] == counts[1] == counts[2]
        plain = [iterations(unit, False, kind, residual) for unit in (1.0, 1e3, 1e-3)]
        assert len(set(plain)) > 1  # which is what weights are for


# --- implicit methods: IN-02, LN-15 --------------------------------------------------------------


def stiff_pendulum(damping):
    """A pendulum in treacle, whose motion along the circle dies out in a fraction of a step."""
    return ConstrainedSystem.from_functions(
        n=2,
        M=lambda q: np.eye(2),
        F=lambda t, q, v: np.array([0.0, -9.81]) - damping * v,
        g=lambda q: np.array([q @ q - 1]),
    )


@pytest.mark.covers("Spencer 4.6", by=charts.integrate_on_charts)
@pytest.mark.parametrize("method", ["backward-euler", "trapezoid", "bdf2", "bdf3"])
def test_implicit_methods_take_steps_far_beyond_the_quickest_motion(method):
    """Creep: ``d angle/dt = -g cos(angle) / damping``."""
    damping = 1e4
    system = stiff_pendulum(damping)
    angle = 0.3
    q, v = pendulum_state(angle, -9.81 * np.cos(angle) / damping)
    motion = charts.integrate_on_charts(system, q, v, 10.0, 0.5, method=method)
    found = np.arctan2(*motion.q[-1][::-1])
    # of u = tan(π/4 + angle/2), du/dt = -g/damping u
    u = np.tan(np.pi / 4 + angle / 2) * np.exp(-9.81 / damping * 10.0)
    assert abs(found - (2 * np.arctan(u) - np.pi / 2)) < 1e-6
    with pytest.raises(kt.SingularError):
        charts.integrate_on_charts(system, q, v + 1e-6 * v, 10.0, 0.5)


@pytest.mark.covers("Spencer 4.6", by=linearize_chart)
def test_newton_is_quadratic_and_differences_give_the_same_step(monkeypatch):
    """LN-15, on a closed chain with a stiff spring."""
    m = kt.samples.four_bar().replace(
        dynamics={"crank_joint": kt.model.JointDynamics(stiffness=5e3, damping=2.0)}
    )
    system, q = system_of(m), np.zeros(3)
    v = kt.loops.project_velocity(m, q, np.array([2.0, 0, 0]))
    ends, steps = {}, {}
    solve = chart_motion.newton

    def watched(*args, **options):
        found = solve(*args, **options)
        steps.setdefault(method, []).append(found.steps)
        return found

    monkeypatch.setattr(chart_motion, "newton", watched)
    for method in ("equations", "differences"):
        by = partial(linearize_chart, method=method)
        monkeypatch.setattr(AbstractChart, "linearize", lambda chart, t, y, by=by: by(chart, t, y))
        ends[method] = charts.integrate_on_charts(system, q, v, 0.06, 0.02, method="bdf2")
    np.testing.assert_allclose(ends["equations"].q, ends["differences"].q, atol=1e-11)
    for lengths in steps["equations"]:
        assert len(lengths) <= 7
        good = [(a, b) for a, b in pairwise(lengths) if a < 0.05]
        assert all(b < 30 * a**2 + 1e-12 for a, b in good)
