"""Near pairs of the broad phase: exactly those whose grown boxes meet, by comparing all of them.

Too many pairs would cost time only, and too few would be noticed where they happen to touch.
"""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.collision import sweep
from kinetree.contact.collision.sweep import PAIRS_FULL, near_pairs, pair_tables
from kinetree.contact.collision.tables import (
    ALL,
    BOX,
    LEFT_OUT,
    LISTED,
    MAY_TOUCH,
    PLANE,
    WITH_BASE,
    Shapes,
    Special,
)
from kinetree.spatial.rotation import rotation_exp

INF = np.inf


def some_shapes(rng, count, planes=1, spread=(1.0, 1.0, 1.0), size=0.3):
    """Boxes at random, one to a body, after planes of the world below and beside them."""
    n = planes + count
    s = Shapes(
        count=n,
        kind=np.full(n, BOX),
        body=np.maximum(np.arange(n) - planes + 1, 0),
        size=rng.uniform(0.1, size, (n, 3)),
        radius=np.zeros(n),
        box=np.zeros((n, 6)),
        margin=rng.uniform(-0.02, 0.05, n),
        pose=np.zeros((n, 12)),
        low=np.zeros((n, 3)),
        high=np.zeros((n, 3)),
        contype=rng.integers(0, 4, n),
        conaffinity=rng.integers(0, 4, n),
        weld=np.maximum(np.arange(n) - planes + 1, 0),
        weld_parent=np.zeros(n, dtype=np.int64),
    )
    s.box[:, :3] = 0.1 * rng.normal(size=(n, 3))
    s.box[:, 3:] = s.size
    s.radius[:] = np.linalg.norm(s.size, axis=1)
    for k in range(n):
        pose = s.pose[k].reshape(3, 4)
        pose[:, :3] = rotation_exp(2 * rng.normal(size=3))
        pose[:, 3] = rng.uniform(-1, 1, 3) * spread
    for k in range(planes):
        s.kind[k], s.radius[k], s.box[k] = PLANE, INF, 0.0
        pose = s.pose[k].reshape(3, 4)
        pose[:, 3] = -0.7 * pose[:, 2] * spread
    centre = middles(s)
    half = np.einsum("nij,nj->ni", np.abs(s.pose.reshape(n, 3, 4)[:, :, :3]), s.box[:, 3:])
    s.low[:], s.high[:] = centre - half, centre + half
    return s


def middles(s):
    pose = s.pose.reshape(-1, 3, 4)
    return np.einsum("nij,nj->ni", pose[:, :, :3], s.box[:, :3]) + pose[:, :, 3]


def no_special(rule=ALL, reach=0.0):
    return Special(count=0, rule=rule, reach=reach)


def special_of(rng, pairs, rule, reach=0.0):
    key = np.sort(np.array([min(p) * 2**32 + max(p) for p in pairs], dtype=np.int64))
    allowed = rng.choice([MAY_TOUCH, LEFT_OUT], len(key))
    return Special(count=len(key), rule=rule, reach=reach, key=key, allowed=allowed)


def moved(s, motion):
    """Displacement of the middle of each shape, and how far turning takes its points."""
    t, c = motion[s.body], middles(s)
    turn = np.linalg.norm(t[:, :3], axis=1)
    reach = np.where(turn > 0, np.minimum(turn, 2.0) * np.where(turn > 0, s.radius, 0), 0.0)
    return t[:, 3:] + np.cross(t[:, :3], c), reach


def grown(s, special, motion, margin):
    v, turn = moved(s, motion)
    more = margin / 2 + max(special.reach, 0) / 2 + np.maximum(s.margin, 0) + turn
    low = s.low + np.minimum(v, 0) - more[:, None]
    return low, s.high + np.maximum(v, 0) + more[:, None]


def allowed(s, special, known, i, j):
    a, b = s.weld[i], s.weld[j]
    given = known.get(i * 2**32 + j)
    if special.rule == LISTED:
        return given == MAY_TOUCH
    if a == b or (special.rule == WITH_BASE and a and b):
        return False
    if given is not None:
        return given == MAY_TOUCH
    masks = (s.contype[i] & s.conaffinity[j]) or (s.contype[j] & s.conaffinity[i])
    return bool(masks) and (not a or not b or (s.weld_parent[i] != b and s.weld_parent[j] != a))


def over(s, special, motion, margin, i, j):
    """Slack of shape j over plane i: by all of its way, and by what of it is along the normal."""
    v, turn = moved(s, motion)
    n = s.pose[i, 2::4]
    m = np.abs(s.pose[j].reshape(3, 4)[:, :3].T @ n) @ s.box[j, 3:]
    height = n @ (middles(s)[j] - s.pose[i, 3::4]) - min(m, s.radius[j])
    height -= margin + max(special.reach, 0) + max(s.margin[i] + s.margin[j], 0)
    way = v[j] - v[i]
    return height - np.linalg.norm(way) - turn[i] - turn[j], height + min(n @ way, 0) - turn[j]


def all_pairs(s, special, motion, margin):
    """Pairs of boxes that meet; pairs with planes that must be near; those that may be."""
    low, high = grown(s, special, motion, margin)
    endless, known = s.radius > 1e300, {}
    if special.count:
        known = dict(zip(special.key.tolist(), special.allowed.tolist(), strict=True))
    meet = np.all((low[:, None] <= high) & (high[:, None] >= low), axis=2)
    boxes, must, may = set(), set(), set()
    for i, j in np.argwhere(np.triu(meet | endless[:, None], 1)).tolist():
        if endless[j] or not allowed(s, special, known, i, j):
            continue
        if endless[i]:
            wide, narrow = over(s, special, motion, margin, i, j)
            may |= {(i, j)} if wide <= 0 else set()
            must |= {(i, j)} if narrow <= 0 else set()
        else:
            boxes.add((i, j))
    return boxes, must, may


