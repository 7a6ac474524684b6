"""Actuators of a step as matrices: forces, resistance, bounds and activations, one by one.

A step is taken again until its bounds agree, and implicit forces that are not quite right are
stable as well, so that motions would hardly show it.
"""

import itertools

import numpy as np
import pytest
from support.closeness import assert_close
from support.islands import dense

from kinetree.contact.engine import activations, actuator_tables, drives
from kinetree.contact.engine.actuator_tables import Actuators, pairs_of
from kinetree.contact.engine.drives import ATTEMPTS
from kinetree.contact.engine.mechanism import Mechanism, resistance
from kinetree.contact.newton.problem import problem_of

INT = np.int64
PARENT = [-1, 0, 1, 1, -1, 4]  # a tree with two branches, and another one
NV = len(PARENT)
ARMS = ([0], [2, 3], [0, 1, 3], [1, 5], [])  # variables on which actuators have arms


def actuators(rng, problem, **options):
    """Some that act on one variable, across branches and trees, and on none."""
    n = len(ARMS)
    first = np.cumsum([0, *map(len, ARMS)]).astype(INT)
    arm_v = np.array(list(itertools.chain(*ARMS)), dtype=INT)
    total = len(arm_v)
    given = {
        "gain": rng.normal(size=(n, 3)), "bias": rng.normal(size=(n, 3)),
        "control": np.tile([-0.5, 0.8], (n, 1)), "effort": np.tile([-np.inf, np.inf], (n, 1)),
        "state": np.full(n, -1), "kind": np.zeros(n, INT), "time": np.zeros(n),
        "fall": np.zeros(n), "range": np.tile([-1.0, 1.0], (n, 1)), "muscle": np.zeros((n, 9)),
        "offset": rng.normal(size=n), "rest": np.zeros((n, 2)), "moving": np.zeros(n, INT),
        "most": np.tile([-np.inf, np.inf], (NV, 1)), "counts": np.zeros(NV, INT),
        "compensation": np.zeros(NV), "u": rng.normal(size=n), "activation": np.zeros(n),
        "bound": np.zeros(n, INT), "joint_bound": np.zeros(NV, INT), "joint_force": np.zeros(NV),
        "acts": 1, "limited": 0, "traced": 0, "integral": np.full(n, -1, INT),
        "integral_gain": np.zeros(n), "integral_zero": np.zeros(n),
        "integral_range": np.tile([-np.inf, np.inf], (n, 1)), "midway": np.zeros(n),
        **{name: np.zeros(n) for name in ("request", "stiff", "damp", "lead", "lag")},
    }  # fmt: skip
    return Actuators(
        count=n, nv=NV, arm=rng.normal(size=total), arm_q=arm_v + 1, arm_v=arm_v, arm_first=first,
        **pairs_of(problem, first, arm_v), **{**given, **options},
    )  # fmt: skip


def arms(a):
    """Row k: arms of actuator k."""
    R = np.zeros((a.count, NV))
    for k, (low, high) in enumerate(itertools.pairwise(a.arm_first)):
        R[k, a.arm_v[low:high]] = a.arm[low:high]
    return R


def carried():
    """Pairs of variables for which the mass matrix has a place."""
    chains = []
    for k in range(NV):
        chain = [k]
        while PARENT[chain[-1]] >= 0:
            chain.append(PARENT[chain[-1]])
        chains.append(set(chain))
    return np.array([[i in chains[j] or j in chains[i] for j in range(NV)] for i in range(NV)])


def resisting(a, lag):
    """``lag r rᵀ`` of actuators between bounds: with places, and as its diagonal without."""
    R = arms(a) * (a.joint_bound == 0)
    has, B, missing = carried(), np.zeros((NV, NV)), np.zeros((NV, NV))
    for k in np.flatnonzero((a.bound == 0) & (lag > 0)):
        product = lag[k] * np.outer(R[k], R[k])
        B += np.where(has, product, 0.0) + np.diag(np.sum(np.where(has, 0, np.abs(product)), 1))
        missing += np.where(has, 0.0, product) - np.diag(
            np.sum(np.where(has, 0, np.abs(product)), 1)
        )
    return B, missing


