"""Whether steps are shared is chosen by their times, and chosen again when these change."""

import pytest

from kinetree.contact.engine.choosing import EVERY, SharingChoice


def run(choice, calls, shared, alone):
    """Which calls were shared, of those that take some seconds each way."""
    found = []
    for _ in range(calls):
        found.append(choice.next())
        choice.note(shared if found[-1] else alone)
    return found


@pytest.mark.parametrize("shared", [0.5, 0.97, 1.0, 1.04])
def test_what_is_as_quick_stays_shared(shared):
    choice = SharingChoice()
    found = run(choice, 20 * EVERY, shared, 1.0)
    assert choice.shared
    assert found.count(False) <= 3 + 20  # those by which it is seen


def test_what_is_slower_is_not_shared():
    choice = SharingChoice()
    found = run(choice, 20 * EVERY, 1.2, 1.0)
    assert not choice.shared
    assert found[:9] == [True, True, False, True, True, False, True, True, False]
    assert found[9:].count(True) <= 20


def test_other_times_are_noticed():
    choice = SharingChoice()
    run(choice, 100, 3.0, 1.0)
    assert not choice.shared
    run(choice, 4 * EVERY, 0.6, 1.0)
    assert choice.shared
    run(choice, 4 * EVERY, 1.5, 1.0)
    assert not choice.shared


def test_one_call_that_waits_decides_nothing():
    choice = SharingChoice()
    run(choice, EVERY - 2, 1.0, 2.0)
    for k in range(30 * EVERY):
        shared = choice.next()
        choice.note(100.0 if k % (2 * EVERY) == 5 else 1.0 if shared else 2.0)
    assert choice.shared
