"""Constraint forces first — RBDA §8.5, method 2."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_instant

from kinetree.algorithms.ltl import ancestors
from kinetree.errors import SingularError
from kinetree.loops.dynamics.methods import ConstrainedEquations
from kinetree.samples import four_bar
from kinetree.spatial import Inertia
from kinetree.textbook.loop_methods import range_space
from kinetree.textbook.loop_methods import solve_range_space as solve


@pytest.mark.covers("RBDA 8.5", by=range_space)
@pytest.mark.parametrize("seed", range(5))
def test_A_is_what_constraints_feel_of_the_inertia(seed):
    instant = random_instant(seed)
    found = range_space(instant)
    K, H_inv = instant.K, np.linalg.inv(instant.H)
    condition = np.linalg.cond(instant.H)
    assert_close(found.A, K @ H_inv @ K.T, condition=condition)
    b = instant.k - K @ H_inv @ instant.force
    assert_close(found.b, b, condition=condition, scale=1 + np.abs(b).max())


@pytest.mark.parametrize("kind", ["planar", "doubled"])
def test_any_z_moves_the_mechanism_alike(kind, rng):
    instant = random_instant(3, kind=kind)
    assert instant.rank < len(instant.K)
    found = range_space(instant)
    n = len(instant.K)
    assert np.abs(instant.K.T @ (np.eye(n) - found.A_plus @ found.A)).max() < 1e-11
    z = 10 * rng.standard_normal(n)
    one, other = solve(instant), solve(instant, z=z)
    assert np.abs(one.lam - other.lam).max() > 0.1
    assert np.abs(one.qdd - other.qdd).max() < 1e-10 * (1 + np.abs(one.qdd).max())


def test_the_rank_of_A_in_the_four_bar_is_two():
    model = four_bar()
    found = range_space(ConstrainedEquations(model, np.zeros(3), np.zeros(3), np.ones(3)))
    assert found.A.shape == (5, 5)
    assert np.linalg.matrix_rank(found.A, tol=1e-9) == 2


def test_branches_leave_zeros_in_the_factor():
    model = four_bar()
    L = range_space(ConstrainedEquations(model, np.zeros(3), np.zeros(3), np.ones(3))).L
    lam = model.expanded_parent
    allowed = {(k, i) for k in range(3) for i in (k, *ancestors(lam, k))}
    assert {(int(i), int(j)) for i, j in zip(*np.nonzero(L), strict=True)} <= allowed
    assert len(allowed) < 6


def test_massless_bodies_are_rejected():
    model = four_bar()
    rocker = model.replace(inertia={"rocker": Inertia.zero()})
    with pytest.raises(SingularError, match="not positive definite"):
        solve(ConstrainedEquations(rocker, np.zeros(3), np.zeros(3), np.ones(3)))
