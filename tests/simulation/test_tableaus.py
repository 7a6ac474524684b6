"""Tables of integrators against their order conditions and against SciPy's."""

import numpy as np
import pytest
from scipy.integrate import RK45
from support.closeness import assert_close

from kinetree.integration import explicit, rosenbrock

EXPLICIT = (
    explicit.EULER,
    explicit.MIDPOINT,
    explicit.HEUN,
    explicit.RK4,
    explicit.RK6,
    explicit.DORMAND_PRINCE,
)
every_table = pytest.mark.parametrize("table", EXPLICIT, ids=lambda t: t.name)


def matrix(rows):
    A = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        A[i, : len(row)] = row
    return A


def conditions(A, b, c):
    """Left and right sides of Butcher's conditions, by order."""
    yield 1, b.sum(), 1
    yield 2, b @ c, 1 / 2
    yield 3, b @ c**2, 1 / 3
    yield 3, b @ A @ c, 1 / 6
    yield 4, b @ c**3, 1 / 4
    yield 4, b @ (c * (A @ c)), 1 / 8
    yield 4, b @ A @ c**2, 1 / 12
    yield 4, b @ A @ A @ c, 1 / 24
    yield 5, b @ c**4, 1 / 5
    yield 5, b @ (c**2 * (A @ c)), 1 / 10
    yield 5, b @ A @ A @ A @ c, 1 / 120
    yield 6, b @ c**5, 1 / 6
    yield 6, b @ (c**3 * (A @ c)), 1 / 12
    yield 6, b @ (c * (A @ c) ** 2), 1 / 24
    yield 6, b @ A @ A @ A @ A @ c, 1 / 720


@every_table
def test_weights_satisfy_the_conditions_of_their_order_and_no_more(table):
    A, b, c = matrix(table.a), np.array(table.b), np.array(table.c)
    assert_close(A.sum(axis=1), c)
    gaps = {}
    for order, left, right in conditions(A, b, c):
        gaps[order] = max(gaps.get(order, 0.0), abs(left - right))
    assert all(gap < 1e-14 for order, gap in gaps.items() if order <= table.order)
    if table.order + 1 in gaps:
        assert gaps[table.order + 1] > 1e-4


@every_table
def test_interpolants_end_at_the_result_and_begin_with_the_first_slope(table):
    if not table.dense:
        return
    dense = np.array(table.dense)
    assert_close(dense.sum(axis=1), np.array(table.b), ulps=1000)
    assert_close(dense[:, 0], np.eye(len(dense))[0])


@pytest.mark.covers("RBDA 11.5", by="integration.explicit.HEUN")
def test_interpolant_of_heun_has_the_slope_of_each_stage_at_its_time():
    """Slope k1 at 0 and k2 at 2/3 of the step."""
    dense, theta = np.array(explicit.HEUN.dense), 2 / 3
    assert_close(dense @ [1, 2 * theta], np.array([0.0, 1.0]), scale=1.0)


def test_embedded_weights_of_dormand_and_prince_have_order_four():
    table = explicit.DORMAND_PRINCE
    A, b, c = matrix(table.a), np.array(table.b_embedded), np.array(table.c)
    for order, left, right in conditions(A, b, c):
        if order <= table.embedded_order:
            assert_close(left, np.float64(right))


def test_dormand_and_prince_are_those_of_scipy():
    table = explicit.DORMAND_PRINCE
    A, b = matrix(table.a), np.array(table.b)
    assert_close(A[:6, :5], RK45.A)
    assert_close(b[:6], RK45.B)
    assert_close(np.array(table.b_embedded) - b, RK45.E, scale=1.0)
    assert_close(np.array(table.dense), RK45.P, ulps=1000)


def test_rodas3_satisfies_the_conditions_of_order_three():
    """In the variables of Hairer and Wanner: ``C = 1/γ - Γ⁻¹``, ``A = α Γ⁻¹``, ``m = b Γ⁻¹``."""
    t = rosenbrock.RODAS3
    G = np.linalg.inv(np.eye(4) / t.gamma - matrix(t.c))
    alpha, b = matrix(t.a) @ G, np.array(t.m) @ G
    beta = alpha + G
    assert_close(alpha.sum(axis=1), np.array(t.alpha), scale=1.0)
    assert_close(G.sum(axis=1), np.array(t.gammas), scale=1.0)
    one, beta_i, alpha_i = np.ones(4), beta.sum(axis=1), alpha.sum(axis=1)
    for left, right in (
        (b @ one, 1),
        (b @ beta_i, 1 / 2),
        (b @ alpha_i**2, 1 / 3),
        (b @ beta @ beta_i, 1 / 6),
    ):
        assert abs(left - right) < 1e-14


def test_ros34pw2_satisfies_the_conditions_of_order_three_whatever_the_matrix():
    """Rang and Angermann (2005): with ``α`` and ``Γ`` apart; L-stable with the true Jacobian."""
    t = rosenbrock.ROS34PW2
    G = np.linalg.inv(np.eye(4) / t.gamma - matrix(t.c))
    alpha, b = matrix(t.a) @ G, np.array(t.m) @ G
    embedded = (np.array(t.m) - np.array(t.e)) @ G
    assert_close(alpha.sum(axis=1), np.array(t.alpha), scale=1.0)
    assert_close(G.sum(axis=1), np.array(t.gammas), scale=1.0)
    one, a, g = np.ones(4), alpha.sum(axis=1), G.sum(axis=1)
    second = ((one, 1), (a, 1 / 2), (g, 0))
    third = ((a**2, 1 / 3), (alpha @ a, 1 / 6), (alpha @ g, 0), (G @ a, 0), (G @ g, 0))
    assert max(abs(b @ left - right) for left, right in second + third) < 1e-14
    assert max(abs(embedded @ left - right) for left, right in second) < 1e-14
    assert max(abs(embedded @ left - right) for left, right in third) > 1e-3
    for z in (-1e8, *1j * np.logspace(-2, 8, 50)):
        growth = 1 + z * b @ np.linalg.solve(np.eye(4) - z * (alpha + G), one)
        assert abs(growth) <= 1 + 1e-12
    assert abs(growth) < 1e-7  # at infinity
