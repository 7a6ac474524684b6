"""Sleep of islands: when they fall asleep, what wakes them, one by one."""

import numpy as np

from kinetree.contact.collision.tables import Found
from kinetree.contact.engine import sleep
from kinetree.contact.engine.sleep import CALM, SLOW, Sleep

INT = np.int64


def asleep(sleeps, pile, **options):
    """Trees of which some sleep, with two variables each."""
    n = len(sleeps)
    of_v = np.repeat(np.arange(n), 2)
    given = {
        "calm": np.full(n, CALM + 5), "fastest": np.full(n, 7.0), "ready": np.zeros(n, INT),
        "moved": np.zeros(n, INT), "tree_of_v": of_v, "tau": np.arange(2.0 * n),
    }  # fmt: skip
    return Sleep(
        on=1, trees=n, asleep=int(sum(sleeps)), sleeps=np.array(sleeps, INT),
        pile=np.array(pile, INT), tree=np.array([-1, *range(n)]), **{**given, **options},
    )  # fmt: skip


def test_contacts_of_what_sleeps_and_of_what_is_awake():
    z = asleep([1, 0, 1], [0, 1, 0])
    ends = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 2), (1, 0), (2, 0)]
    f = Found(bodies=np.array(ends))
    found = [(sleep.is_asleep(z, f, c), sleep.is_mixed(z, f, c)) for c in range(len(ends))]
    assert found == [(True, False), (False, False), (True, False), (False, True), (False, True),
                     (True, False), (False, False)]  # fmt: skip
    z.asleep = 0
    assert not any(sleep.is_asleep(z, f, c) or sleep.is_mixed(z, f, c) for c in range(len(ends)))


def test_a_pile_wakes_as_a_whole():
    z = asleep([1, 1, 0, 1, 1], [0, 1, 0, 0, 1])
    sleep.wake(z, 3)
    assert z.sleeps.tolist() == [0, 1, 0, 0, 1]
    assert z.calm.tolist() == [0, CALM + 5, CALM + 5, 0, CALM + 5]
    assert z.asleep == 2


def test_another_joint_force_wakes():
    for k, expected in ((0, [0, 1, 0, 1]), (3, [1, 0, 0, 0]), (7, [1, 0, 0, 0]), (5, [1, 1, 0, 1])):
        z = asleep([1, 1, 0, 1], [0, 1, 2, 1])
        tau = z.tau.copy()
        sleep.wake_driven(z, tau, 8)
        assert z.sleeps.tolist() == [1, 1, 0, 1]
        tau[k] += 1e-9
        sleep.wake_driven(z, tau, k)
        assert z.sleeps.tolist() == [1, 1, 0, 1]
        sleep.wake_driven(z, tau, 8)
        assert z.sleeps.tolist() == expected


def test_islands_fall_asleep_together_when_all_have_been_slow_for_a_while():
    island = np.array([1, 0, 1, -1, 2, 0, 3])
    units = np.tile([1.0, 0.5], 7)
    v = np.zeros(14)
    v[1] = 0.49 * SLOW  # slow enough in its own unit
    v[6] = 0.1 * SLOW  # in no island
    calm = np.array([CALM - 1, CALM, CALM + 3, CALM, CALM, CALM - 2, CALM])
    moved = np.array([0, 0, 0, 0, 0, 0, 1])
    z = asleep([0] * 7, [7] * 7, calm=calm.copy(), moved=moved)
    tau = 10.0 + np.arange(14.0)
    speeds = v.copy()
    assert sleep.fall_asleep(z, island, v, units, tau, 14)
    np.testing.assert_allclose(z.fastest, np.abs(speeds / units).reshape(7, 2).max(axis=1))
    assert z.calm.tolist() == [CALM, CALM + 1, CALM + 4, 0, CALM + 1, CALM - 1, 0]
    assert z.sleeps.tolist() == [1, 0, 1, 0, 1, 0, 0]
    assert z.pile[[0, 2, 4]].tolist() == [0, 0, 4]
    assert z.asleep == 3
    still = np.repeat(z.sleeps, 2) == 1
    assert np.all(v[still] == 0.0)
    np.testing.assert_array_equal(v[~still], speeds[~still])
    np.testing.assert_array_equal(z.tau, np.where(still, tau, np.arange(14.0)))

    v = np.zeros(14)
    v[2:4] = -3.0, 2.0  # it moves
    assert sleep.fall_asleep(z, np.full(7, -1), v, units, tau, 14) is False
    assert z.fastest[1] == 4.0
    assert z.calm.tolist() == [0] * 7
    v[1] = 0.51 * SLOW
    z = asleep([0] * 7, [7] * 7, calm=calm, moved=moved)
    assert sleep.fall_asleep(z, island, v, units, tau, 14)
    assert z.sleeps.tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert v[1] == 0.51 * SLOW
