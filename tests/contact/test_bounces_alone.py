"""Bounces within a step, and going back to where it began: pieces of them by their formulas."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.collision.sweep import Pairs
from kinetree.contact.collision.tables import Found, Shapes
from kinetree.contact.engine import arrivals, bounces, undoing
from kinetree.contact.engine.energy import Balance
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.parts import StepState
from kinetree.contact.engine.row_tables import Rows, moment_of
from kinetree.contact.engine.sleep import Sleep
from kinetree.contact.newton.problem import Problem
from kinetree.spatial.rotation import rotation_exp

INT = np.int64
TREES, H = 4, 0.1
NODE = np.repeat(np.arange(TREES), 3)
NV = len(NODE)


def a_step(rng):
    names = ("v", "change", "ahead", "later", "v_m", "after", "mean", "x", "y", "tau", "spring",
             "resist", "free")  # fmt: skip
    return StepState(h=H, rest=0.1, work=2.0, **{name: rng.normal(size=NV) for name in names})


def trees(**options):
    return Problem(nv=NV, trees=TREES, dof_node=NODE, node_tree=np.arange(TREES), **options)


def moments(rng):
    """Some trees bounce at a time within the step, others (-1) do not."""
    at = rng.uniform(0.1, 0.9, TREES + 1) * H
    at[rng.choice(TREES, 2, replace=False)] = -1.0
    return at


@pytest.mark.parametrize("timed", [0, 1])
def test_velocities_to_where_bodies_are_looked_at(timed, rng):
    s, tau = a_step(rng), moments(rng)
    bounces.look_ahead(s, Mechanism(nv=NV), trees(), Rows(timed=timed, moment=tau))
    at = np.where(timed, tau[NODE], -1.0)
    expected = (s.v + s.change * at / (2 * H)) * 2 * at / H
    assert_close(s.ahead, np.where(at >= 0, expected, s.v), scale=1.0)
    assert_close(s.later, s.change)


def groups(rng, count=6):
    """Groups on one or two trees, or none; three contacts and stops."""
    nodes = [sorted(rng.choice(TREES, rng.integers(0, 3), replace=False)) for _ in range(count)]
    p = trees(
        groups=count, entry_first=np.cumsum([0, *map(len, nodes)]),
        entry_node=np.concatenate([*nodes, [0]]).astype(INT), row_first=np.arange(count + 1),
        impulse=rng.choice([0.0, 1.0, -2.0], count),
    )  # fmt: skip
    rows = Rows(
        contacts=3, contact=np.array([2, 0, 1, 0, 1, 5]), stops=2, before=rng.normal(size=count),
        stop_bounce=np.array([0.0, 0.7]), rests=np.full(TREES + 1, 7), timed=0,
        moment=np.full(TREES + 1, -1.0),
    )  # fmt: skip
    f = Found(restitution=np.array([0.5, 0.0, 0.3]))
    return p, rows, f, nodes, np.array([0.3, 0.5, 0.0, 0.0, 0.7, 0.0])


def resting(p, rows, nodes, e):
    still = (e == 0) | (rows.before >= -0.1)
    found = {t for g, n in enumerate(nodes) for t in n if still[g] and p.impulse[g]}
    return [int(t in found) for t in range(TREES)]


def test_trees_on_which_rows_act_that_do_not_bounce(rng):
    for _ in range(20):
        s, (p, rows, f, nodes, e) = a_step(rng), groups(rng)
        bounces.find_resting(s, p, rows, f)
        assert rows.rests.tolist() == [*resting(p, rows, nodes, e), 0]


@pytest.mark.parametrize("follows", [0, 1])
@pytest.mark.parametrize("timed", [0, 1])
def test_changes_to_expect(follows, timed, rng):
    s, (p, rows, f, nodes, e) = a_step(rng), groups(rng)
    rows.timed, rows.follows = timed, follows
    rows.rests[:] = rng.choice([0, 1], TREES + 1)
    rests = np.array(rows.rests[:TREES] if timed else resting(p, rows, nodes, e))
    was, free = s.change.copy(), s.free - s.v_m
    bounces.foresee_forces(s, p, rows, f)
    expected = np.where((follows == 0) | (rests[NODE] == 0), free, was)
    assert_close(s.change, expected, scale=1.0)
    later = np.where((follows == 0) | (rests[NODE] == 0), expected, s.later)
    assert_close(s.later, later, scale=1.0)


def test_trees_that_may_meet_are_one_party(rng):
    for _ in range(20):
        pairs = rng.integers(0, 6, (5, 2))
        body = np.array([0, 1, 2, 3, 4, 4])
        tree = np.array([-1, 0, 1, 2, 3])
        loops = [[0, 1], [2]] if rng.random() < 0.5 else [[3]]
        rows = Rows(pile=np.full(TREES + 1, 9), loops=len(loops), loop_node=np.concatenate(loops),
                    loop_first=np.cumsum([0, *map(len, loops)]))  # fmt: skip
        f, z = Found(pairs=4), Sleep(tree=tree)
        bounces.parties(trees(), rows, Shapes(body=body), Pairs(near=pairs), f, z)
        of = {t: {t} for t in range(TREES)}
        links = [tree[body[p]] for p in pairs[:4]] + [(a, b) for n in loops for a in n for b in n]
        for a, b in links:
            if a >= 0 and b >= 0:
                joined = of[a] | of[b]
                for t in joined:
                    of[t] = joined
        stands = []
        for t in range(TREES):
            while rows.pile[t] != t:
                t = rows.pile[t]
            stands.append(t)
        assert stands == [min(of[t]) for t in range(TREES)]


def test_first_times_of_impact_are_those_of_parties(rng):
    """A body that falls, with constant change: the time at which its gap closes."""
    found = 0
    for _ in range(40):
        fall, gap = -rng.uniform(0.05, 3, TREES), rng.uniform(0.0, 0.2, TREES)
        e = rng.choice([0.0, 0.5], TREES)
        J = np.zeros((TREES, NV))
        J[np.arange(TREES), 3 * np.arange(TREES)] = 1.0
        p = trees(
            groups=TREES, kind=np.zeros(TREES, INT), dim=np.ones(TREES, INT),
            row_first=np.arange(TREES + 1), entry_first=np.arange(TREES + 1),
            entry_node=np.arange(TREES), entry_at=3 * np.arange(TREES),
            node_first=3 * np.arange(TREES), node_count=np.full(TREES, 3),
            J=np.tile([1.0, 0, 0], TREES), impulse=np.zeros(TREES),
        )  # fmt: skip
        s = a_step(rng)
        s.free[:], s.v_m[:] = -0.02, 0.0
        rows = Rows(
            contacts=TREES, contact=np.arange(TREES), gap=gap + fall * H / 2, before=fall,
            rests=np.zeros(TREES + 1, INT), moment=np.full(TREES + 1, 7.0), timed=0, follows=0,
            fixed=np.zeros(3 * TREES), pile=np.zeros(TREES + 1, INT),
        )  # fmt: skip
        f = Found(restitution=e, pairs=1)
        z = Sleep(tree=np.array([-1, 0, 1, 2, 3]))
        shapes, pairs = Shapes(body=np.arange(5)), Pairs(near=np.array([[1, 2]]))
        c = -0.02
        times = np.full(TREES, np.inf)
        for t in np.flatnonzero((e > 0) & (fall < -0.1)):
            roots = np.roots([c / (2 * H), fall[t], gap[t]])
            within = [x.real for x in roots if abs(x.imag) < 1e-12 and 0 < x.real <= H]
            times[t] = min(within, default=np.inf)
        times[:2] = times[:2].min()  # which may meet
        some = bounces.times_of_impact(s, p, rows, f, shapes, pairs, z)
        assert some == bool(np.isfinite(times).any())
        if some:
            found += 1
            expected = np.where(np.isfinite(times), times, -1.0)
            np.testing.assert_allclose(rows.moment[:TREES], expected, rtol=1e-9)
            assert moment_of(p, rows, 0) == -1.0
            rows.timed = 1
            assert moment_of(p, rows, 2) == rows.moment[2]
    assert 5 < found < 40


def test_ways_and_work_of_bodies_that_bounce(rng):
    beta = H / 2
    for _ in range(10):
        s, tau = a_step(rng), moments(rng)
        p, rows, f, nodes, e = groups(rng)
        rows.moment[:] = tau
        x = s.x.copy()
        bounces.way_to_end(s, Mechanism(nv=NV), p, rows, f, beta)
        at, left = tau[NODE], H - tau[NODE]
        rests = np.array(resting(p, rows, nodes, e))[NODE]
        d = np.where(rests == 0, s.later, 0.0)
        expected = (s.after - d * left / (2 * H)) * left / beta
        assert_close(s.x, np.where(at >= 0, expected, x), scale=1.0)

        b = Balance(joints=rng.normal(size=TREES), rows=rng.normal(size=TREES))
        was, joints, own = s.work, b.joints.copy(), b.rows.copy()
        bounces.account_of_bounce(s, Mechanism(nv=NV), p, rows, b, beta)
        before = s.v_m + s.change * at / H
        after = s.after - s.later * left / H
        held = s.y * (before + after) / 2
        way = at * (s.v_m + before) / 2 + beta * s.x - H * s.mean
        force = (s.tau + s.spring - s.resist) * way
        moves = tau[:TREES] >= 0
        by_rows = np.bincount(NODE, held, TREES)
        by_joints = np.bincount(NODE, force, TREES)
        assert_close(b.rows, np.where(moves, by_rows, own), scale=10.0)
        assert_close(b.joints, joints + np.where(moves, by_joints, 0), scale=10.0)
        work = was + np.sum(np.where(moves, by_rows + by_joints - own, 0))
        assert_close(s.work, work, scale=10.0)


@pytest.mark.parametrize("shifts", [0, 1])
def test_rows_of_islands_that_bounce_take_energy_and_give_none(shifts, rng):
    signs = set()
    for _ in range(20):
        s, tau = a_step(rng), moments(rng)
        island = np.array([0, 1, 0, -1])
        names = ("put", "total", "unshifted", "energy", "joints", "rows")
        b = Balance(island=island, shifts=shifts, **{n: rng.normal(size=TREES) for n in names})
        gain = (b.unshifted if shifts else b.total) - b.energy - b.joints
        bounces_here = (tau[:TREES] >= 0) & (island >= 0)
        put = [gain[bounces_here & (island == i)].sum() for i in range(2)]
        own, was = b.rows.copy(), s.work
        bounces.account_of_rest(s, trees(), Rows(moment=tau), b)
        held = np.where(np.array([*put, 0.0])[island] < 0, gain, 0.0)
        expected = np.where(bounces_here, held, own)
        assert_close(b.rows, expected, scale=1.0)
        assert_close(s.work, was + np.sum(expected - own), scale=10.0)
        signs |= {x < 0 for x in put if x}
    assert signs == {True, False}


# --- Arrivals -------------------------------------------------------------------------------------


def test_points_are_carried_back_with_their_bodies(rng):
    middle, end = np.zeros((2, 2, 12))
    frames = []
    for pose in (middle, end):
        R, x = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
        pose[1] = np.column_stack([R, x]).ravel()
        frames.append((R, x))
    own = rng.normal(size=3)
    point = frames[1][0] @ own + frames[1][1]
    arrivals.carry_back(Mechanism(pose=middle), end, 1, point)
    assert_close(point, frames[0][0] @ own + frames[0][1], scale=1.0)


def test_how_far_points_of_shapes_get(rng):
    twist, pose = rng.normal(size=(3, 6)), np.zeros((3, 12))
    twist[0] = 0.0
    pose[:, 3::4] = rng.normal(size=(3, 3))
    shapes = Shapes(count=3, body=np.array([0, 2, 1]), pose=rng.normal(size=(3, 12)),
                    radius=np.array([np.inf, 0.3, 0.2]))  # fmt: skip
    m = Mechanism(pose=pose, root=np.array([0, 1, 1]))
    speeds = [0.0]
    for n, i in ((1, 2), (2, 1)):
        d = shapes.pose[n, 3::4] - pose[1, 3::4]
        v = twist[i, 3:] + np.cross(twist[i, :3], d)
        speeds.append(np.linalg.norm(v) + 2 * shapes.radius[n] * np.linalg.norm(twist[i, :3]))
    assert_close(arrivals.farthest(m, shapes, twist, 0.3), 0.3 * max(speeds))


def test_contacts_that_were_there_and_the_deepest_of_all():
    f = Found(count=3, first=np.array([0, 0, 1]), second=np.array([1, 1, 2]),
              feature=np.array([4, 5, 6]), gap=np.array([-0.1, -0.3, 0.2]))  # fmt: skip
    rows = Rows(active=np.array([1, 0, 2]), slots=11, slot=np.zeros(11, INT), known=1,
                key=np.array([[0, 1, 5]]))  # fmt: skip
    assert arrivals.deepest_found(f) == 0.3
    assert arrivals.deepest_new(f, rows) == 0.3
    rows.slot[arrivals.slot_of(rows, 0, 1, 5)] = 1
    assert arrivals.deepest_new(f, rows) == 0.1
    cases = [((0, 1), 9, -0.2, True), ((0, 1), 9, -0.4, False), ((0, 1), 4, -0.4, True)]
    cases += [((0, 1), 5, -0.4, False), ((1, 2), 6, -0.4, True), ((0, 2), 4, 1.0, False)]
    for pair, feature, gap, known in cases:
        late = Found(first=np.array([pair[0]]), second=np.array([pair[1]]),
                     feature=np.array([feature]), gap=np.array([gap]))  # fmt: skip
        assert arrivals.is_known(f, rows, late, 0, 0, f.count) == known


# --- Back to the beginning ------------------------------------------------------------------------


@pytest.mark.parametrize("on", [0, 1])
def test_a_step_begins_again_where_it_began(on, rng):
    sizes = {"stop_kept": 2, "dry_kept": 3, "loop_kept": 1}
    rows = Rows(
        known=3, follows=1, slots=11, slot=np.zeros(11, INT), stops=2, dry=3, loops=1,
        key=rng.integers(0, 9, (5, 3)), **{n: rng.normal(size=k) for n, k in sizes.items()},
        **{n: rng.normal(size=(5, *k)) for n, k in undoing.OF_CONTACTS.items() if n != "key"},
    )  # fmt: skip
    b = Balance(known=1, energy=rng.normal(size=4))
    z = Sleep(on=on, trees=4, asleep=2, sleeps=rng.integers(0, 2, 4), calm=rng.integers(0, 60, 4))
    change = rng.normal(size=6)
    before = undoing.before_of(rows, b, z, 6)

    def state():
        its = {n: getattr(rows, n)[:3].copy() for n in undoing.OF_CONTACTS}
        its |= {n: getattr(rows, n).copy() for n in sizes}
        its |= {"energy": b.energy.copy(), "change": change.copy(), "slot": np.sort(rows.slot)[-3:]}
        numbers = (rows.known, rows.follows, b.known, z.asleep)
        asleep = (z.sleeps.tolist(), z.calm.tolist()) if on else ()
        return its, numbers, asleep

    undoing.known_again(rows)
    was = state()
    undoing.keep_before(before, rows, b, z, change, 0.25)
    assert before.overlap == 0.25
    rows.known, rows.follows, b.known, z.asleep = 5, 0, 0, 4
    for holder, names in ((rows, (*undoing.OF_CONTACTS, *sizes, "slot")), (b, ("energy",)),
                          (z, ("sleeps", "calm"))):  # fmt: skip
        for name in names:
            getattr(holder, name)[:] += 1
    change += 1
    undoing.undo(before, rows, b, z, change)
    now = state()
    assert now[1:] == was[1:]
    for name, x in was[0].items():
        assert np.array_equal(now[0][name], x), name
