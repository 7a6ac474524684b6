"""Sweeps over the groups of an island, one group after the other, by dense matrices."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.islands import begun, filled

from kinetree.contact.newton.freedoms import (
    add_multiple,
    add_rows,
    clear_numbers,
    copy_numbers,
    largest_scaled,
    negate,
    sum_of_squares,
)
from kinetree.contact.newton.matrix import is_loop
from kinetree.contact.newton.mixtures import note_changes, sweep_rounds
from kinetree.contact.newton.problem import BOUNDS, CONE
from kinetree.contact.newton.start import prepare
from kinetree.contact.newton.sweeps import responses, sweep

SIZES = (6, 6, 3, 1)  # free bodies, a ball joint, a slider: one node each


def an_island(seed, kinds):
    rng = np.random.default_rng(seed)
    ends = np.cumsum(SIZES)
    n = ends[-1]
    parent = np.concatenate(
        [[-1, *range(end - k, end - 1)] for end, k in zip(ends, SIZES, strict=True)]
    )
    M = np.zeros((n, n))
    for end, k in zip(ends, SIZES, strict=True):
        root = rng.normal(size=(k, k + 2))
        M[end - k : end, end - k : end] = root @ root.T + np.eye(k)
    rows = []
    for dim, bodies in kinds:
        J = np.zeros((dim, n))
        for b in bodies:
            J[:, ends[b] - SIZES[b] : ends[b]] = rng.normal(size=(dim, SIZES[b]))
        low, high = [(0.0, np.inf), (-0.2, 0.3)][rng.integers(2)]
        kind = (BOUNDS, J, 0.3 * rng.normal(size=1), 0.0, low, high)
        cone = (CONE, J, 0.3 * rng.normal(size=dim), rng.uniform(0.2, 1), 0.0, np.inf)
        rows.append(kind if dim == 1 and rng.random() < 0.7 else cone)
    p = filled(parent, M, rows)
    p.free[:], p.velocity[:] = rng.normal(size=(2, n))
    p.impulse[: p.row_first[p.groups]] = 0.3 * np.abs(rng.normal(size=p.row_first[p.groups]))
    return p, M, rows


KINDS = {
    "one": [(3, (0,)), (1, (0,)), (3, (0, 1)), (1, (0, 1)), (4, (0, 1)), (6, (1, 0)), (3, (1,))],
    "joints": [
        (3, (0, 2)),
        (1, (2,)),
        (1, (2, 3)),
        (4, (2,)),
        (3, (3, 2)),
        (6, (2, 0)),
        (1, (0, 3)),
    ],
}


def discs(dim):
    return {1: [], 3: [[1, 2]], 4: [[1, 2], [3]], 6: [[1, 2], [3], [4, 5]]}[dim]


def one_sweep(p, M, rows, lam, v):
    """Normal part first, then friction within what it allows; velocities follow."""
    inverse = np.linalg.inv(M)
    for g, (kind, J, target, mu, low, high) in enumerate(rows):
        at = slice(p.row_first[g], p.row_first[g + 1])
        x, w, D = lam[at].copy(), J @ v + target, J @ inverse @ J.T
        new = x.copy()
        new[0] = x[0] - w[0] / D[0, 0]
        new[0] = np.clip(new[0], low, high) if kind == BOUNDS else max(new[0], 0.0)
        if len(x) > 1:
            w = w + D[:, 0] * (new[0] - x[0])
            t = x - w / np.diag(D)[1:].max()
            for disc in discs(len(x)):
                size = np.linalg.norm(t[disc])
                new[disc] = t[disc] * min(1.0, mu * new[0] / size)
        v += inverse @ J.T @ (new - x)
        lam[at] = new


@pytest.mark.parametrize("kinds", KINDS)
def test_sweeps_are_those_of_gauss_and_seidel(kinds):
    for seed in range(8):
        p, M, rows = an_island(seed, KINDS[kinds])
        work, _ = begun(p)
        n = p.row_first[p.groups]
        lam = work.lam[:n].copy()
        assert responses(p, work, 0)
        J = np.vstack([r[1] for r in rows])
        inverse = np.linalg.inv(M)
        v = p.free + inverse @ J.T @ lam
        here = np.any(J, axis=0)  # of the island
        assert_close(work.v[: p.nv][here], v[here], scale=10.0, ulps=1e4)
        for g, (_, own, *_) in enumerate(rows):
            D = work.A[6 * p.row_first[g] :][: len(own) ** 2].reshape(len(own), -1)
            assert_close(D, own @ inverse @ own.T, scale=10.0, ulps=1e4)
            assert not is_loop(p, g)
        for _ in range(4):
            sweep(p, work, 0)
            one_sweep(p, M, rows, lam, v)
            assert_close(work.lam[:n], lam, scale=10.0, ulps=1e5)
            assert_close(work.v[: p.nv][here], v[here], scale=10.0, ulps=1e5)


def test_products_of_changes_and_of_their_differences():
    rng = np.random.default_rng(0)
    p, _, _ = an_island(1, KINDS["one"])
    work, _ = begun(p)
    n, G = p.row_first[p.groups], np.zeros((4, 4))
    scale = np.sqrt(np.repeat(work.delassus[: p.groups], p.dim[: p.groups]))
    last, places = np.zeros((n, 2)), np.zeros((n, 3))
    work.changes[:], work.impulses[:] = 0.0, 0.0
    work.scale[:n], impulses = scale, work.impulses.reshape(4, -1)
    for at in (0, 1, 2, 0, 1):
        work.y[:n], work.lam[:n] = rng.normal(size=(2, n))
        f = scale * (work.lam[:n] - work.y[:n])
        size, most = note_changes(work, 0, at, G)
        assert_close(size, f @ f)
        assert_close(most, np.abs(f).max())
        places[:, at] = f - last[:, 0]
        assert_close(impulses[at, :n], work.lam[:n] - last[:, 1], scale=10.0)
        last[:, 0], last[:, 1] = f, work.lam[:n]
        assert_close(G[at, :3], places.T @ places[:, at], scale=100.0)
        assert_close(G[:3, at], places.T @ places[:, at], scale=100.0)
        assert_close(G[:3, 3], places.T @ f, scale=100.0)


def test_effort_of_sweeps():
    """Rounds until nothing changes by more than a part in a million, in all."""
    rounds = []
    for seed in range(20):
        p, *_ = an_island(seed, KINDS["one"])
        work, _ = begun(p)
        assert responses(p, work, 0)
        rounds.append(sweep_rounds(p, work, 0, 60, 1e-6))
    assert abs(sum(rounds) - 236) <= 3, sum(rounds)


@pytest.mark.parametrize("kinds", KINDS)
def test_responses_that_are_known_serve_again(kinds):
    p, _, _ = an_island(3, KINDS[kinds])
    work, _ = begun(p)
    assert responses(p, work, 0)
    assert kinds == "joints" or work.responds[: p.groups].any()
    p.free[:] += 0.1
    found = []
    for _ in range(2):
        assert responses(p, work, 0)
        found.append([x.copy() for x in (work.v, work.A, work.AJ)])
        work.responds[:] = 0
    for known, anew in zip(*found, strict=True):
        np.testing.assert_array_equal(known, anew)


def test_what_is_kept_of_masses_is_that_of_other_masses_too():
    p, *_ = an_island(3, KINDS["one"])
    work, _ = begun(p)
    for factor in (1.0, 1.0, 2.0, 0.25):
        p.M *= factor
        p.changed = 1
        prepare(p, work, 0)
        work.responds[:] = 0
        assert responses(p, work, 0)
        fresh, _ = begun(p)
        assert responses(p, fresh, 0)
        for name in ("inverse", "metric", "root", "delassus", "AJ", "A", "v"):
            np.testing.assert_array_equal(getattr(work, name), getattr(fresh, name))


def test_numbers_of_an_island(rng):
    p, _, _ = an_island(0, KINDS["joints"])
    work, _ = begun(p)
    here = work.island_dof[: work.island_dofs_first[1]]
    x, to, scale = rng.normal(size=(3, p.nv))
    scale = np.abs(scale)
    expected = to.copy()
    expected[here] += 0.3 * x[here]
    add_multiple(p, work, 0, 0.3, x, to)
    assert_close(to, expected, scale=1.0)
    assert_close(
        sum_of_squares(p, work, 0, x, scale), np.sum(x[here] ** 2 * scale[here]), scale=10.0
    )
    most, total = largest_scaled(p, work, 0, x, scale)
    assert most == np.max(np.abs(x[here]) * scale[here])
    assert_close(total, np.sum(x[here]), scale=10.0)
    other = x.copy()
    assert_close(negate(p, work, 0, other), np.sum(x[here]), scale=10.0)
    np.testing.assert_array_equal(other[here], -x[here])
    copy_numbers(p, work, 0, x, other)
    np.testing.assert_array_equal(other, x)
    clear_numbers(p, work, 0, other)
    assert not np.any(other[here])
    rows = p.row_first[p.groups]
    y, sums = rng.normal(size=(2, rows + 4))
    expected = sums + 0.7 * y * (np.arange(rows + 4) < rows)
    add_rows(work, 0, 0.7, y, sums)
    assert_close(sums, expected, scale=1.0)
