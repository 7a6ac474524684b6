"""Contacts with slots where they couple trees: classes, elimination of trees, impulses."""

from itertools import accumulate, pairwise

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import assert_laws_hold

from kinetree.contact.engine import slot_classes, slot_coupled, slot_trees
from kinetree.contact.engine.slot_classes import odd
from kinetree.contact.engine.slot_laws import SLOT_SIZE
from kinetree.contact.engine.slot_pairs import PairTables
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns

SLOTS, USED = 11, 9
SIZES = (6, 8, 6, 3, 13)
"""Variables of the trees; contacts touch one or two of them."""


class Problem:
    """Contacts of some trees, sorted by classes, with random rows."""

    def __init__(self, rng):
        trees, nv = len(SIZES), sum(SIZES)
        first = [0, *accumulate(SIZES)]
        sides = [(t, t) for t in range(trees)]
        sides += [(a, b) for a in range(trees) for b in range(a + 1, trees)]
        support = [
            [*range(*first[a : a + 2]), *(range(*first[b : b + 2]) if a != b else ())]
            for a, b in sides
        ]
        deep = -(-max(map(len, support)) // 4) * 4
        self.nv, self.deep, self.sides, self.first = nv, deep, np.array(sides), first
        self.chain = [k for c in support for k in (*c, *[nv] * (deep - len(c)))]
        self.support = support
        self.work = np.zeros(4 * SLOTS + trees)
        self.taken = np.concatenate([rng.permutation(USED), np.zeros(SLOTS - USED)]).astype(float)
        self.classes = np.zeros(SLOTS + 1)
        carrier = rng.integers(0, len(sides), USED)
        self.pairs = PairTables(carrier=carrier, column=np.arange(USED))
        self.fields = {
            "slots": SLOTS, "nv": nv, "trees": trees, "deep": deep, "contacts": USED,
            "trunk": np.array(first), "sides": self.sides, "chain": np.array(self.chain),
            "moves": np.array(list(map(len, support))),
            "touched": np.array([1 << a | 1 << b for a, b in sides]),
            "taken_step": 1, "which_step": 1, "points_step": 1, "classes_step": 1,
            "own_step": 1, "slot_step": 1, "start_step": 1, "held_step": 1, "Y_step": 1,
            "u_step": 1, "z_step": 1, "taken": self.taken, "classes": self.classes,
            "work": self.work, "K": np.full(nv * (nv + 1), 7.0),
        }  # fmt: skip
        slot_classes.sort_slots(1, SlotWorld(**self.fields), self.pairs, USED)
        self.carrier = carrier[self.taken[:USED].astype(int)]
        self.rows = np.zeros((3 * USED, nv))
        for s, c in enumerate(self.carrier):
            self.rows[3 * s : 3 * s + 3, support[c]] = rng.normal(size=(3, len(support[c])))

    def unknowns(self):
        """The record that lanes share, with these rows."""
        trees, deep = len(SIZES), self.deep
        rows = np.zeros((3, deep, odd(SLOTS)))
        for s, c in enumerate(self.carrier):
            own = self.support[c]
            rows[:, : len(own), s] = self.rows[3 * s : 3 * s + 3, own]
        ends = np.zeros(SLOTS + 1, dtype=np.int64)
        ends[: USED + 1] = self.classes[: USED + 1]
        floats = {"mu": 1, "target": 1, "b": 3, "lam": 3, "w": 3, "W": 9, "best": 3}
        return Unknowns(
            carrier=np.append(self.carrier, [0] * (SLOTS - USED)), rows=rows.ravel(), ends=ends,
            joined=np.zeros(trees, dtype=np.int64), order=np.zeros(3 * trees, dtype=np.int64),
            listed=np.full(trees * self.nv, -1), v=np.zeros(self.nv + 1),
            older=np.zeros(self.nv + 1), **{n: np.zeros(k * SLOTS) for n, k in floats.items()},
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_contacts_of_a_class_share_no_tree(seed):
    p = Problem(np.random.default_rng(seed))
    assert sorted(p.taken[:USED]) == list(range(USED))
    ends = [0, *p.classes[1 : 1 + int(p.classes[0])].astype(int)]
    assert ends[-1] == USED
    for a, b in pairwise(ends):
        trees = [t for c in p.carrier[a:b] for t in set(p.sides[c])]
        assert len(trees) == len(set(trees)) > 0
    assert int(p.classes[0]) < USED


def test_more_classes_than_bits(rng):
    """Contacts that all share one tree have a class each."""
    many = slot_classes.COLOURS + 9
    world = SlotWorld(trees=2)
    found, side = np.zeros(many), np.zeros((many, 2))
    side[::2, 1] = 1.0
    slot_classes.colour_slots(world, many, side, found, np.zeros(2))
    assert sorted(found) == list(range(many))


@pytest.mark.parametrize("seed", range(4))
def test_products_with_rows(seed):
    rng = np.random.default_rng(seed)
    p = Problem(rng)
    its, world = p.unknowns(), SlotWorld(**p.fields)
    lam = rng.normal(size=3 * SLOTS)
    slot_classes.press(world, its, USED, lam, its.v)
    assert_close(its.v[:-1], p.rows.T @ lam[: 3 * USED], scale=10.0, ulps=100)
    assert its.v[-1] == 0.0
    its.b[:] = rng.normal(size=3 * SLOTS)
    slot_classes.speeds_of(world, its, USED, its.v)
    expected = its.b[: 3 * USED] + p.rows @ its.v[:-1]
    assert_close(its.w[: 3 * USED], expected, scale=100.0, ulps=100)


@pytest.mark.parametrize("seed", range(6))
def test_trees_are_eliminated_as_the_matrix_is(seed):
    rng = np.random.default_rng(seed)
    p = Problem(rng)
    its, world = p.unknowns(), SlotWorld(**p.fields)
    W = np.zeros((SLOTS, 9))
    for s in range(USED):
        if rng.random() < 0.8:  # not symmetric, as where contacts slide
            W[s] = (np.eye(3) + 0.3 * rng.normal(size=(3, 3))).ravel()
            W[s, 0] = abs(W[s, 0])
    w = rng.normal(size=3 * SLOTS)
    many = slot_trees.order_trees(world, its, USED)
    order = its.order.reshape(-1, 3)[:many]
    own = [k for first, n, _ in order for k in its.listed[first : first + n]]
    touched = sorted({t for c in p.carrier for t in p.sides[c]})
    assert sorted(own) == [k for t in touched for k in range(p.first[t], p.first[t + 1])]
    slot_trees.gained_across(world, its, USED, many, w, W)
    dense = np.zeros((3 * USED, 3 * USED))
    for s in range(USED):
        dense[3 * s : 3 * s + 3, 3 * s : 3 * s + 3] = W[s].reshape(3, 3)
    matrix = np.eye(p.nv) + p.rows.T @ dense @ p.rows
    expected = np.linalg.solve(matrix, -p.rows.T @ w[: 3 * USED])
    scale, condition = np.abs(expected).max(), np.linalg.cond(matrix)
    assert_close(its.older[:-1], expected, scale=scale, ulps=1e3 * condition)


@pytest.mark.parametrize("tries", [1, 4])
def test_impulses_obey_the_laws(tries):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = Problem(rng)
        its = p.unknowns()
        mu, A = rng.uniform(0.3, 1.0, USED), p.rows @ p.rows.T
        numbers = np.zeros((SLOT_SIZE, SLOTS))
        numbers[0, :USED], numbers[1, :USED] = p.carrier, mu
        numbers[3:6, :USED] = rng.normal(size=(3, USED))
        numbers[3, :USED] -= 1.0
        Y = np.zeros((3, p.deep, SLOTS))
        Y[:] = its.rows.reshape(3, p.deep, -1)[:, :, :SLOTS]
        own = np.zeros((6, SLOTS))
        for s in range(USED):
            block = A[3 * s : 3 * s + 3, 3 * s : 3 * s + 3]
            own[:, s] = block[[0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]]
        held, u, reported = np.zeros(4 * SLOTS), np.zeros(p.nv), np.zeros(6)
        z = 0.1 * rng.normal(size=p.nv)
        fields = {
            **p.fields, "slot": numbers.ravel(), "Y": Y.ravel(), "own": own.ravel(), "z": z,
            "start": np.zeros(4 * SLOTS), "held": held, "u": u, "reported": reported,
            "numbers": np.array([0.01, 0.005, 1e-9, 2e-3, 0.1, 0.0]), "loose": np.zeros(1),
            "found": np.array([float(USED), 0.0, 0.0]), "restitution": np.zeros(USED),
            "sweeps": 100, "tries": tries, "first": 1.0, "serious": 1.0, "nearly": 1.0,
            "proximal_weight": 1e-4, "light": 0.0,
        }  # fmt: skip
        slot_coupled.coupled_impulses(1, SlotWorld(**fields), its)
        lam = 0.01 * held.reshape(SLOTS, 4)[:USED, 1:].ravel()
        b = numbers[3:6, :USED].T.ravel() + p.rows @ z
        assert_laws_hold(A, b, mu, lam, tolerance=1e-5)
        assert_close(u, p.rows.T @ lam, scale=10.0, ulps=1e5)
        assert reported[0] < 1e-8
