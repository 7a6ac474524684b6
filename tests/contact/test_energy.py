"""Energies of islands: what is a gain, what is taken of it, and momentum of what flies.

By mechanics of single rigid bodies.
"""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.contact.collision.tables import Found
from kinetree.contact.engine import energy
from kinetree.contact.engine.energy import BOUND, FLIGHT, ROUNDING, Balance, Flight
from kinetree.contact.engine.mechanism import Mechanism
from kinetree.contact.engine.row_tables import Rows
from kinetree.contact.newton.problem import Problem
from kinetree.spatial.rotation import rotation_exp

INT = np.int64


def balance(trees, islands, **options):
    of_trees = ("energy", "total", "unshifted", "kinetic", "joints", "rows", "excess", "size",
                "moving", "put", "lifted", "factor", "flown")  # fmt: skip
    return Balance(
        **{**{name: np.zeros(trees) for name in of_trees}, "drifts": np.zeros(trees, INT),
           "island": np.array(islands, dtype=INT), **options}
    )  # fmt: skip


def of_trees(trees, sizes):
    node = np.repeat(np.arange(trees), sizes)
    return Problem(trees=trees, nv=len(node), node_tree=np.arange(trees), dof_node=node)


# --- Gains ----------------------------------------------------------------------------------------


def test_energies_of_trees_are_sums_over_their_bodies(rng):
    tree = np.array([0, 2, -1, 0, 1, 2])
    motion, place = rng.normal(size=(2, 6, 1))
    b = balance(3, [0, 0, 0], tree=tree, bodies=6, of_motion=motion, of_place=place)
    total = np.full(3, 7.0)
    energy.energy_of_trees(b, 3, total)
    for t in range(3):
        assert_close(b.kinetic[t], motion[tree == t].sum(), scale=1.0)
        assert_close(total[t], (motion + place)[tree == t].sum(), scale=1.0)


@pytest.mark.parametrize("shifts", [0, 1])
@pytest.mark.parametrize("drift", [False, True])
def test_what_islands_gain_and_what_is_taken(shifts, drift, rng):
    """Two islands and a tree that nothing touches: velocities get a common factor."""
    seen = set()
    for _ in range(60):
        island = [1, 0, 1, -1, 0, 1]
        b = balance(6, island, shifts=shifts, tree=np.array([0, 1, 2, 3, 4, 5]))
        b.kinetic[:] = rng.uniform(0.1, 1, 6)
        b.energy[:], b.joints[:] = rng.normal(size=(2, 6))
        b.total[:] = b.energy + b.joints + rng.choice([0.0, 1e-3, 0.1, 1.0]) * rng.normal(size=6)
        b.rows[:] = 0.05 * rng.normal(size=6)
        b.unshifted[:] = b.total - 0.02 * rng.normal(size=6)
        before, kinetic = b.energy.copy(), b.kinetic.copy()
        f = Found(bodies=np.array([[0, 2], [3, 1]]), drift=np.zeros((2, 3)))
        f.drift[1, rng.integers(3)] = 0.1 * drift
        rows, w, p = Rows(contacts=2, contact=np.array([0, 1])), Flight(any=0), of_trees(6, 2)
        assert energy.find_excess(b, w, p, rows, f) is False
        v = rng.normal(size=12)
        given = v.copy()
        taken, left = energy.limit_energy(b, w, Mechanism(), p, v)

        gone, most, factor = 0.0, 0.0, np.ones(6)
        for i in (0, 1):
            t = np.flatnonzero(np.array(island) == i)
            put, lifted = b_sum(b.rows, t), b_sum(b.total - b.unshifted, t) if shifts else 0.0
            gain = b_sum(b.total - before - b.joints, t)
            if drift and i == 1:
                gain -= max(put, 0.0)
            put = min(put, 0.0)
            size = b_sum(np.abs(b.total) + np.abs(before) + kinetic, t)
            assert_close([b.excess[i], b.put[i], b.size[i], b.moving[i]],
                         [gain, put, size, b_sum(kinetic, t)], scale=10.0)  # fmt: skip
            assert_close(b.lifted[i], lifted, scale=1.0)
            if gain - put > ROUNDING * size:
                take = max(gain - max(lifted, 0.0), 0.0)
                take += min(gain - put - take, BOUND * b.moving[i])
                take = min(take, b.moving[i])
                factor[t] = np.sqrt(1 - take / b.moving[i])
                gone, most = gone + take, max(most, gain - take)
                seen.add("island")
        gain = b.total[3] - before[3] - b.joints[3]
        if gain > FLIGHT * kinetic[3] + ROUNDING * abs(b.total[3]):
            take = min(gain, kinetic[3])
            factor[3] = np.sqrt(1 - take / kinetic[3])
            gone, most = gone + take, max(most, gain - take)
            seen.add("flight")
        assert_close([taken, left], [gone, most], scale=10.0, ulps=1e3)
        assert_close(v, given * np.repeat(factor, 2), scale=10.0, ulps=1e6)
        assert_close(b.energy, b.total - (1 - factor**2) * kinetic, scale=10.0, ulps=1e3)
        assert b.drifts.tolist()[:2] == [0, int(drift)]
    assert seen == {"island", "flight"}


