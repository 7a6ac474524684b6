"""Error bounds of Newton's method, and what a projection does by default."""

import numpy as np
import pytest

from kinetree.loops.state_space.invariants import newton
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.textbook.system_invariants import project_position


def test_the_bound_of_slow_convergence_is_above_the_error():
    """Every step halves the distance to the solution, and is as long as what is left of it."""
    for tolerance in (1e-1, 1e-4, 1e-8):
        found = newton(lambda x: (-x / 2, np.inf), np.ones(1), tolerance=tolerance)
        assert abs(found.x[0]) <= found.error <= tolerance


def test_the_bound_is_that_of_a_geometric_series():
    """Steps of 1 and 1/16: the mean rate is 1/4, and 1/4 + 1/16 + ... = 1/3 of the last follows."""
    steps = iter([1.0, 1 / 16])
    found = newton(lambda x: (np.array([next(steps)]), np.inf), np.zeros(1), tolerance=0.025)
    assert found.error == pytest.approx(1 / 48, rel=1e-14)


def test_positions_go_to_the_nearest_point_on_request_alone():
    """On an ellipse, from a start far away."""
    stretch = np.array([1.0, 3.0])
    ellipse = ConstrainedSystem(
        n=2, m=1, M=lambda q: np.eye(2), F=lambda t, q, v: np.zeros(2),
        g=lambda q: np.array([stretch @ q**2 - 1]), G=lambda q: 2 * (stretch * q)[None],
        Gdot_v=lambda q, v: np.array([2 * stretch @ v**2]),
    )  # fmt: skip
    q = np.array([1.1, 0.6])
    plain, near, nearest = (
        project_position(ellipse, q, **options)
        for options in ({}, {"nearest": False}, {"nearest": True})
    )
    for found in (plain, near, nearest):
        assert abs(ellipse.g(found)[0]) < 1e-12
    assert np.array_equal(plain, near)
    away = q - nearest
    along = stretch * nearest
    assert abs(away[0] * along[1] - away[1] * along[0]) < 1e-12  # the normal passes through q
    assert np.linalg.norm(plain - nearest) > 1e-3