@pytest.mark.parametrize("bounds", [False, True])
def test_resistance_is_in_the_matrix_or_across_it(bounds, rng):
    h, alpha = 0.01, 0.5
    for _ in range(10):
        p = problem_of(PARENT)
        a = actuators(rng, p)
        a.stiff[:], a.damp[:] = rng.choice([0, 1, 300.0], (2, a.count))
        if bounds:
            a.bound[:] = rng.integers(-1, 2, a.count)
            a.joint_bound[:] = rng.choice([-1, 0, 0, 0, 1], NV)
        assert a.crosses == 1
        p.M[:] = rng.uniform(0.5, 2, len(p.M))
        before = dense(p, p.M)
        free = (rng.random(NV) > 0.2) * 1.0
        m = Mechanism(nv=NV, free=free, lead=rng.normal(size=NV), lag=rng.normal(size=NV))
        drives.add_resistance(a, m, p, h, alpha)
        R = arms(a)
        for k in range(a.count):
            mobility = R[k] ** 2 @ (1 / np.diag(before))
            acts = mobility and (a.stiff[k] or a.damp[k])
            expected = resistance(a.stiff[k], a.damp[k], 1 / mobility, h, alpha) if acts else (0, 0)
            assert_close([a.lead[k], a.lag[k]], expected, scale=10.0, ulps=100)
        B, missing = resisting(a, a.lag)
        more = dense(p, p.M) - before
        there = ~np.isnan(more)
        its = B * np.outer(free, free)
        np.fill_diagonal(its, _own_of_prescribed(a, free))
        assert_close(more[there] / h, its[there], scale=np.max(B) + 1, ulps=1e3)

        v, after, start = rng.normal(size=(3, NV))
        none, force = Actuators(acts=0), np.zeros(NV)
        drives.resisting_force(a, none, m, v, after, force)
        lead = R * (a.joint_bound == 0) * ((a.bound == 0) & (a.lag > 0))[:, None]
        expected = m.lead * v + m.lag * (after - v) + B @ (after - v)
        expected += lead.T @ (a.lead * (lead @ v))
        assert_close(force, expected, scale=np.max(B) + 1, ulps=1e3)
        both = np.zeros(NV)
        drives.resisting_force(none, a, m, v, after, both)
        assert_close(both, force)
        found = start.copy()
        drives.add_force_across(a, v, after, found)
        across = start + 2 * missing @ (after - v)
        assert_close(found, across, scale=np.max(B) + 1, ulps=1e3)
        a.crosses, found = 0, start.copy()
        drives.add_force_across(a, v, after, found)
        a.crosses, a.acts = 1, 0
        drives.add_force_across(a, v, after, found)
        assert np.array_equal(found, start)
        M = p.M.copy()
        drives.add_resistance(a, m, p, h, alpha)
        assert np.array_equal(p.M, M)


def _own_of_prescribed(a, free):
    """The diagonal, where products with prescribed variables do not count."""
    R = arms(a) * (a.joint_bound == 0) * free
    missing, own = ~carried(), np.zeros(NV)
    for k in np.flatnonzero((a.bound == 0) & (a.lag > 0)):
        product = a.lag[k] * np.outer(R[k], R[k])
        own += np.diag(product) + np.sum(np.where(missing, np.abs(product), 0), axis=1)
    return own


def test_forces_before_bounds_and_their_derivatives(rng):
    h, p = 0.02, problem_of(PARENT)
    q, v, middle = rng.normal(size=NV + 1), rng.normal(size=NV), rng.normal(size=NV)
    for _ in range(20):
        a = actuators(rng, p, bound=np.ones(5, INT), joint_bound=np.ones(NV, INT), attempts=9)
        a.moving[2], a.moving[3] = 1, 1
        a.traced, a.traced_of, a.length = 2, np.array([2, 3]), rng.normal(size=2)
        dense = rng.normal(size=(2, NV))
        a.dense = dense.ravel().copy()
        a.rest[1] = -5.0, rng.normal()
        a.rest[3] = np.sort(rng.normal(size=2))
        a.state[0], a.kind[0], a.activation[0] = (
            0,
            actuator_tables.ACTIVATION_NUMBERS["filter"],
            0.3,
        )
        a.time[0] = 0.1
        drives.request_forces(a, q, v, middle, h)
        R = arms(a)
        for n, k in enumerate((2, 3)):
            assert_close(R[k][ARMS[k]], dense[n, ARMS[k]])
        x = np.clip(a.u, -0.5, 0.8)
        x[0] += (0.3 - x[0]) * np.exp(-h / 2 / 0.1)
        length, rate = a.offset + R @ q[1:], R @ v
        rate[2:4] = (R @ middle)[2:4]
        length[2:4] = a.length - rate[2:4] * h / 2
        slack = (length > a.rest[:, 0]) & (length < a.rest[:, 1])
        length -= np.clip(length, a.rest[:, 0], a.rest[:, 1])
        gain = a.gain[:, 0] + a.gain[:, 1] * length + a.gain[:, 2] * rate
        bias = a.bias[:, 0] + a.bias[:, 1] * length + a.bias[:, 2] * rate
        assert_close(a.request, gain * x + bias, scale=1.0, ulps=200)
        stiff = np.where(slack, 0.0, -(a.gain[:, 1] * x + a.bias[:, 1]))
        assert_close(a.stiff, np.maximum(stiff, 0), scale=1.0)
        assert_close(a.damp, np.maximum(-(a.gain[:, 2] * x + a.bias[:, 2]), 0), scale=1.0)
        assert not np.any([*a.bound, *a.joint_bound, *a.lead, *a.lag, a.attempts])


