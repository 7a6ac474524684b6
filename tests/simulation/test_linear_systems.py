"""Linear equations inside a step."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree import kernel
from kinetree.errors import SingularError
from kinetree.integration.linear_equations import factor, solve


def positive(rng, n):
    """A matrix whose symmetric part is positive definite, and that is not symmetric."""
    A, B = rng.standard_normal((2, n, n))
    return A @ A.T + n * np.eye(n) + B - B.T


@pytest.mark.parametrize("n", [0, 1, 2, 5, 12])
def test_solutions_are_those_of_numpy(n, rng):
    A, b = positive(rng, n), rng.standard_normal(n)
    assert_close(
        solve(factor(A), b), np.linalg.solve(A, b), condition=np.linalg.cond(A) if n else 1
    )


def test_traced_and_batched_they_are_the_same(rng):
    @kernel
    def answer(A: (3, 3), b: (3,)):
        return solve(factor(A), b)

    A, b = np.array([positive(rng, 3) for _ in range(4)]), rng.standard_normal((4, 3))
    assert_close(answer(A, b), np.linalg.solve(A, b[..., None])[..., 0], ulps=1000)


def test_a_pivot_that_is_not_positive_is_named():
    with pytest.raises(SingularError, match=r"not positive definite: the step is too large.*dt"):
        factor(np.array([[1.0, 2.0], [2.0, 1.0]]))
