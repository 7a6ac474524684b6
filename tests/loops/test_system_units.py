"""Parts of the state-space forms one by one: exact for polynomials, and whatever the units."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import (
    SINGULAR,
    absolute_five_bar,
    five_bar,
    pendulum,
    pendulum_state,
    pinned_body,
)

from kinetree.errors import ShapeError
from kinetree.loops.state_space import charts
from kinetree.loops.state_space.charts.chart import invert, row_condition
from kinetree.loops.state_space.invariants import invariant_gradient, newton
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.system import given_relation
from kinetree.textbook import chart_motion
from kinetree.textbook.chart_motion import runge_kutta_step
from kinetree.textbook.svd_form import SingularityWatch, SVDForm
from kinetree.textbook.system_motion import integrate_system

# --- Steps ----------------------------------------------------------------------------------------


def cubic(t):
    return np.array([t**3, 3 - 2 * t + t**2])


def integral(t):
    return np.array([t**4 / 4, 3 * t - t**2 + t**3 / 3])


@pytest.mark.parametrize("first", [False, True])
def test_a_step_of_runge_and_kutta(first):
    """Simpson's rule where the rate depends on time alone; four terms of an exponential."""
    found = runge_kutta_step(
        lambda t, x: cubic(t), 0.3, integral(0.3), 0.5, cubic(0.3) if first else None
    )
    assert_close(found, integral(0.8))
    z = -0.4
    (grown,) = runge_kutta_step(lambda t, x: z * x, 0.0, np.ones(1), 1.0)
    assert_close(grown, 1 + z + z**2 / 2 + z**3 / 6 + z**4 / 24)


def fake_chart(rate=lambda t, y: cubic(t)):
    return SimpleNamespace(rate=rate)


def test_four_steps_of_adams_and_bashforth_are_exact_for_cubics():
    """At every length of step, and after a change of length or of chart."""
    method, chart = chart_motion._METHODS["adams-bashforth"](), fake_chart()
    t, y = 0.0, integral(0.0)
    for h, count in ((0.01, 7), (0.3, 6), (0.05, 2), (2e-4, 6)):
        for _ in range(count):
            y, t = method(chart, t, y, h), t + h
            assert_close(y, integral(t), ulps=1e3, scale=1)
    for _ in range(6):
        y, t = method(fake_chart(), t, y, 0.1), t + 0.1
        assert_close(y, integral(t), ulps=1e3, scale=1)


@pytest.mark.parametrize("name", ["adams-bashforth", "bdf2", "bdf3"])
def test_a_step_that_is_taken_again_counts_once(name):
    def linear(t, z):
        return SimpleNamespace(rate=-2 * z + cubic(t), A=-2 * np.eye(2))

    chart = SimpleNamespace(rate=lambda t, y: -2 * y + cubic(t), linearize=linear)
    results = []
    for again in (1, 2, 3):
        method, t, y, h = chart_motion._METHODS[name](), 0.0, np.array([1.0, 2.0]), 0.1
        for _ in range(8):
            for _ in range(again):
                after = method(chart, t, y, h)
            y, t = after, t + h
        results.append(y)
    assert_close(results[1], results[0])
    assert_close(results[2], results[0])


@pytest.mark.parametrize(
    ("name", "degree"), [("backward-euler", 1), ("trapezoid", 2), ("bdf2", 2), ("bdf3", 3)]
)
def test_implicit_steps_are_exact_for_polynomials_of_their_order(name, degree):
    """Multistep methods after a start on the polynomial; a change of length starts anew."""

    def y_of(t):
        return np.array([(t - 0.2) ** degree, 1 + t**degree])

    def rate(t):
        return degree * np.array([(t - 0.2) ** (degree - 1), t ** (degree - 1)])

    chart = SimpleNamespace(
        rate=lambda t, y: rate(t) - 3 * (y - y_of(t)),
        linearize=lambda t, z: SimpleNamespace(rate=rate(t) - 3 * (z - y_of(t)), A=-3 * np.eye(2)),
    )
    method, h, steps = chart_motion._METHODS[name](), 0.1, 6
    for k in range(steps):
        found = method(chart, k * h, y_of(k * h), h)
        if k >= 2 or degree < 3:
            assert_close(found, y_of((k + 1) * h), ulps=1e4, scale=1)
    t = steps * h
    shorter = method(chart, t, y_of(t), 0.01)
    assert np.max(np.abs(shorter - y_of(t + 0.01))) < 1e-5


