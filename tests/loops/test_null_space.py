"""G and g by elimination, and independent accelerations — RBDA §8.5, §8.8."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_instant

from kinetree.algorithms.closed.scaling import Scaling
from kinetree.errors import ShapeError, SingularError
from kinetree.loops.dynamics import methods
from kinetree.loops.dynamics.methods import ConstrainedEquations, null_space, pivots
from kinetree.loops.dynamics.solution import solve
from kinetree.samples import actuated_arm, clustered_linkage, four_bar


def plain(m, n):
    return Scaling(np.ones(m), np.ones(n), 1.0)


@pytest.mark.covers("RBDA 8.8", by=null_space)
@pytest.mark.parametrize(("m", "n", "r"), [(3, 6, 3), (5, 6, 2), (8, 6, 6), (4, 4, 0), (0, 3, 0)])
def test_solutions_of_any_consistent_equations(m, n, r, rng):
    K = rng.standard_normal((m, r)) @ rng.standard_normal((r, n))
    k = K @ rng.standard_normal(n)
    found = null_space(K, k, r, plain(m, n))
    assert found.G.shape == (n, n - r)
    assert np.allclose(K @ found.G, 0, atol=1e-13)
    assert np.allclose(found.residual, 0, atol=1e-13)
    assert np.linalg.matrix_rank(found.G) == n - r
    assert np.array_equal(found.G[found.independent], np.eye(n - r))
    assert not np.any(found.g[found.independent])


@pytest.mark.parametrize("seed", range(8))
def test_units_do_not_matter(seed):
    """Lengths in millimetres change the pivots' sizes and nothing else."""
    instant = random_instant(seed)
    K, k, units = instant.K, instant.k, instant.units
    rows = np.where(units.rows == 1, 1.0, 1e3)
    columns = np.where(units.columns == 1, 1.0, 1e-3)
    scaled = Scaling(units.rows / rows, units.columns / columns, 1e3 * units.length)
    one = null_space(K, k, instant.rank, units)
    other = null_space(rows[:, None] * K * columns, rows * k, instant.rank, scaled)
    assert np.array_equal(one.independent, other.independent)
    assert_close(columns * other.g, one.g, ulps=1e4, scale=1 + np.abs(one.g).max())


def test_variables_in_no_loop_are_not_touched():
    model = clustered_linkage()
    instant = ConstrainedEquations(
        model, np.array(model.posture("home").q), np.zeros(22), np.ones(22)
    )
    found = pivots(instant.K, instant.k, instant.rank, instant.units)
    free = [c for c in range(22) if not np.any(instant.K[:, c])]
    assert len(free) == 10
    assert not set(found.columns.tolist()) & set(free)
    G = null_space(instant.K, instant.k, instant.rank, instant.units).G
    assert np.array_equal(np.abs(G[free]).sum(axis=1), np.ones(10))


@pytest.mark.parametrize("seed", range(6))
def test_the_callers_variables_are_taken(seed):
    instant = random_instant(seed, kind="planar")
    best = null_space(instant.K, instant.k, instant.rank, instant.units)
    others = null_space(instant.K, instant.k, instant.rank, instant.units, best.independent)
    assert np.array_equal(best.independent, others.independent)
    assert np.allclose(best.G, others.G, atol=1e-10)


def test_a_choice_that_does_not_determine_the_motion_is_rejected():
    """RBDA §8.8: q2 of Figure 8.3 fails where l2 = l1 cos y1."""
    l1, l2 = 1.0, 0.6
    model = actuated_arm(l1, l2)
    y = np.arccos(l2 / l1)
    q = np.array([y, np.arctan2(l2 * np.sin(y), l2 * np.cos(y) - l1), 0.8, 0])
    qd, tau = np.zeros(4), np.ones(4)
    chosen = ["barrel_joint", "forearm_joint"]
    with pytest.raises(
        SingularError, match="variables barrel_joint, forearm_joint do not determine the motion"
    ):
        solve(model, q, qd, tau, independent=chosen)
    away = solve(model, np.array(model.posture("home").q), qd, tau, independent=chosen)
    assert_close(away.qdd, solve(model, np.array(model.posture("home").q), qd, tau).qdd, ulps=1e4)


def test_a_choice_of_the_wrong_size_is_rejected():
    model = four_bar()
    with pytest.raises(ShapeError, match="3 variables under 2 independent constraints have 1"):
        solve(model, np.zeros(3), np.zeros(3), np.zeros(3), independent=[0, 1])


def test_a_rank_that_is_too_large_is_rejected():
    model = four_bar()
    with pytest.raises(SingularError, match="where 3 constraints are taken for independent"):
        solve(model, np.zeros(3), np.zeros(3), np.zeros(3), rank=3)


@pytest.mark.covers("RBDA 8.5", by=methods.solve_null_space)
def test_a_mechanism_without_freedoms_has_no_independent_acceleration():
    model = four_bar()
    held = model.replace(couplings=())
    extra = held.loops[0].__class__("stop", 0, 1)
    held = held.replace(loops=(*held.loops, extra))
    found = solve(held, np.zeros(3), np.zeros(3), np.ones(3))
    assert found.rank == 3
    assert np.allclose(found.qdd, 0, atol=1e-12)
