"""Contacts that go on from the last step: which ones, with what impulses and velocities.

Without them a step would be solved as well, from zero.
"""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.collision.tables import Found
from kinetree.contact.engine import known_contacts
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.engine.sleep import Sleep
from kinetree.contact.newton.problem import Problem
from kinetree.spatial.rotation import rotation_exp

SLOTS = 257
INT = np.int64


def known(keys, spots, **options):
    n = len(keys)
    rows = Rows(
        slots=SLOTS, slot=np.zeros(SLOTS, INT), pair_slot=np.full(SLOTS, 7),
        key=np.zeros((n + 40, 3), INT), spot=np.zeros((n + 40, 3)), known=n,
        claimed=np.full(n + 40, 5), match=np.full(60, 5), local=np.zeros((60, 3)),
        order=np.arange(60), **options,
    )  # fmt: skip
    rows.key[:n], rows.spot[:n] = keys, spots
    known_contacts.known_again(rows)
    return rows


def found_of(keys, points, pose):
    """Contacts at places in coordinates of their second bodies, whose number is the shape's."""
    keys = np.array(keys, dtype=INT).reshape(-1, 3)
    R, x = pose[:, :, :3], pose[:, :, 3]
    second = keys[:, 1]
    at = np.einsum("nij,nj->ni", R[second], points) + x[second]
    return Found(
        count=len(keys), capacity=len(keys), point=at, first=keys[:, 0].copy(),
        second=second.copy(), feature=keys[:, 2].copy(), bodies=keys[:, :2].copy(),
    )  # fmt: skip


def poses(rng, n):
    return np.array([np.column_stack([rotation_exp(rng.normal(size=3)), rng.normal(size=3)])
                     for _ in range(n)])  # fmt: skip


def matched(keys, spots, new_keys, places, order):
    """Numbers of the known contacts that others go on from, by the description."""
    keys, claims, match = [tuple(k) for k in keys], set(), {}

    def nearest(c, free):
        same = [n for n, k in enumerate(keys) if k[:2] == tuple(new_keys[c][:2])
                and not (free and n in claims)]  # fmt: skip
        return min(same, key=lambda n: np.linalg.norm(places[c] - spots[n]), default=None)

    for c in order:
        key = tuple(new_keys[c])
        if key in keys:
            n = keys.index(key)
            if np.linalg.norm(places[c] - spots[n]) <= 1e-9 or nearest(c, False) == n:
                match[c] = n
                claims.add(n)
    for c in order:
        if c not in match and (n := nearest(c, True)) is not None:
            match[c] = n
            claims.add(n)
    return match, claims


def test_contacts_go_on_from_those_of_their_name_or_the_nearest_of_the_same_shapes(rng):
    """Where features exchange their names, come, go, or several lie in one place."""
    pose = poses(rng, 6)
    kinds = {"name": 0, "other": 0, "new": 0}
    for _ in range(60):
        pairs = [(i, j) for i in range(6) for j in range(i + 1, 6) if rng.random() < 0.5]
        keys = [(i, j, 10**6 * (i % 3) + f) for i, j in pairs
                for f in rng.permutation(9)[: rng.integers(1, 5)]]  # fmt: skip
        spots = rng.normal(size=(len(keys), 3))
        new, places = [], []
        for k, s in zip(keys, spots, strict=True):
            if rng.random() < 0.8:
                name = (*k[:2], rng.integers(9)) if rng.random() < 0.4 else k
                if name not in new:
                    new.append(name)
                    places.append(s + rng.choice([0.0, 1e-12, 0.5, 3.0]) * rng.normal(size=3))
        new.append((0, 5, 99))
        places.append(np.zeros(3))
        rows = known(keys, spots)
        f = found_of(new, np.array(places), pose)
        m = Mechanism(pose=pose.reshape(-1, 12))
        count = rng.integers(1, len(new) + 1)
        rows.order[: len(new)] = rng.permutation(len(new))
        order = rows.order[:count].tolist()
        known_contacts.match_contacts(m, rows, f, count)
        assert_close(rows.local[: len(new)], np.array(places), scale=1.0, ulps=64)
        match, claims = matched(keys, spots, new, rows.local, order)
        assert rows.match[order].tolist() == [match.get(c, -1) + 1 for c in order]
        assert np.flatnonzero(rows.claimed[: len(keys)]).tolist() == sorted(claims)
        for c in order:
            way = "new" if c not in match else "name" if new[c] == keys[match[c]] else "other"
            kinds[way] += 1
    assert min(kinds.values()) > 15


