"""Rows without bounds alone, solved at once, beside Newton's method, which solves everything."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.engine.direct import MOST, close_directly
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
    work, L = workspace(p), np.zeros(len(p.M))
    enlarge(work, p)
    assert factor(p, L, len(p.M)) == -1
    return work, L


@pytest.mark.parametrize("rows", [1, 3, 6])
def test_rows_without_bounds_are_solved_as_by_newton(rng, rows):
    one = problem(rng, rows)
    work, L = prepared(one)
    assert close_directly(one, L, work)
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
    work, L = prepared(p)
    numbers = len(p.J) // 4
    wide = int(sum(p.node_count[p.entry_node[: p.entry_first[1]]]))
    p.J[3 * wide : 4 * wide] = p.J[:wide] - 2 * p.J[wide : 2 * wide]
    p.target[3] = p.target[0] - 2 * p.target[1]
    assert numbers
    assert close_directly(p, L, work)
    assert p.impulse[3] == 0.0
    assert np.abs(matrix(p) @ p.velocity + p.target[:4]).max() < 1e-12
    p.target[3] += 0.1
    assert not close_directly(p, L, work)


def test_others_are_left_to_newton(rng):
    p = problem(rng, 2)
    work, L = prepared(p)
    p.low[1] = 0.0
    assert not close_directly(p, L, work)
    many = problem(rng, MOST + 1, parents=range(-1, MOST + 8))
    work, L = prepared(many)
    assert not close_directly(many, L, work)
