"""The exponential of matrices against one with forty digits, and its identities."""

import mpmath
import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.control.linearization import held_input, matrix_exponential


def exact(A):
    with mpmath.workdps(40):
        return np.array(mpmath.expm(mpmath.matrix(A)).tolist(), dtype=float)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("norm", [1e-8, 0.1, 1.0, 5.0, 40.0])
def test_forty_digits(size, norm, rng):
    A = rng.standard_normal((3, size, size))
    A *= norm / np.abs(A).sum(axis=-2).max()
    found = matrix_exponential(A)
    for x, a in zip(found, A, strict=True):
        assert_close(x, exact(a), ulps=20, condition=max(norm, 1.0))


def test_simple_matrices():
    assert_close(matrix_exponential(np.zeros((2, 3, 3))), np.stack([np.eye(3)] * 2), ulps=2)
    assert_close(matrix_exponential([[0.0, 2.0], [0.0, 0.0]]), [[1, 2], [0, 1]], ulps=4)
    turn = matrix_exponential(np.array([[0.0, -0.7], [0.7, 0.0]]))
    assert_close(turn, [[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]], ulps=8)
    assert matrix_exponential(np.zeros((0, 0))).shape == (0, 0)


def test_an_input_that_is_held(rng):
    A, B, x, u = (rng.standard_normal(s) for s in ((4, 4), (4, 2), 4, 2))
    A_d, B_d = held_input(A, B, 0.3)
    rest = -np.linalg.solve(A, B @ u)  # where x stays with this input
    end = rest + exact(0.3 * A) @ (x - rest)
    assert_close(A_d @ x + B_d @ u, end, ulps=200, condition=np.linalg.cond(A))
    A_2, B_2 = held_input(A, B, 0.6)
    assert_close(A_2, A_d @ A_d, ulps=100)
    assert_close(B_2, A_d @ B_d + B_d, ulps=100)
