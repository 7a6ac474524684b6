"""Which parts of the forces of loop joints are unique — RBDA §8.4, §8.10."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_instant

import kinetree as kt
from kinetree.joints import SphereInCylinder
from kinetree.loops.dynamics.loop_forces import idle_forces, smallest, uniqueness
from kinetree.loops.dynamics.methods import ConstrainedEquations
from kinetree.loops.dynamics.solution import solve
from kinetree.samples import bennett, four_bar, stewart
from kinetree.textbook.loop_methods import range_space


def test_idle_forces_move_nothing():
    instant = random_instant(4, kind="doubled")
    idle = idle_forces(instant)
    assert idle.shape == (len(instant.K), len(instant.K) - instant.rank)
    lam = instant.units.rows[:, None] * idle
    assert np.abs(instant.K.T @ lam).max() < 1e-13


@pytest.mark.covers("RBDA 8.10", by=(smallest, uniqueness))
def test_unique_entries_are_those_that_no_z_changes(rng):
    instant = random_instant(7, kind="planar")
    found = range_space(instant)
    one, other = (found.forces(z) for z in 10 * rng.standard_normal((2, len(instant.K))))
    unique = uniqueness(instant)
    assert 0 < np.count_nonzero(unique) < len(unique)
    assert np.abs(one - other)[unique].max() < 1e-9
    assert np.abs(one - other)[~unique].min() > 1e-6
    assert_close(smallest(instant, one), smallest(instant, other), ulps=1e6)


def test_the_in_plane_force_of_a_hinge_is_unique_and_its_moments_are_not():
    model, tau = four_bar(), np.array([1.0, 0, 0])
    pin = solve(model, np.zeros(3), np.zeros(3), tau).loop_forces["pin"]
    assert not pin.unique
    idle = pin.idle.to_array()
    assert idle.shape == (6, 3)
    assert np.abs(idle[[3, 5]]).max() < 1e-12  # no force in the x-z plane
    assert pin.idle.T is not None
    ball = model.replace(joint={"pin": SphereInCylinder("y")})
    free = solve(ball, np.zeros(3), np.zeros(3), tau).loop_forces["pin"]
    assert free.unique
    assert free.idle.to_array().shape == (6, 0)
    assert_close(pin.force.linear[[0, 2]], free.force.linear[[0, 2]], ulps=1e4)


def test_a_platform_without_redundant_constraints_has_unique_forces(rng):
    model = stewart()
    found = solve(model, model.neutral(), np.zeros(model.nv), rng.standard_normal(model.nv))
    assert found.redundancy == 0
    assert found.unique.all()
    assert all(f.unique for f in found.loop_forces.values())


def test_the_smallest_forces_do_not_depend_on_the_method():
    instant = random_instant(9, kind="spherical")
    state = (instant.q, instant.qd, instant.tau)
    one, other = (solve(instant.model, *state, method=m).lam for m in ("kkt", "sparse"))
    assert_close(one, other, ulps=1e6, scale=1 + np.abs(one).max())


def test_an_instant_of_a_tree_has_no_idle_forces():
    model = four_bar().replace(loops=())
    assert idle_forces(
        ConstrainedEquations(model, np.zeros(3), np.zeros(3), np.zeros(3))
    ).shape == (0, 0)


@pytest.mark.parametrize("make", [four_bar, bennett])
def test_forces_of_chosen_constraints_are_unique_and_the_others_carry_none(make, rng):
    """Two of five say all: in the plane these two and no others, in space any two."""
    model = make()
    q, tau = np.array(model.posture("home").q), rng.standard_normal(3)
    K = kt.loops.constraint(model, q, np.zeros(3)).K
    rows = kt.loops.independent_rows(K, kt.loops.scaling(model))
    assert len(rows) == 2 < len(K)
    every = solve(model, q, np.zeros(3), tau)
    assert np.count_nonzero(every.unique) == (2 if make is four_bar else 0)
    for method in ("kkt", "null_space", "range_space"):
        found = solve(model, q, np.zeros(3), tau, method=method, rows=rows)
        assert list(np.flatnonzero(found.unique)) == list(rows)
        assert not np.any(np.delete(found.lam, rows))
        assert np.abs(K.T @ (found.lam - every.lam)).max() < 1e-11 * np.abs(every.lam).max()
