"""Contacts of the shapes of something that arrives, among those found and earlier arrivals."""

import numpy as np

from kinetree.contact.collision.tables import Found
from kinetree.contact.engine.arrivals import length_in_order, range_of_shapes


def contacts(rng, shapes, count, arrivals):
    """Contacts in the order of pairs, then arrivals as they come; shapes of a pair either way."""
    pairs = np.sort(rng.integers(0, shapes, (count, 2)), axis=1)
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    pairs = np.concatenate([pairs, rng.integers(0, shapes, (arrivals, 2))])
    swapped = rng.random((shapes, shapes)) < 0.5  # the same for all contacts of a pair
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    turn = swapped[low, high]
    first, second = np.where(turn, high, low), np.where(turn, low, high)
    return Found(first=first, second=second, count=count + arrivals), count


def test_ranges_are_those_of_a_search_through_all_contacts():
    rng = np.random.default_rng(4)
    for _ in range(200):
        f, count = contacts(rng, 5, int(rng.integers(0, 12)), int(rng.integers(0, 4)))
        ordered = length_in_order(f)
        assert ordered >= count
        row = 0
        for first, second in rng.integers(0, 5, (6, 2)):  # in any order
            begin, end, row = range_of_shapes(f, ordered, row, int(first), int(second))
            own = np.flatnonzero((f.first == first) & (f.second == second))
            expected = (own[0], own[-1] + 1) if len(own) else (0, 0)
            assert (begin, end) == expected
