"""Loops and rows that push one way, solved by dense factors, beside methods that solve more."""

import numpy as np
import pytest
from scipy.optimize import nnls
from support.closeness import assert_close

from kinetree.contact.engine.direct import MOST, direct_of, solve_directly
from kinetree.contact.engine.mechanism import factor
from kinetree.contact.newton.newton import solve
from kinetree.contact.newton.problem import BOUNDS, enlarge, problem_of, with_room, workspace


def problem(rng, rows, *, parents=(-1, 0, 1, 1, -1, 4, 4, 0)):
    """A forest with random inertias, and random rows over all of its nodes."""
    p = problem_of(parents, tolerance=1e-12)
    p.condenses = 1
    for a in range(p.nodes):
        for n in range(p.node_blocks_first[a], p.node_blocks_first[a + 1]):
            b, wide = p.block_ancestor[n], p.node_count[p.block_ancestor[n]]
            high = p.node_count[a]
            X = rng.normal(size=(high, wide)) / 10
            if a == b:
                X = X @ X.T + 3 * np.eye(high)
            p.M[p.block_at[n] : p.block_at[n] + high * wide] = X.ravel()
    room = rows * p.nodes
    with_room(p, rows, rows, room, room * int(p.node_count.max()))
    p.groups, at, entry = rows, 0, 0
    for g in range(rows):
        p.kind[g], p.dim[g], p.low[g], p.high[g] = BOUNDS, 1, -1e300, 1e300
        p.row_first[g], p.entry_first[g], p.target[g] = g, entry, rng.normal()
        for a in range(p.nodes):
            p.entry_node[entry], p.entry_at[entry] = a, at
            p.J[at : at + p.node_count[a]] = rng.normal(size=p.node_count[a])
            at, entry = at + p.node_count[a], entry + 1
    p.row_first[rows], p.entry_first[rows], p.changed = rows, entry, 2
    p.free[:] = rng.normal(size=p.nv)
    p.velocity[:] = p.free
    return p


def matrix(p):
    """Rows as a dense matrix."""
    J = np.zeros((p.groups, p.nv))
    for g in range(p.groups):
        for n in range(p.entry_first[g], p.entry_first[g + 1]):
            a = p.entry_node[n]
            at = slice(p.node_first[a], p.node_first[a] + p.node_count[a])
            J[g, at] = p.J[p.entry_at[n] : p.entry_at[n] + p.node_count[a]]
    return J


def prepared(p):
    """What ``solve_directly`` takes of a problem."""
    work, L = workspace(p), np.zeros(len(p.M))
    enlarge(work, p)
    assert factor(p, L, len(p.M)) == -1
    return direct_of(p.nv), p, L, work


def inverse_inertia(p):
    """``M⁻¹``, dense."""
    M = np.zeros((p.nv, p.nv))
    for a in range(p.nodes):
        for n in range(p.node_blocks_first[a], p.node_blocks_first[a + 1]):
            b = p.block_ancestor[n]
            i = slice(p.node_first[a], p.node_first[a] + p.node_count[a])
            j = slice(p.node_first[b], p.node_first[b] + p.node_count[b])
            at = p.block_at[n]
            M[i, j] = p.M[at : at + M[i, j].size].reshape(M[i, j].shape)
            M[j, i] = M[i, j].T
    return np.linalg.inv(M)


def push_one_way(p, groups):
    """Let rows have bounds."""
    for g in groups:
        p.low[g] = 0.0
    return p


@pytest.mark.parametrize("rows", [1, 3, 6])
def test_rows_without_bounds_are_solved_as_by_newton(rng, rows):
    one = problem(rng, rows)
    given = prepared(one)
    work = given[-1]
    assert solve_directly(*given)
    v, lam = one.velocity.copy(), one.impulse[:rows].copy()
    one.velocity[:], one.impulse[:] = one.free, 0.0
    while solve(one, work) < 0:
        enlarge(work, one)
    assert_close(v, one.velocity, ulps=1e5)
    assert_close(lam, one.impulse[:rows], ulps=1e6)
    assert one.islands == 1


