"""Minimal loop clusters — RBDA §8.9."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.states import random_instant

import kinetree as kt
from kinetree.algorithms.closed.plan import make_plan
from kinetree.algorithms.closed.rank import closed_configurations
from kinetree.diagnosis.costs import null_space_cost
from kinetree.loops.dynamics.clusters import (
    block_null_space,
    clusters,
    renumber,
    solve_by_clusters,
)
from kinetree.loops.dynamics.methods import ConstrainedEquations, null_space
from kinetree.loops.dynamics.solution import solve
from kinetree.model import Coupling
from kinetree.samples import clustered_linkage, corner_ladder, four_bar, ladder, stewart
from kinetree.textbook.loop_methods import solve_kkt


def at_home(model):
    q = np.array(model.posture("home").q)
    return ConstrainedEquations(model, q, np.zeros(model.nv), np.ones(model.nv))


@pytest.mark.covers("RBDA 8.9", by=clusters)
def test_the_clusters_of_figure_8_1():
    found = clusters(clustered_linkage())
    assert [c.loops for c in found] == [("loop1", "loop2"), ("loop3",), ("loop4",)]
    assert [c.joints for c in found] == [(3, 4, 5, 6, 7), (10, 11, 12), (19, 20)]
    free = set(range(1, 21)).difference(*(c.joints for c in found))
    assert free == {1, 2, 8, 9, *range(13, 19)}


def test_loops_that_meet_in_a_body_are_apart_and_those_that_share_a_joint_are_not():
    assert len(clusters(ladder(5))) == 5
    assert len(clusters(corner_ladder(5))) == 1
    assert len(clusters(stewart())) == 1  # all through the joint of the platform


def test_a_coupling_joins_what_it_couples():
    model = ladder(3).replace(couplings=(Coupling("gear", 7, 1),))
    assert [c.loops for c in clusters(model)] == [("pin1", "pin3"), ("pin2",)]
    assert [c.loops for c in clusters(model.uncoupled)] == [("pin1",), ("pin2",), ("pin3",)]


def shuffled(model, rng):
    """The same model with its bodies in another regular order."""
    from kinetree.loops.dynamics.clusters import _in_order

    order, ready = [0], list(model.children[0])
    while ready:
        order.append(ready.pop(int(rng.integers(len(ready)))))
        ready += model.children[order[-1]]
    return _in_order(model, tuple(order)).model


@pytest.mark.covers("RBDA 8.9", by=renumber)
def test_clusters_become_consecutive_and_parents_stay_first(rng):
    for _ in range(5):
        mixed = shuffled(clustered_linkage(), rng)
        assert any(np.ptp(c.joints) >= len(c.joints) for c in clusters(mixed))
        found = renumber(mixed)
        for c in clusters(found.model):
            assert c.joints == tuple(range(c.joints[0], c.joints[-1] + 1))
        assert all(p < i for i, p in enumerate(found.model.parent))
        q = np.array(mixed.posture("home").q)
        assert np.array_equal(np.array(found.model.posture("home").q), q[found.q])
        tau = rng.standard_normal(22)
        old = solve(mixed, q, np.zeros(22), tau).qdd
        new = solve(found.model, q[found.q], np.zeros(22), tau[found.v]).qdd
        assert_close(new, old[found.v], ulps=1e6)


def test_a_model_in_order_stays_as_it_is():
    model = clustered_linkage()
    assert renumber(model).order == tuple(range(21))
    assert renumber(model).model == model


@pytest.mark.covers("RBDA 8.9", by=block_null_space)
def test_blocks_of_K_and_G():
    instant = at_home(clustered_linkage())
    found = block_null_space(instant.model, instant.q, instant.qd)
    K, G, n, r = instant.K, found.G, 22, found.rank
    assert r == instant.rank == 9
    assert np.abs(K @ G).max() < 1e-13
    assert np.count_nonzero(G == 0) >= (n - r) * (n - r - 1)
    inner = np.zeros((len(K), n), dtype=bool)
    for c in clusters(instant.model):
        inner[np.ix_(c.rows, c.columns)] = True
    assert not np.any(K[~inner])  # block diagonal, with gaps
    outer = ~inner.any(axis=0)
    assert np.array_equal(
        G[outer][:, np.isin(found.independent, np.flatnonzero(outer))], np.eye(10)
    )


@pytest.mark.parametrize("seed", range(6))
def test_block_by_block_is_the_same_as_all_at_once(seed):
    instant = random_instant(seed, loops=2, bodies=6)
    found = block_null_space(instant.model, instant.q, instant.qd)
    whole = null_space(instant.K, instant.k, instant.rank, instant.units, found.independent)
    assert_close(found.G, whole.G, ulps=1e6)
    assert_close(found.g, whole.g, ulps=1e6, scale=1 + np.abs(whole.g).max())
    assert_close(found.residual, 0 * instant.k, ulps=1e6, scale=1 + np.abs(instant.k).max())


@pytest.mark.covers("RBDA 8.9", by=solve_by_clusters)
@pytest.mark.parametrize("seed", range(6))
def test_the_solver_by_clusters_moves_the_mechanism_as_others_do(seed):
    instant = random_instant(seed, loops=2, bodies=6)
    found, expected = solve_by_clusters(instant), solve_kkt(instant)
    size = 1 + np.abs(expected.qdd).max()
    assert_close(found.qdd, expected.qdd, ulps=1e7, scale=size)
    K = instant.K
    scale = 1 + np.abs(K.T @ expected.lam).max()
    assert_close(K.T @ found.lam, K.T @ expected.lam, ulps=1e8, scale=scale)


def test_several_clusters_and_joints_in_none_are_solved_block_by_block(rng):
    for model in (clustered_linkage(), ladder(4)):
        home = model.neutral() if not model.postures else np.array(model.postures[0].q)
        tau = rng.standard_normal(model.nv)
        found = kt.loops.solve(model, home, np.zeros(model.nv), tau)
        assert found.method == "null_space"
        other = kt.loops.solve(model, home, np.zeros(model.nv), tau, method="kkt")
        assert_close(found.qdd, other.qdd, ulps=1e8, scale=1 + np.abs(other.qdd).max())


@pytest.mark.parametrize(
    ("make", "count", "saved"),
    [(clustered_linkage, 3, 90), (ladder, 4, 75), (stewart, 1, 0), (four_bar, 1, 0)],
)
def test_two_clusters_or_more_take_fewer_operations(make, count, saved):
    """Texts traced from ``H``, ``K`` and ``k`` on, with and without the zeros between blocks."""
    model = make()
    plan = make_plan(model, None, closed_configurations(model))
    whole, blocks = (null_space_cost(model, plan, by_blocks).total for by_blocks in (False, True))
    assert len(clusters(model)) == count
    assert (blocks < whole) == (count > 1)
    assert 100 * (1 - blocks / whole) >= saved


def test_a_rank_that_is_given_counts_for_all_clusters_together(rng):
    """One constraint fewer: it is broken, and those of a rank that is right are not."""
    model = clustered_linkage()
    q, tau = np.array(model.posture("home").q), 10 * rng.standard_normal(22)
    state = model, q, np.zeros(22), tau
    c = kt.loops.constraint(*state[:3])
    assert np.abs(c.K @ kt.loops.solve(*state).qdd - c.k).max() < 1e-9
    assert np.abs(c.K @ kt.loops.solve(*state, rank=9).qdd - c.k).max() < 1e-9
    assert np.abs(c.K @ kt.loops.solve(*state, rank=8).qdd - c.k).max() > 1e-3