# --- Charts ---------------------------------------------------------------------------------------


def test_the_condition_of_no_equations_is_the_best():
    assert row_condition(np.zeros((0, 0)), np.zeros((0, 0))) == 1.0
    A = np.diag([1.0, 1e6, 1e-6])
    assert_close(row_condition(A, invert(A, "?")), 1.0)
    B = np.array([[1.0, 0.0], [3.0, 4.0]])  # rows of unit length: (1, 0), (0.6, 0.8)
    scaled = np.array([[1.0, 0.0], [0.6, 0.8]])
    expected = (
        np.linalg.norm(np.linalg.inv(scaled)) / np.sqrt(2) * np.linalg.norm(scaled) / np.sqrt(2)
    )
    assert_close(row_condition(B, invert(B, "?")), expected)


def test_a_linear_chart_inverts_rows_that_are_not_its_own(rng):
    """On a manifold the rows of positions turn with the body."""
    system = system_of(pinned_body())
    q = np.array([0.4, 0.0, 0.0])
    chart = charts.linear(system, q, np.array([[1.0, 0.3, -0.2]]))
    G = chart.system.G(q)
    for rows in (chart.R, rng.normal(size=(1, 3)), chart.position_rows(q + 0.1, np.zeros(1))):
        A = np.concatenate([rows, G])
        assert_close(chart.inverse(rows, G) @ A, np.eye(3), ulps=1e4)


def test_the_condition_of_a_state_chart_is_the_worse_of_two():
    system = pendulum()
    q, v = pendulum_state(0.7, 0.4)
    x = np.concatenate([q, v])
    B = np.array([[1.0, 0.2, 0.0, 0.0], [0.0, 0.1, 1.0, 0.3]])
    for D in (np.eye(2), np.array([[1.0, 1.0], [1.0, 1.001]])):
        relation = given_relation(
            lambda x, y, D=D: B @ x - D @ y, lambda x, y: B, lambda x, y, D=D: -D,
            lambda x, y, v, w: np.zeros(2),
        )  # fmt: skip
        chart = charts.StateChart(system, q, v, relation, y=np.linalg.solve(D, B @ x))
        A = np.concatenate([B, invariant_gradient(system, q, v)])
        conditions = [row_condition(X, np.linalg.inv(X)) for X in (A, -D)]
        assert_close(chart.condition(q, v), max(conditions), ulps=1e6)
        assert_close(chart.coordinates(q, v), np.linalg.solve(D, B @ x), ulps=1e7)
    assert conditions[1] > 10 * conditions[0]


def test_coordinates_of_a_state_are_found_from_either_side():
    """Residuals of any sign count: by Newton's method from a guess that is off."""
    system = pendulum()
    q, v = pendulum_state(0.7, 0.4)

    def R(x, y):
        return np.array([x[0] - np.sinh(y[0]), x[2] - np.sinh(y[1])])

    for guess in ([0.1, 0.1], [2.0, -2.0], [-1.0, 1.5]):
        chart = charts.state(
            system, q, v, R, y=np.array(guess),
            first=lambda x, y: np.eye(4)[[0, 2]], second=lambda x, y: -np.diag(np.cosh(y)),
        )  # fmt: skip
        assert_close(chart.coordinates(q, v), np.arcsinh([q[0], v[0]]), ulps=10)


def test_a_quadratic_form_gives_the_bilinear_one(rng):
    Q = rng.normal(size=(2, 5, 5))
    Q = Q + np.swapaxes(Q, 1, 2)

    def bias(x, y, v, w):
        z = np.concatenate([v, w])
        return np.einsum("kij,i,j->k", Q, z, z)

    relation = given_relation(None, None, None, bias)
    v, w, dx, dy = (rng.normal(size=n) for n in (3, 2, 3, 2))
    a, b = np.concatenate([v, w]), np.concatenate([dx, dy])
    found = relation.cross(np.zeros(3), np.zeros(2), v, w, dx, dy)
    assert_close(found, np.einsum("kij,i,j->k", Q, a, b), ulps=1e3)