def test_rows_that_repeat_others_get_no_impulse(rng):
    """The velocities are those without them; where they contradict, another solver is needed."""
    p = problem(rng, 4)
    given = prepared(p)
    numbers = len(p.J) // 4
    wide = int(sum(p.node_count[p.entry_node[: p.entry_first[1]]]))
    p.J[3 * wide : 4 * wide] = p.J[:wide] - 2 * p.J[wide : 2 * wide]
    p.target[3] = p.target[0] - 2 * p.target[1]
    assert numbers
    assert solve_directly(*given)
    assert p.impulse[3] == 0.0
    assert np.abs(matrix(p) @ p.velocity + p.target[:4]).max() < 1e-12
    p.target[3] += 0.1
    assert not solve_directly(*given)


@pytest.mark.parametrize("rows", [2, 8, 16])
@pytest.mark.parametrize("depends", [False, True])
def test_rows_that_push_one_way_fulfil_their_law(rows, depends, rng):
    """Beside nonnegative least squares; more rows than variables depend on each other."""
    parents = (-1, 0, 1) if depends else (-1, 0, 1, 1, -1, 4, 4, 0, 7, 7, 7, 6, 11, 12, 12, 12)
    acted = 0
    for _ in range(30):
        p = push_one_way(problem(rng, rows, parents=parents), range(rows))
        p.target[:rows] += 1.0  # most can be fulfilled
        given = prepared(p)
        J = matrix(p)
        if depends:  # so that there is a solution
            p.target[:rows] = np.maximum(p.target[:rows], -J @ rng.normal(size=p.nv))
        assert solve_directly(*given)
        lam, w = p.impulse[:rows], J @ p.velocity + p.target[:rows]
        scale = max(np.abs(lam).max(), np.abs(p.target[:rows]).max())
        assert lam.min() >= 0
        assert w.min() > -1e-8 * scale
        assert np.abs(lam * w).max() < 1e-9 * scale**2
        assert_close(p.velocity, p.free + inverse_inertia(p) @ J.T @ lam, ulps=1e6)
        # min |L⁻¹ M (v - free)| of Goldfarb and Idnani is one of least squares of the impulses
        C = np.linalg.cholesky(inverse_inertia(p)).T @ J.T
        b = np.linalg.lstsq(C.T, J @ p.free + p.target[:rows], rcond=None)[0]
        if not depends:
            assert_close(lam, nnls(C, -b)[0], scale=scale, ulps=1e7)
        acted += int(np.sum(lam > 0))
    assert acted > 5


def test_loops_and_rows_that_push_one_way_are_solved_as_by_newton(rng):
    for _ in range(20):
        p = push_one_way(problem(rng, 6), range(2, 6))
        given = prepared(p)
        work = given[-1]
        assert solve_directly(*given)
        v, lam = p.velocity.copy(), p.impulse[:6].copy()
        p.velocity[:], p.impulse[:] = p.free, 0.0
        while solve(p, work) < 0:
            enlarge(work, p)
        assert_close(v, p.velocity, scale=np.abs(p.target[:6]).max() + 1, ulps=1e7)
        assert_close(lam, p.impulse[:6], scale=np.abs(lam).max(), ulps=1e7)


def test_rows_that_close_on_each_other_are_left_to_newton(rng):
    p = push_one_way(problem(rng, 2), range(2))
    wide = int(sum(p.node_count[p.entry_node[: p.entry_first[1]]]))
    p.J[wide : 2 * wide] = -p.J[:wide]
    p.free[:], p.target[:2] = 0.0, -1.0
    assert not solve_directly(*prepared(p))


def test_others_are_left_to_newton(rng):
    p = problem(rng, 2)
    p.low[1], p.high[1] = -1.0, 1.0  # as dry friction
    assert not solve_directly(*prepared(p))
    many = problem(rng, MOST + 1, parents=range(-1, MOST + 8))
    assert not solve_directly(*prepared(many))
    push_one_way(many, range(MOST + 1))
    many.target[: MOST + 1] = 100.0  # nothing acts
    assert solve_directly(*prepared(many))
    assert np.array_equal(many.velocity, many.free)


def test_machine_code_means_what_the_text_says(rng):
    p = push_one_way(problem(rng, 6), range(1, 6))
    given = prepared(p)
    assert solve_directly(*given)
    found = p.velocity.copy(), p.impulse[:6].copy()
    p.velocity[:], p.impulse[:6] = 0.0, 0.0
    assert solve_directly.python(*given)
    assert np.allclose(found[0], p.velocity, atol=1e-13)
    assert np.allclose(found[1], p.impulse[:6], atol=1e-13)
