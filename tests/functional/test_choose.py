import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.functional.kernel import kernel, select


def test_numbers_and_arrays_as_with_where(rng):
    assert select(True, 1.0, 2.0) == 1.0
    x = rng.normal(size=(3, 4))
    np.testing.assert_array_equal(select(x > 0, x, 0.0), np.maximum(x, 0))
    np.testing.assert_array_equal(select(x[0, 0] > 0, x, -x), x if x[0, 0] > 0 else -x)


def test_traced_numbers_and_arrays(rng):
    @kernel
    def folded(x):
        clipped = np.array([select(e < 0, 0.0, e) for e in x])
        return clipped, select((x[0] < 0) & (x[1] < 0), x, -x), select([True, False], x, 7.0)

    x = rng.normal(size=(50, 2))
    clipped, either, mixed = folded(x)
    assert_close(clipped, np.maximum(x, 0), ulps=0)
    assert_close(either, np.where(np.all(x < 0, axis=1, keepdims=True), x, -x), ulps=0)
    assert_close(mixed, np.column_stack([x[:, 0], np.full(50, 7.0)]), ulps=0)


def test_a_number_is_not_a_condition():
    with pytest.raises(AttributeError):
        select(1.0, 2.0, 3.0)