def test_forces_at_joints_and_their_bounds(rng):
    p = problem_of(PARENT)
    for _ in range(10):
        a = actuators(rng, p, request=rng.normal(size=5))
        a.most[:] = np.column_stack([-rng.uniform(1, 2, NV), rng.uniform(1, 2, NV)])
        a.compensation[:] = rng.normal(size=NV)
        a.effort[:] = np.column_stack([-rng.uniform(1, 2, 5), rng.uniform(1, 2, 5)])
        a.bound[:] = rng.integers(-1, 2, 5)
        a.joint_bound[:] = rng.choice([-1, 0, 1], NV)
        held, tau = rng.normal(size=NV), np.zeros(NV)
        drives.exert(a, held, tau)
        f = np.where(a.bound > 0, a.effort[:, 1], np.where(a.bound < 0, a.effort[:, 0], a.request))
        expected = arms(a).T @ f
        bounds = np.where(a.joint_bound > 0, a.most[:, 1], a.most[:, 0]) - a.compensation
        expected = np.where(a.joint_bound != 0, bounds, expected) + held
        assert_close(tau, expected, scale=1.0, ulps=64)
        a.acts = 0
        drives.exert(a, held, tau)
        assert np.array_equal(tau, held)


def next_bound(old, reached, attempts):
    """Never from one side to the other at once; after some attempts bounds are not left."""
    if old * reached == -1:
        reached = 0
    return old if attempts >= ATTEMPTS and not reached else reached


def test_bounds_that_forces_reach_in_a_step(rng):
    p, changes = problem_of(PARENT), set()
    for _ in range(200):
        a = actuators(rng, p, request=2 * rng.normal(size=5), limited=1)
        a.effort[:] = np.column_stack([-rng.uniform(0.5, 3, 5), rng.uniform(0.5, 3, 5)])
        a.most[:] = np.column_stack([-rng.uniform(0.5, 3, NV), rng.uniform(0.5, 3, NV)])
        a.compensation[:] = rng.normal(size=NV)
        a.lead[:], a.lag[:] = rng.uniform(size=(2, 5))
        a.bound[:] = rng.integers(-1, 2, 5)
        a.joint_bound[:] = rng.integers(-1, 2, NV)
        a.attempts = int(rng.integers(0, 8))
        v, after = rng.normal(size=(2, NV))
        old, old_joint = a.bound.copy(), a.joint_bound.copy()
        R = arms(a)
        f = a.request - a.lead * (R @ v) - a.lag * (R @ (after - v))
        if np.min(np.abs(f[:, None] / a.effort - 1)) < 1e-6:
            continue
        reached = (f > a.effort[:, 1]) * 1 - (f < a.effort[:, 0]) * 1
        clipped = R.T @ np.clip(f, *a.effort.T)
        total = clipped + a.compensation
        at_joints = (total > a.most[:, 1]) * 1 - (total < a.most[:, 0]) * 1
        expected = [next_bound(*x, a.attempts + 1) for x in zip(old, reached, strict=True)]
        joints = [next_bound(*x, a.attempts + 1) for x in zip(old_joint, at_joints, strict=True)]
        changed = drives.other_bounds(a, v, after)
        assert_close(a.joint_force, clipped, scale=1.0, ulps=200)
        assert a.bound.tolist() == expected
        assert a.joint_bound.tolist() == joints
        assert changed == (expected != old.tolist() or joints != old_joint.tolist())
        changes.add((changed, a.attempts > ATTEMPTS))
        a.limited = 0
        assert not drives.other_bounds(a, v, after)
    assert (True, True) in changes


