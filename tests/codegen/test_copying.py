"""Copies of many arrays in one call."""

import numpy as np
import pytest

from kinetree.codegen.copying import Copies
from kinetree.errors import ShapeError


def test_all_arrays_are_written_and_nothing_beside_them():
    rng = np.random.default_rng(0)
    kinds = [(float, (3, 2)), (np.int64, (5,)), (float, (0, 4)), (np.int64, (1,)), (float, (4097,))]
    whole = [np.zeros((size[0] + 2, *size[1:]), dtype=kind) for kind, size in kinds]
    sources = [rng.integers(1, 99, size).astype(kind) for kind, size in kinds]
    copies = Copies([(x[1:-1], y) for x, y in zip(whole, sources, strict=True)])
    for _ in range(2):
        for x in whole:
            x[...] = 0
        copies.make()
        for x, y in zip(whole, sources, strict=True):
            np.testing.assert_array_equal(x[1:-1], y)
            assert not x[0].any()
            assert not x[-1].any()


def test_no_arrays_are_no_copies():
    Copies([]).make()


@pytest.mark.parametrize(
    "other", [np.zeros(4), np.zeros(3, dtype=np.int64), np.zeros((3, 2))[:, 0]]
)
def test_arrays_that_are_not_alike_are_refused(other):
    with pytest.raises(ShapeError, match=r"arrays to copy must be contiguous and alike, got"):
        Copies([(np.zeros(3), other)])
