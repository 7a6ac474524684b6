"""Rows, sweeps and steps of Newton of contacts with slots, as matrices.

Sweeps and steps go on until laws hold, so that a wrong one would only make more of them.
"""

from itertools import accumulate
from types import SimpleNamespace

import numpy as np
import pytest
from support.closeness import assert_close
from support.contact_scenes import assert_laws_hold

from kinetree.contact.engine import slot_laws, slot_newton, slot_sweeps, slots
from kinetree.contact.engine.slot_pairs import PairTables
from kinetree.contact.engine.slot_world import SlotWorld, Unknowns

INT = np.int64
SLOTS = 7


def system(seed, parents=(-1, 0, 1, 0), used=5, friction=0.6):
    """A tree of bodies that touch in some places, with rows of ``L⁻¹ D^{-1/2}``."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, len(parents))
    counts[0] = 6
    own = [list(range(end - n, end)) for end, n in zip(accumulate(counts), counts, strict=True)]
    support = []
    for i, up in enumerate(parents):
        support.append([*(support[up] if up >= 0 else []), *own[i]])
    nv, deep = int(sum(counts)), -(-max(map(len, support)) // 8) * 8
    owner = [i for i, n in enumerate(counts) for _ in range(n)]
    chains = [support[owner[k]][: support[owner[k]].index(k) + 1] for k in range(nv)]
    first = [0, *accumulate(map(len, chains))]
    inverse = np.zeros((nv, nv))
    for k, chain in enumerate(chains):
        inverse[k, chain] = 0.4 * rng.normal(size=len(chain))
        inverse[k, k] = rng.uniform(0.5, 1.5)
    carrier = rng.integers(0, len(parents), used)
    mu = rng.uniform(0.3, 1.0, used) * friction / 0.6
    s = SimpleNamespace(
        nv=nv, deep=deep, used=used, inverses=first[-1], mu=np.append(mu, 7.0),
        moves=np.array(list(map(len, support))),
        chain=np.array([k for c in support for k in (*c, *[nv] * (deep - len(c)))]),
        begin=np.array([first[k] for c in support for k in (*c, *[0] * (deep - len(c)))]),
        owner=np.array(owner), level=np.array([len(c) - 1 for c in chains]),
        carrier=np.append(carrier, 0), inverse=inverse, support=support,
        packed=np.concatenate([inverse[k, c] for k, c in enumerate(chains)]),
        S=rng.normal(size=(nv, 6)), place=rng.normal(size=(used, 12)),
    )  # fmt: skip
    s.place[:, :9] = [np.linalg.qr(rng.normal(size=(3, 3)))[0].ravel() for _ in range(used)]
    s.slot = np.zeros(slot_laws.SLOT_SIZE * SLOTS)
    s.slot[: slot_laws.SLOT_SIZE * used : slot_laws.SLOT_SIZE] = carrier
    s.Y, s.own = np.full(3 * SLOTS * deep, 7.0), np.full(6 * SLOTS, 7.0)
    s.world = world_of(s, place=s.place.ravel(), S=s.S.ravel(), inverse=s.packed,
                       work=np.zeros(s.inverses + 6 * nv))  # fmt: skip
    bodies = np.arange(len(parents))
    couple = np.column_stack([0 * bodies, bodies, 0 * bodies])
    slot_laws.contact_rows(s.world, used, PairTables(couple=couple))
    s.rows = rows_of(s)
    s.A = s.rows @ s.rows.T
    return s


STEPS = [f"{n}_step" for n in ("slot", "place", "S", "inverse", "Y", "own", "start", "held")]
STEPS += [f"{n}_step" for n in ("z", "u", "taken", "opening", "shift")]


def world_of(s, **more):
    """The record of a system, with other numbers by name."""
    names = [
        "nv",
        "deep",
        "inverses",
        "moves",
        "chain",
        "begin",
        "owner",
        "level",
        "slot",
        "Y",
        "own",
    ]
    more = {"slots": SLOTS, **more}
    given = {n: getattr(s, n) for n in names}
    one = dict.fromkeys(STEPS, 1)
    still = {"origin": np.zeros((1, 3)), "tree": np.zeros(len(s.moves), dtype=int)}
    return SlotWorld(**{**given, **one, **still, **more})


def unknowns(s, **more):
    """Unknowns of a system, zero where there are none by name."""
    sizes = {"carrier": 1, "mu": 1, "target": 1, "b": 3, "lam": 3, "w": 3, "W": 9}
    found = {n: np.zeros(k * SLOTS) for n, k in sizes.items()}
    found |= {n: np.full(s.nv + 1, 7.0) for n in ("v", "older")}
    for n, x in {"carrier": s.carrier, "mu": s.mu, **more}.items():
        found[n][: len(x)] = x
    found["carrier"] = found["carrier"].astype(INT)
    return Unknowns(**found)


def rows_of(s):
    """``Y`` by its definition, dense."""
    found = np.zeros((3 * s.used, s.nv))
    for n in range(s.used):
        R, p = s.place[n, :9].reshape(3, 3), s.place[n, 9:]
        G = np.zeros((3, s.nv))
        for k in s.support[int(s.carrier[n])]:
            G[:, k] = R @ (s.S[k, 3:] + np.cross(s.S[k, :3], p))
        found[3 * n : 3 * n + 3] = G @ s.inverse
    return found


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_products_with_them(seed, rng):
    s = system(seed)
    for n in range(s.used):
        chain = s.support[int(s.carrier[n])]
        part = s.Y[3 * n * s.deep : (3 * n + 3) * s.deep].reshape(3, s.deep)
        assert_close(part[:, : len(chain)], s.rows[3 * n : 3 * n + 3, chain], scale=10.0, ulps=100)
        assert not np.any(part[:, len(chain) :])
        at = slice(3 * n, 3 * n + 3)
        expected = s.A[at, at][[0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]]
        assert_close(s.own[6 * n : 6 * n + 6], expected, scale=100.0, ulps=100)
    assert np.all(s.Y[3 * s.used * s.deep :] == 7.0)
    assert np.all(s.own[6 * s.used :] == 7.0)
    lam, b = rng.normal(size=(2, 3 * s.used))
    its = unknowns(s, lam=lam, b=b)
    slot_laws.effect_of_impulses(s.world, its, s.used, s.nv)
    assert_close(its.v[:-1], s.rows.T @ lam, scale=10.0, ulps=100)
    slot_laws.speeds(s.world, its, s.used)
    assert_close(its.w[: 3 * s.used], b + s.A @ lam, scale=100.0, ulps=1e3)


def loads(s, rng, size=1.0):
    b = size * rng.normal(size=3 * s.used)
    b[::3] -= size
    return b


def project(mu, y):
    n, t = max(y[0], 0.0), np.hypot(*y[1:])
    return np.array([n, *(y[1:] * (min(1.0, mu * n / t) if t else 1.0))])


def derivative(mu, y):
    n, t = max(y[0], 0.0), np.hypot(*y[1:])
    if t <= mu * n:
        return np.eye(3)
    if n == 0:
        return np.zeros((3, 3))
    e, P = y[1:] / t, np.zeros((3, 3))
    P[0, 0] = 1.0
    P[1:, 0] = mu * e
    P[1:, 1:] = mu * n / t * (np.eye(2) - np.outer(e, e))
    return P


def missed(s, lam, w):
    """What contacts miss their laws by, and the derivatives of projections; both by blocks."""
    off, P, a = [], np.zeros((3 * s.used, 3 * s.used)), []
    for n in range(s.used):
        at = slice(3 * n, 3 * n + 3)
        a += 3 * [np.trace(s.A[at, at]) / 3]
        y = a[-1] * lam[at] - w[at]
        off.append(a[-1] * lam[at] - project(s.mu[n], y))
        P[at, at] = derivative(s.mu[n], y)
    return np.concatenate(off), P, np.array(a)


@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_newtons_method_and_what_they_gain(seed, rng):
    s, stay = system(seed), 0.01
    lam = rng.normal(size=3 * s.used)
    lam[::3] = np.abs(lam[::3])
    w = loads(s, rng)
    off, P, a = missed(s, lam, w)
    B = np.diag(a * (1 + stay)) - a[:, None] * P
    its = unknowns(s, lam=lam, w=w)
    error = slot_newton.laws(s.world, its, s.used, stay)
    given, W = its.w[: 3 * s.used], its.W.reshape(-1, 9)
    assert_close(error, np.abs(off).max(), ulps=1e4)
    assert_close(given, np.linalg.solve(B, off), scale=1 / stay, ulps=1e4)
    dense = np.zeros_like(P)
    for n in range(s.used):
        dense[3 * n : 3 * n + 3, 3 * n : 3 * n + 3] = W[n].reshape(3, 3)
    assert_close(dense, np.linalg.solve(B, P), scale=1 / stay, ulps=1e4)

    K = np.full(2 * s.inverses + 3 * SLOTS, 7.0)
    slot_newton.solve_newton_system(world_of(s, K=K), its, s.used, s.used)
    matrix = np.eye(s.nv) + s.rows.T @ dense @ s.rows
    expected = -np.linalg.solve(matrix, s.rows.T @ given)
    scale = np.abs(expected).max()
    assert_close(its.older[:-1], expected, scale=scale, ulps=100 * np.linalg.cond(matrix))


def newton(s, lam, b, steps, weight, light, enough):
    """The best of some steps with weights of staying that fall, but for two of seven."""
    best, least = lam, np.inf
    for n in range(steps + 1):
        w = b + s.A @ lam
        stay = max(weight, slot_newton.FIRM_WEIGHT if n % 7 > 4 else light)
        weight *= slot_newton.WEIGHT_DECAY
        off, P, a = missed(s, lam, w)
        error = np.abs(off).max()
        if error < least:
            best, least = lam, error
        if n == steps or error <= enough:
            return best, least
        lam = lam - np.linalg.solve(np.diag(a * (1 + stay)) - a[:, None] * P + P @ s.A, off)
    raise AssertionError


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 9])
def test_steps_of_newton_are_those_of_the_matrix(steps):
    better = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        s = system(seed, used=3)
        b, lam = loads(s, rng), rng.normal(size=9)
        lam[::3] = np.abs(lam[::3])
        enough = 1e-6
        expected, error = newton(s, lam, b, steps, 0.3, 1e-3, enough)
        its = unknowns(s, lam=lam, b=b)
        slot_laws.effect_of_impulses(s.world, its, 3, s.nv)
        world = world_of(s, K=np.zeros(2 * s.inverses + 3 * SLOTS), proximal_weight=1e-3)
        found = slot_newton.finish_by_newton(world, its, 3, steps, 0.3, enough)
        x, u = its.lam[:9], its.v
        scale = np.abs(expected).max()
        np.testing.assert_allclose(x, expected, atol=1e-7 * scale)
        np.testing.assert_allclose(found, error, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(u[:-1], s.rows.T @ x, atol=1e-9 * scale)
        better += not np.array_equal(x, lam)
    assert better == 0 if steps == 0 else better > 6


def sweeping(s, b, sweeps, enough, later=None, lam=None):
    n = 3 * s.used
    its = unknowns(s, lam=np.zeros(n) if lam is None else lam, b=b)
    slot_laws.effect_of_impulses(s.world, its, s.used, s.nv)
    later = enough if later is None else later
    world = world_of(s, sweeps=sweeps)
    rounds, error = slot_sweeps.sweep_slots(world, its, s.used, enough, later)
    x = its.lam[:n].copy()
    assert_close(its.v[:-1], s.rows.T @ x, scale=np.abs(x).max() + 1, ulps=1e5)
    return rounds, error, x


def test_effort_of_sweeps():
    """Mixtures make sweeps end sooner: their number in all, and how many problems they solve."""
    rounds, solved = [], 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        s = system(seed, used=4, friction=0.5)
        b = loads(s, rng)
        n, error, lam = sweeping(s, b, 120, 1e-8)
        off, *_ = missed(s, lam, b + s.A @ lam)
        assert_close(error, np.abs(off).max(), scale=1.0, ulps=1e5)
        if error <= 1e-8:
            solved += 1
            rounds.append(n)
            assert_laws_hold(s.A, b, s.mu[: s.used], lam, tolerance=1e-5)
    assert abs(solved - 46) <= 1  # rounding may decide one
    assert abs(sum(rounds) - 1100) <= 25


def test_later_sweeps_may_be_less_exact_and_what_is_worse_is_not_taken():
    ends = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        s = system(seed, used=4)
        b, lam = loads(s, rng), rng.normal(size=12)
        lam[::3] = np.abs(lam[::3]) + 1
        for sweeps in (0, 3):
            n, error, _ = sweeping(s, b, sweeps, 1e-9, lam=lam)
            first = np.abs(missed(s, lam, b + s.A @ lam)[0]).max()
            assert n == sweeps
            assert error <= first * (1 + 1e-9)
        n, error, _ = sweeping(s, b, 100, 1e-9, later=1e-2)
        ends.append((n, error <= (1e-9 if n < slot_sweeps.EXACT_SWEEPS else 1e-2)))
    assert all(enough or n == 100 for n, enough in ends)
    assert min(ends)[0] < slot_sweeps.EXACT_SWEEPS <= max(ends)[0]


@pytest.mark.parametrize("rounds", [1, 3])
def test_displacements_that_open_gaps(rounds, rng):
    """Sweeps along the normals, without friction, that push and do not pull."""
    for seed in range(6):
        s = system(seed, used=5)
        near = 0.1 * rng.normal(size=SLOTS)
        push, u = np.zeros(5), np.zeros(s.nv)
        for _ in range(rounds):
            for n in range(5):
                row = s.rows[3 * n]
                x = max(-(near[n] + row @ u) / (row @ row), -push[n])
                push[n] += x
                u += x * row
        shift, work = np.zeros(s.nv), np.full(s.nv + 1 + SLOTS, 7.0)
        found = np.array([5.0, 0, 0])
        world = world_of(s, rounds=rounds, opening=near, found=found, shift=shift, work=work)
        slots.slot_shift(1, world)
        assert_close(shift, u, scale=1.0, ulps=1e4)
        shift[:] = 7.0
        slots.slot_shift(0, world)
        assert np.all(shift == 7.0)


def test_impulses_of_a_step_with_their_report(rng):
    """Targets of gaps and of bounces, forces and power, from what the solution says itself."""
    h, tolerance, depth, rest, light = 0.01, 1e-9, 2e-3, 0.1, 0.05
    bounced = 0
    for seed in range(10):
        s = system(seed, used=3, friction=0.4)
        s.slot = np.zeros(9 * SLOTS)
        numbers = s.slot.reshape(SLOTS, 9)
        numbers[:3, 0], numbers[:3, 1] = s.carrier[:3], s.mu[:3]
        numbers[:3, 2] = rng.choice([-0.1, -1e-3, 1e-3], 3)
        numbers[:3, 3:6] = loads(s, rng).reshape(3, 3)
        numbers[:3, 6:] = 0.1 * rng.normal(size=(3, 3))
        restitution = np.array([0.0, 0.5, 0.3, 0.0, 0.8, 0.0])
        taken = np.array([4.0, 0.0, 2.0] + [0.0] * (SLOTS - 3))
        start = np.zeros((SLOTS, 4))
        start[0] = 5, 30.0, 2.0, 1.0
        held, u, reported = np.full((SLOTS, 4), 7.0), np.zeros(s.nv), np.zeros(slots.REPORT_SIZE)
        z = 0.2 * rng.normal(size=s.nv)
        solver = {"sweeps": 300, "tries": 4, "first": 1.0, "serious": 1.0, "nearly": 1.0}
        solver |= {"proximal_weight": 1e-4, "light": light}
        world = world_of(
            s, **solver, restitution=restitution, loose=np.zeros(1), z=z, taken=taken, u=u,
            numbers=np.array([h, h / 2, tolerance, depth, rest, 0.0]),
            found=np.array([3.0, 0, 0]), start=start.ravel(), held=held.reshape(-1),
            reported=reported, K=np.zeros(2 * s.inverses + 3 * SLOTS),
        )  # fmt: skip
        slots.slot_impulses(1, world, unknowns(s))
        before, gained = numbers[:3, 3:6], numbers[:3, 6:]
        free = before + (s.rows @ z).reshape(3, 3)
        e = restitution[taken[:3].astype(int)]
        gap = numbers[:3, 2]
        wanted = np.maximum(gap, -depth) / h
        arrives = (e > 0) & (gap + h * free[:, 0] <= 0) & (before[:, 0] < -rest)
        wanted = np.where(arrives, e * before[:, 0], wanted)
        bounced += np.sum(arrives)
        lam = h * held[:3, 1:]
        touches = np.abs(held[:3, 1] - light) < 1e-12
        lam[touches, 0] = 0.0
        there = free + gained + (s.rows @ (s.rows.T @ lam.ravel())).reshape(3, 3)
        assert_close(u, s.rows.T @ lam.ravel(), scale=10.0, ulps=1e4)
        w = there + np.column_stack([wanted, 0 * wanted, 0 * wanted])
        assert_laws_hold(s.A, (w.ravel() - s.A @ lam.ravel()), s.mu[:3], lam.ravel(),
                         tolerance=1e-5)  # fmt: skip
        assert held[:, 0].tolist() == [5, 1, 3, *[0] * (SLOTS - 3)]
        assert not np.any(held[3:])
        off, *_ = missed(s, lam.ravel(), w.ravel())
        size = 1 + np.abs(free).max()
        assert reported[0] <= tolerance * size
        assert abs(reported[0] - np.abs(off).max()) < 1e-9
        slide, slip = np.hypot(*lam[:, 1:].T), np.hypot(*w[:, 1:].T)
        cone = max(0.0, *(slide - s.mu[:3] * lam[:, 0]))
        assert_close(reported[1], cone, scale=1.0, ulps=100)
        power = np.abs(np.sum(lam[:, 1:] * w[:, 1:], axis=1) + s.mu[:3] * lam[:, 0] * slip)
        assert abs(reported[2] - max(*np.abs(lam[:, 0] * w[:, 0]), *power)) < 1e-8
        assert_close(reported[3], np.sum(lam * there), scale=1.0, ulps=1e6)
        lost = np.sum(lam * (there - (before - gained))) / 2
        assert_close(reported[4], lost, scale=1.0, ulps=1e6)
        assert reported[5] == int(reported[5]) > 0
    assert bounced > 3


def test_forces_of_slots_are_those_of_their_contacts():
    force = np.array([3.0, 1, 2, 3, 0, 9, 9, 9, 1, 4, 5, 6])
    found = np.full((4, 3), 7.0)
    slots.slot_forces(0, 4, 3, force, found)
    assert np.all(found == 7.0)
    slots.slot_forces(1, 4, 3, force, found)
    assert found.tolist() == [[4, 5, 6], [0, 0, 0], [1, 2, 3], [0, 0, 0]]
