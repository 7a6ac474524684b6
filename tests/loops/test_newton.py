import numpy as np
import pytest
from support.linkages import pendulum

from kinetree.errors import SingularError
from kinetree.loops.state_space import charts
from kinetree.loops.state_space.invariants import newton


def steps_of(lengths, residuals=None):
    """A step function that makes steps of given lengths."""
    given = iter(zip(lengths, residuals or [np.inf] * len(lengths), strict=True))

    def step(x):
        length, residual = next(given)
        return np.array([length]), residual

    return step


@pytest.mark.covers("Spencer 2.3", by=newton)
def test_the_pendulum_of_the_tutorial_takes_five_steps():
    """y = q1 = 0.6 from (0.5, 0.9): quadratic convergence to (0.6, 0.8)."""

    def step(q):
        phi = np.array([q[0] - 0.6, q @ q - 1])
        A = np.array([[1, 0], 2 * q])
        return -np.linalg.solve(A, phi), np.inf

    found = newton(step, np.array([0.5, 0.9]), tolerance=1e-14)
    np.testing.assert_allclose(found.x, [0.6, 0.8], atol=1e-15)
    assert found.iterations == 5
    np.testing.assert_allclose(found.steps[:4], [0.134, 1.1e-2, 7.6e-5, 3.6e-9], rtol=0.05)


@pytest.mark.covers("Spencer 2.3", by=newton)
def test_the_error_bound_is_above_the_error():
    def step(q):
        phi = np.array([q[0] - 0.6, q @ q - 1])
        return -np.linalg.solve(np.array([[1, 0], 2 * q]), phi), np.inf

    for tolerance in (1e-1, 1e-3, 1e-6):
        found = newton(step, np.array([0.5, 0.9]), tolerance=tolerance)
        assert np.linalg.norm(found.x - [0.6, 0.8]) <= found.error <= tolerance


@pytest.mark.covers("Spencer 2.3", by=newton)
def test_one_step_proves_nothing_but_two_may():
    # after the first step the rate is 1 and the bound infinite
    found = newton(steps_of([1e-6, 1e-12]), np.zeros(1), tolerance=1e-9)
    assert found.iterations == 2
    # rho = (1e-6)^(1/2), bound rho / (1 - rho) times the last step
    assert found.error == pytest.approx(1e-3 / (1 - 1e-3) * 1e-12)


def test_a_first_step_of_zero_is_the_solution():
    found = newton(steps_of([0.0]), np.ones(1), tolerance=0.0)
    assert (found.iterations, found.error) == (1, 0.0)


def test_a_step_of_rounding_size_ends_the_iteration():
    assert newton(steps_of([1e-16]), np.ones(1), tolerance=0.0).iterations == 1


def test_steps_within_the_tolerance_need_not_shorten():
    found = newton(steps_of([3e-14, 4e-14]), np.ones(1), tolerance=1e-12)
    assert (found.iterations, found.error) == (2, 4e-14)


def test_steps_that_do_not_shorten_are_an_error():
    with pytest.raises(SingularError, match="the equations diverges: step 2 has length 2"):
        newton(steps_of([1.0, 2.0]), np.zeros(1))
    with pytest.raises(SingularError, match="diverges"):
        newton(steps_of([1.0, 1.0]), np.zeros(1))
    with pytest.raises(SingularError, match="diverges"):
        newton(steps_of([np.nan]), np.zeros(1))


def test_too_many_steps_are_an_error():
    with pytest.raises(SingularError, match="has not converged in 4 steps"):
        newton(steps_of(0.9 ** np.arange(4)), np.zeros(1), limit=4)


@pytest.mark.covers("Spencer 2.3", by=newton)
def test_a_small_residual_ends_the_iteration_before_the_next_step():
    found = newton(steps_of([0.1, 0.1], [1.0, 1e-4]), np.zeros(1), residual_tolerance=1e-3)
    assert found.iterations == 1
    assert found.x == pytest.approx([0.1])


@pytest.mark.covers("Spencer 2.3", by=newton)
def test_units_of_lengths_do_not_change_the_number_of_steps():
    """A residual in millimetres is the same with weights, and another without."""

    def steps(unit, weight, tolerance):
        def step(q):
            phi = np.array([q[0] - 0.6, unit * (q @ q - 1)])
            A = np.array([[1, 0], unit * 2 * q])
            return -np.linalg.solve(A, phi), np.linalg.norm([phi[0], weight * phi[1]])

        start = np.array([0.5, 0.9])
        return newton(step, start, tolerance=0, residual_tolerance=tolerance).iterations

    for tolerance in (1e-2, 1e-5, 1e-9):
        assert steps(1.0, 1.0, tolerance) == steps(1e3, 1e-3, tolerance)
    assert steps(1e3, 1.0, 1e-2) > steps(1.0, 1.0, 1e-2)


def test_a_chart_reports_its_iterations():
    chart = charts.partition(pendulum(), np.array([0.6, 0.8]), independent=[0])
    point = chart.solve([0.5, 0.0])
    np.testing.assert_allclose(point.q, [0.5, np.sqrt(0.75)], atol=1e-15)
    assert 2 <= point.iterations <= 6
