"""Rows of contacts are velocities of points of bodies; islands, and what closes without a row."""

import itertools

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.collision.tables import Found
from kinetree.contact.engine import contact_frames, contact_rows
from kinetree.contact.engine.mechanism import Mechanism, body_velocities
from kinetree.contact.engine.row_tables import FULL, Rows
from kinetree.contact.engine.sleep import Sleep
from kinetree.contact.newton.problem import CONE, Problem, problem_of, with_room
from kinetree.spatial.rotation import rotation_exp

INT = np.int64


def forest(rng, bodies=9):
    """Bodies on joints of 0 to 6 variables, whose runs without branches are nodes of several."""
    parent, count = [0], [0]
    for i in range(1, bodies):
        parent.append(0 if rng.random() < 0.3 else i - 1 if rng.random() < 0.6 else rng.integers(i))
        count.append(int(rng.choice([0, 1, 1, 2, 3, 6])))
    first = np.cumsum([0, *count[:-1]])
    last, root, dof_parent = [-1], [0], []
    for i in range(1, bodies):
        up = parent[i]
        for n in range(count[i]):
            dof_parent.append(last[up] if n == 0 else int(first[i]) + n - 1)
        last.append(int(first[i]) + count[i] - 1 if count[i] else last[up])
        root.append(root[up] if up else i)
    p = problem_of(dof_parent)
    last = np.array(last, dtype=INT)
    node = np.where(last >= 0, p.dof_node[np.maximum(last, 0)], -1) if p.nv else last
    pose = np.array([np.column_stack([rotation_exp(rng.normal(size=3)), rng.normal(size=3)])
                     for _ in range(bodies)]).reshape(-1, 12)  # fmt: skip
    m = Mechanism(
        bodies=bodies, nv=p.nv, parent=np.array(parent, dtype=INT), root=np.array(root, dtype=INT),
        first=first.astype(INT), count=np.array(count, dtype=INT), last=last, node=node.astype(INT),
        pose=pose, S=rng.normal(size=(p.nv, 6)), free=np.ones(p.nv), twist=np.zeros((bodies, 6)),
    )  # fmt: skip
    return p, m


def carried_by(m, i):
    """Variables that move a body."""
    found = []
    while i > 0:
        found += range(m.first[i], m.first[i] + m.count[i])
        i = m.parent[i]
    return found


def motions(m, i, x):
    """Columns of the velocity of the point of body i at x, (6, nv): angular, then linear."""
    G = np.zeros((6, m.nv))
    d = x - m.pose[m.root[i], 3::4]
    for k in carried_by(m, i):
        w, v = m.S[k, :3], m.S[k, 3:]
        G[:, k] = np.concatenate([w, v + np.cross(w, d)])
    return G


def contacts(rng, m, n):
    ends = np.array([sorted(rng.choice(m.bodies, 2, replace=False)) for _ in range(n)])
    normal = rng.normal(size=(n, 3))
    return Found(
        count=n, bodies=ends, point=rng.normal(size=(n, 3)), dim=rng.choice([1, 3, 4, 6], n),
        normal=normal / np.linalg.norm(normal, axis=1)[:, None], gap=rng.normal(size=n),
        friction=rng.uniform(0.1, 1, (n, 3)), drift=rng.normal(size=(n, 3)),
    )  # fmt: skip


def rows_with_room(n=60, **options):
    return Rows(
        **{"groups_room": n, "rows_room": 6 * n, "entries_room": 12 * n, "numbers_room": 400 * n,
           "fixed": np.full(400 * n, 7.0), "active": np.zeros(n, INT), "order": np.zeros(n, INT),
           "pile": np.zeros(n, INT), "place": np.zeros(n, INT), "contact": np.zeros(n, INT),
           "axes": np.zeros((n, 3, 3)), "scale": np.zeros((n, 6)), "gap": np.zeros(n), **options}
    )  # fmt: skip