def test_a_force_at_a_bound_but_for_rounding_is_between():
    assert [drives.side(f, -1.0, 2.0) for f in (-1.5, -1.0, 0.0, 2.0, 2.5)] == [-1, -1, 0, 1, 1]
    p = problem_of(PARENT)
    for part, bound in ((1.0, 0), (1 + 1e-10, 0), (1 + 1e-8, 1)):
        for sign in (1, -1):
            a = actuators(np.random.default_rng(0), p, limited=1)
            a.arm[:1] = 1.0
            a.effort[0], a.request[0] = (-3.0, 3.0), sign * 3.0 * part
            zero = np.zeros(NV)
            drives.reach_bounds(a, zero, zero)
            assert a.bound[0] == sign * bound
            a.effort[0], a.request[1:], a.most[0] = (-np.inf, np.inf), 0.0, (-3.0, 3.0)
            drives.reach_bounds(a, zero, zero)
            assert a.joint_bound[0] == sign * bound


def test_activations_follow_held_controls(rng):
    a = actuators(rng, problem_of(PARENT), u=np.array([0.3, 5.0, -0.2, 0.1, 0.4]))
    kinds = {0: "integrator", 1: "filter", 3: "filter"}
    for n, (k, kind) in enumerate(kinds.items()):
        a.state[k], a.kind[k] = n, actuator_tables.ACTIVATION_NUMBERS[kind]
    a.states = 3
    a.time[:], a.activation[:3] = (0.0, 0.2, 0.0, 0.0, 0.0), (0.1, 0.5, 0.9)
    activations.follow_controls(a, 0.1)
    expected = [0.1 + 0.3 * 0.1, 0.8 + (0.5 - 0.8) * np.exp(-0.5), 0.1]
    assert_close(a.activation[:3], expected)
    a.range[0] = 0.0, 0.12
    activations.follow_controls(a, 0.1)
    assert a.activation[0] == 0.12
    inputs = np.array([0.5, 0.2, 0.3, 0.6, 0.1, 0.05, -0.1, 0.2, 7.0])
    activations.read_controls(a, inputs, 7.03)
    assert_close(a.u, inputs[:5])
    expected = [0.05 + 0.5 * 0.03, 0.2 + (-0.1 - 0.2) * np.exp(-0.03 / 0.2), 0.6]
    assert_close(a.activation[:3], expected, ulps=200)
    a.state[:], a.states = -1, 0
    activations.read_controls(a, -inputs, 9.0)
    assert_close(a.u, -inputs[:5])
    assert_close(a.activation[:3], expected, ulps=200)


def test_integrals_add_up_errors_of_setpoints(rng):
    """In the middle of a step for its force, and where it ends."""
    a = actuators(rng, problem_of(PARENT), u=np.array([0.3, 5.0, -0.2, 0.1, 0.4]))
    a.gain[:], a.bias[:], a.integral[:2], a.integral_gain[:2] = 0.0, 0.0, (0, 2), (3.0, 2.0)
    a.state[1], a.kind[1], a.time[1] = 1, actuator_tables.ACTIVATION_NUMBERS["ramp"], 0.5
    a.states, a.activation[:3], a.integral_zero[:2] = 3, (0.1, 0.2, -0.3), (0.05, 0.0)
    q, v, h = rng.normal(size=NV + 1), rng.normal(size=NV), 0.01
    drives.request_forces(a, q, v, v, h)
    R = arms(a)
    l = R @ q[1:] + a.offset
    ld = R @ v
    middle = l + h / 2 * ld
    z = a.activation[[0, 2]] + h / 2 * (
        np.array([0.3 - 0.05, 0.2 + 0.25 * h / 0.5]) - (l + h / 4 * ld)[:2]
    )
    assert_close(a.request[:2], np.array([3.0, 2.0]) * z)
    expected = a.activation[[0, 2]] + h * (np.array([0.3 - 0.05, 0.2 + 0.5 * h / 0.5]) - middle[:2])
    activations.add_up_errors(a, h)
    assert_close(a.activation[[0, 2]], expected)
    a.integral_range[0] = -0.01, 0.01
    activations.add_up_errors(a, h)
    assert abs(a.activation[0]) == 0.01