def b_sum(values, trees):
    return values[trees].sum()


# --- Islands that fly -----------------------------------------------------------------------------


def bodies(rng, n):
    """Rigid bodies, one to a tree, each with a free joint along axes of its own, and one arm."""
    S, F = np.zeros((2, 7 * n, 6))
    pose, given = np.zeros((n + 1, 12)), []
    for t in range(n):
        R, x = rotation_exp(rng.normal(size=3)), rng.normal(size=3)
        pose[t + 1] = np.column_stack([R, x]).ravel()
        mass, c, root = rng.uniform(0.5, 2), 0.3 * rng.normal(size=3), rng.normal(size=(3, 5))
        central = root @ root.T
        C = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
        inertia = np.block([[central - mass * C @ C, mass * C], [-mass * C, mass * np.eye(3)]])
        at = slice(7 * t, 7 * t + 6)
        S[at, :3], S[at, 3:] = np.vstack([R.T, 0 * R]), np.vstack([0 * R, R.T])
        F[at] = S[at] @ inertia
        S[7 * t + 6] = rng.normal(size=6)  # of another body, without weight to speak of
        given.append((mass, c, central))
    w = Flight(
        any=1, flies=np.zeros(n, INT), root=np.arange(1, n + 1), pose=pose, S=S, F=F,
        body=np.zeros(n, INT), centre=np.zeros((n, 3)), mass=np.zeros(n), moving=np.zeros(n),
        **{name: np.zeros((n, 3, 3)) for name in ("inertia", "own")},
        **{name: np.zeros((n, 3)) for name in ("middle", "momentum", "spin", "spun", "turn")},
    )  # fmt: skip
    m = Mechanism(nv=7 * n, first=np.array([0, *range(0, 7 * n, 7)]))
    return w, m, of_trees(n, 7), given


def whole(w, given, trees, v):
    """Mass, centre of mass, momentum, angular momentum about it and inertia of some bodies."""
    masses = np.array([given[t][0] for t in trees])
    at = [w.pose[t + 1, 3::4] + given[t][1] for t in trees]
    middle = masses @ at / masses.sum()
    P, L, inertia, own = np.zeros(3), np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))
    for t, x in zip(trees, at, strict=True):
        mass, c, central = given[t]
        twist = w.S[7 * t : 7 * t + 6].T @ v[7 * t : 7 * t + 6]
        p = mass * (twist[3:] + np.cross(twist[:3], c))
        d = x - middle
        P, L = P + p, L + central @ twist[:3] + np.cross(d, p)
        inertia += central + mass * (d @ d * np.eye(3) - np.outer(d, d))
        own += central
    return masses.sum(), middle, P, L, inertia, own


def kinetic(w, given, trees, v):
    total = 0.0
    for t in trees:
        mass, c, central = given[t]
        twist = w.S[7 * t : 7 * t + 6].T @ v[7 * t : 7 * t + 6]
        u = twist[3:] + np.cross(twist[:3], c)
        total += (mass * u @ u + twist[:3] @ central @ twist[:3]) / 2
    return total


def flown(rng):
    w, m, p, given = bodies(rng, 5)
    b = balance(5, [0, 2, 0, -1, 0])
    w.flies[0] = 1
    w.body[0] = 5
    return w, m, p, given, b, [0, 2, 4]


