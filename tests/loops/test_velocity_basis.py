"""Velocities from independent ones: the parallel four-bar, and choices of coordinates."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import parallel_four_bar, parallelogram

import kinetree as kt
from kinetree.loops.kinematics.constraint import closure_error, constraint
from kinetree.loops.kinematics.projection import project_configuration
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.velocity_basis import (
    coordinate_changes,
    coordinate_rates,
    coordinate_values,
    move_coordinates,
    velocity_basis,
)
from kinetree.samples.earthmovers import loader

FOUR_BAR = parallel_four_bar(L1=1.3, L2=0.8)


def basis(q, independent):
    K = constraint(FOUR_BAR, q, np.zeros(4)).K
    chosen = coordinates(FOUR_BAR, K, independent)
    return chosen, velocity_basis(FOUR_BAR, q, K, chosen)


@pytest.mark.covers("Spencer 2.4", "Spencer A.3", by=velocity_basis)
def test_a_parallelogram_has_constant_velocity_ratios(rng):
    for angles in rng.uniform(0.3, 1.2, (4, 2)) + np.array([0.5, -0.5]):
        _, (G, inverse) = basis(parallelogram(*angles), ["q1", "q2"])
        assert_close(G, [[1, 0], [0, 1], [1, -1], [-1, 1]], ulps=1e3)
        K = constraint(FOUR_BAR, parallelogram(*angles), np.zeros(4)).K
        assert_close(inverse @ np.vstack([np.eye(4)[:2], K]), np.eye(4), ulps=1e3)


def test_every_choice_describes_the_same_velocities(rng):
    q = parallelogram(0.9, 0.35)
    _, (N, _) = basis(q, "tangent")
    assert_close(N.T @ N, np.eye(2))
    qd = N @ rng.standard_normal(2)
    for independent in (None, "tangent", ["q1", "q2"], ["q2", "q3"], ["q1", "A"], ["q4", "q1"]):
        chosen, (G, _) = basis(q, independent)
        assert_close(G @ coordinate_rates(FOUR_BAR, q, qd, chosen), qd, ulps=1e4)


@pytest.mark.parametrize("independent", [["q1", "q2"], ["q1", "A"], "tangent"])
def test_positions_by_newtons_method(independent, rng):
    q = parallelogram(0.9, 0.35)
    chosen, _ = basis(q, independent)
    dy = 0.2 * rng.standard_normal(2)
    there = move_coordinates(FOUR_BAR, q, dy, chosen)
    assert np.abs(closure_error(FOUR_BAR, there)).max() < 1e-14
    assert_close(coordinate_changes(FOUR_BAR, q, there, chosen), dy, ulps=1e3, scale=1)
    if independent == ["q1", "q2"]:
        assert_close(there, parallelogram(*(q[:2] + dy)), ulps=1e3)


def test_a_flat_parallelogram_has_a_freedom_more():
    with pytest.raises(kt.LoopError, match=r"has 3 degrees of freedom here; .* got 2: q1, q2"):
        basis(parallelogram(0.4, 0.4), ["q1", "q2"])


def test_coordinates_of_a_batch_are_those_of_its_samples(rng):
    """Variables of the tree, and one of a loop joint."""
    m = loader()
    q = project_configuration(m, 0.05 * rng.standard_normal((2, m.nv)))
    K = constraint(m, q, np.zeros((2, m.nv))).K
    chosen = coordinates(m, K, ["tilt_eye", "boom_joint"])
    assert chosen.loops
    many = coordinate_values(m, q, chosen)
    assert np.min(np.abs(many[0] - many[1])) > 1e-4
    for k in range(2):
        assert_close(many[k], coordinate_values(m, q[k], chosen))
    assert_close(many[1] - many[0], coordinate_changes(m, q[0], q[1], chosen), scale=1)
