"""Inertia of mechanisms in blocks of nodes, its factors, and velocities, by dense matrices."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.islands import ancestors, dense, random_parents

from kinetree.contact.engine import mechanism
from kinetree.contact.engine.mechanism import Mechanism, body_velocities, resistance
from kinetree.contact.newton.problem import problem_of


def carried(parent):
    """Whether variable l carries variable k, or is it."""
    n = len(parent)
    return np.array([[l in set(ancestors(parent, k)) for l in range(n)] for k in range(n)])


def inertia(rng, parent):
    """A matrix with the pattern of a mechanism, and positive."""
    M = np.zeros((len(parent), len(parent)))
    for d in range(len(parent)):
        chain = list(ancestors(parent, d))
        J = np.zeros((3, len(parent)))
        J[:, chain] = rng.normal(size=(3, len(chain)))
        M += J.T @ J + 0.1 * np.diag(np.arange(len(parent)) == d)
    return M


def filled(parent, M):
    p = problem_of(parent)
    places = dense(p, np.arange(len(p.M), dtype=float))
    at = ~np.isnan(places)
    p.M[places[at].astype(int)] = M[at]
    return p


@pytest.mark.parametrize("alpha", [0.5, 0.0])
def test_inertia_is_that_of_composite_bodies_with_what_resists(alpha, rng):
    h = 0.02
    for _ in range(8):
        parent = random_parents(rng, 3, most=9, near=0.6)
        n, p = len(parent), problem_of(parent)
        S, F = rng.normal(size=(2, n, 6))
        numbers = {k: rng.choice([0.0, 3.0, 500.0], n) for k in ("stiffness", "damping")}
        m = Mechanism(
            nv=n, S=S, F=F, armature=rng.uniform(size=n), free=(rng.random(n) > 0.2) * 1.0,
            lead=np.ones(n), lag=np.ones(n), **numbers,
        )  # fmt: skip
        mechanism.inertia_blocks(m, p, h, alpha)
        H = np.tril(F @ S.T)  # of those above the diagonal in a block, the others are read
        H = (H + np.tril(H, -1).T) * np.outer(m.free, m.free)
        own = np.diag(H) + m.armature * m.free + 1 - m.free
        lead, lag = np.transpose([
            resistance(K * x, D * x, d, h, alpha) if x and (K or D) else (0.0, 0.0)
            for K, D, x, d in zip(m.stiffness, m.damping, m.free, own, strict=True)
        ])  # fmt: skip
        assert_close(m.lead, lead, scale=1.0)
        assert_close(m.lag, lag, scale=10.0)
        H[np.diag_indices(n)] = own + h * lag
        found = dense(p, p.M)
        there = ~np.isnan(found)
        assert np.array_equal(there & np.tri(n, dtype=bool), carried(parent))
        assert_close(found[there], H[there], scale=10.0)


def test_factors_divide_by_the_inertia(rng):
    for _ in range(12):
        parent = random_parents(rng, 3, most=9, near=0.6)
        M = inertia(rng, parent)
        n, p = len(parent), filled(parent, M)
        L = np.full(len(p.M) + 3, 7.0)
        assert mechanism.factor(p, L, len(p.M)) == -1
        assert np.all(L[len(p.M) :] == 7.0)
        b = rng.normal(size=n)
        x = b.copy()
        mechanism.divide(p, L, x)
        ulps = 100 * np.linalg.cond(M)
        expected = np.linalg.solve(M, b)
        assert_close(x, expected, scale=np.abs(expected).max(), ulps=ulps)
        # the first half alone, of numbers in one tree up to some node
        last = int(rng.integers(p.nodes))
        first = min(np.flatnonzero(p.node_tree == p.node_tree[last]))
        y = np.zeros(n)
        low, high = p.node_first[first], p.node_first[last] + p.node_count[last]
        y[low:high] = rng.normal(size=high - low)
        product = y @ np.linalg.solve(M, y)
        mechanism.divide_by_lower(p, L, y, first, last + 1)
        assert_close(y @ y, product, ulps=ulps)


def test_a_variable_that_moves_no_inertia_is_named(rng):
    for _ in range(6):
        parent = random_parents(rng, 2, most=9, near=0.6)
        M = inertia(rng, parent)
        k = int(rng.integers(len(parent)))
        M[k, :] = M[:, k] = 0.0
        p = filled(parent, M)
        assert mechanism.factor(p, np.zeros(len(p.M)), len(p.M)) == k


def test_velocities_of_bodies_are_sums_along_chains(rng):
    parent, count = [0, 0, 1, 1, 0, 3], [0, 6, 1, 0, 2, 3]
    first = np.cumsum([0, *count[:-1]])
    S, v = rng.normal(size=(12, 6)), rng.normal(size=12)
    m = Mechanism(bodies=6, parent=np.array(parent), first=first, count=np.array(count), S=S)
    twist = np.full((6, 6), 7.0)
    body_velocities(m, v, twist)
    own = [S[a : a + n].T @ v[a : a + n] for a, n in zip(first, count, strict=True)]
    expected = [0 * own[0], own[1], own[1] + own[2], own[1] + own[3], own[4],
                own[1] + own[3] + own[5]]  # fmt: skip
    assert_close(twist, np.array(expected), scale=10.0)
