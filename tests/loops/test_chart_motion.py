"""Motions on charts: no drift, the order of the method, new charts where old ones end."""

from functools import partial

import numpy as np
import pytest
from support.linkages import (
    HOME,
    SINGULAR,
    five_bar,
    pendulum,
    pendulum_state,
    pinned_body,
    swinging_body,
)

from kinetree import samples
from kinetree.errors import ShapeError, SingularError, UnknownNameError
from kinetree.loops.state_space import charts, multipliers
from kinetree.loops.state_space.model_system import system_of
from kinetree.quantities import dynamics
from kinetree.textbook.chart_motion import runge_kutta_step
from kinetree.textbook.system_invariants import drift, project_position
from kinetree.textbook.system_motion import integrate_system

ANGLE, RATE, TIME = -1.0, 7.0, 1.0  # fast enough to go over the top


def exact_angle(duration, steps=20000):
    """Angle of the pendulum by its own equation, in one coordinate."""
    h, x = duration / steps, np.array([ANGLE, RATE])
    for _ in range(steps):
        x = runge_kutta_step(lambda t, x: np.array([x[1], -9.81 * np.cos(x[0])]), 0, x, h)
    return x


@pytest.fixture(scope="module")
def at_end():
    return np.concatenate(pendulum_state(*exact_angle(TIME)))


def error_of(method, h, at_end, make=charts.partition):
    q, v = pendulum_state(ANGLE, RATE)
    motion = charts.integrate_on_charts(pendulum(), q, v, TIME, h, method=method, make=make)
    found = np.concatenate([motion.q[-1], motion.v[-1]])
    return np.linalg.norm(found - at_end), motion


@pytest.mark.covers("Spencer 2.2", by=charts.integrate_on_charts)
@pytest.mark.parametrize(
    ("method", "order", "make"),
    [
        ("runge-kutta", 4, charts.partition),
        ("runge-kutta", 4, charts.tangent),
        ("adams-bashforth", 4, charts.partition),
        ("adams-bashforth", 4, charts.tangent),
        ("trapezoid", 2, charts.partition),
        ("trapezoid", 2, charts.tangent),
        ("bdf2", 2, charts.partition),
        ("bdf2", 2, charts.tangent),
        ("bdf3", 3, charts.partition),
        ("bdf3", 3, charts.tangent),
    ],
)
def test_methods_keep_their_order_across_charts(method, order, make, at_end):
    """A full turn of the pendulum, whose Cartesian coordinates each fail twice a turn."""
    count = {"adams-bashforth": 200, "bdf2": 75, "bdf3": 150}.get(method, 50)
    errors = []
    for n in (count, 2 * count):
        error, motion = error_of(method, TIME / n, at_end, make)
        errors.append(error)
        assert motion.changes >= 3
        assert max(drift(pendulum(), motion.q, motion.v).largest()[:2]) < 1e-11
    observed = np.log2(errors[0] / errors[1])
    assert observed == pytest.approx(order, abs=0.5)


@pytest.mark.covers("Spencer 2.2", by=charts.integrate_on_charts)
def test_the_local_form_does_not_drift_while_the_underlying_equation_does():
    """Three seconds of the five-bar, swinging about its stable equilibrium."""
    system = five_bar()
    angles = np.deg2rad([275.88390, -74.63356, 74.63356, -275.88390])
    q = project_position(system, np.diff(angles - HOME, prepend=0))
    v = np.linalg.svd(system.G(q))[2][2:].T @ [1.5, 1.0]
    on_charts = charts.integrate_on_charts(system, q, v, 3.0, 0.02)
    free = integrate_system(system, q, v, 3.0, 0.02, form="multipliers", hold="nothing")
    held = drift(system, on_charts.q, on_charts.v).largest()
    assert held.position < 1e-12
    assert held.velocity < 1e-12
    assert free.drift.largest().position > 1e-7
    # the same motion up to the error of the method
    np.testing.assert_allclose(on_charts.q[50], free.q[50], atol=2e-5)
    assert held.energy < 1e-4


@pytest.mark.covers("Spencer 2.2", by=charts.AbstractChart.rate)
def test_both_equations_have_the_same_solution(at_end):
    """x(t) and psi(y(t)) by the same method: they differ by its order."""
    system = pendulum()
    n, gaps = system.n, []

    def f(t, x):
        return np.concatenate([x[n:], multipliers.acceleration(system, t, x[:n], x[n:])])

    for h in (0.01, 0.005):
        x = np.concatenate(pendulum_state(ANGLE, RATE))
        for i in range(round(0.2 / h)):
            x = runge_kutta_step(f, i * h, x, h)
        q, v = pendulum_state(ANGLE, RATE)
        motion = charts.integrate_on_charts(system, q, v, 0.2, h)
        gaps.append(np.linalg.norm(np.concatenate([motion.q[-1], motion.v[-1]]) - x))
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(4, abs=0.5)


