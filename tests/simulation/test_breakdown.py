"""Numbers of a state, few and many: finite or not, and how large."""

import numpy as np
import pytest

from kinetree.integration.breakdown import all_finite, largest_size


@pytest.mark.parametrize("count", [0, 3, 1000])
def test_numbers_are_finite_and_as_large_as_they_are(count):
    x = np.linspace(-2.0, 1.0, count)
    assert all_finite(x)
    assert largest_size(x) == (2.0 if count else 0.0)
    assert largest_size(x[None]) == largest_size(x)
    for bad in (np.nan, np.inf, -np.inf):
        if count:
            assert not all_finite(np.append(x, bad))
            assert not all_finite(np.append(x, bad)[None])


def test_huge_numbers_are_finite_without_a_warning():
    assert all_finite(np.array([1e308, 1e308]))
    assert all_finite(np.full((2, 2), 1e300))