def found(s, special, pairs, margin):
    while (n := near_pairs(s, special, pairs, margin)) == PAIRS_FULL:
        sweep.enlarge_pairs(pairs)
    return [tuple(p) for p in pairs.near[:n].tolist()]


SPREADS = [(1.0, 1.0, 1.0), (6.0, 1.0, 1.0), (0.5, 0.3, 7.0), (1.0, 5.0, 4.0)]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("count", [12, 60])
def test_near_are_the_pairs_whose_boxes_meet_on_the_way(count, spread, rng):
    s = some_shapes(rng, count, planes=2, spread=np.multiply(spread, count / 60))
    s.weld_parent[5:] = rng.integers(0, count, s.count - 5)
    some = {tuple(sorted(rng.choice(s.count, 2, replace=False))) for _ in range(4 * count)}
    some.discard((0, 1))
    specials = [
        no_special(),
        no_special(WITH_BASE),
        *(special_of(rng, some, rule, 0.06) for rule in (ALL, WITH_BASE, LISTED)),
    ]
    pairs = pair_tables(s, count + 1, capacity=7)
    near = 0
    for special in specials:
        for moves, margin in ((0.0, 0.1), (0.1, 0.02), (0.1, 0.0)):
            pairs.motion[1:] = moves * rng.normal(size=(count, 6))
            pairs.motion[1::3, :3] = 0
            boxes, must, may = all_pairs(s, special, pairs.motion, margin)
            result = found(s, special, pairs, margin)
            assert result == sorted(set(result))
            planes = {p for p in result if p[0] < 2}
            assert {*result} - planes == boxes
            assert must <= planes <= may
            near += len(result)
    assert near > count


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("count", [12, 90])
def test_boxes_are_sorted_along_the_widest_spread_and_divided_into_strips(count, spread, rng):
    """Every shape is in all strips that its box reaches, in order, and few are in many."""
    s = some_shapes(rng, count, planes=1, spread=np.multiply(spread, count / 20))
    pairs = pair_tables(s, count + 1)
    bounded = np.arange(1, count + 1)
    for step in range(3):
        sweep.grow_boxes(s, no_special(), pairs, 0.01)
        sweep.sort_boxes(pairs)
        number = sweep.fill_strips(pairs)
        low, high = pairs.box[bounded, :3], pairs.box[bounded, 3:]
        variance = ((low + high) / 2).var(axis=0)
        assert variance[pairs.axis] >= variance.max() / (1 if step == 0 else 2)
        order = pairs.order[:count]
        assert sorted(order) == bounded.tolist()
        assert np.all(np.diff(pairs.box[order, pairs.axis]) >= 0)
        assert pairs.order[count] == 0
        many, expected = strips(low, high, pairs.axis)
        assert number == many
        np.testing.assert_array_equal(pairs.strip[bounded], expected)
        at = 0
        for k in range(number):
            inside = [i for i in order if pairs.strip[i, 0] <= k <= pairs.strip[i, 1]]
            assert pairs.strip_first[k] == at
            assert pairs.entry[at : at + len(inside)].tolist() == inside
            at += len(inside)
        assert pairs.strip_first[number] == at <= 2.67 * count
        s.low[1:] += (move := 0.3 * rng.normal(size=(count, 3)))
        s.high[1:] += move


def strips(low, high, axis):
    """How many strips there are along the side that has most room, and those of every box."""
    if len(low) <= 24:
        return 1, np.zeros((len(low), 2))
    width = 1.5 * (high - low).mean(axis=0)
    reach = np.ptp(low, axis=0)
    side = max({0, 1, 2} - {axis}, key=lambda k: reach[k] / width[k])
    number = max(min(int(reach[side] / width[side]), len(low)), 1)
    ends = np.stack([low[:, side], high[:, side]], axis=1) - low[:, side].min()
    return number, np.minimum((ends * (number / reach[side])).astype(int), number - 1)


def test_another_axis_must_be_twice_as_good(rng):
    s = some_shapes(rng, 40, planes=0)
    middle = rng.uniform(-1, 1, (40, 3))
    pairs = pair_tables(s, 41)
    for wide, axis in [((2, 1, 1), 0), ((1, 1.3, 1), 0), ((1, 1.5, 1), 1), ((1.3, 1, 1), 1),
                       ((1, 1, 1.5), 2)]:  # fmt: skip
        at = middle / middle.std(axis=0) * wide
        s.low[:], s.high[:] = at - 0.1, at + 0.1
        found(s, no_special(), pairs, 0.01)
        assert pairs.axis == axis
        assert np.all(np.diff(pairs.box[pairs.order[:40], axis]) >= 0)


def test_how_far_shapes_approach(rng):
    s = some_shapes(rng, 5, planes=1)
    pairs = pair_tables(s, 6)
    pairs.motion[1:] = rng.normal(size=(5, 6))
    near_pairs(s, no_special(), pairs, 0.0)
    v, turn = moved(s, pairs.motion)
    for i, j in ((1, 2), (4, 3)):
        expected = np.linalg.norm(v[i] - v[j]) + turn[i] + turn[j]
        assert_close(sweep.approach(pairs, i, j), expected)