def test_names_are_found_again_and_new_ones_get_numbers(rng):
    keys = [(i, j, int(f)) for i in range(4) for j in range(i, 5)
            for f in (3, -3, 1000003 + 3, 10**7)]  # fmt: skip
    rows = known(keys, np.zeros((len(keys), 3)))
    for n, k in enumerate(keys):
        assert rows.slot[known_contacts.slot_of(rows, *k)] == n + 1
    assert rows.slot[known_contacts.slot_of(rows, 3, 1, 3)] == 0
    known_contacts.index_pairs(rows)
    for pair in {k[:2] for k in keys}:
        first = min(n for n, k in enumerate(keys) if k[:2] == pair)
        assert rows.pair_slot[known_contacts.pair_slot_of(rows, *pair)] == first + 1
    assert np.count_nonzero(rows.pair_slot) == len({k[:2] for k in keys})
    f = found_of([keys[2], (5, 5, 1), (5, 5, 1)], np.zeros((3, 3)), poses(rng, 6))
    assert [known_contacts.new_number(rows, f, c) for c in range(3)] == [-1, len(keys), -1]
    assert rows.known == len(keys) + 1
    assert rows.key[len(keys)].tolist() == [5, 5, 1]


def test_tables_are_full_to_the_end_and_go_on_at_the_beginning():
    """Names that lie in the last place are followed by the first."""
    rows = Rows(slots=5, slot=np.zeros(5, INT), pair_slot=np.zeros(5, INT),
                key=np.zeros((5, 3), INT), known=4)  # fmt: skip
    rows.key[:4] = [(0, 4, 31 * 0 + k) for k in range(4)]
    rows.key[:4, 1] = [4, 9, 14, 19]
    rows.key[:4, 2] = 0
    known_contacts.known_again(rows)
    assert sorted(rows.slot.tolist()) == [0, 1, 2, 3, 4]
    start = 4 * 104729 % 5
    assert [rows.slot[(start + k) % 5] for k in range(5)] == [1, 2, 3, 4, 0]
    known_contacts.index_pairs(rows)
    assert np.array_equal(rows.slot, rows.pair_slot)


@pytest.mark.parametrize("follows", [0, 1])
@pytest.mark.parametrize("ball", [0, 1])
def test_half_of_what_velocities_change_by(follows, ball, rng):
    """Since the last step ended; an impact where that is not about what it was before."""
    kinds = set()
    for _ in range(40):
        pose = poses(rng, 2)
        twist = np.vstack([np.zeros(6), rng.normal(size=6)])
        point, axes = rng.normal(size=3), rotation_exp(rng.normal(size=3))
        n, h = int(rng.integers(0, 3)), 0.01
        w = axes @ (twist[1, 3:] + np.cross(twist[1, :3], point - pose[1][:, 3]))
        ended, small = w + 0.1 * rng.normal(size=(2, 3)), 0.1 * rng.normal(size=3)
        bent = (w - ended) / 2 + rng.choice([0.2, 1.0]) * small * rng.normal(size=(2, 3))
        rows = Rows(
            follows=follows, ball=np.array([0, ball]), kept=np.array([[1.0] * 6, [0.0] * 6]),
            ended=ended, bent=bent, axes=axes[None], bend=np.zeros((1, 3)), prior=np.zeros((1, 3)),
            turned=np.zeros((1, 2, 3)), gap=np.array([0.3]),
        )  # fmt: skip
        f = Found(bodies=np.array([[0, 1]]), point=point[None], first=np.zeros(1, INT),
                  second=np.ones(1, INT))  # fmt: skip
        m = Mechanism(pose=pose.reshape(2, 12), root=np.array([0, 1]))
        known_contacts.bending(m, rows, f, 0, n, 0, h, twist)
        on = follows and n == 1
        prior = ended[0] if on else w
        bend = (w - prior) / 2
        last = bent[0] if on else bend
        jumps = np.linalg.norm(bend - last) > np.linalg.norm(bend) / 2
        assert_close(rows.prior[0], prior, scale=1.0, ulps=64)
        assert_close(rows.turned[0], [bend, last], scale=1.0, ulps=64)
        expected = 0 * bend if jumps and not ball else bend
        assert_close(rows.bend[0], expected, scale=1.0, ulps=64)
        assert_close(rows.gap[0], 0.3 - h / 4 * expected[0], scale=1.0)
        kinds.add((bool(on), bool(jumps)))
    assert kinds == ({(False, False), (True, False), (True, True)} if follows else {(False, False)})