def dense(p, numbers, g):
    J = np.zeros((p.dim[g], p.nv))
    for e in range(p.entry_first[g], p.entry_first[g + 1]):
        a = p.entry_node[e]
        columns = slice(p.node_first[a], p.node_first[a] + p.node_count[a])
        block = numbers[p.entry_at[e] :][: p.dim[g] * p.node_count[a]]
        J[:, columns] = block.reshape(p.dim[g], -1)
    return J


@pytest.mark.parametrize("prescribed", [0, 1])
def test_rows_are_velocities_along_and_about_the_axes(prescribed, rng):
    for _ in range(25):
        p, m = forest(rng)
        if not p.nv:
            continue
        m.prescribed = prescribed
        if prescribed:
            m.free[:] = rng.choice([0.0, 1.0], p.nv)
        f, rows, v = contacts(rng, m, 8), rows_with_room(), rng.normal(size=p.nv)
        with_room(p, 60, 360, 720, 24000)
        p.J[:] = 7.0
        for c in range(f.count):
            assert contact_rows.add_contact(m, p, rows, f, c, v) == 0
        assert p.groups == f.count
        for c in range(f.count):
            i, j = f.bodies[c]
            G = motions(m, j, f.point[c]) - motions(m, i, f.point[c])
            common = set(carried_by(m, i)) & set(carried_by(m, j))
            G[:, sorted(common)] = 0.0
            axes, dim = rows.axes[c], f.dim[c]
            assert_close(axes[0], f.normal[c])
            whole = np.vstack([axes @ G[3:], axes @ G[:3]])[:dim]
            mu = f.friction[c, [0, 0, 0, 1, 2, 2]]
            scale = np.array([1.0, *(mu[1:] / mu[0])])[:dim]
            whole *= scale[:, None]
            assert p.kind[c] == CONE
            assert p.dim[c] == dim
            assert p.mu[c] == (f.friction[c, 0] if dim > 1 else 0.0)
            assert (p.low[c], p.high[c]) == (0.0, 1e300)
            assert_close(dense(p, p.J, c), whole * m.free, scale=10.0)
            target = np.zeros(dim)
            target[1:3] = (axes @ f.drift[c])[1:dim][:2]
            if prescribed:
                assert_close(dense(p, rows.fixed, c), whole * (1 - m.free), scale=10.0)
                target += whole @ ((1 - m.free) * v)
            assert_close(p.target[p.row_first[c] :][:dim], target, scale=10.0, ulps=1e3)
            nodes = p.entry_node[p.entry_first[c] : p.entry_first[c + 1]]
            assert np.all(np.diff(nodes) < 0)
            assert rows.contact[c] == p.label[c] == c
            assert rows.gap[c] == f.gap[c]
            assert rows.active[c] == c + 1
        assert rows.numbers == p.entry_at[p.entry_first[p.groups] - 1] + (
            p.dim[p.groups - 1] * p.node_count[p.entry_node[p.entry_first[p.groups] - 1]]
        )


def test_lists_that_are_too_small_are_noticed(rng):
    p, m = forest(rng)
    while p.nv < 12:
        p, m = forest(rng)
    f = contacts(rng, m, 6)
    with_room(p, 60, 360, 720, 24000)
    for c in range(6):
        contact_rows.add_contact(m, p, rows_with_room(), f, c, np.zeros(p.nv))
    numbers = {"groups_room": 6, "rows_room": int(p.row_first[6]),
               "entries_room": int(p.entry_first[6])}  # fmt: skip
    for name, least in numbers.items():
        for size, code in ((least + 6, 0), (least, FULL)):
            p.groups = p.row_first[0] = p.entry_first[0] = 0
            rows = rows_with_room(**{name: size})
            codes = [contact_rows.add_contact(m, p, rows, f, c, np.zeros(p.nv)) for c in range(6)]
            assert min(codes) == code