def test_islands_that_fly_as_one_body(rng):
    for _ in range(10):
        w, m, p, given, b, trees = flown(rng)
        v = rng.normal(size=35)
        v[6::7] = 0.0
        energy.sum_up(w, b, m, p, v)
        mass, middle, P, L, inertia, own = whole(w, given, trees, v)
        assert_close(w.mass[0], mass)
        assert_close(w.middle[0] + w.pose[5, 3::4], middle, scale=1.0)
        assert_close(w.momentum[0], P, scale=10.0)
        assert_close(w.spin[0], L, scale=10.0, ulps=1e3)
        assert_close(w.inertia[0], inertia, scale=10.0, ulps=1e3)
        assert_close(w.own[0], own, scale=10.0, ulps=1e3)
        for t in trees:
            assert_close(w.centre[t], given[t][1], scale=1.0, ulps=1e3)
        assert not np.any(w.mass[1:])

        w.spun[0] = rng.normal(size=3)
        energy.turn_back(w, b, m, p, v)
        _, _, after, spin, *_ = whole(w, given, trees, v)
        assert_close(spin, w.spun[0], scale=10.0, ulps=1e4)
        assert_close(after, P, scale=10.0, ulps=1e3)
        assert_close(w.turn[0], np.linalg.solve(inertia, w.spun[0]), scale=10.0, ulps=1e4)
        moving = w.spun[0] @ w.turn[0] / 2 + P @ P / (2 * mass)
        assert_close(w.moving[0], moving, scale=10.0, ulps=1e4)


def test_only_motion_relative_to_that_as_one_is_made_smaller(rng):
    for extra in (0.01, 0.3, 100.0):
        w, m, p, given, b, trees = flown(rng)
        v = rng.normal(size=35)
        v[6::7] = 0.0
        energy.sum_up(w, b, m, p, v)
        w.spun[0] = w.spin[0]
        energy.turn_back(w, b, m, p, v)
        before = whole(w, given, trees, v)
        was = kinetic(w, given, trees, v)
        for t in trees:
            b.kinetic[t] = kinetic(w, given, [t], v)
        b.total[:] = b.kinetic
        b.energy[:] = b.total
        b.energy[0] -= extra
        rows, f = Rows(contacts=0), Found()
        assert energy.find_excess(b, w, p, rows, f) is True
        taken, left = energy.limit_energy(b, w, m, p, v)
        assert_close(taken, was - kinetic(w, given, trees, v), scale=10.0, ulps=1e4)
        assert_close(taken, min(extra, was - w.moving[0]), scale=10.0, ulps=1e4)
        assert_close(left, extra - taken, scale=extra + 10, ulps=1e4)
        for x, y in zip(before, whole(w, given, trees, v), strict=True):
            assert_close(np.asarray(x), np.asarray(y), scale=10.0, ulps=1e4)


def test_what_flies_touches_nothing_fixed_and_feels_no_force():
    """Nor loops, nor anything that a free joint does not carry."""
    trees = 4
    node = np.repeat(np.arange(trees), 6)
    p = Problem(
        trees=trees, nv=24, node_tree=np.arange(trees), dof_node=node, groups=3,
        entry_first=np.array([0, 2, 4, 6]), entry_node=np.array([0, 1, 2, 3, 1, 0]),
    )  # fmt: skip
    m = Mechanism(nv=24, first=np.array([0, 0, 6, 12, 18]))

    def found(bodies=((1, 2), (3, 4)), third=1, root=(1, 2, 3, 4), push=None, known=(0, 1, 2, 3)):
        b = balance(trees, [0, 0, 1, 1], tree=np.array(known))
        w = Flight(flies=np.full(trees, 7), root=np.array(root), body=np.zeros(trees, INT))
        rows = Rows(contacts=2, contact=np.array([0, 1, third]), stops=1, dry=1)
        tau = np.zeros(24)
        if push is not None:
            tau[push] = 1.0
        f = Found(bodies=np.array(bodies))
        flies = energy.flying(w, b, m, p, rows, f, tau)
        assert flies == (w.any == 1)
        return w.flies.tolist() if flies else None

    assert found() == [1, 1, 0, 0]
    assert found(((0, 2), (3, 4))) == [0, 1, 0, 0]
    assert found(((1, 2), (3, 0))) == [1, 0, 0, 0]
    assert found(((1, 0), (0, 4))) is None
    assert found(((1, 2), (3, 4)), known=(0, 1, -1, 3)) == [1, 0, 0, 0]
    assert found(third=2) == [0, 1, 0, 0]
    assert found(root=(1, 0, 3, 4)) == [0, 1, 0, 0]
    for k, flies in ((0, [0, 1, 0, 0]), (11, [0, 1, 0, 0]), (12, [1, 0, 0, 0]), (23, [1, 0, 0, 0])):
        assert found(push=k) == flies


def test_inertia_of_points():
    inertia = np.eye(3)
    energy.add_point(inertia, 2.0, np.array([1.0, 2.0, -3.0]))
    expected = np.eye(3) + 2 * (14 * np.eye(3) - np.outer([1, 2, -3], [1, 2, -3]))
    assert_close(inertia, expected)