@pytest.mark.covers("Spencer 2.3", by=charts.Atlas)
def test_charts_are_replaced_where_they_become_poor_and_not_at_every_step():
    system = pendulum()
    q, v = pendulum_state(ANGLE, RATE)
    atlas = charts.Atlas(system, q, v, make=charts.partition)
    assert not atlas.is_worn
    assert not atlas.follow(q, v)
    first = atlas.chart
    angle = ANGLE
    while not atlas.is_worn:
        angle += 0.02
        atlas.chart.state(atlas.chart.coordinates(*pendulum_state(angle, RATE)))
    assert abs(angle - ANGLE) > 0.3
    assert atlas.follow(*pendulum_state(angle, RATE))
    assert atlas.chart is not first
    assert atlas.changes == 1
    assert not atlas.is_worn
    # coordinates are those of the new chart, the other one of q
    y = atlas.chart.coordinates(*pendulum_state(angle, RATE))
    assert y[0] == pytest.approx(pendulum_state(angle, RATE)[0][0 if first.R[0, 1] else 1])


def test_no_chart_follows_a_motion_into_a_singularity():
    """Charts give up, and say what does not: the five-bar passes at 0.65 s."""
    system = five_bar()
    atlas = charts.Atlas(system, np.zeros(4))
    with pytest.raises(SingularError, match=r"kt\.loops\.SVDForm"):
        atlas.chart = atlas._begin(SINGULAR, np.zeros(4))


def test_a_step_that_no_chart_can_make_is_an_error():
    system = pendulum()
    q, v = pendulum_state(ANGLE, RATE)
    atlas = charts.Atlas(system, q, v)
    with pytest.raises(SingularError, match="take a shorter step"):
        atlas.step(0.0, q, v, lambda chart, t, y: y + np.array([5.0, 0.0]))  # beyond the circle


def by_system(system, q, v, duration, step):
    return integrate_system(system, q, v, duration, step, hold="nothing")


MOTIONS = {
    "system": by_system,
    **{m: partial(charts.integrate_on_charts, method=m)
       for m in ("runge-kutta", "adams-bashforth", "trapezoid")},
}  # fmt: skip


@pytest.mark.parametrize("follow", MOTIONS.values(), ids=MOTIONS)
def test_motions_end_at_the_duration_with_a_shorter_step(follow):
    q, v = pendulum_state(ANGLE, RATE)
    motion = follow(pendulum(), q, v, 0.055, 0.01)
    np.testing.assert_array_equal(motion.t, [*(0.01 * np.arange(6)), 0.055])
    assert len(motion.q) == len(motion.v) == 7
    fine = follow(pendulum(), q, v, 0.055, 0.0011)
    error = np.max(np.abs(motion.q[-1] - fine.q[-1]))
    assert error < 1e-3 < np.max(np.abs(motion.q[-2] - fine.q[-1]))
    even = follow(pendulum(), q, v, 0.07, 0.01)  # 0.07 / 0.01 > 7
    np.testing.assert_array_equal(even.t, [*(0.01 * np.arange(7)), 0.07])
    assert follow(pendulum(), q, v, 0.0, 0.1).t.tolist() == [0.0]


@pytest.mark.parametrize("follow", [by_system, charts.integrate_on_charts])
@pytest.mark.parametrize(("duration", "step"), [(-1.0, 0.1), (1.0, 0.0), (np.inf, 0.1)])
def test_durations_and_steps_that_lead_nowhere_are_named(follow, duration, step):
    q, v = pendulum_state(ANGLE, RATE)
    with pytest.raises(ShapeError, match=r"a duration \[s\] that is not negative and a step \[s\]"):
        follow(pendulum(), q, v, duration, step)


def test_unknown_methods_are_named():
    q, v = pendulum_state(ANGLE, RATE)
    with pytest.raises(UnknownNameError, match="no method is called 'euler'"):
        charts.integrate_on_charts(pendulum(), q, v, 1.0, 0.1, method="euler")


@pytest.mark.covers("Spencer 2.2", by=charts.integrate_on_charts)
def test_motion_of_a_pinned_body_is_that_of_a_hinge():
    """Charts on a configuration space that is not flat, against one joint coordinate."""
    system, hinged = system_of(pinned_body()), swinging_body()
    motion = charts.integrate_on_charts(system, [0.4, 0, 0], [1.7, 0, 0], 0.5, 0.01)
    x = np.array([0.4, 1.7])
    for _ in range(50):
        x = runge_kutta_step(
            lambda t, x: np.array(
                [x[1], dynamics.forward_dynamics(hinged, x[:1], x[1:], [0.0])[0]]
            ),
            0, x, 0.01,
        )  # fmt: skip
    np.testing.assert_allclose(motion.q[-1], [x[0], 0, 0], atol=1e-7)
    np.testing.assert_allclose(motion.v[-1], [x[1], 0, 0], atol=1e-6)
    assert max(drift(system, motion.q, motion.v).largest()[:2]) < 1e-12


def test_over_constrained_spatial_linkages_move_on_charts():
    """Bennett's linkage: six constraints of which three are independent."""
    model = samples.bennett()
    system = system_of(model)
    q = model.neutral()
    chart = charts.tangent(system, q)
    v = chart.R.T @ [2.0]
    motion = charts.integrate_on_charts(system, q, v, 0.3, 0.006)
    held = drift(system, motion.q, motion.v).largest()
    assert held.position < 1e-12
    assert held.velocity < 1e-11
    assert held.energy < 1e-6
