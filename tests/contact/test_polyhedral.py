"""Friction cones with flat sides, as linear complementarity problems."""

import numpy as np
import pytest
from support.contact_scenes import ball_in_slot, box

from kinetree.contact.complementarity import cones, lcp, polyhedral
from kinetree.contact.complementarity.rows import MixedRows
from kinetree.errors import ShapeError


def test_more_sides_come_closer_to_the_true_cone(rng):
    J = rng.normal(size=(9, 12))
    A, b, mu = J @ J.T, J @ rng.normal(size=12), np.full(3, 0.4)
    true, errors = cones.solve(A, b, mu).lam, []
    for sides in (4, 16, 64):
        found = polyhedral.solve(A, b, mu, sides=sides)
        assert found.solved
        assert found.problem.residuals.scaled < 1e-12
        errors.append(np.max(np.abs(found.lam - true)))
    assert errors[2] < 0.01 < errors[0]


def test_sliding_along_a_corner_is_exact():
    found = polyhedral.solve(np.diag([1.0, 3.5, 3.5]), [-2.0, 5.0, 0.0], [0.3], sides=4)
    np.testing.assert_allclose(found.lam, [2.0, -0.6, 0.0], atol=1e-14)
    np.testing.assert_allclose(found.w, [0.0, 2.9, 0.0], atol=1e-14)
    np.testing.assert_allclose(found.problem.lam[-1], 2.9)  # the multiplier: speed of sliding


def test_redundant_contacts(rng):
    for _ in range(10):
        A, b, mu = box(rng)
        found = polyhedral.solve(A, b, mu)
        assert found.solved
        normal, tangents = found.lam[::3], found.lam.reshape(-1, 3)[:, 1:]
        assert np.all(found.w[::3] > -1e-12)
        assert np.all(np.hypot(*tangents.T) <= mu * normal + 1e-12)
        assert abs(normal @ found.w[::3]) < 1e-12
        assert found.lam @ found.w < 1e-12  # friction takes energy


def test_loops_limits_and_dry_friction(rng):
    low, high = [-np.inf, 0.0, -0.1, -np.inf], [np.inf, np.inf, 0.2, 0.0]
    for _ in range(4):
        J = rng.normal(size=(10, 12))
        A, b = J @ J.T, J @ rng.normal(size=12)
        found = polyhedral.solve(A, b, [0.5, 0.5], low=low, high=high, sides=128)
        assert found.solved
        true = cones.solve(A, b, [0.5, 0.5], low=low, high=high)
        np.testing.assert_allclose(found.lam, true.lam, atol=0.02)
        assert abs(found.w[6]) < 1e-11


def test_closing_walls_have_a_certificate():
    found = polyhedral.solve(ball_in_slot(0.0), [-1.0, 0, 0, 0.5, 0, 0], [0.3, 0.3])
    assert not found.solved
    assert found.problem.certificate is not None


def test_small_problems_can_be_enumerated():
    rows = MixedRows(np.array([0.3]), np.zeros(0), np.zeros(0))
    M, d, P, start = polyhedral.complementarity_problem(
        np.diag([1.0, 3.5, 3.5]), np.array([-2.0, 5.0, 0.0]), rows, 4
    )
    (only,) = lcp.enumerated(M, d)
    np.testing.assert_allclose(start + P @ only.lam[:5], [2.0, -0.6, 0.0], atol=1e-14)


def test_a_cone_needs_three_sides():
    assert polyhedral.solve(np.eye(3), [-1.0, 0, 0], [0.5], sides=3).solved
    with pytest.raises(ShapeError, match="needs 3 sides or more, got 2"):
        polyhedral.solve(np.eye(3), np.zeros(3), [0.5], sides=2)
