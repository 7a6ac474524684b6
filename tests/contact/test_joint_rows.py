"""Rows of stops, dry friction, tendons and loops; what all rows want, and shifts of positions."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.collision.tables import Found
from kinetree.contact.engine import joint_rows, shift, targets
from kinetree.contact.engine.energy import Balance
from kinetree.contact.engine.loops import Loops
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.parts import StepState
from kinetree.contact.engine.row_tables import FULL, UNBOUNDED, Rows
from kinetree.contact.engine.sleep import Sleep
from kinetree.contact.newton.problem import BOUNDS, CONE, problem_of, with_room, workspace
from kinetree.contact.settings import GROWN, SAME

INT = np.int64
PARENT = [-1, 0, 1, 1, -1, 4]
NV = len(PARENT)
TENDONS = ([0, 3], [1, 2, 5])  # variables of two tendons; positions lie one further
LOOPS = ([2, 3], [0, 5], [5])


def a_problem():
    p = problem_of(PARENT)
    with_room(p, 40, 200, 200, 2000)
    p.J[:] = 7.0
    p.impulse[:] = 7.0
    return p


def nodes_of(p, variables):
    return sorted({int(p.dof_node[k]) for k in variables})


def rows_of(rng, p, **options):
    """Four stops and two variables with dry friction, of tendons too, and three rows of loops."""
    arms = np.concatenate(TENDONS).astype(INT)
    nodes = [nodes_of(p, v) for v in LOOPS]
    sizes = [sum(p.node_count[n] for n in its) for its in nodes]
    n = 40
    given = {
        "groups_room": n, "rows_room": 200, "entries_room": 200, "numbers_room": 2000,
        "fixed": np.full(2000, 5.0), "contact": np.full(n, -9), "gap": np.full(n, 9.0),
        "before": np.full(n, 9.0), "bend": np.full((n, 3), 9.0), "left": np.full(n, 9.0),
        "stops": 4, "stop_v": np.array([0, 4, -1, -2]), "stop_q": np.array([1, 5, -1, -1]),
        "stop_sign": np.array([1.0, -1, 1, -1]), "stop_at": rng.normal(size=4),
        "stop_kept": np.array([1.0, 2, 3, 0.0]), "stop_was": rng.normal(size=4),
        "stop_bounce": np.array([0.0, 0.4, 0.3, 0.0]),
        "dry": 2, "dry_v": np.array([3, -2]), "dry_level": np.array([2.0, 0.5]),
        "dry_kept": np.array([0.3, -0.2]),
        "tendon_first": np.array([0, 2, 5]), "tendon_v": arms, "tendon_q": arms + 1,
        "tendon_arm": rng.normal(size=5), "tendon_offset": rng.normal(size=2),
        "loops": 3, "loop_first": np.cumsum([0, *map(len, nodes)]),
        "loop_node": np.concatenate(nodes),
        "loop_value": rng.normal(size=sum(sizes)), "loop_error": rng.normal(size=3),
        "loop_kept": rng.normal(size=3), "loop_ended": rng.normal(size=3),
        "loop_rounding": np.zeros(sum(sizes)), "closed": Loops(at=np.cumsum([0, *sizes])[:-1]),
        "scale": np.ones((n, 6)), "moment": np.full(3, -1.0),
    }  # fmt: skip
    return Rows(**{**given, **options})


def arms_of(rows, k):
    """Row of a variable, or of a tendon."""
    row = np.zeros(NV)
    if k >= 0:
        row[k] = 1.0
    else:
        span = slice(rows.tendon_first[-1 - k], rows.tendon_first[-k])
        row[rows.tendon_v[span]] = rows.tendon_arm[span]
    return row


def length(rows, k, q):
    return q[k + 1] if k >= 0 else rows.tendon_offset[-1 - k] + arms_of(rows, k) @ q[1:]


def columns_of(p, nodes):
    return [p.node_first[a] + j for a in nodes for j in range(p.node_count[a])]


def dense(p, numbers, g):
    J = np.zeros(NV)
    for e in range(p.entry_first[g], p.entry_first[g + 1]):
        a, at = p.entry_node[e], p.entry_at[e]
        J[p.node_first[a] : p.node_first[a] + p.node_count[a]] = numbers[at : at + p.node_count[a]]
    return J


def begin(p, rows):
    p.groups = rows.numbers = p.row_first[0] = p.entry_first[0] = rows.contacts = 0


@pytest.mark.parametrize("follows", [0, 1])
@pytest.mark.parametrize("everything", [False, True])
def test_rows_of_stops_that_can_be_reached_and_of_dry_friction(follows, everything, rng):
    h, missing = 0.05, 0
    for _ in range(30):
        p = a_problem()
        rows = rows_of(rng, p, follows=follows)
        q, v, free = rng.normal(size=NV + 1), rng.normal(size=NV), rng.normal(size=NV)
        ends = np.array([length(rows, k, q) for k in rows.stop_v])
        rows.stop_at[:] = ends - rows.stop_sign * rng.choice([0.01, 0.2, -0.1, 1.0], 4)
        gaps = rows.stop_sign * (ends - rows.stop_at)
        sleeps = rng.choice([0, 0, 0, 1], 2)
        z = Sleep(tree_of_v=p.node_tree[p.dof_node], sleeps=sleeps)
        kept = rows.stop_kept.copy()
        begin(p, rows)
        assert joint_rows.add_joint_rows(p, rows, q, v, free, h, everything, z) == 0
        g = 0
        for s, k in enumerate(rows.stop_v):
            assert_close(joint_rows.gap_of_stop(rows, s, q), gaps[s], scale=1.0)
            row = arms_of(rows, k)
            if sleeps[z.tree_of_v[np.flatnonzero(row)[0]]]:
                assert rows.stop_kept[s] == kept[s]
                continue
            speed, later = row @ v, row @ free
            assert_close(joint_rows.speed_of(rows, k, v), speed, scale=1.0)
            near = gaps[s] < 2 * h * (abs(speed) + abs(later - speed)) + 1e-9
            if not (near or everything):
                missing += 1
                assert rows.stop_kept[s] == 0.0
                continue
            sign = rows.stop_sign[s]
            assert_row(p, rows, g, s, sign * row, (0.0, UNBOUNDED), h * kept[s])
            assert_close(rows.before[g], sign * speed, scale=1.0)
            turns = follows and k < 0 and kept[s] > 0
            bend = (sign * speed - rows.stop_was[s]) / 2 if turns else 0.0
            assert_close(rows.bend[g, 0], bend, scale=1.0)
            assert_close(rows.gap[g], gaps[s] - h * bend / 4, scale=1.0)
            g += 1
        for s, k in enumerate(rows.dry_v):
            row = arms_of(rows, k)
            if not sleeps[z.tree_of_v[np.flatnonzero(row)[0]]]:
                most = h * rows.dry_level[s]
                assert_row(p, rows, g, 4 + s, row, (-most, most), h * rows.dry_kept[s])
                assert rows.gap[g] == rows.before[g] == rows.bend[g, 0] == 0.0
                g += 1
        assert p.groups == g
        assert_close(joint_rows.beyond_stops(rows, q), max(0.0, -gaps.min()), scale=1.0)
        joint_rows.keep_speeds(rows, v)
        after = [rows.stop_sign[s] * (arms_of(rows, rows.stop_v[s]) @ v) for s in (2, 3)]
        assert_close(rows.stop_was[2:], after, scale=1.0)
    assert missing == 0 if everything else missing > 10


def assert_row(p, rows, g, number, row, bounds, impulse):
    assert (p.kind[g], p.dim[g], p.label[g], rows.contact[g]) == (BOUNDS, 1, -1 - number, number)
    assert (p.low[g], p.high[g], p.mu[g]) == (*bounds, 0.0)
    assert_close(dense(p, p.J, g), row, scale=1.0)
    assert not np.any(dense(p, rows.fixed, g))
    at = p.row_first[g]
    assert p.row_first[g + 1] == at + 1
    assert p.target[at] == 0.0
    assert_close(p.impulse[at], impulse, scale=1.0)


def test_stops_that_are_passed_without_a_row(rng):
    seen = set()
    for _ in range(40):
        p = a_problem()
        rows = rows_of(rng, p, contacts=1)
        q, v, h = rng.normal(size=NV + 1), rng.normal(size=NV), 0.1
        ends = np.array([length(rows, k, q) for k in rows.stop_v])
        rows.stop_at[:] = ends - rows.stop_sign * rng.choice([0.05, 0.2, 1.0], 4)
        gaps = rows.stop_sign * (ends - rows.stop_at)
        speeds = rows.stop_sign * [arms_of(rows, k) @ v for k in rows.stop_v]
        passed = np.flatnonzero(gaps + h * speeds < -joint_rows.PASSED)
        has = rng.choice(4, 2, replace=False)
        p.groups, rows.contact[0], rows.contact[1:3] = 3, passed[0] if len(passed) else 0, has
        misses = bool(set(passed) - {*has})
        assert joint_rows.misses_stop(p, rows, q, v, h) == misses
        seen.add((misses, len(passed) > 0))
    assert len(seen) == 3


def test_rows_of_loops_and_their_change_since_the_step_before(rng):
    h = 0.05
    for _ in range(10):
        p = a_problem()
        rows = rows_of(rng, p)
        free = rng.choice([0.0, 1.0], NV)
        m, z = Mechanism(nv=NV, free=free), Sleep(tree_of_v=p.node_tree[p.dof_node],
                                                  sleeps=np.zeros(2, INT))  # fmt: skip
        before, v = rng.normal(size=(2, NV))
        begin(p, rows)
        assert joint_rows.add_loops(m, p, rows, before, v, h, z) == 0
        for s, variables in enumerate(LOOPS):
            columns = columns_of(p, nodes_of(p, variables))
            whole = np.zeros(NV)
            at = rows.closed.at[s]
            whole[columns] = rows.loop_value[at : at + len(columns)]
            assert_close(dense(p, p.J, s), whole * free, scale=1.0)
            assert_close(dense(p, rows.fixed, s), whole * (1 - free), scale=1.0)
            assert (p.low[s], p.high[s], p.label[s]) == (-UNBOUNDED, UNBOUNDED, -7 - s)
            assert_close(p.target[s], whole @ ((1 - free) * v), scale=1.0)
            bend = whole @ before - rows.loop_ended[s]
            assert_close(rows.bend[s, 0], bend, scale=1.0)
            assert_close(rows.gap[s], rows.loop_error[s] - h * bend / 4, scale=1.0)
            assert_close(p.impulse[s], h * rows.loop_kept[s], scale=1.0)
        joint_rows.loop_velocities(p, rows, v)
        ended = [(dense(p, p.J, s) + dense(p, rows.fixed, s)) @ v for s in range(3)]
        assert_close(rows.loop_ended, ended, scale=1.0)


def test_rows_of_traced_code_and_arms_that_change(rng):
    p = a_problem()
    rows = rows_of(rng, p, moving=1, moving_of=np.array([1]), moving_place=np.array([0.7]))
    rows.moving_arm, q = rng.normal(size=NV), rng.normal(size=NV + 1)
    rows.tendon_q[3] = -1  # no position of its own
    arms = rows.moving_arm[TENDONS[1]]
    joint_rows.place_moving(rows, NV, q)
    assert_close(rows.tendon_arm[2:], arms)
    positions = q[np.array(TENDONS[1]) + 1] * [1, 0, 1]
    assert_close(rows.tendon_offset[1], 0.7 - arms @ positions, scale=1.0)
    value, error = rows.loop_value.copy(), rows.loop_error.copy()
    rows.closed = Loops(at=rows.closed.at, traced=1, traced_row=np.array([1]), open=np.array([0.3]),
                        dense=rng.normal(size=NV))  # fmt: skip
    joint_rows.copy_traced(Mechanism(nv=NV), p, rows)
    columns = columns_of(p, nodes_of(p, LOOPS[1]))
    at = rows.closed.at[1]
    value[at : at + len(columns)] = rows.closed.dense[columns]
    error[1] = 0.3
    assert np.array_equal(rows.loop_value, value)
    assert np.array_equal(rows.loop_error, error)


def test_lists_that_are_too_small_are_noticed(rng):
    p = a_problem()
    rows, z = rows_of(rng, p), Sleep(tree_of_v=p.node_tree[p.dof_node], sleeps=np.zeros(2, INT))
    q, v = np.zeros(NV + 1), np.zeros(NV)
    begin(p, rows)
    joint_rows.add_joint_rows(p, rows, q, v, v, 0.1, True, z)
    used = {"groups_room": p.groups, "rows_room": p.row_first[p.groups],
            "entries_room": p.entry_first[p.groups], "numbers_room": rows.numbers}  # fmt: skip
    for name, size in used.items():
        for more, code in ((1, 0), (0, FULL)):
            rows = rows_of(rng, p, **{name: int(size) + more})
            begin(p, rows)
            assert joint_rows.add_joint_rows(p, rows, q, v, v, 0.1, True, z) == code


# --- What rows want -------------------------------------------------------------------------------


def filled(rng, p, timed=0):
    """A contact with three rows and one with one, a stop, dry friction and a loop."""
    rows = rows_of(rng, p, contacts=2, timed=timed)
    begin(p, rows)
    rows.contacts = 2
    kinds = [(CONE, 3, 1), (CONE, 1, 0), (BOUNDS, 1, 1), (BOUNDS, 1, 4), (BOUNDS, 1, 7)]
    at, entry = 0, 0
    for g, (kind, dim, number) in enumerate(kinds):
        p.kind[g], p.dim[g], rows.contact[g] = kind, dim, number
        p.low[g], p.high[g] = 0.0, UNBOUNDED
        p.row_first[g + 1] = p.row_first[g] + dim
        for a in nodes_of(p, rng.choice(NV, 2, replace=False)):
            p.entry_node[entry], p.entry_at[entry] = a, at
            size = dim * p.node_count[a]
            p.J[at : at + size], rows.fixed[at : at + size] = rng.normal(size=(2, size))
            entry, at = entry + 1, at + size
        p.entry_first[g + 1] = entry
    p.groups = 5
    rows.gap[:5] = rng.choice([-0.1, 0.02, -1e-3], 5)
    rows.before[:5] = -np.abs(rng.normal(size=5))
    rows.bend[:5] = 0.1 * rng.normal(size=(5, 3))
    rows.scale[:5] = rng.uniform(0.5, 2, (5, 6))
    p.target[:7] = rng.normal(size=7)
    return rows


def first_rows(p, numbers):
    J = np.zeros((p.groups, NV))
    for g in range(p.groups):
        for e in range(p.entry_first[g], p.entry_first[g + 1]):
            a, at = p.entry_node[e], p.entry_at[e]
            J[g, columns_of(p, [a])] = numbers[at : at + p.node_count[a]]
    return J


@pytest.mark.parametrize("timed", [0, 1])
def test_targets_of_gaps_rest_and_bounces(timed, rng):
    h, deep, rest, alpha = 0.1, 5e-3, 0.2, 0.5
    kinds = set()
    for _ in range(60):
        p = a_problem()
        rows = filled(rng, p, timed)
        rows.moment[:2] = rng.choice([-1.0, 0.3 * h], 2) if timed else -1.0
        s = StepState(h=h, deep=deep, rest=rest, alpha=alpha, change=0.3 * rng.normal(size=NV))
        f = Found(restitution=np.array([0.0, 0.6]))
        given, first = p.target.copy(), int(rng.integers(0, 2))
        J = first_rows(p, p.J) + first_rows(p, rows.fixed)
        targets.targets(s, p, rows, f, first)
        assert_close([targets.row_velocity(p, rows, g, s.change) for g in range(5)],
                     J @ s.change, scale=10.0)  # fmt: skip
        expected = given.copy()
        for g in range(first, 5):
            row, gap = p.row_first[g], rows.gap[g]
            tau = rows.moment[p.node_tree[p.entry_node[p.entry_first[g]]]]
            e = {0: 0.6, 1: 0.0, 2: 0.4}.get(g, 0.0)
            if g < 3:
                add = max(gap, -deep) / (h if tau < 0 else 1.5 * h - tau) + rows.bend[g, 0]
                if g == 0:
                    expected[1:3] += rows.scale[0, 1:3] * rows.bend[0, 1:]
                left = 0.0
                if e and rows.before[g] < -rest:
                    add, left, taken = bouncing(p, rows, g, e, J[g] @ s.change, tau, s)
                    expected[row + 1 : row + p.dim[g]] -= taken[1:]
                    kinds.add(left > 0)
                assert_close(rows.left[g], left, scale=1.0)
                expected[row] += add
            elif g == 4:
                expected[row] += np.clip(gap, -deep, deep) / h + rows.bend[g, 0]
        assert_close(p.target[:7], expected[:7], scale=100.0, ulps=1e3)
        v, beta = rng.normal(size=NV), 0.03
        end = [targets.gap_at_end(p, rows, g, beta, v) for g in range(5)]
        assert_close(end, rows.gap[:5] + beta * (J @ v + rows.bend[:5, 0]), scale=1.0)
    assert kinds == {True, False}


def bouncing(p, rows, g, e, c, tau, s):
    """Addition to a row that arrives fast, the part of the step after it, and what others lose."""
    h, gap = s.h, rows.gap[g]
    at = tau if tau >= 0 else s.alpha * h
    if tau < 0:
        gap += c * at**2 / (2 * h)
    t = targets.arrival(gap, rows.before[g], c, at, h)
    if t > h:
        return gap / max(h - at, 1e-3 * h), 0.0, np.zeros(p.dim[g])
    left = (h - t) / h
    J = np.zeros((p.dim[g], NV))
    for n in range(p.entry_first[g], p.entry_first[g + 1]):
        a, start = p.entry_node[n], p.entry_at[n]
        size = p.node_count[a]
        J[:, p.node_first[a] : p.node_first[a] + size] = p.J[
            start : start + p.dim[g] * size
        ].reshape(p.dim[g], size)
    return e * (rows.before[g] + c * t / h) - left * c, left, left * (J @ s.change)


def test_where_positions_are_too_deep_at_the_end(rng):
    beta, closed = 0.03, 0.02
    deep_ones = set()
    for _ in range(30):
        p = a_problem()
        rows = filled(rng, p)
        rows.gap[:2] = rng.choice([-0.05, -GROWN / 2, 0.01], 2)
        s = StepState(closed=closed, x=rng.choice([1e-3, 1.0]) * rng.normal(size=NV),
                 residuals=np.zeros(10))  # fmt: skip
        island = np.array([1, 0])
        b = Balance(island=np.zeros(2, INT), deep=np.ones(2, INT))
        rows.loop_error[1] = rng.choice([1e-3, 0.3])
        work = workspace(p)
        work.tree_island[:2] = island
        found = shift.deepest(s, Mechanism(), p, work, rows, b, beta)
        speed = (first_rows(p, p.J) + first_rows(p, rows.fixed)) @ s.x
        end = rows.gap[:5] + beta * (speed + rows.bend[:5, 0])
        assert_close(s.residuals[3], max(0.0, *-end[:3]), scale=1.0)
        assert_close(s.residuals[4], abs(rows.loop_error[1]), scale=1.0)
        limits = [min(closed, max(-gap, GROWN) + SAME) for gap in rows.gap[:2]] + [closed] * 3
        end[3], end[4] = 0.0, -abs(rows.loop_error[1])
        deep = {island[p.node_tree[p.entry_node[p.entry_first[g]]]]
                for g in range(5) if end[g] < -limits[g]}  # fmt: skip
        assert found == bool(deep)
        assert set(np.flatnonzero(b.deep)) == deep
        assert b.island.tolist() == island.tolist()
        deep_ones.add(len(deep))
    assert deep_ones == {0, 1, 2}


def test_shifts_open_what_is_deep_as_far_as_its_variables_may_move(rng):
    h, beta, most = 0.1, 0.03, 0.4
    for _ in range(30):
        p = a_problem()
        rows = filled(rng, p)
        rows.loop_of, rows.end = np.full(40, -5), np.full(40, 9.0)
        units, moved = rng.uniform(0.5, 2, NV), rng.normal(size=NV)
        b = Balance(island=np.array([1, 0]), deep=rng.choice([0, 1], 2),
                    fastest=rng.uniform(0, 1, 2))  # fmt: skip
        J, whole = first_rows(p, p.J), first_rows(p, p.J) + first_rows(p, rows.fixed)
        end = rows.gap[:5] + beta * (whole @ moved + rows.bend[:5, 0])
        nodes = [p.entry_node[p.entry_first[g] : p.entry_first[g + 1]].copy() for g in range(5)]
        island = [b.island[p.node_tree[n[0]]] for n in nodes]
        m = Mechanism(units=units)
        rest = shift.shifts_wanted(m, p, rows, b, h, beta, most, moved)
        left = [g for g in range(5) if g != 3 and b.deep[island[g]]]
        assert_close(rest, max([0.0, *(-end[g] for g in range(3) if g not in left)]), scale=1.0)
        assert p.groups == len(left)
        fastest = np.maximum(b.fastest, most)[p.node_tree[p.dof_node]]
        for n, g in enumerate(left):
            loop = g == 4
            wanted = rows.loop_error[1] if loop else end[g]
            bound = h * np.sum(fastest * units * np.abs(J[g]))
            wanted = np.clip(wanted, -bound, bound) if loop else max(wanted, -bound)
            assert_close(p.target[n], wanted / h, scale=1.0)
            assert (p.kind[n], p.dim[n], p.row_first[n], p.impulse[n]) == (BOUNDS, 1, n, 0.0)
            assert (p.low[n], p.high[n]) == (-UNBOUNDED if loop else 0.0, UNBOUNDED)
            assert rows.loop_of[n] == (1 if loop else -1)
            assert_close(rows.end[n], end[g], scale=1.0)
            span = slice(p.entry_first[n], p.entry_first[n + 1])
            assert p.entry_node[span].tolist() == nodes[g].tolist()
            assert_close(first_rows(p, p.J)[n], J[g], scale=1.0)
        assert p.row_first[p.groups] == p.groups
        rows.loops = 3
        assert shift.loops_open(rows) == np.abs(rows.loop_error).max()
