from itertools import pairwise

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import (
    absolute_five_bar,
    five_bar,
    pendulum,
    pendulum_state,
    pinned_body,
)

from kinetree.errors import SingularError
from kinetree.loops.state_space.invariants import invariants
from kinetree.loops.state_space.model_system import system_of
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.textbook.system_invariants import (
    energy_gradient,
    project_all,
    project_position,
    project_velocity,
)


@pytest.mark.covers("Spencer 3.1", by=project_position)
def test_the_nearest_point_of_a_circle(rng):
    system = pendulum()
    for q in rng.standard_normal((10, 2)):
        expected = q / np.linalg.norm(q)
        np.testing.assert_allclose(project_position(system, q), expected, atol=1e-11)


@pytest.mark.covers("Spencer 3.1", by=project_position)
def test_shortest_steps_end_near_the_nearest_point_and_not_in_it(rng):
    """An ellipse, for which moving iterates matter; the nearest point has its own condition."""
    ellipse = ConstrainedSystem.from_functions(
        n=2, M=lambda q: np.eye(2), F=lambda t, q, v: np.zeros(2),
        g=lambda q: np.array([q[0] ** 2 / 4 + q[1] ** 2 - 1]),
    )  # fmt: skip
    start = np.array([1.6, 0.9])
    near, nearest = (project_position(ellipse, start, nearest=n) for n in (False, True))
    for q in (near, nearest):
        np.testing.assert_allclose(ellipse.g(q), 0, atol=1e-12)
    away, normal = start - nearest, ellipse.G(nearest)[0]
    assert abs(away[0] * normal[1] - away[1] * normal[0]) < 1e-12  # q + G' mu is the start
    angles = np.linspace(0, 2 * np.pi, 100001)
    distances = np.hypot(2 * np.cos(angles) - start[0], np.sin(angles) - start[1])
    assert np.linalg.norm(away) == pytest.approx(distances.min(), abs=1e-8)
    gap = np.linalg.norm(near - nearest)
    assert 1e-5 < gap < 0.1 * np.linalg.norm(away)
    with pytest.raises(SingularError, match="as far from the manifold as that is curved"):
        project_position(ellipse, np.array([1.5, 1e-6]), nearest=True)  # a centre of curvature
    with pytest.raises(SingularError, match="stopped where they are violated by 1"):
        project_position(ellipse, np.zeros(2))  # whose gradient vanishes


@pytest.mark.covers("Spencer 3.1", by=project_position)
def test_residuals_of_position_projections_decrease_quadratically(rng):
    system = five_bar()
    q, sizes = 0.05 * rng.standard_normal(4), []
    for tolerance in (np.inf, 1e-2, 1e-5, 1e-9):
        sizes.append(np.linalg.norm(system.g(project_position(system, q, tolerance=tolerance))))
    reached = [s for s in dict.fromkeys(sizes) if s > 1e-15]
    for before, after in pairwise(reached):
        assert after < 2 * before**2 + 1e-15


@pytest.mark.covers("Spencer 3.1", by=project_velocity)
def test_velocities_are_projected_in_one_step(rng):
    system = five_bar()
    q = project_position(system, 0.2 * rng.standard_normal(4))
    v = rng.standard_normal(4)
    found = project_velocity(system, q, v)
    np.testing.assert_allclose(system.G(q) @ found, 0, atol=1e-14)
    assert_close(project_velocity(system, q, found), found)
    assert abs(found @ (v - found)) < 1e-13


def test_positions_that_are_no_vectors_are_projected_too():
    system = system_of(pinned_body()).independent(np.zeros(3))
    q = np.array([0.4, 0.03, -0.02])
    near, nearest = (project_position(system, q, nearest=n) for n in (False, True))
    for found in (near, nearest):
        np.testing.assert_allclose(system.g(found), 0, atol=1e-12)
    distances = [
        np.linalg.norm(system.space.difference(q, found)) for found in (nearest, near)
    ]  # fmt: skip
    assert distances[0] <= distances[1] + 1e-15


@pytest.mark.covers("Spencer 3.1", by=project_all)
def test_all_invariants_at_once(rng):
    system = five_bar()
    q = project_position(system, 0.2 * rng.standard_normal(4))
    v = project_velocity(system, q, rng.standard_normal(4))
    energy = system.energy(q, v)
    off = q + 1e-3 * rng.standard_normal(4), v + 1e-3 * rng.standard_normal(4)
    for hold in (None, energy):
        q1, v1 = project_all(system, *off, energy=hold, tolerance=1e-13)
        np.testing.assert_allclose(invariants(system, q1, v1), 0, atol=1e-13)
        assert np.linalg.norm(q1 - off[0]) + np.linalg.norm(v1 - off[1]) < 1e-2
        assert (abs(system.energy(q1, v1) - energy) < 1e-12) == (hold is not None)
    same = project_all(system, *off, tolerance=1.0)  # within the tolerance nothing moves
    assert_close(np.concatenate(same), np.concatenate(off))


def test_energy_cannot_be_changed_at_rest_in_equilibrium():
    system = pendulum()
    q, v = np.array([0.0, -1.0]), np.zeros(2)
    with pytest.raises(SingularError, match="has not converged in 50 steps: they are"):
        project_all(system, q, v, energy=system.energy(q, v) + 0.1)


@pytest.mark.covers("Spencer 3.1", by=energy_gradient)
def test_gradient_of_the_energy(rng):
    by_hand, model = absolute_five_bar(), five_bar()
    q, v = rng.standard_normal((2, 4))
    for system in (by_hand, model):
        found, h = energy_gradient(system, q, v), 1e-5
        for k, e in enumerate(np.eye(8)):
            up, down = (system.energy(q + s * h * e[:4], v + s * h * e[4:]) for s in (1, -1))
            assert found[k] == pytest.approx((up - down) / (2 * h), abs=1e-6)
    q, v = pendulum_state(0.3, 2.0)
    np.testing.assert_allclose(energy_gradient(pendulum(), q, v), [0, 9.81, *v], atol=1e-9)