@pytest.mark.parametrize("ended", [True, False])
def test_what_is_kept_of_a_step(ended, rng):
    """Impulses per second of contacts, stops, dry friction and loops; once for each name."""
    h, numbers = 0.01, [2, 0, 1, 0, 1, 4, 2]
    groups = dict.fromkeys(range(3), "contact") | {3: "stop", 4: "stop", 5: "loop", 6: "dry"}
    dim = np.array([3, 6, 1, 1, 1, 1, 1])
    p = Problem(groups=7, dim=dim, row_first=np.cumsum([0, *dim]), impulse=rng.normal(size=14))
    rows = Rows(
        slots=SLOTS, slot=np.ones(SLOTS, INT), key=np.zeros((9, 3), INT), contacts=3,
        contact=np.array(numbers), stops=2, dry=1, loops=3, known=5,
        dim=np.zeros(8, INT), force=np.zeros((8, 6)), kept=np.full((8, 6), 7.0),
        ended=np.zeros((8, 3)), spot=np.zeros((8, 3)), bent=np.zeros((8, 3)),
        slip=rng.normal(size=(8, 3)), bend=rng.normal(size=(8, 3)), prior=rng.normal(size=(8, 3)),
        local=rng.normal(size=(8, 3)), turned=rng.normal(size=(8, 2, 3)),
        stop_kept=np.zeros(2), dry_kept=np.zeros(1), loop_kept=np.zeros(3),
        slept=rng.normal(size=(8, 6)),
    )  # fmt: skip
    keys = [(0, 1, 5), (0, 1, 6), (0, 2, 5), (0, 3, 1)]
    f = found_of(keys, rng.normal(size=(4, 3)), poses(rng, 4))
    f.bodies[:, 1] = 1, 1, 1, 2
    z = Sleep(asleep=1, tree=np.array([-1, 0, 1]), sleeps=np.array([0, 1]))
    known_contacts.remember(p, rows, f, h, ended, z)
    lam = [p.impulse[p.row_first[g] : p.row_first[g + 1]] / h for g in range(7)]
    assert rows.dim[:7].tolist() == dim.tolist()
    for g in range(7):
        assert_close(rows.force[g, : dim[g]], lam[g])
    assert rows.known == 4  # the last one sleeps
    for n, g in enumerate(range(3)):
        c = numbers[g]
        assert tuple(rows.key[n]) == keys[c]
        assert_close(rows.kept[n], np.pad(lam[g], (0, 6 - dim[g])), scale=1.0)
        assert_close(rows.ended[n], rows.slip[g] - rows.bend[g] if ended else rows.prior[g])
        assert_close(rows.spot[n], rows.local[c])
        assert_close(rows.bent[n], rows.turned[g, 0 if ended else 1])
    assert tuple(rows.key[3]) == keys[3]
    assert_close(rows.kept[3], rows.slept[3])
    assert_close(rows.spot[3], rows.local[3])
    assert not np.any(rows.ended[3])
    assert not np.any(rows.bent[3])
    kept = rows.stop_kept.tolist() + rows.dry_kept.tolist() + rows.loop_kept.tolist()
    expected = [lam[3][0], lam[4][0], lam[6][0], 0, lam[5][0], 0]
    np.testing.assert_allclose(kept, expected)
    assert set(groups.values()) == {"contact", "stop", "dry", "loop"}

    p.impulse[:] = 7.0
    known_contacts.warm_start(p, rows, 2, 1, h)
    assert_close(p.impulse[3:9], h * rows.kept[1], scale=1.0)
    known_contacts.warm_start(p, rows, 0, 0, h)
    assert p.impulse.tolist()[:3] == [0, 0, 0]
    assert np.all(p.impulse[9:] == 7.0)


def test_forces_of_what_sleeps_are_listed_and_kept(rng):
    keys = [(0, 1, 5), (0, 1, 6), (1, 2, 5), (0, 2, 1)]
    tables = {"slept": np.full((4, 6), 7.0), "kept": rng.normal(size=(3, 6))}
    rows = known(keys[:3], np.zeros((3, 3)), groups_room=9, stops=1, dry=1, loops=1, **tables)
    f = found_of(keys, np.zeros((4, 3)), poses(rng, 3))
    z = Sleep(asleep=1, tree=np.array([-1, 0, 1]), sleeps=np.array([1, 0]))
    assert known_contacts.keep_asleep(z, rows, f) == 0
    expected = [rows.kept[0], rows.kept[1], np.full(6, 7.0), np.full(6, 7.0)]
    assert_close(rows.slept, np.array(expected))
    z.sleeps[1] = 1
    assert known_contacts.keep_asleep(z, rows, f) == 0
    assert_close(rows.slept[2:], np.array([rows.kept[2], np.zeros(6)]), scale=1.0)
    rows.groups_room = 8
    assert known_contacts.keep_asleep(z, rows, f) == known_contacts.FULL
    z.asleep = 0
    assert known_contacts.keep_asleep(z, rows, f) == 0