def test_frictions_decide_which_rows_there_are():
    rows = rows_with_room()
    f = Found(
        normal=np.tile([0.0, 0, 1], (7, 1)), dim=np.array([3, 6, 6, 4, 4, 6, 1]),
        friction=np.array([(0.0, 1, 1), (0.5, 0, 0), (0.5, 0.1, 0), (0.0, 0.3, 0), (0.5, 0, 0.0),
                           (0.0, 0.2, 0.4), (0.5, 1, 1)]),
    )  # fmt: skip
    found = [contact_frames.scaled_rows(rows, f, c, c) for c in range(7)]
    expected = [(1, 0.0), (3, 0.5), (6, 0.5), (4, 0.3), (3, 0.5), (6, 0.4), (1, 0.5)]
    np.testing.assert_allclose(found, expected)
    least = contact_frames.LEAST
    assert_close(rows.scale[2], [1, 1, 1, 0.2, least, least], scale=1.0)
    assert_close(rows.scale[3, :4], [1, least, least, 1], scale=1.0)
    assert_close(rows.scale[5], [1, least, least, 0.5, 1, 1], scale=1.0)


def some_trees(rng, n, trees):
    """Contacts of bodies, one to a tree, and of the ground."""
    ends = np.array([rng.choice(trees + 1, 2, replace=False) for _ in range(n)])
    f = Found(count=n, bodies=ends)
    z = Sleep(tree=np.array([-1, *range(trees)]), trees=trees)
    return f, z, Problem(trees=trees)


def test_contacts_are_listed_island_by_island(rng):
    for _ in range(20):
        f, z, p = some_trees(rng, 12, 9)
        rows = rows_with_room(active=rng.choice([0, 0, 1, -1], 60))
        acts = [c for c in range(12) if rows.active[c] != 0]
        of = {t: {t} for t in range(9)}
        for c in acts:
            a, b = z.tree[f.bodies[c]]
            if a >= 0 and b >= 0:
                joined = of[a] | of[b]
                for t in joined:
                    of[t] = joined
        first = [min(of[max(z.tree[f.bodies[c]])]) for c in acts]
        expected = [c for _, c in sorted(zip(first, acts, strict=True))]
        count = contact_rows.by_islands(p, rows, f, z)
        assert count == len(acts)
        assert rows.order[:count].tolist() == expected
        piles = [contact_rows.pile_of(p, rows, f, c, z) for c in acts]
        assert piles == first
    ground = Found(count=1, bodies=np.array([[0, 0]]))
    assert contact_rows.pile_of(p, rows, ground, 0, z) == p.trees


def test_what_can_close_and_what_has_closed(rng):
    kinds = set()
    for _ in range(40):
        p, m = forest(rng, 5)
        if not p.nv:
            continue
        f, h, slack = contacts(rng, m, 4), 0.1, 0.01
        before, after = np.zeros((2, 5, 6))
        v, u = rng.normal(size=(2, p.nv))
        body_velocities(m, v, before)
        body_velocities(m, u, after)
        w = np.array([[f.normal[c] @ (motions(m, j, f.point[c]) - motions(m, i, f.point[c]))[3:] @ x
                       for c, (i, j) in enumerate(f.bodies)] for x in (v, u)])  # fmt: skip
        f.gap[:] = rng.choice([-0.1, 0.005, 0.1, 0.3], 4)
        near = (f.gap <= slack) | (f.gap + h * w.min(axis=0) < slack)
        found = [contact_rows.approaching(m, f, c, h, slack, before, after) for c in range(4)]
        assert found == near.tolist()
        rows = rows_with_room()
        rows.active[0] = 3
        z = Sleep(asleep=1, tree=np.arange(5) - 1, sleeps=np.array([0, 0, 0, 1]))
        f.bodies[3] = 0, 4
        w[1, 3] = f.normal[3] @ motions(m, 4, f.point[3])[3:] @ u
        closed = f.gap + h * w[1] < -slack
        expected = closed & [False, True, True, False]
        expected &= [not (set(e) <= {0, 4}) for e in f.bodies.tolist()]
        assert contact_rows.count_missed(m, f, rows, h, slack, after, z) == expected.sum()
        assert rows.active[:4].tolist() == [3, *(-1 * expected[1:])]
        kinds |= set(itertools.chain(found, expected.tolist()))
    assert kinds == {True, False}