# --- Units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("factor", [2.0, -1.0])
def test_a_wrong_derivative_is_found_in_any_unit(size, factor, rng):
    system = pendulum()
    wrong = replace(
        system, g=lambda q: size * system.g(q), G=lambda q: factor * size * system.G(q),
        Gdot_v=lambda q, v: factor * size * system.Gdot_v(q, v), energy=None,
    )  # fmt: skip
    with pytest.raises(ShapeError, match=r"G\(q\) @ v is not the rate of g\(q\)"):
        wrong.check(rng.normal(size=2), rng.normal(size=2))
    replace(wrong, G=lambda q: size * system.G(q),
            Gdot_v=lambda q, v: size * system.Gdot_v(q, v)).check(
        rng.normal(size=2), rng.normal(size=2))  # fmt: skip


def test_inverse_singular_values():
    form = SVDForm(pendulum(), threshold=1e-3)
    sigma = np.array([4.0, 0.5, 3e-3, 0.0])
    assert_close(form.inverse_values(sigma), [0.25, 2.0, 0.0, 0.0])
    damped = SVDForm(pendulum(), threshold=1e-3, damping=0.5)
    assert_close(damped.inverse_values(sigma), [4 / 16.25, 1.0, 0.0, 0.0])
    assert len(form.inverse_values(np.zeros(0))) == 0


def test_only_right_at_a_singularity_the_motion_is_arbitrary():
    system = five_bar()
    form = SVDForm(system, q=np.zeros(4))
    away = [form.evaluate(0.0, SINGULAR + h, np.zeros(4), warn=False) for h in (0.0, 1e-10, 1e-2)]
    assert [seen.is_arbitrary for seen in away] == [True, False, False]
    assert away[1].kappa < 1e12 < away[0].kappa


def test_a_watch_reports_the_lowest_of_a_parabola():
    """Squares of singular values are a parabola in time."""

    def seen(t, kappa):
        sigma = np.sqrt(2 * (t - 0.33) ** 2 + 1e-4)
        return SimpleNamespace(sigma=np.array([1.0, sigma]), kappa=kappa, indicator=0.5)

    for limit, kappa, count in ((100.0, 99.0, 0), (100.0, 101.0, 1), (5.0, 7.0, 1)):
        watch = SingularityWatch(limit)
        found = [watch.update(t, seen(t, kappa)) for t in (0.0, 0.1, 0.25, 0.4, 0.6)]
        assert len(watch.passes) == count
        if count:
            assert found[4] is watch.passes[0] or found[3] is watch.passes[0]
            assert_close(watch.passes[0].time, 0.33, ulps=1e4)
            assert watch.passes[0].kappa == kappa


def test_energies_of_a_motion_add_up():
    system = absolute_five_bar()
    q = np.array([2 * np.pi / 3, np.arccos(2 / 3), -np.arccos(2 / 3), -2 * np.pi / 3])
    v = SVDForm(system).evaluate(0.0, q, np.zeros(4)).K @ np.array([0.5, -0.3])
    motion = integrate_system(system, q, v, 0.05, 0.01)
    for k in range(len(motion.t)):
        kinetic = motion.v[k] @ system.M(motion.q[k]) @ motion.v[k] / 2
        assert_close(motion.kinetic[k], kinetic)
        total = system.energy(motion.q[k], motion.v[k])
        assert_close(motion.kinetic[k] + motion.potential[k], total, ulps=1e3, scale=100)


def test_newton_measures_steps_in_the_weights_that_it_is_given():
    """The same equations in other units take the same steps."""
    counts = []
    for unit in (1.0, 1e-6, 1e6):

        def step(x, unit=unit):
            y = x / unit
            return unit * -(y**3 - 8) / (3 * y**2), np.inf

        found = newton(step, np.array([3.0 * unit]), tolerance=1e-10, weights=1 / unit)
        assert_close(found.x, [2 * unit])
        counts.append(found.iterations)
    assert len(set(counts)) == 1
