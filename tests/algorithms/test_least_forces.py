"""Forces of least norm under equations and bounds, against independent solvers."""

import numpy as np
import pytest
from scipy import optimize
from support.closeness import assert_close

from kinetree.algorithms.closed.inverse_dynamics import (
    least_distance,
    least_forces,
    nonnegative_least_squares,
)


@pytest.mark.parametrize("seed", range(20))
def test_nonnegative_least_squares_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    E, f = rng.standard_normal((6, 4 + seed % 5)), rng.standard_normal(6)
    assert_close(nonnegative_least_squares(E, f), optimize.nnls(E, f)[0], ulps=1e6)


@pytest.mark.parametrize("seed", range(20))
def test_least_forces_satisfy_the_conditions_of_optimality(seed):
    rng = np.random.default_rng(seed)
    m, p = 2, 5
    A, w = rng.standard_normal((m, p)), rng.uniform(0.5, 2, p)
    inside = rng.uniform(-0.8, 0.8, p)
    low, high = -np.ones(p), np.ones(p)
    u = least_forces(A, A @ inside, m, w, low, high)
    assert_close(A @ u, A @ inside, ulps=1e5)
    assert np.all((low <= u) & (u <= high))
    free = (u > -1 + 1e-9) & (u < 1 - 1e-9)
    # w u = Aᵀ y + mu, with mu pushing inwards at the bounds only
    y = np.linalg.lstsq(A[:, free].T, (w * u)[free], rcond=None)[0]
    mu = w * u - A.T @ y
    assert_close(mu[free], 0 * mu[free], ulps=1e6, scale=1.0)
    assert np.all(mu[u <= -1 + 1e-9] >= -1e-9)
    assert np.all(mu[u >= 1 - 1e-9] <= 1e-9)


def test_no_point_within_the_bounds():
    A, b = np.array([[1.0, 1.0]]), np.array([3.0])
    low, high = -np.ones(2), np.ones(2)
    assert least_forces(A, b, 1, np.ones(2), low, high) is None
    assert_close(least_forces(A, b, 1, np.ones(2)), [1.5, 1.5])
    assert least_distance(np.zeros((1, 2)), np.array([1.0])) is None
    assert_close(least_distance(np.eye(2), np.array([2.0, -1.0])), [2.0, 0.0])
    assert_close(least_distance(np.eye(2), np.zeros(2)), np.zeros(2))
    assert_close(least_distance(np.zeros((1, 2)), np.array([-1.0])), np.zeros(2))


@pytest.mark.parametrize("seed", range(20))
def test_nonnegative_least_squares_with_columns_that_are_nearly_alike(seed):
    """Many unknowns enter and leave again, several at a time: the conditions of optimality."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((9, 1)) + 0.3 * rng.standard_normal((9, 7 + seed % 9))
    f = rng.standard_normal(9)
    x = nonnegative_least_squares(E, f)
    w = E.T @ (f - E @ x)
    assert np.all(x >= 0)
    assert np.max(w) < 1e-10
    assert_close(w[x > 0], 0 * w[x > 0], ulps=1e5, scale=1.0)
    assert_close(np.linalg.norm(E @ x - f), optimize.nnls(E, f)[1], ulps=1e5)


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e6, 1e-3), (1e-8, 1e5)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_least_distance_has_the_units_of_its_terms(units, sign):
    C, d = np.array([[3.0, 4.0], [0.1, 0.2]]), np.array([10.0, -1.0])
    y = least_distance(sign * units[0] * C, units[1] * d)
    assert_close(y, sign * units[1] / units[0] * np.array([1.2, 1.6]))
    # one inequality is enough where the other follows, both are met where neither does
    y = least_distance(-sign * units[0] * np.eye(2), units[1] * np.array([0.5, 2.0]))
    assert_close(y, -sign * units[1] / units[0] * np.array([0.5, 2.0]))
    against = np.array([[1.0, 0], [-1.0, 0]])
    assert least_distance(units[0] * against, units[1] * np.array([1.0, -0.5])) is None
